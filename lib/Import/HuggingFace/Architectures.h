//===- Architectures.h - The importers of all architectures -----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_IMPORT_HUGGINGFACE_ARCHITECTURES_H
#define ATTUNE_LIB_IMPORT_HUGGINGFACE_ARCHITECTURES_H

#include "Config.h"

namespace attune::hf {

/// What follows the network in a class of "architectures".
enum class Head {
  None,          ///< the bare network
  LanguageModel, ///< scores over the vocabulary
  Score,         ///< scores of labels, by the last token of a decoder
  Other,         ///< another one, which the importer knows by the class's name
};

/// A class name that "architectures" may hold.
struct ModelClass {
  const char *name;
  Head head;
};

/// An architecture: reads its keys and builds name and streams. An importer
/// whose model reads other things than `input_ids`, or gives other things than
/// the last layer as `logits` or `last_hidden_state`, fills inputs (and each
/// stream's `input`) and outputs, too. Dtype, generation and common keys are
/// the caller's business.
struct Architecture {
  const char *modelType;
  /// The first one is meant where "architectures" is absent.
  std::vector<ModelClass> classes;
  std::optional<spec::Model> (*import)(ImportContext &context);
  /// Has an encoder and a decoder; `import` may set token ids of generation
  /// that hold where no file names any.
  bool encoderDecoder = false;
};

/// In alphabetical order; a new architecture is added to Architectures.cpp.
const std::vector<Architecture> &architectures();

std::optional<spec::Model> importAlbert(ImportContext &context);
std::optional<spec::Model> importBart(ImportContext &context);
std::optional<spec::Model> importBert(ImportContext &context);
std::optional<spec::Model> importBloom(ImportContext &context);
std::optional<spec::Model> importClip(ImportContext &context);
std::optional<spec::Model> importCohere(ImportContext &context);
std::optional<spec::Model> importDeepSeekV2(ImportContext &context);
std::optional<spec::Model> importDeepSeekV3(ImportContext &context);
std::optional<spec::Model> importDeiT(ImportContext &context);
std::optional<spec::Model> importDistilBert(ImportContext &context);
std::optional<spec::Model> importElectra(ImportContext &context);
std::optional<spec::Model> importFalcon(ImportContext &context);
std::optional<spec::Model> importFalconMamba(ImportContext &context);
std::optional<spec::Model> importGemma(ImportContext &context);
std::optional<spec::Model> importGemma2(ImportContext &context);
std::optional<spec::Model> importGemma3(ImportContext &context);
std::optional<spec::Model> importGPT2(ImportContext &context);
std::optional<spec::Model> importGPTBigCode(ImportContext &context);
std::optional<spec::Model> importGPTJ(ImportContext &context);
std::optional<spec::Model> importGPTNeoX(ImportContext &context);
std::optional<spec::Model> importGranite(ImportContext &context);
std::optional<spec::Model> importLlama(ImportContext &context);
std::optional<spec::Model> importMamba(ImportContext &context);
std::optional<spec::Model> importMarian(ImportContext &context);
std::optional<spec::Model> importMBart(ImportContext &context);
std::optional<spec::Model> importMistral(ImportContext &context);
std::optional<spec::Model> importMixtral(ImportContext &context);
std::optional<spec::Model> importMPT(ImportContext &context);
std::optional<spec::Model> importMT5(ImportContext &context);
std::optional<spec::Model> importOlmo2(ImportContext &context);
std::optional<spec::Model> importOLMoE(ImportContext &context);
std::optional<spec::Model> importOPT(ImportContext &context);
std::optional<spec::Model> importPegasus(ImportContext &context);
std::optional<spec::Model> importPhi(ImportContext &context);
std::optional<spec::Model> importPhi3(ImportContext &context);
std::optional<spec::Model> importQwen2(ImportContext &context);
std::optional<spec::Model> importQwen2MoE(ImportContext &context);
std::optional<spec::Model> importQwen3(ImportContext &context);
std::optional<spec::Model> importQwen3MoE(ImportContext &context);
std::optional<spec::Model> importRoberta(ImportContext &context);
std::optional<spec::Model> importStableLM(ImportContext &context);
std::optional<spec::Model> importStarcoder2(ImportContext &context);
std::optional<spec::Model> importT5(ImportContext &context);
std::optional<spec::Model> importViT(ImportContext &context);
std::optional<spec::Model> importWhisper(ImportContext &context);

} // namespace attune::hf

#endif // ATTUNE_LIB_IMPORT_HUGGINGFACE_ARCHITECTURES_H

//===- Architecture.h - An importer of one architecture ---------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_IMPORT_HUGGINGFACE_ARCHITECTURE_H
#define ATTUNE_IMPORT_HUGGINGFACE_ARCHITECTURE_H

#include "attune/Import/HuggingFace/Config.h"

namespace attune::hf {

/// The head that a class of "architectures" puts on the network.
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

/// Adds an architecture that the folders of Hugging Face are recognised by:
/// what plugins call as they are loaded. Its strings must live on. False if the
/// model type is known already.
bool registerArchitecture(const Architecture &architecture);

} // namespace attune::hf

#endif // ATTUNE_IMPORT_HUGGINGFACE_ARCHITECTURE_H

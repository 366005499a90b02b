//===- GenerationConfig.h - How a folder wants to generate ------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_IMPORT_HUGGINGFACE_GENERATIONCONFIG_H
#define ATTUNE_LIB_IMPORT_HUGGINGFACE_GENERATIONCONFIG_H

#include "attune/Import/HuggingFace/Config.h"

namespace attune::hf {

/// Facts about the model whose settings are read.
struct GenerationSource {
  int64_t vocabulary = maxSize;
  bool encoderDecoder = false;
  bool languageModel = true; ///< others generate nothing
  int64_t context = 0;       ///< 0: unlimited
  /// What its text starts from depends on a sound: see AudioConfig.h.
  bool hears = false;
  /// Takes the factor of the guidance, if the model has several codebooks.
  spec::Codes *codes = nullptr;
};

/// Special tokens and settings of sampling, from generation_config.json where
/// it has them. Special tokens may stand in config.json, too; so may settings,
/// if there is no generation_config.json. One warning names the settings that
/// may change the text and that Attune does not have.
bool readGeneration(Config &config, const std::string &folder,
                    const GenerationSource &source,
                    spec::Generation &generation, DiagnosticEngine &diags);

/// Ids that the architecture's class takes where no file names any.
void fillGeneration(const spec::Generation &defaults, int64_t vocab,
                    spec::Generation &generation);

} // namespace attune::hf

#endif // ATTUNE_LIB_IMPORT_HUGGINGFACE_GENERATIONCONFIG_H

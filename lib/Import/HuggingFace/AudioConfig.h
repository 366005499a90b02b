//===- AudioConfig.h - How a folder's model hears ---------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_IMPORT_HUGGINGFACE_AUDIOCONFIG_H
#define ATTUNE_LIB_IMPORT_HUGGINGFACE_AUDIOCONFIG_H

#include "attune/Import/HuggingFace/Config.h"

namespace attune::hf {

/// Completes `model.audio`, if the importer set it: the features as
/// preprocessor_config.json has them, and tokens of languages, tasks and times
/// as generation_config.json has them (`forced_decoder_ids` of config.json
/// where that has none). A model of waveforms has the letters of vocab.json
/// instead, or without one hears nothing. What the model cannot take is one
/// warning, and then it hears nothing.
bool readAudio(Config &config, const std::string &folder, int64_t vocab,
               spec::Model &model, DiagnosticEngine &diags);

} // namespace attune::hf

#endif // ATTUNE_LIB_IMPORT_HUGGINGFACE_AUDIOCONFIG_H

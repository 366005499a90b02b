//===- SentenceModules.h - Dense modules of sentence-transformers *- C++ -*-==//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_IMPORT_HUGGINGFACE_SENTENCEMODULES_H
#define ATTUNE_LIB_IMPORT_HUGGINGFACE_SENTENCEMODULES_H

#include "attune/Import/HuggingFace/Architecture.h"

namespace attune::hf {

/// Whether sentence-transformers reads the folder's model without its head: the
/// first module of modules.json is a transformer, and the task in
/// sentence_bert_config.json is not to fill masks. Nothing after an error.
std::optional<bool> readsWithoutHead(const std::string &folder,
                                     DiagnosticEngine &diags);

/// Where modules.json of a folder made by sentence-transformers lists linear
/// layers behind the pooling, the model gets a stream for both, and the output
/// "sentence_embedding" [batch, width]. Without such layers nothing changes:
/// pooling and lengths are the program's business. `model` has its outputs.
/// False after an error.
bool addSentenceModules(const std::string &folder, spec::Model &model,
                        DiagnosticEngine &diags);

} // namespace attune::hf

#endif // ATTUNE_LIB_IMPORT_HUGGINGFACE_SENTENCEMODULES_H

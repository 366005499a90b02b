//===- ChatTemplates.h - The chat template of a model folder ----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_DRIVER_CHATTEMPLATES_H
#define ATTUNE_LIB_DRIVER_CHATTEMPLATES_H

#include "attune/Support/Diagnostics.h"

#include <optional>
#include <string>

namespace attune::driver {

/// Reads the chat template that stands beside a tokenizer and the names of the
/// special tokens, as a JSON object {"template", "tokens"} for the product; ""
/// if there is no template. `file`, if not empty, is taken instead of the
/// folder's. In the order of
/// transformers: chat_template.jinja, then "chat_template" of
/// tokenizer_config.json, a text or a list of named ones of which "default"
/// counts, then chat_template.json. All templates of the folder are parsed;
/// one that is wrong is reported, and nothing comes back.
std::optional<std::string> readChatTemplate(const std::string &tokenizerPath,
                                            const std::string &file,
                                            DiagnosticEngine &diags);

} // namespace attune::driver

#endif // ATTUNE_LIB_DRIVER_CHATTEMPLATES_H

//===- Gguf.h - Models in one file of llama.cpp -----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_IMPORT_GGUF_H
#define ATTUNE_IMPORT_GGUF_H

#include "attune/Import/HuggingFace.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

/// A GGUF file holds configuration, tokenizer and weights. Its keys become the
/// config.json and the tokenizer.json that they stand for, and its tensors have
/// the names that go with these: see lib/Import/GGUF/README.md.
namespace attune {

/// The model that the file stands for, or a pair: see gguf::splitPair(). Its
/// locations point into the config.json made of its keys. One that takes images
/// of any size takes those of `imageSize`.
std::optional<ImportedModel>
importGguf(const std::string &path, DiagnosticEngine &diags,
           std::optional<ImageSize> imageSize = std::nullopt);

/// The text of the preprocessor_config.json that the keys of a pair stand for;
/// special tokens of the tokenizer that its processor needs are in it, too, as
/// tokenizer_config.json has them. Empty if there is no part that sees; nothing
/// after an error.
std::optional<std::string> readGgufPreparation(const std::string &path,
                                               DiagnosticEngine &diags);

/// The text of the tokenizer.json that the file's keys stand for; empty, after
/// a warning, if it has none or one that is not supported.
std::optional<std::string> readGgufTokenizer(const std::string &path,
                                             DiagnosticEngine &diags);

/// How the vector of a text is made of those of its tokens, by the name that
/// `embed` has for it; empty if the file does not say it, nothing after an
/// error.
std::optional<std::string> readGgufPooling(const std::string &path,
                                           DiagnosticEngine &diags);

/// The chat template of the file, and the special tokens that it names.
struct GgufChat {
  std::string text; ///< of the template; empty: there is none
  /// "bos_token" and the like to their texts.
  std::vector<std::pair<std::string, std::string>> tokens;
};
std::optional<GgufChat> readGgufChat(const std::string &path,
                                     DiagnosticEngine &diags);

} // namespace attune

#endif // ATTUNE_IMPORT_GGUF_H

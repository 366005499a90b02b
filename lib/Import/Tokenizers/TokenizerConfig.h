//===- TokenizerConfig.h - Settings beside a tokenizer.json -----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_IMPORT_TOKENIZERS_TOKENIZERCONFIG_H
#define ATTUNE_LIB_IMPORT_TOKENIZERS_TOKENIZERCONFIG_H

#include "attune/Runtime/Error.h"
#include "attune/Runtime/Json.h"
#include "attune/Runtime/Tokenizer.h"

#include <string>
#include <string_view>

namespace attune {

/// Changes the text of a sound tokenizer.json as tokenizer_config.json says.
/// `known`: what was made of it before; null: nothing was.
void applyTokenizerConfig(const runtime::JsonValue &config, std::string &json,
                          const runtime::Tokenizer *known);

/// Bytes as the characters that byte-level tokenizers write them as.
std::string spellBytes(std::string_view bytes);

/// Whether the text is RWKV's World vocabulary: on each line an id, a token as
/// Python writes it, and how many bytes it has.
bool looksLikeWorld(std::string_view text);
/// Turns it into a tokenizer.json, which at each place of a text takes the
/// longest token that fits.
bool convertWorld(std::string_view text, std::string &json,
                  runtime::Error &error);

/// Whether the text is tiktoken's: a token in base64 and its rank on each line.
bool looksLikeRanks(std::string_view text);
/// Turns it into a tokenizer.json. The file has no pattern: up to 190,000
/// tokens have Llama 3's, more have that of o200k.
bool convertRanks(std::string_view text, std::string &json,
                  runtime::Error &error);

} // namespace attune

#endif // ATTUNE_LIB_IMPORT_TOKENIZERS_TOKENIZERCONFIG_H

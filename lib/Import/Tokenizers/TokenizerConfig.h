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

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace attune {

/// Changes the text of a sound tokenizer.json as tokenizer_config.json says.
/// `known`: what was made of it before; null: nothing was.
void applyTokenizerConfig(const runtime::JsonValue &config, std::string &json,
                          const runtime::Tokenizer *known);

/// Bytes as the characters that byte-level tokenizers write them as.
std::string spellBytes(std::string_view bytes);

/// Turns a vocab.txt, a token a line, into a tokenizer.json: BERT's, MPNet's or
/// ESM's.
bool convertVocabText(std::string_view text, std::string &json,
                      runtime::Error &error);

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
/// tokens have Llama 3's, more have that of o200k. `isQwen`: the first Qwen's,
/// whose class has a pattern and special tokens.
bool convertRanks(std::string_view text, bool isQwen, std::string &json,
                  runtime::Error &error);
/// Appends the rest of a tokenizer.json behind its added tokens: what cuts
/// texts, and byte-level BPE of these ranks, in their order, and tokens. Ids
/// count from `firstId`.
bool appendRanked(const std::vector<std::pair<uint32_t, std::string>> &tokens,
                  uint32_t firstId, std::string_view pattern, std::string &json,
                  runtime::Error &error);
bool decodeBase64(std::string_view text, std::string &bytes);

/// Whether a file of this name is Mistral's tekken.json.
bool looksLikeTekken(std::string_view name);
/// Turns it into a tokenizer.json; `where` is the byte of what is wrong.
bool convertTekken(std::string_view text, std::string &json,
                   runtime::Error &error, size_t &where);

} // namespace attune

#endif // ATTUNE_LIB_IMPORT_TOKENIZERS_TOKENIZERCONFIG_H

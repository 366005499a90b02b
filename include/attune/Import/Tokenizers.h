//===- Tokenizers.h - Tokenizer files of every kind -------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A product carries one format, tokenizer.json. Others become that here:
//
//   tokenizer.model, spiece.model, ...   SentencePiece (BPE and Unigram)
//   vocab.json and merges.txt            byte-level BPE, as GPT-2 has it
//   vocab.txt                            WordPiece, as BERT has it, or letters
//   *.tiktoken                           byte-level BPE of ranks
//   tekken.json                          the same, as Mistral has it
//   rwkv_vocab*.txt                      RWKV's World: longest match of bytes
//   *.gguf                               what its keys say
//
// A tokenizer_config.json beside them changes what the tokenizer does, as it
// does for Hugging Face's fast tokenizers: `add_bos_token` and `add_eos_token`
// (of Llama's and Gemma's classes), `add_prefix_space`, `do_lower_case`,
// `strip_accents`, `tokenize_chinese_chars`, and further added tokens.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_IMPORT_TOKENIZERS_H
#define ATTUNE_IMPORT_TOKENIZERS_H

#include "attune/Runtime/Tokenizer.h"
#include "attune/Support/Diagnostics.h"

#include <memory>
#include <optional>
#include <string>

namespace attune {

/// The tokenizer file of a folder, or of the folder that a file lies in; empty
/// if there is none.
std::string findTokenizerFile(const std::string &path);

/// The text of a tokenizer.json, and what was made of it.
struct TokenizerFile {
  std::string json;
  std::unique_ptr<runtime::Tokenizer> tokenizer;
};

/// What stands for the file at `path`. A file that cannot be read at all, or is
/// damaged, is an error with its place. One that asks for what is not supported
/// is a warning, and there is no tokenizer then.
std::optional<TokenizerFile> readTokenizer(const std::string &path,
                                           DiagnosticEngine &diags);

} // namespace attune

#endif // ATTUNE_IMPORT_TOKENIZERS_H

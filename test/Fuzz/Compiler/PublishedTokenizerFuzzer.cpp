//===- PublishedTokenizerFuzzer.cpp - Tokenizers in older files -----------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The input is a file's name, a line end, and the file: tokenizer.model of
// SentencePiece, tiktoken's ranks, vocab.txt, vocab.json with, behind a zero
// byte, the merges.txt beside it.
//
//===----------------------------------------------------------------------===//

#include "Collector.h"

#include "attune/Import/Tokenizers.h"
#include "attune/Runtime/Tokenizer.h"

using namespace attune;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view text = fuzzing::asText(data, size);
  std::string_view name = fuzzing::takePart(text, '\n');
  const char *file = name == "vocab.txt"        ? "vocab.txt"
                     : name == "vocab.json"     ? "vocab.json"
                     : name == "x.tiktoken"     ? "x.tiktoken"
                     : name == "tekken.json"    ? "tekken.json"
                     : name == "tokenizer.json" ? "tokenizer.json"
                                                : "tokenizer.model";
  fuzzing::InputFolder folder;
  std::string path;
  if (name == "vocab.json") {
    path = folder.write(file, fuzzing::takePart(text, '\0'));
    folder.write("merges.txt", text);
  } else {
    path = folder.write(file, text);
  }
  fuzzing::Collector diags;
  std::optional<TokenizerFile> read = readTokenizer(path, diags);
  FUZZ_REQUIRE(read || diags.getNumErrors() > 0);
  if (!read || !read->tokenizer)
    return 0;
  // What is written for the runtime is what it reads.
  runtime::Error error;
  std::string table;
  FUZZ_REQUIRE(read->tokenizer->pack(read->json, table, error));
  FUZZ_REQUIRE(runtime::Tokenizer::open(table, error));
  return 0;
}

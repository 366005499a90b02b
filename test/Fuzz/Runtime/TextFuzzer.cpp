//===- TextFuzzer.cpp - Texts for tokenizers ------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The input is a text, which tokenizers of every kind cut into ids.
//
//===----------------------------------------------------------------------===//

#include "../Fuzzing.h"

#include "attune/Runtime/Tokenizer.h"

#include <dirent.h>

using namespace attune::runtime;

/// The storyteller's, which is byte-level, and all in a folder.
static std::vector<std::unique_ptr<Tokenizer>> makeTokenizers() {
  std::vector<std::unique_ptr<Tokenizer>> all;
  auto add = [&](const std::string &path) {
    Error error;
    all.push_back(Tokenizer::create(attune::fuzzing::readFile(path), error));
    FUZZ_REQUIRE(all.back());
  };
  add(ATTUNE_FUZZ_SOURCES "/examples/storyteller/tokenizer.json");
  const char *folder = std::getenv("ATTUNE_FUZZ_TOKENIZERS");
  if (DIR *listing = folder ? opendir(folder) : nullptr) {
    while (const dirent *item = readdir(listing))
      if (item->d_name[0] != '.')
        add(std::string(folder) + "/" + item->d_name);
    closedir(listing);
  }
  return all;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const std::vector<std::unique_ptr<Tokenizer>> tokenizers =
      makeTokenizers();
  std::string_view text = attune::fuzzing::asText(data, size);
  for (const std::unique_ptr<Tokenizer> &tokenizer : tokenizers) {
    Error error;
    Encoding row;
    EncodeOptions options;
    options.matchSpecial = size % 2;
    FUZZ_REQUIRE(tokenizer->encode(text, nullptr, options, row, error));
    for (int64_t id : row.ids)
      FUZZ_REQUIRE(id >= 0 && id < tokenizer->size());
    // Ids that come one by one are the text that they are together, but for
    // what is not UTF-8.
    StreamDecoder stream(*tokenizer, true);
    std::string pieces;
    for (int64_t id : row.ids)
      pieces += stream.push(id);
    pieces += stream.finish();
    std::string whole = tokenizer->decode(row.ids, true);
    bool isPlain = true;
    for (unsigned char byte : whole)
      isPlain &= byte < 0x80;
    FUZZ_REQUIRE(!isPlain || pieces == whole);
  }
  // Bytes of a byte-level tokenizer come back whole.
  Error error;
  std::vector<int64_t> ids;
  FUZZ_REQUIRE(tokenizers[0]->encode(text, ids, error, false));
  FUZZ_REQUIRE(tokenizers[0]->decode(ids, false) == text);
  return 0;
}

//===- TokenizerFileFuzzer.cpp - Files of tokenizers ----------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Fuzzing.h"

#include "attune/Runtime/Tokenizer.h"

using namespace attune::runtime;

/// What a file can be made into cuts any text into ids. (Tokens around a text
/// have the ids that the file gives them there, known or not.)
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Error error;
  size_t where = 0;
  std::unique_ptr<Tokenizer> tokenizer =
      Tokenizer::create(attune::fuzzing::asText(data, size), error, &where);
  if (!tokenizer) {
    FUZZ_REQUIRE(!error.message.empty() && error.code != ExitSuccess);
    FUZZ_REQUIRE(where <= size);
    return 0;
  }
  EncodeOptions fitted;
  fitted.fit = true;
  const std::string_view second = "Second, 2nd.";
  for (std::string_view text :
       {std::string_view("Hello  World 1234, it's\n<s>\tcafé 日本語 \xf0\x9f"),
        std::string_view(), std::string_view("a")}) {
    std::vector<int64_t> ids;
    if (tokenizer->encode(text, ids, error)) {
      for (int64_t id : ids)
        FUZZ_REQUIRE(id >= 0);
      StreamDecoder stream(*tokenizer, true);
      for (int64_t id : ids)
        stream.push(id);
      stream.finish();
      tokenizer->decode(ids, false);
    }
    Encoding row;
    if (tokenizer->encode(text, &second, fitted, row, error))
      FUZZ_REQUIRE(row.ids.size() == row.mask.size() &&
                   row.ids.size() == row.typeIds.size());
  }
  tokenizer->describe();
  return 0;
}

//===- RegexFuzzer.cpp - Patterns of tokenizers ---------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The input is a pattern, a line end, and a text to search.
//
//===----------------------------------------------------------------------===//

#include "../Fuzzing.h"

#include "Text/Regex.h"

using namespace attune::runtime;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view text = attune::fuzzing::asText(data, size);
  std::string_view pattern = attune::fuzzing::takePart(text, '\n');
  static const Unicode unicode;
  Regex regex;
  RegexProblem problem;
  if (!regex.compile(pattern, unicode, problem)) {
    FUZZ_REQUIRE(!problem.message.empty());
    return 0;
  }
  std::vector<Regex::Match> matches;
  size_t steps = 200000, last = 0;
  if (!regex.findAll(text, matches, steps))
    return 0;
  for (const Regex::Match &match : matches) {
    FUZZ_REQUIRE(match.begin <= match.end && match.end <= text.size());
    FUZZ_REQUIRE(match.begin >= last);
    last = match.end;
  }
  return 0;
}

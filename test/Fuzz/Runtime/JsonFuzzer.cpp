//===- JsonFuzzer.cpp - The runtime's reader of JSON ----------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Fuzzing.h"

#include "attune/Runtime/Json.h"

using namespace attune::runtime;

/// What is read can be written, and read again as the same.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view text = attune::fuzzing::asText(data, size);
  JsonLimits limits;
  limits.maxValues = 100000;
  JsonValue value;
  std::string problem;
  if (!parseJson(text, value, problem, limits)) {
    FUZZ_REQUIRE(!problem.empty());
    return 0;
  }
  std::string once, twice;
  appendJson(once, value);
  JsonValue again;
  FUZZ_REQUIRE(parseJson(once, again, problem));
  appendJson(twice, again);
  FUZZ_REQUIRE(once == twice);

  // The reader that goes value by value sees the same members.
  if (!value.isObject())
    return 0;
  JsonReader reader(text, limits);
  std::string key;
  size_t count = 0;
  FUZZ_REQUIRE(reader.enterObject());
  while (reader.nextMember(key)) {
    FUZZ_REQUIRE(count < value.keys.size() && key == value.keys[count]);
    std::string_view skipped;
    FUZZ_REQUIRE(reader.skip(skipped));
    ++count;
  }
  FUZZ_REQUIRE(!reader.failed() && count == value.keys.size());
  return 0;
}

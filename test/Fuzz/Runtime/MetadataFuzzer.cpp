//===- MetadataFuzzer.cpp - What a product says of itself -----------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Fuzzing.h"

#include "attune/Runtime/Cli.h"
#include "attune/Runtime/Metadata.h"

using namespace attune::runtime;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ModelInfo info;
  Error error;
  if (!parseModelInfo(attune::fuzzing::asText(data, size), 2, info, error)) {
    FUZZ_REQUIRE(!error.message.empty());
    return 0;
  }
  for (const EntryInfo &entry : info.entries) {
    FUZZ_REQUIRE(entry.index < 2);
    for (const ArgInfo &arg : entry.args)
      arg.formatShape();
    entry.findIds();
    entry.countablePositions(info.context);
  }
  formatInspection(info, false);
  std::string problem, text = formatInspection(info, true);
  JsonValue value;
  FUZZ_REQUIRE(parseJson(text, value, problem));
  std::string taken;
  GenerateOptions options;
  options.takeSettings(info, taken, error);
  return 0;
}

//===- WeightsBlobFuzzer.cpp - Weights behind a program -------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The input is an executable or library, whose last bytes or section say where
// its weights lie.
//
//===----------------------------------------------------------------------===//

#include "../Fuzzing.h"

#include "Weights.h"
#include "attune/Runtime/WeightSection.h"

#include <fcntl.h>

using namespace attune::runtime;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static attune::fuzzing::InputFolder folder;
  std::string path = folder.write("model", attune::fuzzing::asText(data, size));
  WeightsBlob blob;
  bool absent = false;
  Error error;
  if (blob.map(path, absent, error)) {
    FUZZ_REQUIRE(absent || blob.size() <= size);
    volatile uint8_t sum = 0;
    for (uint64_t i = 0; !absent && i < blob.size(); ++i)
      sum = sum + blob.data()[i];
  } else {
    FUZZ_REQUIRE(absent || !error.message.empty());
  }

  int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  FUZZ_REQUIRE(file >= 0);
  WeightSection section;
  if (findWeightSection(file, size, section)) {
    FUZZ_REQUIRE(section.offset <= size &&
                 section.size <= size - section.offset);
    coverWithWeightSection(file, size, size / 2, size - size / 2);
  }
  close(file);
  return 0;
}

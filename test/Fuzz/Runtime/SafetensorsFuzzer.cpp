//===- SafetensorsFuzzer.cpp - Files of weights ---------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Fuzzing.h"

#include "attune/Runtime/Safetensors.h"

using namespace attune::runtime;

/// Every tensor of a file that opens lies in it and has the size of its shape.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static attune::fuzzing::InputFolder folder;
  std::string path =
      folder.write("x.safetensors", attune::fuzzing::asText(data, size));
  SafetensorsFile file;
  std::string problem;
  if (!file.open(path, problem)) {
    FUZZ_REQUIRE(problem.compare(0, path.size(), path) == 0);
    return 0;
  }
  for (const TensorInfo &tensor : file.tensors()) {
    FUZZ_REQUIRE(tensor.offset <= size && tensor.bytes <= size - tensor.offset);
    for (int64_t extent : tensor.shape)
      FUZZ_REQUIRE(extent >= 0);
    FUZZ_REQUIRE(file.find(tensor.name) == &tensor);
    volatile uint8_t sum = 0;
    for (uint64_t i = 0; i < tensor.bytes; ++i)
      sum = sum + tensor.data[i];
  }
  return 0;
}

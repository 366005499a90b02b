//===- CheckpointFuzzer.cpp - Checkpoints of several files ----------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The input is an index, a NUL byte, and the file that it may speak of.
//
//===----------------------------------------------------------------------===//

#include "Collector.h"

#include "attune/Weights/Checkpoint.h"

using namespace attune;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static fuzzing::InputFolder folder;
  std::string_view file = fuzzing::asText(data, size);
  std::string_view index = fuzzing::takePart(file, '\0');
  folder.write("a.safetensors", file);
  std::string path = folder.write("model.safetensors.index.json", index);
  fuzzing::Collector diags;
  std::optional<Checkpoint> checkpoint = Checkpoint::open(path, diags);
  FUZZ_REQUIRE(checkpoint || diags.getNumErrors() > 0);
  return 0;
}

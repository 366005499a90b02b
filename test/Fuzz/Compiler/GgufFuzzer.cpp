//===- GgufFuzzer.cpp - GGUF files ----------------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Collector.h"

#include "attune/Import/Gguf.h"
#include "attune/Weights/Checkpoint.h"

using namespace attune;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static fuzzing::InputFolder folder;
  std::string path = folder.write("x.gguf", fuzzing::asText(data, size));
  fuzzing::Collector diags;
  std::optional<ImportedModel> imported = importGguf(path, diags);
  FUZZ_REQUIRE(imported || diags.getNumErrors() > 0);
  fuzzing::Collector others;
  readGgufTokenizer(path, others);
  readGgufChat(path, others);
  if (std::optional<Checkpoint> checkpoint = Checkpoint::open(path, others))
    for (const auto &[name, tensor] : checkpoint->tensors())
      FUZZ_REQUIRE(!name.empty() && tensor);
  return 0;
}

//===- ConfigFuzzer.cpp - config.json of published models -----------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Collector.h"

#include "attune/Import/HuggingFace.h"

using namespace attune;

/// A configuration that is understood gives a description that is one.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static fuzzing::InputFolder folder;
  std::string path = folder.write("config.json", fuzzing::asText(data, size));
  fuzzing::Collector diags;
  std::optional<ImportedModel> imported = importHuggingFace(path, diags);
  FUZZ_REQUIRE(imported || diags.getNumErrors() > 0);
  if (!imported)
    return 0;
  std::string text = spec::print(imported->model);
  std::optional<spec::Model> again =
      spec::parse(fuzzing::makeFile(text), diags);
  FUZZ_REQUIRE(again);
  return 0;
}

//===- DescriptionFuzzer.cpp - Descriptions of models ---------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Collector.h"

#include "attune/Spec/Spec.h"

using namespace attune;

/// A description that is accepted can be printed, and means the same then.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzzing::Collector diags;
  std::optional<spec::Model> model =
      spec::parse(fuzzing::makeFile(fuzzing::asText(data, size)), diags);
  FUZZ_REQUIRE(model.has_value() == (diags.getNumErrors() == 0));
  if (!model)
    return 0;
  std::string once = spec::print(*model);
  std::optional<spec::Model> again =
      spec::parse(fuzzing::makeFile(once), diags);
  FUZZ_REQUIRE(again);
  FUZZ_REQUIRE(spec::print(*again) == once);
  return 0;
}

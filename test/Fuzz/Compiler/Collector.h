//===- Collector.h - Diagnostics of fuzz targets ----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_TEST_FUZZ_COMPILER_COLLECTOR_H
#define ATTUNE_TEST_FUZZ_COMPILER_COLLECTOR_H

#include "../Fuzzing.h"

#include "attune/Support/Diagnostics.h"

namespace attune::fuzzing {

/// Counts what is reported, and writes it to nowhere.
class Collector : public DiagnosticEngine {
public:
  void report(const Diagnostic &diagnostic) override {
    FUZZ_REQUIRE(!diagnostic.message.empty());
    FUZZ_REQUIRE(!formatDiagnostic(diagnostic).empty());
    numErrors += diagnostic.severity == Severity::Error;
  }
};

inline std::shared_ptr<const SourceFile> makeFile(std::string_view text) {
  auto file = std::make_shared<SourceFile>();
  file->path = "model.json";
  file->text = text;
  return file;
}

} // namespace attune::fuzzing

#endif // ATTUNE_TEST_FUZZ_COMPILER_COLLECTOR_H

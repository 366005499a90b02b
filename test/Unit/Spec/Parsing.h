//===- Parsing.h - Descriptions and the errors they give ------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_TEST_UNIT_SPEC_PARSING_H
#define ATTUNE_TEST_UNIT_SPEC_PARSING_H

#include "attune/Spec/Spec.h"

#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

namespace attune::test {

/// Keeps what it is told instead of printing it.
class Collector : public DiagnosticEngine {
public:
  void report(const Diagnostic &diagnostic) override {
    if (diagnostic.severity == Severity::Error)
      ++numErrors;
    all.push_back(diagnostic);
  }
  std::vector<Diagnostic> all;
};

struct Parsed {
  std::optional<spec::Model> model;
  std::vector<Diagnostic> diagnostics;

  /// Errors and notes, one per line: "2:5 error: /dims/D: ...".
  std::string text() const {
    std::ostringstream out;
    for (const Diagnostic &d : diagnostics)
      out << d.location.line << ":" << d.location.column
          << (d.severity == Severity::Note ? " note: " : " error: ")
          << d.message << "\n";
    return out.str();
  }
};

inline Parsed parseText(std::string text) {
  auto file = std::make_shared<SourceFile>();
  file->path = "model.json";
  file->text = std::move(text);
  Collector diags;
  Parsed parsed;
  parsed.model = spec::parse(file, diags);
  parsed.diagnostics = std::move(diags.all);
  EXPECT_EQ(parsed.model.has_value(), diags.getNumErrors() == 0);
  return parsed;
}

inline std::string readText(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// All the description files of examples/.
inline std::vector<std::string> exampleFiles() {
  std::vector<std::string> files;
  for (const char *name :
       {"attention-100k/model", "attention-100k/one-head",
        "attention-512/model", "block-512/model", "block-512/six",
        "gopher/model", "gpt2-small/model", "gpt2-xl/model", "gpt3/model",
        "megatron-lm/model", "transformer-original/model", "turing-nlg/model"})
    files.push_back(std::string(ATTUNE_EXAMPLES_DIR) + "/" + name + ".json");
  return files;
}

/// A description that has every key there is, most with odd values.
inline std::string everyKey() {
  return readText(ATTUNE_TEST_DIR "/Unit/Spec/every-key.json");
}

} // namespace attune::test

#endif // ATTUNE_TEST_UNIT_SPEC_PARSING_H

//===- DriverFuzzer.cpp - Command lines of the compiler ---------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The input is the arguments of `attune`, one a line. Nothing is read or
// written: this is what the driver does before it looks at any file.
//
//===----------------------------------------------------------------------===//

#include "../Fuzzing.h"

#include "Options/Options.h"

#include <fcntl.h>

using namespace attune;
using namespace attune::driver;

namespace {
/// Counts what the driver would tell the user.
class Messages : public DiagnosticEngine {
public:
  void report(const Diagnostic &diagnostic) override {
    FUZZ_REQUIRE(!diagnostic.message.empty());
    if (diagnostic.severity == Severity::Error)
      ++numErrors;
  }
};
} // namespace

extern "C" int LLVMFuzzerInitialize(int *, char ***) {
  // Help goes to stdout, libFuzzer's own messages to stderr.
  int nowhere = open("/dev/null", O_WRONLY);
  FUZZ_REQUIRE(nowhere >= 0 && dup2(nowhere, STDOUT_FILENO) >= 0);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view text = fuzzing::asText(data, size);
  std::vector<std::string> words;
  while (!text.empty() && words.size() < 64)
    words.emplace_back(fuzzing::takePart(text, '\n'));
  if (words.empty())
    return 0; // without arguments the help goes to stderr
  // NUL bytes end arguments, as they do on a real command line.
  std::vector<const char *> arguments;
  for (const std::string &word : words)
    arguments.push_back(word.c_str());
  Messages messages;
  std::variant<Options, ExitCode> parsed = parseOptions(arguments, messages);
  const auto *code = std::get_if<ExitCode>(&parsed);
  if (code && *code != ExitCode::Success)
    FUZZ_REQUIRE(*code == ExitCode::BadCommandLine &&
                 messages.getNumErrors() == 1);
  else
    FUZZ_REQUIRE(messages.getNumErrors() == 0);
  FUZZ_REQUIRE(code || !std::get<Options>(parsed).model.empty());
  return 0;
}

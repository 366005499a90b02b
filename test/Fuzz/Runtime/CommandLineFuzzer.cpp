//===- CommandLineFuzzer.cpp - Command lines of products ------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The input is a verb and its arguments, one a line.
//
//===----------------------------------------------------------------------===//

#include "../Fuzzing.h"

#include "attune/Runtime/Chat.h"
#include "attune/Runtime/Serve.h"

using namespace attune::runtime;

template <typename Options>
static void parse(const std::vector<const char *> &arguments) {
  CommandLine line;
  Error error;
  if (!line.parse(static_cast<int>(arguments.size()), arguments.data(),
                  Options::specs(), error)) {
    FUZZ_REQUIRE(error.code == ExitBadCommandLine && !error.message.empty());
    return;
  }
  Options options;
  for (const ParsedOption &option : line.options) {
    bool mine = true;
    if (!options.set(option, mine, error)) {
      FUZZ_REQUIRE(error.code != ExitSuccess && !error.message.empty());
      return;
    }
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view text = attune::fuzzing::asText(data, size);
  std::vector<std::string> words;
  while (!text.empty() && words.size() < 64)
    words.emplace_back(attune::fuzzing::takePart(text, '\n'));
  if (words.empty())
    return 0;
  // NUL bytes end arguments, as they do on a real command line.
  std::vector<const char *> arguments;
  for (size_t i = 1; i < words.size(); ++i)
    arguments.push_back(words[i].c_str());
  std::string_view verb = words[0];
  if (verb == "run")
    parse<RunOptions>(arguments);
  else if (verb == "generate")
    parse<GenerateOptions>(arguments);
  else if (verb == "chat")
    parse<ChatOptions>(arguments);
  else if (verb == "serve")
    parse<ServeOptions>(arguments);
  else if (verb == "embed")
    parse<EmbedOptions>(arguments);
  else if (verb == "tokenize")
    parse<TokenizeOptions>(arguments);
  else
    parse<TeamOptions>(arguments);
  return 0;
}

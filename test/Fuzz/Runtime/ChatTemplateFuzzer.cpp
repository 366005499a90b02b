//===- ChatTemplateFuzzer.cpp - Chat templates ----------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The input is a template. Templates come with models and are not trusted.
//
//===----------------------------------------------------------------------===//

#include "../Fuzzing.h"

#include "attune/Runtime/ChatTemplate.h"

using namespace attune::runtime;

static JsonValue makeVariables() {
  JsonValue variables;
  std::string problem;
  FUZZ_REQUIRE(parseJson(
      R"({"messages": [{"role": "system", "content": "Be kind."},
            {"role": "user", "content": "Hé <b>you</b>"},
            {"role": "assistant", "content": null, "tool_calls": [{"id": "1",
             "type": "function", "function": {"name": "f", "arguments":
             {"x": 1.5, "y": [true, null]}}}]}],
          "tools": [{"type": "function", "function": {"name": "f",
            "parameters": {"type": "object"}}}],
          "add_generation_prompt": true, "bos_token": "<s>", "n": -3,
          "eos_token": "</s>", "x": {"a": [1, 2, 3], "b": "text"}})",
      variables, problem));
  return variables;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const JsonValue variables = makeVariables();
  std::string_view source = attune::fuzzing::asText(data, size);
  TemplateProblem problem;
  std::unique_ptr<ChatTemplate> chat = ChatTemplate::parse(source, problem);
  if (!chat) {
    FUZZ_REQUIRE(!problem.message.empty());
    FUZZ_REQUIRE(!ChatTemplate::describe(source, problem).empty());
    return 0;
  }
  TemplateLimits limits;
  limits.steps = 20000;
  limits.memory = 8 << 20;
  limits.output = 1 << 20;
  std::string once, twice;
  if (!chat->render(variables, once, problem, limits)) {
    FUZZ_REQUIRE(!problem.message.empty());
    FUZZ_REQUIRE(!chat->describe(problem).empty());
    return 0;
  }
  // Dates aside, a template says the same each time.
  if (source.find("now") == std::string_view::npos) {
    FUZZ_REQUIRE(chat->render(variables, twice, problem, limits));
    FUZZ_REQUIRE(once == twice);
  }
  return 0;
}

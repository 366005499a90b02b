//===- AnswerFormat.cpp - How a model marks its answers -------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AnswerFormat.h"

#include "ToolCalls.h"

namespace attune::runtime {

/// Marks around reasoning.
static constexpr std::pair<std::string_view, std::string_view> reasoning[] = {
    {"<think>", "</think>"}, // DeepSeek R1, Qwen 3, GLM 4.5, SmolLM 3, Kimi K2
    {"[THINK]", "[/THINK]"}, // Magistral
    {"<seed:think>", "</seed:think>"},           // Seed-OSS
    {"<thought>", "</thought>"},                 // EXAONE Deep
    {"<|START_THINKING|>", "<|END_THINKING|>"}}; // Command A Reasoning
static constexpr std::string_view channels[] = {"<|start|>",     "<|channel|>",
                                                "<|constrain|>", "<|message|>",
                                                "<|end|>",       "<|call|>"};

AnswerFormat::AnswerFormat(const ChatPrompt &chat, const Tokenizer &tokenizer) {
  auto show = [&](std::string_view mark) {
    int64_t id = tokenizer.tokenToId(mark);
    if (id >= 0 && tokenizer.isSpecial(id))
      shown.push_back(id);
  };
  hasChannels = chat.contains("<|channel|>") && chat.contains("<|message|>");
  if (hasChannels) {
    for (std::string_view mark : channels)
      show(mark);
    return;
  }
  for (auto [open, close] : reasoning)
    if (opening.empty() && chat.contains(close)) {
      opening = open;
      closing = close;
      show(open);
      show(close);
    }
  if (!chat.takesTools()) {
    show(plainCalls);
    show("</tool_call>");
  }
  for (const CallSyntax &syntax : callSyntaxes())
    if (chat.contains(syntax.opening)) {
      calls = otherCalls = syntax.opening;
      show(syntax.opening);
      for (std::string_view mark : syntax.inner)
        show(mark);
      break;
    }
}

bool AnswerFormat::opensReasoning(const Tokenizer &tokenizer,
                                  const std::vector<int64_t> &prompt) const {
  if (opening.empty())
    return false;
  // A mark and white space are few tokens.
  constexpr size_t most = 32;
  std::vector<int64_t> last(
      prompt.size() > most ? prompt.end() - ptrdiff_t(most) : prompt.begin(),
      prompt.end());
  std::string text = tokenizer.decode(last, /*skipSpecial=*/false);
  text.erase(text.find_last_not_of(" \t\r\n") + 1);
  return text.size() >= opening.size() &&
         std::string_view(text).substr(text.size() - opening.size()) == opening;
}

} // namespace attune::runtime

//===- AnswerFormat.h - How a model marks its answers -----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_CHAT_ANSWERFORMAT_H
#define ATTUNE_LIB_RUNTIME_CHAT_ANSWERFORMAT_H

#include "attune/Runtime/Chat.h"

#include <string_view>
#include <vector>

namespace attune::runtime {

/// How a model marks what it writes: reasoning, calls of tools, the answer. Its
/// chat template shows the marks, since it lays out earlier answers with them
/// or tells the model of them.
struct AnswerFormat {
  AnswerFormat() = default;
  AnswerFormat(const ChatPrompt &chat, const Tokenizer &tokenizer);

  /// Around reasoning, which comes before the rest; empty: it is not marked.
  std::string_view opening, closing;
  /// What calls of tools begin with. Others are those that a prompt asked for
  /// whose template knows no tools (PlainTools.h).
  std::string_view calls = plainCalls, otherCalls = plainCalls;
  static constexpr std::string_view plainCalls = "<tool_call>";
  /// The answer is one or more messages of channels, as gpt-oss writes them
  /// (OpenAI's "harmony" format); then there are no other marks.
  bool hasChannels = false;
  /// Special tokens that are such marks, so that a text without special tokens
  /// would lack them.
  std::vector<int64_t> shown;

  bool marksReasoning() const { return hasChannels || !opening.empty(); }
  /// Whether what follows the prompt is reasoning, because the template has
  /// opened it.
  bool opensReasoning(const Tokenizer &tokenizer,
                      const std::vector<int64_t> &prompt) const;
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_CHAT_ANSWERFORMAT_H

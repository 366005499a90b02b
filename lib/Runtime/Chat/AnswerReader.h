//===- AnswerReader.h - The parts of an answer ------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_CHAT_ANSWERREADER_H
#define ATTUNE_LIB_RUNTIME_CHAT_ANSWERREADER_H

#include "AnswerFormat.h"
#include "ToolCalls.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace attune::runtime {

/// Text of an answer.
struct AnswerText {
  std::string reasoning; ///< what the model wrote to think
  std::string content;   ///< what it says
};

/// Takes an answer apart that comes in pieces. What is no part of it (marks,
/// white space between reasoning and content) is left out.
class AnswerReader {
public:
  virtual ~AnswerReader() = default;
  /// `startsInReasoning`: the prompt has opened it. `tools` that may be called
  /// must outlive the reader; null: a call is content like other text.
  static std::unique_ptr<AnswerReader> create(const AnswerFormat &format,
                                              bool startsInReasoning,
                                              const JsonValue *tools);

  /// Takes the next piece of text; what is certain now.
  virtual AnswerText push(std::string_view piece) = 0;
  /// What is left at the end, and the calls of tools.
  virtual AnswerText finish(std::vector<ToolCall> &calls) = 0;
  /// Whether the last piece was reasoning.
  virtual bool isReasoning() const = 0;
  /// Whether it was content, as far as is known: it may become a call.
  virtual bool isContent() const = 0;
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_CHAT_ANSWERREADER_H

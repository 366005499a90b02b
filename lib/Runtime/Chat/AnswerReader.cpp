//===- AnswerReader.cpp - The parts of an answer --------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AnswerReader.h"

#include <algorithm>

namespace attune::runtime {

static constexpr std::string_view whiteSpace = " \t\r\n";

static void dropLeading(std::string &text) {
  text.erase(0, std::min(text.find_first_not_of(whiteSpace), text.size()));
}

/// Takes the first `count` bytes of a text off.
static std::string takeFront(std::string &text, size_t count) {
  std::string front = text.substr(0, count);
  text.erase(0, count);
  return front;
}

//===----------------------------------------------------------------------===//
// Marks around reasoning, then content
//===----------------------------------------------------------------------===//

namespace {
class MarkedAnswer final : public AnswerReader {
public:
  MarkedAnswer(const AnswerFormat &format, bool startsInReasoning,
               const JsonValue *tools)
      : opening(format.opening), closing(format.closing) {
    state = startsInReasoning  ? State::Reasoning
            : !opening.empty() ? State::Start
                               : State::Content;
    if (tools)
      finder.reset(
          new ToolCallFinder({format.calls, format.otherCalls}, tools));
  }

  AnswerText push(std::string_view piece) override;
  AnswerText finish(std::vector<ToolCall> &calls) override;
  bool isReasoning() const override { return state == State::Reasoning; }
  bool isContent() const override {
    return state == State::Start || state == State::Content;
  }

private:
  enum class State { Start, Reasoning, Between, Content };
  void begin();
  void reason(std::string &out);

  std::string_view opening, closing;
  State state;
  bool hasReasoned = false; ///< something but white space came
  std::string held;
  std::unique_ptr<ToolCallFinder> finder; ///< null: calls are content
};
} // namespace

/// Reasoning is there if it comes first.
void MarkedAnswer::begin() {
  size_t first = std::min(held.find_first_not_of(whiteSpace), held.size());
  std::string_view text = std::string_view(held).substr(first);
  if (text.size() < opening.size() && opening.substr(0, text.size()) == text)
    return; // it may still become the mark
  bool isMark = text.substr(0, opening.size()) == opening;
  if (isMark)
    held.erase(0, first + opening.size());
  state = isMark ? State::Reasoning : State::Content;
}

void MarkedAnswer::reason(std::string &out) {
  if (!hasReasoned)
    dropLeading(held);
  hasReasoned = hasReasoned || !held.empty();
  size_t mark = held.find(closing);
  bool ends = mark != std::string::npos;
  size_t end = ends ? mark : held.size() - countBegun(held, closing);
  // White space before the mark is no part of it.
  while (end > 0 && whiteSpace.find(held[end - 1]) != std::string_view::npos)
    --end;
  out += takeFront(held, end);
  if (!ends)
    return;
  held.erase(0, held.find(closing) + closing.size());
  state = State::Between;
}

AnswerText MarkedAnswer::push(std::string_view piece) {
  AnswerText out;
  held += piece;
  if (state == State::Start)
    begin();
  if (state == State::Reasoning)
    reason(out.reasoning);
  if (state == State::Between) {
    dropLeading(held);
    if (!held.empty())
      state = State::Content;
  }
  if (state == State::Content) {
    out.content = finder ? finder->push(held) : held;
    held.clear();
  }
  return out;
}

AnswerText MarkedAnswer::finish(std::vector<ToolCall> &calls) {
  AnswerText out;
  calls.clear();
  if (state == State::Reasoning) {
    held.erase(held.find_last_not_of(whiteSpace) + 1);
    out.reasoning = std::move(held);
  } else if (state == State::Start) {
    out.content = std::move(held);
  } else if (finder) {
    out.content = finder->finish(calls);
  }
  held.clear();
  return out;
}

//===----------------------------------------------------------------------===//
// Messages of channels
//===----------------------------------------------------------------------===//

namespace {
/// An answer of gpt-oss: messages
///
///   <|channel|>CHANNEL<|message|>TEXT<|end|><|start|>assistant<|channel|>...
///
/// in which the channel "analysis" is reasoning. "to=functions.NAME" before or
/// behind the channel makes it a call, whose text are the arguments. What
/// begins otherwise is content, as a text of a form that was asked for is.
class ChannelAnswer final : public AnswerReader {
public:
  explicit ChannelAnswer(const JsonValue *tools) : hasTools(tools != nullptr) {}

  AnswerText push(std::string_view piece) override;
  AnswerText finish(std::vector<ToolCall> &calls) override;
  bool isReasoning() const override { return part == Part::Reasoning; }
  bool isContent() const override { return speaks; }

private:
  enum class Part { Header, Reasoning, Content, Call };
  bool mayBeHeader() const;
  bool readHeader(AnswerText &out);
  bool readText(AnswerText &out);
  void endMessage(AnswerText &out);

  bool hasTools;
  Part part = Part::Header;
  std::string held;
  std::string name, arguments; ///< of a call
  std::vector<ToolCall> found;
  bool hasReasoned = false, hasSpoken = false;
  bool speaks = false; ///< the last piece was no mark of a message
};
} // namespace

static constexpr std::string_view channelMark = "<|channel|>",
                                  startMark = "<|start|>",
                                  messageMark = "<|message|>";
static constexpr std::string_view endMarks[] = {"<|end|>", "<|call|>",
                                                "<|return|>", startMark};

/// Whether the text begins as a header does, as far as it is there.
bool ChannelAnswer::mayBeHeader() const {
  for (std::string_view mark :
       {channelMark, startMark, std::string_view(" to="),
        std::string_view("to=")}) {
    size_t common = std::min(mark.size(), held.size());
    if (mark.substr(0, common) == std::string_view(held).substr(0, common))
      return true;
  }
  return false;
}

/// False: more text is needed.
bool ChannelAnswer::readHeader(AnswerText &out) {
  // A header is short.
  constexpr size_t most = 512;
  size_t end = held.find(messageMark);
  bool isWhole = end != std::string::npos;
  if (!mayBeHeader() ||
      (isWhole ? end + messageMark.size() : held.size() + 1) > most) {
    if (std::string_view(held).substr(0, startMark.size()) == startMark)
      held.erase(0, startMark.size());
    part = Part::Content;
    return true;
  }
  if (!isWhole)
    return false;
  std::string header = takeFront(held, end);
  held.erase(0, messageMark.size());
  auto wordBehind = [&](std::string_view mark) {
    size_t at = header.find(mark);
    if (at == std::string::npos)
      return std::string();
    at += mark.size();
    return header.substr(at, header.find_first_of(" <\t\n", at) - at);
  };
  name = wordBehind("to=");
  std::string_view prefix = "functions.";
  if (std::string_view(name).substr(0, prefix.size()) == prefix)
    name.erase(0, prefix.size());
  if (!name.empty() && hasTools)
    part = Part::Call;
  else if (wordBehind(channelMark) == "analysis")
    part = Part::Reasoning;
  else
    part = Part::Content;
  // Messages of a kind become lines of one text.
  if (part == Part::Reasoning && hasReasoned)
    out.reasoning += '\n';
  if (part == Part::Content && hasSpoken)
    out.content += '\n';
  return true;
}

/// False: more text is needed.
bool ChannelAnswer::readText(AnswerText &out) {
  size_t end = held.size(), length = 0, begun = 0;
  for (std::string_view mark : endMarks) {
    size_t at = held.find(mark);
    if (at < end) {
      end = at;
      length = mark == startMark ? 0 : mark.size(); // it is the next header's
    }
    begun = std::max(begun, countBegun(held, mark));
  }
  bool isOver = end < held.size();
  std::string text = takeFront(held, isOver ? end : end - begun);
  std::string &to = part == Part::Reasoning ? out.reasoning
                    : part == Part::Content ? out.content
                                            : arguments;
  to += text;
  hasReasoned |= part == Part::Reasoning && !text.empty();
  hasSpoken |= part == Part::Content && !text.empty();
  if (!isOver)
    return false;
  held.erase(0, length);
  endMessage(out);
  return true;
}

void ChannelAnswer::endMessage(AnswerText &out) {
  // A call that is none is told as it is.
  if (part == Part::Call && !addToolCall(name, arguments, found))
    out.content += arguments;
  arguments.clear();
  part = Part::Header;
}

AnswerText ChannelAnswer::push(std::string_view piece) {
  AnswerText out;
  bool spoke = part == Part::Content;
  held += piece;
  while (!held.empty() &&
         (part == Part::Header ? readHeader(out) : readText(out)))
    ;
  speaks = part == Part::Content && (spoke || !out.content.empty());
  return out;
}

AnswerText ChannelAnswer::finish(std::vector<ToolCall> &calls) {
  AnswerText out;
  // What may have been a mark is none.
  bool isText = part == Part::Header && held.find('<') == std::string::npos;
  if (part == Part::Reasoning)
    out.reasoning = std::move(held);
  else if (part == Part::Content || isText)
    out.content = std::move(held);
  else if (part == Part::Call)
    arguments += held;
  held.clear();
  endMessage(out);
  calls = std::move(found);
  return out;
}

std::unique_ptr<AnswerReader> AnswerReader::create(const AnswerFormat &format,
                                                   bool startsInReasoning,
                                                   const JsonValue *tools) {
  if (format.hasChannels)
    return std::unique_ptr<AnswerReader>(new ChannelAnswer(tools));
  return std::unique_ptr<AnswerReader>(
      new MarkedAnswer(format, startsInReasoning, tools));
}

} // namespace attune::runtime

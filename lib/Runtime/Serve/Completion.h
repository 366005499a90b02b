//===- Completion.h - Texts on their way to a client ------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A request for texts has one or more choices, each a sequence of the
// scheduler. Their tokens become the JSON of OpenAI's interface: one object at
// the end, or server-sent events as they come.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_SERVE_COMPLETION_H
#define ATTUNE_LIB_RUNTIME_SERVE_COMPLETION_H

#include "../Chat/AnswerReader.h"
#include "../Generation/StopText.h"
#include "../Generation/TokenLogprobs.h"
#include "CompletionRequest.h"
#include "Exchange.h"
#include "Scheduler.h"

#include "attune/Runtime/Tokenizer.h"

#include <memory>
#include <string>
#include <vector>

namespace attune::runtime {

class Completion;

/// One text of a request.
class Choice : public TokenSink {
public:
  Choice(std::shared_ptr<Completion> completion, unsigned index);

  const char *whyAbandoned() const override;
  void reuse(int64_t count) override;
  bool score(size_t place, const NewToken &token) override;
  bool push(const NewToken &token) override;
  void finish(const char *reason, const Error &error) override;

private:
  friend class Completion;
  friend class ResponseReply;
  /// A token for `logprobs`.
  struct Entry {
    TokenLogprob own = {-1, 0};
    std::vector<TokenLogprob> likeliest;
    size_t offset = 0;         ///< bytes of text before it
    size_t firstCharacter = 0; ///< characters of text before it
    int64_t rank = 0;          ///< of a prompt's: 1 is the likeliest
    bool isContent = true;     ///< not reasoning, a call or a mark
  };

  void noteLogprobs(const NewToken &token);
  /// Takes text that was not stopped.
  void passOn(const std::string &piece);
  /// Writes text, in a stream at once.
  void show(const AnswerText &piece);
  void sendText(const char *member, std::string &piece);
  std::string formatCalls() const;
  /// Entries from `from` on, in the form of the request's interface, behind
  /// those of the prompt if it is `echoed`.
  std::string formatLogprobs(size_t from, bool echoed = false) const;
  std::string formatChatLogprobs(size_t from) const;

  std::shared_ptr<Completion> completion; ///< which forgets it at the end
  unsigned index;
  std::unique_ptr<StreamDecoder> decoder; ///< null without a tokenizer
  StopText stop;
  AnswerText text;          ///< whole, or what was not sent yet
  size_t numDecoded = 0;    ///< bytes of text that tokens made
  size_t numCharacters = 0; ///< of these bytes
  size_t numShown = 0;      ///< bytes of text that were not stopped
  size_t numSent = 0;       ///< entries of `logprobs` that were sent
  size_t numRead = 0;       ///< of which it is certain what became of them
  std::unique_ptr<AnswerReader> reader; ///< null: the text is as it is
  std::vector<ToolCall> calls;
  std::vector<Entry> logprobs;
  std::vector<int64_t> ids; ///< without a tokenizer: the answer
  int64_t numTokens = 0;
  std::string reason;
  bool isOpen = false; ///< its first event was sent
};

/// The reply to a request for texts. Used by the scheduler's thread alone once
/// start() was called.
class Completion : public std::enable_shared_from_this<Completion> {
public:
  Completion(ExchangePtr exchange, Outbox &outbox, const ServedModel &model,
             CompletionRequest request)
      : exchange(std::move(exchange)), outbox(outbox), model(model),
        request(std::move(request)) {}

  virtual ~Completion() = default;
  /// Gives all texts to the scheduler.
  void start(Scheduler &scheduler);

protected:
  friend class Choice;

  // What is sent, in the form of completions and chats.
  virtual const char *idKind() const {
    return request.isChat ? "chatcmpl-" : "cmpl-";
  }
  /// Log-probabilities are those of content, not of all tokens.
  virtual bool scoresContentAlone() const { return false; }
  /// The next piece of a choice's text; of a chat, "content" or
  /// "reasoning_content".
  virtual void sendPiece(Choice &choice, const char *member,
                         const std::string &piece, const std::string &logprobs);
  virtual void sendCalls(Choice &choice);
  /// A choice is at its end; `logprobs` are of tokens that no text came after.
  virtual void sendEnd(Choice &choice, const std::string &logprobs);
  /// Ends a stream that has begun.
  virtual void sendError(int status, const std::string &message,
                         const char *code);
  virtual void sendLast(ReplyPart part);
  /// The reply of all choices, where it is no stream.
  virtual std::string formatReply();

  /// An event of this name, or of none.
  void sendEvent(const std::string &data, const char *name = nullptr);
  const CompletionPrompt &promptOf(const Choice &choice) const {
    return request.prompts[choice.index / request.choices];
  }
  std::string nameModel() const {
    return request.adapter ? model.info->adapters[size_t(request.adapter) - 1]
                           : model.info->name;
  }

  ExchangePtr exchange;
  Outbox &outbox;
  const ServedModel &model;
  CompletionRequest request;
  std::string id;
  int64_t created = 0;
  std::vector<std::shared_ptr<Choice>> choices;
  /// Of each prompt whose log-probabilities are wanted, those of its tokens.
  std::vector<std::vector<Choice::Entry>> scores;
  size_t numFinished = 0;
  bool hasBegun = false; ///< events were sent
  bool hasFailed = false;

private:
  /// Sends an event with a choice of this index: its text or delta.
  void sendChoice(const Choice &choice, const std::string &fields,
                  const char *finishReason);
  std::string beginObject(bool isChunk) const;
  std::string formatChoice(const Choice &choice) const;
  std::string formatPromptLogprobs(size_t prompt) const;
  std::string formatUsage() const;
  void fail(int status, const std::string &message, const char *code);
  void finishChoice(Choice &choice);
  void finishAll();
};

/// A name that nothing else has.
std::string makeId(const char *kind);
/// The name of a call.
std::string makeCallId();

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_SERVE_COMPLETION_H

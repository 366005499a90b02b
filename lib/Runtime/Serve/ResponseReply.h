//===- ResponseReply.h - Answers of /v1/responses ---------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_SERVE_RESPONSEREPLY_H
#define ATTUNE_LIB_RUNTIME_SERVE_RESPONSEREPLY_H

#include "Completion.h"

namespace attune::runtime {

/// The reply to a chat as OpenAI's Responses API has it: an answer is a list of
/// items, which are reasoning, a message and calls. In a stream each item, and
/// each part of it, begins and ends with events that have names and numbers.
class ResponseReply final : public Completion {
public:
  /// `body` is the request's, of which the reply repeats some members.
  ResponseReply(ExchangePtr exchange, Outbox &outbox, const ServedModel &model,
                CompletionRequest request, const JsonValue &body);

private:
  enum class Kind { Reasoning, Message, Call };
  struct Item {
    Kind kind;
    std::string id;
    std::string text;     ///< or arguments of a call
    std::string logprobs; ///< of a message: JSON of its tokens
    std::string name, callId;
    bool isDone = false;
    const char *status = "in_progress"; ///< when it was done
  };

  const char *idKind() const override { return "resp_"; }
  bool scoresContentAlone() const override { return true; }
  void sendPiece(Choice &choice, const char *member, const std::string &piece,
                 const std::string &logprobs) override;
  void sendCalls(Choice &choice) override;
  void sendEnd(Choice &choice, const std::string &logprobs) override;
  void sendError(int status, const std::string &message,
                 const char *code) override;
  void sendLast(ReplyPart part) override;
  std::string formatReply() override;

  void begin();
  Item &open(Kind kind);
  void close();
  void addText(Kind kind, const std::string &piece,
               const std::string &logprobs);
  void addCalls(Choice &choice);
  void addEnd(Choice &choice);
  /// An event with a number and more members, if the reply is a stream.
  void send(const char *name, const std::string &members);
  std::string place() const;
  std::string formatItem(const Item &item) const;
  std::string formatPart(const Item &item) const;
  std::string format(const char *status) const;

  std::string repeated; ///< members of the request, as JSON
  std::vector<Item> items;
  int64_t numEvents = 0;
  const char *status = "completed";
  std::string failure; ///< JSON; empty: it has not failed
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_SERVE_RESPONSEREPLY_H

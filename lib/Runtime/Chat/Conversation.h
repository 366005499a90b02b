//===- Conversation.h - Messages and the cache that holds them --*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_CHAT_CONVERSATION_H
#define ATTUNE_LIB_RUNTIME_CHAT_CONVERSATION_H

#include "AnswerReader.h"

#include <memory>
#include <string>
#include <vector>

namespace attune::runtime {

/// Where an answer goes; it returns false to end it.
using AnswerSink = bool (*)(void *context, const AnswerText &piece);

class Conversation {
public:
  static std::unique_ptr<Conversation>
  create(CompiledModel &model, const ChatOptions &options, Error &error);

  /// The next message shows this picture, too.
  bool attach(const std::string &file, Error &error);

  enum class End { Turn, Length, Context, Stopped };
  /// Asks, and passes the answer on in whole characters. A message that
  /// cannot be answered is forgotten, and so is one whose answer is stopped
  /// before it begins; its pictures stay attached.
  bool ask(const std::string &text, AnswerSink sink, void *context, End &end,
           Error &error);

  void setSystem(const std::string &text);
  void reset();
  /// The messages as JSON, an array of {"role", "content"}; pictures are parts
  /// that name their files.
  std::string toJson() const;
  /// Goes on with messages that toJson() wrote, without pictures.
  bool fromJson(const std::string &json, Error &error);
  int64_t capacity() const { return session->capacity(); }
  /// Ids that the last turn computed before its answer, and those that it
  /// found in the cache.
  int64_t computed() const { return numComputed; }
  int64_t reused() const { return numReused; }

private:
  Conversation(CompiledModel &model, const ChatOptions &options)
      : model(model), options(options), sampler(options.generate.sampling) {}
  bool prefill(const std::vector<int64_t> &ids,
               const std::vector<PicturePtr> &pictures, AnswerSink sink,
               void *context, bool &isStopped, Error &error);
  bool answer(std::vector<int64_t> history, AnswerSink sink, void *context,
              AnswerText &text, End &end, Error &error);
  bool step(const int64_t *ids, size_t count, Error &error);

  CompiledModel &model;
  const ChatOptions &options;
  Sampler sampler;
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<ChatPrompt> prompt;
  AnswerFormat format;
  std::unique_ptr<Session> session;
  std::vector<int64_t> ends;
  std::vector<int64_t> cached; ///< keys of what the session holds
  std::vector<ChatMessage> messages;
  std::vector<PicturePtr> attached; ///< to the next message
  bool hasSystem = false;           ///< the first message is the system's
  int64_t numComputed = 0, numReused = 0;
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_CHAT_CONVERSATION_H

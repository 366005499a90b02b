//===- CompletionRequest.h - A request for a text ---------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_SERVE_COMPLETIONREQUEST_H
#define ATTUNE_LIB_RUNTIME_SERVE_COMPLETIONREQUEST_H

#include "../Chat/AnswerFormat.h"
#include "RequestFields.h"

#include "attune/Runtime/Chat.h"
#include "attune/Runtime/Cli.h"
#include "attune/Runtime/Constraint.h"

#include <string>
#include <vector>

namespace attune::runtime {

/// The model that requests are read against.
struct ServedModel {
  const ModelInfo *info = nullptr;
  const Tokenizer *tokenizer = nullptr;     ///< null: the model carries none
  ConstraintFactory *constraints = nullptr; ///< the desk's; null: no tokenizer
  const ChatPrompt *chat = nullptr;         ///< null: it has no chat template
  std::string noChat;                       ///< why not
  std::vector<int64_t> chatEnds;            ///< that end a message
  AnswerFormat answers;                     ///< of messages
  GenerateOptions defaults;                 ///< of the command line
  int64_t adapter = 0;  ///< number of the adapter if a request names no model
  int64_t capacity = 0; ///< most tokens of a sequence
  uint64_t mostPixels = uint64_t(1) << 26; ///< of a request's pictures
  int64_t vocabulary = 0;
  /// Why prompts cannot be scored; and the most tokens of those that can, -1:
  /// as many as there may be.
  std::string noScores;
  int64_t mostScored = -1;
  int64_t created = 0; ///< seconds since 1970, when serving began
};

/// A prompt as ids, and as text where `echo` asks for it.
struct CompletionPrompt {
  std::string text;
  std::vector<int64_t> ids;
  std::vector<PicturePtr> pictures; ///< that its image tokens stand for
};

struct CompletionRequest {
  bool isChat = false;
  int64_t adapter = 0; ///< its number; 0: none
  std::vector<CompletionPrompt> prompts;
  GenerateOptions options; ///< with the model's own settings
  std::vector<int64_t> ends;
  int64_t choices = 1; ///< for each prompt
  bool streams = false;
  bool includesUsage = false; ///< at the end of a stream
  bool echo = false;
  /// That the model may call; null: its text has no calls.
  std::shared_ptr<const JsonValue> tools;
  bool startsInReasoning = false; ///< the prompt has opened it

  /// Whether the log-probabilities of a prompt's tokens are wanted.
  bool scoresPrompt() const { return echo && options.logprobs >= 0; }

  /// Reads the body of a request to /v1/completions or /v1/chat/completions.
  bool read(const JsonValue &body, bool chat, const ServedModel &model,
            RequestError &error);

private:
  bool readModel(RequestFields &fields, const ServedModel &model,
                 RequestError &error);
  bool readPrompts(RequestFields &fields, const ServedModel &model,
                   RequestError &error);
  bool readMessages(RequestFields &fields, const ServedModel &model,
                    RequestError &error);
  bool readToolChoice(RequestFields &fields, const ServedModel &model,
                      const JsonValue *&tools, RequestError &error);
  bool readSampling(RequestFields &fields, const ServedModel &model,
                    RequestError &error);
  bool checkLengths(const ServedModel &model, RequestError &error) const;
  bool readForm(RequestFields &fields, const ServedModel &model,
                RequestError &error);
  bool readOutput(RequestFields &fields, const ServedModel &model,
                  RequestError &error);
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_SERVE_COMPLETIONREQUEST_H

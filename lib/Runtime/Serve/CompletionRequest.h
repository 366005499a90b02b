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

#include <algorithm>
#include <atomic>
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
  mutable std::atomic<int64_t> cutBytes{0}; ///< of texts that became tokens
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
  GenerateOptions options;            ///< with the model's own settings
  std::vector<int64_t> ends, stopIds; ///< the request's own are among them
  int64_t choices = 1;                ///< for each prompt
  bool streams = false;
  bool includesUsage = false; ///< at the end of a stream
  bool echo = false;
  /// That the model may call; null: its text has no calls.
  std::shared_ptr<const JsonValue> tools;
  /// The prompt tells of them, as the chat template cannot (Chat/PlainTools.h).
  bool tellsOfTools = false;
  bool callsOnce = false;         ///< a second call is left out
  bool startsInReasoning = false; ///< the prompt has opened it
  /// Tokens are named by their ids in `logprobs`.
  bool namesIds = false;
  std::vector<std::string> unknown; ///< members that nobody reads

  /// vLLM's: of each token of a prompt, and so many likeliest ones; -1: none.
  int64_t promptLogprobs = -1;

  /// Whether the log-probabilities of a prompt's tokens are wanted, in front of
  /// those of new ones or at all.
  bool echoesScores() const { return echo && options.logprobs >= 0; }
  bool scoresPrompt() const { return echoesScores() || promptLogprobs >= 0; }
  /// So many likeliest ones of each.
  int64_t numScores() const {
    return std::max(echoesScores() ? options.logprobs : 0, promptLogprobs);
  }

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
  bool layOutMessages(const JsonValue &given, JsonValue messages,
                      const JsonValue *tools, ChatPrompt::Request request,
                      const ServedModel &model, std::string &text,
                      RequestError &error);
  bool readToolChoice(RequestFields &fields, const ServedModel &model,
                      const JsonValue *&tools, RequestError &error);
  bool readSampling(RequestFields &fields, const ServedModel &model,
                    RequestError &error);
  /// The most tokens of a prompt.
  int64_t mostTokens(const ServedModel &model) const {
    return model.capacity - (options.maxNewTokens == 0 ? 0 : 1);
  }
  static bool refuseLength(const std::string &count, const ServedModel &model,
                           const char *parameter, RequestError &error);
  /// Cuts a text into tokens. One that has certainly more than there is room
  /// for is refused before all of it is cut.
  bool cutText(const std::string &text, bool addSpecial,
               const ServedModel &model, std::vector<int64_t> &ids,
               const char *parameter, RequestError &error) const;
  /// Refuses to score prompts.
  bool refuseScores(const std::string &why, RequestError &error) const {
    return error.set(
        (echoesScores() ? "'echo' with 'logprobs': " : "'prompt_logprobs': ") +
            why,
        echoesScores() ? "echo" : "prompt_logprobs");
  }
  bool checkLengths(const ServedModel &model, RequestError &error) const;
  bool readForm(RequestFields &fields, const ServedModel &model,
                RequestError &error);
  bool setForm(const TextForm &form, const char *member,
               const ServedModel &model, RequestError &error);
  bool readOutput(RequestFields &fields, const ServedModel &model,
                  RequestError &error);
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_SERVE_COMPLETIONREQUEST_H

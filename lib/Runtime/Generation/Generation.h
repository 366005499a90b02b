//===- Generation.h - Shared by all ways to generate ------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_GENERATION_GENERATION_H
#define ATTUNE_LIB_RUNTIME_GENERATION_GENERATION_H

#include "attune/Runtime/Cli.h"
#include "attune/Runtime/Constraint.h"

#include <vector>

namespace attune::runtime {

/// Tells a session what a choice takes, and makes it.
class Chooser {
public:
  /// `wantsLogits`: whoever is told of the choice. The text follows
  /// `constraint`, or what is behind its first `promptLength` tokens `rules`,
  /// if they are not null.
  Chooser(Session &session, Sampler &sampler, bool wantsLogits,
          Constraint *constraint, TimestampRules *rules = nullptr,
          size_t promptLength = 0)
      : session(session), sampler(sampler), wantsLogits(wantsLogits),
        constraint(constraint), rules(rules), promptLength(promptLength) {}

  /// Before a step after which `banned` may not follow.
  void prepare(const std::vector<int64_t> &banned);
  bool choose(const std::vector<int64_t> &history,
              const std::vector<int64_t> &banned, NewToken &token,
              Error &error);

private:
  Session &session;
  Sampler &sampler;
  bool wantsLogits;
  Constraint *constraint;
  TimestampRules *rules;
  size_t promptLength;
  int64_t candidates = 0; ///< that the last step gave; 0: none
};

/// How many tokens there may be.
struct TokenLimit {
  int64_t tokens = 0;
  bool isContextEnd = false; ///< and not more since the context ends
};

/// After a prompt of `promptLength` tokens, where `context` positions are the
/// most; -1: there is no such limit.
bool findTokenLimit(const GenerateOptions &options, int64_t promptLength,
                    int64_t context, TokenLimit &limit, Error &error);

/// generateTokens() in a session that has encoded what the text is about;
/// `prompt` is the decoder's.
bool generateEncoded(CompiledModel &model, Session &session,
                     const std::vector<int64_t> &prompt,
                     const GenerateOptions &options,
                     bool (*onToken)(void *context, const NewToken &token),
                     void *context, std::string &stoppedBy, Error &error);

/// How many texts take a step together: fewer than the rows from which on a
/// product on a matrix unit rounds in another order than that of one row.
constexpr size_t textsAtOnce = 8;

/// One of several texts.
struct TextOfMany {
  std::vector<int64_t> prompt;
  void *context = nullptr;
  /// Told of each new token, as by generateTokens().
  bool (*onToken)(void *context, const NewToken &token) = nullptr;
  /// Told that the text is over, and why; false: it could not be written.
  bool (*onEnd)(void *context, const std::string &stoppedBy) = nullptr;
};

/// Seconds that prompts took, and steps of all texts.
struct TextTimes {
  double prompts = 0, steps = 0;
};

/// Whether the model has a step for several texts that these options can use.
bool canGenerateTogether(CompiledModel &model, const GenerateOptions &options);
/// Generates them all, some at a time: each is what generateTokens() makes of
/// its prompt alone. They end in any order. All prompts are checked before the
/// first is computed.
bool generateTogether(CompiledModel &model, const GenerateOptions &options,
                      std::vector<TextOfMany> &texts, TextTimes &times,
                      Error &error);

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_GENERATION_GENERATION_H

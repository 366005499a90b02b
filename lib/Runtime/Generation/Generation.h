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
  /// `constraint`, if it is not null.
  Chooser(Session &session, Sampler &sampler, bool wantsLogits,
          Constraint *constraint)
      : session(session), sampler(sampler), wantsLogits(wantsLogits),
        constraint(constraint) {}

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

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_GENERATION_GENERATION_H

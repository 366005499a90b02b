//===- Beams.h - Beam search ------------------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_GENERATION_BEAMS_H
#define ATTUNE_LIB_RUNTIME_GENERATION_BEAMS_H

#include "attune/Runtime/CompiledModel.h"
#include "attune/Runtime/Sampler.h"

namespace attune::runtime {

/// When a search with as many ended texts as beams stops: once no open text
/// would be better than the worst of them if it ended now; at once; or once no
/// open text can become better than that until the limit.
enum class EarlyStopping { No, Yes, Never };

struct BeamOptions {
  int64_t beams = 1; ///< rows of the session
  double lengthPenalty = 1;
  EarlyStopping stopping = EarlyStopping::No;
  int64_t limit = 1;         ///< most new tokens
  std::vector<int64_t> ends; ///< a text stops after any of these
  int64_t forced = -1;       ///< the first new token, or -1
  /// Tokens that are never new ones, and those that are not the first after
  /// the forced one.
  std::vector<int64_t> suppress, beginSuppress;
  /// Steps 1 to 5 of the sampler's rule are applied to the log-probabilities.
  SamplingOptions sampling;
};

/// The best text among those that stay within the `beams` likeliest at every
/// token. Its score is its log-probability divided by the number of new tokens
/// to the power of the length penalty. Texts that ended leave their beam to
/// others. All of it is as in transformers 4.57. `ended`: by an end
/// token.
bool searchBeams(Session &session, const BeamOptions &options,
                 const std::vector<int64_t> &start, std::vector<int64_t> &best,
                 bool &ended, Error &error);

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_GENERATION_BEAMS_H

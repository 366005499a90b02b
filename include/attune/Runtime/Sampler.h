//===- Sampler.h - Choosing the next token ----------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The rule, so that others can reproduce a text from its seed: logits of ids
// seen before are divided by the repetition penalty if positive and multiplied
// by it if negative; all are divided by the temperature; the softmax is taken
// in double precision over the ids that top-k, top-p and min-p leave, each
// looking at what the one before left; u is (x >> 11) / 2^53 for the next x of
// splitmix64(seed); the choice is the first id, in the order of ids, whose
// cumulative probability exceeds u. Greedy takes the first largest logit and
// draws nothing.
//
// Few of the largest logits decide most choices: those that are left after
// top-k, or one, and as many as may be banned. A GPU that gives these
// candidates spares the copy of all logits, and the choice is the same.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_RUNTIME_SAMPLER_H
#define ATTUNE_RUNTIME_SAMPLER_H

#include "attune/Runtime/Error.h"

#include <cstdint>
#include <vector>

namespace attune::runtime {

struct SamplingOptions {
  bool greedy = true;
  double temperature = 1; ///< above 0
  int64_t topK = 0;       ///< keep the k largest logits; 0: all
  double topP = 1;        ///< keep the smallest set of this much probability
  double minP = 0; ///< keep what is this likely relative to the likeliest
  double repetitionPenalty = 1;
  uint64_t seed = 0;
};

class Sampler {
public:
  explicit Sampler(const SamplingOptions &options)
      : options(options), state(options.seed) {}

  /// Chooses among `count` logits; `history` is the prompt and what followed,
  /// `banned` what may not follow.
  /// NaN, infinity and logits that are all minus infinity are errors.
  bool sample(const float *logits, int64_t count,
              const std::vector<int64_t> &history, int64_t &id, Error &error,
              const std::vector<int64_t> &banned = {});

  /// So many candidates decide, if `numBanned` ids may not follow; 0: all
  /// logits do. A model with fewer logits has them all among its candidates.
  int64_t countCandidates(size_t numBanned) const;
  /// The same choice among so many candidates, in the order of attune.top_k.
  bool sampleAmong(const int64_t *ids, const float *logits, int64_t count,
                   int64_t &id, Error &error,
                   const std::vector<int64_t> &banned = {});

private:
  /// What may follow, and what speaks for it.
  struct Choice {
    int64_t id;
    double score;
  };
  static bool likelier(const Choice &a, const Choice &b) {
    return a.score != b.score ? a.score > b.score : a.id < b.id;
  }
  /// Draws among `kept`, what top-k leaves of the logits.
  int64_t draw(double largest);
  double uniform();

  SamplingOptions options;
  uint64_t state;
  std::vector<double> scores;
  std::vector<Choice> kept;
};

} // namespace attune::runtime

#endif // ATTUNE_RUNTIME_SAMPLER_H

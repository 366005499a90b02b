//===- Sampler.h - Choosing the next token ----------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The rule, so that others can reproduce a text from its seed. All arithmetic
// is in double precision. The order is that of Hugging Face transformers.
//
// First the scores, which are the logits, are changed, for greedy choices too:
//   1. logit bias: the bias of an id is added;
//   2. repetition penalty R: the score of every id of the prompt and of the new
//      text is divided by R if it is 0 or more, else multiplied by R, once;
//   3. frequency penalty F and presence penalty P: an id that occurs n > 0
//      times in the new text (not in the prompt) loses n * F + P;
//   4. no repeated n-grams: an id that would make the last n tokens, prompt
//      included, equal to n tokens that stand somewhere before is banned;
//   5. minimum lengths: end tokens are banned until the text is long enough;
//   6. the model's suppressed tokens are banned.
// Greedy then takes the first largest score and draws nothing.
//
// Sampling goes on with what is not banned; each filter looks at what the one
// before left:
//   7. scores are divided by the temperature;
//   8. top-k keeps the k largest, of equal ones those with the lower id;
//   9. top-p keeps the fewest of the likeliest whose probabilities sum up to P
//      or more, one at least;
//  10. min-p drops what is less likely than P times the likeliest.
// u is (x >> 11) / 2^53 for the next x of splitmix64(seed); the choice is the
// first id, in the order of ids, whose cumulative probability exceeds u.
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
#include <utility>
#include <vector>

namespace attune::runtime {

/// The defaults change nothing and choose greedily.
struct SamplingOptions {
  /// A temperature below this is refused: 0 means greedy, and what lies between
  /// is a mistake.
  static constexpr double leastTemperature = 1e-5;

  bool greedy = true;
  double temperature = 1;       ///< from leastTemperature to 1000
  int64_t topK = 0;             ///< 0: all
  double topP = 1;              ///< from 0 to 1
  double minP = 0;              ///< from 0 to 1
  double repetitionPenalty = 1; ///< from 0.01 to 100
  double frequencyPenalty = 0, presencePenalty = 0; ///< from -100 to 100
  int64_t noRepeatNgram = 0; ///< length of n-grams; 0: they may repeat
  /// Ids and what is added to their logits. Ids that the model does not have
  /// are an error.
  std::vector<std::pair<int64_t, double>> logitBias;
  /// Tokens of `ends` are banned before the text has this many tokens, with the
  /// prompt or without it.
  int64_t minLength = 0, minNewTokens = 0;
  std::vector<int64_t> ends;
  uint64_t seed = 0;

  /// Fails with exit code `code` if a number is out of range or no number.
  bool check(int code, Error &error) const;
};

/// Steps 1 to 6 of the rule.
class ScoreRules {
public:
  explicit ScoreRules(const SamplingOptions &options) : options(options) {}

  /// Whether a choice depends on more than the largest logits and the banned
  /// ids.
  bool needAll() const;
  /// Changes `count` scores. `history` is the prompt, of `promptLength` tokens,
  /// and what followed. A banned score becomes minus infinity.
  void apply(double *scores, int64_t count, const std::vector<int64_t> &history,
             size_t promptLength, const std::vector<int64_t> &banned);

private:
  void banNgrams(double *scores, int64_t count,
                 const std::vector<int64_t> &history) const;

  const SamplingOptions &options;
  std::vector<int64_t> sorted;
};

class Sampler {
public:
  explicit Sampler(const SamplingOptions &options)
      : options(options), rules(this->options), state(options.seed) {}
  Sampler(const Sampler &) = delete;
  Sampler &operator=(const Sampler &) = delete;

  /// The first `length` tokens of histories are the prompt; 0 to begin with.
  void setPromptLength(size_t length) { promptLength = length; }

  /// Chooses among `count` logits; `history` is the prompt and what followed,
  /// `banned` what may not follow.
  /// NaN, infinity and logits that are all minus infinity are errors.
  bool sample(const float *logits, int64_t count,
              const std::vector<int64_t> &history, int64_t &id, Error &error,
              const std::vector<int64_t> &banned = {});

  /// A token that may follow, and its probability.
  struct Choice {
    int64_t id;
    double score;
  };
  /// The distribution that sample() draws from, in the order of ids; if it is
  /// greedy, the one id that it takes. Draws nothing.
  bool weigh(const float *logits, int64_t count,
             const std::vector<int64_t> &history, std::vector<Choice> &choices,
             Error &error, const std::vector<int64_t> &banned = {});
  /// Draws from such a distribution, with one random number.
  int64_t draw(const std::vector<Choice> &choices);
  /// The choice of such a distribution: drawn, or the one that greedy takes.
  int64_t choose(const std::vector<Choice> &choices) {
    return options.greedy ? choices.front().id : draw(choices);
  }
  /// Whether `guess` is the choice; else `id` becomes the choice. Over all
  /// random numbers choices follow `choices` exactly. `guessed` is the
  /// distribution that the guess was drawn from: it is kept with probability
  /// min(1, p / q), else the choice is drawn from max(0, p - q) (Leviathan et
  /// al. 2023, "Fast inference from transformers via speculative decoding").
  /// Null: the guess was not drawn; the choice is the one without guesses.
  bool accept(const std::vector<Choice> &choices,
              const std::vector<Choice> *guessed, int64_t guess, int64_t &id);
  /// The next random number, from 0 to below 1.
  double uniform();

  /// Number of candidates that decide if `numBanned` ids may not follow; 0: all
  /// logits do. A model with fewer logits has them all among its candidates.
  int64_t countCandidates(size_t numBanned) const;
  /// The same choice among `count` candidates, in the order of attune.top_k.
  bool sampleAmong(const int64_t *ids, const float *logits, int64_t count,
                   int64_t &id, Error &error,
                   const std::vector<int64_t> &banned = {});

private:
  static bool likelier(const Choice &a, const Choice &b) {
    return a.score != b.score ? a.score > b.score : a.id < b.id;
  }
  /// Steps 7, 9 and 10: scores that top-k left become probabilities.
  void filter(double largest, std::vector<Choice> &choices) const;

  const SamplingOptions options;
  ScoreRules rules;
  uint64_t state;
  size_t promptLength = 0;
  std::vector<double> scores;
  std::vector<Choice> kept;
};

} // namespace attune::runtime

#endif // ATTUNE_RUNTIME_SAMPLER_H

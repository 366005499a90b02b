//===- Sampler.cpp - Choosing the next token ------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Runtime/Sampler.h"

#include <algorithm>
#include <cmath>

namespace attune::runtime {

double Sampler::uniform() {
  state += 0x9E3779B97F4A7C15u;
  uint64_t z = state;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  z ^= z >> 31;
  return static_cast<double>(z >> 11) / 9007199254740992.0;
}

bool Sampler::sample(const float *logits, int64_t count,
                     const std::vector<int64_t> &history, int64_t &id,
                     Error &error, const std::vector<int64_t> &banned) {
  scores.assign(logits, logits + count);
  for (int64_t i = 0; i < count; ++i)
    if (std::isnan(scores[i]) || scores[i] == INFINITY)
      return error.badInput(std::string("the logits hold ") +
                            (std::isnan(scores[i]) ? "NaN" : "infinity") +
                            " at token " + std::to_string(i) +
                            ": the weights may be damaged");
  for (int64_t i : banned)
    if (i >= 0 && i < count)
      scores[i] = -INFINITY;
  bool anyFinite = false;
  for (double score : scores)
    anyFinite = anyFinite || score != -INFINITY;
  if (!anyFinite)
    return error.badInput("every logit is minus infinity, so no token can "
                          "follow");
  if (options.repetitionPenalty != 1) {
    // Each id once, however often it occurred.
    kept.assign(history.begin(), history.end());
    std::sort(kept.begin(), kept.end());
    kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
    for (int64_t seen : kept)
      if (seen >= 0 && seen < count)
        scores[seen] *= scores[seen] > 0 ? 1 / options.repetitionPenalty
                                         : options.repetitionPenalty;
  }
  int64_t best =
      std::max_element(scores.begin(), scores.end()) - scores.begin();
  if (options.greedy) {
    id = best;
    return true;
  }

  kept.clear();
  for (int64_t i = 0; i < count; ++i)
    if (scores[i] != -INFINITY)
      kept.push_back(i);
  auto likelier = [&](int64_t a, int64_t b) {
    return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
  };
  if (options.topK > 0 && options.topK < static_cast<int64_t>(kept.size())) {
    std::nth_element(kept.begin(), kept.begin() + options.topK, kept.end(),
                     likelier);
    kept.resize(static_cast<size_t>(options.topK));
  }
  double largest = scores[best], total = 0;
  std::sort(kept.begin(), kept.end());
  for (int64_t i : kept) {
    scores[i] = std::exp(scores[i] / options.temperature -
                         largest / options.temperature);
    total += scores[i];
  }
  if (options.topP < 1) {
    std::sort(kept.begin(), kept.end(), likelier);
    double sum = 0;
    size_t size = 0;
    while (size < kept.size() && (size == 0 || sum < options.topP * total))
      sum += scores[kept[size++]];
    kept.resize(size);
  }
  if (options.minP > 0)
    kept.erase(
        std::remove_if(kept.begin(), kept.end(),
                       [&](int64_t i) { return scores[i] < options.minP; }),
        kept.end());
  std::sort(kept.begin(), kept.end());
  total = 0;
  for (int64_t i : kept)
    total += scores[i];
  double threshold = uniform(), cumulative = 0;
  id = kept.back();
  for (int64_t i : kept) {
    cumulative += scores[i] / total;
    if (cumulative > threshold) {
      id = i;
      break;
    }
  }
  return true;
}

} // namespace attune::runtime

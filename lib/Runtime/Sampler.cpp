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

static bool refuse(bool isNaN, int64_t id, Error &error) {
  return error.badInput(std::string("the logits hold ") +
                        (isNaN ? "NaN" : "infinity") + " at token " +
                        std::to_string(id) + ": the weights may be damaged");
}
static bool refuseAll(Error &error) {
  return error.badInput("every logit is minus infinity, so no token can "
                        "follow");
}

bool Sampler::sample(const float *logits, int64_t count,
                     const std::vector<int64_t> &history, int64_t &id,
                     Error &error, const std::vector<int64_t> &banned) {
  scores.assign(logits, logits + count);
  for (int64_t i = 0; i < count; ++i)
    if (std::isnan(scores[i]) || scores[i] == INFINITY)
      return refuse(std::isnan(scores[i]), i, error);
  for (int64_t i : banned)
    if (i >= 0 && i < count)
      scores[i] = -INFINITY;
  bool anyFinite = false;
  for (double score : scores)
    anyFinite = anyFinite || score != -INFINITY;
  if (!anyFinite)
    return refuseAll(error);
  if (options.repetitionPenalty != 1) {
    // Each id once, however often it occurred.
    std::vector<int64_t> once(history);
    std::sort(once.begin(), once.end());
    once.erase(std::unique(once.begin(), once.end()), once.end());
    for (int64_t seen : once)
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
      kept.push_back({i, scores[i]});
  if (options.topK > 0 && options.topK < static_cast<int64_t>(kept.size())) {
    std::nth_element(kept.begin(), kept.begin() + options.topK, kept.end(),
                     likelier);
    kept.resize(static_cast<size_t>(options.topK));
  }
  id = draw(scores[best]);
  return true;
}

int64_t Sampler::countCandidates(size_t numBanned) const {
  // What was there before may be anywhere among the logits.
  if (options.repetitionPenalty != 1)
    return 0;
  constexpr int64_t many = int64_t(1) << 40;
  int64_t most = options.greedy ? 1 : std::min(options.topK, many);
  return most > 0 ? most + static_cast<int64_t>(numBanned) : 0;
}

bool Sampler::sampleAmong(const int64_t *ids, const float *logits,
                          int64_t count, int64_t &id, Error &error,
                          const std::vector<int64_t> &banned) {
  // What is wrong stands first.
  if (count > 0 && (std::isnan(logits[0]) || logits[0] == INFINITY))
    return refuse(std::isnan(logits[0]), ids[0], error);
  kept.clear();
  int64_t most = options.greedy ? 1 : options.topK;
  for (int64_t i = 0; i < count; ++i)
    if (static_cast<int64_t>(kept.size()) < most && logits[i] != -INFINITY &&
        std::find(banned.begin(), banned.end(), ids[i]) == banned.end())
      kept.push_back({ids[i], logits[i]});
  if (kept.empty())
    return refuseAll(error);
  id = options.greedy ? kept[0].id : draw(kept[0].score);
  return true;
}

int64_t Sampler::draw(double largest) {
  auto byId = [](const Choice &a, const Choice &b) { return a.id < b.id; };
  double total = 0;
  std::sort(kept.begin(), kept.end(), byId);
  for (Choice &choice : kept) {
    choice.score = std::exp(choice.score / options.temperature -
                            largest / options.temperature);
    total += choice.score;
  }
  if (options.topP < 1) {
    std::sort(kept.begin(), kept.end(), likelier);
    double sum = 0;
    size_t size = 0;
    while (size < kept.size() && (size == 0 || sum < options.topP * total))
      sum += kept[size++].score;
    kept.resize(size);
  }
  if (options.minP > 0)
    kept.erase(std::remove_if(kept.begin(), kept.end(),
                              [&](const Choice &choice) {
                                return choice.score < options.minP;
                              }),
               kept.end());
  std::sort(kept.begin(), kept.end(), byId);
  total = 0;
  for (const Choice &choice : kept)
    total += choice.score;
  double threshold = uniform(), cumulative = 0;
  for (const Choice &choice : kept) {
    cumulative += choice.score / total;
    if (cumulative > threshold)
      return choice.id;
  }
  return kept.back().id;
}

} // namespace attune::runtime

//===- Sampler.cpp - Choosing the next token ------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Runtime/Sampler.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace attune::runtime {

//===----------------------------------------------------------------------===//
// SamplingOptions
//===----------------------------------------------------------------------===//

bool SamplingOptions::check(int code, Error &error) const {
  // NaN fails every comparison.
  auto inRange = [&](const char *name, double value, double least,
                     double most) {
    return (value >= least && value <= most) ||
           error.set(code, std::string("the sampling setting ") + name +
                               " is out of range");
  };
  for (const auto &[id, bias] : logitBias) {
    if (id < 0)
      return error.set(code, "a logit bias has a negative id");
    if (!inRange("logit bias", bias, -1000, 1000))
      return false;
  }
  if (topK < 0 || noRepeatNgram < 0 || minLength < 0 || minNewTokens < 0)
    return error.set(code, "a sampling setting is negative");
  return (greedy ||
          inRange("temperature", temperature, leastTemperature, 1000)) &&
         inRange("top-p", topP, 0, 1) && inRange("min-p", minP, 0, 1) &&
         inRange("repetition penalty", repetitionPenalty, 0.01, 100) &&
         inRange("frequency penalty", frequencyPenalty, -100, 100) &&
         inRange("presence penalty", presencePenalty, -100, 100);
}

//===----------------------------------------------------------------------===//
// ScoreRules
//===----------------------------------------------------------------------===//

bool ScoreRules::needAll() const {
  return options.repetitionPenalty != 1 || options.frequencyPenalty != 0 ||
         options.presencePenalty != 0 || options.noRepeatNgram > 0 ||
         !options.logitBias.empty() || options.minLength > 0 ||
         options.minNewTokens > 0;
}

/// Bans tokens that follow an earlier occurrence of the last n - 1 tokens.
void ScoreRules::banNgrams(double *scores, int64_t count,
                           const std::vector<int64_t> &history) const {
  auto n = static_cast<size_t>(options.noRepeatNgram);
  if (n == 0 || history.size() + 1 < n)
    return;
  auto tail = history.end() - static_cast<std::ptrdiff_t>(n - 1);
  for (size_t at = 0; at + n <= history.size(); ++at) {
    auto gram = history.begin() + static_cast<std::ptrdiff_t>(at);
    int64_t next = history[at + n - 1];
    if (next >= 0 && next < count && std::equal(tail, history.end(), gram))
      scores[next] = -INFINITY;
  }
}

void ScoreRules::apply(double *scores, int64_t count,
                       const std::vector<int64_t> &history, size_t promptLength,
                       const std::vector<int64_t> &banned) {
  auto known = [&](int64_t id) { return id >= 0 && id < count; };
  auto ban = [&](const std::vector<int64_t> &ids) {
    for (int64_t id : ids)
      if (known(id))
        scores[id] = -INFINITY;
  };
  for (const auto &[id, bias] : options.logitBias)
    if (known(id))
      scores[id] += bias;
  if (options.repetitionPenalty != 1) {
    sorted = history;
    std::sort(sorted.begin(), sorted.end());
    sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
    for (int64_t id : sorted)
      if (known(id))
        scores[id] = scores[id] < 0 ? scores[id] * options.repetitionPenalty
                                    : scores[id] / options.repetitionPenalty;
  }
  size_t begin = std::min(promptLength, history.size());
  if (options.frequencyPenalty != 0 || options.presencePenalty != 0) {
    sorted.assign(history.begin() + static_cast<std::ptrdiff_t>(begin),
                  history.end());
    std::sort(sorted.begin(), sorted.end());
    for (size_t i = 0, next; i < sorted.size(); i = next) {
      for (next = i; next < sorted.size() && sorted[next] == sorted[i];)
        ++next;
      if (known(sorted[i]))
        scores[sorted[i]] -=
            static_cast<double>(next - i) * options.frequencyPenalty +
            options.presencePenalty;
    }
  }
  banNgrams(scores, count, history);
  if (static_cast<int64_t>(history.size()) < options.minLength ||
      static_cast<int64_t>(history.size() - begin) < options.minNewTokens)
    ban(options.ends);
  ban(banned);
}

//===----------------------------------------------------------------------===//
// Sampler
//===----------------------------------------------------------------------===//

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
                        std::to_string(id) +
                        ": the weights may be damaged ('attune compile "
                        "--check-weights' names the tensors)");
}
static bool refuseAll(Error &error) {
  return error.badInput("every logit is minus infinity, so no token can "
                        "follow");
}

bool Sampler::weigh(const float *logits, int64_t count,
                    const std::vector<int64_t> &history,
                    std::vector<Choice> &choices, Error &error,
                    const std::vector<int64_t> &banned) {
  scores.assign(logits, logits + count);
  for (int64_t i = 0; i < count; ++i)
    if (std::isnan(scores[i]) || scores[i] == INFINITY)
      return refuse(std::isnan(scores[i]), i, error);
  for (const auto &[id, bias] : options.logitBias)
    if (id >= count)
      return error.badInput("a logit bias is given for token " +
                            std::to_string(id) + ", but the model has " +
                            std::to_string(count) + " tokens");
  rules.apply(scores.data(), count, history, promptLength, banned);
  int64_t best =
      std::max_element(scores.begin(), scores.end()) - scores.begin();
  if (scores[best] == -INFINITY)
    return refuseAll(error);
  choices.clear();
  if (options.greedy) {
    choices.push_back({best, 1});
    return true;
  }
  for (int64_t i = 0; i < count; ++i)
    if (scores[i] != -INFINITY)
      choices.push_back({i, scores[i]});
  if (options.topK > 0 && options.topK < static_cast<int64_t>(choices.size())) {
    std::nth_element(choices.begin(), choices.begin() + options.topK,
                     choices.end(), likelier);
    choices.resize(static_cast<size_t>(options.topK));
  }
  filter(scores[best], choices);
  return true;
}

bool Sampler::sample(const float *logits, int64_t count,
                     const std::vector<int64_t> &history, int64_t &id,
                     Error &error, const std::vector<int64_t> &banned) {
  if (!weigh(logits, count, history, kept, error, banned))
    return false;
  id = options.greedy ? kept[0].id : draw(kept);
  return true;
}

int64_t Sampler::countCandidates(size_t numBanned) const {
  if (rules.needAll())
    return 0;
  constexpr int64_t many = int64_t(1) << 40;
  int64_t most = options.greedy ? 1 : std::min(options.topK, many);
  return most > 0 ? most + static_cast<int64_t>(numBanned) : 0;
}

bool Sampler::sampleAmong(const int64_t *ids, const float *logits,
                          int64_t count, int64_t &id, Error &error,
                          const std::vector<int64_t> &banned) {
  // An invalid logit comes first.
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
  if (options.greedy) {
    id = kept[0].id;
    return true;
  }
  filter(kept[0].score, kept);
  id = draw(kept);
  return true;
}

void Sampler::filter(double largest, std::vector<Choice> &choices) const {
  auto byId = [](const Choice &a, const Choice &b) { return a.id < b.id; };
  double total = 0;
  std::sort(choices.begin(), choices.end(), byId);
  for (Choice &choice : choices) {
    choice.score = std::exp((choice.score - largest) / options.temperature);
    total += choice.score;
  }
  if (options.topP < 1) {
    std::sort(choices.begin(), choices.end(), likelier);
    double sum = 0;
    size_t size = 0;
    while (size < choices.size() && (size == 0 || sum < options.topP * total))
      sum += choices[size++].score;
    choices.resize(size);
  }
  if (options.minP > 0)
    choices.erase(std::remove_if(choices.begin(), choices.end(),
                                 [&](const Choice &choice) {
                                   return choice.score < options.minP;
                                 }),
                  choices.end());
  std::sort(choices.begin(), choices.end(), byId);
  total = 0;
  for (const Choice &choice : choices)
    total += choice.score;
  for (Choice &choice : choices)
    choice.score /= total;
}

static double probabilityOf(const std::vector<Sampler::Choice> &choices,
                            int64_t id) {
  auto found = std::lower_bound(
      choices.begin(), choices.end(), id,
      [](const Sampler::Choice &choice, int64_t id) { return choice.id < id; });
  return found != choices.end() && found->id == id ? found->score : 0;
}

bool Sampler::accept(const std::vector<Choice> &choices,
                     const std::vector<Choice> *guessed, int64_t guess,
                     int64_t &id) {
  if (options.greedy || !guessed) {
    id = choose(choices);
    return id == guess;
  }
  id = guess;
  double q = probabilityOf(*guessed, guess);
  if (uniform() * q < probabilityOf(choices, guess))
    return true;
  kept = choices;
  double total = 0;
  for (Choice &choice : kept) {
    choice.score =
        std::max(choice.score - probabilityOf(*guessed, choice.id), 0.0);
    total += choice.score;
  }
  // Equal distributions: only rounding could have refused the guess.
  if (!(total > 0))
    return true;
  kept.erase(
      std::remove_if(kept.begin(), kept.end(),
                     [](const Choice &choice) { return choice.score == 0; }),
      kept.end());
  for (Choice &choice : kept)
    choice.score /= total;
  id = draw(kept);
  return false;
}

int64_t Sampler::draw(const std::vector<Choice> &choices) {
  double threshold = uniform(), cumulative = 0;
  for (const Choice &choice : choices) {
    cumulative += choice.score;
    if (cumulative > threshold)
      return choice.id;
  }
  return choices.back().id;
}

} // namespace attune::runtime

//===- SamplerTest.cpp - Choosing the next token --------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Runtime/Sampler.h"
#include "attune/Runtime/Guess.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <numeric>

using namespace attune::runtime;

namespace {

SamplingOptions sampling(uint64_t seed = 1) {
  SamplingOptions options;
  options.greedy = false;
  options.seed = seed;
  return options;
}

int64_t pick(Sampler &sampler, const std::vector<float> &logits,
             const std::vector<int64_t> &history = {}) {
  int64_t id = -1;
  Error error;
  EXPECT_TRUE(sampler.sample(logits.data(), static_cast<int64_t>(logits.size()),
                             history, id, error))
      << error.message;
  return id;
}

std::vector<double> frequencies(const SamplingOptions &options,
                                const std::vector<float> &logits, int draws) {
  Sampler sampler(options);
  std::vector<double> counts(logits.size());
  for (int i = 0; i < draws; ++i)
    counts[static_cast<size_t>(pick(sampler, logits))] += 1.0 / draws;
  return counts;
}

TEST(Sampler, GreedyTakesTheFirstLargest) {
  Sampler sampler{SamplingOptions()};
  EXPECT_EQ(pick(sampler, {1, 3, 2, 3}), 1);
  EXPECT_EQ(pick(sampler, {-INFINITY, -5}), 1);
}

/// The ids by falling logits, equal ones by number, what is wrong first: as
/// attune.top_k has them.
void rank(const std::vector<float> &logits, size_t count,
          std::vector<int64_t> &ids, std::vector<float> &values) {
  ids.resize(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  auto sizeOf = [&](int64_t id) {
    return std::isnan(logits[id]) ? INFINITY : logits[id];
  };
  std::sort(ids.begin(), ids.end(), [&](int64_t a, int64_t b) {
    return std::make_pair(-sizeOf(a), a) < std::make_pair(-sizeOf(b), b);
  });
  ids.resize(std::min(count, ids.size()));
  values.clear();
  for (int64_t id : ids)
    values.push_back(logits[id]);
}

/// Samples twice, from all logits and from as many candidates as are needed;
/// the choices, or what is said against the logits.
std::pair<std::string, std::string> both(Sampler &all, Sampler &few,
                                         const std::vector<float> &logits,
                                         const std::vector<int64_t> &banned) {
  auto size = static_cast<int64_t>(logits.size());
  std::vector<int64_t> ids;
  std::vector<float> values;
  rank(logits, static_cast<size_t>(few.countCandidates(banned.size())), ids,
       values);
  Error error, other;
  int64_t one = -1, two = -1;
  std::string first = all.sample(logits.data(), size, {}, one, error, banned)
                          ? std::to_string(one)
                          : error.message;
  std::string second =
      few.sampleAmong(ids.data(), values.data(),
                      static_cast<int64_t>(ids.size()), two, other, banned)
          ? std::to_string(two)
          : other.message;
  return {first, second};
}

TEST(Sampler, CandidatesGiveTheSameChoice) {
  uint64_t state = 7;
  auto random = [&](uint64_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % below;
  };
  for (int round = 0; round < 2000; ++round) {
    SamplingOptions options = sampling(random(1000));
    options.greedy = random(4) == 0;
    options.topK = 1 + static_cast<int64_t>(random(12));
    options.topP = random(2) ? 1 : 0.7;
    options.minP = random(2) ? 0 : 0.1;
    options.temperature = random(2) ? 1 : 0.6;
    // Few different values, so that many are equal.
    std::vector<float> logits(1 + random(40));
    for (float &logit : logits)
      logit = random(8) ? static_cast<float>(random(9)) - 4 : -INFINITY;
    if (random(2))
      for (float &logit : logits)
        logit = logit == 0 && random(2) ? -0.0f : logit;
    if (random(10) == 0)
      logits[random(logits.size())] = random(2) ? NAN : INFINITY;
    std::vector<int64_t> banned;
    for (uint64_t i = random(4); i > 0; --i)
      banned.push_back(static_cast<int64_t>(random(42)));
    Sampler all(options), few(options);
    for (int step = 0; step < 3; ++step) {
      auto [one, two] = both(all, few, logits, banned);
      EXPECT_EQ(one, two) << "round " << round << ", step " << step;
    }
  }
}

TEST(Sampler, CandidatesAreNotAlwaysEnough) {
  SamplingOptions options = sampling();
  EXPECT_EQ(Sampler(options).countCandidates(3), 0); // of no top-k
  options.topK = 5;
  EXPECT_EQ(Sampler(options).countCandidates(3), 8);
  options.greedy = true;
  EXPECT_EQ(Sampler(options).countCandidates(3), 4);
  options.repetitionPenalty = 1.1;
  EXPECT_EQ(Sampler(options).countCandidates(3), 0);
  options.repetitionPenalty = 1;
  options.greedy = false;
  options.topK = INT64_MAX;
  EXPECT_GT(Sampler(options).countCandidates(3), 0);
}

TEST(Sampler, FollowsTheDistribution) {
  std::vector<float> logits = {0, std::log(2.0f), std::log(5.0f), -INFINITY};
  std::vector<double> seen = frequencies(sampling(), logits, 40000);
  EXPECT_NEAR(seen[0], 1 / 8.0, 0.01);
  EXPECT_NEAR(seen[1], 2 / 8.0, 0.01);
  EXPECT_NEAR(seen[2], 5 / 8.0, 0.01);
  EXPECT_EQ(seen[3], 0);
}

TEST(Sampler, TemperatureSharpens) {
  SamplingOptions options = sampling();
  options.temperature = 0.5;
  std::vector<double> seen = frequencies(options, {0, std::log(2.0f)}, 40000);
  EXPECT_NEAR(seen[1], 4 / 5.0, 0.01);
}

TEST(Sampler, FiltersKeepTheLikeliest) {
  std::vector<float> logits = {std::log(1.0f), std::log(4.0f), std::log(3.0f),
                               std::log(2.0f)};
  SamplingOptions options = sampling();
  options.topK = 2;
  std::vector<double> seen = frequencies(options, logits, 20000);
  EXPECT_EQ(seen[0] + seen[3], 0);
  EXPECT_NEAR(seen[1], 4 / 7.0, 0.015);
  options = sampling();
  options.topP = 0.75; // 0.4 + 0.3 do not reach it, so 0.2 joins
  seen = frequencies(options, logits, 20000);
  EXPECT_EQ(seen[0], 0);
  EXPECT_NEAR(seen[3], 2 / 9.0, 0.015);
  options.topP = 0;
  EXPECT_NEAR(frequencies(options, logits, 100)[1], 1.0, 1e-9);
  options = sampling();
  options.minP = 0.6;
  seen = frequencies(options, logits, 20000);
  EXPECT_EQ(seen[0] + seen[3], 0);
}

TEST(Sampler, RepetitionIsPenalized) {
  SamplingOptions options;
  options.repetitionPenalty = 2;
  Sampler sampler(options);
  EXPECT_EQ(pick(sampler, {3, 2, -1}), 0);
  EXPECT_EQ(pick(sampler, {3, 2, -1}, {0, 0, 0}), 1);
  EXPECT_EQ(pick(sampler, {-3, -2, -5}, {1, 99, -4}), 0);
}

TEST(Sampler, SeedsRepeat) {
  std::vector<float> logits(100, 0.0f);
  Sampler a(sampling(7)), b(sampling(7)), c(sampling(8));
  bool differs = false;
  for (int i = 0; i < 50; ++i) {
    int64_t id = pick(a, logits);
    EXPECT_EQ(id, pick(b, logits));
    differs = differs || id != pick(c, logits);
  }
  EXPECT_TRUE(differs);
  // splitmix64(0) starts with 0xE220A8397B1DCDAF: u = 0.8833...
  Sampler zero(sampling(0));
  EXPECT_EQ(pick(zero, logits), 88);
}

TEST(Sampler, BadLogitsAreErrors) {
  for (float bad : {NAN, INFINITY}) {
    Sampler sampler{SamplingOptions()};
    float logits[] = {0, bad};
    int64_t id;
    Error error;
    EXPECT_FALSE(sampler.sample(logits, 2, {}, id, error));
    EXPECT_EQ(error.code, ExitBadInput);
    EXPECT_NE(error.message.find("at token 1"), std::string::npos);
  }
  Sampler sampler{SamplingOptions()};
  float logits[] = {-INFINITY, -INFINITY};
  int64_t id;
  Error error;
  EXPECT_FALSE(sampler.sample(logits, 2, {}, id, error));
}

TEST(Sampler, SettingsOutOfRangeAreRefused) {
  auto refused = [](auto change) {
    SamplingOptions options = sampling();
    change(options);
    Error error;
    return !options.check(ExitBadInput, error) && error.code == ExitBadInput;
  };
  EXPECT_FALSE(refused([](SamplingOptions &) {}));
  for (double wrong : {1e-308, 0.0, -1.0, 1e9, double(NAN), double(INFINITY)})
    EXPECT_TRUE(refused([=](auto &options) { options.temperature = wrong; }));
  for (double wrong : {-0.1, 1.1, double(NAN)}) {
    EXPECT_TRUE(refused([=](auto &options) { options.topP = wrong; }));
    EXPECT_TRUE(refused([=](auto &options) { options.minP = wrong; }));
  }
  EXPECT_TRUE(refused([](auto &options) { options.repetitionPenalty = 0; }));
  EXPECT_TRUE(refused([](auto &options) { options.frequencyPenalty = NAN; }));
  EXPECT_TRUE(refused([](auto &options) { options.logitBias = {{-1, 0}}; }));
  EXPECT_TRUE(refused([](auto &options) { options.logitBias = {{1, NAN}}; }));
}

TEST(Sampler, TheColdestTemperatureIsGreedy) {
  SamplingOptions options = sampling();
  options.temperature = SamplingOptions::leastTemperature;
  Sampler sampler(options);
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(pick(sampler, {-300, 500, 499, -INFINITY}), 1);
}

/// How often guesses from `q` become each id, checked against `p`; `kept`: how
/// many of them stay. `drawn`: the sampler is told of `q`.
std::vector<double> checkedGuesses(const std::vector<float> &p,
                                   const std::vector<float> &q, bool drawn,
                                   int rounds, double &kept) {
  Sampler sampler(sampling(11)), draft(sampling(12));
  std::vector<double> counts(p.size());
  auto size = static_cast<int64_t>(p.size());
  std::vector<Sampler::Choice> choices, guessed;
  Error error;
  kept = 0;
  for (int i = 0; i < rounds; ++i) {
    EXPECT_TRUE(sampler.weigh(p.data(), size, {}, choices, error));
    EXPECT_TRUE(draft.weigh(q.data(), size, {}, guessed, error));
    int64_t id = -1, guess = draft.choose(guessed);
    bool good = sampler.accept(choices, drawn ? &guessed : nullptr, guess, id);
    EXPECT_EQ(good, id == guess);
    kept += good ? 1.0 / rounds : 0;
    counts[static_cast<size_t>(id)] += 1.0 / rounds;
  }
  return counts;
}

TEST(Sampler, CheckedGuessesFollowTheDistribution) {
  auto logs = [](std::vector<float> odds) {
    for (float &x : odds)
      x = x > 0 ? std::log(x) : -INFINITY;
    return odds;
  };
  const int rounds = 100000;
  const std::vector<float> p = {0.5f, 0.2f, 0.15f, 0.1f, 0.05f, 0};
  const std::vector<std::vector<float>> guessers = {
      {0.5f, 0.2f, 0.15f, 0.1f, 0.05f, 0},    // the same
      {0.05f, 0.1f, 0.15f, 0.2f, 0.3f, 0.2f}, // another, with a wrong id
      {0, 0, 0, 0, 0.5f, 0.5f},
      {1, 0, 0, 0, 0, 0}};
  for (const std::vector<float> &q : guessers)
    for (bool drawn : {true, false}) {
      double kept;
      std::vector<double> seen =
          checkedGuesses(logs(p), logs(q), drawn, rounds, kept);
      double chi = 0, overlap = 0;
      for (size_t id = 0; id < p.size(); ++id) {
        overlap += drawn ? std::min(p[id], q[id]) : p[id] * q[id];
        if (p[id] == 0)
          EXPECT_EQ(seen[id], 0);
        else
          chi += rounds * (seen[id] - p[id]) * (seen[id] - p[id]) / p[id];
      }
      // 4 degrees of freedom: above 23.5 once in 10,000 times.
      EXPECT_LT(chi, 23.5);
      EXPECT_NEAR(kept, overlap, 0.01);
    }
}

TEST(Sampler, CheckedGuessesOfGreedyAreItsChoice) {
  Sampler sampler{SamplingOptions()};
  std::vector<float> logits = {1, 3, 2};
  std::vector<Sampler::Choice> choices, guessed = {{2, 1}};
  Error error;
  ASSERT_TRUE(sampler.weigh(logits.data(), 3, {}, choices, error));
  int64_t id = -1;
  EXPECT_FALSE(sampler.accept(choices, &guessed, 2, id));
  EXPECT_EQ(id, 1);
  EXPECT_TRUE(sampler.accept(choices, nullptr, 1, id));
}

TEST(LookUp, FindsWhatFollowedTheLastTokens) {
  using Ids = std::vector<int64_t>;
  EXPECT_EQ(lookUp({1, 2, 3, 4, 5, 1, 2}, 2), (Ids{3, 4}));
  EXPECT_EQ(lookUp({1, 2, 3, 4, 5, 1, 2}, 9), (Ids{3, 4, 5, 1, 2}));
  EXPECT_EQ(lookUp({1, 2, 3, 1, 2, 4, 1, 2}, 1), (Ids{4})); // the latest
  // Of four tokens before one of two.
  EXPECT_EQ(lookUp({1, 2, 3, 4, 7, 3, 4, 8, 1, 2, 3, 4}, 1), (Ids{7}));
  EXPECT_EQ(lookUp({1, 2, 3, 1}, 3), (Ids{}));
  EXPECT_EQ(lookUp({1}, 3), (Ids{}));
  EXPECT_EQ(lookUp({5, 5, 5}, 3), (Ids{5}));
}

} // namespace

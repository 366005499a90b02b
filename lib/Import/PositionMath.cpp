//===- PositionMath.cpp - Rotary frequencies and ALiBi slopes ---*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Import/PositionMath.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

using namespace attune;

static const double pi = 3.14159265358979323846;

/// Three bands by wavelength: short ones stay, long ones are divided by the
/// factor, and a linear blend joins them.
static void scaleLlama3(std::vector<double> &frequencies,
                        const spec::RopeScaling &scaling, double length) {
  for (double &w : frequencies) {
    double turns = length * w / (2 * pi); // within the trained length
    if (turns > scaling.highFreqFactor)
      continue;
    if (turns < scaling.lowFreqFactor) {
      w /= scaling.factor;
      continue;
    }
    double span = scaling.highFreqFactor - scaling.lowFreqFactor;
    double keep = span > 0 ? (turns - scaling.lowFreqFactor) / span : 1;
    w = (1 - keep) * w / scaling.factor + keep * w;
  }
}

/// Peng et al. (2023). Pairs that turn more than `betaFast` times within the
/// trained length stay, those below `betaSlow` are divided by the factor; the
/// blend between is linear in the pair's number, not in its frequency.
static void scaleYarn(std::vector<double> &frequencies, const spec::Rope &rope,
                      double length) {
  const spec::RopeScaling &scaling = rope.scaling;
  double channels = 2.0 * frequencies.size();
  auto pairThatTurns = [&](double times) {
    return channels * std::log(length / (times * 2 * pi)) /
           (2 * std::log(rope.theta));
  };
  double low = pairThatTurns(scaling.betaFast);
  double high = pairThatTurns(scaling.betaSlow);
  if (scaling.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, channels - 1);
  if (low == high)
    high += 0.001; // a step instead of a division by zero
  for (size_t i = 0; i < frequencies.size(); ++i) {
    double ramp = std::clamp((i - low) / (high - low), 0.0, 1.0);
    double &w = frequencies[i];
    w = w / scaling.factor * ramp + w * (1 - ramp);
  }
}

RotaryPlan attune::planRotary(const spec::Rope &rope, int64_t context) {
  const spec::RopeScaling &scaling = rope.scaling;
  RotaryPlan plan;
  for (int64_t i = 0; i < rope.channels / 2; ++i)
    plan.frequencies.push_back(
        std::pow(rope.theta, -2.0 * i / double(rope.channels)));
  double length = scaling.originalLength ? scaling.originalLength : context;

  if (scaling.type == "linear") {
    for (double &w : plan.frequencies)
      w /= scaling.factor;
  } else if (scaling.type == "llama3") {
    scaleLlama3(plan.frequencies, scaling, length);
  } else if (scaling.type == "yarn") {
    scaleYarn(plan.frequencies, rope, length);
    double mscale = scaling.factor > 1 ? 0.1 * std::log(scaling.factor) + 1 : 1;
    plan.factor = scaling.attentionFactor.value_or(mscale);
  } else if (scaling.type == "longrope") {
    plan.longFrequencies = plan.frequencies;
    for (size_t i = 0; i < plan.frequencies.size(); ++i) {
      plan.frequencies[i] /= scaling.shortFactors[i];
      plan.longFrequencies[i] /= scaling.longFactors[i];
    }
    plan.longFrom = static_cast<int64_t>(length);
    plan.factor = scaling.attentionFactor.value_or(1);
  } else if (scaling.type == "dynamic") {
    plan.dynamic = {length, scaling.factor, double(rope.channels)};
  }
  return plan;
}

std::vector<float> attune::alibiSlopes(int64_t heads) {
  int64_t power = 1;
  while (power * 2 <= heads)
    power *= 2;
  std::vector<float> slopes;
  for (int64_t h = 0; h < power; ++h)
    slopes.push_back(float(std::exp2(-8.0 * (h + 1) / power)));
  for (int64_t h = 0; h < heads - power; ++h)
    slopes.push_back(float(std::exp2(-8.0 * (2 * h + 1) / (2 * power))));
  return slopes;
}

float attune::roundToBF16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  bits += 0x7fff + ((bits >> 16) & 1);
  bits &= 0xffff0000u;
  std::memcpy(&value, &bits, sizeof(bits));
  return value;
}

//===- Resample.cpp - Sounds at other rates -------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Wave.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace attune::runtime {

/// Zeros of the sinc on either side, the window's shape, and how far below the
/// lower rate's half the filter is 6 dB down: from that half on it lets nothing
/// through.
static constexpr double zeros = 64, beta = 9, rolloff = 0.955;

/// The modified Bessel function of order 0, for arguments up to `beta`.
static double bessel(double x) {
  double sum = 1, term = 1;
  for (int k = 1; term > 1e-18 * sum; ++k) {
    term *= x / (2 * k) * (x / (2 * k));
    sum += term;
  }
  return sum;
}

void resample(Sound &sound, int64_t rate) {
  if (sound.rate == rate)
    return;
  auto count = int64_t(sound.samples.size());
  // Every `down` samples become `up`: output n lies at n * down / up.
  int64_t divisor = std::gcd(sound.rate, rate);
  int64_t up = rate / divisor, down = sound.rate / divisor;
  int64_t made = count / down * up + (count % down * up + down - 1) / down;
  // In cycles a sample of the input.
  double cutoff = rolloff * 0.5 * std::min(1.0, double(up) / double(down));
  double reach = zeros / (2 * cutoff);
  auto side = int64_t(reach) + 1;
  std::vector<float> result(made);
  std::vector<double> taps(2 * side);
  double peak = bessel(beta);
  // Outputs whose numbers differ by `up` lie alike between inputs.
  for (int64_t phase = 0; phase < std::min(up, made); ++phase) {
    double fraction = double(phase * down % up) / double(up), sum = 0;
    for (int64_t i = 0; i < 2 * side; ++i) {
      double x = double(i - side + 1) - fraction, at = x / reach;
      double angle = 2 * M_PI * cutoff * x;
      double sinc = angle == 0 ? 1 : std::sin(angle) / angle;
      taps[i] = std::fabs(at) >= 1
                    ? 0
                    : sinc * bessel(beta * std::sqrt(1 - at * at)) / peak;
      sum += taps[i];
    }
    for (int64_t n = phase; n < made; n += up) {
      int64_t first = n / up * down + phase * down / up - side + 1;
      int64_t from = std::max<int64_t>(0, -first);
      int64_t to = std::min<int64_t>(2 * side, count - first);
      double value = 0;
      for (int64_t i = from; i < to; ++i)
        value += taps[i] * sound.samples[first + i];
      result[n] = float(value / sum);
    }
  }
  sound.samples = std::move(result);
  sound.rate = rate;
}

} // namespace attune::runtime

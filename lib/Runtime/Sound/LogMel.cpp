//===- LogMel.cpp - Power in bands of the mel scale -----------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LogMel.h"

#include <algorithm>
#include <cmath>

namespace attune::runtime {

/// Slaney's scale: 200/3 Hz a mel up to 1000 Hz, from there on equal ratios, 27
/// mels to a factor of 6.4.
static double melOf(double hertz) {
  return hertz < 1000 ? hertz * 3 / 200
                      : 15 + std::log(hertz / 1000) * 27 / std::log(6.4);
}
static double hertzOf(double mel) {
  return mel < 15 ? mel * 200 / 3
                  : 1000 * std::exp((mel - 15) * std::log(6.4) / 27);
}

LogMel::LogMel(int64_t rate, int64_t window, int64_t hop, int64_t numBands)
    : window(window), hop(hop), bands(numBands) {
  for (int64_t i = 0; i < window; ++i) {
    double angle = 2 * M_PI * double(i) / double(window);
    shape.push_back(0.5 - 0.5 * std::cos(angle));
    powers.push_back({std::cos(angle), -std::sin(angle)});
  }
  addBands(rate);
}

void LogMel::addBands(int64_t rate) {
  double top = melOf(double(rate) / 2);
  auto corner = [&](size_t i) {
    return hertzOf(top * double(i) / double(bands.size() + 1));
  };
  for (size_t i = 0; i < bands.size(); ++i) {
    double low = corner(i), middle = corner(i + 1), high = corner(i + 2);
    Band &band = bands[i];
    band.first = 0;
    for (int64_t bin = 0; bin <= window / 2; ++bin) {
      double hertz = double(bin) * double(rate) / double(window);
      double height = std::min((hertz - low) / (middle - low),
                               (high - hertz) / (high - middle));
      if (height <= 0)
        continue;
      if (band.weights.empty())
        band.first = bin;
      band.weights.push_back(height * 2 / (high - low));
    }
  }
}

/// The Fourier transform of every stride-th number, by the least prime factor
/// of their count and then the rest. `parts` has room for as many as the
/// window's largest prime factor.
void LogMel::transform(int64_t size, const double *in, int64_t stride,
                       Complex *out, Complex *parts) const {
  if (size == 1) {
    *out = {*in, 0};
    return;
  }
  int64_t factor = 2;
  while (size % factor != 0)
    ++factor;
  int64_t rest = size / factor;
  for (int64_t r = 0; r < factor; ++r)
    transform(rest, in + r * stride, stride * factor, out + r * rest, parts);
  int64_t step = window / size; // between powers of the size-th root
  for (int64_t k = 0; k < rest; ++k) {
    for (int64_t r = 0; r < factor; ++r)
      parts[r] = out[r * rest + k];
    for (int64_t q = 0; q < factor; ++q) {
      int64_t turn = (k + q * rest) * step;
      Complex sum = parts[0];
      for (int64_t r = 1; r < factor; ++r) {
        const Complex &power = powers[r * turn % window], &part = parts[r];
        sum.re += power.re * part.re - power.im * part.im;
        sum.im += power.re * part.im + power.im * part.re;
      }
      out[q * rest + k] = sum;
    }
  }
}

std::vector<float> LogMel::compute(const std::vector<float> &samples) const {
  int64_t count = int64_t(samples.size()), frames = countFrames(samples.size());
  std::vector<float> result(bands.size() * frames);
  std::vector<double> frame(window);
  std::vector<Complex> spectrum(window), parts(window);
  float largest = -10;
  for (int64_t t = 0; t < frames; ++t) {
    for (int64_t i = 0; i < window; ++i) {
      int64_t at = std::abs(t * hop + i - window / 2);
      if (at >= count)
        at = 2 * (count - 1) - at;
      frame[i] = shape[i] * samples[at];
    }
    transform(window, frame.data(), 1, spectrum.data(), parts.data());
    for (size_t b = 0; b < bands.size(); ++b) {
      const Complex *bin = spectrum.data() + bands[b].first;
      double power = 0;
      for (double weight : bands[b].weights) {
        power += weight * (bin->re * bin->re + bin->im * bin->im);
        ++bin;
      }
      auto level = float(std::log10(std::max(power, 1e-10)));
      result[b * frames + t] = level;
      largest = std::max(largest, level);
    }
  }
  for (float &level : result)
    level = (std::max(level, largest - 8) + 4) / 4;
  return result;
}

} // namespace attune::runtime

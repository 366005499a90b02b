//===- ImageResample.cpp - Pictures at another size -----------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Image.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace attune::runtime {

static double sinc(double x) {
  if (x == 0)
    return 1;
  x *= M_PI;
  return std::sin(x) / x;
}

/// Half of a filter's width.
static double supportOf(Filter filter) {
  switch (filter) {
  case Filter::Lanczos:
    return 3;
  case Filter::Bicubic:
    return 2;
  case Filter::Bilinear:
  case Filter::Hamming:
    return 1;
  case Filter::Box:
    break;
  }
  return 0.5;
}

static double weightOf(Filter filter, double x) {
  double away = std::fabs(x);
  switch (filter) {
  case Filter::Lanczos:
    return away < 3 ? sinc(x) * sinc(x / 3) : 0;
  case Filter::Bilinear:
    return away < 1 ? 1 - away : 0;
  case Filter::Bicubic: {
    // Keys' kernel with a = -1/2.
    constexpr double a = -0.5;
    if (away < 1)
      return ((a + 2) * away - (a + 3)) * away * away + 1;
    return away < 2 ? (((away - 5) * away + 8) * away - 4) * a : 0;
  }
  case Filter::Box:
    return x > -0.5 && x <= 0.5 ? 1 : 0;
  case Filter::Hamming:
    return away < 1 ? sinc(x) * (0.54 + 0.46 * std::cos(M_PI * x)) : 0;
  }
  return 0;
}

namespace {
/// What one new place is made of.
struct Window {
  int64_t first;
  std::vector<int32_t> weights; ///< in units of 2^-22
};
} // namespace

static constexpr int fractionBits = 22;

static std::vector<Window> windowsOf(int64_t before, int64_t after,
                                     Filter filter) {
  std::vector<Window> windows;
  windows.reserve(static_cast<size_t>(after));
  double factor = static_cast<double>(before) / static_cast<double>(after);
  double stretch = std::max(factor, 1.0), shrink = 1 / stretch;
  double support = supportOf(filter) * stretch;
  std::vector<double> weights;
  for (int64_t place = 0; place < after; ++place) {
    double centre = (static_cast<double>(place) + 0.5) * factor;
    auto first =
        std::max<int64_t>(static_cast<int64_t>(centre - support + 0.5), 0);
    int64_t end =
        std::min(static_cast<int64_t>(centre + support + 0.5), before);
    weights.clear();
    double sum = 0;
    for (int64_t i = first; i < end; ++i) {
      weights.push_back(
          weightOf(filter, (static_cast<double>(i) - centre + 0.5) * shrink));
      sum += weights.back();
    }
    Window window{first, {}};
    for (double weight : weights) {
      double exact =
          (sum != 0 ? weight / sum : weight) * (int32_t(1) << fractionBits);
      window.weights.push_back(
          static_cast<int32_t>(exact < 0 ? exact - 0.5 : exact + 0.5));
    }
    windows.push_back(std::move(window));
  }
  return windows;
}

/// The weighted sum of pixels that are `step` bytes apart.
static void sumUp(const Window &window, const uint8_t *from, int64_t step,
                  uint8_t *to) {
  for (int channel = 0; channel < 3; ++channel) {
    int32_t sum = int32_t(1) << (fractionBits - 1);
    const uint8_t *pixel = from + window.first * step + channel;
    for (int32_t weight : window.weights) {
      sum += *pixel * weight;
      pixel += step;
    }
    to[channel] = static_cast<uint8_t>(
        std::min(std::max(sum >> fractionBits, int32_t(0)), int32_t(255)));
  }
}

void resample(Image &image, int64_t width, int64_t height, Filter filter) {
  if (width != image.width) {
    std::vector<Window> windows = windowsOf(image.width, width, filter);
    Image narrow;
    narrow.resize(width, image.height);
    for (int64_t y = 0; y < image.height; ++y)
      for (int64_t x = 0; x < width; ++x)
        sumUp(windows[static_cast<size_t>(x)], image.at(0, y), 3,
              narrow.at(x, y));
    image = std::move(narrow);
  }
  if (height != image.height) {
    std::vector<Window> windows = windowsOf(image.height, height, filter);
    Image low;
    low.resize(width, height);
    for (int64_t y = 0; y < height; ++y)
      for (int64_t x = 0; x < width; ++x)
        sumUp(windows[static_cast<size_t>(y)], image.at(x, 0), width * 3,
              low.at(x, y));
    image = std::move(low);
  }
}

} // namespace attune::runtime

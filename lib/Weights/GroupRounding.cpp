//===- GroupRounding.cpp - Values of a group as numbers ---------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GroupRounding.h"

#include "attune/Runtime/DType.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace attune {

/// Values that are looked at side by side, so that none waits for the last.
constexpr int64_t kLanes = 16;

/// Calls `look` with each place and its lane.
template <typename F> static void forLanes(int64_t count, F look) {
  int64_t whole = count - count % kLanes;
  for (int64_t i = 0; i < whole; i += kLanes)
    for (int64_t lane = 0; lane < kLanes; ++lane)
      look(i + lane, lane);
  for (int64_t i = whole; i < count; ++i)
    look(i, i - whole);
}

/// Zero, or NaN if one of the values is not a number or infinite.
static float checkFinite(const float *in, int64_t count) {
  float checks[kLanes] = {};
  forLanes(count,
           [&](int64_t i, int64_t lane) { checks[lane] += in[i] * 0.0f; });
  return std::accumulate(checks, checks + kLanes, 0.0f);
}

/// The number of largest magnitude, the first of several.
static float findLargest(const float *in, int64_t count) {
  float sizes[kLanes] = {};
  forLanes(count, [&](int64_t i, int64_t lane) {
    float size = std::fabs(in[i]);
    sizes[lane] = size > sizes[lane] ? size : sizes[lane];
  });
  float largest = *std::max_element(sizes, sizes + kLanes);
  if (largest == 0)
    return 0;
  return *std::find_if(
      in, in + count, [&](float value) { return std::fabs(value) == largest; });
}

/// A scale by which values cannot be divided makes zeros.
static float invert(float scale) {
  float inverse = 1 / scale;
  return std::fabs(inverse) < HUGE_VALF ? inverse : 0;
}

/// To nearest, ties to even, for what is smaller than 2^22.
static float roundEven(float value) {
  constexpr float round = 0x1.8p23f;
  return (value + round) - round;
}

static float roundTo(ScaleType type, float value) {
  return type == ScaleType::Half
             ? runtime::halfToFloat(runtime::floatToHalf(value))
             : value;
}

uint8_t exponentOf(float power) {
  if (!std::isfinite(power))
    return 255;
  return power > 0 ? uint8_t(std::max(std::ilogb(power), -127) + 127) : 0;
}

GroupRounding::GroupRounding(const StoredForm &form, const float *values)
    : form(form) {
  float check = checkFinite(values, form.group);
  float largest = findLargest(values, form.group);
  if (form.byteFloats) {
    scale.scale = std::fabs(largest) / 448 + check;
    return;
  }
  if (form.areFloats()) {
    // 6, the largest of them, is 1.5 * 2^2.
    int exponent = largest == 0 ? -125 : std::ilogb(largest);
    scale.scale = std::ldexp(1.0f, std::max(exponent - 2, -127)) + check;
    return;
  }
  if (!form.zeros) {
    // In 4 bits the largest becomes -8, which has no positive counterpart.
    scale.scale =
        roundTo(form.scales,
                form.bits == 4 ? largest / -8 : std::fabs(largest) / 127) +
        check;
    return;
  }
  float least = 0, most = 0;
  for (int64_t i = 0; i < form.group; ++i) {
    least = values[i] < least ? values[i] : least;
    most = values[i] > most ? values[i] : most;
  }
  auto steps = float(form.bits == 4 ? 15 : 255);
  scale.scale = roundTo(form.scales, (most - least) / steps) + check;
  scale.zero = roundEven(-least * invert(scale.scale));
}

QuantizationError GroupRounding::round(const float *values,
                                       uint8_t *numbers) const {
  if (form.byteFloats)
    return roundByteFloats(values, numbers);
  if (form.areFloats())
    return roundFloats(values, numbers);
  float inverse = invert(scale.scale);
  // Bytes end at 127 by their scale; only a rounded one lets others pass.
  float zero = form.zeros ? scale.zero : float(form.middle());
  float least = form.bits == 8 && !form.zeros ? 1.0f : 0.0f;
  float most = form.bits == 4 ? 15.0f : 255.0f;
  QuantizationError error;
  float lost = 0, total = 0;
  for (int64_t i = 0; i < form.group; ++i) {
    float value = inverse == 0 ? 0.0f : values[i];
    float number = roundEven(value * inverse) + zero;
    number = number < least ? least : number;
    number = number > most ? most : number;
    numbers[i] = static_cast<uint8_t>(number);
    float difference = value - (number - zero) * scale.scale;
    lost += difference * difference;
    total += value * value;
  }
  if (inverse != 0)
    error.add({lost, total});
  return error;
}

/// Codes of e4m3: a sign, four bits of an exponent that counts from 7, and
/// three of the fraction. The largest that is a number is 448.
QuantizationError GroupRounding::roundByteFloats(const float *values,
                                                 uint8_t *numbers) const {
  float inverse = invert(scale.scale);
  float lost = 0, total = 0;
  for (int64_t i = 0; i < form.group; ++i) {
    float value = inverse == 0 ? 0.0f : values[i];
    float size = std::min(std::fabs(value * inverse), 448.0f);
    // Neighbours are 2^-9 apart below 2^-6, and from there on an eighth of the
    // power of two below them.
    int exponent = size < 0x1p-6f ? -6 : std::ilogb(size);
    float steps = roundEven(std::ldexp(size, 3 - exponent));
    float rounded = std::ldexp(steps, exponent - 3);
    // Eight steps of the least exponent are the first number with a one in
    // front; sixteen of another are eight of the next.
    int code = int(steps) + (exponent + 6) * 8;
    float difference = std::fabs(value) - rounded * scale.scale;
    lost += difference * difference;
    total += value * value;
    numbers[i] = uint8_t(value < 0 ? code | 128 : code);
  }
  return {lost, total};
}

/// Codes of e2m1, whose sign is the uppermost of four bits.
QuantizationError GroupRounding::roundFloats(const float *values,
                                             uint8_t *numbers) const {
  static constexpr float sizes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  // Halfway between two of them the even code is taken.
  static constexpr float bounds[] = {0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5};
  float inverse = 1 / scale.scale;
  float lost = 0, total = 0;
  for (int64_t i = 0; i < form.group; ++i) {
    float size = std::fabs(values[i]) * inverse;
    uint8_t code = 0;
    for (int next = 0; next < 7; ++next)
      code += size > bounds[next] || (size == bounds[next] && next % 2);
    float difference = std::fabs(values[i]) - sizes[code] * scale.scale;
    lost += difference * difference;
    total += values[i] * values[i];
    numbers[i] = uint8_t(values[i] < 0 ? code | 8 : code);
  }
  return {lost, total};
}

void convertGroup(const StoredForm &from, const StoredForm &to,
                  uint8_t *numbers, GroupScale &scale) {
  if (from.areFloats() && !to.areFloats()) {
    static constexpr int8_t doubles[] = {0, 1,  2,  3,  4,  6,  8,  12,
                                         0, -1, -2, -3, -4, -6, -8, -12};
    scale = {scale.scale / 2, float(to.middle())};
    for (int64_t i = 0; i < to.group; ++i)
      numbers[i] = uint8_t(doubles[numbers[i]] + to.middle());
    return;
  }
  if (from.zeros || from.areFloats() || to.areFloats())
    return;
  scale.zero = float(to.middle());
  for (int64_t i = 0; i < to.group; ++i)
    numbers[i] = uint8_t(numbers[i] + to.middle() - from.middle());
}

} // namespace attune

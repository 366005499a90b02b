//===- PositionMath.h - Rotary frequencies and ALiBi slopes -----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_IMPORT_POSITIONMATH_H
#define ATTUNE_IMPORT_POSITIONMATH_H

#include "attune/Spec/Spec.h"

#include <array>
#include <optional>
#include <vector>

namespace attune {

/// The parameters of a rotary embedding that `attune.rotary_table` needs.
struct RotaryPlan {
  std::vector<double> frequencies; ///< one per turned pair of channels
  double factor = 1;               ///< of both cosine and sine
  /// Dynamic NTK: trained length, scaling factor, turned channels.
  std::optional<std::array<double, 3>> dynamic;
  /// LongRoPE: frequencies of calls that reach beyond `longFrom` tokens.
  std::vector<double> longFrequencies;
  int64_t longFrom = 0;
  /// By how much, for each so many tokens, added to positions.
  std::optional<std::array<double, 3>> growth;
};

/// Inverse frequencies with every static scaling folded in, in f64. `context`
/// stands in for a scaling that does not say its trained length.
RotaryPlan planRotary(const spec::Rope &rope, int64_t context);

/// Press et al. (2022): 2^(-8(h+1)/H) for H a power of two. Otherwise the
/// slopes of the next smaller power P, then every second one of 2P.
std::vector<float> alibiSlopes(int64_t heads);

/// The nearest bf16, ties to even.
float roundToBF16(float value);

} // namespace attune

#endif // ATTUNE_IMPORT_POSITIONMATH_H

//===- Noise.h - The same numbers on every machine --------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_VALIDATION_NOISE_H
#define ATTUNE_LIB_VALIDATION_NOISE_H

#include <cstdint>

namespace attune::validation {

/// splitmix64.
class Noise {
public:
  explicit Noise(uint64_t seed) : state(seed) {}

  uint64_t next() { return mix(state += 0x9e3779b97f4a7c15u); }
  int64_t below(int64_t bound) {
    return bound > 0 ? int64_t(next() % uint64_t(bound)) : 0;
  }
  /// From -1 to 1.
  double real() { return double(next() >> 11) / double(1ull << 52) - 1; }

  static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

private:
  uint64_t state;
};

} // namespace attune::validation

#endif // ATTUNE_LIB_VALIDATION_NOISE_H

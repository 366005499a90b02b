//===- GgufBlocks.h - Groups of numbers in blocks of GGUF -------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_WEIGHTS_GGUF_GGUFBLOCKS_H
#define ATTUNE_LIB_WEIGHTS_GGUF_GGUFBLOCKS_H

#include "attune/Runtime/DType.h"
#include "attune/Weights/StoredForm.h"

#include <cstdint>
#include <cstring>

namespace attune::gguf {

/// What all numbers of a group are multiplied by, and what is added then, where
/// the type has that; else the middle is subtracted before.
struct Factors {
  Factors(float scale = 0, float least = 0) : scale(scale), least(least) {}

  float scale, least;
  GroupLevels levels; ///< the same, of types that have two
};

/// Group `number` of a block.
using ReadGroup = Factors (*)(const uint8_t *block, int number,
                              uint8_t *numbers);

inline uint16_t shortAt(const uint8_t *data) {
  uint16_t bits;
  std::memcpy(&bits, data, 2);
  return bits;
}

inline float halfAt(const uint8_t *data) {
  return runtime::halfToFloat(shortAt(data));
}

inline uint32_t wordAt(const uint8_t *data) {
  uint32_t bits;
  std::memcpy(&bits, data, 4);
  return bits;
}

/// The number at place `i` of 32, of which two are in each of 16 bytes.
inline int nibble(const uint8_t *quants, int i) {
  return i < 16 ? quants[i] & 15 : quants[i - 16] >> 4;
}

/// Two bits of value `i` of 256: of 128 values the first 32 are the lowest bits
/// of 32 bytes.
inline int pair(const uint8_t *quants, int i) {
  return quants[i / 128 * 32 + i % 32] >> (i / 32 % 4 * 2) & 3;
}

/// The values that numbers of IQ4_NL and IQ4_XS stand for.
inline constexpr int8_t kUnevenSteps[] = {
    -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

// Types whose numbers are rows of tables, or of less than two bits: see
// GgufRows.cpp.
Factors readIQ1_S(const uint8_t *block, int group, uint8_t *numbers);
Factors readIQ1_M(const uint8_t *block, int group, uint8_t *numbers);
Factors readIQ2_XXS(const uint8_t *block, int group, uint8_t *numbers);
Factors readIQ2_XS(const uint8_t *block, int group, uint8_t *numbers);
Factors readIQ2_S(const uint8_t *block, int group, uint8_t *numbers);
Factors readIQ3_XXS(const uint8_t *block, int group, uint8_t *numbers);
Factors readIQ3_S(const uint8_t *block, int group, uint8_t *numbers);
Factors readIQ4_XS(const uint8_t *block, int group, uint8_t *numbers);
Factors readTQ1_0(const uint8_t *block, int group, uint8_t *numbers);
Factors readTQ2_0(const uint8_t *block, int group, uint8_t *numbers);

} // namespace attune::gguf

#endif // ATTUNE_LIB_WEIGHTS_GGUF_GGUFBLOCKS_H

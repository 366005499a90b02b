//===- GgufRows.cpp - Types of GGUF of one to four bits ---------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A number in a block of these types stands for 4 or 8 neighbours at once: it
// is the place of a row in a published table. Tables of IQ2 and IQ3 have sizes
// alone; signs are bits of their own, of some types seven for eight values,
// whose signs then make an even number of minuses.
//
//===----------------------------------------------------------------------===//

#include "GgufBlocks.h"
#include "GgufGrids.h"

namespace attune::gguf {

/// Numbers are kept as 8 bits from -128 on.
static constexpr int kMiddle = 128;

static void putEight(uint16_t row, int signs, uint8_t *numbers) {
  static constexpr int sizes[] = {8, 25, 43, 0};
  for (int j = 0; j < 8; ++j) {
    int size = sizes[row >> (2 * j) & 3];
    numbers[j] = uint8_t(kMiddle + (signs >> j & 1 ? -size : size));
  }
}

static void putFour(uint16_t row, const int (&sizes)[8], int signs,
                    uint8_t *numbers) {
  for (int j = 0; j < 4; ++j) {
    int size = sizes[row >> (3 * j) & 7];
    numbers[j] = uint8_t(kMiddle + (signs >> j & 1 ? -size : size));
  }
}

/// Eight signs of seven.
static int evenSigns(uint32_t seven) {
  seven &= 127;
  uint32_t odd = seven ^ seven >> 4;
  odd ^= odd >> 2;
  odd ^= odd >> 1;
  return int(seven | (odd & 1) << 7);
}

static int nibbleOf(const uint8_t *scales, int i) {
  return scales[i / 2] >> (i % 2 * 4) & 15;
}

Factors readIQ2_XXS(const uint8_t *block, int group, uint8_t *numbers) {
  const uint8_t *rows = block + 2 + 8 * group;
  uint32_t rest = wordAt(rows + 4);
  for (int i = 0; i < 4; ++i)
    putEight(kRowsIQ2_XXS[rows[i]], evenSigns(rest >> (7 * i)),
             numbers + 8 * i);
  return {halfAt(block) * float(2 * (rest >> 28) + 1) / 8};
}

Factors readIQ2_XS(const uint8_t *block, int group, uint8_t *numbers) {
  for (int i = 0; i < 2; ++i) {
    uint16_t row = shortAt(block + 2 + 4 * group + 2 * i);
    putEight(kRowsIQ2_XS[row & 511], evenSigns(row >> 9), numbers + 8 * i);
  }
  return {halfAt(block) * float(2 * nibbleOf(block + 66, group) + 1) / 8};
}

Factors readIQ2_S(const uint8_t *block, int group, uint8_t *numbers) {
  for (int i = 0; i < 2; ++i) {
    int at = 2 * group + i;
    int high = block[66 + at / 4] >> (at % 4 * 2) & 3;
    putEight(kRowsIQ2_S[block[2 + at] | high << 8], block[34 + at],
             numbers + 8 * i);
  }
  return {halfAt(block) * float(2 * nibbleOf(block + 74, group) + 1) / 8};
}

Factors readIQ3_XXS(const uint8_t *block, int group, uint8_t *numbers) {
  static constexpr int sizes[] = {4, 12, 20, 28, 36, 44, 52, 62};
  const uint8_t *rows = block + 2 + 8 * group;
  uint32_t rest = wordAt(block + 66 + 4 * group);
  for (int i = 0; i < 8; ++i)
    putFour(kRowsIQ3_XXS[rows[i]], sizes,
            evenSigns(rest >> (i / 2 * 7)) >> (i % 2 * 4), numbers + 4 * i);
  return {halfAt(block) * float(2 * (rest >> 28) + 1) / 4};
}

Factors readIQ3_S(const uint8_t *block, int group, uint8_t *numbers) {
  static constexpr int sizes[] = {1, 3, 5, 7, 9, 11, 13, 15};
  const uint8_t *rows = block + 2 + 8 * group, *signs = block + 74 + 4 * group;
  for (int i = 0; i < 8; ++i)
    putFour(kRowsIQ3_S[rows[i] | (block[66 + group] >> i & 1) << 8], sizes,
            nibbleOf(signs, i), numbers + 4 * i);
  return {halfAt(block) * float(2 * nibbleOf(block + 106, group) + 1)};
}

/// Eight times -1, 0 or 1, and one more or less.
static void putThirds(uint16_t row, bool less, uint8_t *numbers) {
  static constexpr int values[] = {-8, 0, 8, 0};
  for (int j = 0; j < 8; ++j)
    numbers[j] =
        uint8_t(kMiddle + values[row >> (2 * j) & 3] + (less ? -1 : 1));
}

Factors readIQ1_S(const uint8_t *block, int group, uint8_t *numbers) {
  uint32_t rest = shortAt(block + 34 + 2 * group);
  for (int i = 0; i < 4; ++i)
    putThirds(kRowsIQ1[block[2 + 4 * group + i] | (rest >> (3 * i) & 7) << 8],
              rest >> 15, numbers + 8 * i);
  return {halfAt(block) * float(2 * (rest >> 12 & 7) + 1) / 8};
}

/// The scale of the block is four bits of each of four words.
Factors readIQ1_M(const uint8_t *block, int group, uint8_t *numbers) {
  const uint8_t *scales = block + 48;
  uint32_t scale = 0;
  for (int i = 0; i < 4; ++i)
    scale |= uint32_t(shortAt(scales + 2 * i) >> 12) << (4 * i);
  for (int i = 0; i < 2; ++i) {
    int at = 2 * group + i, high = block[32 + group] >> (4 * i);
    putThirds(kRowsIQ1[block[at] | (high & 7) << 8], high & 8, numbers + 8 * i);
  }
  int step = shortAt(scales + group / 4 * 2) >> (group % 4 * 3) & 7;
  return {runtime::halfToFloat(uint16_t(scale)) * float(2 * step + 1) / 8};
}

Factors readIQ4_XS(const uint8_t *block, int group, uint8_t *numbers) {
  int low = nibbleOf(block + 4, group);
  int high = shortAt(block + 2) >> (2 * group) & 3;
  for (int i = 0; i < 32; ++i)
    numbers[i] =
        uint8_t(kMiddle + kUnevenSteps[nibble(block + 8 + 16 * group, i)]);
  return {halfAt(block) * float((low | high << 4) - 32)};
}

/// Five digits to the base of three are a fraction of 256, rounded up, whose
/// digits come out on top as it is multiplied. What is kept are the numbers of
/// 4 bits whose middle is 8.
Factors readTQ1_0(const uint8_t *block, int group, uint8_t *numbers) {
  static constexpr int powers[] = {1, 3, 9, 27, 81};
  for (int j = 0; j < 32; ++j) {
    int i = 32 * group + j, byte, digit;
    if (i < 160) {
      byte = i % 32;
      digit = i / 32;
    } else if (i < 240) {
      byte = 32 + (i - 160) % 16;
      digit = (i - 160) / 16;
    } else {
      byte = 48 + (i - 240) % 4;
      digit = (i - 240) / 4;
    }
    int rest = block[byte] * powers[digit] & 255;
    numbers[j] = uint8_t((rest * 3 >> 8) - 1 + 8);
  }
  return {halfAt(block + 52)};
}

Factors readTQ2_0(const uint8_t *block, int group, uint8_t *numbers) {
  for (int j = 0; j < 32; ++j)
    numbers[j] = uint8_t(pair(block, 32 * group + j) - 1 + 8);
  return {halfAt(block + 64)};
}

} // namespace attune::gguf

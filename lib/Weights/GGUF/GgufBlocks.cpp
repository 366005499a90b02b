//===- GgufBlocks.cpp - The blocks that GGUF keeps values in ----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each block stands for neighbours in a row: 32 of them, or 256 in types "K".
// With d and m in f16, q a number of few bits and s a scale within the block,
//
//   Q4_0, Q5_0, Q8_0   d q            Q2_K, Q4_K, Q5_K   d s q - m t
//   Q4_1, Q5_1         d q + m        Q3_K, Q6_K         d s q
//   IQ4_NL             d table[q]     IQ4_XS             d s table[q]
//   Q8_K               d q            MXFP4              2^(e - 127) e2m1[q]
//
// All products are exact in f32; a sum is rounded once. Where a byte holds two
// numbers of a block of 32, the lower halves are the first 16 values.
//
// So each group of neighbours is numbers with a scale and a zero point, in one
// of the forms that kernels take. A sum `d q + m` is `d (q + m / d)`, whose
// zero point is rounded once, too, to as many digits as the sum.
//
//===----------------------------------------------------------------------===//

#include "GgufBlocks.h"

#include "../PlainNumbers.h"
#include "attune/Weights/GgufFile.h"

#include <algorithm>
#include <cmath>

namespace attune::gguf {

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

static Factors readQ4_0(const uint8_t *block, int, uint8_t *numbers) {
  for (int i = 0; i < 32; ++i)
    numbers[i] = uint8_t(nibble(block + 2, i));
  return {halfAt(block)};
}

static Factors readQ4_1(const uint8_t *block, int, uint8_t *numbers) {
  for (int i = 0; i < 32; ++i)
    numbers[i] = uint8_t(nibble(block + 4, i));
  return {halfAt(block), halfAt(block + 2)};
}

/// Five bits, of which the uppermost are in a word of their own.
static void readFive(const uint8_t *high, const uint8_t *quants,
                     uint8_t *numbers) {
  uint32_t bits = wordAt(high);
  for (int i = 0; i < 32; ++i)
    numbers[i] = uint8_t(nibble(quants, i) | int(bits >> i & 1) << 4);
}

static Factors readQ5_0(const uint8_t *block, int, uint8_t *numbers) {
  readFive(block + 2, block + 6, numbers);
  for (int i = 0; i < 32; ++i)
    numbers[i] = uint8_t(numbers[i] - 16 + 128);
  return {halfAt(block)};
}

static Factors readQ5_1(const uint8_t *block, int, uint8_t *numbers) {
  readFive(block + 4, block + 8, numbers);
  return {halfAt(block), halfAt(block + 2)};
}

static Factors readQ8_0(const uint8_t *block, int, uint8_t *numbers) {
  for (int i = 0; i < 32; ++i)
    numbers[i] = block[2 + i] ^ 128;
  return {halfAt(block)};
}

static Factors readIQ4_NL(const uint8_t *block, int, uint8_t *numbers) {
  for (int i = 0; i < 32; ++i)
    numbers[i] = uint8_t(kUnevenSteps[nibble(block + 2, i)] + 128);
  return {halfAt(block)};
}

static Factors readQ8_1(const uint8_t *block, int, uint8_t *numbers) {
  for (int i = 0; i < 32; ++i)
    numbers[i] = block[4 + i] ^ 128;
  return {halfAt(block)};
}

/// The scale is of f32.
static Factors readQ8_K(const uint8_t *block, int group, uint8_t *numbers) {
  for (int i = 0; i < 32; ++i)
    numbers[i] = block[4 + 32 * group + i] ^ 128;
  float scale;
  std::memcpy(&scale, block, 4);
  return {scale};
}

/// The microscaling format of OCP: a power of two for 32 numbers e2m1.
static Factors readMXFP4(const uint8_t *block, int, uint8_t *numbers) {
  for (int i = 0; i < 32; ++i)
    numbers[i] = uint8_t(nibble(block + 1, i));
  return {std::ldexp(1.0f, int(block[0]) - 127)};
}

/// Scales that are steps of an f16, and minima of another.
static Factors inLevels(float factor, int steps, float leastFactor = 0,
                        int leastSteps = 0) {
  Factors result(factor * float(steps), -leastFactor * float(leastSteps));
  result.levels = {factor, leastFactor, int8_t(steps), int8_t(leastSteps)};
  return result;
}

/// Sixteen scales and minima of 4 bits each, then 2-bit numbers.
static Factors readQ2_K(const uint8_t *block, int group, uint8_t *numbers) {
  float d = halfAt(block + 80), m = halfAt(block + 82);
  uint8_t scales = block[group];
  for (int i = 0; i < 16; ++i)
    numbers[i] = uint8_t(pair(block + 16, 16 * group + i));
  return inLevels(d, scales & 15, m, scales >> 4);
}

/// The third bit of value i is bit i / 32 of byte i % 32 of the mask; where it
/// is not set 4 is subtracted.
static Factors readQ3_K(const uint8_t *block, int group, uint8_t *numbers) {
  const uint8_t *packed = block + 96;
  int low = group < 8 ? packed[group] & 15 : packed[group - 8] >> 4;
  int high = packed[8 + group % 4] >> (group / 4 * 2) & 3;
  for (int j = 0; j < 16; ++j) {
    int i = 16 * group + j;
    int q = pair(block + 32, i) - (block[i % 32] >> (i / 32) & 1 ? 0 : 4);
    numbers[j] = uint8_t(q + 32);
  }
  return inLevels(halfAt(block + 108), (low | high << 4) - 32);
}

/// Eight scales and eight minima of 6 bits in 12 bytes: those of group `j`.
static std::pair<int, int> scaleAndLeast(const uint8_t *packed, int j) {
  if (j < 4)
    return {packed[j] & 63, packed[j + 4] & 63};
  return {(packed[j + 4] & 15) | packed[j - 4] >> 6 << 4,
          packed[j + 4] >> 4 | packed[j] >> 6 << 4};
}

static Factors readQ4_K(const uint8_t *block, int group, uint8_t *numbers) {
  auto [scale, least] = scaleAndLeast(block + 4, group);
  const uint8_t *quants = block + 16 + group / 2 * 32;
  for (int i = 0; i < 32; ++i)
    numbers[i] = quants[i] >> (group % 2 * 4) & 15;
  return inLevels(halfAt(block), scale, halfAt(block + 2), least);
}

static Factors readQ5_K(const uint8_t *block, int group, uint8_t *numbers) {
  auto [scale, least] = scaleAndLeast(block + 4, group);
  const uint8_t *quants = block + 48 + group / 2 * 32, *high = block + 16;
  for (int i = 0; i < 32; ++i)
    numbers[i] = uint8_t((quants[i] >> (group % 2 * 4) & 15) |
                         (high[i] >> group & 1) << 4);
  return inLevels(halfAt(block), scale, halfAt(block + 2), least);
}

/// Every 128 values have their 4 lower bits in 64 bytes, 2 upper bits in 32.
static Factors readQ6_K(const uint8_t *block, int group, uint8_t *numbers) {
  for (int j = 0; j < 16; ++j) {
    int i = 16 * group + j, half = i / 128, part = i / 32 % 4;
    int low = block[half * 64 + i % 64] >> (part / 2 * 4) & 15;
    int high = block[128 + half * 32 + i % 32] >> (part * 2) & 3;
    numbers[j] = uint8_t(low | high << 4);
  }
  auto scale = static_cast<int8_t>(block[192 + group]);
  return inLevels(halfAt(block + 208), scale);
}

//===----------------------------------------------------------------------===//
// Encodings
//===----------------------------------------------------------------------===//

namespace {
class Blocks final : public TensorEncoding {
public:
  Blocks(const char *label, int64_t values, int64_t bytes, StoredForm stored,
         ReadGroup readNumbers)
      : label(label), values(values), bytes(bytes), stored(stored),
        readNumbers(readNumbers) {}

  const char *name() const override { return label; }

  void decode(const CheckpointTensor &tensor, int64_t first, int64_t count,
              float *out) const override {
    static constexpr float floats[] = {0, 0.5,  1,  1.5,  2,  3,  4,  6,
                                       0, -0.5, -1, -1.5, -2, -3, -4, -6};
    uint8_t numbers[kMostNumbers];
    auto middle = float(stored.middle());
    while (count > 0) {
      int64_t skip = first % stored.group;
      int64_t taken = std::min(stored.group - skip, count);
      Factors by = read(tensor, first - skip, numbers);
      for (int64_t i = 0; i < taken; ++i) {
        uint8_t number = numbers[skip + i];
        out[i] = stored.areFloats() ? by.scale * floats[number]
                 : stored.zeros     ? by.scale * float(number) + by.least
                                    : by.scale * (float(number) - middle);
      }
      out += taken;
      first += taken;
      count -= taken;
    }
  }

  StoredForm form() const override { return stored; }

  GroupScale readGroup(const CheckpointTensor &tensor, int64_t first,
                       uint8_t *numbers) const override {
    Factors by = read(tensor, first, numbers);
    if (!stored.zeros)
      return {by.scale};
    if (by.scale != 0)
      return {by.scale, -by.least / by.scale};
    // All are the same.
    std::fill_n(numbers, stored.group, uint8_t(0));
    return {-by.least, by.least == 0 ? 0.0f : 1.0f};
  }

  GroupLevels readLevels(const CheckpointTensor &tensor,
                         int64_t first) const override {
    uint8_t numbers[kMostNumbers];
    return read(tensor, first, numbers).levels;
  }

private:
  static constexpr int64_t kMostNumbers = 32;

  Factors read(const CheckpointTensor &tensor, int64_t first,
               uint8_t *numbers) const {
    return readNumbers(tensor.data + first / values * bytes,
                       int(first % values / stored.group), numbers);
  }

  const char *label;
  int64_t values, bytes;
  StoredForm stored;
  ReadGroup readNumbers;
};
} // namespace

static StoredForm inTwoLevels(StoredForm form) {
  form.scales = ScaleType::Byte;
  return form;
}

const BlockType *findBlockType(uint32_t number) {
  using runtime::DType;
  constexpr ScaleType single = ScaleType::Single;
  static const StoredForm bytes = StoredForm::plain(8, 32),
                          shortBytes = StoredForm::plain(8, 16),
                          ofZeros = StoredForm::withZeros(8, 32, single),
                          shortOfZeros = StoredForm::withZeros(8, 16, single),
                          nibbles = StoredForm::plain(4, 32),
                          levels = inTwoLevels(shortBytes),
                          levelsOfZeros = inTwoLevels(ofZeros),
                          shortLevelsOfZeros = inTwoLevels(shortOfZeros),
                          nibblesOfZeros = StoredForm::withZeros(4, 32, single),
                          nibblesInLevels = inTwoLevels(nibblesOfZeros);
  static const Blocks q4_0("Q4_0", 32, 18, nibbles, readQ4_0),
      q4_1("Q4_1", 32, 20, nibblesOfZeros, readQ4_1),
      q5_0("Q5_0", 32, 22, bytes, readQ5_0),
      q5_1("Q5_1", 32, 24, ofZeros, readQ5_1),
      q8_0("Q8_0", 32, 34, bytes, readQ8_0),
      q2_K("Q2_K", 256, 84, shortLevelsOfZeros, readQ2_K),
      q3_K("Q3_K", 256, 110, levels, readQ3_K),
      q4_K("Q4_K", 256, 144, nibblesInLevels, readQ4_K),
      q5_K("Q5_K", 256, 176, levelsOfZeros, readQ5_K),
      q6_K("Q6_K", 256, 210, levels, readQ6_K),
      iq4_nl("IQ4_NL", 32, 18, bytes, readIQ4_NL),
      mxfp4("MXFP4", 32, 17, StoredForm::floats(), readMXFP4),
      q8_1("Q8_1", 32, 36, bytes, readQ8_1),
      q8_K("Q8_K", 256, 292, bytes, readQ8_K),
      iq1_s("IQ1_S", 256, 50, bytes, readIQ1_S),
      iq1_m("IQ1_M", 256, 56, shortBytes, readIQ1_M),
      iq2_xxs("IQ2_XXS", 256, 66, bytes, readIQ2_XXS),
      iq2_xs("IQ2_XS", 256, 74, shortBytes, readIQ2_XS),
      iq2_s("IQ2_S", 256, 82, shortBytes, readIQ2_S),
      iq3_xxs("IQ3_XXS", 256, 98, bytes, readIQ3_XXS),
      iq3_s("IQ3_S", 256, 110, bytes, readIQ3_S),
      iq4_xs("IQ4_XS", 256, 136, bytes, readIQ4_XS),
      tq1_0("TQ1_0", 256, 54, nibbles, readTQ1_0),
      tq2_0("TQ2_0", 256, 66, nibbles, readTQ2_0);
  static const PlainNumbers<int8_t> i8("I8");
  static const PlainNumbers<int16_t> i16("I16");
  static const PlainNumbers<int32_t> i32("I32");
  static const PlainNumbers<int64_t> i64("I64");
  static const PlainNumbers<double> f64("F64");
  static const BlockType types[] = {
      {0, "F32", 1, 4, nullptr, DType::F32, true},
      {1, "F16", 1, 2, nullptr, DType::F16, true},
      {30, "BF16", 1, 2, nullptr, DType::BF16, true},
      {2, "Q4_0", 32, 18, &q4_0, DType::F32, true},
      {3, "Q4_1", 32, 20, &q4_1, DType::F32, true},
      {6, "Q5_0", 32, 22, &q5_0, DType::F32, true},
      {7, "Q5_1", 32, 24, &q5_1, DType::F32, true},
      {8, "Q8_0", 32, 34, &q8_0, DType::F32, true},
      {10, "Q2_K", 256, 84, &q2_K, DType::F32, true},
      {11, "Q3_K", 256, 110, &q3_K, DType::F32, true},
      {12, "Q4_K", 256, 144, &q4_K, DType::F32, true},
      {13, "Q5_K", 256, 176, &q5_K, DType::F32, true},
      {14, "Q6_K", 256, 210, &q6_K, DType::F32, true},
      {20, "IQ4_NL", 32, 18, &iq4_nl, DType::F32, true},
      // A power of two times two bits: eight bits of exponent suffice.
      {39, "MXFP4", 32, 17, &mxfp4, DType::BF16, true},
      {9, "Q8_1", 32, 36, &q8_1, DType::F32, true},
      {15, "Q8_K", 256, 292, &q8_K, DType::F32, true},
      {16, "IQ2_XXS", 256, 66, &iq2_xxs, DType::F32, true},
      {17, "IQ2_XS", 256, 74, &iq2_xs, DType::F32, true},
      {18, "IQ3_XXS", 256, 98, &iq3_xxs, DType::F32, true},
      {19, "IQ1_S", 256, 50, &iq1_s, DType::F32, true},
      {21, "IQ3_S", 256, 110, &iq3_s, DType::F32, true},
      {22, "IQ2_S", 256, 82, &iq2_s, DType::F32, true},
      {23, "IQ4_XS", 256, 136, &iq4_xs, DType::F32, true},
      {29, "IQ1_M", 256, 56, &iq1_m, DType::F32, true},
      {34, "TQ1_0", 256, 54, &tq1_0, DType::F32, true},
      {35, "TQ2_0", 256, 66, &tq2_0, DType::F32, true},
      {24, "I8", 1, 1, &i8, DType::F32, true},
      {25, "I16", 1, 2, &i16, DType::F32, true},
      {26, "I32", 1, 4, &i32, DType::F32, true},
      {27, "I64", 1, 8, &i64, DType::F32, true},
      {28, "F64", 1, 8, &f64, DType::F32, true},
      // Sizes do not matter for what is not read. These were given up.
      {4, "Q4_2", 32, 1, nullptr, DType::F32, false},
      {5, "Q4_3", 32, 1, nullptr, DType::F32, false},
      {31, "Q4_0_4_4", 32, 1, nullptr, DType::F32, false},
      {32, "Q4_0_4_8", 32, 1, nullptr, DType::F32, false},
      {33, "Q4_0_8_8", 32, 1, nullptr, DType::F32, false},
      {36, "IQ4_NL_4_4", 32, 1, nullptr, DType::F32, false},
      {37, "IQ4_NL_4_8", 32, 1, nullptr, DType::F32, false},
      {38, "IQ4_NL_8_8", 32, 1, nullptr, DType::F32, false},
      {40, "NVFP4", 64, 36, nullptr, DType::F32, false},
      {41, "Q1_0", 128, 18, nullptr, DType::F32, false},
      {42, "Q2_0", 64, 18, nullptr, DType::F32, false},
  };
  for (const BlockType &type : types)
    if (type.number == number)
      return &type;
  return nullptr;
}

} // namespace attune::gguf

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
//   IQ4_NL             d table[q]     MXFP4              2^(e - 127) e2m1[q]
//
// All products are exact in f32; a sum is rounded once. Where a byte holds two
// numbers of a block of 32, the lower halves are the first 16 values.
//
//===----------------------------------------------------------------------===//

#include "attune/Weights/GgufFile.h"

#include "attune/Runtime/DType.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace attune::gguf {

static float halfAt(const uint8_t *data) {
  uint16_t bits;
  std::memcpy(&bits, data, 2);
  return runtime::halfToFloat(bits);
}

static uint32_t wordAt(const uint8_t *data) {
  uint32_t bits;
  std::memcpy(&bits, data, 4);
  return bits;
}

/// The number at place `i` of 32, of which two are in each of 16 bytes.
static int nibble(const uint8_t *quants, int i) {
  return i < 16 ? quants[i] & 15 : quants[i - 16] >> 4;
}

//===----------------------------------------------------------------------===//
// Blocks of 32
//===----------------------------------------------------------------------===//

static void decodeQ4_0(const uint8_t *block, float *out) {
  float d = halfAt(block);
  for (int i = 0; i < 32; ++i)
    out[i] = d * float(nibble(block + 2, i) - 8);
}

static void decodeQ4_1(const uint8_t *block, float *out) {
  float d = halfAt(block), m = halfAt(block + 2);
  for (int i = 0; i < 32; ++i)
    out[i] = d * float(nibble(block + 4, i)) + m;
}

static void decodeQ5_0(const uint8_t *block, float *out) {
  float d = halfAt(block);
  uint32_t high = wordAt(block + 2);
  for (int i = 0; i < 32; ++i) {
    int q = nibble(block + 6, i) | int(high >> i & 1) << 4;
    out[i] = d * float(q - 16);
  }
}

static void decodeQ5_1(const uint8_t *block, float *out) {
  float d = halfAt(block), m = halfAt(block + 2);
  uint32_t high = wordAt(block + 4);
  for (int i = 0; i < 32; ++i) {
    int q = nibble(block + 8, i) | int(high >> i & 1) << 4;
    out[i] = d * float(q) + m;
  }
}

static void decodeQ8_0(const uint8_t *block, float *out) {
  float d = halfAt(block);
  for (int i = 0; i < 32; ++i)
    out[i] = d * float(static_cast<int8_t>(block[2 + i]));
}

static void decodeIQ4_NL(const uint8_t *block, float *out) {
  static constexpr int8_t table[] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                     1,    13,   25,  38,  53,  69,  89,  113};
  float d = halfAt(block);
  for (int i = 0; i < 32; ++i)
    out[i] = d * float(table[nibble(block + 2, i)]);
}

/// The microscaling format of OCP: a power of two for 32 numbers e2m1, of which
/// the table has the doubles.
static void decodeMXFP4(const uint8_t *block, float *out) {
  static constexpr int8_t table[] = {0, 1,  2,  3,  4,  6,  8,  12,
                                     0, -1, -2, -3, -4, -6, -8, -12};
  float scale = std::ldexp(1.0f, int(block[0]) - 128);
  for (int i = 0; i < 32; ++i)
    out[i] = scale * float(table[nibble(block + 1, i)]);
}

//===----------------------------------------------------------------------===//
// Blocks of 256
//===----------------------------------------------------------------------===//

/// Sixteen scales and minima of 4 bits each, then 2-bit numbers: of 128 values
/// the first 32 are the lowest bits of 32 bytes.
static void decodeQ2_K(const uint8_t *block, float *out) {
  const uint8_t *quants = block + 16;
  float d = halfAt(block + 80), m = halfAt(block + 82);
  for (int i = 0; i < 256; ++i) {
    uint8_t scales = block[i / 16];
    int q = quants[i / 128 * 32 + i % 32] >> (i / 32 % 4 * 2) & 3;
    out[i] = d * float(scales & 15) * float(q) - m * float(scales >> 4);
  }
}

/// The third bit of value i is bit i / 32 of byte i % 32 of the mask; where it
/// is not set 4 is subtracted.
static void decodeQ3_K(const uint8_t *block, float *out) {
  const uint8_t *quants = block + 32, *packed = block + 96;
  float d = halfAt(block + 108);
  int scales[16];
  for (int j = 0; j < 16; ++j) {
    int low = j < 8 ? packed[j] & 15 : packed[j - 8] >> 4;
    int high = packed[8 + j % 4] >> (j / 4 * 2) & 3;
    scales[j] = (low | high << 4) - 32;
  }
  for (int i = 0; i < 256; ++i) {
    int q = quants[i / 128 * 32 + i % 32] >> (i / 32 % 4 * 2) & 3;
    q -= block[i % 32] >> (i / 32) & 1 ? 0 : 4;
    out[i] = d * float(scales[i / 16]) * float(q);
  }
}

/// Eight scales and eight minima of 6 bits in 12 bytes.
static void unpackScales(const uint8_t *packed, int *scales, int *minima) {
  for (int j = 0; j < 4; ++j) {
    scales[j] = packed[j] & 63;
    minima[j] = packed[j + 4] & 63;
    scales[j + 4] = (packed[j + 8] & 15) | packed[j] >> 6 << 4;
    minima[j + 4] = packed[j + 8] >> 4 | packed[j + 4] >> 6 << 4;
  }
}

static void decodeQ4_K(const uint8_t *block, float *out) {
  float d = halfAt(block), m = halfAt(block + 2);
  int scales[8], minima[8];
  unpackScales(block + 4, scales, minima);
  for (int j = 0; j < 8; ++j) {
    const uint8_t *quants = block + 16 + j / 2 * 32;
    float scale = d * float(scales[j]), least = m * float(minima[j]);
    for (int i = 0; i < 32; ++i)
      out[32 * j + i] = scale * float(quants[i] >> (j % 2 * 4) & 15) - least;
  }
}

static void decodeQ5_K(const uint8_t *block, float *out) {
  float d = halfAt(block), m = halfAt(block + 2);
  int scales[8], minima[8];
  unpackScales(block + 4, scales, minima);
  for (int j = 0; j < 8; ++j) {
    const uint8_t *quants = block + 48 + j / 2 * 32, *high = block + 16;
    float scale = d * float(scales[j]), least = m * float(minima[j]);
    for (int i = 0; i < 32; ++i) {
      int q = (quants[i] >> (j % 2 * 4) & 15) | (high[i] >> j & 1) << 4;
      out[32 * j + i] = scale * float(q) - least;
    }
  }
}

/// Of each 128 values four lower bits are in 64 bytes and two upper ones in 32.
static void decodeQ6_K(const uint8_t *block, float *out) {
  const auto *scales = reinterpret_cast<const int8_t *>(block + 192);
  float d = halfAt(block + 208);
  for (int i = 0; i < 256; ++i) {
    int half = i / 128, part = i / 32 % 4;
    int low = block[half * 64 + i % 64] >> (part / 2 * 4) & 15;
    int high = block[128 + half * 32 + i % 32] >> (part * 2) & 3;
    out[i] = d * float(scales[i / 16]) * float((low | high << 4) - 32);
  }
}

//===----------------------------------------------------------------------===//
// Encodings
//===----------------------------------------------------------------------===//

namespace {
class Blocks final : public TensorEncoding {
public:
  using Decode = void (*)(const uint8_t *block, float *out);
  static constexpr int64_t kMostValues = 256;

  Blocks(const char *label, int64_t values, int64_t bytes, Decode decodeBlock,
         int64_t bits = 0)
      : label(label), values(values), bytes(bytes), bits(bits),
        decodeBlock(decodeBlock) {}

  const char *name() const override { return label; }

  void decode(const CheckpointTensor &tensor, int64_t first, int64_t count,
              float *out) const override {
    float whole[kMostValues];
    const uint8_t *block = tensor.data + first / values * bytes;
    for (int64_t skip = first % values; count > 0; block += bytes, skip = 0) {
      int64_t taken = std::min(values - skip, count);
      if (taken == values) {
        decodeBlock(block, out);
      } else {
        decodeBlock(block, whole);
        std::copy_n(whole + skip, taken, out);
      }
      out += taken;
      count -= taken;
    }
  }

  StoredForm form() const override {
    return bits ? StoredForm{bits, values} : StoredForm{};
  }

  float readGroup(const CheckpointTensor &tensor, int64_t first,
                  int8_t *numbers) const override {
    const uint8_t *block = tensor.data + first / values * bytes;
    for (int i = 0; i < int(values); ++i)
      numbers[i] = static_cast<int8_t>(bits == 4 ? nibble(block + 2, i) - 8
                                                 : block[2 + i]);
    return halfAt(block);
  }

private:
  const char *label;
  int64_t values, bytes, bits;
  Decode decodeBlock;
};
} // namespace

const BlockType *findBlockType(uint32_t number) {
  using runtime::DType;
  static const Blocks q4_0("Q4_0", 32, 18, decodeQ4_0, 4),
      q4_1("Q4_1", 32, 20, decodeQ4_1), q5_0("Q5_0", 32, 22, decodeQ5_0),
      q5_1("Q5_1", 32, 24, decodeQ5_1), q8_0("Q8_0", 32, 34, decodeQ8_0, 8),
      q2_K("Q2_K", 256, 84, decodeQ2_K), q3_K("Q3_K", 256, 110, decodeQ3_K),
      q4_K("Q4_K", 256, 144, decodeQ4_K), q5_K("Q5_K", 256, 176, decodeQ5_K),
      q6_K("Q6_K", 256, 210, decodeQ6_K),
      iq4_nl("IQ4_NL", 32, 18, decodeIQ4_NL),
      mxfp4("MXFP4", 32, 17, decodeMXFP4);
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
      // Sizes do not matter for what is not read.
      {9, "Q8_1", 32, 36, nullptr, DType::F32, false},
      {15, "Q8_K", 256, 292, nullptr, DType::F32, false},
      {16, "IQ2_XXS", 256, 66, nullptr, DType::F32, false},
      {17, "IQ2_XS", 256, 74, nullptr, DType::F32, false},
      {18, "IQ3_XXS", 256, 98, nullptr, DType::F32, false},
      {19, "IQ1_S", 256, 50, nullptr, DType::F32, false},
      {21, "IQ3_S", 256, 110, nullptr, DType::F32, false},
      {22, "IQ2_S", 256, 82, nullptr, DType::F32, false},
      {23, "IQ4_XS", 256, 136, nullptr, DType::F32, false},
      {24, "I8", 1, 1, nullptr, DType::I8, false},
      {25, "I16", 1, 2, nullptr, DType::I16, false},
      {26, "I32", 1, 4, nullptr, DType::I32, false},
      {27, "I64", 1, 8, nullptr, DType::I64, false},
      {28, "F64", 1, 8, nullptr, DType::F64, false},
      {29, "IQ1_M", 256, 56, nullptr, DType::F32, false},
      {34, "TQ1_0", 256, 54, nullptr, DType::F32, false},
      {35, "TQ2_0", 256, 66, nullptr, DType::F32, false},
      {40, "NVFP4", 64, 36, nullptr, DType::F32, false},
  };
  for (const BlockType &type : types)
    if (type.number == number)
      return &type;
  return nullptr;
}

} // namespace attune::gguf

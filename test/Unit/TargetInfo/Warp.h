//===- Warp.h - Instructions of tensor cores by their definition ----------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_TEST_UNIT_TARGETINFO_WARP_H
#define ATTUNE_TEST_UNIT_TARGETINFO_WARP_H

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

/// What the 32 lanes of a warp have of a matrix, element by element.
template <size_t count> using Held = std::array<std::array<double, count>, 32>;

/// ldmatrix of up to four matrices of 16 bits: lane `l` names element
/// `place(l)`, at which row l % 8 of matrix l / 8 starts. Pairs of elements of
/// one matrix after the other.
template <size_t count>
Held<2 * count> ldmatrix(const std::vector<double> &memory,
                         const std::function<int64_t(int64_t)> &place,
                         bool transpose) {
  Held<2 * count> held;
  for (int64_t lane = 0; lane < 32; ++lane)
    for (int64_t matrix = 0; matrix < int64_t(count); ++matrix)
      for (int64_t i = 0; i < 2; ++i) {
        int64_t row = lane / 4, column = lane % 4 * 2 + i;
        if (transpose)
          std::swap(row, column);
        held[lane][2 * matrix + i] =
            memory.at(place(8 * matrix + row) + column);
      }
  return held;
}

/// mma.m16n8k16 of 16 bits (PTX manual, 9.7.14.5.8): `sums` += a b.
inline void mma16(const Held<8> &a, const Held<4> &b, Held<4> &sums) {
  double left[16][16], right[16][8];
  for (int64_t lane = 0; lane < 32; ++lane) {
    int64_t group = lane >> 2, member = lane % 4;
    for (int64_t i = 0; i < 8; ++i)
      left[i < 2 || (i >= 4 && i < 6) ? group : group + 8]
          [member * 2 + (i & 1) + (i >= 4 ? 8 : 0)] = a[lane][i];
    for (int64_t i = 0; i < 4; ++i)
      right[member * 2 + (i & 1) + (i >= 2 ? 8 : 0)][group] = b[lane][i];
  }
  for (int64_t lane = 0; lane < 32; ++lane)
    for (int64_t i = 0; i < 4; ++i)
      for (int64_t k = 0; k < 16; ++k)
        sums[lane][i] += left[(lane >> 2) + (i < 2 ? 0 : 8)][k] *
                         right[k][lane % 4 * 2 + (i & 1)];
}

/// mma.m16n8k8 of tf32 (PTX manual, 9.7.14.5.6).
inline void mma8(const Held<4> &a, const Held<2> &b, Held<4> &sums) {
  double left[16][8], right[8][8];
  for (int64_t lane = 0; lane < 32; ++lane) {
    int64_t group = lane >> 2, member = lane % 4;
    for (int64_t i = 0; i < 4; ++i)
      left[i == 0 || i == 2 ? group : group + 8][i < 2 ? member : member + 4] =
          a[lane][i];
    for (int64_t i = 0; i < 2; ++i)
      right[i == 0 ? member : member + 4][group] = b[lane][i];
  }
  for (int64_t lane = 0; lane < 32; ++lane)
    for (int64_t i = 0; i < 4; ++i)
      for (int64_t k = 0; k < 8; ++k)
        sums[lane][i] += left[(lane >> 2) + (i < 2 ? 0 : 8)][k] *
                         right[k][lane % 4 * 2 + (i & 1)];
}

/// The byte of shared memory from which wgmma takes an element of 16 bits, by
/// the canonical layouts (PTX manual, 9.7.15.5.1): `row` counts rows of A or
/// columns of B; `across` says that these are next to each other in memory.
/// There is no swizzle, or that of 128 bytes.
inline int64_t wgmmaElement(uint64_t descriptor, int64_t row, int64_t k,
                            bool across) {
  auto field = [&](int at) { return int64_t(descriptor >> at & 0x3fff) << 4; };
  int64_t start = field(0), leading = field(16), stride = field(32);
  if (descriptor >> 62 == 0)
    // Matrices of eight times 16 bytes, one behind the other.
    return start + row / 8 * stride + k / 8 * leading +
           (across ? k % 8 * 16 + row % 8 * 2 : row % 8 * 16 + k % 8 * 2);
  int64_t address = across ? start + row / 64 * leading + k / 8 * stride +
                                 k % 8 * 128 + row % 64 * 2
                           : start + row / 8 * stride + row % 8 * 128 + k * 2;
  return address ^ ((address >> 7 & 7) << 4);
}

/// A matrix whose elements are small integers and all different in a way.
class Numbers {
public:
  Numbers(int64_t rows, int64_t columns) : columns(columns) {
    for (int64_t i = 0; i < rows * columns; ++i)
      values.push_back(double(int64_t(i * 2654435761u >> 7) % 251 - 125));
  }
  double at(int64_t row, int64_t column) const {
    return values.at(row * columns + column);
  }

private:
  int64_t columns;
  std::vector<double> values;
};

#endif // ATTUNE_TEST_UNIT_TARGETINFO_WARP_H

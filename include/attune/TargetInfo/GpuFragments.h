//===- GpuFragments.h - A lane's elements of a matrix -----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// As GpuTiles.h. Lane 4 * group + member of a warp has some elements of each
// matrix of an mma (PTX manual, 9.7.14.5); A has 16 rows, B eight columns, and
// the depth is 16, or 8 of tf32.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_TARGETINFO_GPUFRAGMENTS_H
#define ATTUNE_TARGETINFO_GPUFRAGMENTS_H

#include "attune/TargetInfo/GpuTiles.h"

namespace attune {

template <typename N> struct PlaceIn {
  N row, column;
};

//===----------------------------------------------------------------------===//
// mma.m16n8k16
//===----------------------------------------------------------------------===//

/// The place of the first element of each pair of A, which is one register and
/// runs along the columns.
template <typename N> constexpr PlaceIn<N> placeInA(N lane, int64_t pair) {
  return {lane / 4 + 8 * (pair & 1), lane % 4 * 2 + 8 * (pair >> 1)};
}
/// The same of sums, and of those of mma.m16n8k8.
template <typename N> constexpr PlaceIn<N> placeInSum(N lane, int64_t pair) {
  return {lane / 4 + 8 * pair, lane % 4 * 2};
}

/// Sums of two matrices of eight columns are A of a product whose depth these
/// columns are: which matrix and which pair of it is pair `pair` of A.
struct SumOfA {
  int64_t matrix, pair;
};
constexpr SumOfA sumOfA(int64_t pair) { return {pair / 2, pair % 2}; }

// Four matrices of eight rows of 16 bytes come from one ldmatrix, of 16 rows
// and of two chunks. Lanes name the rows of one matrix after the other; these
// are the row and the chunk that a lane names.

/// The matrices are the pairs of A; or, transposed, the two registers of B of
/// the eight columns that the first chunk has, then those of the second. Rows
/// of B are rows of the depth, then.
template <typename N> constexpr PlaceIn<N> namedDown(N lane) {
  return {lane / 8 % 2 * 8 + lane % 8, lane / 16};
}
/// One ldmatrix loads these four matrices, each as (rows of the columns of B,
/// chunk of the depth): (0-7, 0), (0-7, 1), (8-15, 0), (8-15, 1). They are both
/// registers of B for the first eight columns, then both for the next eight.
/// Rows run along the depth.
template <typename N> constexpr PlaceIn<N> namedAcross(N lane) {
  return {lane / 16 * 8 + lane % 8, lane / 8 % 2};
}
/// The matrix that is register `number` of B, of columns 8 n to 8 n + 7.
constexpr int64_t matrixOfB(int64_t n, int64_t number) {
  return 2 * n + number;
}

/// The element of panels of eight channels at which row `row` of panel `panel`
/// starts; each has `depth` rows.
template <typename N> constexpr N placeInPanels(N panel, N row, int64_t depth) {
  return (panel * depth + row) * 8;
}
/// The element of a panel of f32 that a lane has of B: of row 2 * member and
/// `row`, of which that below eight is 0 or 1.
template <typename N> constexpr N placeInWidePanel(N lane, int64_t row) {
  return (lane % 4 + placeOfWideRow(row)) * 8 + lane / 4;
}

//===----------------------------------------------------------------------===//
// mma.m16n8k8 of tf32
//===----------------------------------------------------------------------===//

// Its lanes have columns member and member + 4 of A. Any order of the depth
// gives the same sums, so a lane uses two numbers that are contiguous: member
// stands for the first, member + 4 for the second.

/// Register `number` of A holds this half of the rows, and this of two numbers
/// along the depth. Registers of B are numbers along the depth.
struct WordOfA {
  int64_t half, number;
};
constexpr WordOfA wordOfA(int64_t number) { return {number % 2, number / 2}; }

/// Probabilities go from sums, of which a lane has columns 2 * member and 2 *
/// member + 1, to A. Column c of eight scores is that of key `keyOfColumn(c)`,
/// and the two rows of B that a lane has are those of keys `keyOfColumn(2 *
/// member)` and `keyOfColumn(2 * member + 1)`. Any order would do; in this one
/// neither the lanes that read keys nor those that read values meet in a bank:
/// half the column, and of odd ones 4 + (half ^ 1).
template <typename N> constexpr N keyOfColumn(N column) {
  return ((column / 2) ^ (column % 2)) + column % 2 * 4;
}

// With f32 a lane reads four numbers in a row of queries and keys: the first
// two are its part of one product, the others of the next.

/// The first of four channels of its rows.
template <typename N> constexpr N wideQueryChannel(N lane) {
  return lane % 4 * 4;
}
/// The key, of eight, and the 16-byte chunk that this lane reads as its
/// fragment of B.
template <typename N> constexpr PlaceIn<N> wideKeysOf(N lane) {
  return {keyOfColumn(lane / 4), lane % 4};
}
/// The key and the channel, of eight of each, of number `number` of B that it
/// has of the values.
template <typename N> constexpr PlaceIn<N> wideValueOf(N lane, int64_t number) {
  return {keyOfColumn(lane % 4 * 2 + number), lane / 4};
}

} // namespace attune

#endif // ATTUNE_TARGETINFO_GPUFRAGMENTS_H

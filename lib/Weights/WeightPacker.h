//===- WeightPacker.h - Values into the layout of one weight ----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_WEIGHTS_WEIGHTPACKER_H
#define ATTUNE_LIB_WEIGHTS_WEIGHTPACKER_H

#include "GroupRounding.h"
#include "attune/Weights/TensorEncoding.h"

#include "llvm/ADT/StringRef.h"

#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

namespace attune {

/// What is computed once for all tasks that pack parts of it: the first that
/// needs it computes it, others wait, and the last one frees it, so that memory
/// holds that of a few layers at a time.
class SharedResult {
public:
  virtual ~SharedResult() = default;
  void addTask() { ++tasks; }
  void finishTask() {
    if (--tasks == 0)
      release();
  }

protected:
  virtual void release() = 0;

private:
  std::atomic<int64_t> tasks{0};
};

/// Rows that one tensor gives to a weight.
struct PackPiece {
  /// First value of the tensor; null for random ones.
  const uint8_t *data = nullptr;
  /// The tensor, which may have an encoding; null with random values.
  const CheckpointTensor *tensor = nullptr;
  runtime::DType dtype = runtime::DType::F32;
  int64_t firstValue = 0;  ///< of the tensor that the weight is made of
  bool transposed = false; ///< the tensor is [columns, tensorRows]
  int64_t tensorRows = 0;
  int64_t begin = 0; ///< first row taken
  int64_t rows = 0;  ///< rows taken
  /// Rows are taken in runs of `run` rows, each `stride` rows after the last;
  /// 0: they are neighbours.
  int64_t run = 0, stride = 0;
  float scale = 1;   ///< of the tensor's numbers, before they are narrowed
  int64_t whole = 0; ///< number of the first one in the weight before any cut
  /// Set if a finite value did not fit the storage type.
  std::atomic<bool> *overflow = nullptr;
  /// Set if a number of the tensor is not finite.
  std::atomic<bool> *notFinite = nullptr;

  /// Where row `row` of those taken is in the tensor.
  int64_t rowOf(int64_t row) const {
    return begin + (run ? row / run * stride + row % run : row);
  }
  /// The bytes that it is made of: where they begin, and how many.
  std::pair<const uint8_t *, uint64_t> bytesOf(int64_t columns) const;
  /// How many rows from `row` on are neighbours in the tensor.
  int64_t neighboursFrom(int64_t row) const {
    return run ? run - row % run : rows - row;
  }
};

/// Random values: around `center`, at most `spread` away.
struct PackNoise {
  uint64_t seed = 0;
  float center = 0, spread = 0;
};

/// Random values that a deep network neither drowns in nor lets die out, for
/// one layer of the weight `name`.
PackNoise noiseFor(llvm::StringRef name, int64_t layer, bool isVector,
                   int64_t columns, uint64_t seed);

/// One layer of one weight: a [rows, columns] matrix, row by row or in panels.
/// The packed form is a sequence of `numBands` bands of equal size (rows, or
/// panels), each of which can be written on its own.
struct PackedMatrix {
  std::vector<PackPiece> pieces; ///< one below the other
  runtime::DType dtype = runtime::DType::F32;
  int64_t rows = 0, columns = 1;
  /// A rank's part of a matrix begins at `firstColumn` of `wholeColumns`.
  int64_t firstColumn = 0, wholeColumns = 1;
  /// Columns from this one on are zero, if it is not negative: a rank has fewer
  /// than others.
  int64_t zerosFrom = -1;
  /// Where columns are in the whole matrix, if heads of it were pruned: ranges,
  /// begin and count, that give `columns` together. Empty: from `firstColumn`
  /// on.
  std::vector<std::pair<int64_t, int64_t>> keptColumns;
  int64_t panelWidth = 0; ///< 0: row by row
  bool gated = false;     ///< panels of the two halves of the rows alternate
  bool pairs = false;     ///< two columns of a panel side by side, in 16 bits
  /// Columns that share a scale, if the matrix is quantized; it is read as f32,
  /// which `dtype` then is, and what is packed is numbers of 8 or 4 `bits`, as
  /// `attune.weight` says, or the `scales` of these.
  int64_t group = 0;
  int64_t bits = 8;
  bool scales = false;
  bool zeros = false; ///< scales are pairs, each with a zero point behind it
  ScaleType scaleType = ScaleType::Single;
  bool byteFloats = false; ///< numbers are floats of 8 bits
  /// The column that comes at each place, if not as they stand.
  const std::vector<int32_t> *order = nullptr;
  int64_t numBands = 0;
  PackNoise noise;
  /// The factor of each column, if there are any; `dtype` is F32 then.
  std::vector<float> gains;
  /// What its values come from, if they are computed.
  SharedResult *shared = nullptr;

  int64_t bandBytes() const {
    int64_t rowBytes = runtime::dtypeBytes(dtype) * columns;
    if (group)
      rowBytes = scales ? form().scaleBytes(columns) : columns * bits / 8;
    return rowBytes * (panelWidth ? panelWidth : 1);
  }
  StoredForm form() const {
    return {bits, group, zeros, scaleType, byteFloats, order != nullptr};
  }
  /// Whether a piece has the numbers and scales that are to be packed. Nothing
  /// else is rounded to scales in two levels.
  bool keeps(const PackPiece &piece) const;
  /// Where a column is in the whole matrix, and how many from it on are
  /// neighbours there.
  std::pair<int64_t, int64_t> wholeColumnOf(int64_t column) const;
  /// Drops kept columns before `begin`. The first `ownCount` of the others
  /// count, and zeros take the place of the rest.
  void keepColumns(int64_t begin, int64_t ownCount);
  /// Keeps these rows of the weight, each `count` from `begin` on.
  void keepRows(const std::vector<std::pair<int64_t, int64_t>> &ranges);
  /// Writes bands [first, last) to `out`, `bandBytes` each.
  QuantizationError pack(int64_t first, int64_t last, uint8_t *out) const;
  /// The values of a vector, which is kept row by row.
  std::vector<float> values() const;

private:
  /// Rows [first, last) as a block whose element (r, k) lies at
  /// `out[(r - first) * rowStride + k * columnStride]`, in elements; one of the
  /// strides is 1.
  void packRows(int64_t first, int64_t last, uint8_t *out, int64_t rowStride,
                int64_t columnStride) const;
  /// `count` rows of a piece that are neighbours in its tensor, from row
  /// `pieceRow` of those that it takes on.
  void packNeighbours(const PackPiece &piece, int64_t pieceRow, int64_t count,
                      uint8_t *out, int64_t rowStride,
                      int64_t columnStride) const;
  /// Rows [first, last) as quantized numbers or scales, as one band.
  QuantizationError quantizeRows(int64_t first, int64_t last,
                                 uint8_t *out) const;
  /// One group of row `row` of a band, from column `begin` on. `numbers` is
  /// memory for a group.
  QuantizationError quantizeGroup(const float *in, int64_t row, int64_t begin,
                                  uint8_t *numbers, uint8_t *out) const;
  /// The same of a group that `piece` keeps as such, in its row `pieceRow`.
  void copyGroup(const PackPiece &piece, int64_t pieceRow, int64_t row,
                 int64_t begin, uint8_t *numbers, uint8_t *out) const;
  /// Puts the values of a row in the matrix's order.
  void sortColumns(float *row) const;
  void storeScale(GroupScale scale, int64_t row, int64_t begin,
                  uint8_t *out) const;
  /// A scale in two levels.
  void storeLevels(const GroupLevels &levels, int64_t row, int64_t begin,
                   uint8_t *out) const;
  /// The numbers of a group into their places.
  void storeNumbers(const uint8_t *numbers, int64_t row, int64_t begin,
                    uint8_t *out) const;
  /// Puts the columns of a panel in pairs: rows 2 i and 2 i + 1 of [columns,
  /// panelWidth] become one row of [columns / 2, 2 panelWidth].
  void pairColumns(uint8_t *panel) const;
  /// Multiplies the columns of a band by their gains.
  void scaleColumns(uint8_t *band) const;
  /// `count` values of `piece` that lie side by side in its tensor. The first
  /// is that of column `column` in row `pieceRow` of the piece.
  void load(const PackPiece &piece, int64_t pieceRow, int64_t column,
            int64_t count, uint8_t *out) const;
  /// The same from column `column` of the whole matrix on.
  void loadWhole(const PackPiece &piece, int64_t pieceRow, int64_t column,
                 int64_t count, uint8_t *out) const;
};

} // namespace attune

#endif // ATTUNE_LIB_WEIGHTS_WEIGHTPACKER_H

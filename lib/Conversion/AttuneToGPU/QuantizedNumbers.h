//===- QuantizedNumbers.h - Numbers of 4 or 8 bits as floats ----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_CONVERSION_ATTUNETOGPU_QUANTIZEDNUMBERS_H
#define ATTUNE_LIB_CONVERSION_ATTUNETOGPU_QUANTIZEDNUMBERS_H

#include "BlockBuilder.h"

namespace attune {

/// The numbers of a quantized matrix, as its panels have them: a word of 32
/// bits holds four columns of a channel in its bytes, or eight, the last four
/// of which are in the upper halves of the bytes.
class QuantizedNumbers {
public:
  /// `floats`: 4 bits are e2m1, and come out doubled, which makes integers of
  /// them, and their scales halved; 8 bits are e4m3. `zeros`: each group has a
  /// zero point, which is left to the caller; else that in the middle is
  /// subtracted here.
  QuantizedNumbers(int64_t bits, bool floats, bool zeros)
      : bits(bits), floats(floats), zeros(zeros) {}

  int64_t columnsOfWord() const { return 32 / bits; }
  /// How far column `column` of a word is from its lowest bit.
  template <typename N> N shiftOf(N column) const {
    return bits == 8 ? column * 8 : column % 4 * 8 + column / 4 * 4;
  }
  /// The numbers in the lowest bits of some words, a vector of i32, as f32:
  /// integers below 256 or floats of 8 bits, all of which bf16 has, too.
  mlir::Value toFloats(BlockBuilder &b, mlir::Value words) const;
  /// Columns `column`, which is even, and `column` + 1 of a word of an i32, as
  /// a vector of two bf16, or of f16 if `half`.
  mlir::Value toPair(BlockBuilder &b, mlir::Value word, Computed column,
                     bool half) const;
  /// `lanes` scales in a row, as f32.
  mlir::Value loadScales(BlockBuilder &b, mlir::Value scales,
                         mlir::ValueRange at, int64_t lanes) const;

private:
  int64_t bits;
  bool floats, zeros;
};

} // namespace attune

#endif // ATTUNE_LIB_CONVERSION_ATTUNETOGPU_QUANTIZEDNUMBERS_H

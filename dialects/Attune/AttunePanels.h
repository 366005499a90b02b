//===- AttunePanels.h - Layout of the panels of a matrix --------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_PANELS_H
#define ATTUNE_PANELS_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"

#include <optional>

namespace attune {

/// Whether `matrix` holds panels of pairs, [panels, K / 2, 2 R]: for each of R
/// outputs the weights of two neighbouring inputs side by side. It says so by
/// being half as deep as the K inputs that it multiplies. The same of a stack
/// of such matrices.
inline bool holdsPairs(mlir::ShapedType matrix, int64_t inputs) {
  int64_t rank = matrix.getRank();
  return (rank == 3 || rank == 4) && matrix.getElementType().isBF16() &&
         !mlir::ShapedType::isDynamic(inputs) && inputs > 0 &&
         2 * matrix.getDimSize(rank - 2) == inputs;
}

/// Columns side by side in the panels of a mixture's bf16 stacks, [experts,
/// panels, K / 2, 2 R] or [experts, panels, K, R]. The shape of `up`, which
/// multiplies rows of `inputs` numbers, tells it for all stacks.
inline int64_t sideOfStacks(mlir::ShapedType up, int64_t inputs) {
  return up.getRank() == 4 && holdsPairs(up, inputs) ? 2 : 1;
}

/// Whether numbers of a quantized matrix take a byte each, or one for two: i8,
/// or floats of 8 bits.
inline bool takesBytes(mlir::Type element) {
  return element.isInteger(8) || llvm::isa<mlir::Float8E4M3FNType>(element);
}

/// Whether the numbers of a quantized matrix are floats of 8 bits.
inline bool holdsByteFloats(mlir::ShapedType matrix) {
  return llvm::isa<mlir::Float8E4M3FNType>(matrix.getElementType());
}

/// Whether a matrix is panels of bytes in quads, for rows of `inputs` bytes.
inline bool holdsQuads(mlir::ShapedType matrix, int64_t inputs) {
  return matrix.getRank() == 3 && matrix.getElementType().isInteger(8) &&
         !mlir::ShapedType::isDynamic(inputs) && inputs > 0 &&
         4 * matrix.getDimSize(1) == inputs;
}

/// The number of columns of a row side by side in the panels of a weight: 1, or
/// as many as an instruction adds up, 2 of bf16 and 4 bytes. 0 if the type's
/// last dimension is none of these for panels of `panelWidth` rows.
inline int64_t columnsSideBySide(mlir::RankedTensorType type,
                                 std::optional<int64_t> panelWidth) {
  if (!panelWidth || *panelWidth < 1)
    return 1;
  int64_t last = type.getShape().back();
  bool matrix = type.getRank() > 2;
  if (matrix && takesBytes(type.getElementType()))
    return last == 4 * *panelWidth ? 4 : 0;
  if (matrix && type.getElementType().isBF16() && last == 2 * *panelWidth)
    return 2;
  return last == *panelWidth ? 1 : 0;
}

/// Whether this many bytes may share a scale: quads, and few enough that sums
/// of their products fit 32 bits.
inline bool isGroup(int64_t size) {
  return size >= 4 && size <= 65536 && size % 4 == 0;
}

/// The same of numbers of 4 bits: whole cycles of the kernels that add up
/// products of 32 columns in 16 bits.
inline bool isGroupOfNibbles(int64_t size) {
  return isGroup(size) && size % 32 == 0;
}

/// How many groups a row with `scales` scales has, each of which may stand
/// beside a zero point; -1: they are no pairs.
inline int64_t groupsOfScales(int64_t scales, bool zeros) {
  if (mlir::ShapedType::isDynamic(scales) || !zeros)
    return scales;
  return scales % 2 == 0 ? scales / 2 : -1;
}

/// Columns whose scales have a common factor, if they are in two levels: bytes
/// times an f16.
constexpr int64_t kScaleColumns = 256;

/// What is subtracted from bytes with scales in two levels, if groups have no
/// minima: the middle of numbers of 6 bits, which they are.
constexpr int64_t kMiddleInLevels = 32;

/// Whether scales are in two levels.
inline bool areScalesInLevels(mlir::ShapedType scales) {
  return scales.getElementType().isInteger(8);
}

/// Whether the scales of a quantized weight, or these if it is scales, are in
/// two levels.
inline bool hasScalesInLevels(mlir::Operation *weight) {
  auto named = weight->getAttrOfType<mlir::TypeAttr>("attune.scales");
  return weight->hasAttr("attune.levels") ||
         (named && named.getValue().isInteger(8));
}

/// Bytes that `kScaleColumns` columns of a row have as scales: one for each
/// group, with zeros behind it that of the minimum, and then those of the f16
/// that all of these are multiplied by.
inline int64_t bytesOfScales(int64_t group, bool zeros) {
  return (kScaleColumns / group + 2) * (zeros ? 2 : 1);
}

/// The same of `scales` for rows of `inputs` numbers: their dimension `dim` is
/// of groups, or of bytes in two levels.
inline int64_t groupsOfScales(mlir::ShapedType scales, int64_t dim, bool zeros,
                              int64_t inputs) {
  int64_t number = scales.getDimSize(unsigned(dim));
  if (!areScalesInLevels(scales))
    return groupsOfScales(number, zeros);
  if (mlir::ShapedType::isDynamic(number) ||
      mlir::ShapedType::isDynamic(inputs))
    return mlir::ShapedType::kDynamic;
  int64_t blocks = inputs / kScaleColumns;
  if (blocks < 1 || inputs % kScaleColumns != 0 || number % blocks != 0)
    return -1;
  int64_t bytes = number / blocks, groups = bytes / (zeros ? 2 : 1) - 2;
  bool whole = groups > 0 && kScaleColumns % groups == 0 &&
               bytesOfScales(kScaleColumns / groups, zeros) == bytes;
  return whole ? blocks * groups : -1;
}

/// Whether scales say that numbers of 4 bits are floats, e2m1.
inline bool areScalesOfFloats(mlir::ShapedType scales) {
  return llvm::isa<mlir::Float8E8M0FNUType>(scales.getElementType());
}

/// Bits of the quantized numbers in `matrix`, which multiplies rows of `inputs`
/// numbers: panels of 4 bits are an eighth as deep, since each of their bytes
/// holds two.
inline int64_t quantizedBits(mlir::ShapedType matrix, int64_t inputs) {
  if (matrix.getElementType().isInteger(4))
    return 4;
  int64_t depth = matrix.getRank() < 3
                      ? mlir::ShapedType::kDynamic
                      : matrix.getDimSize(matrix.getRank() - 2);
  bool known = !mlir::ShapedType::isDynamic(depth) &&
               !mlir::ShapedType::isDynamic(inputs);
  return known && depth > 0 && 8 * depth == inputs ? 4 : 8;
}

} // namespace attune

#endif // ATTUNE_PANELS_H

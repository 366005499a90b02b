//===- AttuneChecks.cpp - Checks shared by verifiers ------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneChecks.h"
#include "Attune/AttuneCachedRows.h"
#include "Attune/AttunePanels.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attune;

/// Points at where an operand comes from; a result comes from the op itself.
static LogicalResult withNote(InFlightDiagnostic &&diag, Operation *op,
                              NamedSize size) {
  if (size.value.getDefiningOp() != op)
    diag.attachNote(size.value.getLoc()) << size.owner << " comes from here";
  return std::move(diag);
}

LogicalResult attune::sameSize(Operation *op, NamedSize left, NamedSize right) {
  if (!left.known() || !right.known() || left.get() == right.get())
    return success();
  return withNote(op->emitOpError("has ")
                      << left.owner << " " << left.what << " " << left.get()
                      << ", but " << right.owner << " " << right.what << " "
                      << right.get(),
                  op, right);
}

LogicalResult attune::sameWidth(Operation *op, NamedSize left,
                                NamedSize right) {
  int64_t sizes[] = {widthOfRows(cast<ShapedType>(left.value.getType())),
                     widthOfRows(cast<ShapedType>(right.value.getType()))};
  if (!left.known() || !right.known() || sizes[0] == sizes[1])
    return success();
  return withNote(op->emitOpError("has ")
                      << left.owner << " " << left.what << " " << sizes[0]
                      << ", but " << right.owner << " " << right.what << " "
                      << sizes[1],
                  op, right);
}

LogicalResult attune::sizeIs(Operation *op, NamedSize left, int64_t right,
                             const Twine &why) {
  if (!left.known() || ShapedType::isDynamic(right) || left.get() == right)
    return success();
  return withNote(op->emitOpError("has ")
                      << left.owner << " " << left.what << " " << left.get()
                      << ", but " << why << " " << right,
                  op, left);
}

LogicalResult attune::headsShare(Operation *op, Value query, Value key,
                                 StringRef owner) {
  NamedSize q{query, 1, "query", "heads"}, k{key, 1, owner, "heads"};
  if (!q.known() || !k.known())
    return success();
  if (k.get() != 0 && q.get() % k.get() == 0)
    return success();
  return withNote(op->emitOpError("has ")
                      << q.get() << " query heads, which " << k.get() << " "
                      << owner << " heads cannot share evenly",
                  op, k);
}

/// An error: an operand's type and the result's do not go together.
static LogicalResult unlikeResult(Operation *op, Value value, StringRef owner) {
  Type type = op->getResult(0).getType();
  InFlightDiagnostic diag = op->emitOpError("has ")
                            << owner << " of type " << value.getType()
                            << ", but a result of type " << type;
  diag.attachNote(value.getLoc()) << owner << " comes from here";
  return diag;
}

LogicalResult attune::typeOfResult(Operation *op, Value value,
                                   StringRef owner) {
  if (!value || value.getType() == op->getResult(0).getType())
    return success();
  return unlikeResult(op, value, owner);
}

LogicalResult attune::shapeOfResult(Operation *op, Value value,
                                    StringRef owner) {
  auto shapeOf = [](Value value) {
    return cast<RankedTensorType>(value.getType()).getShape();
  };
  if (shapeOf(value) == shapeOf(op->getResult(0)))
    return success();
  return unlikeResult(op, value, owner);
}

int64_t attune::rankOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getRank();
}

NamedSize attune::lastSize(Value value, StringRef owner, StringRef what) {
  return {value, rankOf(value) - 1, owner, what};
}

LogicalResult attune::sameTokens(Operation *op, Value value, StringRef owner,
                                 Value like, StringRef likeOwner) {
  if (rankOf(value) != rankOf(like))
    return op->emitOpError("has ")
           << owner << " of rank " << rankOf(value) << ", but " << likeOwner
           << " of rank " << rankOf(like);
  for (int64_t dim = 0; dim + 1 < rankOf(like); ++dim)
    if (failed(sameSize(op, {value, dim, owner, "size"},
                        {like, dim, likeOwner, "size"})))
      return failure();
  return success();
}

LogicalResult attune::hasRows(Operation *op, Value matrix, StringRef owner,
                              int64_t rows, bool gated, const Twine &why,
                              int64_t side) {
  if (ShapedType::isDynamic(rows))
    return success();
  if (rankOf(matrix) == 2)
    return sizeIs(op, {matrix, 0, owner, "rows"}, rows, why);
  int64_t panel = cast<RankedTensorType>(matrix.getType()).getDimSize(2) / side;
  if (panel <= 0) // dynamic, or none
    return success();
  int64_t half = gated ? rows / 2 : rows;
  int64_t panels = llvm::divideCeil(half, panel) * (gated ? 2 : 1);
  return sizeIs(op, {matrix, 0, owner, "panels"}, panels,
                why + " " + Twine(rows) + ": panels of " + Twine(panel) +
                    " to hold them are");
}

LogicalResult attune::groupsFit(Operation *op, Value scales, unsigned dim,
                                StringRef owner, bool zeros, int64_t bits,
                                int64_t inputs) {
  auto type = cast<ShapedType>(scales.getType());
  // L8
  if (areScalesOfFloats(type) && (zeros || bits != 4))
    return op->emitOpError("has ")
           << owner << " of f8E8M0FNU, which are those of 4 bits without zeros";
  // L7
  int64_t number = type.getDimSize(dim);
  int64_t groups = groupsOfScales(type, dim, zeros, inputs);
  if (ShapedType::isDynamic(groups) || ShapedType::isDynamic(inputs))
    return success();
  bool whole = groups > 0 && inputs % groups == 0;
  if (whole && isGroup(inputs / groups))
    return success();
  return op->emitOpError("has ")
         << number << " " << owner << (zeros ? " and zeros" : "")
         << " for rows of " << inputs
         << (areScalesInLevels(type)
                 ? ", which are no bytes of equal groups of 256 columns"
                 : ", which are no equal groups of 4, 8, 12, ..., 65536");
}

LogicalResult attune::byteFloatsFit(Operation *op, Value matrix, Value scales,
                                    bool zeros, Value input) {
  // L9
  if (!holdsByteFloats(cast<ShapedType>(matrix.getType())))
    return success();
  if (zeros || !getElementTypeOrSelf(scales.getType()).isF32())
    return op->emitOpError(
        "has floats of 8 bits, whose scales are f32 without zeros");
  if (input && getElementTypeOrSelf(input.getType()).isInteger(8))
    return op->emitOpError("has floats of 8 bits, which multiply numbers, but "
                           "an input of bytes");
  return success();
}

LogicalResult attune::scalesFit(Operation *op, Value input, Value scales,
                                Value sums) {
  bool bytes = getElementTypeOrSelf(input.getType()).isInteger(8);
  if (bool(scales) != bytes || bool(sums) != bytes)
    return op->emitOpError("has an input of ")
           << (bytes ? "bytes without" : "numbers with") << " scales and sums";
  return success();
}

LogicalResult attune::hasEntries(Operation *op, Value bias, StringRef owner,
                                 int64_t entries) {
  return bias ? sizeIs(op, {bias, 0, owner, "entries"}, entries,
                       "the matrix has rows")
              : success();
}

//===- AttuneChecks.cpp - What verifiers ask again and again ----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneChecks.h"

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

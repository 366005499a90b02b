//===- AttuneGroupOps.cpp - Ops of a GPU's blocks ---------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneGroupOps.h"

#include "Attune/AttuneChecks.h"
#include "Attune/AttuneInto.h"
#include "Attune/AttunePanels.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attune;

#define GET_OP_CLASSES
#include "Attune/AttuneGroupOps.cpp.inc"

//===----------------------------------------------------------------------===//
// Verifiers
//===----------------------------------------------------------------------===//

/// G1: tensors and results, or buffers and none.
static LogicalResult verifyPlaces(Operation *op) {
  bool tensors = isa<RankedTensorType>(op->getOperand(0).getType());
  for (Value operand : op->getOperands())
    if (isa<RankedTensorType>(operand.getType()) != tensors)
      return op->emitOpError("has both tensors and buffers as operands");
  if (tensors != (op->getNumResults() == 0))
    return success();
  return op->emitOpError(tensors ? "writes a tensor and gives none"
                                 : "writes a buffer and gives a tensor");
}

/// Fails if `value` has another rank than `shape`, or a size that is known and
/// not the one there.
static LogicalResult verifyShape(Operation *op, Value value,
                                 ArrayRef<int64_t> shape, StringRef what) {
  auto type = cast<ShapedType>(value.getType());
  auto differs = [](int64_t a, int64_t b) {
    return !ShapedType::isDynamic(a) && !ShapedType::isDynamic(b) && a != b;
  };
  if (type.getRank() == int64_t(shape.size()) &&
      llvm::none_of(llvm::zip(type.getShape(), shape), [&](auto sizes) {
        return differs(std::get<0>(sizes), std::get<1>(sizes));
      }))
    return success();
  InFlightDiagnostic diag = op->emitOpError("has ")
                            << what << " of type " << type
                            << " where it takes [";
  llvm::interleaveComma(shape, diag, [&](int64_t size) {
    if (ShapedType::isDynamic(size))
      diag << "?";
    else
      diag << size;
  });
  return diag << "]";
}
static LogicalResult verifyNumbers(Operation *op, Value value,
                                   ArrayRef<int64_t> shape, StringRef what) {
  if (failed(verifyShape(op, value, shape, what)))
    return failure();
  Type element = getElementTypeOrSelf(value.getType());
  if (element.isInteger(64))
    return success();
  return op->emitOpError("has ") << what << " of " << element << ", not i64";
}

constexpr int64_t kAny = ShapedType::kDynamic;

static ArrayRef<int64_t> shapeOf(Value value) {
  return cast<ShapedType>(value.getType()).getShape();
}

int64_t GroupedLinearIntoOp::getBits() {
  return getScales() ? quantizedBits(cast<ShapedType>(getWeight().getType()),
                                     shapeOf(getInput()).back())
                     : 0;
}

int64_t GroupedLinearIntoOp::getGroup() {
  return getScales() ? shapeOf(getInput()).back() * (getZeros() ? 2 : 1) /
                           shapeOf(getScales())[2]
                     : 0;
}

/// G11: as many scales as whole groups have, for every panel.
static LogicalResult verifyScales(GroupedLinearIntoOp op, int64_t lanes) {
  auto weight = cast<ShapedType>(op.getWeight().getType());
  auto scales = cast<ShapedType>(op.getScales().getType());
  int64_t depth = shapeOf(op.getInput()).back();
  int64_t groups = scales.getRank() == 4
                       ? groupsOfScales(scales.getDimSize(2), op.getZeros())
                       : -1;
  if (!takesBytes(weight.getElementType()) || ShapedType::isDynamic(depth) ||
      groups < 1 || depth % groups != 0 ||
      (areScalesOfFloats(scales) && (op.getBits() != 4 || op.getZeros())))
    return op.emitOpError("has scales, but not those of whole groups of bytes, "
                          "or of two numbers in each");
  if (failed(byteFloatsFit(op, op.getWeight(), op.getScales(), op.getZeros())))
    return failure();
  return verifyShape(op, op.getScales(),
                     {weight.getDimSize(0), weight.getDimSize(1), kAny, lanes},
                     "scales");
}

LogicalResult GroupedLinearIntoOp::verify() {
  // G1
  if (failed(verifyPlaces(*this)))
    return failure();
  // G2
  ArrayRef<int64_t> stack = shapeOf(getWeight());
  if (stack.size() != 4)
    return emitOpError("has a stack of rank ") << stack.size() << ", not 4";
  SmallVector<int64_t> rows(getTasks() ? 1 : 2, kAny);
  auto withWidth = [&](int64_t width) {
    SmallVector<int64_t> shape = rows;
    shape.push_back(width);
    return shape;
  };
  int64_t bits = getBits(), side = bits ? 32 / bits : 1;
  if (failed(verifyShape(*this, getInput(), withWidth(stack[2] * side),
                         "an input")))
    return failure();
  if (!getFrom())
    rows.assign(shapeOf(getInput()).drop_back().begin(),
                shapeOf(getInput()).drop_back().end());
  if (failed(verifyShape(*this, getDest(), withWidth(kAny), "a destination")))
    return failure();
  int64_t width = shapeOf(getDest()).back(), lanes = stack[3] / (bits ? 4 : 1);
  if (ShapedType::isDynamic(lanes) || lanes == 0 ||
      ShapedType::isDynamic(width) || ShapedType::isDynamic(stack[0]))
    return emitOpError("has matrices, panels or channels whose number is not "
                       "known");
  if (getZeros() && !getScales())
    return emitOpError("has zero points without scales");
  // G3
  int64_t panels = llvm::divideCeil(width, lanes) * (getGated() ? 2 : 1);
  if (failed(verifyShape(*this, getWeight(),
                         {stack[0], panels, stack[2], stack[3]}, "panels")) ||
      (getScales() && failed(verifyScales(*this, lanes))))
    return failure();
  // G9
  if (getBias() &&
      failed(verifyShape(*this, getBias(),
                         {stack[0], getGated() ? 2 * width : width}, "biases")))
    return failure();
  // G10
  if (!getGated() && (getLimit() || !getUpOffset().isZero()))
    return emitOpError("has a limit or an offset of up, which belong to a "
                       "gated product");
  // G4
  if (getTasks() &&
      failed(verifyNumbers(*this, getTasks(), {kAny, 3}, "tasks")))
    return failure();
  // G5
  if (!getFrom())
    return success();
  if (!getTasks())
    return emitOpError("takes rows from elsewhere without tasks");
  return verifyNumbers(*this, getFrom(), {shapeOf(getDest())[0]},
                       "rows to take");
}

int64_t NormedLinearIntoOp::getBits() {
  return getScales() ? quantizedBits(cast<ShapedType>(getWeight().getType()),
                                     shapeOf(getInput()).back())
                     : 0;
}

int64_t NormedLinearIntoOp::getGroup() {
  return getScales() ? shapeOf(getInput()).back() * (getZeros() ? 2 : 1) /
                           shapeOf(getScales())[1]
                     : 0;
}

LogicalResult NormedLinearIntoOp::verify() {
  // G1
  if (failed(verifyPlaces(*this)))
    return failure();
  // G12
  ArrayRef<int64_t> panels = shapeOf(getWeight());
  if (panels.size() != 3 || ShapedType::isDynamicShape(panels))
    return emitOpError("has no panels of known sizes");
  int64_t bits = getBits(), side = bits ? 32 / bits : 1;
  int64_t depth = panels[1] * side, lanes = panels[2] / (bits ? 4 : 1);
  if (failed(verifyShape(*this, getInput(), {kAny, depth}, "an input")))
    return failure();
  int64_t rows = shapeOf(getInput())[0];
  if (failed(verifyShape(*this, getOf(), {rows, depth}, "rows to normalise")) ||
      failed(verifyShape(*this, getDest(), {rows, kAny}, "a destination")))
    return failure();
  int64_t width = shapeOf(getDest())[1], halves = getGated() ? 2 : 1;
  if (ShapedType::isDynamic(width) || lanes == 0)
    return emitOpError("has channels whose number is not known");
  if (failed(verifyShape(*this, getWeight(),
                         {int64_t(llvm::divideCeil(width, lanes)) * halves,
                          panels[1], panels[2]},
                         "panels")) ||
      (getBias() &&
       failed(verifyShape(*this, getBias(), {width * halves}, "a bias"))))
    return failure();
  // G13
  for (Value channels : {getGamma(), getBeta()})
    if (channels &&
        failed(verifyShape(*this, channels, {depth}, "a gamma or beta")))
      return failure();
  if (getBeta() && !getCentred())
    return emitOpError("adds a beta to a norm that is not centred");
  if (getEps().isNegative() || int64_t(getFew()) < 1)
    return emitOpError("normalises rows with a negative eps, or none");
  // G14
  if (!getScales())
    return getZeros() ? emitOpError("has zero points without scales")
                      : success();
  int64_t groups = shapeOf(getScales()).size() == 3
                       ? groupsOfScales(shapeOf(getScales())[1], getZeros())
                       : -1;
  if (!takesBytes(cast<ShapedType>(getWeight().getType()).getElementType()) ||
      groups < 1 || depth % groups != 0 ||
      (areScalesOfFloats(cast<ShapedType>(getScales().getType())) &&
       (bits != 4 || getZeros())))
    return emitOpError("has scales, but not those of whole groups of bytes, or "
                       "of two numbers in each");
  if (failed(byteFloatsFit(*this, getWeight(), getScales(), getZeros())))
    return failure();
  return verifyShape(*this, getScales(), {panels[0], kAny, lanes}, "scales");
}

LogicalResult ExpertTasksIntoOp::verify() {
  if (failed(verifyPlaces(*this)))
    return failure();
  // G6
  if (failed(verifyNumbers(*this, getChosen(), {kAny, kAny}, "a choice")))
    return failure();
  ArrayRef<int64_t> chosen = cast<ShapedType>(getChosen().getType()).getShape();
  if (ShapedType::isDynamic(chosen[1]) || chosen[1] == 0)
    return emitOpError("has tokens whose number of experts is not known");
  int64_t slots =
      ShapedType::isDynamic(chosen[0]) ? kAny : chosen[0] * chosen[1];
  if (failed(verifyNumbers(*this, getTasks(), {kAny, 3}, "tasks")) ||
      failed(verifyNumbers(*this, getFrom(), {slots}, "rows to take")) ||
      failed(verifyNumbers(*this, getPlaces(), {slots}, "places")))
    return failure();
  if (getExperts() < 1 || getRows() < 1)
    return emitOpError("has no expert, or blocks without rows");
  return success();
}

LogicalResult LinearAttentionIntoOp::verify() {
  // G1
  if (failed(verifyPlaces(*this)))
    return failure();
  // G7
  auto typeOf = [](Value value) { return cast<ShapedType>(value.getType()); };
  for (Value heads : {getQuery(), getKey(), getValue()})
    if (typeOf(heads).getRank() != 4 || typeOf(heads).isDynamicDim(1) ||
        typeOf(heads).isDynamicDim(3))
      return emitOpError("has heads of type ")
             << heads.getType() << " whose number or width is not known";
  ArrayRef<int64_t> query = typeOf(getQuery()).getShape(),
                    key = typeOf(getKey()).getShape();
  int64_t width = typeOf(getValue()).getDimSize(3), heads = key[1];
  if (failed(verifyShape(
          *this, getKey(),
          {query[0], kAny, getCausal() ? query[2] : kAny, query[3]}, "keys")) ||
      failed(verifyShape(*this, getValue(), {query[0], heads, key[2], kAny},
                         "values")) ||
      failed(verifyShape(*this, getDest(),
                         {query[0], query[1], query[2], width},
                         "a destination")))
    return failure();
  if (heads == 0 || query[1] % heads != 0)
    return emitOpError("has ") << query[1] << " query heads, which " << heads
                               << " key/value heads cannot share evenly";
  // G8
  for (Value sums : {getState(), getSums()})
    if (sums &&
        failed(verifyShape(*this, sums, {query[0], heads, query[3], width + 1},
                           "a state")))
      return failure();
  return getMask()
             ? verifyShape(*this, getMask(), {kAny, 1, 1, key[2]}, "a mask")
             : success();
}

//===- AttuneTokenOps.cpp - Verifiers of ops that make and pick tokens ----===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneChecks.h"
#include "Attune/AttuneShapes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace attune;

#define GET_OP_CLASSES
#include "Attune/AttuneTokenOps.cpp.inc"

void AttuneDialect::registerTokenOps() {
  addOperations<
#define GET_OP_LIST
#include "Attune/AttuneTokenOps.cpp.inc"
      >();
}

static int64_t sizeOf(Value value, int64_t dim) {
  return cast<RankedTensorType>(value.getType()).getDimSize(dim);
}

/// Arithmetic on sizes, folded where they are known.
template <typename Op>
static OpFoldResult combine(OpBuilder &builder, Location loc, OpFoldResult lhs,
                            OpFoldResult rhs) {
  Value result = builder.createOrFold<Op>(
      loc, getValueOrCreateConstantIndexOp(builder, loc, lhs),
      getValueOrCreateConstantIndexOp(builder, loc, rhs));
  return getAsOpFoldResult(result);
}

//===----------------------------------------------------------------------===//
// patches
//===----------------------------------------------------------------------===//

LogicalResult PatchesOp::verify() {
  // P1
  size_t dims = cast<RankedTensorType>(getInput().getType()).getRank() - 2;
  for (auto [numbers, name] :
       {std::pair(getKernel(), "kernel"), std::pair(getStride(), "stride"),
        std::pair(getPadding(), "padding")})
    if (numbers.size() != dims)
      return emitOpError("has ") << numbers.size() << " numbers of " << name
                                 << " for " << dims << " spatial dimensions";
  for (size_t i = 0; i < dims; ++i) {
    if (getKernel()[i] < 1 || getStride()[i] < 1)
      return emitOpError("has a kernel or stride below 1");
    if (getPadding()[i] < 0 || getPadding()[i] >= getKernel()[i])
      return emitOpError("has padding ")
             << getPadding()[i] << ", which is not from 0 to "
             << getKernel()[i] - 1;
  }
  // P3
  int64_t places = 1;
  for (size_t i = 0; i < dims; ++i) {
    int64_t size = sizeOf(getInput(), getFirstPlaceDim() + i);
    if (ShapedType::isDynamic(size)) {
      places = ShapedType::kDynamic;
      continue;
    }
    int64_t room = size + 2 * getPadding()[i] - getKernel()[i];
    if (room < 0)
      return emitOpError("has an input of size ")
             << size << ", which is smaller than the kernel of "
             << getKernel()[i];
    if (!ShapedType::isDynamic(places))
      places *= room / getStride()[i] + 1;
  }
  // P2
  if (failed(sameSize(*this, {getResult(), 0, "result", "batch size"},
                      {getInput(), 0, "input", "batch size"})))
    return failure();
  int64_t width = sizeOf(getInput(), getChannelDim());
  if (!ShapedType::isDynamic(width)) {
    for (int64_t size : getKernel())
      width *= size;
    if (failed(sizeIs(*this, {getResult(), 2, "result", "width"}, width,
                      "channels times kernel are")))
      return failure();
  }
  if (ShapedType::isDynamic(places))
    return success();
  return sizeIs(*this, {getResult(), 1, "result", "length"}, places,
                "the number of places is");
}

LogicalResult
PatchesOp::reifyResultShapes(OpBuilder &builder,
                             ReifiedRankedShapedTypeDims &shapes) {
  OpFoldResult places = builder.getIndexAttr(1);
  for (size_t i = 0; i < getKernel().size(); ++i) {
    OpFoldResult size = tensor::getMixedSize(builder, getLoc(), getInput(),
                                             getFirstPlaceDim() + i);
    auto number = [&](int64_t value) -> OpFoldResult {
      return builder.getIndexAttr(value);
    };
    OpFoldResult room = combine<arith::AddIOp>(
        builder, getLoc(), size, number(2 * getPadding()[i] - getKernel()[i]));
    OpFoldResult steps = combine<arith::DivSIOp>(builder, getLoc(), room,
                                                 number(getStride()[i]));
    OpFoldResult here =
        combine<arith::AddIOp>(builder, getLoc(), steps, number(1));
    places = combine<arith::MulIOp>(builder, getLoc(), places, here);
  }
  return reifySizes(builder, getLoc(), getResult(),
                    {{getInput(), 0}, places, SizeSource()}, shapes);
}

//===----------------------------------------------------------------------===//
// Tokens before others, and their numbers
//===----------------------------------------------------------------------===//

LogicalResult PrependTokensOp::verify() {
  // T1
  if (failed(sameSize(*this, {getInput(), 2, "input", "width"},
                      {getTokens(), 1, "tokens", "width"})))
    return failure();
  // T2
  if (failed(sameSize(*this, {getResult(), 0, "result", "batch size"},
                      {getInput(), 0, "input", "batch size"})) ||
      failed(sameSize(*this, {getResult(), 2, "result", "width"},
                      {getInput(), 2, "input", "width"})))
    return failure();
  int64_t before = sizeOf(getTokens(), 0), length = sizeOf(getInput(), 1);
  if (ShapedType::isDynamic(before) || ShapedType::isDynamic(length))
    return success();
  return sizeIs(*this, {getResult(), 1, "result", "length"}, before + length,
                "there are");
}

LogicalResult
PrependTokensOp::reifyResultShapes(OpBuilder &builder,
                                   ReifiedRankedShapedTypeDims &shapes) {
  OpFoldResult length = combine<arith::AddIOp>(
      builder, getLoc(),
      tensor::getMixedSize(builder, getLoc(), getTokens(), 0),
      tensor::getMixedSize(builder, getLoc(), getInput(), 1));
  return reifySizes(builder, getLoc(), getResult(),
                    {{getInput(), 0}, length, {getInput(), 2}}, shapes);
}

/// The result is [B, T] of the operand.
static LogicalResult countsTokens(Operation *op, Value result, Value input,
                                  int64_t dims) {
  static const char *const whats[] = {"batch size", "length"};
  for (int64_t dim = 0; dim < dims; ++dim)
    if (failed(sameSize(op, {result, dim, "result", whats[dim]},
                        {input, dim, "operand", whats[dim]})))
      return failure();
  return success();
}

LogicalResult TokenPositionsOp::verify() {
  // T1
  if (failed(countsTokens(*this, getResult(), getInput(), 2)))
    return failure();
  // T2
  auto type = cast<RankedTensorType>(getInput().getType());
  if (getPad() && (type.getRank() != 2 || !type.getElementType().isInteger(64)))
    return emitOpError("has a pad, which only ids [batch, tokens] can hold");
  return success();
}

LogicalResult
TokenPositionsOp::reifyResultShapes(OpBuilder &builder,
                                    ReifiedRankedShapedTypeDims &shapes) {
  return reifySizes(builder, getLoc(), getResult(),
                    {{getInput(), 0}, {getInput(), 1}}, shapes);
}

LogicalResult FindTokenOp::verify() {
  // T2
  if (getLast() && !getId())
    return emitOpError("asks for the last place of no id");
  // T1
  return countsTokens(*this, getResult(), getIds(), 1);
}

LogicalResult
FindTokenOp::reifyResultShapes(OpBuilder &builder,
                               ReifiedRankedShapedTypeDims &shapes) {
  return reifySizes(builder, getLoc(), getResult(), {{getIds(), 0}}, shapes);
}

//===----------------------------------------------------------------------===//
// pool
//===----------------------------------------------------------------------===//

LogicalResult PoolOp::verify() {
  // T1
  if (failed(sameSize(*this, {getResult(), 0, "result", "batch size"},
                      {getInput(), 0, "input", "batch size"})) ||
      failed(sameSize(*this, {getResult(), 1, "result", "width"},
                      {getInput(), 2, "input", "width"})))
    return failure();
  bool picks = getKind() == PoolKind::Token;
  if (Value mask = getMask()) {
    // T2
    if (picks)
      return emitOpError("picks tokens by number, which no mask changes");
    if (failed(sameSize(*this, {mask, 0, "mask", "batch size"},
                        {getInput(), 0, "input", "batch size"})) ||
        failed(sizeIs(*this, {mask, 1, "mask", "number of heads"}, 1,
                      "tokens have")) ||
        failed(sizeIs(*this, {mask, 2, "mask", "number of queries"}, 1,
                      "tokens have")) ||
        failed(sameSize(*this, {mask, 3, "mask", "length"},
                        {getInput(), 1, "input", "length"})))
      return failure();
  }
  // T3
  if (!picks && (getAt() || getIndex() != 0))
    return emitOpError("has the number of a token, which belongs to <token>");
  if (getAt() && getIndex() != 0)
    return emitOpError("has two numbers of the token it picks");
  if (getAt() && failed(sameSize(*this, {getAt(), 0, "at", "batch size"},
                                 {getInput(), 0, "input", "batch size"})))
    return failure();
  // T4
  NamedSize length{getInput(), 1, "input", "length"};
  int64_t index = getIndex();
  if (index < 0 || (length.known() && picks && index >= length.get()))
    return emitOpError("picks token ") << index << ", which is not there";
  return success();
}

LogicalResult PoolOp::reifyResultShapes(OpBuilder &builder,
                                        ReifiedRankedShapedTypeDims &shapes) {
  return reifySizes(builder, getLoc(), getResult(),
                    {{getInput(), 0}, {getInput(), 2}}, shapes);
}

//===----------------------------------------------------------------------===//
// batch_norm
//===----------------------------------------------------------------------===//

LogicalResult BatchNormOp::verify() {
  // N1
  int64_t last = cast<RankedTensorType>(getInput().getType()).getRank() - 1;
  if (failed(sameSize(*this, {getInput(), last, "input", "width"},
                      {getGamma(), 0, "gamma", "width"})))
    return failure();
  // N2
  if (!getEps().isFinite() || (getEps().isNegative() && !getEps().isZero()))
    return emitOpError("has eps ")
           << getEps().convertToDouble() << ", which is not a number from 0 on";
  return success();
}

LogicalResult
BatchNormOp::reifyResultShapes(OpBuilder &builder,
                               ReifiedRankedShapedTypeDims &shapes) {
  return reifyAs(builder, getLoc(), getResult(), getInput(), shapes);
}

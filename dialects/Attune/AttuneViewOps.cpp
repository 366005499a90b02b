//===- AttuneViewOps.cpp - Tokens as rows -----------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::bufferization;
using namespace attune;

#define GET_OP_CLASSES
#include "Attune/AttuneViewOps.cpp.inc"

void AttuneDialect::registerViewOps() {
  addOperations<
#define GET_OP_LIST
#include "Attune/AttuneViewOps.cpp.inc"
      >();
}

static const ReassociationIndices kRows = {0, 1}, kWidth = {2};

/// Both ops are views: neither reads nor writes, and the result is the
/// operand's buffer.
static AliasingValueList aliasWhole(Operation *op) {
  return {{op->getResult(0), BufferRelation::Equivalent}};
}

RankedTensorType FlattenTokensOp::inferType(RankedTensorType input) {
  ArrayRef<int64_t> shape = input.getShape();
  bool known =
      !ShapedType::isDynamic(shape[0]) && !ShapedType::isDynamic(shape[1]);
  return RankedTensorType::get(
      {known ? shape[0] * shape[1] : ShapedType::kDynamic, shape[2]},
      input.getElementType());
}

LogicalResult FlattenTokensOp::verify() {
  auto input = cast<RankedTensorType>(getInput().getType());
  if (input.getRank() != 3 || inferType(input) != getType())
    return emitOpError("cannot see ") << input << " as " << getType();
  return success();
}

OpFoldResult FlattenTokensOp::fold(FoldAdaptor) {
  if (auto unflatten = getInput().getDefiningOp<UnflattenTokensOp>())
    if (unflatten.getInput().getType() == getType())
      return unflatten.getInput();
  return {};
}

bool FlattenTokensOp::bufferizesToMemoryRead(OpOperand &,
                                             const AnalysisState &) {
  return false;
}
bool FlattenTokensOp::bufferizesToMemoryWrite(OpOperand &,
                                              const AnalysisState &) {
  return false;
}
AliasingValueList FlattenTokensOp::getAliasingValues(OpOperand &,
                                                     const AnalysisState &) {
  return aliasWhole(*this);
}
FailureOr<BufferLikeType>
FlattenTokensOp::getBufferType(Value value, const BufferizationOptions &options,
                               const BufferizationState &state,
                               SmallVector<Value> &invocationStack) {
  auto input =
      bufferization::getBufferType(getInput(), options, state, invocationStack);
  if (failed(input))
    return failure();
  auto type = cast<MemRefType>(*input);
  return cast<BufferLikeType>(memref::CollapseShapeOp::computeCollapsedType(
      MemRefType::get(type.getShape(), type.getElementType(),
                      MemRefLayoutAttrInterface(), type.getMemorySpace()),
      {kRows, kWidth}));
}
LogicalResult FlattenTokensOp::bufferize(RewriterBase &rewriter,
                                         const BufferizationOptions &options,
                                         BufferizationState &state) {
  FailureOr<Value> buffer = getBuffer(rewriter, getInput(), options, state);
  if (failed(buffer))
    return failure();
  SmallVector<ReassociationIndices> groups = {kRows, kWidth};
  // Rows of a slice are not at one distance from each other: a copy's are.
  auto type = cast<MemRefType>(buffer->getType());
  if (!type.getLayout().isIdentity()) {
    SmallVector<Value> sizes;
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      if (type.isDynamicDim(dim))
        sizes.push_back(
            rewriter.createOrFold<memref::DimOp>(getLoc(), *buffer, dim));
    auto whole =
        MemRefType::get(type.getShape(), type.getElementType(),
                        MemRefLayoutAttrInterface(), type.getMemorySpace());
    FailureOr<Value> copy =
        options.createAlloc(rewriter, getLoc(), whole, sizes);
    if (failed(copy) ||
        failed(options.createMemCpy(rewriter, getLoc(), *buffer, *copy)))
      return failure();
    buffer = copy;
  }
  replaceOpWithNewBufferizedOp<memref::CollapseShapeOp>(rewriter, *this,
                                                        *buffer, groups);
  return success();
}

LogicalResult UnflattenTokensOp::verify() {
  auto input = cast<RankedTensorType>(getInput().getType());
  auto result = cast<RankedTensorType>(getType());
  if (input.getRank() != 2 || result.getRank() != 3 ||
      FlattenTokensOp::inferType(result) != input)
    return emitOpError("cannot see ") << input << " as " << result;
  return success();
}

OpFoldResult UnflattenTokensOp::fold(FoldAdaptor) {
  if (auto flatten = getInput().getDefiningOp<FlattenTokensOp>())
    if (flatten.getInput().getType() == getType())
      return flatten.getInput();
  return {};
}

bool UnflattenTokensOp::bufferizesToMemoryRead(OpOperand &,
                                               const AnalysisState &) {
  return false;
}
bool UnflattenTokensOp::bufferizesToMemoryWrite(OpOperand &,
                                                const AnalysisState &) {
  return false;
}
AliasingValueList UnflattenTokensOp::getAliasingValues(OpOperand &operand,
                                                       const AnalysisState &) {
  return aliasWhole(*this);
}
FailureOr<BufferLikeType> UnflattenTokensOp::getBufferType(
    Value value, const BufferizationOptions &options,
    const BufferizationState &state, SmallVector<Value> &invocationStack) {
  auto input =
      bufferization::getBufferType(getInput(), options, state, invocationStack);
  if (failed(input))
    return failure();
  auto type = memref::ExpandShapeOp::computeExpandedType(
      cast<MemRefType>(*input), cast<RankedTensorType>(getType()).getShape(),
      {kRows, kWidth});
  if (failed(type))
    return failure();
  return cast<BufferLikeType>(*type);
}
LogicalResult UnflattenTokensOp::bufferize(RewriterBase &rewriter,
                                           const BufferizationOptions &options,
                                           BufferizationState &state) {
  FailureOr<Value> buffer = getBuffer(rewriter, getInput(), options, state);
  if (failed(buffer))
    return failure();
  auto type = cast<RankedTensorType>(getType());
  auto dim = [&](int64_t i, Value value) -> OpFoldResult {
    if (type.isDynamicDim(i))
      return value;
    return rewriter.getIndexAttr(type.getDimSize(i));
  };
  // Not memref.expand_shape: expand-strided-metadata cannot split one dynamic
  // size in two.
  OpFoldResult width = rewriter.getIndexAttr(type.getDimSize(2));
  OpFoldResult tokens = dim(1, getTokens());
  OpFoldResult stride =
      type.isDynamicDim(1)
          ? OpFoldResult(arith::MulIOp::create(
                             rewriter, getLoc(), getTokens(),
                             arith::ConstantIndexOp::create(rewriter, getLoc(),
                                                            type.getDimSize(2)))
                             .getResult())
          : rewriter.getIndexAttr(type.getDimSize(1) * type.getDimSize(2));
  auto resultType = MemRefType::get(type.getShape(), type.getElementType());
  auto view = memref::ReinterpretCastOp::create(
      rewriter, getLoc(), resultType, *buffer,
      OpFoldResult(rewriter.getIndexAttr(0)),
      ArrayRef<OpFoldResult>{dim(0, getBatch()), tokens, width},
      ArrayRef<OpFoldResult>{stride, width, rewriter.getIndexAttr(1)});
  replaceOpWithBufferizedValues(rewriter, *this, view.getResult());
  return success();
}

LogicalResult
FlattenTokensOp::reifyResultShapes(OpBuilder &b,
                                   ReifiedRankedShapedTypeDims &shapes) {
  auto type = cast<RankedTensorType>(getType());
  OpFoldResult rows = b.getIndexAttr(type.getDimSize(0));
  if (type.isDynamicDim(0)) {
    Value batch = tensor::DimOp::create(b, getLoc(), getInput(), 0);
    Value tokens = tensor::DimOp::create(b, getLoc(), getInput(), 1);
    rows = arith::MulIOp::create(b, getLoc(), batch, tokens).getResult();
  }
  shapes.push_back({rows, b.getIndexAttr(type.getDimSize(1))});
  return success();
}

LogicalResult
UnflattenTokensOp::reifyResultShapes(OpBuilder &b,
                                     ReifiedRankedShapedTypeDims &shapes) {
  auto type = cast<RankedTensorType>(getType());
  auto size = [&](int64_t i, Value value) -> OpFoldResult {
    if (type.isDynamicDim(i))
      return value;
    return b.getIndexAttr(type.getDimSize(i));
  };
  shapes.push_back({size(0, getBatch()), size(1, getTokens()),
                    b.getIndexAttr(type.getDimSize(2))});
  return success();
}

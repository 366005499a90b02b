//===- RelativeBias.cpp - Biases of distances, looked up --------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// The bucket of a distance is known when the model is compiled: a constant
// holds it for every distance up to the largest that matters. This leaves two
// look-ups for each head and diagonal, once per stream and call.

#include "../Patterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace attune {
namespace {

struct LowerRelativeBias final : OpRewritePattern<RelativeBiasOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(RelativeBiasOp op,
                                PatternRewriter &rewriter) const override {
    ReifiedRankedShapedTypeDims shapes;
    if (failed(op.reifyResultShapes(rewriter, shapes)))
      return rewriter.notifyMatchFailure(op, "its sizes are not known");
    Location at = op.getLoc();
    SmallVector<int32_t> numbers = op.computeBuckets();
    auto numbersType = RankedTensorType::get(
        {static_cast<int64_t>(numbers.size())}, rewriter.getI32Type());
    Value buckets = arith::ConstantOp::create(
        rewriter, at,
        DenseElementsAttr::get(numbersType, ArrayRef<int32_t>(numbers)));
    auto index = [&](OpBuilder &b, int64_t number) -> Value {
      return arith::ConstantIndexOp::create(b, at, number);
    };
    Value center =
        arith::SubIOp::create(rewriter, at, op.getKeys(), index(rewriter, 1));
    Value zero = index(rewriter, 0);
    Value furthest = index(rewriter, op.getMaxDistance());
    Value ahead = index(rewriter, op.getBidirectional() ? op.getBuckets() : 0);
    Value table = op.getTable();
    Value empty =
        tensor::EmptyOp::create(rewriter, at, shapes[0], rewriter.getF32Type());

    auto body = [&](OpBuilder &b, Location at, ValueRange) {
      Value head = linalg::IndexOp::create(b, at, 0);
      Value number = linalg::IndexOp::create(b, at, 1);
      // How far the query is behind the key, if above zero.
      Value back = arith::SubIOp::create(b, at, center, number);
      Value isAhead =
          arith::CmpIOp::create(b, at, arith::CmpIPredicate::slt, back, zero);
      Value distance = back;
      if (op.getBidirectional()) {
        Value forth = arith::SubIOp::create(b, at, number, center);
        distance = arith::MaxSIOp::create(b, at, back, forth);
      } else {
        distance = arith::MaxSIOp::create(b, at, back, zero);
      }
      distance = arith::MinSIOp::create(b, at, distance, furthest);
      Value narrow =
          tensor::ExtractOp::create(b, at, buckets, ValueRange{distance});
      Value bucket =
          arith::IndexCastOp::create(b, at, b.getIndexType(), narrow);
      Value shift = arith::SelectOp::create(b, at, isAhead, ahead, zero);
      bucket = arith::AddIOp::create(b, at, bucket, shift);
      Value bias =
          tensor::ExtractOp::create(b, at, table, ValueRange{bucket, head});
      if (!bias.getType().isF32())
        bias = arith::ExtFOp::create(b, at, b.getF32Type(), bias);
      linalg::YieldOp::create(b, at, bias);
    };
    auto fill = linalg::GenericOp::create(
        rewriter, at, empty.getType(), ValueRange{}, empty,
        rewriter.getMultiDimIdentityMap(2),
        SmallVector<utils::IteratorType>(2, utils::IteratorType::parallel),
        body);
    Value result = fill.getResult(0);
    if (result.getType() != op.getType())
      result = tensor::CastOp::create(rewriter, at, op.getType(), result);
    rewriter.replaceOp(op, result);
    return success();
  }
};

} // namespace

void populateRelativeBiasPatterns(RewritePatternSet &patterns) {
  patterns.add<LowerRelativeBias>(patterns.getContext());
}

} // namespace attune

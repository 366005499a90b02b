//===- DecomposeRecurrent.cpp - Recurrences as loops over tokens *- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneDialect.h"
#include "attune/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_DECOMPOSERECURRENT
#include "attune/Transforms/Passes.h.inc"

namespace {
struct DecomposeOne final : OpRewritePattern<RecurrentOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(RecurrentOp op,
                                PatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value gates = op.getGates();
    auto gatesType = cast<RankedTensorType>(gates.getType());
    Type f32 = rewriter.getF32Type();
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(rewriter, loc, value);
    };
    OpFoldResult batch = tensor::getMixedSize(rewriter, loc, gates, 0);
    OpFoldResult tokens = tensor::getMixedSize(rewriter, loc, gates, 1);
    OpFoldResult unit = rewriter.getIndexAttr(1),
                 none = rewriter.getIndexAttr(0);

    // The loop carries the sequence, then the states.
    auto sequenceType = cast<RankedTensorType>(op.getSequence().getType());
    OpFoldResult width = rewriter.getIndexAttr(sequenceType.getDimSize(2));
    Value zero =
        arith::ConstantOp::create(rewriter, loc, rewriter.getF32FloatAttr(0));
    auto initial = [&](Value given) -> Value {
      if (given)
        return given;
      Value empty = tensor::EmptyOp::create(
          rewriter, loc, ArrayRef<OpFoldResult>{batch, width}, f32);
      return linalg::FillOp::create(rewriter, loc, zero, empty).getResult(0);
    };
    SmallVector<Value> carried = {
        tensor::EmptyOp::create(
            rewriter, loc, ArrayRef<OpFoldResult>{batch, tokens, width}, f32),
        initial(op.getState())};
    if (op.getKind() == CellKind::Lstm)
      carried.push_back(initial(op.getCell()));
    for (auto [value, result] : llvm::zip(carried, op.getResults()))
      if (value.getType() != result.getType())
        value = tensor::CastOp::create(rewriter, loc, result.getType(), value);

    Value count = getValueOrCreateConstantIndexOp(rewriter, loc, tokens);
    auto loop = scf::ForOp::create(rewriter, loc, constant(0), count,
                                   constant(1), carried);
    {
      OpBuilder::InsertionGuard guard(rewriter);
      rewriter.setInsertionPointToEnd(loop.getBody());
      Value token = loop.getInductionVar();
      if (op.getReverse()) {
        Value last = arith::SubIOp::create(rewriter, loc, count, constant(1));
        token = arith::SubIOp::create(rewriter, loc, last, token);
      }
      ValueRange before = loop.getRegionIterArgs();
      // [batch, gates] and [batch] of this token.
      auto slice = [&](Value from) -> Value {
        auto type = cast<RankedTensorType>(from.getType());
        SmallVector<OpFoldResult> offsets = {none, token};
        SmallVector<OpFoldResult> sizes = {batch, unit};
        SmallVector<int64_t> shape = {type.getDimSize(0)};
        if (type.getRank() == 3) {
          offsets.push_back(none);
          sizes.push_back(rewriter.getIndexAttr(type.getDimSize(2)));
          shape.push_back(type.getDimSize(2));
        }
        SmallVector<OpFoldResult> strides(type.getRank(), unit);
        return tensor::ExtractSliceOp::create(
            rewriter, loc, RankedTensorType::get(shape, type.getElementType()),
            from, offsets, sizes, strides);
      };
      Value hidden = before[1];
      auto hiddenType = cast<RankedTensorType>(hidden.getType());
      auto productType = RankedTensorType::get(
          {hiddenType.getDimSize(0), gatesType.getDimSize(2)}, f32);
      Value product = LinearOp::create(
          rewriter, loc, productType, hidden, op.getWeight(), op.getBias(),
          /*residual=*/Value(),
          ActivationAttr::get(op.getContext(), Activation::Identity),
          /*gated=*/UnitAttr(), /*scale=*/FloatAttr());
      auto step = RecurrentCellOp::create(
          rewriter, loc, before.drop_front().getTypes(), op.getKindAttr(),
          slice(gates), product, hidden,
          before.size() > 2 ? before[2] : Value(),
          op.getKeep() ? slice(op.getKeep()) : Value());
      SmallVector<OpFoldResult> offsets = {none, token, none};
      SmallVector<OpFoldResult> sizes = {batch, unit, width};
      SmallVector<OpFoldResult> strides(3, unit);
      SmallVector<Value> next = {
          tensor::InsertSliceOp::create(rewriter, loc, step.getNext()[0],
                                        before[0], offsets, sizes, strides)};
      llvm::append_range(next, step.getNext());
      scf::YieldOp::create(rewriter, loc, next);
    }
    SmallVector<Value> results = llvm::to_vector_of<Value>(loop.getResults());
    if (op.getKeep())
      results[0] = zeroed(rewriter, loc, results[0], op.getKeep(), zero);
    rewriter.replaceOp(op, results);
    return success();
  }

  /// The sequence with zeros where a token does not count.
  static Value zeroed(PatternRewriter &rewriter, Location loc, Value sequence,
                      Value keep, Value zero) {
    MLIRContext *context = rewriter.getContext();
    AffineMap identity = rewriter.getMultiDimIdentityMap(3);
    AffineMap tokens = AffineMap::get(
        3, 0, {rewriter.getAffineDimExpr(0), rewriter.getAffineDimExpr(1)},
        context);
    SmallVector<utils::IteratorType> parallel(3, utils::IteratorType::parallel);
    return linalg::GenericOp::create(
               rewriter, loc, sequence.getType(), keep, sequence,
               ArrayRef<AffineMap>{tokens, identity}, parallel,
               [&](OpBuilder &b, Location loc, ValueRange values) {
                 Value chosen = arith::SelectOp::create(b, loc, values[0],
                                                        values[1], zero);
                 linalg::YieldOp::create(b, loc, chosen);
               })
        .getResult(0);
  }
};

struct DecomposeRecurrent final
    : impl::DecomposeRecurrentBase<DecomposeRecurrent> {
  using Base::Base;
  void runOnOperation() override {
    getOperation()->walk([&](RecurrentOp) { ++numDecomposed; });
    RewritePatternSet patterns(&getContext());
    patterns.add<DecomposeOne>(&getContext());
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};
} // namespace
} // namespace attune

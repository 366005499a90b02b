//===- Recurrent.cpp - Recurrent cells and additive scores ------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Patterns.h"

using namespace mlir;

namespace attune {
namespace {

struct LowerCell final : OpRewritePattern<RecurrentCellOp> {
  LowerCell(MLIRContext *context, const VectorLowering &lowering)
      : OpRewritePattern(context), lanes(lowering.lanes) {}

  /// One vector of the state: where it is, and its gates.
  struct Place {
    KernelBuilder &k;
    Value row, column, valid;
    int64_t width, lanes;

    Value load(Value tensor, int64_t gate) const {
      Value at = gate ? k.add(column, k.index(gate * width)) : column;
      return k.load(tensor, {row, at}, lanes, valid);
    }
  };

  LogicalResult matchAndRewrite(RecurrentCellOp op,
                                PatternRewriter &rewriter) const override {
    if (cast<RankedTensorType>(op.getHidden().getType()).isDynamicDim(1))
      return rewriter.notifyMatchFailure(op, "needs a static width");
    KernelBuilder k(rewriter, op.getLoc());
    bool lstm = op.getKind() == CellKind::Lstm;
    SmallVector<Value> results;
    auto sum = [&](const Place &at, int64_t gate) -> Value {
      return arith::AddFOp::create(at.k.b, at.k.loc,
                                   at.load(op.getInputGates(), gate),
                                   at.load(op.getHiddenGates(), gate));
    };
    auto sigmoid = [&](const Place &at, int64_t gate) {
      return emitActivation(at.k, Activation::Sigmoid, sum(at, gate));
    };
    auto multiply = [](const Place &at, Value lhs, Value rhs) -> Value {
      return arith::MulFOp::create(at.k.b, at.k.loc, lhs, rhs);
    };

    Value cell;
    if (lstm)
      cell = update(k, op, op.getCell(), [&](const Place &at, Value old) {
        Value fresh =
            multiply(at, sigmoid(at, 0),
                     emitActivation(at.k, Activation::Tanh, sum(at, 2)));
        return at.k.fma(sigmoid(at, 1), old, fresh);
      });
    Value hidden =
        update(k, op, op.getHidden(), [&](const Place &at, Value old) -> Value {
          switch (op.getKind()) {
          case CellKind::Rnn:
            return emitActivation(at.k, Activation::Tanh, sum(at, 0));
          case CellKind::RnnRelu:
            return emitActivation(at.k, Activation::Relu, sum(at, 0));
          case CellKind::Gru: {
            Value candidate = emitActivation(
                at.k, Activation::Tanh,
                at.k.fma(sigmoid(at, 0), at.load(op.getHiddenGates(), 2),
                         at.load(op.getInputGates(), 2)));
            // (1 - z) n + z h
            Value rest =
                arith::SubFOp::create(at.k.b, at.k.loc, old, candidate);
            return at.k.fma(sigmoid(at, 1), rest, candidate);
          }
          case CellKind::Lstm:
            return multiply(
                at, sigmoid(at, 3),
                emitActivation(at.k, Activation::Tanh, at.load(cell, 0)));
          }
          llvm_unreachable("every cell is listed");
        });
    results.push_back(hidden);
    if (lstm)
      results.push_back(cell);
    rewriter.replaceOp(op, results);
    return success();
  }

  /// `state` with every vector replaced, in place, where the row is kept.
  Value update(KernelBuilder &k, RecurrentCellOp op, Value state,
               function_ref<Value(const Place &, Value old)> compute) const {
    int64_t width = cast<RankedTensorType>(state.getType()).getDimSize(1);
    bool even = width % lanes == 0;
    return k.forallTiles(
        {getAsOpFoldResult(k.dim(state, 0)),
         k.b.getIndexAttr((width + lanes - 1) / lanes)},
        state,
        [&](KernelBuilder &k, ValueRange ivs) {
          Value column = k.mul(ivs[1], lanes);
          OpFoldResult size = k.b.getIndexAttr(lanes);
          if (!even)
            size = k.min(k.index(lanes), k.sub(k.index(width), column));
          return KernelBuilder::Tile{{ivs[0], column},
                                     {k.b.getIndexAttr(1), size}};
        },
        [&](KernelBuilder &k, ValueRange ivs, Value tile) {
          Value column = k.mul(ivs[1], lanes), valid;
          if (!even)
            valid = k.min(k.index(lanes), k.sub(k.index(width), column));
          Place at{k, ivs[0], column, valid, width, lanes};
          Value start = k.index(0);
          Value old = k.load(tile, {start, start}, lanes, valid);
          Value next = compute(at, old);
          if (op.getKeep()) {
            Value keep = tensor::ExtractOp::create(k.b, k.loc, op.getKeep(),
                                                   ValueRange{ivs[0]});
            next = arith::SelectOp::create(k.b, k.loc, keep, next, old);
          }
          return k.store(next, tile, {start, start}, valid);
        });
  }

  int64_t lanes;
};

/// A vector of activations per score, summed over its lanes at the end.
struct LowerAdditive final : OpRewritePattern<AdditiveSimilarityOp> {
  LowerAdditive(MLIRContext *context, const VectorLowering &lowering)
      : OpRewritePattern(context), lanes(lowering.lanes) {}

  LogicalResult matchAndRewrite(AdditiveSimilarityOp op,
                                PatternRewriter &rewriter) const override {
    auto vectorType = cast<RankedTensorType>(op.getVector().getType());
    if (vectorType.isDynamicDim(1))
      return rewriter.notifyMatchFailure(op, "needs a static width");
    int64_t width = vectorType.getDimSize(1);
    KernelBuilder k(rewriter, op.getLoc());
    Value query = op.getQuery(), key = op.getKey(), vector = op.getVector();
    SmallVector<OpFoldResult> sizes;
    for (auto [value, dim] : {std::pair(query, 0), std::pair(query, 1),
                              std::pair(query, 2), std::pair(key, 2)})
      sizes.push_back(tensor::getMixedSize(rewriter, op.getLoc(), value, dim));
    Value dest = tensor::EmptyOp::create(rewriter, op.getLoc(), sizes,
                                         rewriter.getF32Type());
    if (dest.getType() != op.getType())
      dest = tensor::CastOp::create(rewriter, op.getLoc(), op.getType(), dest);
    OpFoldResult unit = rewriter.getIndexAttr(1);
    Value scores = k.forallTiles(
        sizes, dest,
        [&](KernelBuilder &k, ValueRange ivs) {
          return KernelBuilder::Tile{llvm::to_vector(ivs),
                                     {unit, unit, unit, unit}};
        },
        [&](KernelBuilder &k, ValueRange ivs, Value tile) {
          Value total =
              forColumns(k, width, lanes, k.splat(0.0, lanes),
                         [&](KernelBuilder &k, Value column, Value valid,
                             ValueRange carried) {
                           Value sum = arith::AddFOp::create(
                               k.b, k.loc,
                               k.load(query, {ivs[0], ivs[1], ivs[2], column},
                                      lanes, valid),
                               k.load(key, {ivs[0], ivs[1], ivs[3], column},
                                      lanes, valid));
                           // Lanes beyond the width have weight zero.
                           Value weight = k.load(vector, {k.index(0), column},
                                                 lanes, valid);
                           return KernelBuilder::Values{
                               k.fma(emitActivation(k, op.getActivation(), sum),
                                     weight, carried[0])};
                         })[0];
          Value score = vector::ReductionOp::create(
              k.b, k.loc, vector::CombiningKind::ADD, total);
          SmallVector<Value> start(4, k.index(0));
          return tensor::InsertOp::create(k.b, k.loc, score, tile, start)
              .getResult();
        });
    rewriter.replaceOp(op, scores);
    return success();
  }

  int64_t lanes;
};

} // namespace

void populateRecurrentPatterns(RewritePatternSet &patterns,
                               const VectorLowering &lowering) {
  patterns.add<LowerCell, LowerAdditive>(patterns.getContext(), lowering);
}

} // namespace attune

//===- StateSpace.cpp - Causal convolutions, selective scans ----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"

using namespace mlir;

namespace attune {
namespace {

Value times(KernelBuilder &k, Value x, Value y) {
  return arith::MulFOp::create(k.b, k.loc, x, y);
}
Value exponential(KernelBuilder &k, Value x) {
  return math::ExpOp::create(k.b, k.loc, x);
}

/// An empty tensor of the type of `result`.
Value emptyLike(OpBuilder &b, Location loc, Value result,
                ArrayRef<OpFoldResult> sizes) {
  auto type = cast<RankedTensorType>(result.getType());
  Value empty = tensor::EmptyOp::create(b, loc, sizes, type.getElementType());
  return empty.getType() == type
             ? empty
             : tensor::CastOp::create(b, loc, type, empty).getResult();
}

/// A vector of channels at a time.
struct Channels {
  int64_t count, lanes;

  OpFoldResult tiles(OpBuilder &b) const {
    return b.getIndexAttr(llvm::divideCeil(count, lanes));
  }
  /// How many of the vector at `column` exist; null if all.
  Value valid(KernelBuilder &k, Value column) const {
    return count % lanes == 0
               ? Value()
               : k.min(k.index(lanes), k.sub(k.index(count), column));
  }
};

struct LowerCausalConv final : OpRewritePattern<CausalConvOp> {
  LowerCausalConv(MLIRContext *context, const VectorLowering &lowering)
      : OpRewritePattern(context), lanes(lowering.lanes) {}

  LogicalResult matchAndRewrite(CausalConvOp op,
                                PatternRewriter &rewriter) const override {
    auto taps = cast<RankedTensorType>(op.getWeight().getType());
    if (!taps.hasStaticShape())
      return rewriter.notifyMatchFailure(op, "needs static channels and taps");
    Channels channels{taps.getDimSize(0), lanes};
    int64_t numTaps = taps.getDimSize(1);
    KernelBuilder k(rewriter, op.getLoc());
    Value input = op.getInput();
    SmallVector<OpFoldResult> sizes =
        tensor::getMixedSizes(rewriter, op.getLoc(), input);
    Value dest = emptyLike(rewriter, op.getLoc(), op.getResult(), sizes);
    OpFoldResult unit = rewriter.getIndexAttr(1);
    // A thread walks the tokens of its channels with their taps in registers.
    Value result = k.forallTiles(
        {sizes[0], channels.tiles(rewriter)}, dest,
        [&](KernelBuilder &k, ValueRange ivs) {
          Value column = k.mul(ivs[1], lanes),
                valid = channels.valid(k, column);
          return KernelBuilder::Tile{
              {ivs[0], k.index(0), column},
              {unit, sizes[1],
               valid ? OpFoldResult(valid) : k.b.getIndexAttr(lanes)}};
        },
        [&](KernelBuilder &k, ValueRange ivs, Value tile) {
          Value batch = ivs[0], column = k.mul(ivs[1], lanes);
          Value valid = channels.valid(k, column), zero = k.index(0);
          auto weights = [&](int64_t tap) -> Value {
            Value all = k.splat(0.0, lanes);
            for (int64_t lane = 0; lane < lanes; ++lane) {
              // Lanes that do not exist repeat the last channel.
              Value at = k.min(k.add(column, k.index(lane)),
                               k.index(channels.count - 1));
              all = vector::InsertOp::create(
                  k.b, k.loc, k.loadScalar(op.getWeight(), {at, k.index(tap)}),
                  all, lane);
            }
            return all;
          };
          KernelBuilder::Values filter;
          for (int64_t tap = 0; tap < numTaps; ++tap)
            filter.push_back(weights(tap));
          Value bias = op.getBias()
                           ? k.load(op.getBias(), {column}, lanes, valid)
                           : k.splat(0.0, lanes);
          // The last inputs, oldest first, move up by one each token.
          KernelBuilder::Values carried(numTaps - 1, k.splat(0.0, lanes));
          carried.push_back(tile);
          return k
              .forLoop(
                  zero, k.dim(input, 1), 1, carried,
                  [&](KernelBuilder &k, Value token, ValueRange carried) {
                    KernelBuilder::Values inputs(carried.drop_back());
                    Value keep, none = k.splat(0.0, lanes);
                    Value x =
                        k.load(input, {batch, token, column}, lanes, valid);
                    if (op.getKeep()) {
                      keep = tensor::ExtractOp::create(
                          k.b, k.loc, op.getKeep(), ValueRange{batch, token});
                      x = arith::SelectOp::create(k.b, k.loc, keep, x, none);
                    }
                    inputs.push_back(x);
                    Value sum = bias;
                    for (auto [weight, x] : llvm::zip(filter, inputs))
                      sum = k.fma(weight, x, sum);
                    sum = emitActivation(k, op.getActivation(), sum);
                    if (keep)
                      sum =
                          arith::SelectOp::create(k.b, k.loc, keep, sum, none);
                    KernelBuilder::Values next(llvm::drop_begin(inputs));
                    next.push_back(k.store(sum, carried.back(),
                                           {zero, token, zero}, valid));
                    return next;
                  })
              .back();
        });
    rewriter.replaceOp(op, result);
    return success();
  }

  int64_t lanes;
};

struct LowerSelectiveScan final : OpRewritePattern<SelectiveScanOp> {
  LowerSelectiveScan(MLIRContext *context, const VectorLowering &lowering)
      : OpRewritePattern(context), lanes(lowering.lanes) {}

  LogicalResult matchAndRewrite(SelectiveScanOp op,
                                PatternRewriter &rewriter) const override {
    auto decays = cast<RankedTensorType>(op.getALog().getType());
    if (!decays.hasStaticShape())
      return rewriter.notifyMatchFailure(op, "needs static channels, states");
    Channels channels{decays.getDimSize(0), lanes};
    int64_t states = decays.getDimSize(1);
    Location loc = op.getLoc();
    SmallVector<OpFoldResult> sizes =
        tensor::getMixedSizes(rewriter, loc, op.getInput());
    Value dests[] = {
        emptyLike(rewriter, loc, op.getResult(), sizes),
        emptyLike(rewriter, loc, op.getLast(),
                  {sizes[0], rewriter.getIndexAttr(states), sizes[2]})};
    auto loop = scf::ForallOp::create(
        rewriter, loc,
        ArrayRef<OpFoldResult>{sizes[0], channels.tiles(rewriter)}, dests,
        std::nullopt);
    {
      OpBuilder::InsertionGuard guard(rewriter);
      rewriter.setInsertionPointToStart(loop.getBody());
      KernelBuilder k(rewriter, loc);
      Value column = k.mul(loop.getInductionVars()[1], lanes);
      Value valid = channels.valid(k, column);
      OpFoldResult unit = rewriter.getIndexAttr(1);
      SmallVector<OpFoldResult> offsets = {loop.getInductionVars()[0],
                                           rewriter.getIndexAttr(0), column};
      SmallVector<OpFoldResult> strides(3, unit);
      OpFoldResult width =
          valid ? OpFoldResult(valid) : rewriter.getIndexAttr(lanes);
      SmallVector<OpFoldResult> shapes[] = {
          {unit, sizes[1], width},
          {unit, rewriter.getIndexAttr(states), width}};
      Value tiles[2];
      for (int i : {0, 1})
        tiles[i] = tensor::ExtractSliceOp::create(rewriter, loc,
                                                  loop.getRegionIterArgs()[i],
                                                  offsets, shapes[i], strides);
      Tile tile{loop.getInductionVars()[0], column, valid, states};
      KernelBuilder::Values done = run(k, op, tile, tiles[0], tiles[1]);
      rewriter.setInsertionPointToStart(loop.getTerminator().getBody());
      for (int i : {0, 1})
        tensor::ParallelInsertSliceOp::create(rewriter, loc, done[i],
                                              loop.getRegionIterArgs()[i],
                                              offsets, shapes[i], strides);
    }
    rewriter.replaceOp(op, loop.getResults());
    return success();
  }

  /// Channels of one sequence.
  struct Tile {
    Value batch, column, valid;
    int64_t states;
  };

  /// One vector for each state, made by `make`, in scratch memory.
  Value
  forStates(KernelBuilder &k, int64_t states, Value scratch,
            function_ref<Value(KernelBuilder &, Value state)> make) const {
    return k.forLoop(k.index(0), k.index(states), 1, scratch,
                     [&](KernelBuilder &k, Value state, ValueRange carried) {
                       return KernelBuilder::Values{k.store(
                           make(k, state), carried[0], {state, k.index(0)})};
                     })[0];
  }

  /// All tokens of the tile: Y and the last states, written.
  KernelBuilder::Values run(KernelBuilder &k, SelectiveScanOp op,
                            const Tile &tile, Value sequence,
                            Value last) const {
    Value zero = k.index(0), numStates = k.index(tile.states);
    auto scratch = [&]() -> Value {
      return tensor::EmptyOp::create(
          k.b, k.loc, ArrayRef<int64_t>{tile.states, lanes}, k.b.getF32Type());
    };
    Value lastChannel = k.sub(k.dim(op.getInput(), 2), k.index(1));
    Value decay = forStates(
        k, tile.states, scratch(), [&](KernelBuilder &k, Value state) -> Value {
          Value all = k.splat(0.0, lanes);
          for (int64_t lane = 0; lane < lanes; ++lane) {
            // Lanes that do not exist repeat the last channel.
            Value at = k.min(k.add(tile.column, k.index(lane)), lastChannel);
            all = vector::InsertOp::create(
                k.b, k.loc, k.loadScalar(op.getALog(), {at, state}), all, lane);
          }
          return arith::NegFOp::create(k.b, k.loc, exponential(k, all));
        });
    Value states = forStates(
        k, tile.states, scratch(), [&](KernelBuilder &k, Value state) {
          return op.getState()
                     ? k.load(op.getState(), {tile.batch, state, tile.column},
                              lanes, tile.valid)
                     : k.splat(0.0, lanes);
        });
    Value skip = k.load(op.getSkip(), {tile.column}, lanes, tile.valid);

    KernelBuilder::Values ends = k.forLoop(
        zero, k.dim(op.getInput(), 1), 1, {sequence, states},
        [&](KernelBuilder &k, Value token, ValueRange carried) {
          auto load = [&](Value from) {
            return k.load(from, {tile.batch, token, tile.column}, lanes,
                          tile.valid);
          };
          auto scalar = [&](KernelBuilder &k, Value from, Value state) {
            return k.splat(k.loadScalar(from, {tile.batch, token, state}),
                           lanes);
          };
          Value x = load(op.getInput());
          Value step =
              emitActivation(k, Activation::Softplus, load(op.getStep()));
          Value scaled = times(k, step, x);
          KernelBuilder::Values sums = k.forLoop(
              zero, numStates, 1, {times(k, skip, x), carried[1]},
              [&](KernelBuilder &k, Value state, ValueRange carried) {
                Value rate = k.load(decay, {state, zero}, lanes);
                Value kept = exponential(k, times(k, step, rate));
                Value old = k.load(carried[1], {state, zero}, lanes);
                Value fresh = times(k, scaled, scalar(k, op.getB(), state));
                Value next = k.fma(kept, old, fresh);
                return KernelBuilder::Values{
                    k.fma(scalar(k, op.getC(), state), next, carried[0]),
                    k.store(next, carried[1], {state, zero})};
              });
          Value y = sums[0];
          if (op.getGate())
            y = times(k, y,
                      emitActivation(k, Activation::Silu, load(op.getGate())));
          return KernelBuilder::Values{
              k.store(y, carried[0], {zero, token, zero}, tile.valid), sums[1]};
        });
    Value copied =
        k.forLoop(zero, numStates, 1, last,
                  [&](KernelBuilder &k, Value state, ValueRange carried) {
                    return KernelBuilder::Values{
                        k.store(k.load(ends[1], {state, zero}, lanes),
                                carried[0], {zero, state, zero}, tile.valid)};
                  })[0];
    return {ends[0], copied};
  }

  int64_t lanes;
};

} // namespace

void populateStateSpacePatterns(RewritePatternSet &patterns,
                                const VectorLowering &lowering) {
  patterns.add<LowerCausalConv, LowerSelectiveScan>(patterns.getContext(),
                                                    lowering);
}

} // namespace attune

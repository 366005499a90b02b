//===- StateSpace.cpp - Causal convolutions, selective scans ----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Channels.h"

using namespace mlir;

namespace attune {
namespace {

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

/// A GPU's thread holds up to this many states of a channel, with as many
/// decays, in registers; more of them lie on its stack.
constexpr int64_t kHeldStates = 64;

struct LowerSelectiveScan final : OpRewritePattern<SelectiveScanOp> {
  LowerSelectiveScan(MLIRContext *context, const VectorLowering &lowering)
      : OpRewritePattern(context), lanes(lowering.lanes),
        cooperative(lowering.cooperative) {}

  LogicalResult matchAndRewrite(SelectiveScanOp op,
                                PatternRewriter &rewriter) const override {
    int64_t numChannels = op.getInput().getType().getDimSize(2);
    int64_t states = op.getLast().getType().getDimSize(1);
    int64_t width = op.getB().getType().getDimSize(2);
    auto decays = cast<RankedTensorType>(op.getALog().getType());
    if (!decays.hasStaticShape() || ShapedType::isDynamic(numChannels) ||
        ShapedType::isDynamic(states) || ShapedType::isDynamic(width))
      return rewriter.notifyMatchFailure(op, "needs static channels, states");
    // Registers cannot be indexed, and neighbours of a warp read what is next
    // to each other: where threads are many, each has one channel.
    bool held = cooperative && states <= kHeldStates;
    Channels channels{numChannels, held ? 1 : lanes};
    int64_t head = op.hasHeads() ? numChannels / decays.getDimSize(0) : 1;
    int64_t group = numChannels / (width / states);
    KernelBuilder::Values results = forChannelTiles(
        rewriter, op.getLoc(), channels, op.getInput(), op.getResult(),
        op.getLast(),
        [&](KernelBuilder &k, const ChannelTile &part, ValueRange tiles) {
          Tile tile{part, op, states, head, group};
          return held ? runHeld(k, tile, tiles[0], tiles[1])
                      : run(k, tile, tiles[0], tiles[1]);
        });
    rewriter.replaceOp(op, results);
    return success();
  }

private:
  struct Tile : ChannelTile {
    SelectiveScanOp op;
    int64_t states;
    int64_t head;  ///< channels that share a step, a decay and a skip
    int64_t group; ///< channels that share B and C

    /// Minus the exponential of A_log; heads have one for all states.
    Value decay(KernelBuilder &k, Value state) {
      Value all = perLane(k, head, [&](KernelBuilder &k, Value at) {
        return op.hasHeads() ? k.loadScalar(op.getALog(), {at})
                             : k.loadScalar(op.getALog(), {at, state});
      });
      return arith::NegFOp::create(k.b, k.loc, exponential(k, all));
    }
    /// The initial value of a state.
    Value first(KernelBuilder &k, Value state) {
      return op.getState() ? k.load(op.getState(), {batch, state, column},
                                    channels.lanes, valid)
                           : k.splat(0.0, channels.lanes);
    }
    Value skip(KernelBuilder &k) {
      if (!op.hasHeads())
        return k.load(op.getSkip(), {column}, channels.lanes, valid);
      return perLane(k, head, [&](KernelBuilder &k, Value at) {
        return k.loadScalar(op.getSkip(), {at});
      });
    }
  };

  /// A token of the tile.
  struct Token {
    /// `decay` is that of heads, else null.
    Token(KernelBuilder &k, Tile &tile, Value number, Value skip, Value decay)
        : tile(tile), number(number) {
      Value x = load(k, tile.op.getInput());
      Value raw = tile.op.hasHeads()
                      ? tile.ofRuns(k, tile.head, tile.op.getStep(), number)
                      : load(k, tile.op.getStep());
      step = emitActivation(k, Activation::Softplus, raw);
      scaled = times(k, step, x);
      skipped = times(k, skip, x);
      if (decay)
        kept = exponential(k, times(k, step, decay));
    }
    Value load(KernelBuilder &k, Value from) {
      return k.load(from, {tile.batch, number, tile.column},
                    tile.channels.lanes, tile.valid);
    }
    Value ofState(KernelBuilder &k, Value from, Value state) {
      return tile.ofState(k, tile.group, tile.states, from, number, state);
    }
    /// The state behind the token. `decay` is null where heads have theirs.
    Value next(KernelBuilder &k, Value state, Value decay, Value old) {
      Value by = kept ? kept : exponential(k, times(k, step, decay));
      Value fresh = times(k, scaled, ofState(k, tile.op.getB(), state));
      return k.fma(by, old, fresh);
    }
    /// The sum with what the state gives.
    Value read(KernelBuilder &k, Value state, Value next, Value sum) {
      return k.fma(ofState(k, tile.op.getC(), state), next, sum);
    }
    /// The result, written.
    Value finish(KernelBuilder &k, Value sum, Value sequence) {
      if (Value gate = tile.op.getGate())
        sum = times(k, sum, emitActivation(k, Activation::Silu, load(k, gate)));
      return k.store(sum, sequence, {k.index(0), number, k.index(0)},
                     tile.valid);
    }

    Tile &tile;
    Value number, step, scaled, skipped;
    Value kept; ///< what heads keep of all their states
  };

  /// All tokens of the tile: Y and the last states, written.
  static KernelBuilder::Values run(KernelBuilder &k, Tile &tile, Value sequence,
                                   Value last) {
    Value zero = k.index(0), numStates = k.index(tile.states);
    Value ofHeads, decay;
    if (tile.op.hasHeads())
      ofHeads = tile.decay(k, /*state=*/Value());
    else
      decay = forStates(
          k, tile.states, tile.channels.lanes,
          [&](KernelBuilder &k, Value state) { return tile.decay(k, state); });
    Value states = forStates(
        k, tile.states, tile.channels.lanes,
        [&](KernelBuilder &k, Value state) { return tile.first(k, state); });
    Value skip = tile.skip(k);
    KernelBuilder::Values ends = k.forLoop(
        zero, k.dim(tile.op.getInput(), 1), 1, {sequence, states},
        [&](KernelBuilder &k, Value number, ValueRange carried) {
          Token token(k, tile, number, skip, ofHeads);
          KernelBuilder::Values sums = k.forLoop(
              zero, numStates, 1, {token.skipped, carried[1]},
              [&](KernelBuilder &k, Value state, ValueRange carried) {
                Value rate =
                    decay ? k.load(decay, {state, zero}, tile.channels.lanes)
                          : Value();
                Value old =
                    k.load(carried[1], {state, zero}, tile.channels.lanes);
                Value next = token.next(k, state, rate, old);
                return KernelBuilder::Values{
                    token.read(k, state, next, carried[0]),
                    k.store(next, carried[1], {state, zero})};
              });
          return KernelBuilder::Values{token.finish(k, sums[0], carried[0]),
                                       sums[1]};
        });
    return {ends[0], copyStates(k, tile.states, tile, ends[1], last)};
  }

  /// The same with a register for each state.
  static KernelBuilder::Values runHeld(KernelBuilder &k, Tile &tile,
                                       Value sequence, Value last) {
    KernelBuilder::Values decays(tile.states), carried = {sequence};
    Value ofHeads;
    if (tile.op.hasHeads())
      ofHeads = tile.decay(k, /*state=*/Value());
    for (int64_t state = 0; state < tile.states; ++state) {
      if (!ofHeads)
        decays[state] = tile.decay(k, k.index(state));
      carried.push_back(tile.first(k, k.index(state)));
    }
    Value skip = tile.skip(k), zero = k.index(0);
    KernelBuilder::Values ends = k.forLoop(
        zero, k.dim(tile.op.getInput(), 1), 1, carried,
        [&](KernelBuilder &k, Value number, ValueRange carried) {
          Token token(k, tile, number, skip, ofHeads);
          Value sum = token.skipped;
          KernelBuilder::Values next = {carried[0]};
          for (int64_t state = 0; state < tile.states; ++state) {
            next.push_back(token.next(k, k.index(state), decays[state],
                                      carried[1 + state]));
            sum = token.read(k, k.index(state), next.back(), sum);
          }
          next[0] = token.finish(k, sum, carried[0]);
          return next;
        });
    for (int64_t state = 0; state < tile.states; ++state)
      last = k.store(ends[1 + state], last, {zero, k.index(state), zero},
                     tile.valid);
    return {ends[0], last};
  }

  int64_t lanes;
  bool cooperative;
};

} // namespace

void populateStateSpacePatterns(RewritePatternSet &patterns,
                                const VectorLowering &lowering) {
  patterns.add<LowerCausalConv, LowerSelectiveScan>(patterns.getContext(),
                                                    lowering);
}

} // namespace attune

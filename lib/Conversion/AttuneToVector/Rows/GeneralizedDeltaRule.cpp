//===- GeneralizedDeltaRule.cpp - Memories with two more keys ---*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Channels.h"

using namespace mlir;

namespace attune {
namespace {

/// As many as a delta rule's.
constexpr int64_t kHeldStates = 128;

/// Some channels of one sequence.
struct Tile : ChannelTile {
  GeneralizedDeltaRuleOp op;
  int64_t states;
  int64_t head; ///< channels that share the numbers of a head

  /// The initial value of a state.
  Value first(KernelBuilder &k, Value state) {
    return op.getState() ? k.load(op.getState(), {batch, state, column},
                                  channels.lanes, valid)
                         : k.splat(0.0, channels.lanes);
  }
  Value ofToken(KernelBuilder &k, Value from, Value token, Value state) {
    return ofState(k, head, states, from, token, state);
  }
  Value bonus(KernelBuilder &k, Value state) {
    return perLane(k, head, [&](KernelBuilder &k, Value at) {
      return k.loadScalar(op.getBonus(), {k.add(k.mul(at, states), state)});
    });
  }
};

/// A token of the tile. The first pass over the states asks the memory for what
/// is removed, and the second one changes it and asks for q.
struct Token {
  Token(KernelBuilder &k, Tile &tile, Value number)
      : tile(tile), number(number),
        value(k.load(tile.op.getValue(), {tile.batch, number, tile.column},
                     tile.channels.lanes, tile.valid)),
        zero(k.splat(0.0, tile.channels.lanes)) {}

  Value ask(KernelBuilder &k, Value state, Value old, Value sum) {
    return k.fma(tile.ofToken(k, tile.op.getRemove(), number, state), old, sum);
  }
  /// The state behind the token, from what the first pass gave.
  Value next(KernelBuilder &k, Value state, Value old, Value removed) {
    Value kept =
        exponential(k, tile.ofToken(k, tile.op.getDecay(), number, state));
    Value sum =
        times(k, tile.ofToken(k, tile.op.getReplace(), number, state), removed);
    sum = k.fma(tile.ofToken(k, tile.op.getKey(), number, state), value, sum);
    return k.fma(kept, old, sum);
  }
  /// Sums of q with the memory and, by the bonus, with k.
  KernelBuilder::Values start() { return {zero, zero}; }
  KernelBuilder::Values add(KernelBuilder &k, Value state, Value next,
                            ValueRange sums) {
    Value query = tile.ofToken(k, tile.op.getQuery(), number, state);
    Value own = times(k, tile.ofToken(k, tile.op.getKey(), number, state),
                      tile.bonus(k, state));
    return {k.fma(query, next, sums[0]), k.fma(query, own, sums[1])};
  }
  /// Both results, written.
  KernelBuilder::Values finish(KernelBuilder &k, ValueRange sums, Value result,
                               Value own) {
    Value at[] = {k.index(0), number, k.index(0)};
    return {k.store(sums[0], result, at, tile.valid),
            k.store(times(k, sums[1], value), own, at, tile.valid)};
  }

  Tile &tile;
  Value number, value, zero;
};

struct LowerGeneralizedDeltaRule final
    : OpRewritePattern<GeneralizedDeltaRuleOp> {
  LowerGeneralizedDeltaRule(MLIRContext *context,
                            const VectorLowering &lowering)
      : OpRewritePattern(context), lanes(lowering.lanes),
        cooperative(lowering.cooperative) {}

  LogicalResult matchAndRewrite(GeneralizedDeltaRuleOp op,
                                PatternRewriter &rewriter) const override {
    int64_t numChannels = op.getValue().getType().getDimSize(2);
    int64_t states = op.getLast().getType().getDimSize(1);
    int64_t width = op.getQuery().getType().getDimSize(2);
    for (int64_t size : {numChannels, states, width})
      if (ShapedType::isDynamic(size))
        return rewriter.notifyMatchFailure(op, "needs static channels, states");
    // As in a selective scan.
    bool held = cooperative && states <= kHeldStates;
    Channels channels{numChannels, held ? 1 : lanes};
    KernelBuilder::Values results = forChannelTiles(
        rewriter, op.getLoc(), channels, op.getValue(),
        ValueRange{op.getResult(), op.getOwn()}, op.getLast(),
        [&](KernelBuilder &k, const ChannelTile &part, ValueRange tiles) {
          Tile tile{part, op, states, numChannels / (width / states)};
          return held ? runHeld(k, tile, tiles) : run(k, tile, tiles);
        });
    rewriter.replaceOp(op, {results[0], results[2], results[1]});
    return success();
  }

private:
  /// All tokens of the tile: both results and the last states, written.
  static KernelBuilder::Values run(KernelBuilder &k, Tile &tile,
                                   ValueRange tiles) {
    Value zero = k.index(0), numStates = k.index(tile.states);
    int64_t lanes = tile.channels.lanes;
    Value states =
        forStates(k, tile.states, lanes, [&](KernelBuilder &k, Value state) {
          return tile.first(k, state);
        });
    KernelBuilder::Values ends = k.forLoop(
        zero, k.dim(tile.op.getValue(), 1), 1, {tiles[0], tiles[1], states},
        [&](KernelBuilder &k, Value number, ValueRange carried) {
          Token token(k, tile, number);
          Value memory = carried[2];
          Value removed = k.forLoop(
              zero, numStates, 1, token.zero,
              [&](KernelBuilder &k, Value state, ValueRange sums) {
                Value old = k.load(memory, {state, zero}, lanes);
                return KernelBuilder::Values{token.ask(k, state, old, sums[0])};
              })[0];
          KernelBuilder::Values inits = token.start();
          inits.push_back(memory);
          KernelBuilder::Values sums = k.forLoop(
              zero, numStates, 1, inits,
              [&](KernelBuilder &k, Value state, ValueRange carried) {
                Value old = k.load(carried.back(), {state, zero}, lanes);
                Value next = token.next(k, state, old, removed);
                KernelBuilder::Values after =
                    token.add(k, state, next, carried.drop_back());
                after.push_back(k.store(next, carried.back(), {state, zero}));
                return after;
              });
          Value changed = sums.pop_back_val();
          KernelBuilder::Values results =
              token.finish(k, sums, carried[0], carried[1]);
          results.push_back(changed);
          return results;
        });
    return {ends[0], ends[1],
            copyStates(k, tile.states, tile, ends[2], tiles[2])};
  }

  /// The same with a register for each state.
  static KernelBuilder::Values runHeld(KernelBuilder &k, Tile &tile,
                                       ValueRange tiles) {
    KernelBuilder::Values inits = {tiles[0], tiles[1]};
    for (int64_t state = 0; state < tile.states; ++state)
      inits.push_back(tile.first(k, k.index(state)));
    Value zero = k.index(0);
    KernelBuilder::Values ends = k.forLoop(
        zero, k.dim(tile.op.getValue(), 1), 1, inits,
        [&](KernelBuilder &k, Value number, ValueRange carried) {
          Token token(k, tile, number);
          Value removed = token.zero;
          for (int64_t state = 0; state < tile.states; ++state)
            removed = token.ask(k, k.index(state), carried[2 + state], removed);
          KernelBuilder::Values sums = token.start(), held;
          for (int64_t state = 0; state < tile.states; ++state) {
            Value at = k.index(state);
            held.push_back(token.next(k, at, carried[2 + state], removed));
            sums = token.add(k, at, held.back(), sums);
          }
          KernelBuilder::Values results =
              token.finish(k, sums, carried[0], carried[1]);
          results.append(held);
          return results;
        });
    Value last = tiles[2];
    for (int64_t state = 0; state < tile.states; ++state)
      last = k.store(ends[2 + state], last, {zero, k.index(state), zero},
                     tile.valid);
    return {ends[0], ends[1], last};
  }

  int64_t lanes;
  bool cooperative;
};

} // namespace

void populateGeneralizedDeltaRulePatterns(RewritePatternSet &patterns,
                                          const VectorLowering &lowering) {
  patterns.add<LowerGeneralizedDeltaRule>(patterns.getContext(), lowering);
}

} // namespace attune

//===- DeltaRule.cpp - Memories that correct themselves ---------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Channels.h"

using namespace mlir;

namespace attune {
namespace {

/// A GPU's thread holds up to this many states of a channel in registers, which
/// leaves as many for what it computes; more of them lie on its stack.
constexpr int64_t kHeldStates = 128;

/// Some channels of one sequence.
struct Tile : ChannelTile {
  DeltaRuleOp op;
  int64_t states;
  int64_t head;   ///< channels that share a step and a beta
  int64_t group;  ///< channels that share q and k
  bool eachState; ///< of a memory has a step of its own

  /// The initial value of a state.
  Value first(KernelBuilder &k, Value state) {
    return op.getState() ? k.load(op.getState(), {batch, state, column},
                                  channels.lanes, valid)
                         : k.splat(0.0, channels.lanes);
  }
};

/// A token of the tile. Both passes over the states read each once: the first
/// one asks the memory for k, and the second one changes it and asks for q. A
/// memory that decays as a whole does so behind the first pass; where each
/// state has a step of its own, the first pass decays them. q and k are divided
/// by their norms where they have been added up, so that no tensor of normed
/// ones is made.
struct Token {
  Token(KernelBuilder &k, Tile &tile, Value number, Value rate)
      : tile(tile), number(number), rate(rate),
        zero(k.splat(0.0, tile.channels.lanes)) {
    if (!tile.eachState)
      kept = left(k, tile.ofRuns(k, tile.head, tile.op.getStep(), number));
    beta = emitActivation(k, Activation::Sigmoid,
                          tile.ofRuns(k, tile.head, tile.op.getBeta(), number));
  }

  /// What a pass adds up: products with the states, and squares.
  KernelBuilder::Values start() {
    KernelBuilder::Values sums = {zero};
    if (tile.op.getEps())
      sums.push_back(zero);
    return sums;
  }
  KernelBuilder::Values add(KernelBuilder &k, Value factor, Value state,
                            ValueRange sums) {
    KernelBuilder::Values next = {k.fma(factor, state, sums[0])};
    if (tile.op.getEps())
      next.push_back(k.fma(factor, factor, sums[1]));
    return next;
  }
  Value of(KernelBuilder &k, Value from, Value state) {
    return tile.ofState(k, tile.group, tile.states, from, number, state);
  }
  /// The number of a state as the first pass leaves it.
  Value decayed(KernelBuilder &k, Value old, Value state) {
    if (!tile.eachState)
      return old;
    Value step = tile.ofState(k, tile.head, tile.states, tile.op.getStep(),
                              number, state);
    return times(k, left(k, step), old);
  }
  Value key(KernelBuilder &k, Value state) {
    return of(k, tile.op.getKey(), state);
  }
  Value query(KernelBuilder &k, Value state) {
    return of(k, tile.op.getQuery(), state);
  }

  /// After the first pass: what k, as it stands, is added with.
  void correct(KernelBuilder &k, ValueRange sums) {
    Value norm = inverseNorm(k, sums);
    Value known = kept ? times(k, kept, sums[0]) : sums[0];
    if (norm)
      known = times(k, known, norm);
    Value value = k.load(tile.op.getValue(), {tile.batch, number, tile.column},
                         tile.channels.lanes, tile.valid);
    missing = times(k, beta, arith::SubFOp::create(k.b, k.loc, value, known));
    if (norm)
      missing = times(k, missing, norm);
  }
  /// The state behind the token.
  Value next(KernelBuilder &k, Value key, Value old) {
    return k.fma(key, missing, kept ? times(k, kept, old) : old);
  }
  /// The result, written.
  Value finish(KernelBuilder &k, ValueRange sums, Value sequence) {
    Value scale =
        k.splat(tile.op.getScale().convertToDouble(), tile.channels.lanes);
    Value result = times(k, sums[0], scale);
    if (Value norm = inverseNorm(k, sums))
      result = times(k, result, norm);
    return k.store(result, sequence, {k.index(0), number, k.index(0)},
                   tile.valid);
  }

private:
  /// What a step leaves of a number.
  Value left(KernelBuilder &k, Value step) {
    return exponential(
        k, times(k, emitActivation(k, Activation::Softplus, step), rate));
  }
  Value inverseNorm(KernelBuilder &k, ValueRange sums) {
    auto eps = tile.op.getEps();
    if (!eps)
      return {};
    Value squares = arith::AddFOp::create(
        k.b, k.loc, sums[1],
        k.splat(eps->convertToDouble(), tile.channels.lanes));
    return math::RsqrtOp::create(k.b, k.loc, squares);
  }

  Tile &tile;
  Value number, rate, zero, beta, missing;
  Value kept; ///< null if each state has its own
};

struct LowerDeltaRule final : OpRewritePattern<DeltaRuleOp> {
  LowerDeltaRule(MLIRContext *context, const VectorLowering &lowering)
      : OpRewritePattern(context), lanes(lowering.lanes),
        cooperative(lowering.cooperative) {}

  LogicalResult matchAndRewrite(DeltaRuleOp op,
                                PatternRewriter &rewriter) const override {
    int64_t numChannels = op.getValue().getType().getDimSize(2);
    int64_t states = op.getLast().getType().getDimSize(1);
    int64_t width = op.getQuery().getType().getDimSize(2);
    int64_t heads = op.getALog().getType().getDimSize(0);
    bool eachState = op.getStep().getType().getDimSize(2) != heads;
    for (int64_t size : {numChannels, states, width, heads})
      if (ShapedType::isDynamic(size))
        return rewriter.notifyMatchFailure(op, "needs static channels, states");
    // As in a selective scan.
    bool held = cooperative && states <= kHeldStates;
    Channels channels{numChannels, held ? 1 : lanes};
    KernelBuilder::Values results = forChannelTiles(
        rewriter, op.getLoc(), channels, op.getValue(), op.getResult(),
        op.getLast(),
        [&](KernelBuilder &k, const ChannelTile &part, ValueRange tiles) {
          Tile tile{part,
                    op,
                    states,
                    numChannels / heads,
                    numChannels / (width / states),
                    eachState};
          Value log =
              tile.perLane(k, tile.head, [&](KernelBuilder &k, Value at) {
                return k.loadScalar(op.getALog(), {at});
              });
          Value rate = arith::NegFOp::create(k.b, k.loc, exponential(k, log));
          return held ? runHeld(k, tile, rate, tiles[0], tiles[1])
                      : run(k, tile, rate, tiles[0], tiles[1]);
        });
    rewriter.replaceOp(op, results);
    return success();
  }

private:
  /// All tokens of the tile: Y and the last states, written.
  static KernelBuilder::Values run(KernelBuilder &k, Tile &tile, Value rate,
                                   Value sequence, Value last) {
    Value zero = k.index(0), numStates = k.index(tile.states);
    int64_t lanes = tile.channels.lanes;
    Value states =
        forStates(k, tile.states, lanes, [&](KernelBuilder &k, Value state) {
          return tile.first(k, state);
        });
    KernelBuilder::Values ends = k.forLoop(
        zero, k.dim(tile.op.getValue(), 1), 1, {sequence, states},
        [&](KernelBuilder &k, Value number, ValueRange carried) {
          Token token(k, tile, number, rate);
          KernelBuilder::Values asks = token.start();
          asks.push_back(carried[1]);
          asks = k.forLoop(
              zero, numStates, 1, asks,
              [&](KernelBuilder &k, Value state, ValueRange carried) {
                Value states = carried.back();
                Value held = token.decayed(
                    k, k.load(states, {state, zero}, lanes), state);
                KernelBuilder::Values after = token.add(
                    k, token.key(k, state), held, carried.drop_back());
                after.push_back(tile.eachState
                                    ? k.store(held, states, {state, zero})
                                    : states);
                return after;
              });
          Value states = asks.pop_back_val();
          token.correct(k, asks);
          KernelBuilder::Values inits = token.start();
          inits.push_back(states);
          KernelBuilder::Values sums = k.forLoop(
              zero, numStates, 1, inits,
              [&](KernelBuilder &k, Value state, ValueRange carried) {
                Value next =
                    token.next(k, token.key(k, state),
                               k.load(carried.back(), {state, zero}, lanes));
                KernelBuilder::Values after = token.add(
                    k, token.query(k, state), next, carried.drop_back());
                after.push_back(k.store(next, carried.back(), {state, zero}));
                return after;
              });
          Value changed = sums.pop_back_val();
          return KernelBuilder::Values{token.finish(k, sums, carried[0]),
                                       changed};
        });
    return {ends[0], copyStates(k, tile.states, tile, ends[1], last)};
  }

  /// The same with a register for each state.
  static KernelBuilder::Values runHeld(KernelBuilder &k, Tile &tile, Value rate,
                                       Value sequence, Value last) {
    KernelBuilder::Values carried = {sequence};
    for (int64_t state = 0; state < tile.states; ++state)
      carried.push_back(tile.first(k, k.index(state)));
    Value zero = k.index(0);
    KernelBuilder::Values ends = k.forLoop(
        zero, k.dim(tile.op.getValue(), 1), 1, carried,
        [&](KernelBuilder &k, Value number, ValueRange carried) {
          Token token(k, tile, number, rate);
          KernelBuilder::Values sums = token.start(), held;
          for (int64_t state = 0; state < tile.states; ++state) {
            Value at = k.index(state);
            held.push_back(token.decayed(k, carried[1 + state], at));
            sums = token.add(k, token.key(k, at), held.back(), sums);
          }
          token.correct(k, sums);
          sums = token.start();
          KernelBuilder::Values next = {carried[0]};
          for (int64_t state = 0; state < tile.states; ++state) {
            Value at = k.index(state);
            next.push_back(token.next(k, token.key(k, at), held[state]));
            sums = token.add(k, token.query(k, at), next.back(), sums);
          }
          next[0] = token.finish(k, sums, carried[0]);
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

void populateDeltaRulePatterns(RewritePatternSet &patterns,
                               const VectorLowering &lowering) {
  patterns.add<LowerDeltaRule>(patterns.getContext(), lowering);
}

} // namespace attune

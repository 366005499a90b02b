//===- AttentionKernel.cpp - A step of online softmax in vectors ----------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// One step folds a block of keys into the states of a tile of queries. The
// queries of all heads that share the keys are stacked into rows. In order:
//
//   queries, times scale  -> [blocks of rows][rows][width]   once per tile
//   keys, transposed      -> [panels of keys][width][lanes]  keys are lanes
//   values                -> [panels of width][keys][lanes]  channels are lanes
//     (where they lie instead, if they are whole registers of f32)
//   for each block of rows:
//     scores of each panel by the matrix microkernel, soft-capped, biased and
//     masked in registers, stored; their maximum kept in registers
//     new maximum, factor to rescale by; probabilities over the scores, summed
//     accumulator *= factor, += probabilities * values by the microkernel
//
// A matrix unit takes the place of the microkernels: see AttentionMatrix.cpp.
// A single row and few rows need no panels: see AttentionSingle.cpp and
// AttentionFewRows.cpp.
//
// A last block of rows that is not full repeats the last row: its copies are
// all read before any is written, so they write the same numbers.

#include "StepKernel.h"

#include "attune/Conversion/Schedule.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

#include "llvm/Support/SaveAndRestore.h"

#include <cmath>
#include <numeric>

using namespace mlir;

namespace attune {

using Values = KernelBuilder::Values;

namespace {

/// The halves of a vector combined.
Value halve(KernelBuilder &k, Value vector, Combine combine) {
  int64_t lanes = cast<VectorType>(vector.getType()).getDimSize(0);
  assert(lanes % 2 == 0 && "the register tile is a multiple of eight");
  SmallVector<int64_t> low(lanes / 2), high(lanes / 2);
  std::iota(low.begin(), low.end(), 0);
  std::iota(high.begin(), high.end(), lanes / 2);
  return combine(k, shuffle(k, vector, vector, low),
                 shuffle(k, vector, vector, high));
}

/// Whether the lanes of this many rows, each in a vector of `lanes`, are
/// reduced in a square.
bool fillSquare(int64_t rows, int64_t lanes) {
  return (lanes == 8 || lanes == 16) && rows <= lanes && rows > lanes / 4;
}

/// Lanes of a vector that has a number of each row.
int64_t lanesForRows(int64_t rows, int64_t lanes) {
  return fillSquare(rows, lanes) ? lanes : llvm::alignTo(rows, kSquare);
}

/// A number of each row, in a vector whose other lanes do not matter.
Value gather(KernelBuilder &k, Values numbers, int64_t lanes) {
  numbers.append(lanes - numbers.size(), k.f32(0.0));
  return vector::FromElementsOp::create(k.b, k.loc, k.vectorType(lanes),
                                        numbers);
}

/// The lanes of the vector of each row combined, in such a vector.
Value combineRows(KernelBuilder &k, Values rows, Combine combine) {
  int64_t lanes = cast<VectorType>(rows[0].getType()).getDimSize(0);
  int64_t count = rows.size();
  if (fillSquare(count, lanes)) {
    rows.append(lanes - count, rows[0]);
    return combineSquare(k, rows, combine);
  }
  for (Value &row : rows) {
    for (int64_t left = lanes; left > 1; left /= 2)
      row = halve(k, row, combine);
    row = vector::ExtractOp::create(k.b, k.loc, row, int64_t{0});
  }
  return gather(k, rows, lanesForRows(count, lanes));
}

} // namespace

/// The first panel of keys that is seen.
Value StepKernel::firstPanel(KernelBuilder &k, const Range &range) {
  return k.b.createOrFold<arith::DivUIOp>(k.loc, range.first, k.index(lanes));
}

/// Accumulates the keys of `range` into some rows, whose scores are from row
/// `firstRow` on. Carried: scores, acc, max, sum.
Values StepKernel::foldRows(KernelBuilder &k, ArrayRef<Row> at,
                            const Range &range, Value firstRow,
                            ValueRange carried, Scores scoresOf, Sum sumUp,
                            Value narrow, Weighing meanwhile) {
  int64_t rows = at.size();
  auto scoresAt = [&](KernelBuilder &k, int64_t i, Value key) {
    return Values{k.add(firstRow, k.index(i)), scoreOf(k, key)};
  };
  Value firstPanel = this->firstPanel(k, range);
  Value endPanel = k.ceilDiv(range.last, lanes);
  Value firstKey = k.mul(firstPanel, lanes);
  Value depth = k.sub(range.last, firstKey);

  // Scores, and in each lane the largest so far. They have half as many lanes:
  // a product needs all registers, so these are spilled for each panel.
  Values state = {carried[0]};
  state.append(rows, k.splat(-INFINITY, lanes / 2));
  state = k.forLoop(
      firstPanel, endPanel, 1, state,
      [&](KernelBuilder &k, Value panel, ValueRange c) {
        Values scores = scoresOf(k, panel, c[0]);
        Value start = k.mul(panel, lanes);
        adjust(k, at, start, scores);
        scores = hide(k, range, start, scores);
        Values next = {c[0]};
        for (int64_t i = 0; i < rows; ++i) {
          next[0] = k.store(scores[i], next[0], scoresAt(k, i, start));
          next.push_back(emitMax(k, halve(k, scores[i], emitMax), c[1 + i]));
        }
        return next;
      });

  // The new maxima, and the factors that rescale the old states, of all rows at
  // once.
  auto loadRows = [&](KernelBuilder &k, Value from) {
    Values numbers;
    for (const Row &row : at)
      numbers.push_back(k.loadScalar(from, place(k, from, row)));
    return gather(k, numbers, lanesForRows(rows, lanes / 2));
  };
  auto numberOf = [&](KernelBuilder &k, Value all, int64_t row) -> Value {
    return vector::ExtractOp::create(k.b, k.loc, all, row);
  };
  Value old = loadRows(k, carried[2]);
  Value maxima = emitMax(
      k, combineRows(k, Values(ArrayRef(state).drop_front()), emitMax), old);
  Value safe = emitSafeMax(k, maxima);
  Value shrink = emitExp(k, arith::SubFOp::create(k.b, k.loc, old, safe));
  Values factors, highest;
  for (int64_t i = 0; i < rows; ++i) {
    factors.push_back(numberOf(k, shrink, i));
    highest.push_back(k.splat(numberOf(k, safe, i), lanes));
  }

  // Probabilities over the scores (or narrow ones beside them), and their sums.
  Values sums = {narrow ? narrow : state[0]};
  sums.append(rows, k.splat(0.0, lanes / 2));
  sums = k.forLoop(firstPanel, endPanel, 1, sums,
                   [&](KernelBuilder &k, Value panel, ValueRange c) {
                     Value start = k.mul(panel, lanes);
                     if (meanwhile)
                       meanwhile(k, panel);
                     Values next = {c[0]};
                     for (int64_t i = 0; i < rows; ++i) {
                       Value x = k.load(narrow ? state[0] : next[0],
                                        scoresAt(k, i, start), lanes);
                       x = arith::SubFOp::create(k.b, k.loc, x, highest[i]);
                       // An error of 1.02e-4 is a twentieth of the rounding to
                       // bf16.
                       Value p = emitExp(k, x, /*rough=*/bool(narrow));
                       next[0] = k.store(p, next[0], scoresAt(k, i, start));
                       next.push_back(addUp(k, c[1 + i], halve(k, p, addUp)));
                     }
                     return next;
                   });
  Value probabilities = sums[0];

  Value added = arith::AddFOp::create(
      k.b, k.loc,
      arith::MulFOp::create(k.b, k.loc, loadRows(k, carried[3]), shrink),
      combineRows(k, Values(ArrayRef(sums).drop_front()), addUp));
  Value max = carried[2], sum = carried[3];
  for (int64_t i = 0; i < rows; ++i) {
    max = k.storeScalar(numberOf(k, maxima, i), max, place(k, max, at[i]));
    sum = k.storeScalar(numberOf(k, added, i), sum, place(k, sum, at[i]));
  }

  Value acc = sumUp(k, factors, probabilities, firstKey, depth, carried[1]);
  return {narrow ? state[0] : probabilities, acc, max, sum};
}

/// The products of a block of rows with a panel of keys.
Values StepKernel::packedProducts(KernelBuilder &k, Value block, Value panel) {
  if (pairs)
    return pairProducts(k, block, panel);
  return emitMicrokernel(
      k, rows, k.index(width), Values(rows, k.splat(0.0, lanes)),
      [&](KernelBuilder &k, int64_t row, Value d) {
        return k.loadScalar(packedQueries, {block, k.index(row), d});
      },
      [&](KernelBuilder &k, Value d) {
        return k.load(packedKeys, {panel, d, k.index(0)}, lanes);
      });
}

/// Accumulates the keys into one block of rows, by the matrix microkernel.
Values StepKernel::foldBlock(KernelBuilder &k, Value block,
                             ValueRange carried) {
  SmallVector<Row> at = rowsOf(k, block);
  auto scores = [&](KernelBuilder &k, Value panel, Value) {
    fetchNext(k, block, panel);
    return packedProducts(k, block, panel);
  };
  auto sumPanel = [&](KernelBuilder &k, Value panel, Value valid,
                      ValueRange factors, Value probabilities, Value first,
                      Value depth, Value acc) {
    fetchNext(k, block, k.add(k.ceilDiv(keys, lanes), panel));
    Value column = k.mul(panel, lanes);
    Values inits;
    for (int64_t i = 0; i < rows; ++i) {
      Value x = k.load(acc, place(k, acc, at[i], column), lanes, valid);
      inits.push_back(
          arith::MulFOp::create(k.b, k.loc, x, k.splat(factors[i], lanes)));
    }
    Values folded;
    if (pairs)
      folded = sumPairs(k, panel, probabilities, first, depth, inits);
    else
      folded = emitMicrokernel(
          k, rows, depth, inits,
          [&](KernelBuilder &k, int64_t row, Value n) {
            return k.loadScalar(probabilities, {k.index(row), k.add(first, n)});
          },
          [&](KernelBuilder &k, Value n) {
            Value key = k.add(first, n);
            if (!packedValues)
              return k.load(op.getValue(), {batch, kvHead, key, column}, lanes);
            return k.load(packedValues, {panel, key, k.index(0)}, lanes);
          });
    for (int64_t i = 0; i < rows; ++i)
      acc = k.store(folded[i], acc, place(k, acc, at[i], column), valid);
    return acc;
  };
  auto sum = [&](KernelBuilder &k, ValueRange factors, Value probabilities,
                 Value first, Value depth, Value acc) {
    int64_t whole = valueWidth / lanes;
    acc =
        k.forLoop(k.index(0), k.index(whole), 1, acc,
                  [&](KernelBuilder &k, Value panel, ValueRange c) {
                    return Values{sumPanel(k, panel, {}, factors, probabilities,
                                           first, depth, c[0])};
                  })[0];
    if (whole * lanes < valueWidth)
      acc = sumPanel(k, k.index(whole), k.index(valueWidth - whole * lanes),
                     factors, probabilities, first, depth, acc);
    return acc;
  };
  return foldRows(k, at, visible(k, at), k.index(0), carried, scores, sum,
                  narrowScratch);
}

/// Accumulates the keys into all rows that share them. States: acc, max, sum.
Values StepKernel::foldTile(KernelBuilder &k, ValueRange states) {
  Values carried = {scoreScratch};
  llvm::append_range(carried, states);
  if (sharesMask)
    packedMask = packMask(k, maskScratch);
  auto blocks = [&](KernelBuilder &k) {
    packedKeys = packKeys(k, keyScratch);
    if (valueScratch)
      packedValues = packValues(k, valueScratch);
    chooseNext(k);
    Values results = k.forLoop(
        k.index(0), countRowBlocks(k), 1, carried,
        [&](KernelBuilder &k, Value block, ValueRange c) {
          return matrix ? foldInTiles(k, block, c) : foldBlock(k, block, c);
        });
    return Values(ArrayRef(results).drop_front());
  };
  Values fewCarried = carried;
  if (fewScoreScratch)
    fewCarried[0] = fewScoreScratch;
  auto single = [&](KernelBuilder &k) {
    if (!fewPairs)
      return Values(ArrayRef(foldSingle(k, fewCarried)).drop_front());
    llvm::SaveAndRestore<int64_t> alone(rowsAtOnce, 1), met(productRows, 1);
    return foldFewRows(k, fewCarried);
  };
  auto few = [&](KernelBuilder &k) { return foldFewRows(k, fewCarried); };
  // Takes `one` up to `most` rows, else `other`.
  auto choose = [&](KernelBuilder &k, int64_t most, auto &&one, auto &&other) {
    if (group * maxQueries <= most)
      return one(k);
    if (group > most)
      return other(k);
    Value isOne = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::ule,
                                        countRows(k), k.index(most));
    auto yield = [&](auto &&fold) {
      return [&](OpBuilder &builder, Location loc) {
        KernelBuilder inner(builder, loc);
        Values folded = fold(inner);
        scf::YieldOp::create(builder, loc,
                             onBuffers() ? ValueRange() : ValueRange(folded));
      };
    };
    auto choice =
        scf::IfOp::create(k.b, k.loc, isOne, yield(one), yield(other));
    return Values(onBuffers() ? states : ValueRange(choice.getResults()));
  };
  return choose(k, 1, single, [&](KernelBuilder &k) {
    return choose(k, fewRows, few, blocks);
  });
}

Values StepKernel::emit(OpBuilder &builder) {
  OpBuilder::InsertionGuard guard(builder);
  KernelBuilder k(builder, op.getLoc());
  // Scratch lives as long as the parallel iteration that the step is part of;
  // on a thread's stack, as long as the function.
  Block *home =
      &op->getParentOfType<FunctionOpInterface>().getFunctionBody().front();
  auto forall = op->getParentOfType<scf::ForallOp>();
  if (forall && !onBuffers())
    home = forall.getBody();
  builder.setInsertionPointToStart(home);
  queryScratch = scratch(
      k, {rowBlocks, rows, int64_t(llvm::alignTo(width, lanes))}, pairs);
  // A pair is one place of twice the size.
  int64_t unit = pairs ? 2 : 1;
  keyScratch = scratch(k, {keyPanels, width / unit, unit * lanes}, pairs);
  if (packsValues())
    valueScratch = scratch(
        k, {valuePanels, keyPanels * lanes / unit, unit * lanes}, pairs);
  if (pairs)
    narrowScratch = scratch(k, {rows, keyPanels * lanes}, pairs);
  if (matrix)
    makeMatrixScratch(k);
  scoreScratch = scratch(k, {std::max(rows, fewRows), keyPanels * lanes});
  if (fewRows)
    makeFewRowsScratch(k);
  if (sharesMask)
    maskScratch = scratch(k, {keyPanels * lanes});

  auto pack = [&](KernelBuilder &k) {
    packedQueries = packQueries(k, queryScratch);
    if (fewQueryScratch)
      fewQueries = packFewQueries(k, fewQueryScratch);
  };
  // Queries that do not change from step to step are packed once.
  builder.setInsertionPoint(op);
  if (alone) {
    Operation *point = op;
    // A step that depends on whether its block is masked is in an scf.if.
    for (Operation *up = op->getParentOp(); isa<scf::ForOp, scf::IfOp>(up);
         up = up->getParentOp()) {
      if (up->isAncestor(op.getQuery().getParentRegion()->getParentOp()))
        break;
      point = up;
    }
    builder.setInsertionPoint(point);
    batch = kvHead = k.index(0);
    pack(k);
    builder.setInsertionPoint(op);
  }

  keys = k.dim(op.getKey(), 2);
  auto tile = [&](KernelBuilder &k, ValueRange states) {
    if (!alone)
      pack(k);
    return foldTile(k, states);
  };
  Values states = {op.getAcc(), op.getMax(), op.getSum()};
  if (alone)
    return tile(k, states);
  return k.forLoop(k.index(0), k.dim(op.getQuery(), 0), 1, states,
                   [&](KernelBuilder &k, Value b, ValueRange c) {
                     return k.forLoop(
                         k.index(0), k.dim(op.getKey(), 1), 1, c,
                         [&](KernelBuilder &k, Value g, ValueRange c) {
                           batch = b;
                           kvHead = g;
                           return tile(k, c);
                         });
                   });
}

namespace {

struct LowerStep final : OpRewritePattern<OnlineAttentionOp> {
  LowerStep(MLIRContext *context, const VectorAttentionTile &tile)
      : OpRewritePattern(context), tile(tile) {}

  LogicalResult matchAndRewrite(OnlineAttentionOp op,
                                PatternRewriter &rewriter) const override {
    for (Value heads : {op.getQuery(), op.getKey(), op.getValue()})
      if (tensorType(heads).isDynamicDim(1) ||
          tensorType(heads).isDynamicDim(3))
        return rewriter.notifyMatchFailure(op, "heads and widths are dynamic");
    auto queries = op.getMostQueries(), keys = op.getMostKeys();
    if (!queries || !keys)
      return rewriter.notifyMatchFailure(op, "the tile has no upper bound");
    VectorAttentionTile own = tile;
    own.rows = scheduled(op, kTileRows, tile.rows);
    Values states = StepKernel(op, own, *queries, *keys).emit(rewriter);
    rewriter.replaceOp(op, op->getNumResults() == 0 ? Values() : states);
    return success();
  }
  VectorAttentionTile tile;
};

} // namespace

void populateOnlineAttentionPatterns(RewritePatternSet &patterns,
                                     const VectorAttentionTile &tile) {
  patterns.add<LowerStep>(patterns.getContext(), tile);
}

} // namespace attune

//===- Linear.cpp - Linear layers as packed matrix products -----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// A linear layer streams its weight panels [K, R] against rows of activations.
// Threads divide the panels, so each weight is read by one thread only and the
// same code serves many rows (prefill) and one (decode). Where there are more
// threads than panels keep busy, they divide the rows, too. The sum over K is
// never split, so results do not depend on the number of threads.

#include "../Rows/Norms.h"
#include "HeadRows.h"
#include "PanelProduct.h"

#include "Attune/AttunePanels.h"
#include "attune/Conversion/MatrixTiles.h"
#include "attune/Conversion/PairProduct.h"
#include "attune/Conversion/QuadProduct.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;

namespace attune {
namespace {

/// Whether rows come from outside of the function and one column of them
/// belongs to one set of the cache.
bool sharesSets(Value input, const VectorLowering &lowering) {
  while (Operation *view = input.getDefiningOp()) {
    if (!isa<FlattenTokensOp, UnflattenTokensOp>(view))
      break;
    input = view->getOperand(0);
  }
  auto type = cast<RankedTensorType>(input.getType());
  int64_t bytes = type.getShape().back() * type.getElementTypeBitWidth() / 8;
  return lowering.wayBytes > 0 && bytes % lowering.wayBytes == 0 &&
         (isa<BlockArgument>(input) || input.getDefiningOp<func::CallOp>());
}

/// Rows [sequences * tokens, K] in memory of this function: all, or the last
/// ones of each sequence, at most so many.
Value copyRows(KernelBuilder &k, Value rows, Value sequences, Value tokens,
               std::optional<int64_t> most, const VectorLowering &lowering) {
  auto type = cast<RankedTensorType>(rows.getType());
  int64_t width = type.getDimSize(1), lanes = lowering.lanes;
  Value copied = most ? k.min(tokens, k.index(*most)) : tokens;
  Value room = k.mul(sequences, most ? k.index(*most) : tokens);
  Value dest = tensor::EmptyOp::create(
      k.b, k.loc, {getAsOpFoldResult(room), k.b.getIndexAttr(width)},
      type.getElementType());
  return k.forallTiles(
      {getAsOpFoldResult(sequences), getAsOpFoldResult(copied)}, dest,
      [&](KernelBuilder &k, ValueRange ivs) {
        return KernelBuilder::Tile{
            {k.add(k.mul(ivs[0], copied), ivs[1]), k.index(0)},
            {k.b.getIndexAttr(1), k.b.getIndexAttr(width)}};
      },
      [&](KernelBuilder &k, ValueRange ivs, Value tile) {
        Value token = k.add(k.sub(tokens, copied), ivs[1]);
        Value row = k.add(k.mul(ivs[0], tokens), token);
        return forColumns(k, width, lanes, tile,
                          [&](KernelBuilder &k, Value column, Value valid,
                              ValueRange carried) {
                            Value x = k.load(rows, {row, column}, lanes, valid);
                            return KernelBuilder::Values{k.store(
                                x, carried[0], {k.index(0), column}, valid)};
                          })[0];
      });
}

/// In how many parts of the depth panels meet the rows: one, unless they take
/// more than their share of the cache. Where the next cache is far, rows of
/// such depth should not have to come from there for each panel either.
int64_t passesOf(const PanelProduct &product, const VectorLowering &lowering) {
  int64_t share = lowering.panelBytes;
  if (lowering.farLevel3)
    share = share / 4 * 3;
  return product.unit() * product.panelBytes() > share
             ? product.countPasses(lowering.panelBytes / 4)
             : 1;
}

/// Whether a matrix unit takes most of the product.
bool multipliesTiles(const PanelProduct &product,
                     const VectorLowering &lowering) {
  return product.pairs && lowering.matrixRows != 0;
}

/// The iterations of a product's parallel loop: each thread has panels side by
/// side, so that it reads one stream (at the beginning of another, memory gives
/// less), and takes them in steps, all rows each. Where there are too few for
/// the threads that there are, some of them share a stream and divide its rows.
///
/// Rows that are one tile meet each panel once, and memory sets the pace. Steps
/// get shorter by the same number of panels each then, as in trapezoid
/// self-scheduling (Tzen and Ni, 1993): to claim one, a thread waits for all
/// that it has asked memory for, so they are few, and the last ones are short,
/// so that threads end together. Many rows meet panels that stay in the cache,
/// as many as it has room for, and of the last ones half in steps of half of
/// that and the rest one by one.
class Grid {
public:
  /// Steps are of `group` panels, or `most` where rows are few, down to `unit`,
  /// or pairs of that if rows are many and their tiles wide. Parts lie within
  /// one of `batch` sequences of `tokens` rows.
  Grid(KernelBuilder &k, const PanelProduct &product, int64_t group,
       int64_t most, int64_t unit, Value batch, Value tokens, int64_t tileRows)
      : product(product), unitOfFew(unit),
        unitOfMany(std::lcm(unit, product.unit())), sequences(batch),
        tokens(tokens) {
    Value rows = k.mul(batch, tokens);
    if (auto known = getConstantIntValue(rows))
      isFew = *known <= tileRows;
    few = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::ule, rows,
                                k.index(tileRows));
    streams = NumThreadsOp::create(k.b, k.loc, k.b.getIndexType());
    if (isFew != true)
      cutRows(k, tileRows);
    panelsOfUnit = choose(k, unitOfFew, unitOfMany);
    Value units = choose(k, countUnits(unitOfFew), countUnits(unitOfMany));
    unitsOfStream = arith::DivUIOp::create(k.b, k.loc, units, streams);
    unitsLeft = k.sub(units, k.mul(unitsOfStream, streams));
    if (isFew != true)
      cutStreams(k, group);
    if (isFew != false)
      cutStreamsOfFew(k, most);
    counts.push_back(getAsOpFoldResult(choose(k, stepsOfFew, steps)));
    if (apart)
      counts.push_back(getAsOpFoldResult(apart));
    counts.push_back(getAsOpFoldResult(streams));
    if (parts)
      counts.push_back(getAsOpFoldResult(parts));
  }

  /// Of the loop: steps, then sequences apart if there may be such, streams,
  /// and parts if there may be some.
  ArrayRef<OpFoldResult> sizes() const { return counts; }

  /// Panels of the largest step.
  int64_t mostPanels() const {
    return std::max(unitOfMany * mostOfMany, unitOfFew * mostOfFew);
  }

  /// Panels, and rows: of so many sequences as many tokens.
  struct Iteration {
    PanelProduct::Step panels;
    Value firstSequence, sequences, firstToken, tokens, firstRow, rows;
  };
  Iteration at(KernelBuilder &k, ValueRange ivs) const {
    Value zero = k.index(0);
    Iteration at = {panelsAt(k, ivs[0], ivs[apart ? 2 : 1]),
                    zero,
                    sequences,
                    zero,
                    tokens,
                    zero,
                    k.mul(sequences, tokens)};
    if (!parts)
      return at;
    if (apart)
      at.firstSequence = ivs[1];
    at.firstToken = k.mul(ivs.back(), tokensOfPart);
    at.tokens = k.min(tokensOfPart, k.sub(tokens, at.firstToken));
    at.firstRow = k.add(k.mul(at.firstSequence, tokens), at.firstToken);
    at.rows = k.mul(sequences, at.tokens);
    return at;
  }

  /// `own` at this place. It fetches the panels that the thread's next step
  /// begins with to the cache meanwhile, if that has room for both.
  PanelProduct productAt(KernelBuilder &k, PanelProduct own,
                         const Iteration &at,
                         const VectorLowering &lowering) const {
    if (parts)
      own.firstRow = at.firstRow;
    if (own.lastRows) {
      // Of each sequence so far, those before the last ones are missing.
      Value skipped = k.sub(tokens, k.min(tokens, k.index(own.lastRows->most)));
      Value soFar = k.add(at.firstSequence, at.sequences);
      own.lastRows->first = k.sub(at.firstRow, k.mul(soFar, skipped));
    }
    // Few rows pass a panel so fast that the one behind it comes next.
    if (own.panelBytes() / own.passes <= lowering.panelBytes)
      own.ahead = {Value(), k.add(at.panels.firstPanel,
                                  choose(k, k.index(1), at.panels.count))};
    return own;
  }

  /// A value where rows are few, or else the other.
  Value choose(KernelBuilder &k, Value ofFew, Value ofMany) const {
    if (isFew)
      return *isFew ? ofFew : ofMany;
    return arith::SelectOp::create(k.b, k.loc, few, ofFew, ofMany);
  }
  Value choose(KernelBuilder &k, int64_t ofFew, int64_t ofMany) const {
    if (ofFew == ofMany)
      return k.index(ofMany);
    return choose(k, k.index(ofFew), k.index(ofMany));
  }
  std::optional<bool> hasFewRows() const { return isFew; }
  /// The same at run time.
  Value hasFew() const { return few; }

private:
  int64_t countUnits(int64_t unit) const {
    return llvm::divideCeil(product.panels(), unit);
  }

  /// Parts of the rows, so that with the panels there are enough iterations.
  void cutRows(KernelBuilder &k, int64_t tileRows) {
    // With some for each thread, who starts later or is slower takes fewer. A
    // part has more tiles than one, or would do little but read weights. If
    // tiles are wide it has more rows than are few: with its whole tiles it is
    // done, and rows are left at the end of a sequence only, where lastRows
    // are.
    constexpr int64_t kEnough = 6;
    int64_t tilesOfPart = product.wide ? PanelProduct::kFewTiles + 1 : 2;
    bool together = getConstantIntValue(sequences) == 1;
    auto known = getConstantIntValue(tokens);
    if (known && *known / (tilesOfPart * tileRows) < (together ? 2 : 1))
      return;
    auto atLeastOne = [&](Value x) -> Value {
      return arith::MaxUIOp::create(k.b, k.loc, x, k.index(1));
    };
    Value wanted = k.ceilDiv(k.mul(streams, kEnough), countUnits(unitOfMany));
    Value most = arith::DivUIOp::create(k.b, k.loc, tokens,
                                        k.index(tilesOfPart * tileRows));
    if (!together) {
      auto exceeds = [&](Value x, int64_t bound) -> Value {
        return arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::ugt, x,
                                     k.index(bound));
      };
      Value batch = sequences;
      Value cut = arith::AndIOp::create(k.b, k.loc, exceeds(wanted, 1),
                                        exceeds(most, 0));
      apart = arith::SelectOp::create(k.b, k.loc, cut, batch, k.index(1));
      wanted =
          arith::CeilDivUIOp::create(k.b, k.loc, wanted, atLeastOne(apart));
      sequences = arith::DivUIOp::create(k.b, k.loc, batch, atLeastOne(apart));
    }
    Value each = arith::CeilDivUIOp::create(k.b, k.loc, tokens,
                                            atLeastOne(k.min(wanted, most)));
    tokensOfPart = k.mul(atLeastOne(k.ceilDiv(each, tileRows)), tileRows);
    parts = atLeastOne(
        arith::CeilDivUIOp::create(k.b, k.loc, tokens, tokensOfPart));
    Value sharing = apart ? k.mul(parts, atLeastOne(apart)) : parts;
    streams = atLeastOne(arith::DivUIOp::create(k.b, k.loc, streams, sharing));
  }

  /// Steps of a stream where rows are many: of `group` panels, half of the last
  /// ones in steps of half of that, and then of one unit.
  void cutStreams(KernelBuilder &k, int64_t group) {
    mostOfMany = group / unitOfMany;
    auto quotient = [&](Value x, Value by) -> Value {
      return arith::DivUIOp::create(k.b, k.loc, x, by);
    };
    Value zero = k.index(0), one = k.index(1), two = k.index(2);
    auto halfOf = [&](Value x) -> Value {
      return arith::MaxUIOp::create(k.b, k.loc, quotient(x, two), one);
    };
    // Some streams have one unit less, which their last step misses.
    Value left = k.add(unitsOfStream, k.min(unitsLeft, one)), done = zero;
    steps = zero;
    auto steadily = [&](Value size, Value keep) {
      lines.push_back({k.sub(done, k.mul(steps, size)), size});
      Value number = quotient(k.sub(left, keep), size);
      steps = k.add(steps, number);
      done = k.add(done, k.mul(number, size));
      left = k.sub(left, k.mul(number, size));
    };
    Value most = k.min(halfOf(left), k.index(mostOfMany));
    steadily(most, k.min(most, quotient(left, two)));
    steadily(halfOf(most), k.sub(left, quotient(left, two)));
    steadily(one, zero);
  }

  /// The steps of a stream for few rows, of `most` panels or fewer even if it
  /// is the only one.
  void cutStreamsOfFew(KernelBuilder &k, int64_t most) {
    // The last step is a 256th of a thread's panels: what others wait for.
    constexpr int64_t kFewSteps = 16;
    int64_t units = countUnits(unitOfFew);
    int64_t fewSteps = std::max<int64_t>(
        kFewSteps,
        llvm::divideCeil(2 * units, std::max<int64_t>(1, most / unitOfFew)));
    mostOfFew = std::max<int64_t>(
        2, llvm::divideCeil(units * (2 * fewSteps - 1), fewSteps * fewSteps));
    // With so many, steps are of two units, one or none.
    stepsOfFew = k.min(k.index(fewSteps), k.add(unitsOfStream, k.index(1)));
  }

  PanelProduct::Step panelsAt(KernelBuilder &k, Value step,
                              Value stream) const {
    Value takesOneMore = arith::CmpIOp::create(
        k.b, k.loc, arith::CmpIPredicate::ult, stream, unitsLeft);
    Value all = arith::SelectOp::create(k.b, k.loc, takesOneMore,
                                        k.add(unitsOfStream, k.index(1)),
                                        unitsOfStream);
    Value begin = k.add(k.mul(stream, unitsOfStream), k.min(stream, unitsLeft));
    auto doneBefore = [&](Value step) -> Value {
      Value ofFew, ofMany;
      if (isFew != false) {
        // What is left falls with the square of the number of steps to come.
        Value toCome = k.sub(stepsOfFew, step);
        ofFew = k.sub(all, arith::DivUIOp::create(
                               k.b, k.loc, k.mul(all, k.mul(toCome, toCome)),
                               k.mul(stepsOfFew, stepsOfFew)));
      }
      if (isFew != true) {
        ofMany = all;
        for (Line line : lines)
          ofMany = k.min(ofMany, k.add(line.begin, k.mul(step, line.size)));
      }
      return choose(k, ofFew, ofMany);
    };
    Value done = doneBefore(step), after = doneBefore(k.add(step, k.index(1)));
    return product.stepAt(k, k.mul(k.add(begin, done), panelsOfUnit),
                          k.mul(k.sub(after, done), panelsOfUnit), unitOfMany);
  }

  const PanelProduct &product;
  int64_t unitOfFew, unitOfMany;
  Value panelsOfUnit; ///< the one or the other
  /// Sequences and tokens of an iteration; of the latter at most `tokensOfPart`
  /// where there may be `parts`. Null, or how many sequences are `apart`.
  Value sequences, tokens, tokensOfPart, apart, parts;
  /// Whether all rows are one tile, and if that is known.
  Value few;
  std::optional<bool> isFew;
  /// How many units each stream has, and how many of them have one more.
  Value streams, unitsOfStream, unitsLeft;
  /// Steps of a stream, and units of the largest.
  Value steps, stepsOfFew;
  /// Many rows have passed the least of `begin + step * size` units before a
  /// step, since sizes only fall.
  struct Line {
    Value begin, size;
  };
  SmallVector<Line, 3> lines;
  int64_t mostOfMany = 0, mostOfFew = 0;
  SmallVector<OpFoldResult, 4> counts;
};

/// What sums of normalised rows are multiplied by: one by the root mean square
/// of each. Of many rows these are found once, before the product. Of few rows
/// each step finds them again: a row is soon read, and threads need not wait
/// for each other. The numbers are the same.
class RowScales {
public:
  RowScales(KernelBuilder &k, const PanelProduct &product, const Grid &grid,
            Value numRows, int64_t tileRows)
      : product(product), grid(grid), numRows(numRows), tileRows(tileRows) {
    if (!product.rmsEps || grid.hasFewRows() == true)
      return;
    // One of its own: empty tensors of a size would become one, which the
    // branches of several products do not share without a copy.
    table = bufferization::AllocTensorOp::create(
        k.b, k.loc,
        RankedTensorType::get({ShapedType::kDynamic}, k.b.getF32Type()),
        numRows);
    auto fill = [&](KernelBuilder &k) {
      return k.forallTiles(
          {getAsOpFoldResult(numRows)}, table,
          [&](KernelBuilder &k, ValueRange ivs) {
            return KernelBuilder::Tile{{ivs[0]}, {k.b.getIndexAttr(1)}};
          },
          [&](KernelBuilder &k, ValueRange ivs, Value tile) {
            return put(k, ivs[0], tile, k.index(0));
          });
    };
    table = grid.hasFewRows() == false
                ? fill(k)
                : choose(k, [&](KernelBuilder &) { return table; }, fill);
  }

  /// `own` as a step of the grid has it.
  PanelProduct inStep(KernelBuilder &k, PanelProduct own) const {
    if (!product.rmsEps)
      return own;
    Value scratch;
    if (grid.hasFewRows() != false) {
      scratch = bufferization::AllocTensorOp::create(
          k.b, k.loc, RankedTensorType::get({tileRows}, k.b.getF32Type()),
          ValueRange{});
      scratch = k.forLoop(
          k.index(0), grid.choose(k, numRows, k.index(0)), 1, scratch,
          [&](KernelBuilder &k, Value row, ValueRange carried) {
            return KernelBuilder::Values{put(k, row, carried[0], row)};
          })[0];
    }
    own.inputScale = [this, scratch](KernelBuilder &k, Value row) -> Value {
      auto ofFew = [&](KernelBuilder &k) {
        return k.loadScalar(scratch, {row});
      };
      auto ofMany = [&](KernelBuilder &k) {
        return k.loadScalar(table, {row});
      };
      if (auto few = grid.hasFewRows())
        return *few ? ofFew(k) : ofMany(k);
      return choose(k, ofFew, ofMany);
    };
    return own;
  }

private:
  using Make = function_ref<Value(KernelBuilder &)>;
  Value choose(KernelBuilder &k, Make ofFew, Make ofMany) const {
    auto yield = [&](Make make) {
      return [&, make](OpBuilder &builder, Location loc) {
        KernelBuilder inner(builder, loc);
        scf::YieldOp::create(builder, loc, make(inner));
      };
    };
    return scf::IfOp::create(k.b, k.loc, grid.hasFew(), yield(ofFew),
                             yield(ofMany))
        .getResult(0);
  }

  /// Writes that of row `row` to place `at`.
  Value put(KernelBuilder &k, Value row, Value tile, Value at) const {
    Value rows = product.rowsInMemory;
    auto load = [&](KernelBuilder &k, Value column, int64_t lanes,
                    Value valid) {
      return k.load(rows, {row, column}, lanes, valid);
    };
    int64_t width = cast<RankedTensorType>(rows.getType()).getDimSize(1);
    Value scale = inverseRms(k, load, *product.rmsEps, width, product.lanes());
    return tensor::InsertOp::create(k.b, k.loc, scale, tile, at);
  }

  const PanelProduct &product;
  const Grid &grid;
  Value numRows;
  int64_t tileRows;
  Value table;
};

/// All rows of a step against its panels.
Value panelsOfStep(KernelBuilder &k, const PanelProduct &product,
                   const Grid &grid, const Grid::Iteration &at, Value tile,
                   const VectorLowering &lowering) {
  auto some = [&](KernelBuilder &k, Value first, Value count, Value tile) {
    PanelProduct here = product;
    if (here.ahead)
      here.ahead->firstPanel = k.add(here.ahead->firstPanel, first);
    return here.allRows(k, lowering, at.rows,
                        k.add(at.panels.firstPanel, first), count,
                        k.mul(first, product.lanes()), tile);
  };
  Value all = at.panels.count, zero = k.index(0);
  if (product.passes == 1 || grid.hasFewRows() == false)
    return some(k, zero, all, tile);
  // Few rows pass one panel after the other, part by part, as they are stored.
  Value times = grid.choose(k, all, k.index(1));
  Value count = grid.choose(k, k.index(1), all);
  return k.forLoop(zero, times, 1, tile,
                   [&](KernelBuilder &k, Value first, ValueRange carried) {
                     return KernelBuilder::Values{
                         some(k, first, count, carried[0])};
                   })[0];
}

/// Each step meets its rows with panels that stay in its cache.
Value byPanels(KernelBuilder &k, const PanelProduct &product, Value numRows,
               Value dest, const VectorLowering &lowering) {
  // Sums of parts wait in the result.
  PanelProduct own = product;
  if (cast<RankedTensorType>(dest.getType()).getElementType().isF32())
    own.passes = passesOf(product, lowering);
  // A wide tile's panels take more parts than few rows have use for.
  PanelProduct narrow = product;
  narrow.wide = false;
  int64_t passesOfFew = own.passes == 1 ? 1 : passesOf(narrow, lowering);
  // A step's panels take half of the cache, and what comes next the other half.
  // Parts of a pair take a quarter, so that there is room for another pair.
  VectorLowering share = lowering;
  share.panelBytes = share.panelBytes / 4 *
                     (product.wide && own.passes > 1 ? 3 : 2) * own.passes;
  int64_t unit = product.unit();
  int64_t group = std::max(unit, product.panelsPerStep(share) / unit * unit);
  int64_t tileRows = multipliesTiles(product, lowering)
                         ? kMatrixBlock * kMatrixRows
                         : lowering.rows;
  Grid grid(k, product, group, /*most=*/product.panels(), /*unit=*/1,
            /*batch=*/k.index(1), numRows, tileRows);
  if (passesOfFew != own.passes)
    own.passesHere = grid.choose(k, k.index(passesOfFew), k.index(own.passes));
  RowScales scales(k, product, grid, numRows, tileRows);
  return k.forallTiles(
      grid.sizes(), dest,
      [&](KernelBuilder &k, ValueRange ivs) {
        Grid::Iteration at = grid.at(k, ivs);
        return KernelBuilder::Tile{
            {at.firstRow, at.panels.firstColumn},
            {getAsOpFoldResult(at.rows), at.panels.columns}};
      },
      [&](KernelBuilder &k, ValueRange ivs, Value tile) {
        Grid::Iteration at = grid.at(k, ivs);
        PanelProduct here =
            scales.inStep(k, grid.productAt(k, own, at, lowering));
        return panelsOfStep(k, here, grid, at, tile, lowering);
      });
}

/// What both kinds of linear layers have.
template <typename Op>
PanelProduct describe(Op op, const VectorLowering &lowering) {
  PanelProduct product(lowering);
  product.weight = op.getWeight();
  product.width = cast<RankedTensorType>(op.getType()).getShape().back();
  product.gated = op.getGated();
  product.activation = op.getActivation();
  product.bias = op.getBias();
  if (op.getScale())
    product.scale = op.getScale()->convertToDouble();
  product.residual = bool(op.getResidual());
  return product;
}

/// A residual is updated in place: it is the destination to begin with.
template <typename Op> Value destOf(KernelBuilder &k, Op op) {
  if (op.getResidual())
    return asRows(k, op.getResidual());
  auto type = cast<RankedTensorType>(op.getType());
  return emptyRows(k, op.getInput(), type.getShape().back(),
                   type.getElementType());
}

/// Panels that a step cannot be cut in: their columns are whole heads.
int64_t panelsOfHeads(const PanelProduct &product, int64_t width) {
  return std::lcm(width, product.lanes()) / product.lanes();
}

/// What becomes of the result if all of it is heads, and rows of a tile can be
/// handed over at once: with all of their sums, by vectors, and in as many
/// steps as make work for a quarter of the threads: idle ones cost more than
/// another pass over the heads.
template <typename Op>
std::optional<HeadEpilogue> epilogueOf(Op op, const PanelProduct &product,
                                       const VectorLowering &lowering) {
  bool inPasses = passesOf(product, lowering) > 1;
  if (op.getResidual() || inPasses || multipliesTiles(product, lowering) ||
      cast<RankedTensorType>(op.getType()).getRank() != 3)
    return std::nullopt;
  auto epilogue = HeadEpilogue::match(op, op.getResult());
  if (!epilogue)
    return std::nullopt;
  int64_t unit = panelsOfHeads(product, epilogue->getWidth());
  int64_t steps =
      llvm::divideCeil(product.panels(), std::lcm(unit, product.unit()));
  if (steps < std::min(product.panels(), lowering.threads / 4))
    return std::nullopt;
  return epilogue;
}

/// Whether tiles may have two panels: if the cache has room for both, or sums
/// for parts of them, and if steps of two hand over heads as steps of one do.
/// Blocks of a matrix unit have their own tiles, and other rows are few.
template <typename Op>
bool takesWideTiles(Op op, const PanelProduct &product,
                    const VectorLowering &lowering) {
  if (!lowering.wideTiles || lowering.rows < 4 || lowering.rows % 2 != 0 ||
      multipliesTiles(product, lowering))
    return false;
  PanelProduct wide = product;
  wide.wide = true;
  bool fits = 2 * product.panelBytes() <= lowering.panelBytes;
  bool inParts =
      cast<RankedTensorType>(op.getType()).getElementType().isF32() &&
      passesOf(wide, lowering) > 1;
  return (fits || inParts) &&
         (epilogueOf(op, wide, lowering) || !epilogueOf(op, product, lowering));
}

/// As byPanels. A step takes whole heads: while the rows of a tile are in the
/// first-level cache, their heads go where they belong.
KernelBuilder::Values byHeads(KernelBuilder &k, const PanelProduct &product,
                              const HeadEpilogue &epilogue, Value input,
                              Type element, const VectorLowering &lowering) {
  int64_t lanes = product.lanes();
  int64_t unit = panelsOfHeads(product, epilogue.getWidth());
  VectorLowering half = lowering;
  half.panelBytes = half.panelBytes / 2;
  int64_t most = lowering.tileBytes / (lowering.rows * lanes * 4);
  int64_t group = std::min(product.panelsPerStep(half), most);
  int64_t unitOfMany = std::lcm(unit, product.unit());
  group = std::max(unitOfMany, group / unitOfMany * unitOfMany);
  Value batch = k.dim(input, 0), tokens = k.dim(input, 1);
  auto columnsOf = [](KernelBuilder &k, const PanelProduct::Step &step) {
    return getValueOrCreateConstantIndexOp(k.b, k.loc, step.columns);
  };
  auto rowsOf = [&](const Grid::Iteration &at) {
    return HeadEpilogue::Rows{at.firstSequence, at.sequences, at.firstToken,
                              at.tokens};
  };
  Grid grid(k, product, group, most, unit, batch, tokens, lowering.rows);
  RowScales scales(k, product, grid, k.mul(batch, tokens), lowering.rows);
  return k.forallTiles(
      grid.sizes(), epilogue.destinations(k, batch, tokens),
      [&](KernelBuilder &k, ValueRange ivs) {
        Grid::Iteration at = grid.at(k, ivs);
        return epilogue.place(k, at.panels.firstColumn, columnsOf(k, at.panels),
                              rowsOf(at));
      },
      [&](KernelBuilder &k, ValueRange ivs, ValueRange tiles) {
        Grid::Iteration at = grid.at(k, ivs);
        Value columns = columnsOf(k, at.panels);
        PanelProduct here =
            scales.inStep(k, grid.productAt(k, product, at, lowering));
        here.consumer = {grid.mostPanels() * lanes, element,
                         [&](KernelBuilder &k, Value firstRow, Value rows,
                             Value scratch, ValueRange tiles) {
                           return epilogue.take(
                               k, firstRow, rows, at.panels.firstColumn,
                               columns, rowsOf(at), lanes, scratch, tiles);
                         }};
        return here.handOver(k, lowering.rows, at.rows, at.panels.firstPanel,
                             at.panels.count, tiles);
      });
}

/// Replaces the layer by its product, as what was scheduled for it says.
template <typename Op>
void lower(Op op, KernelBuilder &k, const PanelProduct &product,
           VectorLowering lowering, PatternRewriter &rewriter) {
  lowering = lowering.scheduledFor(op);
  product.remarkTiles(op, "linear", lowering);
  if (auto epilogue = epilogueOf(op, product, lowering)) {
    epilogue->prepare(rewriter, op);
    Type element = cast<RankedTensorType>(op.getType()).getElementType();
    epilogue->replace(rewriter, byHeads(k, product, *epilogue, op.getInput(),
                                        element, lowering));
    rewriter.eraseOp(op);
    return;
  }
  Value rows = byPanels(k, product, countRows(k, op.getInput()), destOf(k, op),
                        lowering);
  rewriter.replaceOp(op, fromRows(k, rows, op.getType(), op.getInput()));
}

bool hasRank2Or3(Type type) {
  int64_t rank = cast<RankedTensorType>(type).getRank();
  return rank == 2 || rank == 3;
}

struct LowerLinear final : OpRewritePattern<LinearOp> {
  LowerLinear(MLIRContext *context, const VectorLowering &lowering)
      : OpRewritePattern(context), lowering(lowering) {}

  LogicalResult matchAndRewrite(LinearOp op,
                                PatternRewriter &rewriter) const override {
    KernelBuilder k(rewriter, op.getLoc());
    if (!hasRank2Or3(op.getType()))
      return rewriter.notifyMatchFailure(op, "rank 2 or 3 only");
    PanelProduct product = describe(op, lowering);
    if (cast<RankedTensorType>(product.weight.getType()).getRank() == 2)
      product.weight =
          packMatrix(k, product.weight, lowering.lanes, op.getGated());
    Value input = asRows(k, op.getInput());
    product.pairs =
        holdsPairs(cast<RankedTensorType>(product.weight.getType()),
                   cast<RankedTensorType>(input.getType()).getDimSize(1));
    if (op.getRmsEps() &&
        (lowering.cooperative || multipliesTiles(product, lowering)))
      return rewriter.notifyMatchFailure(op, "rms_eps is for a CPU's vectors");
    if (op.getRmsEps())
      product.rmsEps = op.getRmsEps()->convertToDouble();
    product.wide = takesWideTiles(op, product, lowering.scheduledFor(op));
    auto reading = [lanes = pairLanes(product.lanes()),
                    pairs = product.pairs](Value rows) {
      return [=](KernelBuilder &, Value row) {
        return [=](KernelBuilder &k, Value step) {
          return pairs ? splatPair(k, rows, {row, k.mul(step, 2)}, lanes)
                       : k.loadScalar(rows, {row, step});
        };
      };
    };
    bool shares = sharesSets(op.getInput(), lowering);
    if (shares && product.wide) {
      // Only heads that are handed over keep sequences apart.
      VectorLowering own = lowering.scheduledFor(op);
      bool apart = epilogueOf(op, product, own).has_value();
      Value sequences = apart ? k.dim(op.getInput(), 0) : k.index(1);
      Value tokens = apart ? k.dim(op.getInput(), 1) : k.dim(input, 0);
      int64_t most = PanelProduct::kFewTiles * own.rows;
      Value copy = copyRows(k, input, sequences, tokens, most, lowering);
      product.lastRows = {reading(copy), most, Value()};
    } else if (shares) {
      input = copyRows(k, input, k.index(1), k.dim(input, 0), std::nullopt,
                       lowering);
    }
    product.rowsInMemory = input;
    product.input = reading(input);
    // The host chooses the tile of a block by the number of rows.
    if (lowering.cooperative) {
      Value dest = destOf(k, op);
      auto into = LinearIntoOp::create(k.b, k.loc, dest.getType(), input,
                                       product.weight, product.bias, dest,
                                       product.activation, product.gated,
                                       product.residual, op.getScaleAttr());
      keepSchedule(op, into);
      // One user has a loop with more threads.
      auto epilogue = HeadEpilogue::match(op, op.getResult());
      if (epilogue && !op.getResidual() && epilogue->countParts() > 1 &&
          cast<RankedTensorType>(dest.getType()).getDimSize(1) %
                  epilogue->getWidth() ==
              0) {
        epilogue->prepare(rewriter, op);
        epilogue->replace(rewriter,
                          epilogue->takeAll(k, op.getInput(), into.getResult(),
                                            lowering.lanes));
        rewriter.eraseOp(op);
        return success();
      }
      rewriter.replaceOp(
          op, fromRows(k, into.getResult(), op.getType(), op.getInput()));
      return success();
    }
    lower(op, k, product, lowering, rewriter);
    return success();
  }

  VectorLowering lowering;
};

/// The same of bytes. GPUs have no kernel for these.
struct LowerQuantizedLinear final : OpRewritePattern<QuantizedLinearOp> {
  LowerQuantizedLinear(MLIRContext *context, const VectorLowering &lowering)
      : OpRewritePattern(context), lowering(lowering) {}

  LogicalResult matchAndRewrite(QuantizedLinearOp op,
                                PatternRewriter &rewriter) const override {
    KernelBuilder k(rewriter, op.getLoc());
    PanelProduct product = describe(op, lowering);
    if (!hasRank2Or3(op.getType()) || lowering.cooperative ||
        cast<RankedTensorType>(product.weight.getType()).getRank() != 3)
      return rewriter.notifyMatchFailure(op, "rank 2 or 3 and panels only");
    Value input = asRows(k, op.getInput());
    product.bytes = {
        asRows(k, op.getInputScales()),
        asRows(k, op.getInputSums()),
        op.getWeightScales(),
        op.getGroup(),
        lowering.byteProducts,
        lowering.integerLanes,
        quantizedBits(op.getWeight().getType(),
                      cast<RankedTensorType>(input.getType()).getDimSize(1))};
    int64_t lanes = std::min(product.lanes(), lowering.integerLanes);
    product.rowsInMemory = input;
    product.input = [input, lanes](KernelBuilder &, Value row) {
      return [=](KernelBuilder &k, Value step) {
        return splatQuad(k, input, {row, k.mul(step, 4)}, lanes);
      };
    };
    lower(op, k, product, lowering, rewriter);
    return success();
  }

  VectorLowering lowering;
};

} // namespace

void populateLinearPatterns(RewritePatternSet &patterns,
                            const VectorLowering &lowering) {
  patterns.add<LowerLinear, LowerQuantizedLinear>(patterns.getContext(),
                                                  lowering);
}

} // namespace attune

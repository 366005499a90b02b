//===- Experts.cpp - Mixtures of experts, matrices per head -----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// A mixture first sorts what it has to do: (token, expert) pairs, called slots,
// by expert, in one counting sort; those of other ranks' experts come last and
// are left out. Then each expert multiplies its contiguous
// rows with the same tile op as a linear layer; rows come through the sorted
// order, so no activation is moved, unless a matrix unit multiplies: its rows
// are one piece of memory. An expert that nobody chose is no task: its weights
// are not read. At the end each token sums what its slots gave, times
// their weights, in the order the router named them, so threads cannot change a
// bit.

#include "PanelProduct.h"

#include "Attune/AttunePanels.h"

using namespace mlir;

namespace attune {
namespace {

RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

Value loadIndex(KernelBuilder &k, Value tensor, ValueRange at) {
  Value number = tensor::ExtractOp::create(k.b, k.loc, tensor, at);
  return arith::IndexCastOp::create(k.b, k.loc, k.b.getIndexType(), number);
}

Value storeIndex(KernelBuilder &k, Value number, Value tensor, Value at) {
  Value cast = arith::IndexCastOp::create(k.b, k.loc, k.b.getI64Type(), number);
  return tensor::InsertOp::create(k.b, k.loc, cast, tensor, at);
}

Value divide(KernelBuilder &k, Value number, int64_t by) {
  return by == 1 ? number
                 : arith::DivUIOp::create(k.b, k.loc, number, k.index(by))
                       .getResult();
}

Value remainder(KernelBuilder &k, Value number, int64_t by) {
  return by == 1 ? k.index(0)
                 : arith::RemUIOp::create(k.b, k.loc, number, k.index(by))
                       .getResult();
}

/// The order of work of a mixture, as one tensor of numbers.
struct Schedule {
  Value numbers;  ///< what follows, one after the other
  Value experts;  ///< [tokens, active]
  Value numSlots; ///< tokens * active
  int64_t active = 1, numExperts = 1;
  int64_t rowBlock = 1; ///< a task has at most so many rows

  // [0]: how many tasks; then the sort's scratch: where each expert's slots
  // end, and those that no expert here has.
  Value order(KernelBuilder &k) const { return k.index(2 + numExperts); }
  Value place(KernelBuilder &k) const { return k.add(order(k), numSlots); }
  Value tasks(KernelBuilder &k) const { return k.add(place(k), numSlots); }
  /// An expert has a task for each whole block of its slots and one for the
  /// rest: no more than experts and slots together.
  Value size(KernelBuilder &k) const {
    Value most = k.add(k.index(numExperts), numSlots);
    return k.add(tasks(k), k.mul(most, 3));
  }

  /// Which token's row is at each place.
  Value tokens(KernelBuilder &k) const {
    OpFoldResult offset = getAsOpFoldResult(order(k)),
                 size = getAsOpFoldResult(numSlots);
    return tensor::ExtractSliceOp::create(k.b, k.loc, numbers, {offset}, {size},
                                          {k.b.getIndexAttr(1)});
  }
  Value placeOf(KernelBuilder &k, Value slot) const {
    return loadIndex(k, numbers, k.add(place(k), slot));
  }
  /// How many slots experts here have; the others stand behind them.
  Value numOwn(KernelBuilder &k) const {
    return loadIndex(k, numbers, k.index(numExperts));
  }
  Value numTasks(KernelBuilder &k) const {
    return loadIndex(k, numbers, k.index(0));
  }
  /// Field 0: expert, 1: first place, 2: number of rows.
  Value taskField(KernelBuilder &k, Value task, int64_t field) const {
    Value at = k.add(tasks(k), k.mul(task, 3));
    return loadIndex(k, numbers, k.add(at, k.index(field)));
  }

  void build(KernelBuilder &k);
};

/// A counting sort by expert, stable, by one thread: it is a few operations per
/// slot, where the experts do thousands.
void Schedule::build(KernelBuilder &k) {
  using Values = KernelBuilder::Values;
  Value zero = k.index(0), one = k.index(1);
  OpFoldResult total = getAsOpFoldResult(size(k));
  Value dest = tensor::EmptyOp::create(k.b, k.loc, {total}, k.b.getI64Type());
  Value offsets = one;
  auto expertOf = [&](KernelBuilder &k, Value slot) {
    Value expert = loadIndex(
        k, experts, {divide(k, slot, active), remainder(k, slot, active)});
    return arith::MinUIOp::create(k.b, k.loc, expert, k.index(numExperts));
  };
  auto sort = [&](KernelBuilder &k, ValueRange, Value tile) -> Value {
    // How often each expert was chosen ...
    tile =
        k.forLoop(zero, k.index(numExperts + 1), 1, tile,
                  [&](KernelBuilder &k, Value e, ValueRange c) {
                    return Values{storeIndex(k, zero, c[0], k.add(offsets, e))};
                  })[0];
    tile = k.forLoop(zero, numSlots, 1, tile,
                     [&](KernelBuilder &k, Value slot, ValueRange c) {
                       Value at = k.add(offsets, expertOf(k, slot));
                       Value count = k.add(loadIndex(k, c[0], at), one);
                       return Values{storeIndex(k, count, c[0], at)};
                     })[0];
    // ... becomes where its slots begin, and its tasks.
    Values after = k.forLoop(
        zero, k.index(numExperts), 1, {tile, zero, zero},
        [&](KernelBuilder &k, Value e, ValueRange c) {
          Value at = k.add(offsets, e);
          Value count = loadIndex(k, c[0], at);
          Value begin = c[1];
          Value tile = storeIndex(k, begin, c[0], at);
          Values blocks = k.forLoop(
              zero, count, rowBlock, {tile, c[2]},
              [&](KernelBuilder &k, Value row, ValueRange inner) {
                Value field = k.add(tasks(k), k.mul(inner[1], 3));
                Value rows = k.min(k.index(rowBlock), k.sub(count, row));
                Value tile = storeIndex(k, e, inner[0], field);
                tile =
                    storeIndex(k, k.add(begin, row), tile, k.add(field, one));
                tile = storeIndex(k, rows, tile, k.add(field, k.index(2)));
                return Values{tile, k.add(inner[1], one)};
              });
          return Values{blocks[0], k.add(begin, count), blocks[1]};
        });
    tile = storeIndex(k, after[2], after[0], zero);
    tile = storeIndex(k, after[1], tile, k.index(1 + numExperts));
    return k.forLoop(zero, numSlots, 1, tile,
                     [&](KernelBuilder &k, Value slot, ValueRange c) {
                       Value at = k.add(offsets, expertOf(k, slot));
                       Value to = loadIndex(k, c[0], at);
                       Value tile = storeIndex(k, divide(k, slot, active), c[0],
                                               k.add(order(k), to));
                       tile = storeIndex(k, to, tile, k.add(place(k), slot));
                       return Values{storeIndex(k, k.add(to, one), tile, at)};
                     })[0];
  };
  numbers = k.forallTiles(
      {k.b.getIndexAttr(1)}, dest,
      [&](KernelBuilder &k, ValueRange) {
        return KernelBuilder::Tile{{k.index(0)}, {total}};
      },
      sort);
}

/// Products of experts with the rows that are theirs.
struct ExpertProducts {
  Value perTask(KernelBuilder &k, const PanelProduct &product, Value input,
                Type element) const;

  /// Each slot's row of the input.
  Value rowsInOrder(KernelBuilder &k, Value input) const;

  /// The second product, of `hidden`, and what is left to do, which replaces
  /// `op`.
  template <typename Op>
  void finish(KernelBuilder &k, Op op, const PanelProduct &second, Value hidden,
              PatternRewriter &rewriter) const;

  const VectorLowering &lowering; ///< as the op's schedule has it
  Schedule schedule;
};

/// Rows of a task, which pass a group of panels together: more on a matrix
/// unit, as their sums wait in memory anyway.
int64_t rowsOfTask(const VectorLowering &own, bool inTiles) {
  constexpr int64_t kTiles = 512;
  return inTiles ? kTiles : own.rows * 16;
}

/// Sorts the work of an op.
template <typename Op>
Schedule makeSchedule(KernelBuilder &k, Op op, int64_t rowBlock) {
  Schedule schedule;
  schedule.experts = asRows(k, op.getExperts());
  schedule.active = typeOf(schedule.experts).getDimSize(1);
  schedule.numExperts = typeOf(op.getUp()).getDimSize(0);
  schedule.numSlots = k.mul(countRows(k, op.getInput()), schedule.active);
  schedule.rowBlock = rowBlock;
  schedule.build(k);
  return schedule;
}

template <typename Op>
void ExpertProducts::finish(KernelBuilder &k, Op op, const PanelProduct &second,
                            Value hidden, PatternRewriter &rewriter) const {
  auto type = cast<RankedTensorType>(op.getType());
  Value weights = asRows(k, op.getWeights());
  Value slots = perTask(k, second, hidden, k.b.getF32Type());
  Value dest = op.getResidual() ? asRows(k, op.getResidual())
                                : emptyRows(k, op.getInput(), second.width,
                                            type.getElementType());
  auto part = [&](KernelBuilder &k, Value token, Value a, Value column,
                  Value valid) -> Value {
    Value place = schedule.placeOf(k, k.add(k.mul(token, schedule.active), a));
    Value weight = k.loadScalar(weights, {token, a});
    Value weighed = arith::MulFOp::create(
        k.b, k.loc, k.load(slots, {place, column}, lowering.lanes, valid),
        k.splat(weight, lowering.lanes));
    // Slots of experts that are not here were not computed.
    Value own = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::ult,
                                      place, schedule.numOwn(k));
    return arith::SelectOp::create(k.b, k.loc, own, weighed,
                                   k.splat(0.0, lowering.lanes));
  };
  Value rows = sumSlots(k, dest, lowering, schedule.active,
                        bool(op.getResidual()), part);
  rewriter.replaceOp(op, fromRows(k, rows, type, op.getInput()));
}

Value ExpertProducts::rowsInOrder(KernelBuilder &k, Value input) const {
  int64_t width = typeOf(input).getDimSize(1);
  Value order = schedule.tokens(k);
  OpFoldResult slots = getAsOpFoldResult(schedule.numSlots);
  OpFoldResult columns = k.b.getIndexAttr(width);
  Value dest = tensor::EmptyOp::create(k.b, k.loc, {slots, columns},
                                       typeOf(input).getElementType());
  return k.forallTiles(
      {slots}, dest,
      [&](KernelBuilder &k, ValueRange ivs) {
        return KernelBuilder::Tile{{ivs[0], k.index(0)},
                                   {k.b.getIndexAttr(1), columns}};
      },
      [&](KernelBuilder &k, ValueRange ivs, Value tile) {
        Value row = loadIndex(k, order, ivs[0]);
        return forColumns(
            k, width, lowering.lanes, tile,
            [&](KernelBuilder &k, Value column, Value valid,
                ValueRange carried) {
              Value x = k.load(input, {row, column}, lowering.lanes, valid);
              return KernelBuilder::Values{
                  k.store(x, carried[0], {k.index(0), column}, valid)};
            })[0];
      });
}

/// [slots, width] of `element`: every task's rows against its expert's panels.
/// Threads share the columns rather than the tasks, which are of different
/// sizes: with two experts to a token there are shares for twice the threads,
/// and each is long enough to keep the task's rows in the cache.
Value ExpertProducts::perTask(KernelBuilder &k, const PanelProduct &product,
                              Value input, Type element) const {
  // The panels in use and those that come next share the cache.
  int64_t group = std::max<int64_t>(1, product.panelsPerStep(lowering) / 2);
  int64_t share = group * std::max<int64_t>(1, product.panels() /
                                                   (lowering.threads * group));
  Value dest = tensor::EmptyOp::create(
      k.b, k.loc,
      {getAsOpFoldResult(schedule.numSlots), k.b.getIndexAttr(product.width)},
      element);
  return k.forallTiles(
      {k.b.getIndexAttr((product.panels() + share - 1) / share),
       schedule.numTasks(k)},
      dest,
      [&](KernelBuilder &k, ValueRange ivs) {
        PanelProduct::Step step = product.step(k, ivs[0], share);
        return KernelBuilder::Tile{
            {schedule.taskField(k, ivs[1], 1), step.firstColumn},
            {getAsOpFoldResult(schedule.taskField(k, ivs[1], 2)),
             step.columns}};
      },
      [&](KernelBuilder &k, ValueRange ivs, Value tile) {
        PanelProduct::Step step = product.step(k, ivs[0], share);
        Value begin = schedule.taskField(k, ivs[1], 1);
        PanelProduct mine = product;
        mine.part = schedule.taskField(k, ivs[1], 0);
        // After a task's columns come those of the next task's expert.
        Value last = k.sub(schedule.numTasks(k), k.index(1));
        Value nextTask = k.min(SuccessorOp::create(k.b, k.loc, ivs[1]), last);
        Value nextPart = schedule.taskField(k, nextTask, 0);
        return k.forLoop(
            k.index(0), step.count, group, tile,
            [&](KernelBuilder &k, Value first, ValueRange carried) {
              Value after = k.add(first, k.index(group));
              Value more = arith::CmpIOp::create(
                  k.b, k.loc, arith::CmpIPredicate::slt, after, step.count);
              auto choose = [&](Value yes, Value no) -> Value {
                return arith::SelectOp::create(k.b, k.loc, more, yes, no);
              };
              mine.ahead = PanelProduct::Ahead{
                  choose(mine.part, nextPart),
                  k.add(step.firstPanel, choose(after, k.index(0)))};
              Value count = k.min(k.index(group), k.sub(step.count, first));
              PanelProduct::TilePlace at;
              at.firstRow = begin;
              at.firstPanel = k.add(step.firstPanel, first);
              at.count = count;
              at.tileRows = lowering.rows;
              return KernelBuilder::Values{
                  inColumns(k, product.lanes(), first, count, carried[0],
                            [&](KernelBuilder &k, Value columns) {
                              return mine.asTileOp(k, input, at, columns);
                            })};
            })[0];
      });
}

/// Whether the shapes of an op are those that there are kernels for.
template <typename Op>
LogicalResult checkShapes(Op op, PatternRewriter &rewriter) {
  auto type = cast<RankedTensorType>(op.getType());
  if (type.getRank() > 3 || type.getRank() < 2)
    return rewriter.notifyMatchFailure(op, "rank 2 or 3 only");
  if (typeOf(op.getUp()).isDynamicDim(0) ||
      typeOf(op.getExperts()).getShape().back() < 1)
    return rewriter.notifyMatchFailure(op, "needs numbers of experts");
  return success();
}

struct LowerMoE final : OpRewritePattern<MoEOp> {
  LowerMoE(MLIRContext *context, const VectorLowering &lowering)
      : OpRewritePattern(context), lowering(lowering) {}

  LogicalResult matchAndRewrite(MoEOp op,
                                PatternRewriter &rewriter) const override {
    if (failed(checkShapes(op, rewriter)))
      return failure();
    KernelBuilder k(rewriter, op.getLoc());
    VectorLowering own = lowering.scheduledFor(op);
    Value up = op.getUp(), down = op.getDown();
    if (typeOf(up).getRank() == 3)
      up = packMatrix(k, up, lowering.lanes, op.getGated());
    if (typeOf(down).getRank() == 3)
      down = packMatrix(k, down, lowering.lanes, /*gated=*/false);
    // Panels of pairs multiply rows of bf16, the hidden layer too.
    Value input = asRows(k, op.getInput());
    int64_t side = sideOfStacks(typeOf(up), typeOf(input).getDimSize(1));
    PanelProduct first(lowering);
    first.weight = up;
    first.pairs = side == 2;
    first.widened = first.pairs && !typeOf(input).getElementType().isBF16();
    first.width = side * typeOf(down).getShape().drop_back().back();
    first.gated = op.getGated();
    first.activation = op.getActivation();
    first.limits = GateLimits::of(op);
    first.bias = op.getUpBias();
    first.remarkTiles(op, "experts", own);

    // Slot by slot in sorted order: the hidden layer, then the weighted result.
    bool inTiles = first.fillsMatrixTiles();
    ExpertProducts experts{own, makeSchedule(k, op, rowsOfTask(own, inTiles))};
    if (inTiles)
      input = experts.rowsInOrder(k, input);
    else
      first.order = experts.schedule.tokens(k);
    Value hidden = experts.perTask(k, first, input,
                                   first.pairs ? typeOf(input).getElementType()
                                               : k.b.getF32Type());
    PanelProduct second(lowering);
    second.weight = down;
    second.pairs = first.pairs;
    second.widened = first.widened;
    second.bias = op.getDownBias();
    second.width = typeOf(op.getResult()).getShape().back();
    experts.finish(k, op, second, hidden, rewriter);
    return success();
  }

  VectorLowering lowering;
};

/// The same of numbers in few bits: the hidden layer becomes bytes between the
/// products if the input is bytes. Those of a GPU are in
/// Warps/GroupedProducts.cpp.
struct LowerQuantizedMoE final : OpRewritePattern<QuantizedMoEOp> {
  LowerQuantizedMoE(MLIRContext *context, const VectorLowering &lowering)
      : OpRewritePattern(context), lowering(lowering) {}

  LogicalResult matchAndRewrite(QuantizedMoEOp op,
                                PatternRewriter &rewriter) const override {
    if (failed(checkShapes(op, rewriter)))
      return failure();
    if (lowering.cooperative || typeOf(op.getUp()).getRank() != 4 ||
        typeOf(op.getDown()).getRank() != 4)
      return rewriter.notifyMatchFailure(op, "panels only");
    KernelBuilder k(rewriter, op.getLoc());
    VectorLowering own = lowering.scheduledFor(op);
    ExpertProducts experts{
        own, makeSchedule(k, op, rowsOfTask(own, /*inTiles=*/false))};

    Value input = asRows(k, op.getInput());
    PanelProduct first(lowering);
    first.weight = op.getUp();
    first.width = int64_t(op.getHidden());
    first.gated = op.getGated();
    first.activation = op.getActivation();
    first.limits = GateLimits::of(op);
    first.bias = op.getUpBias();
    bool byteRows = bool(op.getInputScales());
    first.bytes =
        PanelProduct::Bytes{byteRows ? asRows(k, op.getInputScales()) : Value(),
                            byteRows ? asRows(k, op.getInputSums()) : Value(),
                            op.getUpScales(),
                            op.getUpZeros(),
                            op.getInputGroup(),
                            lowering.byteProducts,
                            lowering.integerLanes,
                            op.getUpBits()};
    first.order = experts.schedule.tokens(k);
    first.remarkTiles(op, "experts", own);
    Value hidden = experts.perTask(k, first, input, k.b.getF32Type());

    int64_t group = op.getHiddenGroup(), groups = first.width / group;
    auto typed = [&](int64_t width, Type element) {
      return RankedTensorType::get({typeOf(hidden).getDimSize(0), width},
                                   element);
    };
    Value scales, sums;
    if (byteRows) {
      auto rows = QuantizeRowsOp::create(
          k.b, k.loc, typed(first.width, k.b.getI8Type()),
          typed(groups, k.b.getF32Type()), typed(groups, k.b.getI32Type()),
          hidden, group);
      hidden = rows.getValues();
      scales = rows.getScales();
      sums = rows.getSums();
    }
    PanelProduct second(lowering);
    second.weight = op.getDown();
    second.bias = op.getDownBias();
    second.width = typeOf(op.getResult()).getShape().back();
    second.bytes = PanelProduct::Bytes{scales,
                                       sums,
                                       op.getDownScales(),
                                       op.getDownZeros(),
                                       group,
                                       lowering.byteProducts,
                                       lowering.integerLanes,
                                       op.getDownBits()};
    experts.finish(k, op, second, hidden, rewriter);
    return success();
  }

  VectorLowering lowering;
};

/// The matrix at `offsets` of a tensor [batch, heads, rows, columns].
Value matrixAt(KernelBuilder &k, Value tensor, ArrayRef<OpFoldResult> offsets,
               ArrayRef<OpFoldResult> sizes) {
  SmallVector<OpFoldResult> strides(4, k.b.getIndexAttr(1));
  Type type = tensor::ExtractSliceOp::inferCanonicalRankReducedResultType(
      2, typeOf(tensor), sizes);
  return tensor::ExtractSliceOp::create(k.b, k.loc,
                                        cast<RankedTensorType>(type), tensor,
                                        offsets, sizes, strides);
}

struct LowerHeadLinear final : OpRewritePattern<HeadLinearOp> {
  LowerHeadLinear(MLIRContext *context, const VectorLowering &lowering)
      : OpRewritePattern(context), lowering(lowering) {}

  LogicalResult matchAndRewrite(HeadLinearOp op,
                                PatternRewriter &rewriter) const override {
    KernelBuilder k(rewriter, op.getLoc());
    auto type = cast<RankedTensorType>(op.getType());
    Value input = op.getInput();
    PanelProduct product(lowering);
    product.weight = op.getWeight();
    if (typeOf(product.weight).getRank() == 3)
      product.weight =
          packMatrix(k, product.weight, lowering.lanes, /*gated=*/false);
    product.width = type.getDimSize(3);
    VectorLowering own = lowering.scheduledFor(op);
    product.remarkTiles(op, "linear of heads", own);
    int64_t group = product.panelsPerStep(own);
    Value tokens = k.dim(input, 2);
    OpFoldResult one = k.b.getIndexAttr(1);
    OpFoldResult batch = getAsOpFoldResult(k.dim(input, 0));
    OpFoldResult heads = getAsOpFoldResult(k.dim(input, 1));
    Value dest =
        tensor::EmptyOp::create(k.b, k.loc,
                                {batch, heads, getAsOpFoldResult(tokens),
                                 k.b.getIndexAttr(product.width)},
                                type.getElementType());
    Value result = k.forallTiles(
        {batch, heads,
         k.b.getIndexAttr((product.panels() + group - 1) / group)},
        dest,
        [&](KernelBuilder &k, ValueRange ivs) {
          PanelProduct::Step step = product.step(k, ivs[2], group);
          return KernelBuilder::Tile{
              {ivs[0], ivs[1], k.index(0), step.firstColumn},
              {one, one, getAsOpFoldResult(tokens), step.columns}};
        },
        [&](KernelBuilder &k, ValueRange ivs, Value tile) {
          PanelProduct::Step step = product.step(k, ivs[2], group);
          PanelProduct mine = product;
          mine.part = ivs[1];
          OpFoldResult zero = k.b.getIndexAttr(0);
          SmallVector<OpFoldResult> inputSizes = {
              one, one, getAsOpFoldResult(tokens),
              k.b.getIndexAttr(typeOf(input).getDimSize(3))};
          SmallVector<OpFoldResult> sizes = inputSizes, offsets(4, zero);
          sizes.back() = step.columns;
          PanelProduct::TilePlace at;
          at.firstRow = k.index(0);
          at.firstPanel = step.firstPanel;
          at.count = step.count;
          at.tileRows = own.rows;
          Value done = mine.asTileOp(
              k, matrixAt(k, input, {ivs[0], ivs[1], zero, zero}, inputSizes),
              at, matrixAt(k, tile, offsets, sizes));
          return tensor::InsertSliceOp::create(
              k.b, k.loc, done, tile, offsets, sizes,
              SmallVector<OpFoldResult>(4, one));
        });
    if (result.getType() != type)
      result = tensor::CastOp::create(k.b, k.loc, type, result);
    rewriter.replaceOp(op, result);
    return success();
  }

  VectorLowering lowering;
};

} // namespace

void populateExpertPatterns(RewritePatternSet &patterns,
                            const VectorLowering &lowering) {
  patterns.add<LowerMoE, LowerQuantizedMoE, LowerHeadLinear>(
      patterns.getContext(), lowering);
}

} // namespace attune

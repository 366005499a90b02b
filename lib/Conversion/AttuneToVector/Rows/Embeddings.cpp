//===- Embeddings.cpp - Embeddings and positions ----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Patterns.h"

#include "Attune/AttunePanels.h"
#include "attune/Conversion/LevelScales.h"
#include "attune/Conversion/PowerScales.h"
#include "attune/Conversion/QuadProduct.h"
#include "attune/Conversion/SinCos.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>

using namespace mlir;

namespace attune {
namespace {

/// Row m of [B, T, ...] as (batch, token).
std::pair<Value, Value> batchAndToken(KernelBuilder &k, Value row,
                                      Value tokens) {
  return {arith::DivSIOp::create(k.b, k.loc, row, tokens),
          arith::RemSIOp::create(k.b, k.loc, row, tokens)};
}

Value emptyTokens(KernelBuilder &k, Value ids, int64_t width, Type element) {
  Value rows = k.mul(k.dim(ids, 0), k.dim(ids, 1));
  return tensor::EmptyOp::create(
      k.b, k.loc, {getAsOpFoldResult(rows), k.b.getIndexAttr(width)}, element);
}

/// The position of a row as f32.
Value positionOf(KernelBuilder &k, Value positions, Value row) {
  auto [b, t] = batchAndToken(k, row, k.dim(positions, 1));
  Value id = tensor::ExtractOp::create(k.b, k.loc, positions, ValueRange{b, t});
  return arith::SIToFPOp::create(k.b, k.loc, k.b.getF32Type(), id);
}

/// A small table of numbers known at compile time.
Value constantRow(KernelBuilder &k, ArrayRef<double> values) {
  SmallVector<float> row(values.begin(), values.end());
  auto type = RankedTensorType::get({static_cast<int64_t>(row.size())},
                                    k.b.getF32Type());
  return arith::ConstantOp::create(
      k.b, k.loc, DenseElementsAttr::get(type, ArrayRef<float>(row)));
}

/// An entry of a table in panels of R rows, as f32: of row `lane` of panel
/// `panel`, which is [D, R], or [D / 2, 2 R] in pairs.
Value entryOf(EmbeddingOp op, KernelBuilder &k, Value panel, Value lane,
              Value column) {
  if (holdsPairs(op.getTable().getType(), op.getType().getDimSize(2))) {
    Value two = k.index(2);
    lane = k.add(k.mul(lane, two),
                 arith::RemUIOp::create(k.b, k.loc, column, two));
    column = arith::DivUIOp::create(k.b, k.loc, column, two);
  }
  return k.loadScalar(op.getTable(), {panel, column, lane});
}

/// The number that stands for `byte` of a table with scales in two levels.
Value entryInLevels(QuantizedEmbeddingOp op, KernelBuilder &k,
                    std::pair<Value, Value> panelAndLane, Value column,
                    Value byte, double middle) {
  bool zeros = op.getZeros();
  int64_t group = op.getGroup(), sides = zeros ? 2 : 1;
  int64_t factors = kScaleColumns / group * sides;
  Value columns = k.index(kScaleColumns);
  Value first =
      k.mul(arith::DivUIOp::create(k.b, k.loc, column, columns).getResult(),
            bytesOfScales(group, zeros));
  Value own = arith::DivUIOp::create(
      k.b, k.loc, arith::RemUIOp::create(k.b, k.loc, column, columns),
      k.index(group));
  auto load = [&](Value place) -> Value {
    return tensor::ExtractOp::create(k.b, k.loc, op.getScales(),
                                     ValueRange{panelAndLane.first,
                                                k.add(first, place),
                                                panelAndLane.second});
  };
  auto stepsTimesFactor = [&](int64_t side) -> Value {
    Value steps =
        arith::SIToFPOp::create(k.b, k.loc, k.b.getF32Type(),
                                load(k.add(k.mul(own, sides), k.index(side))));
    Value factor = halfOfBytes(k, load(k.index(factors + 2 * side)),
                               load(k.index(factors + 2 * side + 1)));
    return arith::MulFOp::create(k.b, k.loc, steps, factor);
  };
  Value number = arith::UIToFPOp::create(k.b, k.loc, k.b.getF32Type(), byte);
  Value scale = stepsTimesFactor(0);
  if (zeros)
    return arith::SubFOp::create(
        k.b, k.loc, arith::MulFOp::create(k.b, k.loc, number, scale),
        stepsTimesFactor(1));
  number = arith::SubFOp::create(k.b, k.loc, number, k.f32(middle));
  return arith::MulFOp::create(k.b, k.loc, number, scale);
}

/// [D / 4, 4 R] of bytes or [D / 8, 4 R] of 4 bits, and scales [groups, R], or
/// twice as many with zero points.
Value entryOf(QuantizedEmbeddingOp op, KernelBuilder &k, Value panel,
              Value lane, Value column) {
  auto divide = [&](int64_t by) -> Value {
    return arith::DivUIOp::create(k.b, k.loc, column, k.index(by));
  };
  bool halves =
      quantizedBits(op.getTable().getType(), op.getType().getDimSize(2)) == 4;
  Value side = arith::RemUIOp::create(k.b, k.loc, column, k.index(4));
  Value byte = tensor::ExtractOp::create(
      k.b, k.loc, op.getTable(),
      ValueRange{panel, divide(halves ? 8 : 4), k.add(k.mul(lane, 4), side)});
  if (halves) {
    auto number = [&](int64_t value) -> Value {
      return arith::ConstantOp::create(k.b, k.loc,
                                       k.b.getI8IntegerAttr(int8_t(value)));
    };
    // The last four of eight columns are in the upper halves.
    Value upper = arith::CmpIOp::create(
        k.b, k.loc, arith::CmpIPredicate::uge,
        arith::RemUIOp::create(k.b, k.loc, column, k.index(8)), k.index(4));
    Value shift =
        arith::SelectOp::create(k.b, k.loc, upper, number(4), number(0));
    byte = arith::ShRUIOp::create(k.b, k.loc, byte, shift);
    byte = arith::AndIOp::create(k.b, k.loc, byte, number(15));
  }
  Value group = divide(op.getGroup());
  bool floats = areScalesOfFloats(op.getScales().getType());
  if (holdsByteFloats(op.getTable().getType())) {
    Type i32 = k.b.getI32Type();
    byte = arith::BitcastOp::create(k.b, k.loc, k.b.getI8Type(), byte);
    byte = arith::ExtUIOp::create(k.b, k.loc, i32, byte);
    byte = arith::ShLIOp::create(
        k.b, k.loc, byte,
        arith::ConstantOp::create(k.b, k.loc, k.b.getI32IntegerAttr(24)));
    Value scale = arith::MulFOp::create(
        k.b, k.loc, k.loadScalar(op.getScales(), {panel, group, lane}),
        k.f32(kByteFloatInHalf));
    return arith::MulFOp::create(k.b, k.loc, halvesOfByteFloats(k, byte),
                                 scale);
  }
  if (areScalesInLevels(op.getScales().getType()))
    return entryInLevels(op, k, {panel, lane}, column, byte,
                         halves ? 8 : kMiddleInLevels);
  if (op.getZeros())
    group = k.mul(group, 2);
  Value zero = k.f32(floats ? kFloatZero : halves ? 8 : 128);
  if (op.getZeros())
    zero =
        k.loadScalar(op.getScales(), {panel, k.add(group, k.index(1)), lane});
  if (floats)
    byte = doublesOfFloats(k, byte);
  Value value = arith::UIToFPOp::create(k.b, k.loc, k.b.getF32Type(), byte);
  value = arith::SubFOp::create(k.b, k.loc, value, zero);
  SmallVector<Value> at = {panel, group, lane};
  Value scale = floats ? halvesOfPowers(k, tensor::ExtractOp::create(
                                               k.b, k.loc, op.getScales(), at))
                       : k.loadScalar(op.getScales(), at);
  return arith::MulFOp::create(k.b, k.loc, value, scale);
}

int64_t panelWidth(EmbeddingOp op) {
  bool pairs = holdsPairs(op.getTable().getType(), op.getType().getDimSize(2));
  return op.getTable().getType().getDimSize(2) / (pairs ? 2 : 1);
}

int64_t panelWidth(QuantizedEmbeddingOp op) {
  return op.getTable().getType().getDimSize(2) / 4;
}

/// Lowers EmbeddingOp and QuantizedEmbeddingOp.
template <typename Op> struct LowerEmbedding final : OpRewritePattern<Op> {
  LowerEmbedding(MLIRContext *context, const VectorLowering &lowering)
      : OpRewritePattern<Op>(context), lanes(lowering.lanes),
        everyVector(lowering.cooperative) {}

  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    KernelBuilder k(rewriter, op.getLoc());
    RankedTensorType type = op.getType();
    int64_t width = type.getDimSize(2);
    bool packed = op.getTable().getType().getRank() == 3;
    if (!packed && std::is_same_v<Op, QuantizedEmbeddingOp>)
      return rewriter.notifyMatchFailure(op, "quantized in panels only");
    Value ids = op.getIds(), tokens = k.dim(ids, 1);
    // An addend is updated in place.
    Value dest = op.getAddend()
                     ? asRows(k, op.getAddend())
                     : emptyTokens(k, ids, width, type.getElementType());
    // A thread copies a row, or of the many threads of a GPU one some channels.
    int64_t each = everyVector && width % lanes == 0 ? lanes : width;
    auto firstOf = [&](KernelBuilder &k, ValueRange ivs) {
      return each == width ? k.index(0) : k.mul(ivs[1], each);
    };
    SmallVector<OpFoldResult> counts = {getAsOpFoldResult(k.dim(dest, 0))};
    if (each != width)
      counts.push_back(k.b.getIndexAttr(width / each));
    Value rows = k.forallTiles(
        counts, dest,
        [&](KernelBuilder &k, ValueRange ivs) {
          return KernelBuilder::Tile{
              {ivs[0], firstOf(k, ivs)},
              {k.b.getIndexAttr(1), k.b.getIndexAttr(each)}};
        },
        [&](KernelBuilder &k, ValueRange ivs, Value tile) {
          auto [b, t] = batchAndToken(k, ivs[0], tokens);
          Value id =
              tensor::ExtractOp::create(k.b, k.loc, ids, ValueRange{b, t});
          id = arith::IndexCastOp::create(k.b, k.loc, k.b.getIndexType(), id);
          id = k.add(id, k.index(op.getOffset()));
          Value first = firstOf(k, ivs);
          return packed ? fromPanels(op, k, id, first, each, tile)
                        : fromRow(op, k, id, first, each, tile);
        });
    rewriter.replaceOp(op, fromRows(k, rows, type, ids));
    return success();
  }

  /// `count` channels from `first` on.
  Value fromRow(Op op, KernelBuilder &k, Value id, Value first, int64_t count,
                Value tile) const {
    Value zero = k.index(0);
    return forColumns(
        k, count, lanes, tile,
        [&](KernelBuilder &k, Value column, Value valid, ValueRange carried) {
          Value x =
              k.load(op.getTable(), {id, k.add(first, column)}, lanes, valid);
          if (!op.getScale().isExactlyValue(1.0))
            x = arith::MulFOp::create(
                k.b, k.loc, x, k.splat(op.getScale().convertToDouble(), lanes));
          if (op.getAddend())
            x = arith::AddFOp::create(
                k.b, k.loc, x,
                k.load(carried[0], {zero, column}, lanes, valid));
          return KernelBuilder::Values{
              k.store(x, carried[0], {zero, column}, valid)};
        })[0];
  }

  /// A row of a packed table is one lane of a panel: its elements lie R apart,
  /// so they are fetched one by one. A tied head is worth that: the table is
  /// stored once, and one token reads one row.
  Value fromPanels(Op op, KernelBuilder &k, Value id, Value first,
                   int64_t count, Value tile) const {
    auto [panel, lane] = batchAndToken(k, id, k.index(panelWidth(op)));
    Value zero = k.index(0), which = panel, row = lane;
    return k.forLoop(
        zero, k.index(count), 1, tile,
        [&](KernelBuilder &k, Value column, ValueRange carried) {
          Value x = entryOf(op, k, which, row, k.add(first, column));
          if (!op.getScale().isExactlyValue(1.0))
            x = arith::MulFOp::create(k.b, k.loc, x,
                                      k.f32(op.getScale().convertToDouble()));
          if (op.getAddend())
            x = arith::AddFOp::create(k.b, k.loc, x,
                                      k.loadScalar(carried[0], {zero, column}));
          Type element =
              cast<RankedTensorType>(carried[0].getType()).getElementType();
          if (!element.isF32())
            x = arith::TruncFOp::create(k.b, k.loc, element, x);
          return KernelBuilder::Values{tensor::InsertOp::create(
              k.b, k.loc, x, carried[0], ValueRange{zero, column})};
        })[0];
  }
  int64_t lanes;
  bool everyVector;
};

/// The widest vector, at most `lanes`, that divides `width`.
int64_t dividing(int64_t width, int64_t lanes) {
  while (width % lanes != 0)
    lanes /= 2;
  return lanes;
}

struct LowerSinusoidal final : OpRewritePattern<SinusoidalOp> {
  LowerSinusoidal(MLIRContext *context, const VectorLowering &lowering)
      : OpRewritePattern(context), lanes(lowering.lanes) {}

  LogicalResult matchAndRewrite(SinusoidalOp op,
                                PatternRewriter &rewriter) const override {
    KernelBuilder k(rewriter, op.getLoc());
    auto type = cast<RankedTensorType>(op.getType());
    int64_t width = type.getDimSize(2), pairs = width / 2;
    double base = op.getBase().convertToDouble();
    bool t2t = op.getConvention() == Sinusoid::Tensor2Tensor;
    SmallVector<double> frequencies;
    for (int64_t i = 0; i < pairs; ++i)
      frequencies.push_back(
          std::pow(base, t2t ? -double(i) / std::max<double>(pairs - 1, 1)
                             : -2.0 * double(i) / double(width)));
    Value table = constantRow(k, frequencies);
    Value positions = op.getPositions();
    Value dest = op.getAddend()
                     ? asRows(k, op.getAddend())
                     : emptyTokens(k, positions, width, type.getElementType());
    int64_t lanesHere = dividing(pairs, lanes);
    Value rows =
        forallRows(k, dest, [&](KernelBuilder &k, Value row, Value tile) {
          Value position = k.splat(positionOf(k, positions, row), lanesHere);
          return k.forLoop(
              k.index(0), k.index(pairs), lanesHere, tile,
              [&](KernelBuilder &k, Value pair, ValueRange carried) {
                Value angle = arith::MulFOp::create(
                    k.b, k.loc, position, k.load(table, {pair}, lanesHere));
                auto [sin, cos] = emitSinCos(k, angle);
                Value tile = carried[0];
                if (op.getConvention() == Sinusoid::Interleaved) {
                  Value both =
                      vector::InterleaveOp::create(k.b, k.loc, sin, cos);
                  tile = put(op, k, both, tile, k.mul(pair, 2), 2 * lanesHere);
                } else {
                  tile = put(op, k, sin, tile, pair, lanesHere);
                  tile = put(op, k, cos, tile, k.add(pair, k.index(pairs)),
                             lanesHere);
                }
                return KernelBuilder::Values{tile};
              })[0];
        });
    rewriter.replaceOp(op, fromRows(k, rows, type, positions));
    return success();
  }

  static Value put(SinusoidalOp op, KernelBuilder &k, Value x, Value tile,
                   Value column, int64_t lanes) {
    Value zero = k.index(0);
    if (op.getAddend())
      x = arith::AddFOp::create(k.b, k.loc, x,
                                k.load(tile, {zero, column}, lanes));
    return k.store(x, tile, {zero, column});
  }
  int64_t lanes;
};

struct LowerRotaryTable final : OpRewritePattern<RotaryTableOp> {
  LowerRotaryTable(MLIRContext *context, const VectorLowering &lowering)
      : OpRewritePattern(context), lowering(lowering) {}

  LogicalResult matchAndRewrite(RotaryTableOp op,
                                PatternRewriter &rewriter) const override {
    KernelBuilder k(rewriter, op.getLoc());
    int64_t pairs = op.getFrequencies().size();
    Value table = constantRow(k, op.getFrequencies());
    Value exponents, logScale, longTable, beyond;
    if (op.getLongFrequencies()) {
      longTable = constantRow(k, *op.getLongFrequencies());
      beyond = arith::CmpIOp::create(
          k.b, k.loc, arith::CmpIPredicate::sge, longestPosition(op, k, 0),
          arith::ConstantIntOp::create(k.b, k.loc, *op.getLongFrom(), 64));
    }
    if (op.getDynamic()) {
      SmallVector<double> powers;
      for (int64_t i = 0; i < pairs; ++i)
        powers.push_back(-2.0 * double(i) / double(2 * pairs - 2));
      exponents = constantRow(k, powers);
      logScale = dynamicScale(op, k);
    }
    auto frequencyAt = [&](KernelBuilder &k, Value pair, int64_t width) {
      Value frequency = k.load(table, {pair}, width);
      if (longTable)
        frequency = arith::SelectOp::create(
            k.b, k.loc, beyond, k.load(longTable, {pair}, width), frequency);
      if (!exponents)
        return frequency;
      Value power =
          arith::MulFOp::create(k.b, k.loc, k.load(exponents, {pair}, width),
                                k.splat(logScale, width));
      return arith::MulFOp::create(
                 k.b, k.loc, frequency,
                 math::ExpOp::create(k.b, k.loc, power).getResult())
          .getResult();
    };
    Value cos = fill(op, k, frequencyAt, pairs, /*cosine=*/true);
    Value sin = fill(op, k, frequencyAt, pairs, /*cosine=*/false);
    rewriter.replaceOp(op, {cos, sin});
    return success();
  }

  /// The highest position of the call, or `start` if that is higher.
  static Value longestPosition(RotaryTableOp op, KernelBuilder &k,
                               int64_t atLeast) {
    Value positions = op.getPositions();
    Value zero = k.index(0);
    Value start = arith::ConstantIntOp::create(k.b, k.loc, atLeast, 64);
    return k.forLoop(
        zero, k.dim(positions, 0), 1, start,
        [&](KernelBuilder &k, Value b, ValueRange outer) {
          return k.forLoop(
              zero, k.dim(positions, 1), 1, outer,
              [&](KernelBuilder &k, Value t, ValueRange carried) {
                Value p = tensor::ExtractOp::create(k.b, k.loc, positions,
                                                    ValueRange{b, t});
                return KernelBuilder::Values{
                    arith::MaxSIOp::create(k.b, k.loc, p, carried[0])};
              });
        })[0];
  }

  /// log s of dynamic NTK scaling, from the longest position of the call.
  static Value dynamicScale(RotaryTableOp op, KernelBuilder &k) {
    double length = (*op.getDynamic())[0], factor = (*op.getDynamic())[1];
    Value longest = longestPosition(op, k, static_cast<int64_t>(length) - 1);
    Value n = arith::SIToFPOp::create(k.b, k.loc, k.b.getF32Type(), longest);
    n = arith::AddFOp::create(k.b, k.loc, n, k.f32(1.0));
    Value s = arith::MulFOp::create(k.b, k.loc, n, k.f32(factor / length));
    s = arith::AddFOp::create(k.b, k.loc, s, k.f32(1.0 - factor));
    return math::LogOp::create(k.b, k.loc, s);
  }

  /// The factor at a position, which fills a vector of `width`.
  static Value grown(KernelBuilder &k, ArrayRef<double> growth, Value position,
                     double factor, int64_t width) {
    auto number = [&](double x) { return k.splat(x, width); };
    Value from = arith::AddFOp::create(k.b, k.loc, position, number(growth[2]));
    // A division, as a product with the inverse may end below a whole number.
    Value steps = math::FloorOp::create(
        k.b, k.loc, arith::DivFOp::create(k.b, k.loc, from, number(growth[1])));
    Value log = math::LogOp::create(
        k.b, k.loc, arith::AddFOp::create(k.b, k.loc, steps, number(1.0)));
    return k.fma(log, number(growth[0] * factor), number(factor));
  }

  Value fill(RotaryTableOp op, KernelBuilder &k,
             function_ref<Value(KernelBuilder &, Value, int64_t)> frequencyAt,
             int64_t pairs, bool cosine) const {
    Value positions = op.getPositions();
    Value dest = emptyTokens(k, positions, pairs, k.b.getF32Type());
    VectorLowering whole = lowering;
    int64_t width = whole.lanes = dividing(pairs, lowering.lanes);
    double factor = op.getFactor().convertToDouble();
    Value rows = forallVectors(
        k, dest, whole,
        [&](KernelBuilder &k, Value row, Value pair, Value, Value tile,
            ValueRange at) {
          Value position = k.splat(positionOf(k, positions, row), width);
          Value angle = arith::MulFOp::create(k.b, k.loc, position,
                                              frequencyAt(k, pair, width));
          auto [sin, cos] = emitSinCos(k, angle);
          Value by = op.getGrowth()
                         ? grown(k, *op.getGrowth(), position, factor, width)
                         : k.splat(factor, width);
          Value value =
              arith::MulFOp::create(k.b, k.loc, cosine ? cos : sin, by);
          return k.store(value, tile, at);
        });
    return fromRows(k, rows,
                    cosine ? op.getCos().getType() : op.getSin().getType(),
                    positions);
  }
  VectorLowering lowering;
};

} // namespace

void populateEmbeddingPatterns(RewritePatternSet &patterns,
                               const VectorLowering &lowering) {
  patterns
      .add<LowerEmbedding<EmbeddingOp>, LowerEmbedding<QuantizedEmbeddingOp>,
           LowerSinusoidal, LowerRotaryTable>(patterns.getContext(), lowering);
}

} // namespace attune

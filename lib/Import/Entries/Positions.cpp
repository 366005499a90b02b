//===- Positions.cpp - Positions of an entry's tokens -----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EntryImporter.h"

#include "attune/Import/PositionMath.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace attune;

static RankedTensorType withChannels(RankedTensorType type, int64_t channels) {
  SmallVector<int64_t> shape(type.getShape());
  shape.back() = channels;
  return RankedTensorType::get(shape, type.getElementType());
}

LogicalResult EntryImporter::importPositions(size_t number) {
  const spec::Layer &layer = stream->spec.layers[number];
  const auto &op = std::get<spec::Positions>(layer.op);
  Location at = loc(layer.location);
  Value positions = state.shape.size() == 3 ? countPositions(op, at) : Value();
  if (!positions) {
    diags.error(layer.location,
                "positions need a stream of [batch, tokens, width]");
    return failure();
  }
  if (op.dims == 2 || op.interpolate != spec::Interpolation::None)
    return importGrid(number);
  // If the token count is static, the learned table must cover it.
  if (op.count == spec::PositionCount::Tokens &&
      op.kind == spec::PositionKind::Learned) {
    const spec::Dim &tokens = state.shape[1];
    if (tokens.size < 0) {
      diags.error(layer.location, "a table of " + std::to_string(op.length) +
                                      " positions needs a fixed number of "
                                      "tokens; give the input's sizes as "
                                      "numbers");
      return failure();
    }
    if (tokens.size + op.offset > op.length) {
      diags.error(layer.location, "there are " + std::to_string(tokens.size) +
                                      " tokens, but the table of positions "
                                      "has only " +
                                      std::to_string(op.length - op.offset) +
                                      " rows for them");
      return failure();
    }
  }
  auto type = typeOf(state.value);
  int64_t width = op.concat ? op.concat : type.getDimSize(2);
  Value addend = op.concat ? Value() : state.value, result;
  if (op.kind == spec::PositionKind::Learned) {
    Value table = roleOf(number, "weight", op.length, width);
    if (!table)
      return failure();
    result = EmbeddingOp::create(
        builder, at, withChannels(type, width), positions, table, addend,
        builder.getF32FloatAttr(1), builder.getI64IntegerAttr(op.offset));
  } else {
    result = sinusoids(op, at, positions, addend, width);
  }
  setPositions(op, at, result);
  return success();
}

/// `result` is the stream with positions added, or positions alone.
void EntryImporter::setPositions(const spec::Positions &op, Location at,
                                 Value result) {
  state.value =
      op.concat ? joinChannels(builder, at, {state.value, result}) : result;
  state.shape[2] = {typeOf(state.value).getDimSize(2), ""};
}

/// Sines and cosines of positions, added to `addend` if there is one.
Value EntryImporter::sinusoids(const spec::Positions &op, Location at,
                               Value positions, Value addend, int64_t width) {
  if (op.offset != 0) {
    Value sizes[] = {size(0), size(1)};
    Value offset = arith::ConstantOp::create(
        builder, at, builder.getI64IntegerAttr(op.offset));
    Value offsets = tensor::SplatOp::create(builder, at, offset,
                                            positions.getType(), sizes);
    positions = arith::AddIOp::create(builder, at, positions, offsets);
  }
  Sinusoid convention = Sinusoid::Interleaved;
  if (op.layout == spec::SinusoidLayout::Blocks)
    convention = Sinusoid::Blocks;
  else if (op.layout != spec::SinusoidLayout::Interleaved)
    convention = Sinusoid::Tensor2Tensor;
  bool swapped = op.layout == spec::SinusoidLayout::CosinesFirst;
  Value table = SinusoidalOp::create(
      builder, at, withChannels(typeOf(state.value), width), positions,
      swapped ? Value() : addend,
      SinusoidAttr::get(builder.getContext(), convention),
      builder.getF64FloatAttr(10000.0));
  if (!swapped)
    return table;
  Value halves[] = {channelsOf(at, table, width / 2, width / 2),
                    channelsOf(at, table, 0, width / 2)};
  table = joinChannels(builder, at, halves);
  return addend ? arith::AddFOp::create(builder, at, table, addend) : table;
}

/// `count` channels of tokens from `first` on.
Value EntryImporter::channelsOf(Location at, Value tokens, int64_t first,
                                int64_t count) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, at, tokens);
  OpFoldResult zero = builder.getIndexAttr(0);
  SmallVector<OpFoldResult> offsets = {zero, zero, builder.getIndexAttr(first)};
  sizes[2] = builder.getIndexAttr(count);
  SmallVector<OpFoldResult> strides(3, builder.getIndexAttr(1));
  return tensor::ExtractSliceOp::create(builder, at,
                                        withChannels(typeOf(tokens), count),
                                        tokens, offsets, sizes, strides);
}

//===----------------------------------------------------------------------===//
// Places of an image
//===----------------------------------------------------------------------===//

LogicalResult EntryImporter::importGrid(size_t number) {
  const spec::Layer &layer = stream->spec.layers[number];
  const auto &op = std::get<spec::Positions>(layer.op);
  Location at = loc(layer.location);
  if (!op.shapesInput.empty())
    return importShapes(number);
  if (!state.height || !state.width) {
    diags.error(layer.location, "the tokens are not the places of an image");
    return failure();
  }
  auto type = typeOf(state.value);
  int64_t width = op.concat ? op.concat : type.getDimSize(2);
  if (op.interpolate != spec::Interpolation::None) {
    int64_t others = op.length - op.grid[0] * op.grid[1];
    if (others != state.before) {
      diags.error(layer.location,
                  "the table has " + std::to_string(others) +
                      " rows besides those of its grid, but " +
                      std::to_string(state.before) +
                      " tokens stand before the image's places");
      return failure();
    }
    if (op.interpolate == spec::Interpolation::Centre &&
        (state.places[0].size > op.grid[0] ||
         state.places[1].size > op.grid[1])) {
      diags.error(layer.location,
                  "the image has " + std::to_string(state.places[0].size) +
                      " x " + std::to_string(state.places[1].size) +
                      " places, more than the table's " +
                      std::to_string(op.grid[0]) + " x " +
                      std::to_string(op.grid[1]));
      return failure();
    }
    for (size_t i = 0; i < 2; ++i)
      if (op.interpolate == spec::Interpolation::Centre &&
          state.places[i].size < 0 &&
          !limitSize(state.places[i].symbol, op.grid[i])) {
        diags.error(layer.location, "needs an image of fixed size, as nothing "
                                    "can check its places against the table");
        return failure();
      }
    Value table = roleOf(number, "weight", op.length, width);
    if (!table)
      return failure();
    Value tokens = TokenPositionsOp::create(
        builder, at,
        RankedTensorType::get({ShapedType::kDynamic, ShapedType::kDynamic},
                              builder.getI64Type()),
        state.value, /*pad=*/IntegerAttr());
    Value result = EmbeddingOp::create(
        builder, at, withChannels(type, width), tokens,
        interpolated(op, at, table), op.concat ? Value() : state.value,
        builder.getF32FloatAttr(1), builder.getI64IntegerAttr(0));
    setPositions(op, at, result);
    return success();
  }

  if (state.before) {
    diags.error(layer.location, "tokens stand before the image's places, which "
                                "have no row and column");
    return failure();
  }
  bool learned = op.kind == spec::PositionKind::Learned;
  int64_t half = width / 2;
  SmallVector<Value> halves;
  for (bool row : {!op.columnsFirst, op.columnsFirst}) {
    const spec::Dim &extent = state.places[row ? 0 : 1];
    const char *what = row ? "rows" : "columns";
    if (!learned) {
      halves.push_back(
          sinusoids(op, at, placeOf(at, row), /*addend=*/Value(), half));
      continue;
    }
    int64_t length = op.grid[row ? 0 : 1];
    if (extent.size < 0 || extent.size > length) {
      diags.error(layer.location,
                  extent.size < 0
                      ? std::string("positions in two dimensions need an image "
                                    "of a fixed size")
                      : "the image has " + std::to_string(extent.size) + " " +
                            what + ", but the table of positions only " +
                            std::to_string(length));
      return failure();
    }
    Value table = roleOf(number, std::string(what) + ".weight", length, half);
    if (!table)
      return failure();
    halves.push_back(EmbeddingOp::create(
        builder, at, withChannels(type, half), placeOf(at, row), table,
        /*addend=*/Value(), builder.getF32FloatAttr(1),
        builder.getI64IntegerAttr(0)));
  }
  Value both = joinChannels(builder, at, halves);
  if (!op.concat)
    both = arith::AddFOp::create(builder, at, state.value, both);
  setPositions(op, at, both);
  return success();
}

namespace {
/// Arithmetic on scalars.
struct Scalars {
  OpBuilder &b;
  Location at;

  Value number(double x) const {
    return arith::ConstantOp::create(b, at, b.getF32FloatAttr(float(x)));
  }
  Value index(int64_t x) const {
    return arith::ConstantIndexOp::create(b, at, x);
  }
  Value add(Value x, Value y) const {
    return arith::AddFOp::create(b, at, x, y);
  }
  Value mul(Value x, Value y) const {
    return arith::MulFOp::create(b, at, x, y);
  }
  Value toFloat(Value x) const {
    Value integer = arith::IndexCastOp::create(b, at, b.getI64Type(), x);
    return arith::SIToFPOp::create(b, at, b.getF32Type(), integer);
  }
  Value toIndex(Value x) const {
    Value integer = arith::FPToSIOp::create(b, at, b.getI64Type(), x);
    return arith::IndexCastOp::create(b, at, b.getIndexType(), integer);
  }
  /// a x^3 + b x^2 + c x + d
  Value cubic(Value x, double a, double b, double c, double d) const {
    Value sum = add(mul(number(a), x), number(b));
    sum = add(mul(sum, x), number(c));
    return add(mul(sum, x), number(d));
  }
};
} // namespace

namespace {
/// The places of a table that place `to` of `extent` covers: those whose
/// middles are less than `reach` from its own, which count less the further
/// they are (torch.nn.functional.interpolate with antialias). Cubic: by the
/// cubic convolution of Keys (1981) with a = -1/2, twice as far.
struct Covered {
  bool cubic;
  Value middle, unit, first, end;

  Covered(const Scalars &s, int64_t from, Value to, Value extent,
          bool cubic = false)
      : cubic(cubic) {
    OpBuilder &b = s.b;
    Value all = s.number(double(from)), half = s.number(0.5);
    Value step = arith::DivFOp::create(b, s.at, all, s.toFloat(extent));
    middle = s.mul(s.add(s.toFloat(to), half), step);
    unit = arith::MaximumFOp::create(b, s.at, step, s.number(1));
    Value reach = cubic ? s.add(unit, unit) : unit;
    Value low = arith::SubFOp::create(b, s.at, middle, reach);
    low = arith::MaximumFOp::create(b, s.at, s.add(low, half), s.number(0));
    Value high = s.add(s.add(middle, reach), half);
    first = s.toIndex(low);
    end = arith::MinSIOp::create(b, s.at, s.toIndex(high), s.index(from));
  }

  /// The weight of a place; the weights of all do not add up to 1.
  Value weigh(const Scalars &s, Value place) const {
    Value centre = s.add(s.toFloat(place), s.number(0.5));
    Value away = arith::SubFOp::create(s.b, s.at, centre, middle);
    away = math::AbsFOp::create(s.b, s.at, away);
    away = arith::DivFOp::create(s.b, s.at, away, unit);
    if (!cubic) {
      Value near = arith::SubFOp::create(s.b, s.at, s.number(1), away);
      return arith::MaximumFOp::create(s.b, s.at, near, s.number(0));
    }
    auto within = [&](double reach, Value x, Value y) -> Value {
      Value isWithin = arith::CmpFOp::create(
          s.b, s.at, arith::CmpFPredicate::OLT, away, s.number(reach));
      return arith::SelectOp::create(s.b, s.at, isWithin, x, y);
    };
    Value outer = s.cubic(away, -0.5, 2.5, -4, 2);
    return within(1, s.cubic(away, 1.5, -2.5, 0, 1),
                  within(2, outer, s.number(0)));
  }

  /// The sum of what `element` gives for each of the places.
  Value sum(const Scalars &s,
            llvm::function_ref<Value(const Scalars &, Value)> element) const {
    auto loop = scf::ForOp::create(
        s.b, s.at, first, end, s.index(1), ValueRange{s.number(0)},
        [&](OpBuilder &b, Location at, Value place, ValueRange sum) {
          Scalars inner{b, at};
          Value next = inner.add(sum[0], element(inner, place));
          scf::YieldOp::create(b, at, next);
        });
    return loop.getResult(0);
  }
};
} // namespace

/// Sum of what `read` gives at the numbers among `from` that are around place
/// `to` of `extent`, each times its share. Places are squares whose middles
/// count and the border goes on outside (torch.nn.functional.interpolate).
static Value stretched(const Scalars &s, spec::Interpolation how, int64_t from,
                       Value to, Value extent,
                       llvm::function_ref<Value(Value)> read) {
  OpBuilder &b = s.b;
  Location at = s.at;
  if (how == spec::Interpolation::Antialias ||
      how == spec::Interpolation::AntialiasBicubic) {
    Covered covered(s, from, to, extent,
                    /*cubic=*/how != spec::Interpolation::Antialias);
    Value all = covered.sum(s, [&](const Scalars &inner, Value near) {
      return covered.weigh(inner, near);
    });
    Value sum = covered.sum(s, [&](const Scalars &inner, Value near) {
      return inner.mul(covered.weigh(inner, near), read(near));
    });
    return arith::DivFOp::create(b, at, sum, all);
  }
  bool cubic = how == spec::Interpolation::Bicubic;
  Value where;
  if (how == spec::Interpolation::Corners) {
    // One place alone is the first.
    Value steps = arith::MaximumFOp::create(
        b, at, s.add(s.toFloat(extent), s.number(-1)), s.number(1));
    where = arith::DivFOp::create(
        b, at, s.mul(s.toFloat(to), s.number(double(from - 1))), steps);
  } else {
    Value ratio =
        arith::DivFOp::create(b, at, s.number(double(from)), s.toFloat(extent));
    Value middle = s.add(s.toFloat(to), s.number(0.5));
    where = s.add(s.mul(middle, ratio), s.number(-0.5));
  }
  if (!cubic)
    where = arith::MaximumFOp::create(b, at, where, s.number(0));
  Value floor = math::FloorOp::create(b, at, where);
  Value t = arith::SubFOp::create(b, at, where, floor);
  Value first = s.toIndex(floor);
  auto near = [&](int64_t offset) -> Value {
    Value place = arith::AddIOp::create(b, at, first, s.index(offset));
    place = arith::MaxSIOp::create(b, at, place, s.index(0));
    place = arith::MinSIOp::create(b, at, place, s.index(from - 1));
    return read(place);
  };
  Value rest = arith::SubFOp::create(b, at, s.number(1), t);
  if (!cubic)
    return s.add(s.mul(near(0), rest), s.mul(near(1), t));
  // The cubic convolution of Keys (1981) with a = -3/4.
  const double a = -0.75;
  auto inner = [&](Value x) { return s.cubic(x, a + 2, -(a + 3), 0, 1); };
  auto outer = [&](Value x) {
    return s.cubic(s.add(x, s.number(1)), a, -5 * a, 8 * a, -4 * a);
  };
  Value sum = s.mul(near(-1), outer(t));
  sum = s.add(sum, s.mul(near(0), inner(t)));
  sum = s.add(sum, s.mul(near(1), inner(rest)));
  return s.add(sum, s.mul(near(2), outer(rest)));
}

/// The middle of a table, [tokens, width]. The image is not larger.
Value EntryImporter::centred(const spec::Positions &op, Location at,
                             Value table) {
  int64_t rows = op.grid[0], columns = op.grid[1], before = state.before;
  Value height = state.height, width = state.width;
  auto start = [&](int64_t all, Value extent) -> Value {
    Value room = arith::SubIOp::create(builder, at, index(all), extent);
    return arith::DivSIOp::create(builder, at, room, index(2));
  };
  Value top = start(rows, height), left = start(columns, width);
  Value tokens = arith::AddIOp::create(
      builder, at, arith::MulIOp::create(builder, at, height, width),
      index(before));
  return generate(
      at, tokens, typeOf(table).getDimSize(1),
      [&](OpBuilder &b, ValueRange i) -> Value {
        Scalars s{b, at};
        Value place = arith::SubIOp::create(b, at, i[0], s.index(before));
        Value row = arith::AddIOp::create(
            b, at, arith::DivUIOp::create(b, at, place, width), top);
        Value column = arith::AddIOp::create(
            b, at, arith::RemUIOp::create(b, at, place, width), left);
        Value from = arith::AddIOp::create(
            b, at, arith::MulIOp::create(b, at, row, s.index(columns)), column);
        from = arith::AddIOp::create(b, at, from, s.index(before));
        if (before) {
          Value isOwn = arith::CmpIOp::create(b, at, arith::CmpIPredicate::ult,
                                              i[0], s.index(before));
          from = arith::SelectOp::create(b, at, isOwn, i[0], from);
        }
        Value x =
            tensor::ExtractOp::create(b, at, table, ValueRange{from, i[1]});
        return x.getType().isF32()
                   ? x
                   : arith::ExtFOp::create(b, at, b.getF32Type(), x)
                         .getResult();
      });
}

/// A table of the image's own size, [tokens, width]: first columns are
/// stretched, then rows.
Value EntryImporter::interpolated(const spec::Positions &op, Location at,
                                  Value table) {
  if (op.interpolate == spec::Interpolation::Centre)
    return centred(op, at, table);
  int64_t rows = op.grid[0], columns = op.grid[1], before = state.before;
  int64_t width = typeOf(table).getDimSize(1);
  Value newRows = state.height, newColumns = state.width;
  Value wide = arith::MulIOp::create(builder, at, index(rows), newColumns);
  auto element = [&](OpBuilder &b, Value row, Value channel) -> Value {
    Value x = tensor::ExtractOp::create(b, at, table, ValueRange{row, channel});
    if (!x.getType().isF32())
      x = arith::ExtFOp::create(b, at, b.getF32Type(), x);
    return x;
  };
  Value stretchedRows =
      generate(at, wide, width, [&](OpBuilder &b, ValueRange i) -> Value {
        Scalars s{b, at};
        Value row = arith::DivUIOp::create(b, at, i[0], newColumns);
        Value column = arith::RemUIOp::create(b, at, i[0], newColumns);
        Value start = arith::AddIOp::create(
            b, at, arith::MulIOp::create(b, at, row, s.index(columns)),
            s.index(before));
        return stretched(
            s, op.interpolate, columns, column, newColumns, [&](Value near) {
              return element(b, arith::AddIOp::create(b, at, start, near),
                             i[1]);
            });
      });
  Value places = arith::MulIOp::create(builder, at, newRows, newColumns);
  Value tokens = arith::AddIOp::create(builder, at, places, index(before));
  return generate(at, tokens, width, [&](OpBuilder &b, ValueRange i) -> Value {
    Scalars s{b, at};
    Value place = arith::SubIOp::create(b, at, i[0], s.index(before));
    place = arith::MaxSIOp::create(b, at, place, s.index(0));
    Value row = arith::DivUIOp::create(b, at, place, newColumns);
    Value column = arith::RemUIOp::create(b, at, place, newColumns);
    Value mixed = stretched(
        s, op.interpolate, rows, row, newRows, [&](Value near) -> Value {
          Value from = arith::AddIOp::create(
              b, at, arith::MulIOp::create(b, at, near, newColumns), column);
          return tensor::ExtractOp::create(b, at, stretchedRows,
                                           ValueRange{from, i[1]});
        });
    if (before == 0)
      return mixed;
    Value isOwn = arith::CmpIOp::create(b, at, arith::CmpIPredicate::ult, i[0],
                                        s.index(before));
    Value own = arith::MinUIOp::create(b, at, i[0], s.index(before - 1));
    return arith::SelectOp::create(b, at, isOwn, element(b, own, i[1]), mixed);
  });
}

//===----------------------------------------------------------------------===//
// Images of different sizes
//===----------------------------------------------------------------------===//

/// The row or column of a token's place, and how many its image has. Tokens
/// behind an image are at its first place.
static std::pair<Value, Value> placeIn(const Scalars &s, Value shapes,
                                       Value tokens, ValueRange i, bool row) {
  OpBuilder &b = s.b;
  Location at = s.at;
  Value one = s.index(1);
  auto sizeOf = [&](int64_t axis) -> Value {
    Value size = tensor::ExtractOp::create(b, at, shapes,
                                           ValueRange{i[0], s.index(axis)});
    size = arith::IndexCastOp::create(b, at, b.getIndexType(), size);
    // The caller's numbers are checked; nothing is divided by 0 anyway.
    size = arith::MinSIOp::create(b, at, size, tokens);
    return arith::MaxSIOp::create(b, at, size, one);
  };
  Value rows = sizeOf(0), columns = sizeOf(1);
  Value places = arith::MulIOp::create(b, at, rows, columns);
  Value isInside =
      arith::CmpIOp::create(b, at, arith::CmpIPredicate::ult, i[1], places);
  Value place = arith::SelectOp::create(b, at, isInside, i[1], s.index(0));
  if (row)
    return {arith::DivUIOp::create(b, at, place, columns), rows};
  return {arith::RemUIOp::create(b, at, place, columns), columns};
}

/// A table's vectors for images whose sizes an input says.
LogicalResult EntryImporter::importShapes(size_t number) {
  const spec::Layer &layer = stream->spec.layers[number];
  const auto &op = std::get<spec::Positions>(layer.op);
  Location at = loc(layer.location);
  auto type = typeOf(state.value);
  int64_t width = op.concat ? op.concat : type.getDimSize(2);
  auto given = inputs.find(op.shapesInput);
  if (given == inputs.end() ||
      given->second.shape[0].symbol != state.shape[0].symbol ||
      given->second.shape[0].size != state.shape[0].size) {
    diags.error(layer.location, "input '" + op.shapesInput +
                                    "' does not have the sizes of as many "
                                    "images as the stream has sequences");
    return failure();
  }
  if (state.before) {
    diags.error(layer.location, "tokens stand before the places of the images, "
                                "which the shapes do not count");
    return failure();
  }
  Value table = roleOf(number, "weight", op.length, width);
  if (!table)
    return failure();
  mostPlaces[op.shapesInput] = state.shape[1];
  Value shapes = given->second.value, batch = size(0), tokens = size(1);
  // The weight of each place of the table for each token, by rows and columns.
  Value shares[2];
  for (bool row : {true, false}) {
    int64_t from = op.grid[row ? 0 : 1];
    shares[row] = generate(
        at, {batch, tokens}, from, [&](OpBuilder &b, ValueRange i) -> Value {
          Scalars s{b, at};
          auto [place, extent] = placeIn(s, shapes, tokens, i, row);
          Covered covered(s, from, place, extent);
          Value all =
              covered.sum(s, [&](const Scalars &inner, Value near) -> Value {
                return covered.weigh(inner, near);
              });
          return arith::DivFOp::create(b, at, covered.weigh(s, i[2]), all);
        });
  }
  Value positions = generate(
      at, {batch, tokens}, width, [&](OpBuilder &b, ValueRange i) -> Value {
        Scalars s{b, at};
        auto coveredOf = [&](bool row) {
          auto [place, extent] = placeIn(s, shapes, tokens, i, row);
          return Covered(s, op.grid[row ? 0 : 1], place, extent);
        };
        auto read = [&](const Scalars &in, Value from, ValueRange where) {
          Value x = tensor::ExtractOp::create(in.b, at, from, where);
          return x.getType().isF32()
                     ? x
                     : arith::ExtFOp::create(in.b, at, in.b.getF32Type(), x)
                           .getResult();
        };
        Covered rows = coveredOf(true), columns = coveredOf(false);
        return rows.sum(s, [&](const Scalars &outer, Value y) -> Value {
          Value first =
              arith::MulIOp::create(outer.b, at, y, outer.index(op.grid[1]));
          Value line =
              columns.sum(outer, [&](const Scalars &inner, Value x) -> Value {
                Value from = arith::AddIOp::create(inner.b, at, first, x);
                return inner.mul(read(inner, table, {from, i[2]}),
                                 read(inner, shares[0], {i[0], i[1], x}));
              });
          return outer.mul(line, read(outer, shares[1], {i[0], i[1], y}));
        });
      });
  if (!op.concat)
    positions = arith::AddFOp::create(builder, at, state.value, positions);
  setPositions(op, at, positions);
  return success();
}

//===----------------------------------------------------------------------===//
// Rotary positions
//===----------------------------------------------------------------------===//

LogicalResult EntryImporter::rotaryTables(const spec::Rope &rope,
                                          LayerScope &scope) {
  if (!rope.axes.channels.empty())
    return axesTables(rope, scope);
  const spec::RopeScaling &s = rope.scaling;
  if (s.type == "dynamic" || s.type == "llama3" || s.type == "yarn" ||
      s.type == "longrope")
    if (s.originalLength == 0 && model.context == 0) {
      diags.error(rope.location,
                  "rope scaling '" + s.type +
                      "' needs original_length or the model's context");
      return failure();
    }
  if (rope.places)
    return placeTables(rope, scope);
  if (!rope.sections.pairs.empty())
    return sectionTables(rope, scope);
  std::tie(scope.cos, scope.sin) =
      tablesOf(loc(rope.location), planRotary(rope, model.context));
  return success();
}

LogicalResult EntryImporter::growthTables(const spec::Attention &attention,
                                          LayerScope &scope) {
  const spec::QueryGrowth &growth = *attention.queryGrowth;
  if (attention.headDim % 2 != 0 || state.chunks || state.shape.size() != 3) {
    diags.error(growth.location,
                "queries that grow need heads of an even width and a stream of "
                "[batch, tokens, width]");
    return failure();
  }
  // Frequencies of 0 turn nothing, and leave the growth.
  RotaryPlan plan;
  if (attention.rope && attention.rope->channels == attention.headDim)
    plan = planRotary(*attention.rope, model.context);
  else
    plan.frequencies.assign(attention.headDim / 2, 0);
  plan.growth = {growth.by, double(growth.length), double(growth.shift)};
  std::tie(scope.queryCos, scope.querySin) =
      tablesOf(loc(growth.location), plan);
  return success();
}

/// Numbers of the stream's tokens, and what they are called. Class tokens and
/// the places of a convolution are in no input: they are counted.
std::pair<Value, std::string> EntryImporter::numberTokens(Location at) {
  auto given = inputs.find(stream->positionsName);
  if (given != inputs.end() &&
      (decode || (given->second.shape[1].size == state.shape[1].size &&
                  given->second.shape[1].symbol == state.shape[1].symbol)))
    return {given->second.value, stream->positionsName};
  std::string name = stream->spec.name + ":" + state.shape[1].symbol;
  Value &numbers = numbered[name];
  if (!numbers)
    numbers = TokenPositionsOp::create(
        builder, at,
        RankedTensorType::get({ShapedType::kDynamic, ShapedType::kDynamic},
                              builder.getI64Type()),
        state.value, /*pad=*/IntegerAttr());
  return {numbers, name};
}

/// Blocks share the tables of one plan.
std::pair<Value, Value> EntryImporter::tablesOf(Location at,
                                                const RotaryPlan &plan) {
  auto [numbers, name] = numberTokens(at);
  return tablesOf(at, plan, numbers, name);
}

std::pair<Value, Value> EntryImporter::tablesOf(Location at,
                                                const RotaryPlan &plan,
                                                Value positions,
                                                const std::string &name) {
  std::vector<double> key = plan.frequencies;
  key.push_back(plan.factor);
  if (plan.dynamic)
    key.insert(key.end(), plan.dynamic->begin(), plan.dynamic->end());
  key.insert(key.end(), plan.longFrequencies.begin(),
             plan.longFrequencies.end());
  if (plan.growth)
    key.insert(key.end(), plan.growth->begin(), plan.growth->end());
  auto &[cos, sin] = tables[{name, key}];
  if (cos)
    return {cos, sin};
  auto type = RankedTensorType::get({ShapedType::kDynamic, ShapedType::kDynamic,
                                     int64_t(plan.frequencies.size())},
                                    builder.getF32Type());
  DenseF64ArrayAttr dynamic;
  if (plan.dynamic)
    dynamic = builder.getDenseF64ArrayAttr(*plan.dynamic);
  DenseF64ArrayAttr longFrequencies;
  IntegerAttr longFrom;
  if (!plan.longFrequencies.empty()) {
    longFrequencies = builder.getDenseF64ArrayAttr(plan.longFrequencies);
    longFrom = builder.getI64IntegerAttr(plan.longFrom);
    // Keys rotated by the short frequencies do not fit queries rotated by the
    // long ones: beyond this length a cache starts anew.
    if (decode)
      function->setAttr("attune.recompute_beyond", longFrom);
  }
  DenseF64ArrayAttr growth;
  if (plan.growth)
    growth = builder.getDenseF64ArrayAttr(*plan.growth);
  auto op =
      RotaryTableOp::create(builder, at, type, type, positions,
                            builder.getDenseF64ArrayAttr(plan.frequencies),
                            builder.getF64FloatAttr(plan.factor), dynamic,
                            longFrequencies, longFrom, growth);
  cos = op.getCos();
  sin = op.getSin();
  return {cos, sin};
}

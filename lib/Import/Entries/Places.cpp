//===- Places.cpp - Windows and squares of an image -------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EntryImporter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace attune;

namespace {
/// Arithmetic on indices.
struct Indices {
  OpBuilder &b;
  Location at;

  Value number(int64_t x) const {
    return arith::ConstantIndexOp::create(b, at, x);
  }
  Value add(Value x, Value y) const {
    return b.createOrFold<arith::AddIOp>(at, x, y);
  }
  Value mul(Value x, Value y) const {
    return b.createOrFold<arith::MulIOp>(at, x, y);
  }
  Value div(Value x, Value y) const {
    return b.createOrFold<arith::DivUIOp>(at, x, y);
  }
  Value rem(Value x, Value y) const {
    return b.createOrFold<arith::RemUIOp>(at, x, y);
  }
  Value less(Value x, Value y) const {
    return arith::CmpIOp::create(b, at, arith::CmpIPredicate::ult, x, y);
  }
};

/// Where token `token` of window `sequence` stands in its image.
struct PlaceInWindows {
  PlaceInWindows(const Indices &i, const NamedTensor &of, Value sequence,
                 Value token) {
    Value rows = i.number(of.window.first);
    Value columns = i.number(of.window.second);
    Value window = i.rem(sequence, of.windows);
    row = i.add(i.mul(i.div(window, of.across), rows), i.div(token, columns));
    column =
        i.add(i.mul(i.rem(window, of.across), columns), i.rem(token, columns));
  }
  Value row, column;
};
} // namespace

/// A tensor [batch, tokens] of `type`, each made of its two indices.
static Value
eachToken(OpBuilder &builder, Location at, Value batch, Value tokens, Type type,
          llvm::function_ref<Value(const Indices &, Value, Value)> element) {
  SmallVector<OpFoldResult> sizes = {getAsOpFoldResult(batch),
                                     getAsOpFoldResult(tokens)};
  Value empty = tensor::EmptyOp::create(builder, at, sizes, type);
  Value made =
      linalg::GenericOp::create(
          builder, at, empty.getType(), ValueRange(), empty,
          builder.getMultiDimIdentityMap(2),
          SmallVector<utils::IteratorType>(2, utils::IteratorType::parallel),
          [&](OpBuilder &b, Location at, ValueRange) {
            Value row = linalg::IndexOp::create(b, at, 0);
            Value token = linalg::IndexOp::create(b, at, 1);
            linalg::YieldOp::create(b, at, element({b, at}, row, token));
          })
          .getResult(0);
  const int64_t dynamic = ShapedType::kDynamic;
  auto plain = RankedTensorType::get({dynamic, dynamic}, type);
  if (made.getType() == plain)
    return made;
  return tensor::CastOp::create(builder, at, plain, made);
}

/// The row or column of every token's place, [batch, tokens].
Value EntryImporter::placeOf(Location at, bool row) {
  Value columns = state.width;
  return eachToken(
      builder, at, size(0), size(1), builder.getI64Type(),
      [&](const Indices &i, Value sequence, Value token) -> Value {
        Value place;
        if (state.windows) {
          PlaceInWindows in(i, state, sequence, token);
          place = row ? in.row : in.column;
        } else {
          place = row ? i.div(token, columns) : i.rem(token, columns);
        }
        return arith::IndexCastOp::create(i.b, i.at, i.b.getI64Type(), place);
      });
}

LogicalResult EntryImporter::importPlaces(size_t number) {
  const spec::Layer &layer = stream->spec.layers[number];
  if (std::holds_alternative<spec::Whole>(layer.op)) {
    undoWindows();
    return success();
  }
  if (!state.height || !state.width || state.before) {
    diags.error(layer.location, "the tokens are not the places of an image");
    return failure();
  }
  if (std::holds_alternative<spec::Unpatch>(layer.op))
    return importUnpatch(number);
  return std::holds_alternative<spec::Windows>(layer.op) ? importWindows(number)
                                                         : importMerge(number);
}

LogicalResult EntryImporter::importWindows(size_t number) {
  const spec::Layer &layer = stream->spec.layers[number];
  const auto &op = std::get<spec::Windows>(layer.op);
  Location at = loc(layer.location);
  if (stream->mask || wantsHiddenStates()) {
    diags.error(layer.location,
                stream->mask
                    ? "an image's places are in no attention mask"
                    : "hidden_states of windows would have several shapes; "
                      "name the layers whose results are outputs");
    return failure();
  }
  Indices outer{builder, at};
  auto pieces = [&](Value extent, int64_t size) {
    return outer.div(outer.add(extent, index(size - 1)), index(size));
  };
  Value height = state.height, width = state.width, whole = state.value;
  Value across = pieces(width, op.columns);
  Value windows = outer.mul(pieces(height, op.rows), across);
  Value batch = outer.mul(size(0), windows);
  state.window = {op.rows, op.columns};
  state.across = across;
  state.windows = windows;
  state.batchBefore = state.shape[0];
  state.tokensBefore = state.shape[1];
  Value zero = index(0), tokens = index(op.rows * op.columns);
  auto isThere = [&](const Indices &i, const PlaceInWindows &in) -> Value {
    return arith::AndIOp::create(i.b, i.at, i.less(in.row, height),
                                 i.less(in.column, width));
  };
  state.value = generate(
      at, {batch, tokens}, typeOf(whole).getDimSize(2),
      [&](OpBuilder &b, ValueRange place) -> Value {
        Indices i{b, at};
        PlaceInWindows in(i, state, place[0], place[1]);
        Value there = isThere(i, in);
        Value token = arith::SelectOp::create(
            b, at, there, i.add(i.mul(in.row, width), in.column), zero);
        Value x = tensor::ExtractOp::create(
            b, at, whole,
            ValueRange{i.div(place[0], windows), token, place[2]});
        Value none = arith::ConstantOp::create(b, at, b.getF32FloatAttr(0));
        return arith::SelectOp::create(b, at, there, x, none);
      });
  state.shape[0] = {-1, layer.name + ".sequences"};
  state.shape[1] = {op.rows * op.columns, ""};
  bool full = state.places[0].size >= 0 && state.places[1].size >= 0 &&
              state.places[0].size % op.rows == 0 &&
              state.places[1].size % op.columns == 0;
  if (full)
    return success();
  Value there =
      eachToken(builder, at, batch, tokens, builder.getI1Type(),
                [&](const Indices &i, Value sequence, Value token) -> Value {
                  return isThere(i, PlaceInWindows(i, state, sequence, token));
                });
  auto type = RankedTensorType::get(
      {ShapedType::kDynamic, 1, 1, ShapedType::kDynamic}, builder.getI1Type());
  SmallVector<OpFoldResult> sizes = {
      OpFoldResult(batch), builder.getIndexAttr(1), builder.getIndexAttr(1),
      OpFoldResult(tokens)};
  stream->mask = tensor::ExpandShapeOp::create(
      builder, at, type, there, ArrayRef<ReassociationIndices>{{0, 1, 2}, {3}},
      sizes);
  return success();
}

void EntryImporter::undoWindows() {
  Location at = loc(stream->spec.location);
  NamedTensor cut = state;
  Value height = state.height, width = state.width;
  Indices outer{builder, at};
  Value batch = outer.div(size(0), cut.windows);
  state.value = generate(
      at, {batch, outer.mul(height, width)}, typeOf(cut.value).getDimSize(2),
      [&](OpBuilder &b, ValueRange place) -> Value {
        Indices i{b, at};
        Value rows = i.number(cut.window.first);
        Value columns = i.number(cut.window.second);
        Value row = i.div(place[1], width), column = i.rem(place[1], width);
        Value window =
            i.add(i.mul(i.div(row, rows), cut.across), i.div(column, columns));
        Value token =
            i.add(i.mul(i.rem(row, rows), columns), i.rem(column, columns));
        return tensor::ExtractOp::create(
            b, at, cut.value,
            ValueRange{i.add(i.mul(place[0], cut.windows), window), token,
                       place[2]});
      });
  state.shape[0] = cut.batchBefore;
  state.shape[1] = cut.tokensBefore;
  state.window = {};
  state.across = state.windows = Value();
  stream->mask = Value();
}

LogicalResult EntryImporter::importMerge(size_t number) {
  const spec::Layer &layer = stream->spec.layers[number];
  Location at = loc(layer.location);
  const auto &op = std::get<spec::Merge>(layer.op);
  int64_t side = op.size, parts = op.mean ? 1 : side * side;
  if (hiddenStates) {
    diags.error(layer.location,
                "hidden_states of merged places would have several shapes; "
                "name the layers whose results are outputs");
    return failure();
  }
  Indices outer{builder, at};
  Value before = state.value, oldWidth = state.width;
  int64_t channels = typeOf(before).getDimSize(2);
  for (spec::Dim &places : state.places) {
    if (places.size >= 0 && places.size % side != 0) {
      diags.error(layer.location,
                  "an image of " + std::to_string(state.places[0].size) +
                      " x " + std::to_string(state.places[1].size) +
                      " places does not consist of squares of " +
                      std::to_string(side));
      return failure();
    }
    if (places.size >= 0)
      places.size /= side;
    else
      places.symbol = layer.name + "." + places.symbol;
  }
  state.height = outer.div(state.height, index(side));
  state.width = outer.div(state.width, index(side));
  Value width = state.width;
  state.value = generate(
      at, {size(0), outer.mul(state.height, width)}, channels * parts,
      [&](OpBuilder &b, ValueRange place) -> Value {
        Indices i{b, at};
        Value by = i.number(side), each = i.number(channels);
        auto read = [&](Value part) -> Value {
          Value row = i.add(i.mul(i.div(place[1], width), by), i.div(part, by));
          Value column =
              i.add(i.mul(i.rem(place[1], width), by), i.rem(part, by));
          return tensor::ExtractOp::create(
              b, at, before,
              ValueRange{place[0], i.add(i.mul(row, oldWidth), column),
                         i.rem(place[2], each)});
        };
        if (!op.mean)
          return read(i.div(place[2], each));
        Value sum;
        for (int64_t part = 0; part < side * side; ++part) {
          Value one = read(i.number(part));
          sum = sum ? arith::AddFOp::create(b, at, sum, one).getResult() : one;
        }
        return arith::DivFOp::create(
            b, at, sum,
            arith::ConstantOp::create(b, at,
                                      b.getF32FloatAttr(float(side * side))));
      });
  const spec::Dim &rows = state.places[0], &columns = state.places[1];
  state.shape[1] = rows.size >= 0 && columns.size >= 0
                       ? spec::Dim{rows.size * columns.size, ""}
                       : spec::Dim{-1, layer.name + ".places"};
  state.shape[2] = {channels * parts, ""};
  return success();
}

LogicalResult EntryImporter::importUnpatch(size_t number) {
  const spec::Layer &layer = stream->spec.layers[number];
  Location at = loc(layer.location);
  int64_t side = std::get<spec::Unpatch>(layer.op).size;
  Value places = state.value, columns = state.width;
  int64_t channels = typeOf(places).getDimSize(2) / (side * side);
  const int64_t dynamic = ShapedType::kDynamic;
  auto type = RankedTensorType::get({dynamic, channels, dynamic, dynamic},
                                    builder.getF32Type());
  Indices outer{builder, at};
  SmallVector<OpFoldResult> sizes = {
      getAsOpFoldResult(size(0)), builder.getIndexAttr(channels),
      getAsOpFoldResult(outer.mul(state.height, index(side))),
      getAsOpFoldResult(outer.mul(columns, index(side)))};
  Value empty =
      tensor::EmptyOp::create(builder, at, sizes, builder.getF32Type());
  Value image =
      linalg::GenericOp::create(
          builder, at, empty.getType(), ValueRange(), empty,
          builder.getMultiDimIdentityMap(4),
          SmallVector<utils::IteratorType>(4, utils::IteratorType::parallel),
          [&](OpBuilder &b, Location at, ValueRange) {
            Indices i{b, at};
            SmallVector<Value> place;
            for (unsigned dim = 0; dim < 4; ++dim)
              place.push_back(linalg::IndexOp::create(b, at, dim));
            Value by = i.number(side);
            Value token =
                i.add(i.mul(i.div(place[2], by), columns), i.div(place[3], by));
            Value within =
                i.add(i.mul(i.rem(place[2], by), by), i.rem(place[3], by));
            Value channel = i.add(i.mul(within, i.number(channels)), place[1]);
            linalg::YieldOp::create(
                b, at,
                tensor::ExtractOp::create(b, at, places,
                                          ValueRange{place[0], token, channel})
                    .getResult());
          })
          .getResult(0);
  state.value = image.getType() == type
                    ? image
                    : tensor::CastOp::create(builder, at, type, image);
  auto whole = [&](const spec::Dim &places) -> spec::Dim {
    if (places.size >= 0)
      return {places.size * side, ""};
    return {-1, "(" + places.symbol + ")*" + std::to_string(side)};
  };
  state.shape = {state.shape[0],
                 {channels, ""},
                 whole(state.places[0]),
                 whole(state.places[1])};
  state.height = state.width = Value();
  return success();
}

//===----------------------------------------------------------------------===//
// Rotary positions
//===----------------------------------------------------------------------===//

LogicalResult EntryImporter::placeTables(const spec::Rope &rope,
                                         LayerScope &scope) {
  Location at = loc(rope.location);
  if (!state.height || !state.width || state.before) {
    diags.error(rope.location, "the tokens are not the places of an image");
    return failure();
  }
  spec::Rope share = rope;
  if (!rope.alternating)
    share.channels = rope.channels / 2;
  RotaryPlan plan = planRotary(share, model.context);
  std::vector<double> key = plan.frequencies;
  key.push_back(rope.alternating);
  std::string name = stream->spec.name + ":places of ";
  for (const spec::Dim &dim : state.shape)
    name += dim.size >= 0 ? std::to_string(dim.size) + " " : dim.symbol + " ";
  SmallVector<Value, 2> cos, sin;
  for (bool row : {true, false}) {
    std::string axis = name + (row ? "rows" : "columns");
    Value &numbers = numbered[axis];
    if (!numbers)
      numbers = placeOf(at, row);
    RotaryPlan own = plan;
    if (rope.alternating) {
      own.frequencies.clear();
      for (size_t i = row ? 0 : 1; i < plan.frequencies.size(); i += 2)
        own.frequencies.push_back(plan.frequencies[i]);
    }
    auto [cosines, sines] = tablesOf(at, own, numbers, axis);
    cos.push_back(cosines);
    sin.push_back(sines);
  }
  auto &both = tables[{name + "both", key}];
  if (!both.first)
    both = {joinChannels(builder, at, cos), joinChannels(builder, at, sin)};
  std::tie(scope.cos, scope.sin) = both;
  return success();
}

/// Makes one table [batch, tokens, pairs] of three: each pair takes the number
/// of its own section.
static Value takeSections(OpBuilder &builder, Location at,
                          const spec::RopeSections &sections,
                          ArrayRef<Value> tables) {
  const std::vector<int64_t> &pairs = sections.pairs;
  auto type = typeOf(tables[0]);
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(builder, at, tables[0]);
  Value empty =
      tensor::EmptyOp::create(builder, at, sizes, type.getElementType());
  AffineMap all = builder.getMultiDimIdentityMap(3);
  return linalg::GenericOp::create(
             builder, at, type, tables, empty, SmallVector<AffineMap>(4, all),
             SmallVector<utils::IteratorType>(3, utils::IteratorType::parallel),
             [&](OpBuilder &b, Location at, ValueRange args) {
               Indices i{b, at};
               Value pair = linalg::IndexOp::create(b, at, 2), isRow, isColumn;
               if (sections.interleaved) {
                 Value turn = i.rem(pair, i.number(3));
                 auto is = [&](size_t section) -> Value {
                   Value same = arith::CmpIOp::create(
                       b, at, arith::CmpIPredicate::eq, turn,
                       i.number(static_cast<int64_t>(section)));
                   return arith::AndIOp::create(
                       b, at, same, i.less(pair, i.number(3 * pairs[section])));
                 };
                 isRow = is(1);
                 isColumn = is(2);
               } else {
                 Value rows = i.number(pairs[0]);
                 isRow = arith::CmpIOp::create(b, at, arith::CmpIPredicate::uge,
                                               pair, rows);
                 isColumn =
                     arith::CmpIOp::create(b, at, arith::CmpIPredicate::uge,
                                           pair, i.number(pairs[0] + pairs[1]));
               }
               Value taken =
                   arith::SelectOp::create(b, at, isRow, args[1], args[0]);
               linalg::YieldOp::create(
                   b, at,
                   arith::SelectOp::create(b, at, isColumn, args[2], taken)
                       .getResult());
             })
      .getResult(0);
}

LogicalResult EntryImporter::sectionTables(const spec::Rope &rope,
                                           LayerScope &scope) {
  Location at = loc(rope.location);
  const std::vector<spec::Layer> &layers = stream->spec.layers;
  auto insert = llvm::find_if(layers, [](const spec::Layer &layer) {
    const auto *op = std::get_if<spec::Insert>(&layer.op);
    return op && !op->grid.empty();
  });
  if (insert == layers.end() || !inputs.count(stream->root)) {
    diags.error(rope.location, "no layer of the stream inserts images with a "
                               "grid in the places of ids");
    return failure();
  }
  auto [numbers, base] = numberTokens(at);
  RotaryPlan plan = planRotary(rope, model.context);
  std::vector<double> key = plan.frequencies;
  key.push_back(plan.factor);
  for (int64_t pairs : rope.sections.pairs)
    key.push_back(double(pairs));
  key.push_back(rope.sections.interleaved);
  auto &both = tables[{base + " in sections", key}];
  if (!both.first) {
    SmallVector<Value> axes = imagePositions(
        at, static_cast<size_t>(insert - layers.begin()), numbers);
    SmallVector<Value> cos, sin;
    for (auto [axis, positions] : llvm::enumerate(axes)) {
      auto [cosines, sines] = tablesOf(
          at, plan, positions, base + " in section " + std::to_string(axis));
      cos.push_back(cosines);
      sin.push_back(sines);
    }
    both = {takeSections(builder, at, rope.sections, cos),
            takeSections(builder, at, rope.sections, sin)};
  }
  std::tie(scope.cos, scope.sin) = both;
  return success();
}

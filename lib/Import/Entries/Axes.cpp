//===- Axes.cpp - Rotary positions of several axes --------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EntryImporter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace attune;

namespace {
/// The axis and the frequency of each pair of channels.
struct AxisPairs {
  std::vector<int64_t> axes;
  std::vector<double> frequencies;
};

/// Arithmetic on an element's indices and numbers.
struct Numbers {
  OpBuilder &b;
  Location at;

  Value index(int64_t i) { return arith::ConstantIndexOp::create(b, at, i); }
  Value real(double x) {
    return arith::ConstantOp::create(b, at, b.getF32FloatAttr(float(x)));
  }
  Value toReal(Value i) {
    Value whole = arith::IndexCastOp::create(b, at, b.getI64Type(), i);
    return arith::SIToFPOp::create(b, at, b.getF32Type(), whole);
  }
  Value less(Value i, Value j) {
    return arith::CmpIOp::create(b, at, arith::CmpIPredicate::ult, i, j);
  }
  Value read(Value tensor, ValueRange i) {
    return tensor::ExtractOp::create(b, at, tensor, i);
  }
  Value select(Value condition, Value x, Value y) {
    return arith::SelectOp::create(b, at, condition, x, y);
  }
};
} // namespace

static AxisPairs pairsOf(const spec::Rope &rope) {
  AxisPairs pairs;
  for (auto [axis, channels] : llvm::enumerate(rope.axes.channels)) {
    spec::Rope alone = rope;
    alone.channels = channels;
    for (double frequency : planRotary(alone, /*context=*/0).frequencies) {
      pairs.axes.push_back(int64_t(axis));
      pairs.frequencies.push_back(frequency);
    }
  }
  return pairs;
}

/// The centre of place `i` of `n`, as an angle.
static Value centre(Numbers &n, Value i, Value count) {
  OpBuilder &b = n.b;
  Value twice = arith::MulIOp::create(b, n.at, i, n.index(2));
  Value odd = n.toReal(arith::AddIOp::create(b, n.at, twice, n.index(1)));
  Value share = arith::DivFOp::create(b, n.at, odd, n.toReal(count));
  Value around = arith::SubFOp::create(b, n.at, share, n.real(1));
  return arith::MulFOp::create(b, n.at, around, n.real(6.28318530717958647693));
}

static bool isSame(const spec::Dim &x, const spec::Dim &y) {
  return x.size == y.size && x.symbol == y.symbol;
}

/// Joins the rows of tensors that have equally many columns.
static Value joinRows(OpBuilder &b, Location at, ArrayRef<Value> tensors) {
  if (tensors.size() == 1)
    return tensors.front();
  auto type = cast<RankedTensorType>(tensors.front().getType());
  SmallVector<Value> counts, starts;
  Value all = arith::ConstantIndexOp::create(b, at, 0);
  for (Value tensor : tensors) {
    starts.push_back(all);
    counts.push_back(b.createOrFold<tensor::DimOp>(at, tensor, 0));
    all = b.createOrFold<arith::AddIOp>(at, all, counts.back());
  }
  OpFoldResult none = b.getIndexAttr(0), one = b.getIndexAttr(1),
               columns = b.getIndexAttr(type.getDimSize(1));
  Value joined = tensor::EmptyOp::create(
      b, at, SmallVector<OpFoldResult>{all, columns}, type.getElementType());
  for (auto [tensor, start, count] : llvm::zip_equal(tensors, starts, counts))
    joined = tensor::InsertSliceOp::create(
        b, at, tensor, joined, SmallVector<OpFoldResult>{start, none},
        SmallVector<OpFoldResult>{count, columns},
        SmallVector<OpFoldResult>{one, one});
  return joined;
}

/// The positions that inputs give, [tokens, axes]; null after an error.
Value EntryImporter::givenPositions(const spec::Rope &rope) {
  std::vector<TokenPart> parts = state.parts;
  if (parts.size() != rope.axes.inputs.size())
    parts = {{state.shape[1]}};
  bool same = parts.size() == rope.axes.inputs.size();
  SmallVector<Value> values;
  for (size_t i = 0; same && i < parts.size(); ++i) {
    const NamedTensor &input = inputs.at(rope.axes.inputs[i]);
    same = isSame(parts[i].tokens, input.shape[0]);
    values.push_back(input.value);
  }
  if (same)
    return joinRows(builder, loc(rope.location), values);
  diags.error(rope.location, "the inputs of 'axes' may have other sizes than "
                             "the tokens of the stream");
  return {};
}

LogicalResult EntryImporter::axesTables(const spec::Rope &rope,
                                        LayerScope &scope) {
  Location at = loc(rope.location);
  bool ofImage = rope.axes.inputs.empty();
  if (ofImage && !(state.height && state.width)) {
    diags.error(rope.location, "the tokens are not the places of an image");
    return failure();
  }
  // Blocks share the tables of one plan.
  AxisPairs pairs = pairsOf(rope);
  std::vector<double> plan = pairs.frequencies;
  llvm::append_range(plan, pairs.axes);
  std::string key = "axes of " + stream->spec.name + ":" +
                    state.shape[1].symbol + std::to_string(state.before);
  for (const std::string &name : rope.axes.inputs)
    key += "," + name;
  auto &[cos, sin] = tables[{key, plan}];
  std::tie(scope.cos, scope.sin) = std::pair(cos, sin);
  if (cos)
    return success();

  Value given;
  if (!ofImage && !(given = givenPositions(rope)))
    return failure();
  auto count = static_cast<int64_t>(pairs.axes.size());
  auto constant = [&](Type element, auto numbers) -> Value {
    auto type = RankedTensorType::get({count}, element);
    return arith::ConstantOp::create(builder, at,
                                     DenseElementsAttr::get(type, numbers));
  };
  Value frequencies =
      constant(builder.getF64Type(), ArrayRef<double>(pairs.frequencies));
  Value axes = constant(builder.getI64Type(), ArrayRef<int64_t>(pairs.axes));
  Value height = state.height, width = state.width;
  int64_t before = state.before;
  auto angle = [&](OpBuilder &b, ValueRange i) -> Value {
    Numbers n{b, at};
    Value axis = n.read(axes, i[2]), position;
    if (given) {
      Value column = arith::IndexCastOp::create(b, at, b.getIndexType(), axis);
      position = n.read(given, {i[1], column});
      if (!position.getType().isF32())
        position = arith::ExtFOp::create(b, at, b.getF32Type(), position);
    } else {
      Value isRow = arith::CmpIOp::create(
          b, at, arith::CmpIPredicate::eq, axis,
          arith::ConstantIntOp::create(b, at, b.getI64Type(), 0));
      // This is a very large number for tokens before the image.
      Value place = arith::SubIOp::create(b, at, i[1], n.index(before));
      Value row = arith::DivUIOp::create(b, at, place, width);
      Value column = arith::RemUIOp::create(b, at, place, width);
      position = centre(n, n.select(isRow, row, column),
                        n.select(isRow, height, width));
      if (before)
        position = n.select(n.less(i[1], n.index(before)), n.real(0), position);
    }
    return angleOf(b, at, position, n.read(frequencies, i[2]));
  };
  SmallVector<Value> sizes = {size(0), size(1)};
  cos = generate(at, sizes, count, [&](OpBuilder &b, ValueRange i) -> Value {
    return math::CosOp::create(b, at, angle(b, i));
  });
  sin = generate(at, sizes, count, [&](OpBuilder &b, ValueRange i) -> Value {
    return math::SinOp::create(b, at, angle(b, i));
  });
  std::tie(scope.cos, scope.sin) = std::pair(cos, sin);
  return success();
}

//===- Signals.cpp - Conditions and chunks ----------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EntryImporter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <cmath>

using namespace mlir;
using namespace attune;

static Value add(OpBuilder &b, Location at, Value x, Value y) {
  return b.createOrFold<arith::AddIOp>(at, x, y);
}
static Value sub(OpBuilder &b, Location at, Value x, Value y) {
  return b.createOrFold<arith::SubIOp>(at, x, y);
}
static Value mul(OpBuilder &b, Location at, Value x, Value y) {
  return b.createOrFold<arith::MulIOp>(at, x, y);
}
static Value div(OpBuilder &b, Location at, Value x, Value y) {
  return b.createOrFold<arith::DivUIOp>(at, x, y);
}
static Value rem(OpBuilder &b, Location at, Value x, Value y) {
  return b.createOrFold<arith::RemUIOp>(at, x, y);
}
static Value read(OpBuilder &b, Location at, Value from, ValueRange where) {
  return tensor::ExtractOp::create(b, at, from, where);
}

Value EntryImporter::generate(
    Location at, ArrayRef<OpFoldResult> sizes, Type type,
    llvm::function_ref<Value(OpBuilder &, ValueRange)> element) {
  Value empty = tensor::EmptyOp::create(builder, at, sizes, type);
  auto rank = static_cast<unsigned>(sizes.size());
  auto op = linalg::GenericOp::create(
      builder, at, empty.getType(), ValueRange(), empty,
      builder.getMultiDimIdentityMap(rank),
      SmallVector<utils::IteratorType>(rank, utils::IteratorType::parallel),
      [&](OpBuilder &b, Location at, ValueRange) {
        SmallVector<Value> indices;
        for (unsigned i = 0; i < rank; ++i)
          indices.push_back(linalg::IndexOp::create(b, at, i));
        linalg::YieldOp::create(b, at, element(b, indices));
      });
  return op.getResult(0);
}

Value EntryImporter::generate(
    Location at, ArrayRef<Value> sizes, int64_t channels,
    llvm::function_ref<Value(OpBuilder &, ValueRange)> element) {
  SmallVector<OpFoldResult> all(sizes);
  all.push_back(builder.getIndexAttr(channels));
  return generate(at, all, builder.getF32Type(), element);
}

LogicalResult EntryImporter::importSignals(size_t number) {
  const spec::Layer &layer = stream->spec.layers[number];
  if (std::holds_alternative<spec::Modulate>(layer.op))
    return importModulate(number);
  if (std::holds_alternative<spec::Timestep>(layer.op))
    return importTimestep(number);
  if (std::holds_alternative<spec::Chunk>(layer.op))
    return importChunk(number);
  if (std::holds_alternative<spec::SwapChunks>(layer.op))
    swapChunks(loc(layer.location));
  else
    overlapAdd(loc(layer.location));
  return success();
}

//===----------------------------------------------------------------------===//
// Conditions
//===----------------------------------------------------------------------===//

Value EntryImporter::conditionOf(const spec::Modulation &by) {
  const NamedTensor *source = findResult(by.source);
  if (!source || typeOf(source->value).getRank() != 2) {
    diags.error(by.location, "a condition is one vector [batch, width] for "
                             "each sequence, which '" +
                                 by.source + "' does not give");
    return {};
  }
  if (by.activation == spec::Activation::Identity)
    return source->value;
  Value &activated = conditions[source->value];
  if (!activated) {
    Location at = loc(by.location);
    Value rows = builder.createOrFold<tensor::DimOp>(at, source->value, 0);
    activated = generate(
        at, rows, typeOf(source->value).getDimSize(1),
        [&](OpBuilder &b, ValueRange indices) -> Value {
          Value x = read(b, at, source->value, indices);
          Value one = arith::ConstantOp::create(b, at, b.getF32FloatAttr(1));
          Value power = math::ExpOp::create(
              b, at, arith::NegFOp::create(b, at, x).getResult());
          return arith::DivFOp::create(
              b, at, x, arith::AddFOp::create(b, at, one, power).getResult());
        });
  }
  return activated;
}

LogicalResult EntryImporter::importModulate(size_t number) {
  const spec::Layer &layer = stream->spec.layers[number];
  const spec::Modulation &by = std::get<spec::Modulate>(layer.op).by;
  Value condition = conditionOf(by);
  if (!condition)
    return failure();
  LayerScope scope;
  int64_t width = typeOf(state.value).getShape().back();
  Value columns = LayerImporter(builder, shared.weights, layer,
                                stream->symbols[number], scope, diags)
                      .modulation(by, "", 2 * width, condition);
  if (!columns)
    return failure();
  state.value = ModulateOp::create(
      builder, loc(layer.location), state.value.getType(), state.value, columns,
      /*residual=*/Value(), builder.getI64IntegerAttr(width),
      builder.getI64IntegerAttr(0), builder.getF32FloatAttr(1));
  return success();
}

Value attune::angleOf(OpBuilder &b, Location at, Value number,
                      Value frequency) {
  auto real = [&](double x) -> Value {
    return arith::ConstantOp::create(b, at, b.getF64FloatAttr(x));
  };
  const double turn = 6.28318530717958647693;
  Value wide = arith::ExtFOp::create(b, at, b.getF64Type(), number);
  Value angle = arith::MulFOp::create(b, at, wide, frequency);
  Value turns = math::FloorOp::create(
      b, at, arith::MulFOp::create(b, at, angle, real(1 / turn)).getResult());
  Value rest = arith::SubFOp::create(
      b, at, angle, arith::MulFOp::create(b, at, turns, real(turn)));
  return arith::TruncFOp::create(b, at, b.getF32Type(), rest);
}

LogicalResult EntryImporter::importTimestep(size_t number) {
  const spec::Layer &layer = stream->spec.layers[number];
  const auto &op = std::get<spec::Timestep>(layer.op);
  Location at = loc(layer.location);
  int64_t half = op.width / 2;
  std::vector<double> numbers;
  for (int64_t i = 0; i < half; ++i)
    numbers.push_back(op.scale * std::pow(op.period, -static_cast<double>(i) /
                                                         static_cast<double>(
                                                             half - op.shift)));
  auto tableType = RankedTensorType::get({half}, builder.getF64Type());
  Value table = arith::ConstantOp::create(
      builder, at,
      DenseElementsAttr::get(tableType, ArrayRef<double>(numbers)));
  Value input = state.value;
  Value rows = builder.createOrFold<tensor::DimOp>(at, input, 0);
  Value middle = index(half);
  state.value = generate(
      at, rows, op.width, [&](OpBuilder &b, ValueRange indices) -> Value {
        Value number = read(b, at, input, indices[0]);
        Value which = rem(b, at, indices[1], middle);
        Value angle = angleOf(b, at, number, read(b, at, table, which));
        Value first = arith::CmpIOp::create(b, at, arith::CmpIPredicate::ult,
                                            indices[1], middle);
        Value sine = math::SinOp::create(b, at, angle);
        Value cosine = math::CosOp::create(b, at, angle);
        return arith::SelectOp::create(b, at, first,
                                       op.cosinesFirst ? cosine : sine,
                                       op.cosinesFirst ? sine : cosine);
      });
  state.shape = {state.shape[0], {op.width, ""}};
  return success();
}

//===----------------------------------------------------------------------===//
// Chunks
//===----------------------------------------------------------------------===//

// Token t of a sequence stands in chunk t/P at t%P + P and in the next one at
// t%P, where P is half a chunk: P zeros come before the first token. Two rows
// of whole chunks hold all tokens, as dual-path models are trained (Luo, Chen
// and Yoshioka 2020).
LogicalResult EntryImporter::importChunk(size_t number) {
  const spec::Layer &layer = stream->spec.layers[number];
  Location at = loc(layer.location);
  if (stream->mask) {
    diags.error(layer.location, "chunks are in no attention mask");
    return failure();
  }
  if (wantsHiddenStates()) {
    diags.error(layer.location,
                "hidden_states of chunks would have several shapes; name the "
                "layers whose results are outputs");
    return failure();
  }
  int64_t size = std::get<spec::Chunk>(layer.op).size;
  Value half = index(size / 2), whole = state.value;
  state.wholeBatch = this->size(0);
  state.wholeTokens = this->size(1);
  Value rows =
      div(builder, at, add(builder, at, state.wholeTokens, half), index(size));
  state.chunks = mul(builder, at, add(builder, at, rows, index(1)), index(2));
  Value sequences = mul(builder, at, state.wholeBatch, state.chunks);
  Value chunks = state.chunks, tokens = state.wholeTokens;
  Value zero = index(0);
  state.value = generate(
      at, {sequences, index(size)}, typeOf(whole).getDimSize(2),
      [&](OpBuilder &b, ValueRange i) -> Value {
        Value place =
            add(b, at, mul(b, at, rem(b, at, i[0], chunks), half), i[1]);
        Value token = sub(b, at, place, half);
        // Before the first token this is a very large number.
        Value there = arith::CmpIOp::create(b, at, arith::CmpIPredicate::ult,
                                            token, tokens);
        Value from = arith::SelectOp::create(b, at, there, token, zero);
        Value x = read(b, at, whole, {div(b, at, i[0], chunks), from, i[2]});
        Value none = arith::ConstantOp::create(b, at, b.getF32FloatAttr(0));
        return arith::SelectOp::create(b, at, there, x, none);
      });
  state.batchBefore = state.shape[0];
  state.tokensBefore = state.shape[1];
  state.parts.clear();
  state.shape[0] = {-1, layer.name + ".sequences"};
  state.shape[1] = {size, ""};
  return success();
}

/// Sequences of M tokens, `others` of which belong together, become sequences
/// of `others` tokens, M of which do.
void EntryImporter::swapChunks(Location at) {
  Value before = state.value;
  Value tokens = size(1), batch = state.wholeBatch;
  Value others = div(builder, at, size(0), batch);
  state.value = generate(
      at, {mul(builder, at, batch, tokens), others},
      typeOf(before).getDimSize(2), [&](OpBuilder &b, ValueRange i) -> Value {
        Value sequence = div(b, at, i[0], tokens);
        Value row = add(b, at, mul(b, at, sequence, others), i[1]);
        return read(b, at, before, {row, rem(b, at, i[0], tokens), i[2]});
      });
  // Twice gives the names of the first again.
  auto swapped = [](spec::Dim dim) -> spec::Dim {
    std::string name = dim.size >= 0 ? std::to_string(dim.size) : dim.symbol;
    StringRef text = name;
    if (text.consume_back(".swapped")) {
      int64_t size;
      if (!text.getAsInteger(10, size))
        return {size, ""};
      return {-1, text.str()};
    }
    return {-1, name + ".swapped"};
  };
  for (int i : {0, 1})
    state.shape[i] = swapped(state.shape[i]);
}

void EntryImporter::overlapAdd(Location at) {
  Value before = state.value, chunks = state.chunks;
  Value half = index(typeOf(before).getDimSize(1) / 2);
  if (typeOf(before).isDynamicDim(1))
    half = div(builder, at, size(1), index(2));
  Value one = index(1);
  state.value = generate(
      at, {state.wholeBatch, state.wholeTokens}, typeOf(before).getDimSize(2),
      [&](OpBuilder &b, ValueRange i) -> Value {
        Value chunk =
            add(b, at, mul(b, at, i[0], chunks), div(b, at, i[1], half));
        Value place = rem(b, at, i[1], half);
        Value x = read(b, at, before, {chunk, add(b, at, place, half), i[2]});
        Value y = read(b, at, before, {add(b, at, chunk, one), place, i[2]});
        return arith::AddFOp::create(b, at, x, y);
      });
  state.shape[0] = state.batchBefore;
  state.shape[1] = state.tokensBefore;
  state.chunks = state.wholeTokens = state.wholeBatch = Value();
}

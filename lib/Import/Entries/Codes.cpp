//===- Codes.cpp - The nearest codes of vectors -----------------*- C++ -*-===//
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

/// [rows, places, 1] becomes [rows, 1].
static Value poolPlaces(OpBuilder &builder, Location at, attune::PoolKind kind,
                        Value places) {
  auto type =
      RankedTensorType::get({ShapedType::kDynamic, 1}, builder.getF32Type());
  return PoolOp::create(
      builder, at, type, PoolKindAttr::get(builder.getContext(), kind), places,
      /*mask=*/Value(), /*tokens=*/Value(), builder.getI64IntegerAttr(0));
}

/// The first place of each row whose number is the largest.
static Value findFirst(OpBuilder &builder, Location at, Value numbers,
                       Value largest, int64_t count) {
  // Where no number is one the last place is as good as any.
  Value last = arith::ConstantOp::create(builder, at,
                                         builder.getI64IntegerAttr(count - 1));
  Value rows = tensor::DimOp::create(builder, at, numbers, 0);
  Value empty = tensor::EmptyOp::create(
      builder, at, {OpFoldResult(rows), OpFoldResult(builder.getIndexAttr(1))},
      builder.getI64Type());
  Value start =
      linalg::FillOp::create(builder, at, ValueRange{last}, ValueRange{empty})
          .getResult(0);
  AffineMap all = builder.getMultiDimIdentityMap(3);
  AffineMap ofRow = all.dropResult(1);
  return linalg::GenericOp::create(
             builder, at, start.getType(), ValueRange{numbers, largest}, start,
             ArrayRef<AffineMap>{all, ofRow, ofRow},
             ArrayRef<utils::IteratorType>{utils::IteratorType::parallel,
                                           utils::IteratorType::reduction,
                                           utils::IteratorType::parallel},
             [&](OpBuilder &b, Location at, ValueRange args) {
               Value isIt = arith::CmpFOp::create(
                   b, at, arith::CmpFPredicate::OEQ, args[0], args[1]);
               Value place = arith::IndexCastOp::create(
                   b, at, b.getI64Type(), linalg::IndexOp::create(b, at, 1));
               place = arith::SelectOp::create(b, at, isIt, place, last);
               linalg::YieldOp::create(
                   b, at,
                   arith::MinSIOp::create(b, at, args[2], place).getResult());
             })
      .getResult(0);
}

/// The codes [batch, frames] of the rows nearest to the stream's vectors, among
/// the first `count` of a table; subtracts these rows. For a row e and a vector
/// r, |r - e|^2 is least where r e - |e|^2 / 2 is largest.
Value EntryImporter::nearestCodes(const spec::Layer &layer,
                                  const std::string &symbol, int64_t count) {
  const auto &op = std::get<spec::Embedding>(layer.op);
  Location at = loc(layer.location);
  LayerScope scope;
  LayerImporter importer(builder, shared.weights, layer, symbol, scope, diags);
  Value table = importer.weight(at, "weight", op.vocab, op.width);
  if (!table)
    return {};
  auto type = RankedTensorType::get(
      {ShapedType::kDynamic, ShapedType::kDynamic, op.width},
      builder.getF32Type());
  auto vectorsOf = [&](Value ids, Value addend, double scale) -> Value {
    return EmbeddingOp::create(builder, at, type, ids, table, addend,
                               builder.getF32FloatAttr(float(scale)),
                               builder.getI64IntegerAttr(0));
  };
  Type integer = builder.getI64Type();
  Value all =
      generate(at, {OpFoldResult(index(1)), OpFoldResult(index(count))},
               integer, [&](OpBuilder &b, ValueRange i) -> Value {
                 return arith::IndexCastOp::create(b, at, integer, i[1]);
               });
  Value codes = vectorsOf(all, Value(), op.scale), first = index(0);
  Value squares = generate(at, {index(count), index(op.width)}, 1,
                           [&](OpBuilder &b, ValueRange i) -> Value {
                             Value x = tensor::ExtractOp::create(
                                 b, at, codes, ValueRange{first, i[0], i[1]});
                             return arith::MulFOp::create(b, at, x, x);
                           });
  Value means = poolPlaces(builder, at, attune::PoolKind::Mean, squares);

  spec::Linear linear;
  linear.out = op.vocab;
  linear.scale = op.scale;
  Value products = importer.linear(linear, state.value, table);
  if (!products)
    return {};
  Value batch = builder.createOrFold<tensor::DimOp>(at, products, index(0));
  Value frames = builder.createOrFold<tensor::DimOp>(at, products, index(1));
  Value rows = arith::MulIOp::create(builder, at, batch, frames);
  Value scores = generate(
      at, {rows, index(count)}, 1, [&](OpBuilder &b, ValueRange i) -> Value {
        Value sequence = arith::DivUIOp::create(b, at, i[0], frames);
        Value frame = arith::RemUIOp::create(b, at, i[0], frames);
        Value product = tensor::ExtractOp::create(
            b, at, products, ValueRange{sequence, frame, i[1]});
        Value half = arith::ConstantOp::create(
            b, at, b.getF32FloatAttr(float(op.width) / 2));
        Value mean =
            tensor::ExtractOp::create(b, at, means, ValueRange{i[1], first});
        return arith::SubFOp::create(b, at, product,
                                     arith::MulFOp::create(b, at, mean, half));
      });
  Value largest = poolPlaces(builder, at, attune::PoolKind::Max, scores);
  Value found = findFirst(builder, at, scores, largest, count);
  Value ids = generate(
      at, {OpFoldResult(batch), OpFoldResult(frames)}, integer,
      [&](OpBuilder &b, ValueRange i) -> Value {
        Value row = arith::AddIOp::create(
            b, at, arith::MulIOp::create(b, at, i[0], frames), i[1]);
        return tensor::ExtractOp::create(b, at, found, ValueRange{row, first});
      });
  state.value = vectorsOf(ids, state.value, -op.scale);
  return ids;
}

/// The tables are those that codes are read with: of the stream that makes a
/// sound of them, or of all that a codec's samples are made of.
LogicalResult EntryImporter::importCodes() {
  SmallVector<Value> books;
  for (size_t s = 0; s < model.streams.size(); ++s) {
    const spec::Stream &other = model.streams[s];
    if (model.codes && other.name != model.codes->sound)
      continue;
    for (size_t n = 0; n < other.layers.size(); ++n) {
      const spec::Layer &layer = other.layers[n];
      const auto *table = std::get_if<spec::Embedding>(&layer.op);
      if (!table)
        continue;
      if (state.value && table->width != state.shape.back().size) {
        diags.error(stream->spec.location,
                    "makes vectors of " +
                        std::to_string(state.shape.back().size) +
                        " channels, but those of a code have " +
                        std::to_string(table->width));
        return failure();
      }
      // The last row stands for no code.
      bool hasNone = model.playback && model.playback->none;
      Value ids = nearestCodes(layer, shared.symbols[s][n],
                               table->vocab - (hasNone ? 1 : 0));
      if (!ids)
        return failure();
      books.push_back(ids);
    }
  }
  Location at = loc(stream->spec.location);
  if (books.empty()) {
    diags.error(stream->spec.location, "there are no tables of codes");
    return failure();
  }
  OpFoldResult one = builder.getIndexAttr(1), none = builder.getIndexAttr(0);
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(builder, at, books.front());
  sizes.insert(sizes.begin() + 1, builder.getIndexAttr(int64_t(books.size())));
  Value codes =
      tensor::EmptyOp::create(builder, at, sizes, builder.getI64Type());
  sizes[1] = one;
  for (auto [book, ids] : llvm::enumerate(books)) {
    SmallVector<OpFoldResult> offsets(3, none), strides(3, one);
    offsets[1] = builder.getIndexAttr(int64_t(book));
    codes = tensor::InsertSliceOp::create(builder, at, ids, codes, offsets,
                                          sizes, strides);
  }
  state.value = codes;
  state.shape = {state.shape[0], {int64_t(books.size()), ""}, state.shape[1]};
  return success();
}

//===- Insert.cpp - Vectors in the places of tokens -------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EntryImporter.h"
#include "attune/Spec/Rings.h"
#include "attune/Support/Elements.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <algorithm>
#include <limits>

using namespace mlir;
using namespace attune;

/// How many rows earlier steps have inserted is a size that the session says,
/// or a number for each sequence.
static std::string nameOfBefore(const std::string &symbol) {
  return symbol + ".before";
}

/// Vectors [.., width] as rows [rows, width].
static Value asRows(OpBuilder &builder, Location at, Value vectors) {
  auto type = typeOf(vectors);
  if (type.getRank() == 2)
    return vectors;
  auto flat = RankedTensorType::get(
      {ShapedType::kDynamic, type.getShape().back()}, type.getElementType());
  return tensor::CollapseShapeOp::create(
      builder, at, flat, vectors, ArrayRef<ReassociationIndices>{{0, 1}, {2}});
}

/// How many positions an image takes less than it has tokens.
static int64_t savedBy(const spec::Insert &op) {
  return op.grid[0] * op.grid[1] - std::max(op.grid[0], op.grid[1]);
}

/// What the layer inserts; null after an error.
Value EntryImporter::vectorsOf(const spec::Layer &layer) {
  const auto &op = std::get<spec::Insert>(layer.op);
  const NamedTensor *source = findResult(op.source);
  auto type = source ? typeOf(source->value) : RankedTensorType();
  if (!source || type.getRank() < 2 || type.getRank() > 3 ||
      type.getShape().back() != layer.width) {
    diags.error(layer.location, "the result of '" + op.source +
                                    "' has no vectors for the stream");
    return {};
  }
  return source->value;
}

/// A step takes the rows from @encode.
LogicalResult EntryImporter::importInsertedRows() {
  const std::vector<spec::Layer> &layers = stream->spec.layers;
  for (size_t n = 0; n < layers.size(); ++n) {
    if (!std::holds_alternative<spec::Insert>(layers[n].op))
      continue;
    Value vectors = vectorsOf(layers[n]);
    if (!vectors)
      return failure();
    insertedRows[n] = vectors;
  }
  return success();
}

void EntryImporter::addInsertedRows() {
  const std::vector<spec::Layer> &layers = stream->spec.layers;
  for (size_t n = 0; n < layers.size(); ++n) {
    const spec::Layer &layer = layers[n];
    if (!std::holds_alternative<spec::Insert>(layer.op))
      continue;
    Location at = loc(layer.location);
    std::string rows = stream->symbols[n] + ".rows";
    const auto &op = std::get<spec::Insert>(layer.op);
    if (kind == EntryKind::DecodeBatch) {
      auto ids = llvm::find_if(arguments, [&](const Argument &argument) {
        return argument.name == stream->root;
      });
      if (!op.grid.empty() && ids != arguments.end())
        arguments.push_back({nameOfBefore(stream->symbols[n]),
                             "input",
                             "",
                             RankedTensorType::get({ShapedType::kDynamic},
                                                   builder.getI64Type()),
                             {ids->shape[0]},
                             std::nullopt,
                             at,
                             std::nullopt,
                             0,
                             op.id});
      continue;
    }
    const std::vector<spec::Dim> &shape = shared.shapes[op.source];
    SmallVector<int64_t> sizes(shape.size(), ShapedType::kDynamic);
    sizes.back() = layer.width;
    auto type = RankedTensorType::get(sizes, builder.getF32Type());
    Argument given = {rows, "input", "", type, shape, std::nullopt, at};
    given.insertedId = op.id;
    if (shape.size() == 3 && shape[1].size > 0)
      given.insertedEach = shape[1].size;
    arguments.push_back(given);
    arguments.push_back({nameOfBefore(stream->symbols[n]),
                         "size",
                         "",
                         builder.getIndexType(),
                         {},
                         std::nullopt,
                         at});
  }
}

/// Tokens are counted over the whole batch, as the published classes do. One
/// that finds no row is not a number; in a step, where it may have been
/// generated, it is a token like others.
LogicalResult EntryImporter::importInsert(size_t number) {
  const spec::Layer &layer = stream->spec.layers[number];
  const auto &op = std::get<spec::Insert>(layer.op);
  Location at = loc(layer.location);
  // Sequences that are decoded together have read all their rows.
  if (kind == EntryKind::DecodeBatch)
    return success();
  auto found = inputs.find(stream->root);
  if (found == inputs.end() || typeOf(found->second.value).getRank() != 2 ||
      typeOf(state.value).getRank() != 3) {
    diags.error(layer.location, "the stream does not have one token for each "
                                "id of '" +
                                    stream->root + "'");
    return failure();
  }
  Value ids = found->second.value, rows, before;
  if (decode) {
    rows = inputs[stream->symbols[number] + ".rows"].value;
    before = inputs[nameOfBefore(stream->symbols[number])].value;
  } else {
    rows = vectorsOf(layer);
    if (failed(checkImages(layer)))
      return failure();
  }
  if (!rows)
    return failure();
  rows = asRows(builder, at, rows);
  const int64_t dynamic = ShapedType::kDynamic;
  Value batch = size(0), tokens = size(1);
  Value all = arith::MulIOp::create(builder, at, batch, tokens);
  // All sequences as one, 1 where a token is replaced, 0 elsewhere.
  Value empty = tensor::EmptyOp::create(
      builder, at, {builder.getIndexAttr(1), OpFoldResult(all)},
      builder.getI64Type());
  auto marks = linalg::GenericOp::create(
      builder, at, empty.getType(), ValueRange(), empty,
      builder.getMultiDimIdentityMap(2),
      SmallVector<utils::IteratorType>(2, utils::IteratorType::parallel),
      [&](OpBuilder &b, Location at, ValueRange) {
        Value place = linalg::IndexOp::create(b, at, 1);
        Value row = arith::DivUIOp::create(b, at, place, tokens);
        Value column = arith::RemUIOp::create(b, at, place, tokens);
        Value id =
            tensor::ExtractOp::create(b, at, ids, ValueRange{row, column});
        Value wanted = arith::ConstantIntOp::create(b, at, op.id, 64);
        Value same =
            arith::CmpIOp::create(b, at, arith::CmpIPredicate::eq, id, wanted);
        Value mark = arith::ExtUIOp::create(b, at, b.getI64Type(), same);
        linalg::YieldOp::create(b, at, mark);
      });
  auto counted =
      RankedTensorType::get({dynamic, dynamic}, builder.getI64Type());
  Value counts = TokenPositionsOp::create(
      builder, at, counted,
      tensor::CastOp::create(builder, at, counted, marks.getResult(0)),
      builder.getI64IntegerAttr(0));
  Value numRows = tensor::DimOp::create(builder, at, rows, index(0));
  Value vectors = state.value;
  Value zero = index(0), one = index(1);
  state.value = generate(
      at, {batch, tokens}, layer.width,
      [&](OpBuilder &b, ValueRange place) -> Value {
        Value token = arith::AddIOp::create(
            b, at, arith::MulIOp::create(b, at, place[0], tokens), place[1]);
        Value count = arith::IndexCastOp::create(
            b, at, b.getIndexType(),
            tensor::ExtractOp::create(b, at, counts, ValueRange{zero, token}));
        Value own = tensor::ExtractOp::create(b, at, vectors, place);
        Value isOwn =
            arith::CmpIOp::create(b, at, arith::CmpIPredicate::eq, count, zero);
        if (before)
          count = arith::AddIOp::create(b, at, count, before);
        // The row of no token, and that behind the last, are read nowhere.
        Value row = arith::SubIOp::create(
            b, at, arith::MaxUIOp::create(b, at, count, one), one);
        Value has = arith::CmpIOp::create(b, at, arith::CmpIPredicate::ult, row,
                                          numRows);
        Value safe = arith::SelectOp::create(b, at, has, row, zero);
        Value given =
            tensor::ExtractOp::create(b, at, rows, ValueRange{safe, place[2]});
        Value none = arith::ConstantOp::create(
            b, at, b.getF32FloatAttr(std::numeric_limits<float>::quiet_NaN()));
        if (op.add)
          given = arith::AddFOp::create(b, at, own, given);
        given = arith::SelectOp::create(b, at, has, given, decode ? own : none);
        return arith::SelectOp::create(b, at, isOwn, own, given);
      });
  return success();
}

//===----------------------------------------------------------------------===//
// Tokens that see each other in both directions
//===----------------------------------------------------------------------===//

const spec::Insert *attune::bidirectionalOf(const spec::Stream &stream) {
  for (const spec::Layer &layer : stream.layers)
    if (const auto *insert = std::get_if<spec::Insert>(&layer.op))
      if (insert->bidirectional != spec::Bidirectional::None)
        return insert;
  return nullptr;
}

/// What of a layer goes from token to token, or sees fixed keys, if it does.
static const char *whyOneWay(const spec::Layer &layer) {
  if (keepsStates(layer))
    return "its states go from token to token";
  const spec::Attention *attention = getSelfAttention(layer);
  if (!attention)
    return nullptr;
  if (attention->linear)
    return "its sums go from token to token";
  if (attention->latent)
    return "its keys are latent";
  if (attention->blockSparse)
    return "it sees blocks of keys";
  return nullptr;
}

bool attune::checkBidirectional(const spec::Model &model,
                                DiagnosticEngine &diags) {
  for (const spec::Stream &stream : model.streams) {
    const spec::Insert *insert = bidirectionalOf(stream);
    if (!insert)
      continue;
    for (const spec::Layer &layer : stream.layers)
      if (const char *why = whyOneWay(layer)) {
        diags.error(layer.location,
                    std::string("tokens cannot see each other in both "
                                "directions here, as 'bidirectional' asks: ") +
                        why);
        return false;
      }
  }
  return true;
}

/// The vectors of one image are as many as every other one has, all of which a
/// window shows to each of them.
LogicalResult EntryImporter::checkImages(const spec::Layer &layer) {
  const auto &op = std::get<spec::Insert>(layer.op);
  if (op.bidirectional != spec::Bidirectional::Image)
    return success();
  const NamedTensor *source = findResult(op.source);
  if (!source || source->shape.size() != 3 || source->shape[1].size < 1) {
    diags.error(layer.location, "the tokens of one image see each other, but "
                                "how many it has is not known");
    return failure();
  }
  int64_t each = source->shape[1].size;
  bool fits = true;
  int64_t slack = model.windowSlack;
  forEachAttention(stream->spec, [&](const spec::Attention &attention) {
    if (fits && spec::ringOf(model, attention) && each > slack - slack / 4) {
      fits = false;
      diags.error(attention.location,
                  "an image's " + std::to_string(each) +
                      " tokens are computed together, for which a window's "
                      "cache has too little room; expected a window_slack of " +
                      std::to_string((4 * each + 2) / 3) + " or more");
    }
    if (!fits || !attention.window || *attention.window >= each)
      return;
    fits = false;
    diags.error(attention.location,
                "an image's " + std::to_string(each) +
                    " tokens see each other, but not within a window of " +
                    std::to_string(*attention.window));
  });
  return success(fits);
}

/// [batch, 1, queries, keys]: earlier tokens, and those of the same image.
Value EntryImporter::pairsOfImages(const spec::Insert &insert) {
  Location at = loc(stream->spec.location);
  Elements e{builder, at};
  int64_t each = findResult(insert.source)->shape[1].size;
  Value ids = inputs[stream->root].value;
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, at, ids);
  Type number = builder.getI64Type();
  auto constant = [&](int64_t x) -> Value {
    return arith::ConstantIntOp::create(builder, at, x, 64);
  };
  auto equal = [&](Value x, Value y) -> Value {
    return arith::CmpIOp::create(builder, at, arith::CmpIPredicate::eq, x, y);
  };
  Value marks = e.generate(sizes, number, [&](ValueRange i) -> Value {
    return arith::ExtUIOp::create(
        builder, at, number, equal(e.extract(ids, i), constant(insert.id)));
  });
  Value counts = TokenPositionsOp::create(builder, at, marks.getType(), marks,
                                          builder.getI64IntegerAttr(0));
  // Of images from 1 on; of other tokens 0.
  Value images = e.generate(sizes, number, [&](ValueRange i) -> Value {
    return arith::DivSIOp::create(
        builder, at, e.add(e.extract(counts, i), constant(each - 1)),
        constant(each));
  });
  OpFoldResult one = builder.getIndexAttr(1);
  return e.generate(
      {sizes[0], one, sizes[1], sizes[1]}, builder.getI1Type(),
      [&](ValueRange i) {
        Value own = e.extract(images, {i[0], i[2]});
        Value other = e.extract(images, {i[0], i[3]});
        Value same = e.both(equal(own, other), e.less(constant(0), own));
        Value sees = e.either(e.atMost(i[3], i[2]), same);
        return stream->mask
                   ? e.both(sees, e.shown(stream->mask,
                                          /*lengths=*/Value(), i[0], i[3]))
                   : sees;
      });
}

/// Without a cache a mask says which tokens are of one image. A step is of such
/// tokens alone or of none: the caller sees to that, and so no mask is needed.
void EntryImporter::seeBothWays(const spec::Insert &insert, LayerScope &scope) {
  if (decode && kind != EntryKind::DecodeSpan)
    return;
  scope.bidirectional = insert.bidirectional;
  if (decode || insert.bidirectional == spec::Bidirectional::Prompt)
    return;
  if (!imagePairs)
    imagePairs = pairsOfImages(insert);
  scope.pairs = imagePairs;
}

/// The position of tokens behind all images of their sequence.
Value EntryImporter::behindImages(Location at, size_t insert, Value numbers) {
  const auto &op = std::get<spec::Insert>(stream->spec.layers[insert].op);
  Value taken = inputs[nameOfBefore(stream->symbols[insert])].value;
  AffineMap all = builder.getMultiDimIdentityMap(2);
  AffineMap row = AffineMap::get(2, 0, builder.getAffineDimExpr(0));
  Value empty = tensor::EmptyOp::create(
      builder, at, tensor::getMixedSizes(builder, at, numbers),
      builder.getI64Type());
  return linalg::GenericOp::create(
             builder, at, numbers.getType(), ValueRange{numbers, taken}, empty,
             ArrayRef<AffineMap>{all, row, all},
             SmallVector<utils::IteratorType>(2, utils::IteratorType::parallel),
             [&](OpBuilder &b, Location at, ValueRange args) {
               auto number = [&](int64_t x) -> Value {
                 return arith::ConstantIntOp::create(b, at, x, 64);
               };
               Value images = arith::DivSIOp::create(
                   b, at, args[1], number(op.grid[0] * op.grid[1]));
               Value saved =
                   arith::MulIOp::create(b, at, images, number(savedBy(op)));
               linalg::YieldOp::create(
                   b, at,
                   arith::SubIOp::create(b, at, args[0], saved).getResult());
             })
      .getResult(0);
}

/// Three positions of each token, [batch, tokens] each: where `numbers` has it
/// less what images before it are long, and its row and column where it is of
/// an image (`spec::RopeSections`). Steps know how many such tokens were before
/// in all sequences together, which are alike, and count more of them than
/// there are vectors if the model sees nothing.
SmallVector<Value> EntryImporter::imagePositions(Location at, size_t insert,
                                                 Value numbers) {
  const auto &op = std::get<spec::Insert>(stream->spec.layers[insert].op);
  Value ids = inputs[stream->root].value;
  const int64_t dynamic = ShapedType::kDynamic;
  auto type = RankedTensorType::get({dynamic, dynamic}, builder.getI64Type());
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, at, ids);
  if (kind == EntryKind::DecodeBatch)
    return SmallVector<Value>(3, behindImages(at, insert, numbers));
  auto each =
      [&](ValueRange operands,
          llvm::function_ref<Value(OpBuilder &, Location, ValueRange)> element)
      -> Value {
    Value empty =
        tensor::EmptyOp::create(builder, at, sizes, builder.getI64Type());
    return linalg::GenericOp::create(
               builder, at, type, operands, empty,
               SmallVector<AffineMap>(operands.size() + 1,
                                      builder.getMultiDimIdentityMap(2)),
               SmallVector<utils::IteratorType>(2,
                                                utils::IteratorType::parallel),
               [&](OpBuilder &b, Location at, ValueRange args) {
                 linalg::YieldOp::create(b, at, element(b, at, args));
               })
        .getResult(0);
  };
  // Of an image's token how many there are up to it, of others how many of
  // those.
  auto countWhere = [&](arith::CmpIPredicate is) -> Value {
    Value marks = each(ids, [&](OpBuilder &b, Location at, ValueRange args) {
      Value wanted = arith::ConstantIntOp::create(b, at, op.id, 64);
      Value counts = arith::CmpIOp::create(b, at, is, args[0], wanted);
      return arith::ExtUIOp::create(b, at, b.getI64Type(), counts).getResult();
    });
    return TokenPositionsOp::create(builder, at, type, marks,
                                    builder.getI64IntegerAttr(0));
  };
  Value own = countWhere(arith::CmpIPredicate::eq);
  Value others = countWhere(arith::CmpIPredicate::ne);
  auto whole = [&](Value x) -> Value {
    return arith::IndexCastOp::create(builder, at, builder.getI64Type(), x);
  };
  Value before, vectors, sees;
  if (decode) {
    const std::string &symbol = stream->symbols[insert];
    Value rows = asRows(builder, at, inputs[symbol + ".rows"].value);
    Value all = tensor::DimOp::create(builder, at, rows, index(0));
    Value earlier = inputs[nameOfBefore(symbol)].value;
    sees = arith::CmpIOp::create(builder, at, arith::CmpIPredicate::ule,
                                 earlier, all);
    Value batch = tensor::DimOp::create(builder, at, ids, index(0));
    before = whole(arith::DivUIOp::create(builder, at, earlier, batch));
    vectors = whole(arith::DivUIOp::create(builder, at, all, batch));
  }
  int64_t rows = op.grid[0], columns = op.grid[1];
  SmallVector<Value> result;
  for (int axis = 0; axis < 3; ++axis)
    result.push_back(each(
        {numbers, own, others},
        [&](OpBuilder &b, Location at, ValueRange args) -> Value {
          auto number = [&](int64_t x) -> Value {
            return arith::ConstantIntOp::create(b, at, x, 64);
          };
          auto add = [&](Value x, Value y) -> Value {
            return arith::AddIOp::create(b, at, x, y);
          };
          auto sub = [&](Value x, Value y) -> Value {
            return arith::SubIOp::create(b, at, x, y);
          };
          Value token = arith::IndexCastOp::create(
              b, at, b.getI64Type(), linalg::IndexOp::create(b, at, 1));
          Value isOwn = arith::CmpIOp::create(b, at, arith::CmpIPredicate::ne,
                                              args[1], number(0));
          Value earlier =
              arith::SelectOp::create(b, at, isOwn, sub(args[1], number(1)),
                                      sub(add(token, number(1)), args[2]));
          if (before) {
            earlier = add(earlier, before);
            Value has = arith::CmpIOp::create(b, at, arith::CmpIPredicate::slt,
                                              earlier, vectors);
            isOwn = arith::AndIOp::create(b, at, isOwn, has);
            earlier = arith::MinSIOp::create(b, at, earlier, vectors);
          }
          Value size = number(rows * columns);
          Value images = arith::DivSIOp::create(b, at, earlier, size);
          Value place = arith::RemSIOp::create(b, at, earlier, size);
          Value saved =
              arith::MulIOp::create(b, at, images, number(savedBy(op)));
          Value start = sub(args[0], saved);
          Value here = sub(start, place);
          Value by = number(columns);
          if (axis == 1)
            here = add(here, arith::DivSIOp::create(b, at, place, by));
          else if (axis == 2)
            here = add(here, arith::RemSIOp::create(b, at, place, by));
          Value found = arith::SelectOp::create(b, at, isOwn, here, start);
          return sees ? arith::SelectOp::create(b, at, sees, found, args[0])
                      : found;
        }));
  return result;
}

//===- Vision.cpp - Layers that make and pick tokens ------------*- C++ -*-===//
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

static int64_t widthOf(Value value) { return typeOf(value).getShape().back(); }

const NamedTensor *EntryImporter::findResult(const std::string &name) const {
  auto found = results.find(name);
  return found == results.end() ? nullptr : &found->second;
}

Value EntryImporter::roleOf(size_t number, StringRef role, int64_t rows,
                            int64_t columns) {
  const spec::Layer &layer = stream->spec.layers[number];
  LayerScope scope;
  return LayerImporter(builder, shared.weights, layer, stream->symbols[number],
                       scope, diags)
      .weight(loc(layer.location), role, rows, columns);
}

/// Every element times a scalar.
Value EntryImporter::scaled(Value tensor, Value factor) {
  Location at = tensor.getLoc();
  auto type = typeOf(tensor);
  SmallVector<Value> sizes;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (type.isDynamicDim(dim))
      sizes.push_back(builder.createOrFold<tensor::DimOp>(at, tensor, dim));
  Value all = tensor::SplatOp::create(builder, at, factor, type, sizes);
  return arith::MulFOp::create(builder, at, tensor, all);
}

/// The position of each token of the stream; null if nothing numbers them.
Value EntryImporter::countPositions(const spec::Positions &positions,
                                    Location at) {
  auto type = RankedTensorType::get(
      {ShapedType::kDynamic, ShapedType::kDynamic}, builder.getI64Type());
  IntegerAttr pad;
  Value counted = state.value;
  switch (positions.count) {
  case spec::PositionCount::Input: {
    auto found = inputs.find(stream->positionsName);
    return found == inputs.end() ? Value() : found->second.value;
  }
  case spec::PositionCount::Tokens:
    break;
  case spec::PositionCount::Unpadded: {
    auto ids = inputs.find(stream->root);
    if (ids == inputs.end() || ids->second.shape.size() != 2)
      return {};
    counted = ids->second.value;
    pad = builder.getI64IntegerAttr(positions.pad);
    break;
  }
  }
  Value numbers = TokenPositionsOp::create(builder, at, type, counted, pad);
  return decode ? behindPast(numbers, at) : numbers;
}

/// Numbers of new tokens, of which 0 is that of padding, behind the cached ones
/// (as Hugging Face counts these: whatever they are).
Value EntryImporter::behindPast(Value numbers, Location at) {
  AffineMap tokens = builder.getMultiDimIdentityMap(2);
  SmallVector<Value> operands = {numbers};
  SmallVector<AffineMap> maps = {tokens};
  // One number for all sequences, or one for each.
  bool unequal = !past.getType().isIndex();
  if (unequal) {
    operands.push_back(past);
    maps.push_back(AffineMap::get(2, 0, builder.getAffineDimExpr(0)));
  }
  Value all = unequal ? Value()
                      : arith::IndexCastOp::create(builder, at,
                                                   builder.getI64Type(), past)
                            .getResult();
  Value empty = tensor::EmptyOp::create(builder, at, {size(0), size(1)},
                                        builder.getI64Type());
  maps.push_back(tokens);
  return linalg::GenericOp::create(
             builder, at, numbers.getType(), operands, empty, maps,
             SmallVector<utils::IteratorType>(2, utils::IteratorType::parallel),
             [&](OpBuilder &b, Location at, ValueRange values) {
               Value zero = arith::ConstantIntOp::create(b, at, 0, 64);
               Value behind = arith::AddIOp::create(b, at, values[0],
                                                    all ? all : values[1]);
               Value isPadding = arith::CmpIOp::create(
                   b, at, arith::CmpIPredicate::eq, values[0], zero);
               linalg::YieldOp::create(
                   b, at,
                   arith::SelectOp::create(b, at, isPadding, zero, behind)
                       .getResult());
             })
      .getResult(0);
}

LogicalResult EntryImporter::importVision(size_t number) {
  const spec::Layer &layer = stream->spec.layers[number];
  Location at = loc(layer.location);
  int64_t width = widthOf(state.value);
  if (std::holds_alternative<spec::Conv>(layer.op))
    return importConv(number);
  if (const auto *op = std::get_if<spec::InstanceNorm>(&layer.op))
    return normPlaces(number, *op);
  if (const auto *op = std::get_if<spec::Slice>(&layer.op)) {
    if (op->part >= 0)
      return importPart(*op, layer);
    importSlice(*op, layer);
    return success();
  }
  if (std::holds_alternative<spec::Concat>(layer.op))
    return importConcat(number);
  if (std::holds_alternative<spec::Pool>(layer.op))
    return importPool(number);
  if (std::holds_alternative<spec::Add>(layer.op))
    return importAdd(number);
  if (std::holds_alternative<spec::Similarity>(layer.op))
    return importSimilarity(number);
  if (const auto *op = std::get_if<spec::BatchNorm>(&layer.op)) {
    Value gamma = roleOf(number, "weight", width, 0);
    Value beta = roleOf(number, "bias", width, 0);
    Value mean = roleOf(number, "mean", width, 0);
    Value variance = roleOf(number, "variance", width, 0);
    if (!gamma || !beta || !mean || !variance)
      return failure();
    state.value = BatchNormOp::create(builder, at, state.value.getType(),
                                      state.value, gamma, beta, mean, variance,
                                      builder.getF32FloatAttr(float(op->eps)));
    return success();
  }
  if (std::holds_alternative<spec::L2Norm>(layer.op)) {
    // The root of the mean square is |x| / sqrt(width).
    Value norm =
        RMSNormOp::create(builder, at, state.value.getType(), state.value,
                          /*gamma=*/Value(), builder.getF32FloatAttr(1e-30f),
                          builder.getF32FloatAttr(0));
    state.value = scaled(
        norm, arith::ConstantOp::create(builder, at,
                                        builder.getF32FloatAttr(float(
                                            1 / std::sqrt(double(width))))));
    return success();
  }
  const auto &tokens = std::get<spec::ClassTokens>(layer.op);
  Value table = roleOf(number, "weight", tokens.count, width);
  if (!table)
    return failure();
  if (stream->mask)
    stream->mask =
        joinAlong(builder, at, shown(at, index(tokens.count)), stream->mask, 3);
  state.value = PrependTokensOp::create(builder, at, state.value.getType(),
                                        table, state.value);
  spec::Dim &count = state.shape[1];
  if (count.size >= 0)
    count.size += tokens.count;
  else
    count.symbol += "_and_" + std::to_string(tokens.count);
  state.before += tokens.count;
  state.parts.clear();
  return success();
}

/// A mask of so many tokens that all count.
Value EntryImporter::shown(Location at, Value tokens) {
  Value yes = arith::ConstantOp::create(builder, at, builder.getBoolAttr(true));
  auto type = RankedTensorType::get(
      {ShapedType::kDynamic, 1, 1, ShapedType::kDynamic}, builder.getI1Type());
  return tensor::SplatOp::create(builder, at, yes, type,
                                 ValueRange{size(0), tokens});
}

/// Tokens that a sequence does not have are left out: sizes follow from what
/// there is.
void EntryImporter::importSlice(const spec::Slice &op,
                                const spec::Layer &layer) {
  Location at = loc(layer.location);
  spec::Dim &tokens = state.shape[1];
  Value all = size(1), first = index(op.first);
  first = arith::MinUIOp::create(builder, at, first, all);
  Value count = arith::SubIOp::create(builder, at, all, first);
  if (op.count)
    count = arith::MinUIOp::create(builder, at, count, index(op.count));
  state.value = cutAlong(builder, at, state.value, 1, first, count);
  if (stream->mask)
    stream->mask = cutAlong(builder, at, stream->mask, 3, first, count);
  if (tokens.size >= 0) {
    tokens.size = std::max<int64_t>(tokens.size - op.first, 0);
    if (op.count)
      tokens.size = std::min(tokens.size, op.count);
  } else if (op.count && op.first + op.count <= state.before) {
    tokens = {op.count, ""}; // class tokens are always there
  } else {
    tokens.symbol = layer.name + ".tokens";
  }
  // An image's places are left where nothing but what is before them goes.
  if (op.count || op.first != state.before)
    state.height = state.width = Value();
  state.before = std::max<int64_t>(state.before - op.first, 0);
  if (op.count)
    state.before = std::min(state.before, op.count);
  state.parts.clear();
}

/// One of the parts that were put one behind the other.
LogicalResult EntryImporter::importPart(const spec::Slice &op,
                                        const spec::Layer &layer) {
  Location at = loc(layer.location);
  auto number = static_cast<size_t>(op.part);
  if (number >= state.parts.size()) {
    diags.error(layer.location, "the tokens are " +
                                    std::to_string(state.parts.size()) +
                                    " parts, counted from 0");
    return failure();
  }
  TokenPart part = state.parts[number];
  Value first = index(0);
  for (size_t i = 0; i < number; ++i)
    first =
        builder.createOrFold<arith::AddIOp>(at, first, state.parts[i].count);
  state.value = cutAlong(builder, at, state.value, 1, first, part.count);
  if (stream->mask)
    stream->mask = cutAlong(builder, at, stream->mask, 3, first, part.count);
  state.shape[1] = part.tokens;
  state.height = part.height;
  state.width = part.width;
  state.places = part.places;
  state.before = part.before;
  state.parts.clear();
  return success();
}

LogicalResult EntryImporter::importConcat(size_t number) {
  const spec::Layer &layer = stream->spec.layers[number];
  const auto &op = std::get<spec::Concat>(layer.op);
  Location at = loc(layer.location);
  const NamedTensor *source = findResult(op.source);
  if (source && typeOf(state.value).getRank() == 2 &&
      typeOf(source->value).getRank() == 2 &&
      source->shape[0].symbol == state.shape[0].symbol &&
      source->shape[0].size == state.shape[0].size) {
    state.value = joinChannels(builder, at, {state.value, source->value});
    state.shape[1] = {typeOf(state.value).getDimSize(1), ""};
    return success();
  }
  if (!source || source->value.getType() != state.value.getType() ||
      source->shape[0].symbol != state.shape[0].symbol ||
      source->shape[0].size != state.shape[0].size) {
    diags.error(layer.location, "the tokens of '" + op.source +
                                    "' cannot stand behind the stream's");
    return failure();
  }
  Value mine = size(1);
  Value others = tensor::DimOp::create(builder, at, source->value, index(1));
  // Where one has a mask, all tokens of the other count.
  if (stream->mask || source->mask) {
    auto maskOf = [&](Value mask, Value tokens) -> Value {
      return mask ? mask : shown(at, tokens);
    };
    stream->mask = joinAlong(builder, at, maskOf(stream->mask, mine),
                             maskOf(source->mask, others), 3);
  }
  spec::Dim &tokens = state.shape[1];
  auto partsOf = [](const NamedTensor &tensor, Value count) {
    if (!tensor.parts.empty())
      return tensor.parts;
    return std::vector<TokenPart>{{tensor.shape[1], count, tensor.height,
                                   tensor.width, tensor.places, tensor.before}};
  };
  std::vector<TokenPart> behind = partsOf(*source, others);
  state.parts = partsOf(state, mine);
  llvm::append_range(state.parts, behind);
  state.value = joinAlong(builder, at, state.value, source->value, 1);
  if (tokens.size >= 0 && source->shape[1].size >= 0)
    tokens.size += source->shape[1].size;
  else
    tokens = {-1, layer.name + ".tokens"};
  state.height = state.width = Value();
  return success();
}

/// The tokens [batch, places, channels] as [batch, height, width, channels].
Value EntryImporter::asImage(Location at, Value tokens) {
  auto type = typeOf(tokens);
  int64_t height = state.places[0].size, width = state.places[1].size;
  if (height >= 0 && width >= 0) {
    auto image = RankedTensorType::get(
        {type.getDimSize(0), height, width, type.getDimSize(2)},
        type.getElementType());
    auto known = RankedTensorType::get(
        {type.getDimSize(0), height * width, type.getDimSize(2)},
        type.getElementType());
    tokens = tensor::CastOp::create(builder, at, known, tokens);
    SmallVector<OpFoldResult> sizes = {
        getAsOpFoldResult(size(0)), builder.getIndexAttr(height),
        builder.getIndexAttr(width), builder.getIndexAttr(type.getDimSize(2))};
    return tensor::ExpandShapeOp::create(
        builder, at, image, tokens,
        ArrayRef<ReassociationIndices>{{0}, {1, 2}, {3}}, sizes);
  }
  // MLIR cannot lower a view that splits one unknown size into two.
  const int64_t dynamic = ShapedType::kDynamic;
  auto image = RankedTensorType::get(
      {dynamic, dynamic, dynamic, type.getDimSize(2)}, type.getElementType());
  Value columns = state.width;
  return tensor::GenerateOp::create(
      builder, at, image, ValueRange{size(0), state.height, columns},
      [&](OpBuilder &b, Location at, ValueRange place) {
        Value row = arith::MulIOp::create(b, at, place[1], columns);
        Value token = arith::AddIOp::create(b, at, row, place[2]);
        Value x = tensor::ExtractOp::create(
            b, at, tokens, ValueRange{place[0], token, place[3]});
        tensor::YieldOp::create(b, at, x);
      });
}

/// The number of places as what the runtime reads off the inputs' sizes:
/// "(samples-10)/5+1".
static std::string placesOf(const std::string &before, int64_t more,
                            int64_t stride) {
  return "(" + before + (more < 0 ? "" : "+") + std::to_string(more) + ")/" +
         std::to_string(stride) + "+1";
}

/// Columns that are the places of one channel after the other as those of all
/// channels, place by place.
Value EntryImporter::byPlaces(Location at, Value patches, int64_t channels) {
  int64_t columns = widthOf(patches);
  Value tokens = builder.createOrFold<tensor::DimOp>(at, patches, index(1));
  return generate(
      at, {size(0), tokens}, columns,
      [&](OpBuilder &b, ValueRange to) -> Value {
        Value all = arith::ConstantIndexOp::create(b, at, channels);
        Value each = arith::ConstantIndexOp::create(b, at, columns / channels);
        Value channel = arith::RemUIOp::create(b, at, to[2], all);
        Value place = arith::DivUIOp::create(b, at, to[2], all);
        Value from = arith::AddIOp::create(
            b, at, arith::MulIOp::create(b, at, channel, each), place);
        return tensor::ExtractOp::create(b, at, patches,
                                         ValueRange{to[0], to[1], from});
      });
}

LogicalResult EntryImporter::importConv(size_t number) {
  const spec::Layer &layer = stream->spec.layers[number];
  const auto &op = std::get<spec::Conv>(layer.op);
  if (op.transposed)
    return importTransposed(number);
  Location at = loc(layer.location);
  size_t dims = op.kernel.size();
  if (stream->mask && dims != 1) {
    diags.error(layer.location, "a convolution's places are in no attention "
                                "mask");
    return failure();
  }
  std::vector<int64_t> padding = op.padding;
  Value input = convInput(at, op, padding);
  auto type = typeOf(input);
  // [batch, places, channels] of an image is [batch, height, width, channels].
  if (dims == 2 && type.getRank() == 3) {
    if (!state.height || !state.width || state.before) {
      diags.error(layer.location, "the tokens are not the places of an image");
      return failure();
    }
    input = asImage(at, input);
  }
  int64_t columns = op.channels;
  for (int64_t size : op.kernel)
    columns *= size;
  auto tokens = [&](int64_t width) {
    return RankedTensorType::get(
        {ShapedType::kDynamic, ShapedType::kDynamic, width},
        builder.getF32Type());
  };
  Value patches = PatchesOp::create(builder, at, tokens(columns), input,
                                    builder.getDenseI64ArrayAttr(op.kernel),
                                    builder.getDenseI64ArrayAttr(op.stride),
                                    builder.getDenseI64ArrayAttr(padding),
                                    !op.channelsFirst);
  if (op.placesFirst)
    patches = byPlaces(at, patches, op.channels);

  // How many places there are, as numbers where the input's sizes are.
  spec::Dim count = {1, ""};
  SmallVector<Value> places;
  std::vector<spec::Dim> sizes;
  for (size_t i = 0; i < dims; ++i) {
    spec::Dim before = state.shape.size() == dims + 2
                           ? state.shape[i + (op.channelsFirst ? 2 : 1)]
                           : state.places[i];
    Value length = builder.createOrFold<tensor::DimOp>(
        at, input, index(i + (op.channelsFirst ? 2 : 1)));
    Value room = arith::AddIOp::create(builder, at, length,
                                       index(2 * padding[i] - op.kernel[i]));
    Value steps =
        arith::DivSIOp::create(builder, at, room, index(op.stride[i]));
    places.push_back(arith::AddIOp::create(builder, at, steps, index(1)));
    // Of places of which none are left out every stride that is begun counts.
    int64_t more = op.same ? -1 : 2 * op.padding[i] - op.kernel[i];
    bool same = op.stride[i] == 1 && (op.same || more == -1);
    if (!same && before.size >= 0)
      before.size = (before.size + more) / op.stride[i] + 1;
    else if (!same)
      before.symbol = placesOf(before.symbol, more, op.stride[i]);
    sizes.push_back(before);
    if (dims == 1 || before.size < 0 || count.size < 0)
      count = dims == 1 ? before : spec::Dim{-1, layer.name + ".places"};
    else
      count.size *= before.size;
  }
  if (stream->mask)
    stream->mask = maskBehind(at, op, stream->mask, places[0]);
  state.height = dims == 2 ? places[0] : Value();
  state.width = dims == 2 ? places[1] : Value();
  state.places = sizes;
  state.before = 0;
  state.shape = {state.shape[0], count, {op.out, ""}};
  if (op.groups > 1) {
    state.value = groupedProduct(number, patches);
    return success(bool(state.value));
  }

  Value matrix = roleOf(number, "weight", op.out, columns);
  if (!matrix)
    return failure();
  LayerScope scope;
  spec::Linear linear;
  linear.out = op.out;
  linear.bias = op.bias;
  linear.activation = op.activation;
  Value result = LayerImporter(builder, shared.weights, layer,
                               stream->symbols[number], scope, diags)
                     .linear(linear, patches, matrix);
  if (!result)
    return failure();
  state.value = result;
  return success();
}

/// Columns of `patches` are those of one channel after the other, so each group
/// has a range of its own, as a head has.
Value EntryImporter::groupedProduct(size_t number, Value patches) {
  const spec::Layer &layer = stream->spec.layers[number];
  const auto &op = std::get<spec::Conv>(layer.op);
  Location at = loc(layer.location);
  std::vector<spec::WeightSource> sources =
      spec::resolveWeight(layer, "weight");
  if (sources.size() != 1 || sources[0].transposed || sources[0].begin != 0 ||
      sources[0].end >= 0) {
    diags.error(layer.location, "weight 'weight' is taken apart by groups; it "
                                "must be one whole tensor [out, in]");
    return {};
  }
  int64_t rows = op.out / op.groups, columns = widthOf(patches) / op.groups;
  sources[0].step = sources[0].end = rows;
  Value matrices = shared.weights.get(
      builder, at, stream->symbols[number] + ".groups.weight",
      WeightPiece{sources, rows}, columns, layer, /*index=*/Value(), op.groups);
  Value bias = op.bias ? roleOf(number, "bias", op.out, 0) : Value();
  if (!matrices || (op.bias && !bias))
    return {};
  auto heads = [&](int64_t width) {
    auto type = typeOf(patches);
    return RankedTensorType::get(
        {type.getDimSize(0), op.groups, type.getDimSize(1), width},
        type.getElementType());
  };
  Value split = SplitHeadsOp::create(builder, at, heads(columns), patches,
                                     /*offset=*/0);
  Value product =
      HeadLinearOp::create(builder, at, heads(rows), split, matrices);
  auto type = RankedTensorType::get(
      {ShapedType::kDynamic, ShapedType::kDynamic, op.out},
      builder.getF32Type());
  Value result = MergeHeadsOp::create(builder, at, type, product);
  if (bias) {
    MLIRContext *context = builder.getContext();
    AffineMap all = builder.getMultiDimIdentityMap(3);
    AffineMap last = AffineMap::get(3, 0, builder.getAffineDimExpr(2), context);
    result =
        linalg::GenericOp::create(
            builder, at, type, ValueRange{bias}, result,
            ArrayRef<AffineMap>{last, all},
            SmallVector<utils::IteratorType>(3, utils::IteratorType::parallel),
            [](OpBuilder &b, Location at, ValueRange args) {
              Value shift = args[0];
              if (!shift.getType().isF32())
                shift = arith::ExtFOp::create(b, at, b.getF32Type(), shift);
              Value sum = arith::AddFOp::create(b, at, args[1], shift);
              linalg::YieldOp::create(b, at, sum);
            })
            .getResult(0);
  }
  if (op.activation != spec::Activation::Identity)
    result =
        ActivationOp::create(builder, at, result, toActivation(op.activation));
  return result;
}

LogicalResult EntryImporter::importPool(size_t number) {
  const spec::Layer &layer = stream->spec.layers[number];
  const auto &op = std::get<spec::Pool>(layer.op);
  Location at = loc(layer.location);
  auto type = typeOf(state.value);
  attune::PoolKind kind = attune::PoolKind::Token;
  Value found;
  switch (op.kind) {
  case spec::PoolKind::First:
  case spec::PoolKind::Token:
    if (const spec::Dim &tokens = state.shape[1];
        tokens.size >= 0 && op.index >= tokens.size) {
      diags.error(layer.location, "there is no token " +
                                      std::to_string(op.index) + " among " +
                                      std::to_string(tokens.size));
      return failure();
    }
    break;
  case spec::PoolKind::Last:
    kind = attune::PoolKind::Last;
    break;
  case spec::PoolKind::Mean:
    kind = attune::PoolKind::Mean;
    break;
  case spec::PoolKind::Max:
    kind = attune::PoolKind::Max;
    break;
  case spec::PoolKind::Id:
  case spec::PoolKind::LastId:
  case spec::PoolKind::LargestId: {
    auto ids = inputs.find(op.input.empty() ? stream->root : op.input);
    if (ids == inputs.end() ||
        !typeOf(ids->second.value).getElementType().isInteger(64)) {
      diags.error(layer.location, "the stream does not start from ids, among "
                                  "which the token could be found");
      return failure();
    }
    const spec::Dim &mine = state.shape[1], &other = ids->second.shape[1];
    if (mine.size != other.size || mine.symbol != other.symbol) {
      diags.error(layer.location, "the stream does not have one token for each "
                                  "id of '" +
                                      ids->first + "'");
      return failure();
    }
    IntegerAttr id;
    if (op.kind != spec::PoolKind::LargestId)
      id = builder.getI64IntegerAttr(op.id);
    auto places =
        RankedTensorType::get({ShapedType::kDynamic}, builder.getI64Type());
    found = FindTokenOp::create(builder, at, places, ids->second.value, id,
                                op.kind == spec::PoolKind::LastId);
    break;
  }
  }
  Value mask = kind == attune::PoolKind::Token ? Value() : stream->mask;
  auto result = RankedTensorType::get({type.getDimSize(0), type.getDimSize(2)},
                                      type.getElementType());
  state.value = PoolOp::create(
      builder, at, result, PoolKindAttr::get(builder.getContext(), kind),
      state.value, mask, found, builder.getI64IntegerAttr(op.index));
  state.shape.erase(state.shape.begin() + 1);
  state.height = state.width = Value();
  stream->mask = Value();
  return success();
}

LogicalResult EntryImporter::importAdd(size_t number) {
  const spec::Layer &layer = stream->spec.layers[number];
  const auto &op = std::get<spec::Add>(layer.op);
  Location at = loc(layer.location);
  const NamedTensor *source = findResult(op.source);
  if (!source || source->value.getType() != state.value.getType()) {
    diags.error(layer.location, "the result of '" + op.source +
                                    "' cannot be added to the stream");
    return failure();
  }
  for (auto [mine, other] : llvm::zip(state.shape, source->shape))
    if (mine.size != other.size || mine.symbol != other.symbol) {
      diags.error(layer.location, "the result of '" + op.source +
                                      "' may have other sizes than the "
                                      "stream");
      return failure();
    }
  state.value = arith::AddFOp::create(builder, at, state.value, source->value);
  if (op.scale != 1)
    state.value =
        scaled(state.value,
               arith::ConstantOp::create(
                   builder, at, builder.getF32FloatAttr(float(op.scale))));
  return success();
}

/// Scalar products are the scores of attention with one head and one batch.
LogicalResult EntryImporter::importSimilarity(size_t number) {
  const spec::Layer &layer = stream->spec.layers[number];
  const auto &op = std::get<spec::Similarity>(layer.op);
  Location at = loc(layer.location);
  const NamedTensor *source = findResult(op.source);
  if (!source || typeOf(source->value).getRank() != 2 ||
      typeOf(state.value).getRank() != 2) {
    diags.error(layer.location, "similarity is between pooled vectors "
                                "[batch, width]");
    return failure();
  }
  const int64_t dynamic = ShapedType::kDynamic;
  auto heads = [&](Value vectors) -> Value {
    int64_t width = widthOf(vectors);
    auto type = RankedTensorType::get({1, 1, dynamic, width},
                                      typeOf(vectors).getElementType());
    OpFoldResult rows = builder.createOrFold<tensor::DimOp>(at, vectors, 0);
    SmallVector<OpFoldResult> sizes = {builder.getIndexAttr(1),
                                       builder.getIndexAttr(1), rows,
                                       builder.getIndexAttr(width)};
    return tensor::ExpandShapeOp::create(
        builder, at, type, vectors,
        ArrayRef<ReassociationIndices>{{0, 1, 2}, {3}}, sizes);
  };
  auto type =
      RankedTensorType::get({1, 1, dynamic, dynamic}, builder.getF32Type());
  Value scores =
      SimilarityOp::create(builder, at, type, heads(state.value),
                           heads(source->value), builder.getF32FloatAttr(1));
  auto flat = RankedTensorType::get({dynamic, dynamic}, builder.getF32Type());
  state.value = tensor::CollapseShapeOp::create(
      builder, at, flat, scores,
      ArrayRef<ReassociationIndices>{{0, 1, 2}, {3}});
  state.shape = {state.shape[0], source->shape[0]};
  if (op.temperature) {
    Value logarithm = roleOf(number, "scale", 1, 0);
    if (!logarithm)
      return failure();
    Value x =
        tensor::ExtractOp::create(builder, at, logarithm, ValueRange{index(0)});
    if (!x.getType().isF32())
      x = arith::ExtFOp::create(builder, at, builder.getF32Type(), x);
    state.value = scaled(state.value, math::ExpOp::create(builder, at, x));
  }
  if (op.bias) {
    Value shift = roleOf(number, "bias", 1, 0);
    if (!shift)
      return failure();
    Value x =
        tensor::ExtractOp::create(builder, at, shift, ValueRange{index(0)});
    if (!x.getType().isF32())
      x = arith::ExtFOp::create(builder, at, builder.getF32Type(), x);
    SmallVector<Value> sizes;
    for (int64_t dim = 0; dim < 2; ++dim)
      sizes.push_back(
          builder.createOrFold<tensor::DimOp>(at, state.value, dim));
    Value all = tensor::SplatOp::create(builder, at, x, flat, sizes);
    state.value = arith::AddFOp::create(builder, at, state.value, all);
  }
  return success();
}

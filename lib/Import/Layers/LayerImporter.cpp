//===- LayerImporter.cpp - The ops of one layer -----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LayerImporter.h"

#include "Attune/AttuneCachedRows.h"
#include "attune/Import/PositionMath.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace attune;

Location attune::toLocation(MLIRContext *context, const SourceLocation &where) {
  if (!where.file || where.line == 0)
    return UnknownLoc::get(context);
  return FileLineColLoc::get(context, where.file->path, where.line,
                             where.column);
}

const spec::Attention *attune::getSelfAttention(const spec::Layer &layer) {
  if (const auto *block = std::get_if<spec::Block>(&layer.op))
    return block->attention ? &*block->attention : nullptr;
  const auto *attention = std::get_if<spec::Attention>(&layer.op);
  return attention && attention->projections && attention->source.empty()
             ? attention
             : nullptr;
}

const spec::Attention *attune::getCrossAttention(const spec::Layer &layer) {
  if (const auto *block = std::get_if<spec::Block>(&layer.op))
    return block->cross ? &*block->cross : nullptr;
  const auto *attention = std::get_if<spec::Attention>(&layer.op);
  return attention && !attention->source.empty() ? attention : nullptr;
}

const spec::Rope *attune::getRope(const spec::Layer &layer) {
  if (const auto *function = std::get_if<spec::Function>(&layer.op))
    return function->rope ? &*function->rope : nullptr;
  const spec::Attention *attention = getSelfAttention(layer);
  return attention && attention->rope ? &*attention->rope : nullptr;
}

static int64_t widthOf(Value value) { return typeOf(value).getShape().back(); }

/// The type of `value` with another last dimension.
static RankedTensorType withWidth(Value value, int64_t width) {
  SmallVector<int64_t> shape(typeOf(value).getShape());
  shape.back() = width;
  return RankedTensorType::get(shape, typeOf(value).getElementType());
}

static RankedTensorType headsType(Value like, int64_t batch, int64_t heads,
                                  int64_t tokens, int64_t width) {
  return RankedTensorType::get({batch, heads, tokens, width},
                               typeOf(like).getElementType());
}

attune::Activation attune::toActivation(spec::Activation activation) {
  switch (activation) {
  case spec::Activation::Identity:
    return attune::Activation::Identity;
  case spec::Activation::Relu:
    return attune::Activation::Relu;
  case spec::Activation::Gelu:
    return attune::Activation::GeluErf;
  case spec::Activation::GeluTanh:
    return attune::Activation::GeluTanh;
  case spec::Activation::QuickGelu:
    return attune::Activation::QuickGelu;
  case spec::Activation::Silu:
    return attune::Activation::Silu;
  case spec::Activation::ReluSquared:
    return attune::Activation::ReluSquared;
  case spec::Activation::Sigmoid:
    return attune::Activation::Sigmoid;
  case spec::Activation::Tanh:
    return attune::Activation::Tanh;
  case spec::Activation::Softplus:
    return attune::Activation::Softplus;
  case spec::Activation::Mish:
    return attune::Activation::Mish;
  case spec::Activation::Elu:
    return attune::Activation::Elu;
  case spec::Activation::LeakyRelu:
    return attune::Activation::LeakyRelu;
  case spec::Activation::HardSwish:
    return attune::Activation::HardSwish;
  }
  llvm_unreachable("every activation is listed");
}

/// Among the tokens of one call queries and keys are equally many, and both
/// alignments agree. Decoding has cached keys before them: bottom right. Where
/// sequences have different lengths, each has one new token, which sees all of
/// its own: only what depends on distances asks where it stands.
static CausalAlign toAlignment(const spec::Attention &attention,
                               const AttentionOperands &operands,
                               bool decoding) {
  spec::Causal causal = attention.causal;
  bool byDistance = attention.window || attention.alibi || operands.diagonals;
  if (operands.bidirectional == spec::Bidirectional::Prompt)
    return CausalAlign::None;
  if (causal == spec::Causal::None ||
      operands.bidirectional == spec::Bidirectional::Image)
    return attention.window ? CausalAlign::Symmetric : CausalAlign::None;
  if (decoding && operands.lengths)
    return byDistance ? CausalAlign::Lengths : CausalAlign::None;
  return decoding || causal == spec::Causal::BottomRight
             ? CausalAlign::BottomRight
             : CausalAlign::TopLeft;
}

Location LayerImporter::loc(const SourceLocation &where) const {
  const SourceLocation &best = where.line ? where : layer.location;
  return toLocation(builder.getContext(), best);
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

Value LayerImporter::weight(Location loc, StringRef role, int64_t rows,
                            int64_t columns) {
  return weights.get(builder, loc, (symbol + "." + role).str(),
                     WeightPiece{spec::resolveWeight(layer, role.str()), rows},
                     columns, layer, scope.index);
}

Value LayerImporter::stack(Location loc, StringRef name,
                           ArrayRef<std::pair<std::string, int64_t>> roles,
                           int64_t columns, StringRef prefix, int64_t parts) {
  SmallVector<WeightPiece> pieces;
  for (const auto &[role, rows] : roles)
    pieces.push_back({spec::resolveWeight(layer, (prefix + role).str()), rows});
  return weights.get(builder, loc, (symbol + "." + prefix + name).str(), pieces,
                     columns, layer, scope.index, parts);
}

//===----------------------------------------------------------------------===//
// Norms and feed-forward layers
//===----------------------------------------------------------------------===//

Value LayerImporter::splatLike(Location loc, Value like, double number) {
  auto type = typeOf(like);
  Value scalar = arith::ConstantOp::create(
      builder, loc, builder.getFloatAttr(type.getElementType(), number));
  SmallVector<Value> sizes;
  for (int64_t i = 0; i < type.getRank(); ++i)
    if (type.isDynamicDim(i))
      sizes.push_back(tensor::DimOp::create(builder, loc, like, i));
  return tensor::SplatOp::create(builder, loc, scalar, type, sizes);
}

Value LayerImporter::addScaled(Location loc, Value x, Value y, double scale) {
  if (scale != 1)
    y = arith::MulFOp::create(builder, loc, y, splatLike(loc, y, scale));
  return x ? arith::AddFOp::create(builder, loc, x, y).getResult() : y;
}

Value LayerImporter::norm(const spec::Norm &norm, StringRef prefix, Value input,
                          int64_t heads) {
  Location at = loc(norm.location);
  int64_t width = widthOf(input);
  auto vector = [&](StringRef name) -> Value {
    Value all =
        weight(at, (prefix + name).str(), heads ? heads * width : width, 0);
    if (!all || !heads)
      return all;
    auto type =
        RankedTensorType::get({heads, width}, typeOf(all).getElementType());
    return tensor::ExpandShapeOp::create(
        builder, at, type, all, ArrayRef<ReassociationIndices>{{0, 1}});
  };
  Value gamma, beta;
  if (norm.scale) {
    gamma = vector("weight");
    if (!gamma)
      return {};
  }
  FloatAttr eps = builder.getF32FloatAttr(float(norm.eps));
  FloatAttr offset = builder.getF32FloatAttr(float(norm.offset));
  if (norm.kind == spec::NormKind::RMSNorm)
    return RMSNormOp::create(builder, at, input.getType(), input, gamma, eps,
                             offset);
  if (norm.bias) {
    beta = vector("bias");
    if (!beta)
      return {};
  }
  return LayerNormOp::create(builder, at, input.getType(), input, gamma, beta,
                             eps, offset);
}

Value LayerImporter::ffn(const spec::FFN &ffn, StringRef prefix, Value input,
                         int64_t width, Value residual, double scale) {
  Location at = loc(ffn.location);
  if (scale != 1) {
    Value result = this->ffn(ffn, prefix, input, width, /*residual=*/Value());
    return result ? addScaled(at, residual, result, scale) : Value();
  }
  int64_t inner = ffn.width, outer = widthOf(input);
  std::string role = prefix.str();
  if (ffn.shift) {
    Value change = changeBefore(at, input, scope.shiftCache);
    input = shifted(at, role + "x_k", input, change);
    if (!input)
      return {};
  }
  if (ffn.sparsity != 0)
    return sparseFFN(ffn, role, input, width, residual);
  if (ffn.xielu)
    return xieluFFN(ffn, role, input, width, residual);
  Value up, upBias, downBias;
  if (ffn.gated) {
    std::pair<std::string, int64_t> weightRoles[] = {{"gate.weight", inner},
                                                     {"up.weight", inner}};
    std::pair<std::string, int64_t> biasRoles[] = {{"gate.bias", inner},
                                                   {"up.bias", inner}};
    up = stack(at, "gate_up.weight", weightRoles, outer, prefix);
    if (up && ffn.bias)
      upBias = stack(at, "gate_up.bias", biasRoles, 0, prefix);
  } else {
    up = weight(at, role + "up.weight", inner, outer);
    if (up && ffn.bias)
      upBias = weight(at, role + "up.bias", inner, 0);
  }
  Value down = weight(at, role + "down.weight", width, inner);
  if (ffn.bias)
    downBias = weight(at, role + "down.bias", width, 0);
  if (!up || !down || (ffn.bias && (!upBias || !downBias)))
    return {};
  Type type = withWidth(input, width);
  attune::Activation activation = toActivation(ffn.activation);
  if (ffn.gated)
    return GatedFFNOp::create(builder, at, type, input, up, down, upBias,
                              downBias, residual, activation);
  return FFNOp::create(builder, at, type, input, up, down, upBias, downBias,
                       residual, activation);
}

Value LayerImporter::linear(const spec::Linear &linear, Value input,
                            Value matrix) {
  Location at = loc(layer.location);
  if (!matrix)
    matrix = weight(at, "weight", linear.out, widthOf(input));
  Value bias;
  if (linear.bias)
    bias = weight(at, "bias", linear.out, 0);
  if (!matrix || (linear.bias && !bias))
    return {};
  // c tanh(y / c), with the division folded into the scale.
  double scale = linear.scale / linear.softcap.value_or(1);
  Value result = LinearOp::create(
      builder, at, withWidth(input, linear.out), input, matrix, bias,
      /*residual=*/Value(), toActivation(linear.activation), /*gated=*/false,
      scale == 1 ? FloatAttr() : builder.getF32FloatAttr(float(scale)));
  if (!linear.softcap)
    return result;
  Value bent = math::TanhOp::create(builder, at, result);
  return addScaled(at, /*x=*/Value(), bent, *linear.softcap);
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

/// Writes the weights of an attention's heads to a map.
static void writeMap(OpBuilder &builder, AttentionOp op, AttentionMap &map,
                     Value index) {
  Location loc = op.getLoc();
  Value dest = map.value, when;
  if (map.tap.repeat) // one of many repeats
    when = arith::CmpIOp::create(
        builder, loc, arith::CmpIPredicate::eq, index,
        arith::ConstantIndexOp::create(builder, loc, *map.tap.repeat));
  SmallVector<OpFoldResult> offsets, sizes, strides;
  if (map.tap.count) {
    OpFoldResult slot = builder.getIndexAttr(map.slot);
    if (index)
      slot = arith::AddIOp::create(
                 builder, loc, index,
                 arith::ConstantIndexOp::create(builder, loc, map.slot))
                 .getResult();
    offsets.assign(5, builder.getIndexAttr(0));
    strides.assign(5, builder.getIndexAttr(1));
    sizes = tensor::getMixedSizes(builder, loc, map.value);
    offsets[0] = slot;
    sizes[0] = builder.getIndexAttr(1);
    auto type = RankedTensorType::get(typeOf(dest).getShape().drop_front(),
                                      builder.getF32Type());
    dest = tensor::ExtractSliceOp::create(builder, loc, type, dest, offsets,
                                          sizes, strides);
  }
  dest = AttentionWeightsOp::create(
      builder, loc, dest.getType(), op.getQuery(), op.getKey(), op.getLse(),
      dest, maskOfHidden(builder, op), op.getBias(), op.getDiagonals(),
      op.getSlopes(), when, op.getScaleAttr(), op.getCausalAttr(),
      op.getWindowAttr(), op.getSoftcapAttr(),
      builder.getI64IntegerAttr(map.tap.firstHead));
  if (map.tap.count)
    dest = tensor::InsertSliceOp::create(builder, loc, dest, map.value, offsets,
                                         sizes, strides);
  map.value = dest;
}

std::pair<Value, Value> attune::buildAttention(
    OpBuilder &builder, Location loc, const spec::Attention &attention,
    const AttentionOperands &operands, bool decoding,
    MutableArrayRef<AttentionMap> maps, bool cross, Value index) {
  auto query = typeOf(operands.query), key = typeOf(operands.key);
  int64_t valueDim = widthOfRows(typeOf(operands.value));
  Value slopes = operands.slopes;
  if (attention.alibi && !slopes) {
    std::vector<float> numbers = alibiSlopes(attention.heads);
    if (attention.alibiFalcon)
      for (float &slope : numbers)
        slope = roundToBF16(slope) * float(attention.scale);
    auto type = RankedTensorType::get({attention.heads}, builder.getF32Type());
    slopes = arith::ConstantOp::create(
        builder, loc, DenseElementsAttr::get(type, ArrayRef<float>(numbers)));
  }
  auto resultType =
      headsType(operands.query, query.getDimSize(0), query.getDimSize(1),
                query.getDimSize(2), valueDim);
  if (attention.linear)
    return {buildLinearAttention(builder, loc, attention, operands, resultType)
                .getResult(),
            Value()};
  FloatAttr scale = builder.getF32FloatAttr(float(attention.scale));
  CausalAlign causal = toAlignment(attention, operands, decoding);
  IntegerAttr window;
  if (attention.window && operands.bidirectional != spec::Bidirectional::Prompt)
    window = builder.getI64IntegerAttr(*attention.window);
  FloatAttr softcap;
  if (attention.softcap)
    softcap = builder.getF32FloatAttr(float(*attention.softcap));
  StringAttr fusion;
  if (attention.fusion != spec::Fusion::Auto)
    fusion = builder.getStringAttr(
        attention.fusion == spec::Fusion::Required ? "required" : "off");

  DenseI64ArrayAttr blockSizes;
  if (operands.blocks) {
    int64_t block = attention.blockSparse->block;
    blockSizes = builder.getDenseI64ArrayAttr({block, block});
  }
  auto isAsked = [&](const AttentionMap &map) {
    return map.tap.cross == cross;
  };
  if (attention.lse || llvm::any_of(maps, isAsked)) {
    auto lseType = RankedTensorType::get(query.getShape().drop_back(),
                                         builder.getF32Type());
    auto op = AttentionOp::create(
        builder, loc, resultType, lseType, operands.query, operands.key,
        operands.value, operands.mask, operands.bias, operands.diagonals,
        slopes, operands.sinks, operands.lengths, operands.blocks, scale,
        CausalAlignAttr::get(builder.getContext(), causal), window, softcap,
        blockSizes);
    for (AttentionMap &map : llvm::make_filter_range(maps, isAsked))
      writeMap(builder, op, map, index);
    return {op.getResult(), attention.lse ? op.getLse() : Value()};
  }

  auto scoresType =
      RankedTensorType::get({query.getDimSize(0), query.getDimSize(1),
                             query.getDimSize(2), key.getDimSize(2)},
                            builder.getF32Type());
  Value scores = SimilarityOp::create(builder, loc, scoresType, operands.query,
                                      operands.key, scale);
  if (operands.mask || operands.bias || operands.diagonals || slopes ||
      operands.lengths || operands.blocks || window || softcap ||
      causal != CausalAlign::None)
    scores = MaskScoresOp::create(
        builder, loc, scoresType, scores, operands.mask, operands.bias,
        operands.diagonals, slopes, operands.lengths, operands.blocks, causal,
        window, softcap, blockSizes);
  Value probs =
      SoftmaxOp::create(builder, loc, scoresType, scores, operands.sinks);
  auto sum =
      WeightedSumOp::create(builder, loc, resultType, probs, operands.value);
  if (fusion)
    sum->setAttr("attune.fusion", fusion);
  return {sum, Value()};
}

Value attune::readCache(OpBuilder &builder, Location loc, Value cache,
                        Value number, Value length, bool sequenceMajor) {
  SmallVector<int64_t> shape(typeOf(cache).getShape());
  shape.erase(shape.begin() + (sequenceMajor ? 1 : 0));
  shape[2] = ShapedType::kDynamic;
  auto type = RankedTensorType::get(shape, typeOf(cache).getElementType());
  return CacheReadOp::create(builder, loc, type, cache, number, length,
                             sequenceMajor);
}

Value LayerImporter::throughCache(Location at, Value rows, Value &cache) {
  bool unequal = !scope.past.getType().isIndex();
  Value number = scope.cacheIndex ? scope.cacheIndex : scope.index;
  cache = CacheAppendOp::create(builder, at, cache.getType(), rows, cache,
                                number, scope.past, unequal);
  return readCache(builder, at, cache, number, scope.length, unequal);
}

Value LayerImporter::project(
    const spec::Attention &attention, StringRef prefix, StringRef name,
    ArrayRef<std::pair<std::string, int64_t>> projections, Value input,
    bool bias) {
  Location at = loc(attention.location);
  SmallVector<std::pair<std::string, int64_t>> weightRoles, biasRoles;
  int64_t rows = 0;
  for (const auto &[role, size] : projections) {
    weightRoles.push_back({role + ".weight", size});
    biasRoles.push_back({role + ".bias", size});
    rows += size;
  }
  Value matrix =
      stack(at, (name + ".weight").str(), weightRoles, widthOf(input), prefix);
  Value biases;
  if (bias)
    biases = stack(at, (name + ".bias").str(), biasRoles, 0, prefix);
  if (!matrix || (bias && !biases))
    return {};
  return LinearOp::create(builder, at, withWidth(input, rows), input, matrix,
                          biases, /*residual=*/Value(),
                          attune::Activation::Identity, /*gated=*/false,
                          /*scale=*/nullptr);
}

/// Columns from `offset` on as heads.
Value attune::splitHeads(OpBuilder &builder, Location loc, Value input,
                         int64_t heads, int64_t dim, int64_t offset) {
  auto type = typeOf(input);
  return SplitHeadsOp::create(
      builder, loc,
      headsType(input, type.getDimSize(0), heads, type.getDimSize(1), dim),
      input, offset);
}

static int64_t valueDimOf(const spec::Attention &attention) {
  return attention.valueDim ? attention.valueDim : attention.headDim;
}

std::string LayerImporter::prefixOf(const spec::Attention &attention) const {
  const auto *block = std::get_if<spec::Block>(&layer.op);
  if (!block)
    return "";
  return block->cross && &*block->cross == &attention ? "cross." : "attention.";
}

bool LayerImporter::normHeads(const spec::Attention &attention, StringRef role,
                              Value &heads, int64_t count) {
  if (!attention.qkNorm || attention.qkNormScope == spec::NormScope::Projection)
    return bool(heads);
  bool each = attention.qkNormScope == spec::NormScope::Heads;
  heads = norm(*attention.qkNorm, role, heads, each ? count : 0);
  return bool(heads);
}

bool LayerImporter::normBoth(const spec::Attention &attention, StringRef prefix,
                             AttentionOperands &operands) {
  return normHeads(attention, (prefix + "q_norm.").str(), operands.query,
                   attention.heads) &&
         normHeads(attention, (prefix + "k_norm.").str(), operands.key,
                   attention.kvHeads);
}

Value LayerImporter::relativeBias(const spec::Attention &attention,
                                  Value queries, Value keys) {
  const spec::RelativeBias &bias = *attention.relativeBias;
  Location at = loc(bias.location);
  Value table = weight(at, prefixOf(attention) + "relative_bias.weight",
                       bias.buckets, attention.heads);
  if (!table)
    return {};
  auto type = RankedTensorType::get({attention.heads, ShapedType::kDynamic},
                                    builder.getF32Type());
  return RelativeBiasOp::create(builder, at, type, table, queries, keys,
                                static_cast<uint64_t>(bias.maxDistance),
                                bias.bidirectional);
}

bool LayerImporter::projections(const spec::Attention &attention,
                                StringRef prefix, Value input,
                                AttentionOperands &operands) {
  Location at = loc(attention.location);
  int64_t headDim = attention.headDim, valueDim = valueDimOf(attention);
  int64_t queryRows = attention.heads * headDim;
  int64_t keyRows = attention.kvHeads * headDim;
  std::pair<std::string, int64_t> projections[] = {
      {"q", queryRows}, {"k", keyRows}, {"v", attention.kvHeads * valueDim}};
  Value *heads[] = {&operands.query, &operands.key, &operands.value};
  bool wholeNorm =
      attention.qkNorm && attention.qkNormScope == spec::NormScope::Projection;
  // One matmul if all three have a bias or none has.
  bool together = !wholeNorm && !attention.adapterRank &&
                  (!attention.qkvBias || attention.keyBias);
  Value all;
  if (together) {
    all = clip(attention, project(attention, prefix, "qkv", projections, input,
                                  attention.qkvBias));
    if (!all)
      return false;
  }
  if (attention.disentangled) {
    operands.bias =
        positionScores(attention, prefix, all, widthOf(input), projections);
    if (!operands.bias)
      return false;
  }
  if (attention.relative) {
    operands.bias = relativeScores(attention, prefix.str(), all);
    if (!operands.bias)
      return false;
  }
  int64_t column = 0;
  for (auto [i, projection] : llvm::enumerate(projections)) {
    Value columns = all;
    if (!together) {
      columns = project(attention, prefix, projection.first, projection, input,
                        attention.qkvBias &&
                            (projection.first != "k" || attention.keyBias));
      if (attention.adapterRank)
        columns = adapted(attention, (prefix + projection.first).str(), input,
                          columns);
      // Each is normalised over its own width before it is cut into heads.
      if (columns && wholeNorm && i < 2)
        columns = norm(*attention.qkNorm,
                       (prefix + projection.first + "_norm.").str(), columns);
      columns = clip(attention, columns);
      column = 0;
    }
    if (!columns)
      return false;
    *heads[i] = splitHeads(builder, at, columns,
                           i == 0 ? attention.heads : attention.kvHeads,
                           i == 2 ? valueDim : headDim, column);
    if (i == 0 && attention.relative)
      *heads[i] =
          withHeadBias(attention, (prefix + "r.content_bias").str(), *heads[i]);
    if (i == 2 && attention.valueNorm)
      *heads[i] =
          norm(*attention.valueNorm, (prefix + "v_norm.").str(), *heads[i]);
    if (!*heads[i])
      return false;
    column += projection.second;
  }
  return true;
}

/// Gives queries, and keys if there are any, their positions.
void LayerImporter::turn(const spec::Attention &attention,
                         AttentionOperands &operands) {
  if (attention.rope) {
    Location ropeAt = loc(attention.rope->location);
    RotaryPairing pairing = attention.rope->interleaved
                                ? RotaryPairing::Interleaved
                                : RotaryPairing::Half;
    bool whole =
        attention.rope->channels == attention.headDim && scope.queryCos;
    for (Value *heads : {&operands.query, &operands.key}) {
      if (!*heads) // another block has them
        continue;
      bool grows = whole && heads == &operands.query;
      *heads = RotaryOp::create(builder, ropeAt, heads->getType(), *heads,
                                grows ? scope.queryCos : scope.cos,
                                grows ? scope.querySin : scope.sin, pairing);
    }
  }
  if (attention.queryGrowth &&
      !(attention.rope && attention.rope->channels == attention.headDim))
    operands.query = RotaryOp::create(
        builder, loc(attention.queryGrowth->location), operands.query.getType(),
        operands.query, scope.queryCos, scope.querySin, RotaryPairing::Half);
}

bool LayerImporter::selfOperands(const spec::Attention &attention,
                                 StringRef prefix, Value input,
                                 AttentionOperands &operands) {
  if (!attention.keysFrom.empty())
    return borrowedOperands(attention, prefix, input, operands);
  Location at = loc(attention.location);
  if (!projections(attention, prefix, input, operands))
    return false;
  operands.mask = scope.maskOfAttention();
  operands.bidirectional = scope.bidirectional;
  operands.lengths = scope.lengths;
  operands.blocks = scope.blocks;
  if (!attention.qkNormAfterRotary && !normBoth(attention, prefix, operands))
    return false;
  scaleByLayer(attention, operands.query);
  turn(attention, operands);
  if (attention.qkNormAfterRotary && !normBoth(attention, prefix, operands))
    return false;
  if (scope.lendsKeys)
    lend(at, operands);
  if (scope.keyCache && !attention.linear) {
    operands.key = throughCache(at, operands.key, scope.keyCache);
    operands.value = throughCache(at, operands.value, scope.valueCache);
  }
  if (!attention.relativeBias)
    return true;
  operands.diagonals = scope.diagonals;
  if (!operands.diagonals) {
    auto tokens = [&](Value heads) -> Value {
      return tensor::DimOp::create(builder, at, heads, 2);
    };
    operands.diagonals =
        relativeBias(attention, tokens(operands.query), tokens(operands.key));
  }
  return bool(operands.diagonals);
}

bool LayerImporter::crossKeysAndValues(const spec::Attention &attention,
                                       AttentionOperands &operands) {
  if (attention.rope) {
    diags.error(attention.rope->location,
                "rotary positions of two streams have no common origin; "
                "attention to another stream cannot use them");
    return false;
  }
  return keysAndValues(attention, prefixOf(attention), scope.memory, operands);
}

bool LayerImporter::keysAndValues(const spec::Attention &attention,
                                  const std::string &prefix, Value from,
                                  AttentionOperands &operands) {
  Location at = loc(attention.location);
  int64_t headDim = attention.headDim, valueDim = valueDimOf(attention);
  std::pair<std::string, int64_t> keys = {"k", attention.kvHeads * headDim};
  std::pair<std::string, int64_t> values = {"v", attention.kvHeads * valueDim};
  Value keyColumns, valueColumns;
  int64_t firstValue = 0;
  if (attention.qkvBias && !attention.keyBias) {
    keyColumns = project(attention, prefix, "k", keys, from, false);
    valueColumns = project(attention, prefix, "v", values, from, true);
  } else {
    keyColumns = valueColumns = project(attention, prefix, "kv", {keys, values},
                                        from, attention.qkvBias);
    firstValue = keys.second;
  }
  if (!keyColumns || !valueColumns)
    return false;
  operands.key =
      splitHeads(builder, at, keyColumns, attention.kvHeads, headDim, 0);
  operands.value = splitHeads(builder, at, valueColumns, attention.kvHeads,
                              valueDim, firstValue);
  return normHeads(attention, prefix + "k_norm.", operands.key,
                   attention.kvHeads);
}

Value LayerImporter::queryHeads(const spec::Attention &attention,
                                StringRef prefix, Value input) {
  Value query = project(attention, prefix, "q",
                        {{"q", attention.heads * attention.headDim}}, input,
                        attention.qkvBias);
  if (!query)
    return Value();
  return splitHeads(builder, loc(attention.location), query, attention.heads,
                    attention.headDim, 0);
}

bool LayerImporter::crossOperands(const spec::Attention &attention,
                                  StringRef prefix, Value input,
                                  AttentionOperands &operands) {
  Location at = loc(attention.location);
  operands.query = queryHeads(attention, prefix, input);
  if (!operands.query)
    return false;
  operands.mask = scope.memoryMask;
  operands.lengths = scope.memoryLengths;
  if (!normHeads(attention, (prefix + "q_norm.").str(), operands.query,
                 attention.heads))
    return false;
  if (!scope.crossKeys)
    return crossKeysAndValues(attention, operands);
  auto read = [&](Value cache) -> Value {
    Value length = tensor::DimOp::create(builder, at, cache, 3);
    return readCache(builder, at, cache, scope.index, length);
  };
  operands.key = read(scope.crossKeys);
  operands.value = read(scope.crossValues);
  return true;
}

Value LayerImporter::attention(const spec::Attention &attention,
                               StringRef prefix, Value input, int64_t width,
                               Value residual, double scale) {
  Location at = loc(attention.location);
  if (typeOf(input).getRank() != 3) {
    diags.error(attention.location,
                "attention needs an input of shape [batch, tokens, width]");
    return {};
  }
  if (attention.latent && scale == 1)
    return latentAttention(attention, prefix, input, width, residual);
  if (attention.latent) {
    Value result = latentAttention(attention, prefix, input, width, Value());
    return result ? addScaled(at, residual, result, scale) : Value();
  }
  Value joined = mergedHeads(attention, prefix, input);
  return joined ? joinHeads(attention, prefix, input, joined, width, residual,
                            scale)
                : Value();
}

Value LayerImporter::mergeHeads(const spec::Attention &attention, Value heads) {
  auto type = typeOf(heads);
  int64_t merged = attention.heads * valueDimOf(attention);
  return MergeHeadsOp::create(
      builder, loc(attention.location),
      RankedTensorType::get({type.getDimSize(0), type.getDimSize(2), merged},
                            type.getElementType()),
      heads);
}

Value LayerImporter::mergedHeads(const spec::Attention &attention,
                                 StringRef prefix, Value input) {
  Location at = loc(attention.location);
  if (attention.linear && attention.linear->fading)
    return fadingSums(attention, prefix, input);
  AttentionOperands operands;
  bool cross = !attention.source.empty();
  if (!(cross ? crossOperands(attention, prefix, input, operands)
              : selfOperands(attention, prefix, input, operands)))
    return {};
  if (attention.sequenceRank && !projectSequence(attention, prefix, operands))
    return {};
  if (attention.learnedSinks && !readSinks(attention, prefix, operands))
    return {};
  bool decoding =
      !cross && (scope.keyCache || (!attention.keysFrom.empty() && scope.past));
  Value heads =
      decoding && attention.linear
          ? runningAttention(attention, operands)
          : buildAttention(builder, at, attention, operands, decoding,
                           scope.maps, prefix == "cross.", scope.index)
                .first;
  return mergeHeads(attention, heads);
}

Value LayerImporter::joinHeads(const spec::Attention &attention,
                               StringRef prefix, Value input, Value joined,
                               int64_t width, Value residual, double scale) {
  Location at = loc(attention.location);
  int64_t merged = widthOf(joined);
  if (attention.gate) {
    Value gate = stateProjection(at, (prefix + "gate").str(), input, merged,
                                 attention.qkvBias, Value(),
                                 attune::Activation::Sigmoid);
    if (!gate)
      return {};
    joined = arith::MulFOp::create(builder, at, joined, gate);
  }
  std::string role = prefix.str();
  Value matrix = weight(at, role + "o.weight", width, merged);
  Value bias;
  if (attention.outBias)
    bias = weight(at, role + "o.bias", width, 0);
  if (!matrix || (attention.outBias && !bias))
    return {};
  return LinearOp::create(builder, at, withWidth(input, width), joined, matrix,
                          bias, residual, attune::Activation::Identity,
                          /*gated=*/false,
                          scale == 1 ? FloatAttr()
                                     : builder.getF32FloatAttr(float(scale)));
}

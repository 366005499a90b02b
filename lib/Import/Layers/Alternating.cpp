//===- Alternating.cpp - Streams of several copies --------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Gemma 3n: a stream of several copies, of which a block computes one; inputs
// that each block has of its own; two thin matrices beside attention; gates of
// which only the largest numbers count.

#include "StateTokens.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <cmath>

using namespace mlir;
using namespace attune;

using Body = llvm::function_ref<Value(OpBuilder &, Location, ValueRange)>;

static Value numberOf(OpBuilder &b, Location at, double x) {
  return arith::ConstantOp::create(b, at, b.getF32FloatAttr(float(x)));
}

/// Among numbers of [batch, tokens, channels]: those of one, of [batch,
/// tokens], of [channels] or a single one.
static AffineMap mapOf(OpBuilder &builder, int64_t rank, Value operand) {
  AffineMap all = builder.getMultiDimIdentityMap(rank);
  int64_t own = typeOf(operand).getRank();
  if (own == rank)
    return all;
  if (llvm::all_equal(typeOf(operand).getShape()) &&
      typeOf(operand).getDimSize(0) == 1)
    return AffineMap::getMultiDimIdentityMap(own, builder.getContext())
        .replaceDimsAndSymbols(
            SmallVector<AffineExpr>(own, builder.getAffineConstantExpr(0)), {},
            rank, 0);
  return own == 1 ? AffineMap::get(rank, 0, builder.getAffineDimExpr(rank - 1),
                                   builder.getContext())
                  : all.dropResult(rank - 1);
}

/// `args` with all numbers in f32.
static SmallVector<Value> widened(OpBuilder &b, Location at, ValueRange args) {
  SmallVector<Value> wide(args);
  for (Value &number : wide)
    if (!number.getType().isF32())
      number = arith::ExtFOp::create(b, at, b.getF32Type(), number);
  return wide;
}

static Value narrowed(OpBuilder &b, Location at, Value x, Type type) {
  return x.getType() == type
             ? x
             : arith::TruncFOp::create(b, at, type, x).getResult();
}

/// What `body` makes of the numbers of all operands, in the first one's shape.
static Value pointwise(OpBuilder &builder, Location loc,
                       ArrayRef<Value> operands, Body body) {
  auto type = typeOf(operands[0]);
  int64_t rank = type.getRank();
  SmallVector<AffineMap> maps;
  for (Value operand : operands)
    maps.push_back(mapOf(builder, rank, operand));
  maps.push_back(builder.getMultiDimIdentityMap(rank));
  Value dest = tensor::EmptyOp::create(
      builder, loc, tensor::getMixedSizes(builder, loc, operands[0]),
      type.getElementType());
  SmallVector<utils::IteratorType> parallel(rank,
                                            utils::IteratorType::parallel);
  return linalg::GenericOp::create(
             builder, loc, TypeRange(type), ValueRange(operands),
             ValueRange(dest), maps, parallel,
             [&](OpBuilder &b, Location at, ValueRange args) {
               linalg::YieldOp::create(
                   b, at,
                   narrowed(b, at,
                            body(b, at, widened(b, at, args.drop_back())),
                            type.getElementType()));
             })
      .getResult(0);
}

/// The mean of what `body` makes of each row's numbers: [batch, tokens].
static Value meanOfRows(OpBuilder &builder, Location loc,
                        ArrayRef<Value> operands, Body body) {
  auto type = typeOf(operands[0]);
  SmallVector<AffineMap> maps;
  for (Value operand : operands)
    maps.push_back(mapOf(builder, 3, operand));
  maps.push_back(builder.getMultiDimIdentityMap(3).dropResult(2));
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(builder, loc, operands[0]);
  sizes.pop_back();
  Value zero =
      arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(0));
  Value dest =
      tensor::EmptyOp::create(builder, loc, sizes, builder.getF32Type());
  dest = linalg::FillOp::create(builder, loc, zero, dest).getResult(0);
  SmallVector<utils::IteratorType> kinds = {utils::IteratorType::parallel,
                                            utils::IteratorType::parallel,
                                            utils::IteratorType::reduction};
  Value sum = linalg::GenericOp::create(
                  builder, loc, TypeRange(dest.getType()), ValueRange(operands),
                  ValueRange(dest), maps, kinds,
                  [&](OpBuilder &b, Location at, ValueRange args) {
                    Value one = body(b, at, widened(b, at, args.drop_back()));
                    Value all = arith::AddFOp::create(b, at, args.back(), one);
                    linalg::YieldOp::create(b, at, all);
                  })
                  .getResult(0);
  auto width = static_cast<double>(type.getDimSize(2));
  return pointwise(builder, loc, sum,
                   [&](OpBuilder &b, Location at, ValueRange args) -> Value {
                     Value share = arith::ConstantOp::create(
                         b, at, b.getF32FloatAttr(float(1 / width)));
                     return arith::MulFOp::create(b, at, args[0], share);
                   });
}

static Value meanSquare(OpBuilder &builder, Location loc, Value tokens) {
  return meanOfRows(builder, loc, tokens,
                    [](OpBuilder &b, Location at, ValueRange args) -> Value {
                      return arith::MulFOp::create(b, at, args[0], args[0]);
                    });
}

/// `copy` times the root of `square` over that of its own mean square, which
/// is at least `eps`.
static Value madeAsLarge(OpBuilder &builder, Location loc, Value copy,
                         Value square, double eps) {
  Value own = meanSquare(builder, loc, copy);
  Value ratio = pointwise(
      builder, loc, {square, own},
      [&](OpBuilder &b, Location at, ValueRange args) -> Value {
        Value least =
            arith::ConstantOp::create(b, at, b.getF32FloatAttr(float(eps)));
        Value bounded = arith::MaximumFOp::create(b, at, args[1], least);
        Value quotient = arith::DivFOp::create(b, at, args[0], bounded);
        return math::SqrtOp::create(b, at, quotient);
      });
  return pointwise(builder, loc, {copy, ratio},
                   [](OpBuilder &b, Location at, ValueRange args) -> Value {
                     return arith::MulFOp::create(b, at, args[0], args[1]);
                   });
}

/// One column of [batch, tokens, columns] as [batch, tokens].
static Value column(OpBuilder &builder, Location loc, Value tokens,
                    int64_t number) {
  Value one = columns(builder, loc, tokens, number, 1);
  SmallVector<int64_t> shape(typeOf(tokens).getShape().drop_back());
  return tensor::CollapseShapeOp::create(
      builder, loc, RankedTensorType::get(shape, builder.getF32Type()), one,
      ArrayRef<ReassociationIndices>{{0}, {1, 2}});
}

Value LayerImporter::spread(const spec::Spread &op, Value input) {
  Location at = loc(layer.location);
  int64_t width = typeOf(input).getDimSize(2);
  SmallVector<std::pair<std::string, int64_t>> roles;
  for (int64_t i = 1; i < op.copies; ++i)
    roles.push_back({std::to_string(i) + ".weight", width});
  Value matrix = stack(at, "weight", roles, width, /*prefix=*/"");
  if (!matrix)
    return {};
  SmallVector<int64_t> shape(typeOf(input).getShape());
  shape.back() = (op.copies - 1) * width;
  Value all = LinearOp::create(
      builder, at, RankedTensorType::get(shape, builder.getF32Type()), input,
      matrix, /*bias=*/Value(), /*residual=*/Value(),
      attune::Activation::Identity, /*gated=*/false, /*scale=*/nullptr);
  Value square = meanSquare(builder, at, input);
  SmallVector<Value> copies = {input};
  for (int64_t i = 0; i + 1 < op.copies; ++i)
    copies.push_back(madeAsLarge(builder, at,
                                 columns(builder, at, all, i * width, width),
                                 square, op.eps));
  return joinChannels(builder, at, copies);
}

Value LayerImporter::unite(const spec::Unite &op, Value input) {
  Location at = loc(layer.location);
  int64_t width = typeOf(input).getDimSize(2) / op.copies;
  Value sum = columns(builder, at, input, 0, width);
  Value square = meanSquare(builder, at, sum);
  for (int64_t i = 1; i < op.copies; ++i) {
    Value copy = stateProjection(at, std::to_string(i),
                                 columns(builder, at, input, i * width, width),
                                 width, /*bias=*/false);
    if (!copy)
      return {};
    copy = madeAsLarge(builder, at, copy, square, op.eps);
    sum = arith::AddFOp::create(builder, at, sum, copy);
  }
  return addScaled(at, /*x=*/Value(), sum, 1 / double(op.copies));
}

Value LayerImporter::layerInputs(const spec::LayerInputs &op, Value input,
                                 Value ids) {
  Location at = loc(layer.location);
  int64_t channels = op.blocks * op.width;
  Value table = weight(at, "weight", op.vocab, channels);
  Value matrix =
      weight(at, "projection.weight", channels, typeOf(input).getDimSize(2));
  if (!table || !matrix)
    return {};
  SmallVector<int64_t> shape(typeOf(input).getShape());
  shape.back() = channels;
  auto type = RankedTensorType::get(shape, builder.getF32Type());
  Value all = LinearOp::create(
      builder, at, type, input, matrix, /*bias=*/Value(), /*residual=*/Value(),
      attune::Activation::Identity, /*gated=*/false,
      op.scale == 1 ? FloatAttr() : builder.getF32FloatAttr(float(op.scale)));
  Value parts = splitHeads(builder, at, all, op.blocks, op.width, 0);
  parts = norm(op.norm, "norm.", parts);
  if (!parts)
    return {};
  all = MergeHeadsOp::create(builder, at, type, parts);
  all = EmbeddingOp::create(builder, at, type, ids, table, all,
                            builder.getF32FloatAttr(float(op.tableScale)),
                            builder.getI64IntegerAttr(0));
  return addScaled(at, /*x=*/Value(), all, std::sqrt(0.5));
}

/// tanh of what the router gives for a copy.
Value LayerImporter::routeCopy(const spec::Block &block, Value copy) {
  Value read = norm(block.norm, "alternating.norm.", copy);
  return read ? stateProjection(loc(block.alternating->location),
                                "alternating.router", read,
                                block.alternating->copies, /*bias=*/false,
                                /*residual=*/Value(), attune::Activation::Tanh)
              : Value();
}

bool LayerImporter::predictCopies(const spec::Block &block,
                                  SmallVectorImpl<Value> &copies) {
  const spec::Alternating &form = *block.alternating;
  Location at = loc(form.location);
  Value routed = routeCopy(block, copies[form.active]);
  Value by = routed ? stateProjection(at, "alternating.predict", routed,
                                      form.copies * form.copies,
                                      /*bias=*/false)
                    : Value();
  if (!by)
    return false;
  SmallVector<Value> predicted;
  for (int64_t o = 0; o < form.copies; ++o) {
    SmallVector<Value> operands = {copies[o]};
    llvm::append_range(operands, copies);
    for (int64_t i = 0; i < form.copies; ++i)
      operands.push_back(column(builder, at, by, o * form.copies + i));
    predicted.push_back(
        pointwise(builder, at, operands,
                  [&](OpBuilder &b, Location at, ValueRange args) -> Value {
                    Value sum = args[0];
                    for (int64_t i = 0; i < form.copies; ++i)
                      sum = arith::AddFOp::create(
                          b, at, sum,
                          arith::MulFOp::create(b, at, args[1 + i],
                                                args[1 + form.copies + i]));
                    return sum;
                  }));
  }
  copies = predicted;
  return true;
}

bool LayerImporter::correctCopies(const spec::Block &block, Value computed,
                                  SmallVectorImpl<Value> &copies) {
  const spec::Alternating &form = *block.alternating;
  Location at = loc(form.location);
  Value routed = routeCopy(block, computed);
  Value matrix =
      weight(at, "alternating.correct.weight", form.copies, form.copies);
  if (!routed || !matrix)
    return false;
  if (form.clip) {
    matrix = arith::MaximumFOp::create(builder, at, matrix,
                                       splatLike(at, matrix, -*form.clip));
    matrix = arith::MinimumFOp::create(builder, at, matrix,
                                       splatLike(at, matrix, *form.clip));
  }
  Value by = LinearOp::create(builder, at, routed.getType(), routed, matrix,
                              /*bias=*/Value(), /*residual=*/Value(),
                              attune::Activation::Identity, /*gated=*/false,
                              /*scale=*/nullptr);
  Value before = copies[form.active];
  for (auto [i, copy] : llvm::enumerate(copies))
    copy =
        pointwise(builder, at,
                  {copy, computed, before, column(builder, at, by, int64_t(i))},
                  [](OpBuilder &b, Location at, ValueRange args) -> Value {
                    Value change =
                        arith::SubFOp::create(b, at, args[1], args[2]);
                    Value more = arith::MulFOp::create(b, at, change, args[3]);
                    more = arith::AddFOp::create(b, at, more, change);
                    return arith::AddFOp::create(b, at, args[0], more);
                  });
  return true;
}

/// What a block's own inputs add to all copies but the first.
Value LayerImporter::ownInputs(const spec::Block &block, Value computed) {
  const spec::Alternating &form = *block.alternating;
  Location at = loc(form.location);
  int64_t width = typeOf(computed).getDimSize(2);
  if (form.scaled) {
    Value by = weight(at, "alternating.scale", width, 0);
    if (!by)
      return {};
    computed =
        pointwise(builder, at, {computed, by},
                  [](OpBuilder &b, Location at, ValueRange args) -> Value {
                    return arith::MulFOp::create(b, at, args[0], args[1]);
                  });
  }
  Value gate =
      stateProjection(at, "alternating.gate", computed, form.inputs,
                      /*bias=*/false, Value(), toActivation(form.activation));
  if (!gate)
    return {};
  // The channels of this block, wherever it stands.
  Value first = arith::MulIOp::create(
      builder, at, scope.number,
      arith::ConstantIndexOp::create(builder, at, form.inputs));
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, at, gate);
  SmallVector<OpFoldResult> offsets(3, builder.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(3, builder.getIndexAttr(1));
  offsets[2] = first;
  Value own = tensor::ExtractSliceOp::create(
      builder, at, typeOf(gate), scope.layerInputs, offsets, sizes, strides);
  gate = arith::MulFOp::create(builder, at, gate, own);
  Value up = stateProjection(at, "alternating.up", gate, width, /*bias=*/false);
  return up ? norm(block.norm, "alternating.up_norm.", up) : Value();
}

Value LayerImporter::alternating(const spec::Block &block, Value input) {
  const spec::Alternating &form = *block.alternating;
  Location at = loc(form.location);
  int64_t width = typeOf(input).getDimSize(2) / form.copies;
  SmallVector<Value> copies;
  for (int64_t i = 0; i < form.copies; ++i)
    copies.push_back(columns(builder, at, input, i * width, width));
  if (!predictCopies(block, copies))
    return {};
  Value computed = sublayers(block, copies[form.active]);
  if (!computed || !correctCopies(block, computed, copies))
    return {};
  if (form.inputs) {
    Value more = ownInputs(block, copies[form.active]);
    if (!more)
      return {};
    for (Value &copy : llvm::drop_begin(copies))
      copy = arith::AddFOp::create(builder, at, copy, more);
  }
  return joinChannels(builder, at, copies);
}

Value LayerImporter::besideLaurel(const spec::Block &block, Value x) {
  Location at = loc(layer.location);
  int64_t width = typeOf(x).getDimSize(2);
  Value read = norm(block.norm, "norm1.", x);
  if (!read)
    return {};
  Value attended =
      attention(*block.attention, "attention.", read, width, Value());
  if (attended)
    attended = norm(block.norm, "norm1_post.", attended);
  Value thin = stateProjection(at, "laurel_a", read, block.laurelRank,
                               /*bias=*/false);
  if (thin)
    thin = stateProjection(at, "laurel_b", thin, width, /*bias=*/false);
  if (thin)
    thin = norm(block.norm, "laurel_norm.", thin);
  if (!attended || !thin)
    return {};
  return pointwise(builder, at, {x, attended, read, thin},
                   [](OpBuilder &b, Location at, ValueRange args) -> Value {
                     Value left =
                         arith::AddFOp::create(b, at, args[0], args[1]);
                     Value right =
                         arith::AddFOp::create(b, at, args[2], args[3]);
                     Value half = arith::ConstantOp::create(
                         b, at, b.getF32FloatAttr(float(std::sqrt(0.5))));
                     Value sum = arith::AddFOp::create(b, at, left, right);
                     return arith::MulFOp::create(b, at, sum, half);
                   });
}

/// The number that a share of a standard normal distribution lies below.
static double normalQuantile(double share) {
  double low = -40, high = 40;
  for (int i = 0; i < 200; ++i) {
    double middle = (low + high) / 2;
    (std::erfc(-middle / std::sqrt(2.0)) / 2 < share ? low : high) = middle;
  }
  return (low + high) / 2;
}

Value LayerImporter::sparseGate(Location at, double sparsity, Value gate) {
  Value mean =
      meanOfRows(builder, at, gate, [](OpBuilder &, Location, ValueRange args) {
        return args[0];
      });
  Value variance =
      meanOfRows(builder, at, {gate, mean},
                 [](OpBuilder &b, Location at, ValueRange args) -> Value {
                   Value less = arith::SubFOp::create(b, at, args[0], args[1]);
                   return arith::MulFOp::create(b, at, less, less);
                 });
  Value least = pointwise(
      builder, at, {mean, variance},
      [&](OpBuilder &b, Location at, ValueRange args) -> Value {
        Value root = math::SqrtOp::create(b, at, args[1]);
        Value times = arith::ConstantOp::create(
            b, at, b.getF32FloatAttr(float(normalQuantile(sparsity))));
        root = arith::MulFOp::create(b, at, root, times);
        return arith::AddFOp::create(b, at, args[0], root);
      });
  return pointwise(builder, at, {gate, least},
                   [](OpBuilder &b, Location at, ValueRange args) -> Value {
                     Value less =
                         arith::SubFOp::create(b, at, args[0], args[1]);
                     Value zero =
                         arith::ConstantOp::create(b, at, b.getF32FloatAttr(0));
                     return arith::MaximumFOp::create(b, at, less, zero);
                   });
}

Value LayerImporter::sparseFFN(const spec::FFN &ffn, const std::string &role,
                               Value input, int64_t width, Value residual) {
  Location at = loc(ffn.location);
  Value gate =
      stateProjection(at, role + "gate", input, ffn.width, /*bias=*/false);
  Value up = stateProjection(at, role + "up", input, ffn.width, /*bias=*/false);
  if (!gate || !up)
    return {};
  gate = sparseGate(at, ffn.sparsity, gate);
  gate = ActivationOp::create(builder, at, gate, toActivation(ffn.activation));
  gate = arith::MulFOp::create(builder, at, gate, up);
  return stateProjection(at, role + "down", gate, width, /*bias=*/false,
                         residual);
}

/// xIELU of `x`, with the learned numbers [1, 1] of its two sides.
static Value xielu(OpBuilder &builder, Location loc, Value x, Value positive,
                   Value negative) {
  auto activated = [&](Value value, attune::Activation function) -> Value {
    return ActivationOp::create(builder, loc, value, function);
  };
  Value low = pointwise(
      builder, loc, x, [](OpBuilder &b, Location at, ValueRange args) -> Value {
        return arith::MinimumFOp::create(b, at, args[0],
                                         numberOf(b, at, -1e-6));
      });
  Value operands[] = {x, activated(low, attune::Activation::Elu),
                      activated(positive, attune::Activation::Softplus),
                      activated(negative, attune::Activation::Softplus)};
  return pointwise(
      builder, loc, operands,
      [](OpBuilder &b, Location at, ValueRange args) -> Value {
        Value half = numberOf(b, at, 0.5);
        auto mul = [&](Value x, Value y) -> Value {
          return arith::MulFOp::create(b, at, x, y);
        };
        Value above = mul(mul(args[2], args[0]), args[0]);
        Value below = mul(arith::SubFOp::create(b, at, args[1], args[0]),
                          arith::AddFOp::create(b, at, half, args[3]));
        Value isAbove = arith::CmpFOp::create(b, at, arith::CmpFPredicate::OGT,
                                              args[0], numberOf(b, at, 0));
        Value bent = arith::SelectOp::create(b, at, isAbove, above, below);
        return arith::AddFOp::create(b, at, bent, mul(half, args[0]));
      });
}

Value LayerImporter::xieluFFN(const spec::FFN &ffn, const std::string &role,
                              Value input, int64_t width, Value residual) {
  Location at = loc(ffn.location);
  Value up = stateProjection(at, role + "up", input, ffn.width, ffn.bias);
  Value positive = weight(at, role + "alpha_p", 1, 1);
  Value negative = weight(at, role + "alpha_n", 1, 1);
  if (!up || !positive || !negative)
    return {};
  return stateProjection(at, role + "down",
                         xielu(builder, at, up, positive, negative), width,
                         ffn.bias, residual);
}

//===----------------------------------------------------------------------===//
// Keys and values of other blocks
//===----------------------------------------------------------------------===//

void LayerImporter::lend(Location at, const AttentionOperands &operands) {
  auto put = [&](Value own, Value &place) {
    SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, at, own);
    SmallVector<OpFoldResult> offsets(4, builder.getIndexAttr(0));
    SmallVector<OpFoldResult> strides(4, builder.getIndexAttr(1));
    place = tensor::InsertSliceOp::create(builder, at, own, place, offsets,
                                          sizes, strides);
  };
  put(operands.key, scope.lentKeys);
  put(operands.value, scope.lentValues);
}

bool LayerImporter::borrowedOperands(const spec::Attention &attention,
                                     StringRef prefix, Value input,
                                     AttentionOperands &operands) {
  Location at = loc(attention.location);
  operands.query = queryHeads(attention, prefix, input);
  if (!operands.query)
    return false;
  operands.mask = scope.maskOfAttention();
  operands.bidirectional = scope.bidirectional;
  operands.lengths = scope.lengths;
  operands.blocks = scope.blocks;
  auto normed = [&] {
    return normHeads(attention, (prefix + "q_norm.").str(), operands.query,
                     attention.heads);
  };
  if (!attention.qkNormAfterRotary && !normed())
    return false;
  scaleByLayer(attention, operands.query);
  turn(attention, operands);
  if (attention.qkNormAfterRotary && !normed())
    return false;
  operands.key = scope.lentKeys;
  operands.value = scope.lentValues;
  if (!scope.past)
    return true;
  // The lender is alone in its cache.
  bool unequal = !scope.past.getType().isIndex();
  Value first = arith::ConstantIndexOp::create(builder, at, 0);
  for (Value *cache : {&operands.key, &operands.value})
    *cache = readCache(builder, at, *cache, first, scope.length, unequal);
  return true;
}

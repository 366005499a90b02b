//===- Experts.cpp - Mixtures of experts ------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LayerImporter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace attune;

static RankedTensorType withWidth(Value value, int64_t width, Type element) {
  SmallVector<int64_t> shape(typeOf(value).getShape());
  shape.back() = width;
  return RankedTensorType::get(shape, element);
}

static RouterScoring toScoring(const spec::Router &router) {
  if (router.scores == spec::RouterScores::Sigmoid)
    return RouterScoring::Sigmoid;
  if (router.scores == spec::RouterScores::SparseMixer)
    return RouterScoring::SparseMixer;
  return router.softmaxAfter ? RouterScoring::TopSoftmax
                             : RouterScoring::Softmax;
}

using Roles = SmallVector<std::pair<std::string, int64_t>>;

/// The roles of an expert's first matrix, or with `end` ".bias" of its biases,
/// and what they are called together.
static std::pair<std::string, Roles>
upRoles(const spec::MoE &moe, const std::string &expert, int64_t width,
        const std::string &end = ".weight") {
  if (!moe.gated)
    return {"up" + end, {{expert + "up" + end, width}}};
  return {"gate_up" + end,
          {{expert + "gate" + end, width}, {expert + "up" + end, width}}};
}

Value LayerImporter::feedForward(const spec::Block &block, Value input,
                                 int64_t width, Value residual, double scale) {
  if (!block.moe)
    return ffn(*block.ffn, "ffn.", input, width, residual, scale);
  if (scale == 1)
    return moe(*block.moe, "moe.", input, width, residual);
  Value result = moe(*block.moe, "moe.", input, width, /*residual=*/Value());
  return result ? addScaled(loc(block.moe->location), residual, result, scale)
                : Value();
}

/// A shared expert with a gate is a mixture of one, whose router scores it with
/// a sigmoid; without a gate it is a feed-forward layer.
Value LayerImporter::sharedExpert(const spec::MoE &moe,
                                  const std::string &prefix, Value input,
                                  int64_t width, Value residual) {
  const spec::SharedExpert &shared = *moe.shared;
  if (!shared.gate) {
    spec::FFN ffn;
    ffn.width = shared.width;
    ffn.activation = moe.activation;
    ffn.gated = moe.gated;
    ffn.bias = false;
    ffn.location = moe.location;
    return this->ffn(ffn, prefix + "shared.", input, width, residual);
  }
  Location at = loc(moe.location);
  int64_t outer = typeOf(input).getShape().back();
  Value gate = weight(at, prefix + "shared_gate.weight", 1, outer);
  auto [name, roles] = upRoles(moe, "", shared.width);
  Value up = stack(at, name, roles, outer, prefix + "shared.", /*parts=*/1);
  Value down = stack(at, "down.weight", {{"down.weight", width}}, shared.width,
                     prefix + "shared.", /*parts=*/1);
  if (!gate || !up || !down)
    return {};
  Type f32 = builder.getF32Type();
  Value logit = LinearOp::create(
      builder, at, withWidth(input, 1, f32), input, gate, /*bias=*/Value(),
      /*residual=*/Value(), attune::Activation::Identity, /*gated=*/false,
      /*scale=*/nullptr);
  auto choice = RouterOp::create(
      builder, at, withWidth(input, 1, builder.getI64Type()),
      withWidth(input, 1, f32), logit, /*bias=*/Value(), RouterScoring::Sigmoid,
      /*groups=*/1, /*active_groups=*/1, GroupScore::Max, /*renormalise=*/false,
      APFloat(0.0f), APFloat(1.0f));
  return MoEOp::create(builder, at,
                       withWidth(input, width, typeOf(input).getElementType()),
                       input, choice.getExperts(), choice.getWeights(), up,
                       down, /*up_bias=*/Value(), /*down_bias=*/Value(),
                       residual, moe.gated, toActivation(moe.activation),
                       /*limit=*/FloatAttr(), APFloat(0.0f));
}

/// Rows times one f32 each.
static Value scaledRows(OpBuilder &builder, Location at, Value rows,
                        Value factors) {
  auto type = typeOf(rows);
  auto rank = static_cast<unsigned>(type.getRank());
  AffineMap each = builder.getMultiDimIdentityMap(rank);
  AffineMap first = each.dropResult(rank - 1).insertResult(
      builder.getAffineConstantExpr(0), rank - 1);
  Value empty = tensor::EmptyOp::create(
      builder, at, tensor::getMixedSizes(builder, at, rows),
      type.getElementType());
  return linalg::GenericOp::create(
             builder, at, type, ValueRange{rows, factors}, empty,
             ArrayRef<AffineMap>{each, first, each},
             SmallVector<utils::IteratorType>(rank,
                                              utils::IteratorType::parallel),
             [](OpBuilder &b, Location at, ValueRange values) {
               Value x = values[0];
               Type narrow = x.getType();
               if (!narrow.isF32())
                 x = arith::ExtFOp::create(b, at, b.getF32Type(), x);
               x = arith::MulFOp::create(b, at, x, values[1]);
               if (!narrow.isF32())
                 x = arith::TruncFOp::create(b, at, narrow, x);
               linalg::YieldOp::create(b, at, x);
             })
      .getResult(0);
}

Value LayerImporter::moe(const spec::MoE &moe, StringRef prefix, Value input,
                         int64_t width, Value residual) {
  Location at = loc(moe.location);
  std::string role = prefix.str();
  int64_t outer = typeOf(input).getShape().back();
  if (moe.shared) {
    residual = sharedExpert(moe, role, input, width, residual);
    if (!residual)
      return {};
  }
  const spec::Router &router = moe.router;
  Value matrix = weight(at, role + "router.weight", moe.experts, outer);
  Value bias, logitBias, upBias, downBias;
  if (router.selectBias)
    bias = weight(at, role + "router.bias", moe.experts, 0);
  if (router.logitBias)
    logitBias = weight(at, role + "router.logit_bias", moe.experts, 0);
  if (moe.bias) {
    auto [name, roles] = upRoles(moe, "experts.{e}.", moe.width, ".bias");
    upBias = stack(at, "experts." + name, roles, 0, prefix, moe.experts);
    downBias =
        stack(at, "experts.down.bias", {{"experts.{e}.down.bias", width}}, 0,
              prefix, moe.experts);
  }
  auto [name, roles] = upRoles(moe, "experts.{e}.", moe.width);
  Value up = stack(at, "experts." + name, roles, outer, prefix, moe.experts);
  Value down =
      stack(at, "experts.down.weight", {{"experts.{e}.down.weight", width}},
            moe.width, prefix, moe.experts);
  if (!matrix || (router.selectBias && !bias) ||
      (router.logitBias && !logitBias) || !up || !down ||
      (moe.bias && (!upBias || !downBias)))
    return {};
  Type f32 = builder.getF32Type();
  Value logits = LinearOp::create(
      builder, at, withWidth(input, moe.experts, f32), input, matrix, logitBias,
      /*residual=*/Value(), attune::Activation::Identity,
      /*gated=*/false, /*scale=*/nullptr);
  GroupScore score = router.groupScore == spec::GroupScore::TopTwo
                         ? GroupScore::TopTwo
                         : GroupScore::Max;
  auto choice = RouterOp::create(
      builder, at, withWidth(input, moe.active, builder.getI64Type()),
      withWidth(input, moe.active, f32), logits, bias, toScoring(router),
      static_cast<uint64_t>(router.groups),
      static_cast<uint64_t>(router.activeGroups), score, router.renormalise,
      APFloat(float(router.eps)), APFloat(float(router.scale)));
  Value read = input, shares = choice.getWeights();
  if (moe.scaleInput) {
    read = scaledRows(builder, at, input, shares);
    shares = splatLike(at, shares, 1);
  }
  return MoEOp::create(
      builder, at, withWidth(input, width, typeOf(input).getElementType()),
      read, choice.getExperts(), shares, up, down, upBias, downBias, residual,
      moe.gated, toActivation(moe.activation),
      moe.limit ? builder.getF32FloatAttr(float(*moe.limit)) : FloatAttr(),
      APFloat(float(moe.upOffset)));
}

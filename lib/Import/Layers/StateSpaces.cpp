//===- StateSpaces.cpp - State spaces, short convolutions -------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StateTokens.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <cmath>

using namespace mlir;
using namespace attune;

const spec::Mamba *attune::getMamba(const spec::Layer &layer) {
  if (const auto *block = std::get_if<spec::Block>(&layer.op))
    return block->mamba ? &*block->mamba : nullptr;
  return std::get_if<spec::Mamba>(&layer.op);
}

const spec::ShortConv *attune::getShortConv(const spec::Layer &layer) {
  const auto *block = std::get_if<spec::Block>(&layer.op);
  return block && block->shortConv ? &*block->shortConv : nullptr;
}

const spec::DeltaRule *attune::getDeltaRule(const spec::Layer &layer) {
  const auto *block = std::get_if<spec::Block>(&layer.op);
  return block && block->deltaRule ? &*block->deltaRule : nullptr;
}

const spec::TimeMix *attune::getTimeMix(const spec::Layer &layer) {
  const auto *block = std::get_if<spec::Block>(&layer.op);
  return block && block->timeMix ? &*block->timeMix : nullptr;
}

bool attune::shiftsFFN(const spec::Layer &layer) {
  const auto *block = std::get_if<spec::Block>(&layer.op);
  return block && block->ffn && block->ffn->shift;
}

bool attune::keepsStates(const spec::Layer &layer) {
  return getMamba(layer) || getShortConv(layer) || getDeltaRule(layer) ||
         getTimeMix(layer) || shiftsFFN(layer);
}

Value LayerImporter::stateProjection(Location at, StringRef role, Value from,
                                     int64_t rows, bool bias, Value residual,
                                     attune::Activation activation) {
  Value matrix = weight(at, (role + ".weight").str(), rows,
                        typeOf(from).getShape().back());
  Value biases =
      bias && matrix ? weight(at, (role + ".bias").str(), rows, 0) : Value();
  if (!matrix || (bias && !biases))
    return {};
  SmallVector<int64_t> shape(typeOf(from).getShape());
  shape.back() = rows;
  auto type = RankedTensorType::get(shape, typeOf(from).getElementType());
  return LinearOp::create(builder, at, type, from, matrix, biases, residual,
                          activation, /*gated=*/false, /*scale=*/nullptr);
}

Value LayerImporter::cachedConv(Location at, StringRef role, Value x,
                                int64_t kernel, bool bias,
                                attune::Activation activation) {
  int64_t channels = typeOf(x).getShape().back();
  Value taps = weight(at, (role + ".weight").str(), channels, kernel);
  Value tapsBias =
      bias ? weight(at, (role + ".bias").str(), channels, 0) : Value();
  if (!taps || (bias && !tapsBias))
    return {};
  Value keep = scope.mask ? tokensToKeep(builder, at, scope.mask) : Value();
  OpFoldResult tokens = tensor::getMixedSize(builder, at, x, 1);
  if (scope.convCache)
    x = afterCached(builder, at, x, scope, scope.convCache);
  x = CausalConvOp::create(builder, at, x, taps, tapsBias, keep, activation);
  if (scope.convCache)
    x = rows(builder, at, x, builder.getIndexAttr(kernel - 1), tokens);
  return x;
}

Value LayerImporter::mamba(const spec::Mamba &mamba, StringRef prefix,
                           Value input, int64_t width, Value residual,
                           double scale) {
  Location at = loc(mamba.location);
  if (scale != 1) {
    Value result = this->mamba(mamba, prefix, input, width, Value());
    return result ? addScaled(at, residual, result, scale) : Value();
  }
  // What the convolution reads, and the gate of the result, which Mamba-2 has
  // first.
  int64_t inner = mamba.inner, convolved = spec::numConvolved(mamba);
  Value both = stateProjection(at, (prefix + "in_proj").str(), input,
                               inner + convolved, mamba.bias);
  if (!both)
    return {};
  Value x = columns(builder, at, both, mamba.heads ? inner : 0, convolved);
  Value gate = columns(builder, at, both, mamba.heads ? 0 : inner, inner);
  x = cachedConv(at, (prefix + "conv1d").str(), x, mamba.kernel, mamba.convBias,
                 attune::Activation::Silu);
  if (!x)
    return {};
  auto lastType = RankedTensorType::get(
      {typeOf(input).getDimSize(0), mamba.states, inner}, builder.getF32Type());
  Value result = mamba.heads
                     ? scanHeads(mamba, prefix, input, x, gate, lastType)
                     : scanChannels(mamba, prefix, x, gate, lastType);
  if (!result)
    return {};
  return stateProjection(at, (prefix + "out_proj").str(), result, width,
                         mamba.bias, residual);
}

/// The scan of `x` from the states in `cache`, which are replaced.
static Value scan(OpBuilder &builder, Location at, const LayerScope &scope,
                  Value &cache, Type lastType, Value x, Value step, Value decay,
                  Value b, Value c, Value skip, Value gate) {
  Value before;
  if (cache)
    before = readState(builder, at, cache, scope.index, scope.past);
  auto scan = SelectiveScanOp::create(builder, at, x.getType(), lastType, x,
                                      step, decay, b, c, skip, gate, before);
  if (cache)
    cache =
        writeState(builder, at, cache, scope.index, scope.past, scan.getLast());
  return scan.getResult();
}

Value LayerImporter::scanChannels(const spec::Mamba &mamba, StringRef prefix,
                                  Value x, Value gate, Type lastType) {
  Location at = loc(mamba.location);
  int64_t inner = mamba.inner, states = mamba.states, rank = mamba.rank;
  Value decay = weight(at, (prefix + "A_log").str(), inner, states);
  Value skip = weight(at, (prefix + "D").str(), inner, 0);
  // Step sizes, what goes into the states and what is read from them.
  Value chosen = stateProjection(at, (prefix + "x_proj").str(), x,
                                 rank + 2 * states, /*bias=*/false);
  if (!decay || !skip || !chosen)
    return {};
  int64_t first = 0;
  auto part = [&](StringRef name, int64_t count) -> Value {
    Value value = columns(builder, at, chosen, first, count);
    first += count;
    return mamba.norm
               ? norm(*mamba.norm, (prefix + name + "_norm.").str(), value)
               : value;
  };
  Value low = part("dt", rank), b = part("b", states), c = part("c", states);
  if (!low || !b || !c)
    return {};
  Value step = stateProjection(at, (prefix + "dt_proj").str(), low, inner,
                               /*bias=*/true);
  if (!step)
    return {};
  return scan(builder, at, scope, scope.stateCache, lastType, x, step, decay, b,
              c, skip, gate);
}

Value LayerImporter::scanHeads(const spec::Mamba &mamba, StringRef prefix,
                               Value input, Value convolved, Value gate,
                               Type lastType) {
  Location at = loc(mamba.location);
  int64_t inner = mamba.inner, all = mamba.groups * mamba.states;
  Value decay = weight(at, (prefix + "A_log").str(), mamba.heads, 0);
  Value skip = weight(at, (prefix + "D").str(), mamba.heads, 0);
  Value step = stateProjection(at, (prefix + "dt_proj").str(), input,
                               mamba.heads, /*bias=*/true);
  if (!decay || !skip || !step)
    return {};
  Value x = columns(builder, at, convolved, 0, inner);
  Value b = columns(builder, at, convolved, inner, all);
  Value c = columns(builder, at, convolved, inner + all, all);
  Value y = scan(builder, at, scope, scope.stateCache, lastType, x, step, decay,
                 b, c, skip, gate);
  if (!mamba.outNorm)
    return y;
  std::string role = (prefix + "norm.").str();
  int64_t parts = mamba.outNormParts;
  if (parts == 1)
    return norm(*mamba.outNorm, role, y);
  auto type = typeOf(y);
  auto heads = RankedTensorType::get(
      {type.getDimSize(0), parts, type.getDimSize(1), inner / parts},
      type.getElementType());
  Value split = SplitHeadsOp::create(builder, at, heads, y, 0);
  split = norm(*mamba.outNorm, role, split, parts);
  return split ? MergeHeadsOp::create(builder, at, type, split).getResult()
               : Value();
}

Value LayerImporter::shortConv(const spec::ShortConv &conv, StringRef prefix,
                               Value input, int64_t width, Value residual,
                               double scale) {
  Location at = loc(conv.location);
  if (scale != 1) {
    Value result = shortConv(conv, prefix, input, width, Value());
    return result ? addScaled(at, residual, result, scale) : Value();
  }
  Value thirds = stateProjection(at, (prefix + "in_proj").str(), input,
                                 3 * width, conv.bias);
  if (!thirds)
    return {};
  auto third = [&](int64_t number) {
    return columns(builder, at, thirds, number * width, width);
  };
  Value x = arith::MulFOp::create(builder, at, third(0), third(2));
  x = cachedConv(at, (prefix + "conv").str(), x, conv.kernel, conv.bias,
                 attune::Activation::Identity);
  if (!x)
    return {};
  x = arith::MulFOp::create(builder, at, third(1), x);
  return stateProjection(at, (prefix + "out_proj").str(), x, width, conv.bias,
                         residual);
}

Value LayerImporter::normAndGate(const spec::DeltaRule &rule, StringRef prefix,
                                 Value input, Value result) {
  Location at = loc(rule.location);
  auto type = typeOf(result);
  auto heads = RankedTensorType::get(
      {type.getDimSize(0), rule.heads, type.getDimSize(1), rule.valueDim},
      type.getElementType());
  Value split = SplitHeadsOp::create(builder, at, heads, result, 0);
  split = norm(rule.norm, (prefix + "norm.").str(), split);
  if (rule.gateRank)
    input = stateProjection(at, (prefix + "gate_down").str(), input,
                            rule.gateRank, /*bias=*/false);
  if (!split || !input)
    return {};
  Value gate = stateProjection(
      at, (prefix + "gate").str(), input, type.getDimSize(2),
      /*bias=*/false, Value(), toActivation(rule.gateActivation));
  if (!gate)
    return {};
  Value normed = MergeHeadsOp::create(builder, at, type, split);
  return arith::MulFOp::create(builder, at, normed, gate);
}

Value LayerImporter::deltaRule(const spec::DeltaRule &rule, StringRef prefix,
                               Value input, int64_t width, Value residual,
                               double scale) {
  Location at = loc(rule.location);
  if (scale != 1) {
    Value result = deltaRule(rule, prefix, input, width, Value());
    return result ? addScaled(at, residual, result, scale) : Value();
  }
  int64_t keys = rule.keyHeads * rule.keyDim,
          values = rule.heads * rule.valueDim;
  Value all = stateProjection(at, (prefix + "in_proj").str(), input,
                              spec::numConvolved(rule), /*bias=*/false);
  if (all)
    all = cachedConv(at, (prefix + "conv1d").str(), all, rule.kernel,
                     /*bias=*/false, attune::Activation::Silu);
  Value low = rule.stepRank
                  ? stateProjection(at, (prefix + "step_down").str(), input,
                                    rule.stepRank, /*bias=*/false)
                  : input;
  if (!low)
    return {};
  Value step = stateProjection(at, (prefix + "step").str(), low,
                               spec::numSteps(rule), /*bias=*/true);
  Value beta = stateProjection(at, (prefix + "beta").str(), input, rule.heads,
                               /*bias=*/false);
  Value decay = weight(at, (prefix + "A_log").str(), rule.heads, 0);
  if (!all || !step || !beta || !decay)
    return {};
  Value before;
  if (scope.stateCache)
    before = readState(builder, at, scope.stateCache, scope.index, scope.past);
  Value value = columns(builder, at, all, 2 * keys, values);
  auto lastType = RankedTensorType::get(
      {typeOf(input).getDimSize(0), rule.keyDim, values}, builder.getF32Type());
  auto op = DeltaRuleOp::create(
      builder, at, value.getType(), lastType,
      columns(builder, at, all, 0, keys), columns(builder, at, all, keys, keys),
      value, step, decay, beta, before,
      builder.getF32FloatAttr(float(1 / std::sqrt(double(rule.keyDim)))),
      builder.getF32FloatAttr(float(rule.eps)));
  if (scope.stateCache)
    scope.stateCache = writeState(builder, at, scope.stateCache, scope.index,
                                  scope.past, op.getLast());
  Value result = normAndGate(rule, prefix, input, op.getResult());
  return result ? stateProjection(at, (prefix + "out_proj").str(), result,
                                  width, /*bias=*/false, residual)
                : Value();
}

Value LayerImporter::fadingRates(const spec::Attention &attention) {
  Location at = loc(attention.location);
  const spec::Fading &fading = *attention.linear->fading;
  double layers = double(fading.layers);
  int64_t heads = attention.heads;
  std::vector<float> logs;
  for (int64_t number : spec::numbersOf(layer)) {
    if (number >= fading.layers) {
      diags.error(layer.location, "is layer " + std::to_string(number) +
                                      " of " + std::to_string(fading.layers) +
                                      ", as its 'fading' says");
      return {};
    }
    double ofLayer = 1 - double(number) / (layers - 1 + 1e-5) + 1e-5;
    for (int64_t h = 1; h <= heads; ++h)
      logs.push_back(float(std::log(ofLayer) -
                           8.0 * double(h) / double(heads) * std::log(2.0)));
  }
  auto type = RankedTensorType::get({heads}, builder.getF32Type());
  auto tableType =
      RankedTensorType::get({layer.repeat, heads}, builder.getF32Type());
  if (layer.repeat == 1)
    return arith::ConstantOp::create(
        builder, at, DenseElementsAttr::get(type, ArrayRef(logs)));
  Value table = arith::ConstantOp::create(
      builder, at, DenseElementsAttr::get(tableType, ArrayRef(logs)));
  OpFoldResult zero = builder.getIndexAttr(0), one = builder.getIndexAttr(1);
  return tensor::ExtractSliceOp::create(
      builder, at, type, table, ArrayRef<OpFoldResult>{scope.index, zero},
      ArrayRef<OpFoldResult>{one, builder.getIndexAttr(heads)},
      ArrayRef<OpFoldResult>{one, one});
}

Value LayerImporter::fadingSums(const spec::Attention &attention,
                                StringRef prefix, Value input) {
  Location at = loc(attention.location);
  const spec::Fading &fading = *attention.linear->fading;
  int64_t keys = attention.heads * attention.headDim,
          values = attention.heads * attention.valueDim;
  Value all = project(attention, prefix, "qkv",
                      {{"q", keys}, {"k", keys}, {"v", values}}, input,
                      /*bias=*/false);
  if (!all)
    return {};
  all = ActivationOp::create(builder, at, all, toActivation(fading.activation));
  Value key = columns(builder, at, all, keys, keys);
  if (scope.mask)
    key = showTokens(builder, at, key, scope.mask);
  // A state space with heads whose steps are all 1: softplus(log(e - 1)).
  auto type = typeOf(all);
  SmallVector<Value> sizes;
  for (int64_t dim : {0, 1})
    if (type.isDynamicDim(dim))
      sizes.push_back(builder.createOrFold<tensor::DimOp>(at, all, dim));
  auto stepType = RankedTensorType::get(
      {type.getDimSize(0), type.getDimSize(1), attention.heads},
      builder.getF32Type());
  Value one = arith::ConstantOp::create(
      builder, at, builder.getF32FloatAttr(float(std::log(std::expm1(1.0)))));
  Value step = tensor::SplatOp::create(builder, at, one, stepType, sizes);
  Value skip =
      arith::ConstantOp::create(builder, at,
                                builder.getZeroAttr(RankedTensorType::get(
                                    {attention.heads}, builder.getF32Type())));
  auto lastType = RankedTensorType::get(
      {type.getDimSize(0), attention.headDim, values}, builder.getF32Type());
  Value rates = fadingRates(attention);
  if (!rates)
    return {};
  Value sums = scan(builder, at, scope, scope.keyCache, lastType,
                    columns(builder, at, all, 2 * keys, values), step, rates,
                    key, columns(builder, at, all, 0, keys), skip,
                    /*gate=*/Value());
  return norm(fading.norm, (prefix + "out_norm.").str(), sums);
}

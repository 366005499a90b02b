//===- Memory.cpp - Tensors passed between streams --------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EntryImporter.h"

#include "attune/Spec/Rings.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace attune;

/// Keys and values of another stream are made of its last layer's result.
LogicalResult EntryImporter::fillMemory(const spec::Attention &cross,
                                        LayerScope &scope) {
  for (const StreamState &other : streams) {
    if (&other == stream)
      break;
    if (other.spec.name != cross.source)
      continue;
    scope.memoryLengths = inputNamed(cross.lengthsInput);
    if (decode) { // its result was turned into keys and values before
      scope.memoryMask = other.mask;
      return success();
    }
    if (other.result.shape.size() != 3) {
      diags.error(cross.location, "attention to stream '" + cross.source +
                                      "' needs [batch, tokens, width] from it");
      return failure();
    }
    if (other.result.chunks || state.chunks) {
      diags.error(cross.location, "attention to another stream is between "
                                  "whole sequences, not chunks");
      return failure();
    }
    scope.memory = other.result.value;
    scope.memoryMask = other.mask;
    return success();
  }
  diags.error(cross.location, "attention to stream '" + cross.source +
                                  "', which does not stand before this one");
  return failure();
}

/// The function that puts one repeat's keys and values into the caches. Like a
/// block it has a frame of its own.
func::FuncOp EntryImporter::createCross(size_t number, Type keys, Type values) {
  const spec::Layer &layer = stream->spec.layers[number];
  const spec::Attention &cross = *getCrossAttention(layer);
  Location at = loc(cross.location);
  LayerScope scope;
  if (failed(fillMemory(cross, scope)))
    return {};
  SmallVector<Type> types = {builder.getIndexType(), scope.memory.getType(),
                             keys, values};
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(function);
  auto callee =
      func::FuncOp::create(builder, at, stream->symbols[number] + "_encode",
                           builder.getFunctionType(types, {keys, values}));
  callee.setPrivate();
  SmallVector<Location> locs(types.size(), at);
  Block *body = builder.createBlock(&callee.getBody(), {}, types, locs);
  scope.index = body->getArgument(0);
  scope.memory = body->getArgument(1);
  AttentionOperands operands;
  if (!LayerImporter(builder, shared.weights, layer, stream->symbols[number],
                     scope, diags)
           .crossKeysAndValues(cross, operands))
    return {};
  Value zero = arith::ConstantIndexOp::create(builder, at, 0);
  auto append = [&](Value rows, Value cache) -> Value {
    return CacheAppendOp::create(builder, at, cache.getType(), rows, cache,
                                 scope.index, zero);
  };
  Value results[] = {append(operands.key, body->getArgument(2)),
                     append(operands.value, body->getArgument(3))};
  func::ReturnOp::create(builder, at, results);
  return callee;
}

/// Keys and values of every attention to another stream: [repeats, batch,
/// heads, tokens, width], which is how a step reads a cache.
LogicalResult EntryImporter::importCrossCaches() {
  for (size_t n = 0; n < stream->spec.layers.size(); ++n) {
    const spec::Layer &layer = stream->spec.layers[n];
    const spec::Attention *cross = getCrossAttention(layer);
    if (!cross)
      continue;
    Location at = loc(cross->location);
    LayerScope scope;
    if (failed(fillMemory(*cross, scope)))
      return failure();
    auto sizeOf = [&](int64_t dim) -> Value {
      return tensor::DimOp::create(builder, at, scope.memory, dim);
    };
    Value batch = sizeOf(0), tokens = sizeOf(1);
    auto fresh = [&](int64_t width) -> Value {
      SmallVector<OpFoldResult> sizes = {builder.getIndexAttr(layer.repeat),
                                         batch,
                                         builder.getIndexAttr(cross->kvHeads),
                                         tokens, builder.getIndexAttr(width)};
      return tensor::EmptyOp::create(builder, at, sizes, shared.storage);
    };
    Value keys = fresh(cross->headDim);
    Value values = fresh(cross->valueDim ? cross->valueDim : cross->headDim);
    func::FuncOp callee = createCross(n, keys.getType(), values.getType());
    if (!callee)
      return failure();
    auto loop = scf::ForOp::create(builder, at, index(0), index(layer.repeat),
                                   index(1), ValueRange{keys, values});
    {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToEnd(loop.getBody());
      auto next = func::CallOp::create(
          builder, at, callee,
          ValueRange{loop.getInductionVar(), scope.memory,
                     loop.getRegionIterArg(0), loop.getRegionIterArg(1)});
      scf::YieldOp::create(builder, at, next.getResults());
    }
    crossCaches[n] = {loop.getResult(0), loop.getResult(1)};
  }
  return success();
}

/// Whether a block of the stream mixes its values with those of one before.
static bool mixesValues(const spec::Stream &stream) {
  auto mixes = [](const spec::Block &block) {
    return block.timeMix && block.timeMix->valueRank;
  };
  return llvm::any_of(stream.layers, [&](const spec::Layer &layer) {
    const auto *block = std::get_if<spec::Block>(&layer.op);
    return (block && mixes(*block)) || llvm::any_of(layer.cycle, mixes);
  });
}

/// Time mixing without a rank for values gives its own to those behind it.
void EntryImporter::fillValues(const spec::TimeMix &mix, LayerScope &scope) {
  if (mix.valueRank == 0 && !mixesValues(stream->spec))
    return;
  scope.givesValues = mix.valueRank == 0;
  int64_t channels = mix.heads * mix.valueDim;
  if (!firstValues ||
      cast<RankedTensorType>(firstValues.getType()).getDimSize(2) != channels) {
    Location at = loc(mix.location);
    SmallVector<OpFoldResult> sizes = {size(0), size(1),
                                       builder.getIndexAttr(channels)};
    firstValues =
        tensor::EmptyOp::create(builder, at, sizes, builder.getF32Type());
  }
  scope.firstValues = firstValues;
}

void EntryImporter::fillLent(const spec::Layer &layer, LayerScope &scope) {
  const spec::Attention *attention = getSelfAttention(layer);
  if (!attention)
    return;
  const std::vector<spec::Layer> &layers = stream->spec.layers;
  auto numberOf = [&](const spec::Layer *of) { return of - layers.data(); };
  if (const spec::Layer *lender = spec::findLender(stream->spec, *attention)) {
    size_t number = numberOf(lender);
    if (decode) {
      const LayerCaches &held =
          caches.at({number, spec::ringsOf(model, *lender)[0]});
      std::tie(scope.lentKeys, scope.lentValues) = std::tuple(held[0], held[1]);
    } else {
      std::tie(scope.lentKeys, scope.lentValues) = lent.at(number);
    }
    return;
  }
  if (decode || !spec::lendsKeys(stream->spec, layer))
    return;
  scope.lendsKeys = true;
  Location at = loc(attention->location);
  auto fresh = [&](int64_t width) -> Value {
    SmallVector<OpFoldResult> sizes = {size(0),
                                       builder.getIndexAttr(attention->kvHeads),
                                       size(1), builder.getIndexAttr(width)};
    return tensor::EmptyOp::create(builder, at, sizes, builder.getF32Type());
  };
  scope.lentKeys = fresh(attention->headDim);
  scope.lentValues = fresh(attention->valueDim);
}

LogicalResult EntryImporter::importLayerInputs(size_t number) {
  LayerScope scope;
  const spec::Layer &layer = stream->spec.layers[number];
  layerInputs = LayerImporter(builder, shared.weights, layer,
                              stream->symbols[number], scope, diags)
                    .layerInputs(std::get<spec::LayerInputs>(layer.op),
                                 state.value, inputs[stream->spec.input].value);
  return success(bool(layerInputs));
}

/// Biases that all repeats of a layer share are looked up once, ahead of them.
LogicalResult EntryImporter::sharedDiagonals(const spec::Layer &layer,
                                             LayerScope &scope) {
  const spec::Attention &attention = *getSelfAttention(layer);
  bool block = std::holds_alternative<spec::Block>(layer.op);
  std::string role =
      block ? "attention.relative_bias.weight" : "relative_bias.weight";
  for (const spec::WeightSource &source : spec::resolveWeight(layer, role))
    if (layer.repeat > 1 && source.tensor.find("{i}") != std::string::npos)
      return success(); // each repeat has its own
  // The layer may be a copy, with one block of a cycle.
  const std::vector<spec::Layer> &layers = stream->spec.layers;
  size_t number = 0;
  while (layers[number].name != layer.name ||
         layers[number].first != layer.first)
    ++number;
  Value &biases = diagonals[&layers[number]];
  if (!biases) {
    Location at = loc(attention.relativeBias->location);
    Value queries = tensor::DimOp::create(builder, at, state.value, 1);
    biases = LayerImporter(builder, shared.weights, layer,
                           stream->symbols[number], scope, diags)
                 .relativeBias(attention, queries, decode ? length : queries);
  }
  scope.diagonals = biases;
  return success(bool(biases));
}

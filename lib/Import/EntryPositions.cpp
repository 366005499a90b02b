//===- EntryPositions.cpp - Positions of an entry's tokens ------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EntryImporter.h"

#include "attune/Import/PositionMath.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace attune;

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

LogicalResult EntryImporter::importPositions(size_t number) {
  const spec::Layer &layer = stream->spec.layers[number];
  const auto &op = std::get<spec::Positions>(layer.op);
  Location at = loc(layer.location);
  Value positions = state.shape.size() == 3 ? countPositions(op, at) : Value();
  if (!positions) {
    diags.error(layer.location,
                "positions need a stream of [batch, tokens, width]");
    return failure();
  }
  // Of how many tokens there are is known, the table must have them all.
  if (op.count == spec::PositionCount::Tokens &&
      op.kind == spec::PositionKind::Learned) {
    const spec::Dim &tokens = state.shape[1];
    if (tokens.size < 0) {
      diags.error(layer.location, "a table of " + std::to_string(op.length) +
                                      " positions needs a fixed number of "
                                      "tokens; give the input's sizes as "
                                      "numbers");
      return failure();
    }
    if (tokens.size + op.offset > op.length) {
      diags.error(layer.location, "there are " + std::to_string(tokens.size) +
                                      " tokens, but the table of positions "
                                      "has only " +
                                      std::to_string(op.length - op.offset) +
                                      " rows for them");
      return failure();
    }
  }
  auto type = typeOf(state.value);
  if (op.kind == spec::PositionKind::Learned) {
    LayerScope scope;
    Value table = LayerImporter(builder, shared.weights, layer,
                                stream->symbols[number], scope, diags)
                      .weight(at, "weight", op.length, type.getDimSize(2));
    if (!table)
      return failure();
    state.value = EmbeddingOp::create(builder, at, type, positions, table,
                                      state.value, builder.getF32FloatAttr(1),
                                      builder.getI64IntegerAttr(op.offset));
    return success();
  }
  if (op.offset != 0) {
    Value sizes[] = {size(0), size(1)};
    Value offset = arith::ConstantOp::create(
        builder, at, builder.getI64IntegerAttr(op.offset));
    Value offsets = tensor::SplatOp::create(builder, at, offset,
                                            positions.getType(), sizes);
    positions = arith::AddIOp::create(builder, at, positions, offsets);
  }
  Sinusoid convention = Sinusoid::Interleaved;
  if (op.layout == spec::SinusoidLayout::Blocks)
    convention = Sinusoid::Blocks;
  else if (op.layout == spec::SinusoidLayout::Tensor2Tensor)
    convention = Sinusoid::Tensor2Tensor;
  state.value =
      SinusoidalOp::create(builder, at, type, positions, state.value,
                           SinusoidAttr::get(builder.getContext(), convention),
                           builder.getF64FloatAttr(10000.0));
  return success();
}

LogicalResult EntryImporter::rotaryTables(const spec::Rope &rope,
                                          LayerScope &scope) {
  const spec::RopeScaling &s = rope.scaling;
  if (s.type == "dynamic" || s.type == "llama3" || s.type == "yarn" ||
      s.type == "longrope")
    if (s.originalLength == 0 && model.context == 0) {
      diags.error(rope.location,
                  "rope scaling '" + s.type +
                      "' needs original_length or the model's context");
      return failure();
    }
  RotaryPlan plan = planRotary(rope, model.context);
  std::vector<double> key = plan.frequencies;
  key.push_back(plan.factor);
  if (plan.dynamic)
    key.insert(key.end(), plan.dynamic->begin(), plan.dynamic->end());
  key.insert(key.end(), plan.longFrequencies.begin(),
             plan.longFrequencies.end());
  // Class tokens and the places of a convolution are in no input: they are
  // counted.
  auto given = inputs.find(stream->positionsName);
  bool asGiven =
      given != inputs.end() &&
      (decode || (given->second.shape[1].size == state.shape[1].size &&
                  given->second.shape[1].symbol == state.shape[1].symbol));
  auto &[cos, sin] =
      tables[{asGiven ? stream->positionsName
                      : stream->spec.name + ":" + state.shape[1].symbol,
              key}];
  if (!cos) {
    Value positions;
    if (asGiven)
      positions = given->second.value;
    else
      positions = TokenPositionsOp::create(
          builder, loc(rope.location),
          RankedTensorType::get({ShapedType::kDynamic, ShapedType::kDynamic},
                                builder.getI64Type()),
          state.value, /*pad=*/IntegerAttr());
    auto type =
        RankedTensorType::get({ShapedType::kDynamic, ShapedType::kDynamic,
                               int64_t(plan.frequencies.size())},
                              builder.getF32Type());
    DenseF64ArrayAttr dynamic;
    if (plan.dynamic)
      dynamic = builder.getDenseF64ArrayAttr(*plan.dynamic);
    DenseF64ArrayAttr longFrequencies;
    IntegerAttr longFrom;
    if (!plan.longFrequencies.empty()) {
      longFrequencies = builder.getDenseF64ArrayAttr(plan.longFrequencies);
      longFrom = builder.getI64IntegerAttr(plan.longFrom);
    }
    auto op = RotaryTableOp::create(
        builder, loc(rope.location), type, type, positions,
        builder.getDenseF64ArrayAttr(plan.frequencies),
        builder.getF64FloatAttr(plan.factor), dynamic, longFrequencies,
        longFrom);
    cos = op.getCos();
    sin = op.getSin();
  }
  scope.cos = cos;
  scope.sin = sin;
  return success();
}

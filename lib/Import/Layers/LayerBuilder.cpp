//===- LayerBuilder.cpp - Layers by kind, those of plugins too --*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Import/LayerBuilder.h"

#include "LayerImporter.h"

using namespace mlir;
using namespace attune;

static std::map<std::string, BuildLayer> &registry() {
  static std::map<std::string, BuildLayer> builders;
  return builders;
}

bool attune::registerLayer(spec::LayerKind kind, BuildLayer build) {
  std::string key = kind.key;
  if (!spec::registerLayerKind(std::move(kind)))
    return false;
  registry()[key] = std::move(build);
  return true;
}

Value LayerImporter::extension(const spec::Extension &extension, Value input) {
  auto build = registry().find(extension.kind);
  if (build == registry().end()) {
    diags.error(layer.location, "the plugin that describes layers of kind '" +
                                    extension.kind +
                                    "' does not say what they are made of");
    return {};
  }
  Location at = loc(extension.location);
  LayerBuilder made{
      builder, at, extension, layer.width, [&](StringRef role) -> Value {
        for (const spec::WeightRole &known : extension.weights)
          if (known.role == role)
            return weight(at, role, known.rows, known.columns);
        diags.error(extension.location,
                    "the plugin describes no weight '" + role.str() + "'");
        return {};
      }};
  return build->second(made, input);
}

Value LayerImporter::build(Value input) {
  if (const auto *op = std::get_if<spec::Block>(&layer.op))
    return block(*op, input);
  if (const auto *op = std::get_if<spec::Norm>(&layer.op))
    return norm(*op, "", input);
  if (const auto *op = std::get_if<spec::Linear>(&layer.op))
    return linear(*op, input, /*matrix=*/Value());
  if (const auto *op = std::get_if<spec::Function>(&layer.op))
    return function(*op, input);
  if (const auto *op = std::get_if<spec::Extension>(&layer.op))
    return extension(*op, input);
  if (const auto *op = std::get_if<spec::Spread>(&layer.op))
    return spread(*op, input);
  if (const auto *op = std::get_if<spec::Unite>(&layer.op))
    return unite(*op, input);
  int64_t width =
      layer.width ? layer.width
                  : cast<RankedTensorType>(input.getType()).getShape().back();
  if (const auto *op = std::get_if<spec::FFN>(&layer.op))
    return ffn(*op, "", input, width, /*residual=*/Value());
  if (const auto *op = std::get_if<spec::MoE>(&layer.op))
    return moe(*op, "", input, width, /*residual=*/Value());
  if (const auto *op = std::get_if<spec::Mamba>(&layer.op))
    return mamba(*op, "", input, width, /*residual=*/Value());
  return attention(std::get<spec::Attention>(layer.op), "", input, width,
                   /*residual=*/Value());
}

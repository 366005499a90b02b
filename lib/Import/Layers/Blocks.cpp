//===- Blocks.cpp - Blocks of sublayers -------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LayerImporter.h"

using namespace mlir;
using namespace attune;

/// Whether a block's two norms read the same tensors: a parallel block with
/// one norm says so by naming them twice.
bool LayerImporter::sameNorm(const spec::Norm &norm) const {
  auto key = [&](StringRef role) {
    std::string text;
    for (const spec::WeightSource &source :
         spec::resolveWeight(layer, role.str()))
      text += source.tensor + "\n";
    return text;
  };
  if (norm.scale && key("norm1.weight") != key("norm2.weight"))
    return false;
  return norm.kind == spec::NormKind::RMSNorm || !norm.bias ||
         key("norm1.bias") == key("norm2.bias");
}

Value LayerImporter::block(const spec::Block &block, Value input) {
  if (block.alternating)
    return alternating(block, input);
  return block.joint ? joint(block, input) : sublayers(block, input);
}

Value LayerImporter::sublayers(const spec::Block &block, Value input) {
  int64_t width = cast<RankedTensorType>(input.getType()).getShape().back();
  using spec::Placement;

  if (block.placement == Placement::Parallel) {
    // All sublayers read the block's input and their results are added up. The
    // norms come first, so that the sums can take the input's place.
    Value attended = norm(block.norm, "norm1.", input);
    Value fed = attended && sameNorm(block.norm)
                    ? attended
                    : norm(block.norm, "norm2.", input);
    if (!attended || !fed)
      return {};
    double scale = block.residualScale;
    auto sideBySide = [&](Value attended, Value fed, Value sum) -> Value {
      if (block.sharedOut && scale == 1)
        return throughSharedOut(block, attended, fed, width, sum);
      if (block.sharedOut) {
        Value both = throughSharedOut(block, attended, fed, width, Value());
        return both ? addScaled(loc(layer.location), sum, both, scale)
                    : Value();
      }
      sum = attention(*block.attention, "attention.", attended, width, sum,
                      scale);
      return sum ? feedForward(block, fed, width, sum, scale) : Value();
    };
    if (!block.modulation)
      return sideBySide(attended, fed, input);
    Value columns = modulation(*block.modulation, "modulation.", 3 * width,
                               scope.condition);
    if (!columns)
      return {};
    return modulated(loc(block.modulation->location), input, attended, columns,
                     /*number=*/0, [&](Value changed) {
                       return sideBySide(changed, changed, Value());
                     });
  }

  Value columns;
  int64_t numSublayers = 0;
  if (block.modulation) {
    columns =
        modulation(*block.modulation, "modulation.",
                   spec::numModulated(block) * 3 * width, scope.condition);
    if (!columns)
      return {};
  }
  // x + f(n(x)), n(x + f(x)), x + n'(f(n(x))) or x + n(f(x)).
  auto around =
      [&](Value x, StringRef role,
          llvm::function_ref<Value(Value, Value, double)> sublayer) -> Value {
    std::string first = (role + ".").str(), second = (role + "_post.").str();
    switch (block.placement) {
    case Placement::Post: {
      Value sum = sublayer(x, x, block.residualScale);
      return sum ? norm(block.norm, first, sum) : Value();
    }
    case Placement::Peri:
    case Placement::Branch: {
      bool peri = block.placement == Placement::Peri;
      Value read = peri ? norm(block.norm, first, x) : x;
      Value result = read ? sublayer(read, Value(), 1) : Value();
      if (result)
        result = norm(block.norm, peri ? second : first, result);
      return result ? addScaled(loc(layer.location), x, result,
                                block.residualScale)
                    : Value();
    }
    case Placement::Pre:
    case Placement::Parallel:
      break;
    }
    Value read = norm(block.norm, first, x);
    if (read && block.modulation)
      return modulated(
          loc(block.modulation->location), x, read, columns, numSublayers++,
          [&](Value changed) { return sublayer(changed, Value(), 1); });
    Value from = addScaled(loc(layer.location), /*x=*/Value(),
                           block.residualOfNorm ? read : x, block.inputScale);
    if (read && block.layerScale)
      return addScaledChannels(role, from, sublayer(read, Value(), 1),
                               block.residualScale);
    return read ? sublayer(read, from, block.residualScale) : Value();
  };
  Value x = input;
  if (block.laurelRank)
    x = besideLaurel(block, x);
  else if (block.memory)
    x = remembered(block, x);
  else if (block.attention || block.mamba)
    x = around(x, "norm1", [&](Value read, Value residual, double scale) {
      Value sum = residual;
      if (block.attention)
        sum =
            attention(*block.attention, "attention.", read, width, sum, scale);
      if (block.mamba && (sum || !block.attention))
        sum = mamba(*block.mamba, "mamba.", read, width, sum, scale);
      return sum;
    });
  if (block.shortConv)
    x = around(x, "norm1", [&](Value read, Value residual, double scale) {
      return shortConv(*block.shortConv, "short_conv.", read, width, residual,
                       scale);
    });
  if (block.deltaRule)
    x = around(x, "norm1", [&](Value read, Value residual, double scale) {
      return deltaRule(*block.deltaRule, "delta_rule.", read, width, residual,
                       scale);
    });
  if (block.timeMix)
    x = around(x, "norm1", [&](Value read, Value residual, double scale) {
      return timeMix(*block.timeMix, "time_mix.", read, width, residual, scale);
    });
  if (x && block.cross)
    x = around(x, "norm_cross", [&](Value read, Value residual, double scale) {
      return attention(*block.cross, "cross.", read, width, residual, scale);
    });
  if (x && (block.ffn || block.moe))
    x = around(x, "norm2", [&](Value read, Value residual, double scale) {
      return feedForward(block, read, width, residual, scale);
    });
  return x;
}

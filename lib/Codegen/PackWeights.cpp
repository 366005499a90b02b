//===- PackWeights.cpp - Matrices in panels ---------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneDialect.h"
#include "attune/Codegen/Passes.h"

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_PACKWEIGHTS
#include "attune/Codegen/Passes.h.inc"

namespace {
struct PackWeights final : impl::PackWeightsBase<PackWeights> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (panelWidth < 1) {
      module.emitError("panel-width must be positive, not ")
          << panelWidth.getValue();
      return signalPassFailure();
    }
    SymbolTable symbols(module);
    // What each weight is used as; a gated and a plain use do not go together.
    llvm::MapVector<WeightOp, bool> matrices;
    WalkResult walked = module.walk([&](LinearOp linear) {
      auto get = linear.getWeight().getDefiningOp<WeightGetOp>();
      if (!get)
        return WalkResult::advance();
      auto weight = symbols.lookup<WeightOp>(get.getWeight());
      if (!weight || weight.getPanelWidth())
        return WalkResult::advance();
      auto [it, fresh] = matrices.insert({weight, linear.getGated()});
      if (!fresh && it->second != linear.getGated()) {
        linear.emitOpError("and another linear layer use ")
            << get.getWeightAttr() << ", but only one of them is gated";
        return WalkResult::interrupt();
      }
      return WalkResult::advance();
    });
    if (walked.wasInterrupted())
      return signalPassFailure();
    for (auto [weight, gated] : matrices)
      pack(weight, gated);
    module.walk([&](WeightGetOp get) {
      if (auto weight = symbols.lookup<WeightOp>(get.getWeight()))
        get.getResult().setType(weight.getLayerType());
    });
  }

  void pack(WeightOp weight, bool gated) {
    RankedTensorType type = weight.getTensorType();
    SmallVector<int64_t> shape(type.getShape());
    int64_t depth = shape.pop_back_val(), rows = shape.pop_back_val();
    int64_t half = gated ? rows / 2 : rows;
    int64_t panels = (half + panelWidth - 1) / panelWidth * (gated ? 2 : 1);
    shape.append({panels, depth, panelWidth});
    weight.setTypeAttr(
        TypeAttr::get(RankedTensorType::get(shape, type.getElementType())));
    weight.setPanelWidth(panelWidth);
    weight.setGated(gated);
    // The panels do not tell how many of their rows are padding.
    weight->setAttr("attune.rows", Builder(weight).getI64IntegerAttr(rows));
    ++numPacked;
  }
};
} // namespace
} // namespace attune

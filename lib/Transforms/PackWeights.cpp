//===- PackWeights.cpp - Matrices in panels ---------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneDialect.h"
#include "Attune/AttunePanels.h"
#include "attune/Transforms/Passes.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_PACKWEIGHTS
#include "attune/Transforms/Passes.h.inc"

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
    // The use of each weight; a gated and a plain use exclude each other.
    llvm::MapVector<WeightOp, bool> matrices;
    auto use = [&](Operation *op, Value matrix, bool gated) -> LogicalResult {
      auto get = matrix.getDefiningOp<WeightGetOp>();
      if (!get)
        return success();
      auto weight = symbols.lookup<WeightOp>(get.getWeight());
      if (!weight || weight.getPanelWidth())
        return success();
      auto [it, fresh] = matrices.insert({weight, gated});
      if (fresh || it->second == gated)
        return success();
      return op->emitOpError("and another linear layer use ")
             << get.getWeightAttr() << ", but only one of them is gated";
    };
    WalkResult walked = module.walk([&](Operation *op) -> WalkResult {
      if (auto linear = dyn_cast<LinearOp>(op))
        return use(op, linear.getWeight(), linear.getGated());
      if (auto linear = dyn_cast<QuantizedLinearOp>(op)) {
        if (failed(use(op, linear.getWeight(), linear.getGated())))
          return failure();
        return use(op, linear.getWeightScales(), linear.getGated());
      }
      if (auto table = dyn_cast<QuantizedEmbeddingOp>(op)) {
        if (failed(use(op, table.getTable(), /*gated=*/false)))
          return failure();
        return use(op, table.getScales(), /*gated=*/false);
      }
      if (auto moe = dyn_cast<QuantizedMoEOp>(op)) {
        for (Value stack : {moe.getUp(), moe.getUpScales()})
          if (failed(use(op, stack, moe.getGated())))
            return failure();
        for (Value stack : {moe.getDown(), moe.getDownScales()})
          if (failed(use(op, stack, /*gated=*/false)))
            return failure();
        return success();
      }
      if (auto heads = dyn_cast<HeadLinearOp>(op))
        return use(op, heads.getWeight(), /*gated=*/false);
      auto moe = dyn_cast<MoEOp>(op);
      if (moe && failed(use(op, moe.getUp(), moe.getGated())))
        return failure();
      return moe ? use(op, moe.getDown(), /*gated=*/false) : success();
    });
    if (walked.wasInterrupted())
      return signalPassFailure();
    llvm::DenseSet<Operation *> unpaired;
    module.walk([&](WeightGetOp get) {
      if (!takesPairs(get))
        unpaired.insert(symbols.lookup(get.getWeight()));
    });
    // Both stacks of a mixture have pairs or neither.
    module.walk([&](MoEOp moe) {
      auto up = moe.getUp().getDefiningOp<WeightGetOp>(),
           down = moe.getDown().getDefiningOp<WeightGetOp>();
      if (!up || !down)
        return;
      Operation *stacks[] = {symbols.lookup(up.getWeight()),
                             symbols.lookup(down.getWeight())};
      if (llvm::any_of(stacks, [&](Operation *stack) {
            return unpaired.contains(stack);
          }))
        unpaired.insert(std::begin(stacks), std::end(stacks));
    });
    for (auto [weight, gated] : matrices)
      pack(weight, gated, pairs && !unpaired.contains(weight));
    module.walk([&](WeightGetOp get) {
      if (auto weight = symbols.lookup<WeightOp>(get.getWeight()))
        get.getResult().setType(weight.getLayerType());
    });
  }

  /// Whether products with weights in pairs take such rows.
  bool multipliesPairs(Value input) {
    Type element = getElementTypeOrSelf(input);
    return element.isBF16() || (wideInputs && element.isF32());
  }

  /// Whether all users can read the weight in pairs.
  bool takesPairs(WeightGetOp get) {
    auto type = cast<RankedTensorType>(get.getType());
    return type.getElementType().isBF16() && type.getShape().back() % 2 == 0 &&
           llvm::all_of(get->getUsers(), [&](Operation *user) {
             if (auto linear = dyn_cast<LinearOp>(user))
               return multipliesPairs(linear.getInput());
             if (auto moe = dyn_cast<MoEOp>(user))
               return moe.getUp().getDefiningOp<WeightGetOp>() &&
                      moe.getDown().getDefiningOp<WeightGetOp>() &&
                      multipliesPairs(moe.getInput());
             return isa<EmbeddingOp>(user);
           });
  }

  void pack(WeightOp weight, bool gated, bool paired) {
    RankedTensorType type = weight.getTensorType();
    Type element = type.getElementType();
    int64_t side = weight.holdsScales()  ? 1
                   : takesBytes(element) ? 4
                   : paired              ? 2
                                         : 1;
    int64_t lanes = side * panelWidth;
    if (element.isInteger(4)) {
      // Two in a byte; from here on only the attribute says so.
      side = 8;
      lanes = 4 * panelWidth;
      element = IntegerType::get(&getContext(), 8);
      weight->setAttr("attune.bits", Builder(weight).getI64IntegerAttr(4));
    }
    SmallVector<int64_t> shape(type.getShape());
    int64_t depth = shape.pop_back_val(), rows = shape.pop_back_val();
    int64_t half = gated ? rows / 2 : rows;
    int64_t panels = (half + panelWidth - 1) / panelWidth * (gated ? 2 : 1);
    shape.append({panels, depth / side, lanes});
    weight.setTypeAttr(TypeAttr::get(RankedTensorType::get(shape, element)));
    weight.setPanelWidth(panelWidth);
    weight.setGated(gated);
    // The panels do not tell how many of their rows are padding.
    weight->setAttr("attune.rows", Builder(weight).getI64IntegerAttr(rows));
    ++numPacked;
    if (paired)
      ++numPaired;
  }
};
} // namespace
} // namespace attune

//===- NarrowActivations.cpp - Inputs that bf16 weights multiply ----------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneDialect.h"
#include "attune/Codegen/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_NARROWACTIVATIONS
#include "attune/Codegen/Passes.h.inc"

namespace {

/// A layer that reads its input as bf16 if it is given that.
bool multipliesBf16(OpOperand &use) {
  auto linear = dyn_cast<LinearOp>(use.getOwner());
  if (!linear || use.get() != linear.getInput() ||
      linear.getWeight() == use.get())
    return false;
  auto weight = cast<RankedTensorType>(linear.getWeight().getType());
  return linear.getWeight().getDefiningOp<WeightGetOp>() &&
         weight.getRank() == 2 && weight.getElementType().isBF16() &&
         weight.getDimSize(1) % 2 == 0;
}

RankedTensorType narrow(Value value) {
  return cast<RankedTensorType>(value.getType())
      .clone(BFloat16Type::get(value.getContext()));
}

/// Makes the op that defines `value` write bf16, if its definition allows it.
bool narrowAtSource(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (auto heads = dyn_cast<MergeHeadsOp>(op)) {
    // Heads change their place and nothing else: attention has to round.
    auto attention = heads.getInput().getDefiningOp<AttentionOp>();
    if (!attention || !heads.getInput().hasOneUse())
      return false;
    heads.getInput().setType(narrow(heads.getInput()));
  } else if (auto linear = dyn_cast<LinearOp>(op);
             !linear || linear.getResidual()) {
    return false;
  }
  value.setType(narrow(value));
  return true;
}

/// Whether heads come from a layer that multiplies bf16, and not from a cache.
bool comesFromBf16(Value heads) {
  while (Operation *op = heads.getDefiningOp()) {
    if (auto linear = dyn_cast<LinearOp>(op))
      return multipliesBf16(linear.getInputMutable());
    if (!isa<RotaryOp, SplitHeadsOp, RMSNormOp, LayerNormOp>(op))
      return false;
    heads = op->getOperand(0);
  }
  return false;
}

/// Attention between the layers of such a model: all of it is bf16 or none.
bool multipliesBf16(AttentionOp op) {
  constexpr int64_t kWidth = 16; // what the kernels take
  return cast<RankedTensorType>(op.getQuery().getType()).getDimSize(3) %
                 kWidth ==
             0 &&
         llvm::all_of(ValueRange{op.getQuery(), op.getKey(), op.getValue()},
                      [](Value heads) {
                        return getElementTypeOrSelf(heads).isF32() &&
                               comesFromBf16(heads);
                      });
}

struct NarrowActivations final
    : impl::NarrowActivationsBase<NarrowActivations> {
  using Base::Base;

  void runOnOperation() override {
    llvm::SetVector<Value> inputs;
    getOperation().walk([&](LinearOp linear) {
      if (multipliesBf16(linear.getInputMutable()) &&
          getElementTypeOrSelf(linear.getInput()).isF32())
        inputs.insert(linear.getInput());
    });
    for (Value input : inputs) {
      ++numNarrowed;
      auto reads = [](OpOperand &use) { return multipliesBf16(use); };
      if (!llvm::all_of(input.getUses(), reads) || !narrowAtSource(input))
        input.replaceUsesWithIf(round(input), reads);
    }
    getOperation().walk([&](AttentionOp op) {
      if (!multipliesBf16(op))
        return;
      for (OpOperand *heads : {&op.getQueryMutable(), &op.getKeyMutable(),
                               &op.getValueMutable()}) {
        ++numNarrowed;
        heads->set(round(heads->get()));
      }
    });
  }

  static Value round(Value value) {
    OpBuilder b(value.getContext());
    b.setInsertionPointAfterValue(value);
    return arith::TruncFOp::create(b, value.getLoc(), narrow(value), value);
  }
};
} // namespace
} // namespace attune

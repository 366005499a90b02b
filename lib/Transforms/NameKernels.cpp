//===- NameKernels.cpp - Names of the kernels of ops ------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneDialect.h"
#include "Attune/AttunePanels.h"
#include "attune/Transforms/Passes.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_NAMEKERNELS
#include "attune/Transforms/Passes.h.inc"

namespace {
/// Sizes that are known, from the second dimension on or else from the first:
/// `12x64` of ?x12x?x64, `768` of ?x?x768.
std::string knownSizes(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type)
    return "";
  ArrayRef<int64_t> shape = type.getShape();
  std::string text;
  for (int64_t size : shape.size() > 1 ? shape.drop_front() : shape)
    if (!ShapedType::isDynamic(size))
      text += (text.empty() ? "" : "x") + std::to_string(size);
  return text;
}

int64_t lastSize(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape().back();
}

struct Name {
  std::string text;

  void add(const Twine &part) {
    std::string next = part.str();
    if (!next.empty())
      text += "." + next;
  }
  /// Adds the epilogue of a matrix product, in the order in which it is
  /// applied.
  template <typename Op> void addProduct(Op op) {
    text = "linear";
    add(Twine(lastSize(op.getInput())) + "x" + Twine(lastSize(op.getResult())));
    if constexpr (std::is_same_v<Op, LinearOp>)
      if (op.getRmsEps())
        add("rms");
    if (op.getGated())
      add("gated");
    if (op.getActivation() != Activation::Identity)
      add(stringifyActivation(op.getActivation()));
    if (op.getResidual())
      add("residual");
    Type element = getElementTypeOrSelf(op.getWeight());
    if (element.isInteger())
      add("int" +
          Twine(quantizedBits(cast<ShapedType>(op.getWeight().getType()),
                              lastSize(op.getInput()))));
    else if (isa<Float8E4M3FNType>(element))
      add("fp8");
    else if (!element.isF32())
      add(element.isBF16() ? "bf16" : "f16");
  }
};

std::string nameOf(Operation *op) {
  Name name;
  TypeSwitch<Operation *>(op)
      .Case<LinearOp, QuantizedLinearOp>(
          [&](auto linear) { name.addProduct(linear); })
      .Case<AttentionOp>([&](AttentionOp attention) {
        name.text = "attention";
        name.add(knownSizes(attention.getQuery()));
        if (attention.getCausal() != CausalAlign::None &&
            attention.getCausal() != CausalAlign::Symmetric)
          name.add("causal");
        if (attention.getWindow())
          name.add("window");
      })
      .Default([&](Operation *other) {
        name.text = other->getName().stripDialect().str();
        name.add(knownSizes(other->getResult(0)));
      });
  return name.text;
}

struct NameKernels final : impl::NameKernelsBase<NameKernels> {
  using Base::Base;

  void runOnOperation() override {
    Dialect *dialect = getContext().getLoadedDialect<AttuneDialect>();
    getOperation().walk([&](Operation *op) {
      if (op->getDialect() != dialect || op->getNumResults() == 0 ||
          !isa<RankedTensorType>(op->getResult(0).getType()) ||
          isa<WeightGetOp>(op))
        return;
      auto name = StringAttr::get(&getContext(), nameOf(op));
      op->setLoc(NameLoc::get(name, op->getLoc()));
      ++numNamed;
    });
  }
};
} // namespace
} // namespace attune

//===- SoftmaxSearch.cpp - Softmaxes and what they weigh --------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SoftmaxSearch.h"
#include "AttentionProducts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace attune {
namespace {

/// Whether an op only changes the type of exponentials before they are summed.
bool onlyRounds(Operation *op) {
  return isa<arith::ExtFOp, arith::TruncFOp>(op);
}

bool isElementwise(Operation *op) {
  if (OpTrait::hasElementwiseMappableTraits(op))
    return true;
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  return linalgOp && linalgOp.hasPureTensorSemantics() &&
         linalgOp.getNumReductionLoops() == 0;
}

/// The tensor of exponentials that `value` is, or a rounded copy of; null if it
/// is something else. A scalar of a body is looked for in its op's operands.
Operation *findExponential(Value value) {
  for (unsigned step = 0; step < 8 && value; ++step) {
    if (auto arg = dyn_cast<BlockArgument>(value)) {
      auto op =
          dyn_cast_or_null<linalg::LinalgOp>(arg.getOwner()->getParentOp());
      if (!op || arg.getOwner() != op.getBlock())
        return nullptr;
      value = op->getOperand(arg.getArgNumber());
      continue;
    }
    Operation *def = value.getDefiningOp();
    if (isa<math::ExpOp, math::Exp2Op, linalg::ExpOp>(def))
      return def;
    if (auto op = dyn_cast<linalg::LinalgOp>(def);
        op && isElementwise(op) && op->getNumResults() == 1)
      value = op.getBlock()->getTerminator()->getOperand(0);
    else if (onlyRounds(def))
      value = def->getOperand(0);
    else
      return nullptr;
  }
  return nullptr;
}

/// The exponentials that `op` sums, or null.
Operation *findSummed(Operation *candidate) {
  auto op = dyn_cast<linalg::LinalgOp>(candidate);
  if (!op || !op.hasPureTensorSemantics() || op->getNumResults() != 1 ||
      op.getNumReductionLoops() != 1)
    return nullptr;
  auto sum = op.getBlock()
                 ->getTerminator()
                 ->getOperand(0)
                 .getDefiningOp<arith::AddFOp>();
  if (!sum)
    return nullptr;
  for (Value operand : sum->getOperands())
    if (operand != op.getRegionOutputArgs()[0])
      return findExponential(operand);
  return nullptr;
}

/// Some op of `op` divides, in its body or itself.
bool divides(Operation *op) {
  bool found = isa<arith::DivFOp>(op);
  op->walk([&](arith::DivFOp) { found = true; });
  return found;
}

/// Follows what is computed from `from`, element by element, to products.
void follow(Value from, SoftmaxFound &found) {
  SetVector<Operation *> seen(from.user_begin(), from.user_end());
  for (unsigned i = 0; i < seen.size() && i < 64; ++i) {
    Operation *op = seen[i];
    if (isProduct(op)) {
      found.products.insert(op);
      continue;
    }
    if (!isElementwise(op) &&
        !isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::CastOp>(
            op))
      continue;
    found.divided |= divides(op);
    for (Operation *user : op->getUsers())
      seen.insert(user);
  }
}

} // namespace

SmallVector<SoftmaxFound> findSoftmaxes(Operation *top) {
  SmallVector<SoftmaxFound> all;
  top->walk([&](Operation *op) {
    SoftmaxFound found;
    found.op = op;
    if (auto softmax = dyn_cast<linalg::SoftmaxOp>(op);
        softmax && softmax.hasPureTensorSemantics()) {
      found.divided = true;
      follow(op->getResult(0), found);
      all.push_back(found);
      return;
    }
    Operation *power = findSummed(op);
    if (!power)
      return;
    // The tensor of exponentials, which may be made in the sum itself.
    while (power->getParentOp() != op->getParentOp() && power->getParentOp())
      power = power->getParentOp();
    follow(op->getResult(0), found);
    if (power != op)
      follow(power->getResult(0), found);
    all.push_back(found);
  });
  return all;
}

} // namespace attune

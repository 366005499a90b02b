//===- FuseNorms.cpp - Norms as factors of matrix products ------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// With y = r x G, where r is one by the root mean square of the row x and G the
// diagonal of gains, y W^T = r (x (W G)^T): gains go to the matrix when it is
// packed, and r is a factor of sums. A layer norm subtracts a mean, which would
// leave a difference of large sums where rows are far from zero; a matrix of 16
// bits would be rounded once more. Neither is done.

#include "Attune/AttuneDialect.h"
#include "attune/Transforms/Passes.h"

#include "mlir/IR/Remarks.h"

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_FUSENORMS
#include "attune/Transforms/Passes.h.inc"

namespace {

/// Why a norm stays as it is.
using Obstacle = std::string;

struct FuseNorms final : impl::FuseNormsBase<FuseNorms> {
  using Base::Base;

  void runOnOperation() override {
    SymbolTable table(getOperation());
    symbols = &table;
    reads.clear();
    llvm::MapVector<RMSNormOp, Obstacle> norms;
    getOperation().walk([&](Operation *op) {
      if (auto get = dyn_cast<WeightGetOp>(op))
        reads[get.getWeightAttr().getAttr()].push_back(get);
      else if (auto norm = dyn_cast<RMSNormOp>(op))
        norms[norm] = "";
    });
    for (auto &[norm, why] : norms)
      why = findObstacle(norm);
    // A matrix can have one gain: what keeps one norm from it keeps others.
    for (bool changed = true; changed;) {
      changed = false;
      for (auto &[norm, why] : norms)
        if (why.empty() && sharesMatrix(norm, norms)) {
          why = "meets a matrix that is multiplied by something else too";
          changed = true;
        }
    }
    for (auto &[norm, why] : norms) {
      auto name =
          remark::RemarkOpts::name("norm").category("attune-fuse-norms");
      if (why.empty()) {
        ++numFused;
        remark::passed(norm.getLoc(), name)
            << "a factor of the products that follow";
        fuse(norm);
      } else {
        ++numLeft;
        remark::missed(norm.getLoc(), name) << why;
      }
    }
  }

private:
  /// The linear layer that multiplies what is used.
  static LinearOp layerOf(OpOperand &use) {
    return use.getOperandNumber() == 0 ? dyn_cast<LinearOp>(use.getOwner())
                                       : LinearOp();
  }

  Obstacle findObstacle(RMSNormOp norm) const {
    auto isF32 = [](Value value) {
      return cast<ShapedType>(value.getType()).getElementType().isF32();
    };
    if (norm.getType().getRank() > 3 || !isF32(norm.getInput()) || !isF32(norm))
      return "is not of rows of f32";
    if (norm->use_empty())
      return "has no user";
    if (wayBytes > 0 && norm.getType().getShape().back() * 4 % wayBytes == 0)
      return "moves rows apart that share sets of the cache";
    auto gamma = norm.getGamma() ? norm.getGamma().getDefiningOp<WeightGetOp>()
                                 : WeightGetOp();
    if (norm.getGamma() && (!gamma || !isF32(gamma)))
      return "has a gain that is no weight of f32";
    for (OpOperand &use : norm->getUses()) {
      LinearOp linear = layerOf(use);
      if (!linear || linear.getRmsEps())
        return ("is used by '" + use.getOwner()->getName().getStringRef() + "'")
            .str();
      auto get = linear.getWeight().getDefiningOp<WeightGetOp>();
      auto weight =
          get ? symbols->lookup<WeightOp>(get.getWeight()) : WeightOp();
      if (!weight || !weight.getLayerType().getElementType().isF32() ||
          weight.getLayerType().getRank() != 2 || weight.getPanelWidth() ||
          weight.getParts() || weight.getGroup() || weight.getGainAttr())
        return "meets a matrix that is no weight of f32";
      if (gamma && gamma.getLayer() != get.getLayer())
        return "and its matrix are not of one layer";
      if (isOverwritten(norm, linear))
        return "is of rows that are something else when a product would read "
               "them";
    }
    return "";
  }

  /// Whether what `linear` computes, or something before it, may take the place
  /// of the norm's input: a copy would have to be read then.
  static bool isOverwritten(RMSNormOp norm, LinearOp linear) {
    Block *block = norm->getBlock();
    if (linear->getBlock() != block)
      return true;
    return llvm::any_of(norm.getInput().getUses(), [&](OpOperand &use) {
      Operation *user = use.getOwner();
      if (isa<RMSNormOp, LayerNormOp>(user) || layerOf(use))
        return false;
      Operation *top = block->findAncestorOpInBlock(*user);
      return !top || !linear->isBeforeInBlock(top);
    });
  }

  /// Whether a matrix that multiplies the norm has another use than by such
  /// norms with the same gain.
  bool sharesMatrix(RMSNormOp norm,
                    const llvm::MapVector<RMSNormOp, Obstacle> &norms) const {
    return llvm::any_of(norm->getUsers(), [&](Operation *user) {
      auto get = cast<LinearOp>(user).getWeight().getDefiningOp<WeightGetOp>();
      return llvm::any_of(
          reads.lookup(get.getWeightAttr().getAttr()), [&](WeightGetOp read) {
            return llvm::any_of(read->getUses(), [&](OpOperand &use) {
              auto linear = dyn_cast<LinearOp>(use.getOwner());
              if (!linear || use.getOperandNumber() != 1)
                return true;
              auto other = linear.getInput().getDefiningOp<RMSNormOp>();
              auto it = other ? norms.find(other) : norms.end();
              return it == norms.end() || !it->second.empty() ||
                     gainOf(other) != gainOf(norm);
            });
          });
    });
  }

  /// Which weight, and what is added to it; null where the factor is 1.
  static std::pair<FlatSymbolRefAttr, FloatAttr> gainOf(RMSNormOp norm) {
    if (!norm.getGamma())
      return {};
    return {norm.getGamma().getDefiningOp<WeightGetOp>().getWeightAttr(),
            norm.getOffsetAttr()};
  }

  void fuse(RMSNormOp norm) {
    auto [gain, offset] = gainOf(norm);
    for (Operation *user : llvm::make_early_inc_range(norm->getUsers())) {
      auto linear = cast<LinearOp>(user);
      auto get = linear.getWeight().getDefiningOp<WeightGetOp>();
      if (gain) {
        auto weight = symbols->lookup<WeightOp>(get.getWeight());
        weight.setGainAttr(gain);
        weight.setGainOffsetAttr(offset);
      }
      linear.setRmsEpsAttr(norm.getEpsAttr());
      linear.getInputMutable().assign(norm.getInput());
    }
    norm->erase();
  }

  SymbolTable *symbols = nullptr;
  llvm::DenseMap<StringAttr, SmallVector<WeightGetOp>> reads;
};
} // namespace
} // namespace attune

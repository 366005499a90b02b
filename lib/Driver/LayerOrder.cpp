//===- LayerOrder.cpp - Layers in the order they run ------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LayerOrder.h"

#include "attune/Validation/Activations.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

#include <algorithm>
#include <cmath>
#include <set>

using namespace mlir;
using namespace attune;
using namespace attune::driver;

namespace {
/// Walks calls and loops as they run.
class LayerWalk {
public:
  explicit LayerWalk(ModuleOp module) : symbols(module) {}

  void visitEntry(func::FuncOp entry) {
    visit(entry.getBody().front());
    close();
  }
  std::vector<Stage> stages;

private:
  /// The number that an index is; nothing if it is not known.
  std::optional<int64_t> evaluate(Value value) {
    if (auto known = numbers.find(value); known != numbers.end())
      return known->second;
    if (std::optional<int64_t> constant = getConstantIntValue(value))
      return constant;
    Operation *op = value.getDefiningOp();
    if (!isa_and_nonnull<arith::AddIOp, arith::MulIOp>(op))
      return std::nullopt;
    std::optional<int64_t> a = evaluate(op->getOperand(0)),
                           b = evaluate(op->getOperand(1));
    if (!a || !b)
      return std::nullopt;
    return isa<arith::AddIOp>(op) ? *a + *b : *a * *b;
  }

  void close() {
    if (!open.empty())
      stages.push_back(std::move(open));
    open.clear();
  }

  void add(WeightGetOp get) {
    auto weight = symbols.lookup<WeightOp>(get.getWeight());
    if (!weight)
      return;
    std::optional<int64_t> layer =
        get.getLayer() ? evaluate(get.getLayer()) : 0;
    // Where a number is not known it may be any.
    for (int64_t i = 0; i < weight.getNumLayers(); ++i)
      if (!layer || *layer == i)
        open.emplace_back(weight, i);
  }

  void visit(Block &block) {
    for (Operation &op : block) {
      if (auto get = dyn_cast<WeightGetOp>(op)) {
        add(get);
      } else if (auto call = dyn_cast<func::CallOp>(op)) {
        auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
        if (!callee || callee.isExternal())
          continue;
        close();
        for (auto [argument, operand] :
             llvm::zip(callee.getArguments(), call.getOperands()))
          numbers[argument] = evaluate(operand);
        visit(callee.getBody().front());
        close();
      } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
        visitLoop(loop);
      } else {
        for (Region &region : op.getRegions())
          for (Block &inner : region)
            visit(inner);
      }
    }
  }

  void visitLoop(scf::ForOp loop) {
    std::optional<int64_t> begin = evaluate(loop.getLowerBound()),
                           end = evaluate(loop.getUpperBound()),
                           step = evaluate(loop.getStep());
    if (!begin || !end || !step || *step <= 0) {
      numbers[loop.getInductionVar()] = std::nullopt;
      visit(*loop.getBody());
      return;
    }
    for (int64_t i = *begin; i < *end; i += *step) {
      numbers[loop.getInductionVar()] = i;
      visit(*loop.getBody());
    }
  }

  SymbolTable symbols;
  llvm::DenseMap<Value, std::optional<int64_t>> numbers;
  Stage open;
};
} // namespace

std::vector<Stage> driver::findStages(ModuleOp module) {
  LayerWalk walk(module);
  for (auto func : module.getOps<func::FuncOp>())
    if (!func.isExternal() && func->hasAttr("attune.entry"))
      walk.visitEntry(func);
  std::set<std::pair<Operation *, int64_t>> later;
  for (Stage &stage : llvm::reverse(walk.stages))
    llvm::erase_if(stage, [&](auto &some) {
      return !later.insert({WeightOp(some.first), some.second}).second;
    });
  llvm::erase_if(walk.stages, [](const Stage &stage) { return stage.empty(); });
  return std::move(walk.stages);
}

std::vector<Mixture> driver::findMixtures(ModuleOp module) {
  SymbolTable symbols(module);
  auto weightOf = [&](Value value) {
    auto get = value ? value.getDefiningOp<WeightGetOp>() : WeightGetOp();
    return get ? symbols.lookup<WeightOp>(get.getWeight()) : WeightOp();
  };
  std::vector<Mixture> all;
  module.walk([&](MoEOp op) {
    Mixture mixture;
    mixture.up = weightOf(op.getUp());
    mixture.down = weightOf(op.getDown());
    mixture.upBias = weightOf(op.getUpBias());
    if (!mixture.up || !mixture.down || (op.getUpBias() && !mixture.upBias))
      return;
    mixture.activation = op.getActivation();
    mixture.gated = op.getGated();
    mixture.limit = op.getLimit() ? op.getLimit()->convertToDouble() : HUGE_VAL;
    mixture.upOffset = op.getUpOffset().convertToDouble();
    all.push_back(mixture);
  });
  return all;
}

void Mixture::addHidden(const float *sums, int64_t rows,
                        const std::vector<float> &biases,
                        std::vector<float> &hidden) const {
  auto sumOf = [&](int64_t i) {
    return double(sums[i]) + (biases.empty() ? 0 : double(biases[size_t(i)]));
  };
  int64_t width = gated ? rows / 2 : rows;
  for (int64_t i = 0; i < width; ++i) {
    double first = sumOf(i);
    if (!gated) {
      hidden.push_back(float(validation::activate(activation, first)));
      continue;
    }
    double up = std::max(std::min(sumOf(width + i), limit), -limit) + upOffset;
    hidden.push_back(
        float(validation::activate(activation, std::min(first, limit)) * up));
  }
}

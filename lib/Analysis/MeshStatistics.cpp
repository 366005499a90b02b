//===- MeshStatistics.cpp - What one rank has and sends -------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Analysis/MeshStatistics.h"

#include "Attune/AttuneCachedRows.h"
#include "Attune/AttuneCut.h"
#include "Attune/AttuneMeshOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;

namespace attune {
namespace {

class TokenCounter {
public:
  TokenCounter(ModuleOp module, int64_t past)
      : module(module), symbols(module), past(past) {}

  std::optional<MeshStatistics> run() {
    auto entry = module.lookupSymbol<func::FuncOp>("decode");
    auto ranks = module->getAttrOfType<IntegerAttr>("attune.ranks");
    if (!entry || !ranks)
      return std::nullopt;
    result.ranks = ranks.getInt();
    countParameters();
    // The order to call, and what the call is about.
    result.exchanges = 2;
    count(entry.getBody().front(), 1);
    return known ? std::optional(result) : std::nullopt;
  }

private:
  void countParameters() {
    result.parameters.assign(result.ranks, 0);
    for (auto weight : module.getOps<WeightOp>()) {
      if (weight.holdsScales() || weight.holdsOrder())
        continue;
      uint64_t parts = uint64_t(weight.getNumLayers() * weight.getNumParts());
      std::optional<WeightCut> cut = getCut(weight);
      for (int64_t rank = 0; rank < result.ranks; ++rank)
        result.parameters[rank] +=
            parts * uint64_t(cut && !cut->cutsParts ? elementsOf(*cut, rank)
                                                    : elementsOf(weight));
    }
  }

  static int64_t elementsOf(const WeightCut &cut, int64_t rank) {
    int64_t rows = 0;
    for (const WeightCut::Rows &some : cut.rows[rank])
      rows += some.count;
    return rows * cut.wholeColumns / (cut.cutsColumns ? cut.numRanks() : 1);
  }

  /// Of one part, without the padding of panels.
  static int64_t elementsOf(WeightOp weight) {
    RankedTensorType type = weight.getPartType();
    auto rows = weight->getAttrOfType<IntegerAttr>("attune.rows");
    if (!weight.getPanelWidth() || !rows || type.getRank() < 2)
      return type.getNumElements();
    return rows.getInt() *
           (type.getRank() < 3
                ? 1
                : type.getDimSize(1) * weight.getColumnsSideBySide());
  }

  void count(Block &block, int64_t times) {
    for (Operation &op : block)
      count(&op, times);
  }

  void count(Operation *op, int64_t times) {
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      auto from = getConstantIntValue(loop.getLowerBound());
      auto to = getConstantIntValue(loop.getUpperBound());
      auto step = getConstantIntValue(loop.getStep());
      known &= from && to && step && *step > 0;
      if (known)
        count(*loop.getBody(), times * ((*to - *from + *step - 1) / *step));
    } else if (auto call = dyn_cast<func::CallOp>(op)) {
      auto callee = module.lookupSymbol<func::FuncOp>(call.getCallee());
      if (callee && !callee.isExternal())
        count(callee.getBody().front(), times);
    } else if (isa<LinearOp, QuantizedLinearOp>(op)) {
      for (Value operand : op->getOperands())
        countWeight(operand, times);
    } else if (auto moe = dyn_cast<MoEOp>(op)) {
      countExperts(op, moe.getExperts(), times);
    } else if (auto moe = dyn_cast<QuantizedMoEOp>(op)) {
      countExperts(op, moe.getExperts(), times);
    } else if (auto attention = dyn_cast<AttentionOp>(op)) {
      ShapedType query = attention.getQuery().getType();
      double heads = double(query.getDimSize(1)) * double(times);
      double width = double(query.getDimSize(3)) +
                     double(widthOfRows(attention.getValue().getType()));
      result.flops += 2 * heads * width * double(past + 1);
      for (Value cached : {attention.getKey(), attention.getValue()}) {
        auto type = cast<ShapedType>(cached.getType());
        result.readBytes += double(times) * double(past) *
                            double(type.getDimSize(1) * type.getDimSize(3)) *
                            type.getElementTypeBitWidth() / 8;
      }
    } else if (isa<AllReduceOp, AllGatherOp>(op)) {
      // The likeliest token is one number of each rank, and spares the logits.
      auto gather = dyn_cast<AllGatherOp>(op);
      if (gather && gather.getColumns().getDefiningOp<arith::SelectOp>())
        return;
      int64_t width =
          cast<ShapedType>(op->getOperand(0).getType()).getShape().back();
      result.exchanges += times;
      result.messages += times * (result.ranks - 1);
      result.sentBytes += double(times) * double(result.ranks - 1) *
                          (ShapedType::isDynamic(width) ? 1 : width) * 4;
    }
  }

  WeightOp weightOf(Value operand) {
    auto get = operand.getDefiningOp<WeightGetOp>();
    return get ? symbols.lookup<WeightOp>(get.getWeight()) : WeightOp();
  }

  /// A token goes through a few experts, which are on any rank as likely.
  void countExperts(Operation *op, Value experts, int64_t times) {
    auto active = cast<ShapedType>(experts.getType()).getShape().back();
    for (Value operand : op->getOperands())
      if (WeightOp weight = weightOf(operand))
        countWeight(operand, double(times) * double(active) /
                                 double(getCut(weight) ? result.ranks : 1));
  }

  void countWeight(Value operand, double times) {
    WeightOp weight = weightOf(operand);
    if (!weight)
      return;
    RankedTensorType type = weight.getPartType();
    result.readBytes += times * double(type.getNumElements()) *
                        type.getElementTypeBitWidth() / 8;
    if (type.getRank() > 1 && !weight.holdsScales())
      result.flops += 2 * times * double(elementsOf(weight));
  }

  ModuleOp module;
  SymbolTable symbols;
  int64_t past;
  bool known = true;
  MeshStatistics result;
};
} // namespace

std::optional<MeshStatistics> countMesh(ModuleOp module, int64_t past) {
  return TokenCounter(module, past).run();
}

} // namespace attune

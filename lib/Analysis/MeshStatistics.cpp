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

#include <cmath>

using namespace mlir;

namespace attune {
namespace {

/// Floats that ranks exchange at a time, and from which on each rank adds up a
/// part of them: see lib/Runtime/Mesh.
constexpr double kFloatsAtOnce = 1 << 20, kFloatsInShares = 1 << 16;

class TokenCounter {
public:
  TokenCounter(ModuleOp module, int64_t tokens)
      : module(module), symbols(module), tokens(tokens) {}

  std::optional<MeshStatistics> run() {
    auto entry = module.lookupSymbol<func::FuncOp>("decode");
    decodes = bool(entry);
    if (!entry)
      entry = module.lookupSymbol<func::FuncOp>("forward");
    auto countOf = [&](StringRef name) {
      auto count = module->getAttrOfType<IntegerAttr>(name);
      return count ? count.getInt() : 1;
    };
    result.parts = countOf("attune.ranks");
    result.sharers = countOf("attune.sharers");
    if (!entry || result.ranks() == 1)
      return std::nullopt;
    result.tokens = decodes ? 0 : tokens;
    countParameters();
    // The order to call, and what the call is about.
    result.exchanges = 2;
    count(entry.getBody().front(), 1);
    return known ? std::optional(result) : std::nullopt;
  }

private:
  void countParameters() {
    result.parameters.assign(result.parts, 0);
    for (auto weight : module.getOps<WeightOp>()) {
      if (weight.holdsScales() || weight.holdsOrder())
        continue;
      uint64_t parts = uint64_t(weight.getNumLayers() * weight.getNumParts());
      std::optional<WeightCut> cut = getCut(weight);
      for (int64_t rank = 0; rank < result.parts; ++rank)
        result.parameters[rank] +=
            parts * uint64_t(cut && !cut->cutsParts ? elementsOf(*cut, rank)
                                                    : elementsOf(weight));
    }
  }

  static int64_t elementsOf(const WeightCut &cut, int64_t rank) {
    int64_t rows = 0;
    for (const WeightCut::Rows &some : cut.rows[rank])
      rows += some.count;
    return rows *
           (cut.cutsColumns() ? cut.columns[rank].count : cut.wholeColumns);
  }

  /// Elements of one part, without the padding of panels.
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
        countWeight(operand, times, rowsOf(op->getOperand(0)));
    } else if (auto heads = dyn_cast<HeadLinearOp>(op)) {
      auto parts = double(heads.getWeight().getType().getDimSize(0));
      countWeight(heads.getWeight(), double(times) * parts,
                  decodes ? 1 : double(tokens));
    } else if (auto moe = dyn_cast<MoEOp>(op)) {
      countExperts(op, moe.getExperts(), times);
    } else if (auto moe = dyn_cast<QuantizedMoEOp>(op)) {
      countExperts(op, moe.getExperts(), times);
    } else if (auto attention = dyn_cast<AttentionOp>(op)) {
      ShapedType query = attention.getQuery().getType();
      double heads = double(query.getDimSize(1)) * double(times);
      double width = double(query.getDimSize(3)) +
                     double(widthOfRows(attention.getValue().getType()));
      // Ranks share cached keys if their results are merged; rings are whole.
      bool shared =
          attention.getLse() && llvm::any_of(attention.getLse().getUsers(),
                                             llvm::IsaPred<AllMergeOp>);
      double sharers = shared ? double(result.sharers) : 1;
      double keys = double(decodes ? tokens + 1 : tokens) / sharers;
      result.flops += 2 * heads * width * keys * (decodes ? 1 : double(tokens));
      if (!decodes)
        return;
      for (Value cached : {attention.getKey(), attention.getValue()}) {
        auto type = cast<ShapedType>(cached.getType());
        result.readBytes += double(times) * double(tokens) / sharers *
                            double(type.getDimSize(1) * type.getDimSize(3)) *
                            type.getElementTypeBitWidth() / 8;
      }
    } else if (auto merge = dyn_cast<AllMergeOp>(op)) {
      // Rows with the logarithms of their sums.
      auto type = cast<ShapedType>(merge.getInput().getType());
      double floats = double(type.getDimSize(1)) *
                      double(type.getDimSize(3) + 1) *
                      (decodes ? 1 : double(tokens));
      auto pieces = int64_t(std::ceil(floats / kFloatsAtOnce));
      result.exchanges += times * pieces;
      result.messages += times * pieces * (result.sharers - 1);
      result.sentBytes +=
          double(times) * double(result.sharers - 1) * floats * 4;
    } else if (isa<AllReduceOp, AllGatherOp>(op)) {
      // The likeliest token is one number of each rank, and spares the logits.
      auto gather = dyn_cast<AllGatherOp>(op);
      if (gather && gather.getColumns().getDefiningOp<arith::SelectOp>())
        return;
      int64_t width =
          cast<ShapedType>(op->getOperand(0).getType()).getShape().back();
      double floats = rowsOf(op->getOperand(0)) *
                      double(ShapedType::isDynamic(width) ? 1 : width);
      auto pieces = int64_t(std::ceil(floats / kFloatsAtOnce));
      auto others = double(result.parts - 1);
      if (!gather && floats >= kFloatsInShares)
        countShares(cast<AllReduceOp>(op).getExperts(), pieces, others);
      result.exchanges += times * pieces;
      result.messages += times * pieces * (result.parts - 1);
      result.sentBytes += double(times) * others * floats * 4;
    }
  }

  /// How a long sum goes: what each other rank gets; whether ranks meet twice.
  /// Tokens that go to this rank's experts are the part that it has to give.
  void countShares(Value experts, int64_t &pieces, double &others) const {
    double given = 1, ranks = double(result.parts);
    int64_t active =
        experts ? cast<ShapedType>(experts.getType()).getShape().back() : 0;
    if (experts)
      given -= std::pow(1 - 1 / ranks, double(active));
    if (result.parts == 2 || active == 1) {
      others *= given;
      return;
    }
    pieces *= 2;
    others *= (given + 1) / ranks;
  }

  /// Rows of a sequence, or of its one new token: dimensions but the last.
  double rowsOf(Value value) const {
    double rows = 1;
    auto shape = cast<ShapedType>(value.getType()).getShape();
    for (auto [dim, size] : llvm::enumerate(shape.drop_back()))
      if (!decodes && dim > 0)
        rows *= double(ShapedType::isDynamic(size) ? tokens : size);
    return rows;
  }

  WeightOp weightOf(Value operand) {
    auto get = operand.getDefiningOp<WeightGetOp>();
    return get ? symbols.lookup<WeightOp>(get.getWeight()) : WeightOp();
  }

  /// A token goes through a few experts, which are on any rank as likely.
  void countExperts(Operation *op, Value experts, int64_t times) {
    auto active = cast<ShapedType>(experts.getType()).getShape().back();
    for (Value operand : op->getOperands())
      if (WeightOp weight = weightOf(operand)) {
        std::optional<WeightCut> cut = getCut(weight);
        double visits = double(active) * rowsOf(experts) /
                        double(cut && cut->cutsParts ? result.parts : 1);
        // Many tokens go through all that there are.
        double read = std::min(visits, double(weight.getNumParts()));
        countWeight(operand, double(times) * read, visits / read);
      }
  }

  /// A weight that is read `times` times, each for `rows` rows.
  void countWeight(Value operand, double times, double rows) {
    WeightOp weight = weightOf(operand);
    if (!weight)
      return;
    RankedTensorType type = weight.getPartType();
    result.readBytes += times * double(type.getNumElements()) *
                        type.getElementTypeBitWidth() / 8;
    if (type.getRank() > 1 && !weight.holdsScales())
      result.flops += 2 * times * rows * double(elementsOf(weight));
  }

  ModuleOp module;
  SymbolTable symbols;
  int64_t tokens;
  bool known = true, decodes = true;
  MeshStatistics result;
};
} // namespace

std::optional<MeshStatistics> countMesh(ModuleOp module, int64_t tokens) {
  return TokenCounter(module, tokens).run();
}

} // namespace attune

//===- LowRank.cpp - Matrices of linear layers as two thin ones -----------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Transforms/LowRank.h"

#include "RepeatedLayers.h"

#include "Attune/AttuneCut.h"
#include "Attune/AttuneDialect.h"
#include "Attune/AttuneFactors.h"
#include "Attune/AttuneKept.h"
#include "attune/Transforms/LowRankRules.h"
#include "attune/Transforms/Passes.h"
#include "attune/Weights/LowRank.h"
#include "attune/Weights/WeightFile.h"

#include "mlir/IR/Remarks.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_LOWRANK
#include "attune/Transforms/Passes.h.inc"

/// The rows and columns of a matrix of which this process may have a part.
static std::pair<int64_t, int64_t> wholeShape(WeightOp weight) {
  if (std::optional<WeightCut> cut = getCut(weight))
    return {cut->wholeRows, cut->wholeColumns};
  return {weight.getLayerType().getDimSize(0),
          weight.getLayerType().getDimSize(1)};
}

namespace {
/// Ranks that errors decide are multiples of this: whole tiles, and groups of
/// what is quantized later.
constexpr int64_t kRankStep = 32;

/// Problems of a checkpoint, as errors of the module.
class ModuleDiagnostics final : public DiagnosticEngine {
public:
  explicit ModuleDiagnostics(ModuleOp module) : module(module) {}
  void report(const Diagnostic &diagnostic) override {
    if (diagnostic.severity == Severity::Error)
      module.emitError(diagnostic.message);
  }

private:
  ModuleOp module;
};

struct LowRank final : impl::LowRankBase<LowRank> {
  using Base::Base;
  LowRank(const LowRankOptions &options, std::shared_ptr<MatrixRanks> ranks)
      : Base(options), ranks(std::move(ranks)) {}

  void runOnOperation() override {
    std::string problem;
    std::vector<std::string> words(rules.begin(), rules.end());
    auto parsed = LowRankRules::parse(words, problem);
    if (!parsed) {
      getOperation().emitError(problem);
      return signalPassFailure();
    }
    if (failed(openWeights(*parsed)))
      return signalPassFailure();
    SymbolTable symbols(getOperation());
    llvm::MapVector<WeightOp, SmallVector<WeightGetOp>> reads;
    getOperation().walk([&](WeightGetOp get) {
      if (auto weight = symbols.lookup<WeightOp>(get.getWeight()))
        reads[weight].push_back(get);
    });
    SmallVector<std::string> matrices;
    for (auto &[weight, gets] : reads) {
      if (!isMultiplied(gets))
        continue;
      matrices.push_back(weight.getSymName().str());
      std::optional<RankBound> bound = chooseBound(weight, *parsed);
      if (!bound)
        return signalPassFailure();
      if (!bound->isNone() && failed(reduce(weight, gets, *bound, symbols)))
        return signalPassFailure();
    }
    for (const std::string &pattern : parsed->unused()) {
      getOperation().emitError("no matrix has a name that '")
          << pattern << "' of --low-rank matches; there are "
          << (matrices.empty() ? "none" : llvm::join(matrices, ", "));
      return signalPassFailure();
    }
  }

private:
  /// attune-opt names the weights; a compiler has them open.
  LogicalResult openWeights(const LowRankRules &parsed) {
    if (ranks || !parsed.needsValues())
      return success();
    if (weights.empty())
      return getOperation().emitError(
          "an error of --low-rank is one of values: without weights, give "
          "ranks");
    ModuleDiagnostics diags(getOperation());
    std::optional<Checkpoint> checkpoint = Checkpoint::open(weights, diags);
    if (!checkpoint)
      return failure();
    ranks = std::make_shared<MatrixRanks>(std::move(*checkpoint));
    return success();
  }

  static bool isMultiplied(ArrayRef<WeightGetOp> gets) {
    return llvm::any_of(gets, [](WeightGetOp get) {
      return llvm::any_of(get->getUsers(), llvm::IsaPred<LinearOp, MoEOp>);
    });
  }

  static std::optional<RankBound> chooseBound(WeightOp weight,
                                              LowRankRules &rules) {
    return chooseForLayers<RankBound>(
        weight, "--low-rank",
        [&](ArrayRef<std::string> names) { return rules.lookup(names); });
  }

  static std::string findObstacle(WeightOp weight, ArrayRef<WeightGetOp> gets) {
    if (weight.getPanelWidth())
      return "is packed already";
    if (!isa<FloatType>(weight.getTensorType().getElementType()))
      return "is quantized already";
    if (factorOf(weight))
      return "is a factor already";
    if (weight.getParts())
      return "is of experts, whose kernels take whole matrices";
    if (weight.getLayerType().getRank() != 2)
      return "is no single matrix";
    if (keptOf(weight))
      return "lost heads";
    if (weight.getGain())
      return "has the gain of a norm in it";
    for (WeightGetOp get : gets)
      for (OpOperand &use : get->getUses())
        if (!isa<LinearOp>(use.getOwner()) || use.getOperandNumber() != 1)
          return ("is used by '" + use.getOwner()->getName().getStringRef() +
                  "' too")
              .str();
    return "";
  }

  void leave(WeightOp weight, const Twine &why) {
    ++numLeft;
    // For the report of who packs it.
    weight->setAttr("attune.whole", StringAttr::get(&getContext(), why));
    remark::missed(
        weight.getLoc(),
        remark::RemarkOpts::name("low-rank").category("attune-low-rank"))
        << remark::add("'{0}' {1}", weight.getSymName(), why.str());
  }

  LogicalResult reduce(WeightOp weight, ArrayRef<WeightGetOp> gets,
                       const RankBound &bound, SymbolTable &symbols) {
    if (std::string why = findObstacle(weight, gets); !why.empty()) {
      leave(weight, why);
      return success();
    }
    // The whole matrix: ranks that share it compute what one would.
    auto [rows, columns] = wholeShape(weight);
    // The greatest rank with rank * (rows + columns) < rows * columns.
    int64_t most = (rows * columns - 1) / (rows + columns);
    std::optional<int64_t> rank = bound.rank;
    if (!bound.rank) {
      ModuleDiagnostics diags(getOperation());
      bool failed = false;
      rank = ranks->find(weight, bound.error, kRankStep, most, diags, failed);
      if (failed)
        return failure();
    }
    if (!rank || *rank > most) {
      leave(weight, rank ? "of " + Twine(rows) + "x" + Twine(columns) +
                               " saves nothing at rank " + Twine(*rank) +
                               "; at most " + Twine(most) + " do"
                         : "of " + Twine(rows) + "x" + Twine(columns) +
                               " needs a rank over " + Twine(most) +
                               " for that error, which saves nothing");
      return success();
    }
    ++numReduced;
    remark::passed(
        weight.getLoc(),
        remark::RemarkOpts::name("low-rank").category("attune-low-rank"))
        << remark::add("'{0}' of {1}x{2} has rank {3}", weight.getSymName(),
                       rows, columns, *rank)
        << remark::metric("Rank", *rank);
    WeightOp right = makeFactor(weight, /*left=*/false, *rank, symbols);
    WeightOp left = makeFactor(weight, /*left=*/true, *rank, symbols);
    for (WeightGetOp get : gets)
      rewrite(get, left, right);
    symbols.erase(weight);
    return success();
  }

  static WeightOp makeFactor(WeightOp weight, bool left, int64_t rank,
                             SymbolTable &symbols) {
    Builder b(weight);
    SmallVector<int64_t> shape(weight.getTensorType().getShape());
    auto [rows, columns] = wholeShape(weight);
    shape[shape.size() - (left ? 1 : 2)] = rank;
    WeightOp factor = weight.clone();
    factor.setType(
        RankedTensorType::get(shape, weight.getTensorType().getElementType()));
    factor->removeAttr("attune.stored");
    if (std::optional<WeightCut> cut = getCut(weight))
      setCut(factor, cut->ofFactor(left, rank));
    factor->setAttr("attune.factor", b.getStringAttr(left ? "left" : "right"));
    factor->setAttr("attune.product", b.getDenseI64ArrayAttr({rows, columns}));
    factor.setSymName(
        (weight.getSymName() + (left ? ".left" : ".right")).str());
    symbols.insert(factor, std::next(weight->getIterator()));
    return factor;
  }

  static void rewrite(WeightGetOp get, WeightOp left, WeightOp right) {
    OpBuilder b(get);
    auto read = [&](WeightOp factor) {
      return WeightGetOp::create(b, get.getLoc(), factor.getLayerType(),
                                 factor.getSymName(), get.getLayer());
    };
    Value thin = read(left), flat = read(right);
    for (Operation *user : llvm::make_early_inc_range(get->getUsers())) {
      auto linear = cast<LinearOp>(user);
      b.setInsertionPoint(linear);
      SmallVector<int64_t> shape(
          cast<RankedTensorType>(linear.getInput().getType()).getShape());
      shape.back() = right.getLayerType().getDimSize(0);
      auto between = RankedTensorType::get(
          shape, cast<RankedTensorType>(linear.getType()).getElementType());
      auto inner = LinearOp::create(
          b, linear.getLoc(), between, linear.getInput(), flat,
          /*bias=*/Value(), /*residual=*/Value(), Activation::Identity,
          /*gated=*/false, /*scale=*/FloatAttr());
      if (linear.getRmsEpsAttr())
        inner.setRmsEpsAttr(linear.getRmsEpsAttr());
      auto outer = LinearOp::create(
          b, linear.getLoc(), linear.getType(), inner, thin, linear.getBias(),
          linear.getResidual(), linear.getActivationAttr(),
          linear.getGatedAttr(), linear.getScaleAttr());
      outer->setDiscardableAttrs(linear->getDiscardableAttrDictionary());
      linear.replaceAllUsesWith(outer.getResult());
      linear.erase();
    }
    get.erase();
  }

  std::shared_ptr<MatrixRanks> ranks;
};
} // namespace

std::optional<int64_t> MatrixRanks::find(WeightOp weight, double error,
                                         int64_t step, int64_t most,
                                         DiagnosticEngine &diags,
                                         bool &failed) {
  std::string key;
  llvm::raw_string_ostream(key)
      << weight.getSources() << weight.getTensorType() << error;
  if (auto known = ranks.find(key); known != ranks.end())
    return known->second;
  failed = !checkWeight(weight, checkpoint, diags);
  if (failed)
    return std::nullopt;
  std::optional<int64_t> rank = step;
  for (int64_t layer = 0; rank && layer < weight.getNumLayers(); ++layer) {
    WeightRows w = readRows(weight, layer, /*part=*/0, checkpoint);
    auto here = findRank(w.values.data(), w.rows, w.columns, error, step, most);
    rank = here ? std::optional<int64_t>(std::max(*rank, *here)) : here;
  }
  ranks[key] = rank;
  return rank;
}

std::unique_ptr<Pass> createLowRank(const LowRankOptions &options,
                                    std::shared_ptr<MatrixRanks> ranks) {
  return std::make_unique<LowRank>(options, std::move(ranks));
}
} // namespace attune

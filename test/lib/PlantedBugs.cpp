//===- PlantedBugs.cpp - What validation must catch -----------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneCut.h"
#include "Attune/AttuneMeshOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Tools/Plugins/PassPlugin.h"
#include "llvm/Config/llvm-config.h"

using namespace mlir;
using namespace attune;

/// A pass that loses the running maximum: the sums so far keep the scale of an
/// older one.
static int dropRescale(OnlineAttentionOp op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  auto fresh = [&](Value like, float value) -> Value {
    Value start = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value));
    llvm::SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, like);
    Value empty = tensor::EmptyOp::create(b, loc, sizes, b.getF32Type());
    empty = tensor::CastOp::create(b, loc, like.getType(), empty);
    return linalg::FillOp::create(b, loc, start, empty).getResult(0);
  };
  Value acc = op.getAcc(), max = op.getMax(), sum = op.getSum();
  op.getAccMutable().assign(fresh(acc, 0));
  op.getMaxMutable().assign(fresh(max, -INFINITY));
  op.getSumMutable().assign(fresh(sum, 0));
  b.setInsertionPointAfter(op);
  auto merge = [&](Value now, Value before, auto make) {
    Operation *merged = make(now, before);
    now.replaceAllUsesExcept(merged->getResult(0), merged);
  };
  auto add = [&](Value x, Value y) {
    return arith::AddFOp::create(b, loc, x, y).getOperation();
  };
  merge(op.getResult(0), acc, add);
  merge(op.getResult(2), sum, add);
  merge(op.getResult(1), max, [&](Value x, Value y) {
    return arith::MaximumFOp::create(b, loc, x, y).getOperation();
  });
  return 1;
}

static int shiftCausal(OnlineAttentionOp op) {
  OpBuilder b(op);
  Value one = arith::ConstantIndexOp::create(b, op.getLoc(), 1);
  op.getQueryOffsetMutable().assign(
      arith::AddIOp::create(b, op.getLoc(), op.getQueryOffset(), one));
  return 1;
}

/// Keys are those of one group, values those of another.
static int swapGroups(OnlineAttentionOp op) {
  auto keys = op.getKey().getDefiningOp<tensor::ExtractSliceOp>();
  if (!keys)
    return 0;
  int64_t groups = keys.getSourceType().getDimSize(1);
  OpBuilder b(keys);
  Value last = arith::ConstantIndexOp::create(b, op.getLoc(), groups - 1);
  llvm::SmallVector<OpFoldResult> offsets = keys.getMixedOffsets();
  Value group = dyn_cast<Value>(offsets[1]);
  if (!group || groups < 2)
    return 0;
  offsets[1] = arith::SubIOp::create(b, op.getLoc(), last, group).getResult();
  Value other = tensor::ExtractSliceOp::create(
      b, keys.getLoc(), keys.getType(), keys.getSource(), offsets,
      keys.getMixedSizes(), keys.getMixedStrides());
  op.getKeyMutable().assign(other);
  return 1;
}

static int biasTwice(MaskScoresOp op) {
  if (!op.getBias())
    return 0;
  OpBuilder b(op);
  b.setInsertionPointAfter(op);
  auto again = cast<MaskScoresOp>(b.clone(*op));
  again.getScoresMutable().assign(op.getResult());
  op.getResult().replaceAllUsesExcept(again.getResult(), again);
  return 1;
}

static int widenWindow(AttentionOp op) {
  if (!op.getWindow())
    return 0;
  op.setWindow(*op.getWindow() + 1);
  return 1;
}

/// The last tile is taken for a whole one.
static int dropTail(arith::MinSIOp op) {
  auto size = op.getRhs().getDefiningOp<arith::ConstantIndexOp>();
  if (!size || !op.getLhs().getDefiningOp<arith::SubIOp>())
    return 0;
  op.replaceAllUsesWith(op.getRhs());
  return 1;
}

static int softmaxOverQueries(SoftmaxOp op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  auto transpose = [&](Value scores) -> Value {
    llvm::SmallVector<OpFoldResult> sizes =
        tensor::getMixedSizes(b, loc, scores);
    std::swap(sizes[2], sizes[3]);
    Value empty = tensor::EmptyOp::create(b, loc, sizes, b.getF32Type());
    return linalg::TransposeOp::create(b, loc, scores, empty,
                                       llvm::ArrayRef<int64_t>{0, 1, 3, 2})
        ->getResult(0);
  };
  Value turned = transpose(op.getScores());
  Value weights =
      SoftmaxOp::create(b, loc, turned.getType(), turned, op.getSinks());
  op.replaceAllUsesWith(
      tensor::CastOp::create(b, loc, op.getType(), transpose(weights))
          .getResult());
  return 1;
}

static int otherPairs(RotaryOp op) {
  op.setPairing(op.getPairing() == RotaryPairing::Half
                    ? RotaryPairing::Interleaved
                    : RotaryPairing::Half);
  return 1;
}

static int forgetScale(SimilarityOp op) {
  op.setScaleAttr(OpBuilder(op).getF32FloatAttr(1));
  return 1;
}

/// Sums of products are kept in bf16.
static int narrowSums(vector::FMAOp op) {
  OpBuilder b(op);
  b.setInsertionPointAfter(op);
  auto type = cast<VectorType>(op.getType());
  Value narrow = arith::TruncFOp::create(
      b, op.getLoc(), type.clone(b.getBF16Type()), op.getResult());
  Value wide = arith::ExtFOp::create(b, op.getLoc(), type, narrow);
  op.getResult().replaceAllUsesExcept(wide, narrow.getDefiningOp());
  return 1;
}

/// What is read is the cache as it was before this step's keys.
static int readStale(CacheReadOp op) {
  auto append = op.getCache().getDefiningOp<CacheAppendOp>();
  if (!append)
    return 0;
  op.getCacheMutable().assign(append.getCache());
  return 1;
}

/// Two buffers of a frame in one place although both live.
static int reuseEarly(func::FuncOp func) {
  llvm::DenseMap<Value, memref::ViewOp> first;
  int planted = 0;
  func.walk([&](memref::ViewOp view) {
    if (isa<BlockArgument>(view.getSource()))
      return; // of the weights
    auto [place, isNew] = first.try_emplace(view.getSource(), view);
    if (!isNew && view.getByteShift() != place->second.getByteShift()) {
      view.getByteShiftMutable().assign(place->second.getByteShift());
      ++planted;
    }
  });
  return planted;
}

/// A rank takes its own part for the sum over all ranks.
static int forgetReduce(AllReduceOp op) {
  OpBuilder b(op);
  Value own = op.getInput();
  if (op.getAccumulate())
    own = arith::AddFOp::create(b, op.getLoc(), op.getDest(), own);
  op.getResult().replaceAllUsesWith(own);
  op.erase();
  return 1;
}

/// A rank norms its heads by the squares of these alone.
static int forgetSquares(AllReduceOp op) {
  return cast<ShapedType>(op.getInput().getType()).getRank() == 2
             ? forgetReduce(op)
             : 0;
}

/// A rank does not give the rows that its last expert alone has made.
static int loseRows(AllReduceOp op) {
  if (!op.getBelow())
    return 0;
  op.setBelow(*op.getBelow() - 1);
  return 1;
}

/// A rank takes what its own keys give for what all keys give.
static int forgetMerge(AllMergeOp op) {
  op.getResult().replaceAllUsesWith(op.getInput());
  op.erase();
  return 1;
}

/// A group of ranks believes that it has the positions of the one before.
static int shiftPositions(RankOp op) {
  if (!op.getOfPositions())
    return 0;
  OpBuilder b(op);
  b.setInsertionPointAfter(op);
  Value one = arith::ConstantIndexOp::create(b, op.getLoc(), 1);
  auto next = arith::AddIOp::create(b, op.getLoc(), op.getResult(), one);
  Value last = arith::MinSIOp::create(b, op.getLoc(), next, one);
  op.getResult().replaceAllUsesExcept(last, next);
  return 1;
}

/// What the first rank alone adds, all of them add.
static int biasOnEveryRank(WeightOp weight) {
  std::optional<WeightCut> cut = getCut(weight);
  if (!cut || !cut->rows.back().empty())
    return 0;
  for (auto &rows : cut->rows)
    rows = cut->rows.front();
  setCut(weight, *cut);
  return 1;
}

/// The last rank's rows are taken one too early.
static int shiftSlice(WeightOp weight) {
  std::optional<WeightCut> cut = getCut(weight);
  if (!cut || cut->cutsColumns() || cut->rows.back().empty())
    return 0;
  --cut->rows.back().back().begin;
  setCut(weight, *cut);
  return 1;
}

namespace {
/// On a module, or on its functions one by one.
struct PlantBug final : PassWrapper<PlantBug, OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PlantBug)

  PlantBug() = default;
  PlantBug(const PlantBug &other) : PassWrapper(other) {}

  StringRef getArgument() const final { return "test-plant-bug"; }
  StringRef getDescription() const final { return "Break a function"; }

  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<arith::ArithDialect, linalg::LinalgDialect,
                    tensor::TensorDialect>();
  }

  template <typename Op> bool plant(StringRef name, int (*one)(Op)) {
    if (bug != name)
      return false;
    llvm::SmallVector<Op> ops;
    getOperation()->walk([&](Op op) { ops.push_back(op); });
    int planted = 0;
    for (Op op : ops)
      planted += one(op);
    // Of many functions, some have no place for it.
    if (planted == 0 && isa<ModuleOp>(getOperation())) {
      emitError(getOperation()->getLoc(), "there is no place for " + bug);
      signalPassFailure();
    }
    return true;
  }

  void runOnOperation() final {
    if (plant("rescale", dropRescale) || plant("causal", shiftCausal) ||
        plant("groups", swapGroups) || plant("bias", biasTwice) ||
        plant("window", widenWindow) || plant("tail", dropTail) ||
        plant("axis", softmaxOverQueries) || plant("rope", otherPairs) ||
        plant("scale", forgetScale) || plant("bf16", narrowSums) ||
        plant("cache", readStale) || plant("buffer", reuseEarly) ||
        plant("reduce", forgetReduce) || plant("ranks-bias", biasOnEveryRank) ||
        plant("slice", shiftSlice) || plant("merge", forgetMerge) ||
        plant("rows", loseRows) || plant("squares", forgetSquares) ||
        plant("positions", shiftPositions))
      return;
    emitError(getOperation()->getLoc(), "'" + bug + "' is no bug");
    signalPassFailure();
  }

  Option<std::string> bug{*this, "bug", llvm::cl::desc("Which one")};
};
} // namespace

extern "C" LLVM_ATTRIBUTE_WEAK PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "PlantedBugs", LLVM_VERSION_STRING,
          [] { PassRegistration<PlantBug>(); }};
}

//===- Shard.cpp - One rank's part of a model -------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CandidateShards.h"
#include "HeadShards.h"
#include "WeightShards.h"

#include "Attune/AttuneMeshOps.h"
#include "attune/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_SHARD
#include "attune/Transforms/Passes.h.inc"

namespace {
/// An uninitialised tensor as large as `like`, with `type`'s known sizes.
Value emptyLike(OpBuilder &b, Location loc, Value like, RankedTensorType type) {
  SmallVector<Value> sizes;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (type.isDynamicDim(dim))
      sizes.push_back(tensor::DimOp::create(b, loc, like, dim));
  return tensor::EmptyOp::create(b, loc, type, sizes);
}

/// The sum over all ranks, added to `addend` if there is one. With `experts` a
/// rank gives the rows of those `below` a number.
Value reduce(OpBuilder &b, Location loc, Value partial, Value addend,
             Value experts = Value(), IntegerAttr below = {}) {
  auto type = cast<RankedTensorType>(partial.getType());
  Value dest = addend ? addend : emptyLike(b, loc, partial, type);
  return AllReduceOp::create(b, loc, type, partial, experts, dest, below,
                             bool(addend))
      .getResult();
}

struct Shard final : impl::ShardBase<Shard> {
  using Base::Base;

  void getDependentDialects(DialectRegistry &registry) const override {
    Base::getDependentDialects(registry);
    registry.insert<math::MathDialect>(); // a norm of several ranks' parts
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (tp < 1 || ep < 1 || (tp > 1 && ep > 1 && tp != ep)) {
      module.emitError("tp and ep must be positive and, where both are more "
                       "than 1, the same; not ")
          << tp.getValue() << " and " << ep.getValue();
      return signalPassFailure();
    }
    int64_t ranks = std::max(tp.getValue(), ep.getValue());
    if (ranks == 1)
      return;
    WeightShards weights(module, ranks);
    if ((ep > 1 && failed(cutExperts(module, weights))) ||
        (tp > 1 && failed(cutLayers(module, weights))) ||
        failed(weights.finish()))
      return signalPassFailure();
    if (weights.numCut() == 0) {
      module.emitError(tp > 1 ? "has no attention, no feed-forward layer and "
                                "no vocabulary that ranks could share"
                              : "has no experts that ranks could share");
      return signalPassFailure();
    }
    module->setAttr("attune.ranks", Builder(module).getI64IntegerAttr(ranks));
    numCut += weights.numCut();
  }

  LogicalResult cutLayers(ModuleOp module, WeightShards &weights) {
    HeadShards heads(module, weights);
    return success(succeeded(heads.run()) &&
                   succeeded(cutFeedForward(module, weights)) &&
                   succeeded(cutVocabulary(module, weights)));
  }

  /// Each rank has a run of the experts of every mixture, sees all tokens, and
  /// adds what its own experts give them; then a sum. A mixture of one, which a
  /// gate makes of a shared expert, is everybody's.
  LogicalResult cutExperts(ModuleOp module, WeightShards &weights) {
    WalkResult walked = module.walk([&](MoEOp op) -> WalkResult {
      int64_t experts = op.getUp().getType().getDimSize(0);
      return experts == 1 ? success() : cutMixture(op, experts, weights);
    });
    return failure(walked.wasInterrupted());
  }

  LogicalResult cutMixture(MoEOp op, int64_t experts, WeightShards &weights) {
    if (experts < ep)
      return op.emitError()
             << experts << " experts cannot be shared by " << ep.getValue()
             << " ranks, of which some would have none; --mesh=ep=N takes an "
                "N of at most as many";
    for (Value stack :
         {op.getUp(), op.getDown(), op.getUpBias(), op.getDownBias()})
      if (stack && failed(weights.cutParts(stack)))
        return failure();
    OpBuilder b(op);
    Location loc = op.getLoc();
    Shares shares = {experts, ep};
    Value rank = RankOp::create(b, loc);
    Value first = firstOf(b, loc, rank, shares), next;
    if (experts % ep != 0) {
      Value one = arith::ConstantIndexOp::create(b, loc, 1);
      next = firstOf(b, loc, arith::AddIOp::create(b, loc, rank, one), shares);
    }
    Value own = toLocal(b, op.getExperts(), first, next, shares.most());
    op.getExpertsMutable().assign(own);
    addUp(op, op.getResidualMutable(), own, b.getI64IntegerAttr(shares.most()));
    return success();
  }

  /// The first of a rank's share.
  static Value firstOf(OpBuilder &b, Location loc, Value rank, Shares shares) {
    auto times = [&](int64_t factor) -> Value {
      Value constant = arith::ConstantIndexOp::create(b, loc, factor);
      return arith::MulIOp::create(b, loc, rank, constant);
    };
    if (shares.units % shares.ranks == 0)
      return times(shares.most());
    Value ranks = arith::ConstantIndexOp::create(b, loc, shares.ranks);
    return arith::DivUIOp::create(b, loc, times(shares.units), ranks);
  }

  /// Numbers from `first` on, of which this rank has those below `next`; null:
  /// `most` of them. What another rank has becomes `most`, which is behind the
  /// last.
  static Value toLocal(OpBuilder &b, Value ids, Value first, Value next,
                       int64_t most) {
    Location loc = ids.getLoc();
    Value none = arith::ConstantIntOp::create(b, loc, most, 64), count = none;
    if (next) {
      count = arith::SubIOp::create(b, loc, next, first);
      count = arith::IndexCastOp::create(b, loc, b.getI64Type(), count);
    }
    first = arith::IndexCastOp::create(b, loc, b.getI64Type(), first);
    auto type = cast<RankedTensorType>(ids.getType());
    Value dest = emptyLike(b, loc, ids, type);
    AffineMap same = b.getMultiDimIdentityMap(type.getRank());
    SmallVector<utils::IteratorType> loops(type.getRank(),
                                           utils::IteratorType::parallel);
    auto compute = [&](OpBuilder &b, Location loc, ValueRange in) {
      Value id = in[0];
      if (!type.getElementType().isInteger(64))
        id = arith::ExtSIOp::create(b, loc, b.getI64Type(), id);
      Value local = arith::SubIOp::create(b, loc, id, first);
      Value inside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                           local, count);
      local = arith::SelectOp::create(b, loc, inside, local, none);
      if (!type.getElementType().isInteger(64))
        local = arith::TruncIOp::create(b, loc, type.getElementType(), local);
      linalg::YieldOp::create(b, loc, local);
    };
    return linalg::GenericOp::create(
               b, loc, TypeRange(type), ValueRange(ids), ValueRange(dest),
               ArrayRef<AffineMap>{same, same}, loops, compute)
        .getResult(0);
  }

  /// Puts the sum over all ranks in place of an op's only result; its residual
  /// counts once. With `experts` a rank gives what those `below` a number do.
  static void addUp(Operation *op, MutableOperandRange residual,
                    Value experts = Value(), IntegerAttr below = {}) {
    Value addend = residual.empty() ? Value() : residual[0].get();
    residual.clear();
    OpBuilder b(op);
    b.setInsertionPointAfter(op);
    Value result = op->getResult(0);
    Value sum = reduce(b, op->getLoc(), result, addend, experts, below);
    result.replaceUsesWithIf(sum, [&](OpOperand &use) {
      Operation *user = use.getOwner();
      return user != sum.getDefiningOp() && !isa<tensor::DimOp>(user);
    });
  }

  /// Up projections by rows, down projections by columns, then a sum.
  LogicalResult cutFeedForward(ModuleOp module, WeightShards &weights) {
    WalkResult walked = module.walk([&](Operation *op) -> WalkResult {
      if (auto ffn = dyn_cast<FFNOp>(op))
        return cutWidth(ffn, ffn.getUp(), ffn.getUpBias(), 1, weights);
      if (auto ffn = dyn_cast<GatedFFNOp>(op))
        return cutWidth(ffn, ffn.getGateUp(), ffn.getGateUpBias(), 2, weights);
      // Experts that ranks do not share whole, and shared ones behind a gate.
      if (auto moe = dyn_cast<MoEOp>(op);
          moe && (ep == 1 || moe.getUp().getType().getDimSize(0) == 1) &&
          !weights.isCut(moe.getUp()))
        return cutWidth(moe, moe.getUp(), moe.getUpBias(),
                        moe.getGated() ? 2 : 1, weights);
      return success();
    });
    return failure(walked.wasInterrupted());
  }

  /// Hidden columns of a layer, or of each of its experts.
  template <typename Op>
  LogicalResult cutWidth(Op ffn, Value up, Value upBias, int64_t halves,
                         WeightShards &weights) {
    auto type = cast<RankedTensorType>(up.getType());
    int64_t rows = type.getDimSize(type.getRank() - 2), width = rows / halves;
    FailureOr<WeightShards::Range> columns = weights.hiddenColumns(ffn, width);
    if (failed(columns))
      return failure();
    std::vector<WeightShards::Range> ranges;
    for (int64_t half = 0; half < halves; ++half)
      ranges.push_back({half * width, columns->units, columns->width});
    if (failed(weights.cutRows(up, ranges)) ||
        (upBias && failed(weights.cutRows(upBias, ranges))) ||
        failed(weights.cutColumns(ffn.getDown(), *columns)))
      return failure();
    if (Value bias = ffn.getDownBias())
      if (failed(weights.keepOnFirst(bias)))
        return failure();
    addUp(ffn, ffn.getResidualMutable());
    return success();
  }

  /// The table and the head: each rank has a range of the vocabulary, and a row
  /// of zeros behind it for the tokens of other ranks.
  LogicalResult cutVocabulary(ModuleOp module, WeightShards &weights) {
    SmallVector<EmbeddingOp> tables;
    SmallVector<LinearOp> heads;
    module.walk([&](EmbeddingOp embedding) {
      if (readsTokens(embedding))
        tables.push_back(embedding);
    });
    for (EmbeddingOp embedding : tables)
      if (failed(cutTable(embedding, weights)))
        return failure();
    // Whatever the output is called, if a table that is cut gives it.
    module.walk([&](LinearOp linear) {
      StringRef output = findOutput(linear);
      if (output == "logits" ||
          (!output.empty() && weights.isCutElsewhere(linear.getWeight())))
        heads.push_back(linear);
    });
    for (LinearOp head : heads)
      if (failed(cutHead(head, weights)))
        return failure();
    return success();
  }

  /// Whether the ids are an input that the caller has to give: not positions,
  /// and not kinds of tokens.
  static bool readsTokens(EmbeddingOp op) {
    auto ids = dyn_cast<BlockArgument>(op.getIds());
    if (!ids || !op.getTable().getDefiningOp<WeightGetOp>() || op.getOffset())
      return false;
    auto func = dyn_cast<func::FuncOp>(ids.getOwner()->getParentOp());
    if (!func || !func->hasAttr("attune.entry"))
      return false;
    auto given =
        func.getArgAttrOfType<StringAttr>(ids.getArgNumber(), "attune.default");
    return !given || given.getValue() == "shifted"; // other tokens
  }

  /// The output of an entry that the result becomes; empty if another layer
  /// reads it.
  static StringRef findOutput(LinearOp op) {
    auto func = dyn_cast<func::FuncOp>(op->getParentOp());
    if (!func || !func->hasAttr("attune.entry") || op.getGated() ||
        op.getResidual() || !op.getWeight().getDefiningOp<WeightGetOp>())
      return "";
    Value value = op.getResult();
    while (OpOperand *use = onlyUse(value)) {
      if (auto result = dyn_cast<func::ReturnOp>(use->getOwner())) {
        auto name = func.getResultAttrOfType<StringAttr>(
            use->getOperandNumber(), "attune.name");
        return name ? name.getValue() : "";
      }
      if (use->getOwner()->getNumResults() != 1 ||
          isa<LinearOp, LayerNormOp, RMSNormOp>(use->getOwner()))
        return "";
      value = use->getOwner()->getResult(0);
    }
    return "";
  }

  /// The use of a value, if there is one beside a choice of candidates and
  /// questions for its size.
  static OpOperand *onlyUse(Value value) {
    OpOperand *only = nullptr;
    for (OpOperand &use : value.getUses()) {
      if (isa<TopKOp, tensor::DimOp>(use.getOwner()))
        continue;
      if (only)
        return nullptr;
      only = &use;
    }
    return only;
  }

  /// The choice among what a head gives, with nothing but a reshape between.
  static TopKOp findChoice(LinearOp head) {
    OpOperand *use = onlyUse(head.getResult());
    auto reshape =
        use ? dyn_cast<tensor::CollapseShapeOp>(use->getOwner()) : nullptr;
    if (reshape)
      for (Operation *user : reshape->getUsers())
        if (auto choice = dyn_cast<TopKOp>(user))
          return choice;
    return {};
  }

  LogicalResult cutTable(EmbeddingOp op, WeightShards &weights) {
    int64_t rows = op.getTable().getType().getDimSize(0);
    int64_t each = llvm::divideCeil(rows, tp.getValue());
    Location loc = op.getLoc();
    OpBuilder b(op);
    if (failed(weights.cutPaddedRows(op.getTable(), each)))
      return failure();
    // A token of another rank takes the row of zeros behind the own ones.
    Value first =
        firstOf(b, loc, RankOp::create(b, loc), Shares{each * tp, tp});
    Value own = toLocal(b, op.getIds(), first, /*next=*/Value(), each);
    Value partial =
        EmbeddingOp::create(b, loc, op.getType(), own, op.getTable(), Value(),
                            op.getScaleAttr(), op.getOffsetAttr());
    Value sum = reduce(b, loc, partial, op.getAddend());
    op->replaceAllUsesWith(ValueRange(sum));
    op.erase();
    return success();
  }

  LogicalResult cutHead(LinearOp op, WeightShards &weights) {
    int64_t rows =
        cast<RankedTensorType>(op.getWeight().getType()).getDimSize(0);
    auto whole = cast<RankedTensorType>(op.getType());
    int64_t total = whole.getShape().back();
    int64_t each = llvm::divideCeil(total, tp.getValue());
    // A tied table is cut already.
    if (!weights.isCut(op.getWeight()) && rows != total)
      return success();
    if (failed(weights.cutPaddedRows(op.getWeight(), each)) ||
        (op.getBias() && failed(weights.cutPaddedRows(op.getBias(), each))))
      return failure();
    SmallVector<int64_t> shape(whole.getShape());
    shape.back() = each + 1;
    OpBuilder b(op);
    b.setInsertionPointAfter(op);
    Location loc = op.getLoc();
    Value result = op.getResult();
    TopKOp choice = findChoice(op);
    Value own = result;
    result.setType(whole.clone(shape));
    Value columns = arith::ConstantIndexOp::create(b, loc, each);
    if (choice) {
      // Whoever asks for candidates does not read the logits.
      auto reshape =
          choice.getLogits().getDefiningOp<tensor::CollapseShapeOp>();
      own = tensor::CollapseShapeOp::create(b, loc, result,
                                            reshape.getReassociationIndices());
      Value none = arith::ConstantIndexOp::create(b, loc, 0);
      Value all = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                        choice.getCount(), none);
      columns = arith::SelectOp::create(b, loc, all, columns, none);
      if (failed(cutCandidates(choice, {own, each, total, tp.getValue()})))
        return failure();
    }
    Value dest = emptyLike(b, loc, result, whole);
    Value all =
        AllGatherOp::create(b, loc, whole, result, columns, dest).getResult();
    result.replaceUsesWithIf(all, [&](OpOperand &use) {
      Operation *user = use.getOwner();
      return user != all.getDefiningOp() && !isa<tensor::DimOp>(user) &&
             user != own.getDefiningOp();
    });
    return success();
  }
};
} // namespace
} // namespace attune

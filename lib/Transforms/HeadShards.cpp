//===- HeadShards.cpp - Which rank has which heads --------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HeadShards.h"

#include "NormShards.h"
#include "StateShards.h"

#include "Attune/AttuneMeshOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace attune {

FailureOr<unsigned> HeadShards::kindOf(Operation *op, Heads heads) {
  if (heads.queries < ranks)
    return op->emitError() << heads.queries << " heads cannot be shared by "
                           << ranks
                           << " ranks, of which some would have none; "
                              "--mesh=tp=N takes an N of at most as many";
  if (heads.keys < ranks && ranks % heads.keys != 0)
    return op->emitError()
           << ranks << " ranks cannot have copies of " << heads.keys
           << " heads of keys and values, equally many of each; --mesh=tp=N "
              "takes an N that they divide";
  auto *known = llvm::find_if(kinds, [&](const Heads &other) {
    return other.queries == heads.queries && other.keys == heads.keys;
  });
  auto kind = unsigned(2 * (known - kinds.begin()));
  if (known == kinds.end())
    kinds.push_back(heads);
  return kind;
}

WeightShards::Range HeadShards::rangeOf(unsigned kind, int64_t width,
                                        int64_t begin) const {
  auto [queries, keys] = kinds[kind / 2];
  if (!isCopied(kind))
    return {begin, keys, kind % 2 ? width : queries / keys * width};
  if (kind % 2)
    return {begin, keys, width, ranks / keys};
  return {begin, queries, width};
}

int64_t HeadShards::shareOfHeads(unsigned kind) const {
  WeightShards::Range range = rangeOf(kind, 1);
  return Shares{range.units, ranks / range.repeat}.most() * range.width;
}

/// One head of keys and values is everybody's.
std::optional<unsigned> HeadShards::keysOf(unsigned queries) {
  if (kinds[queries / 2].keys == 1)
    return std::nullopt;
  return queries + 1;
}

RankedTensorType HeadShards::shareOf(Value value, unsigned kind) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (type && type.getRank() >= 3 && type.getRank() <= 5) {
    SmallVector<int64_t> shape(type.getShape());
    int64_t &size = shape[headDim(type)], heads = headsOf(kind);
    if (type.getRank() > 3 ? size == heads : size > 0 && size % heads == 0) {
      size = size / heads * shareOfHeads(kind);
      return type.clone(shape);
    }
  }
  emitError(value.getLoc())
      << value.getType() << " does not have the " << headsOf(kind)
      << " heads of attention, and cannot be cut by them among ranks";
  return {};
}

LogicalResult HeadShards::sliceHeads(OpOperand &operand, int64_t dim,
                                     unsigned kind) {
  auto type = cast<RankedTensorType>(operand.get().getType());
  if (type.getDimSize(dim) == 1)
    return success();
  Operation *op = operand.getOwner();
  if (type.getDimSize(dim) != headsOf(kind))
    return op->emitError("cannot cut ")
           << type << " among ranks, which belongs to " << headsOf(kind)
           << " heads";
  OpBuilder b(op);
  Location loc = op->getLoc();
  WeightShards::Range range = rangeOf(kind, 1);
  int64_t groups = ranks / range.repeat;
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  // As in Shares::first.
  Value first = RankOp::create(b, loc);
  if (range.repeat > 1)
    first = arith::DivUIOp::create(b, loc, first, constant(range.repeat));
  if (range.units % groups != 0) {
    first = arith::MulIOp::create(b, loc, first, constant(range.units));
    first = arith::DivUIOp::create(b, loc, first, constant(groups));
    first = arith::MulIOp::create(b, loc, first, constant(range.width));
  } else {
    first = arith::MulIOp::create(b, loc, first,
                                  constant(range.units / groups * range.width));
  }
  SmallVector<OpFoldResult> offsets(type.getRank(), b.getIndexAttr(0)), sizes,
      strides(type.getRank(), b.getIndexAttr(1));
  SmallVector<int64_t> shape(type.getShape());
  offsets[dim] = first;
  shape[dim] = shareOfHeads(kind);
  for (int64_t i = 0; i < type.getRank(); ++i)
    sizes.push_back(
        ShapedType::isDynamic(shape[i])
            ? OpFoldResult(
                  tensor::DimOp::create(b, loc, operand.get(), i).getResult())
            : b.getIndexAttr(shape[i]));
  operand.set(tensor::ExtractSliceOp::create(
      b, loc, type.clone(shape), operand.get(), offsets, sizes, strides));
  return success();
}

/// Whether one reader has what is made of products, column by column.
static bool isOfProducts(Value value) {
  Operation *op = value.getDefiningOp();
  // Sizes of a batch are asked of anything that has it.
  auto read = [](Operation *user) { return !isa<tensor::DimOp>(user); };
  if (!op || llvm::count_if(value.getUsers(), read) != 1)
    return false;
  if (auto linear = dyn_cast<LinearOp>(op)) {
    Value below = linear.getResidual();
    return !linear.getGated() &&
           (!below || (below.getDefiningOp<LinearOp>() && isOfProducts(below)));
  }
  return isa<ActivationOp, arith::MulFOp>(op) &&
         llvm::all_of(op->getOperands(), isOfProducts);
}

LogicalResult HeadShards::cutProduct(LinearOp linear,
                                     ArrayRef<WeightShards::Range> ranges) {
  Value below = linear.getResidual();
  auto more = below ? below.getDefiningOp<LinearOp>() : LinearOp();
  if (linear.getGated() || (below && !(more && isOfProducts(below))))
    return refuse(linear);
  if (failed(weights.cutRows(linear.getWeight(), ranges)) ||
      (linear.getBias() && failed(weights.cutRows(linear.getBias(), ranges))))
    return failure();
  auto type = cast<RankedTensorType>(linear.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape.back() = 0;
  for (const WeightShards::Range &range : ranges)
    shape.back() +=
        Shares{range.units, ranks / range.repeat}.most() * range.width;
  linear.getResult().setType(type.clone(shape));
  return more ? cutProduct(more, ranges) : success();
}

/// Queries, keys and values by rows, each in the order of its heads. All ranks
/// have those that are not marked.
LogicalResult HeadShards::cutProjection(LinearOp linear) {
  FailureOr<SmallVector<SplitHeadsOp>> splits = splitsOf(linear);
  if (failed(splits))
    return failure();
  std::vector<WeightShards::Range> ranges;
  int64_t next = 0, local = 0;
  for (SplitHeadsOp split : *splits) {
    auto type = cast<RankedTensorType>(split.getType());
    int64_t width = type.getDimSize(3), share = type.getDimSize(1);
    int64_t heads = share;
    // Two readers of the same heads, or columns that nobody reads.
    if (int64_t(split.getOffset()) != next)
      return refuse(split);
    if (auto kind = marked.find(split.getResult()); kind != marked.end()) {
      heads = headsOf(kind->second);
      ranges.push_back(rangeOf(kind->second, width, next));
    } else {
      ranges.push_back({next, 1, heads * width, ranks});
    }
    next += heads * width;
    split.setOffset(local);
    local += share * width;
  }
  if (next != cast<RankedTensorType>(linear.getType()).getDimSize(2))
    return refuse(linear);
  RMSNormOp norm = normOf(linear);
  if (failed(cutProduct(linear, ranges)))
    return failure();
  return norm ? cutNorm(norm, next, ranges) : success();
}

/// A norm over all heads, of which each rank has some.
LogicalResult HeadShards::cutNorm(RMSNormOp norm, int64_t columns,
                                  ArrayRef<WeightShards::Range> ranges) {
  int64_t copies = ranges.front().repeat;
  for (const WeightShards::Range &range : ranges)
    if (range.repeat != copies || range.units % (ranks / copies) != 0)
      return norm.emitError("a norm over all heads cannot be cut in ")
             << ranks
             << " parts of which some have more heads; --mesh=tp=N takes an N "
                "that divides them";
  if (norm.getGamma() && failed(weights.cutRows(norm.getGamma(), ranges)))
    return failure();
  normAcrossRanks(norm, columns, copies);
  return success();
}

/// Limits of what a projection computes, as those of heads: what is read then
/// is the projection.
static void limitHeads(ModuleOp module) {
  auto isLimit = [](Operation *op) {
    return isa_and_nonnull<arith::MaximumFOp, arith::MinimumFOp>(op) &&
           op->getOperand(1).getDefiningOp<tensor::SplatOp>();
  };
  module.walk([&](SplitHeadsOp split) {
    SmallVector<Operation *> limits;
    Value rows = split.getInput();
    for (; isLimit(rows.getDefiningOp());
         rows = rows.getDefiningOp()->getOperand(0))
      limits.push_back(rows.getDefiningOp());
    if (limits.empty() || !rows.getDefiningOp<LinearOp>())
      return;
    split.getInputMutable().assign(rows);
    OpBuilder b(split);
    b.setInsertionPointAfter(split);
    Location loc = split.getLoc();
    Value heads = split.getResult();
    auto type = cast<RankedTensorType>(heads.getType());
    SmallVector<Value> sizes;
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      if (type.isDynamicDim(dim))
        sizes.push_back(tensor::DimOp::create(b, loc, heads, dim));
    SmallPtrSet<Operation *, 8> own;
    for (Value size : sizes)
      own.insert(size.getDefiningOp());
    Value limited = heads;
    for (Operation *limit : llvm::reverse(limits)) {
      Value number =
          limit->getOperand(1).getDefiningOp<tensor::SplatOp>().getInput();
      Value splat = tensor::SplatOp::create(b, loc, type, number, sizes);
      Operation *same = b.create(loc, limit->getName().getIdentifier(),
                                 {limited, splat}, {type}, limit->getAttrs());
      own.insert(same);
      limited = same->getResult(0);
    }
    heads.replaceAllUsesExcept(limited, own);
    for (Operation *limit : limits)
      if (limit->use_empty())
        limit->erase();
  });
}

/// Whether a sum over ranks of what this computes is what it would compute.
static bool canSum(LinearOp linear) {
  return !linear.getGated() && linear.getActivation() == Activation::Identity &&
         !linear.getRmsEps();
}

/// The projection of merged heads by columns, then a sum over all ranks.
LogicalResult HeadShards::cutOutput(LinearOp linear) {
  if (!canSum(linear))
    return refuse(linear);
  unsigned kind = marked.lookup(linear.getInput());
  int64_t width = wholeHeads.lookup(linear.getInput()) / headsOf(kind);
  if (failed(weights.cutColumns(linear.getWeight(), rangeOf(kind, width))) ||
      (linear.getBias() && failed(weights.keepOnFirst(linear.getBias()))))
    return failure();
  Value residual = linear.getResidual();
  linear.getResidualMutable().clear();
  OpBuilder b(linear);
  b.setInsertionPointAfter(linear);
  Location loc = linear.getLoc();
  Value partial = linear.getResult(), dest = residual;
  auto type = cast<RankedTensorType>(partial.getType());
  if (!dest) {
    SmallVector<Value> sizes;
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      if (type.isDynamicDim(dim))
        sizes.push_back(tensor::DimOp::create(b, loc, partial, dim));
    dest = tensor::EmptyOp::create(b, loc, type, sizes);
  }
  auto sum =
      AllReduceOp::create(b, loc, type, partial, /*experts=*/Value(), dest,
                          /*below=*/nullptr, bool(residual));
  partial.replaceUsesWithIf(sum.getResult(), [&](OpOperand &use) {
    return use.getOwner() != sum && !isa<tensor::DimOp>(use.getOwner());
  });
  return success();
}

LogicalResult HeadShards::cutGate(LinearOp linear) {
  unsigned kind = marked.lookup(linear.getResult());
  int64_t width = wholeHeads.lookup(linear.getResult()) / headsOf(kind);
  return cutProduct(linear, rangeOf(kind, width));
}

LogicalResult HeadShards::markHidden() {
  SmallVector<LinearOp> layers;
  module.walk([&](LinearOp linear) {
    Value hidden = linear.getInput();
    if (hidden.getDefiningOp<arith::MulFOp>() && isOfProducts(hidden) &&
        canSum(linear))
      layers.push_back(linear);
  });
  for (LinearOp layer : layers) {
    auto type = cast<RankedTensorType>(layer.getInput().getType());
    FailureOr<WeightShards::Range> columns =
        weights.hiddenColumns(layer, type.getShape().back());
    if (failed(columns))
      return failure();
    FailureOr<unsigned> kind = kindOf(layer, {columns->units, columns->units});
    if (failed(kind) || failed(mark(layer.getInput(), *kind)))
      return failure();
  }
  return success();
}

/// Marks the queries of all attention; the rest follows.
LogicalResult HeadShards::markAttention() {
  SmallVector<std::pair<Value, unsigned>> queries;
  WalkResult walked = module.walk([&](Operation *op) -> WalkResult {
    if (!isa<SimilarityOp, WeightedSumOp, AttentionOp>(op))
      return success();
    auto headsAt = [&](unsigned number) {
      return cast<RankedTensorType>(op->getOperand(number).getType())
          .getDimSize(1);
    };
    FailureOr<unsigned> kind = kindOf(op, {headsAt(0), headsAt(1)});
    if (failed(kind))
      return failure();
    queries.emplace_back(op->getOperand(0), *kind);
    return success();
  });
  if (walked.wasInterrupted())
    return failure();
  for (auto [value, kind] : queries)
    if (failed(mark(value, kind)))
      return failure();
  return follow();
}

LogicalResult HeadShards::slicePerHead(Operation *op) {
  bool scores = isa<MaskScoresOp, SoftmaxOp, AttentionOp>(op);
  bool norm = isa<LayerNormOp, RMSNormOp>(op);
  unsigned kind = marked.lookup(op->getOperand(0));
  for (OpOperand &operand : op->getOpOperands()) {
    auto type = dyn_cast<RankedTensorType>(operand.get().getType());
    // Keys that all ranks have are no part of it.
    if (!type || marked.contains(operand.get()) ||
        (isa<AttentionOp>(op) && operand.getOperandNumber() < 3))
      continue;
    bool floats = isa<FloatType>(type.getElementType());
    bool matrix = scores && type.getRank() == 4;
    bool vector = (scores && floats && type.getRank() <= 2) ||
                  (norm && type.getRank() == 2);
    if ((matrix || vector) && failed(sliceHeads(operand, matrix ? 1 : 0, kind)))
      return failure();
  }
  return success();
}

/// Each rank keeps for itself what one entry hands on to another.
void HeadShards::noteOwn() {
  constexpr StringRef name = "attune.of_rank";
  auto isHandedOn = [&](Value value, DictionaryAttr attributes) {
    auto use =
        attributes ? attributes.getAs<StringAttr>("attune.kind") : StringAttr();
    return marked.contains(value) && use && use.getValue() != "cache";
  };
  UnitAttr yes = UnitAttr::get(module.getContext());
  for (auto func : module.getOps<func::FuncOp>()) {
    if (!func->hasAttr("attune.entry") || func.isExternal())
      continue;
    for (BlockArgument argument : func.getArguments())
      if (unsigned i = argument.getArgNumber();
          isHandedOn(argument, func.getArgAttrDict(i)))
        func.setArgAttr(i, name, yes);
    Operation *result = func.getBody().back().getTerminator();
    for (OpOperand &operand : result->getOpOperands())
      if (unsigned i = operand.getOperandNumber();
          isHandedOn(operand.get(), func.getResultAttrDict(i)))
        func.setResultAttr(i, name, yes);
  }
}

LogicalResult HeadShards::run() {
  limitHeads(module);
  StateShards states(module, weights);
  WalkResult rules = module.walk([&](DeltaRuleOp rule) -> WalkResult {
    int64_t heads =
        cast<RankedTensorType>(rule.getStep().getType()).getShape().back();
    if (!states.canCut(rule))
      return success();
    if (failed(states.addRule(rule)))
      return failure();
    FailureOr<unsigned> kind = kindOf(rule, {heads, heads});
    return succeeded(kind) ? mark(rule.getResult(), *kind) : failure();
  });
  if (rules.wasInterrupted() || failed(states.follow()) ||
      failed(markHidden()) || failed(markAttention()))
    return failure();
  for (Operation *op : perHead)
    if (failed(slicePerHead(op)))
      return failure();
  for (Operation *linear : projections)
    if (failed(cutProjection(cast<LinearOp>(linear))))
      return failure();
  for (Operation *linear : gates)
    if (failed(cutGate(cast<LinearOp>(linear))))
      return failure();
  for (Operation *linear : outputs)
    if (failed(cutOutput(cast<LinearOp>(linear))))
      return failure();
  for (Operation *op : headMatrices)
    if (failed(weights.cutParts(cast<HeadLinearOp>(op).getWeight())))
      return failure();
  updateCaches();
  noteOwn();
  states.updateCaches();
  updateFunctions();
  return success();
}

} // namespace attune

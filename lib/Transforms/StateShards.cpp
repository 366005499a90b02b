//===- StateShards.cpp - Which rank has which memories ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StateShards.h"

#include "HeadFlow.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace attune {

static int64_t columnsOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape().back();
}

static void setColumns(Value value, int64_t columns) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape.back() = columns;
  value.setType(type.clone(shape));
}

/// Sets the columns of a slice that has all columns of its source or target.
static void setSliceColumns(OffsetSizeAndStrideOpInterface slice,
                            DenseI64ArrayAttr sizes, int64_t columns) {
  SmallVector<int64_t> known(sizes.asArrayRef());
  known.back() = columns;
  slice->setAttr("static_sizes",
                 DenseI64ArrayAttr::get(slice->getContext(), known));
}

static void setSliceColumns(tensor::ExtractSliceOp op, int64_t columns) {
  setSliceColumns(op, op.getStaticSizesAttr(), columns);
}

static void setSliceColumns(tensor::InsertSliceOp op, int64_t columns) {
  setSliceColumns(op, op.getStaticSizesAttr(), columns);
}

LogicalResult StateShards::refuse(Operation *op) {
  return op->emitError("'")
         << op->getName() << "' cannot be cut by heads among ranks";
}

LogicalResult StateShards::mark(Value value, const Ranges &ranges) {
  if (!marked.insert({value, ranges}).second)
    return success();
  setColumns(value, columnsOf(value) / ranks);
  work.push_back(value);
  return success();
}

FailureOr<tensor::ExtractSliceOp>
StateShards::findPart(Value value, int64_t offset, Value from) {
  auto part = value.getDefiningOp<tensor::ExtractSliceOp>();
  if (!part || part.getStaticOffsets().back() != offset ||
      (from && part.getSource() != from))
    return failure();
  return part;
}

bool StateShards::canCut(DeltaRuleOp rule) const {
  int64_t heads = columnsOf(rule.getStep());
  int64_t width =
      cast<RankedTensorType>(rule.getLast().getType()).getDimSize(1);
  int64_t keyHeads = columnsOf(rule.getQuery()) / width;
  if (heads % ranks == 0 && keyHeads % ranks == 0)
    return true;
  rule.emitWarning("a delta rule of ")
      << heads << " heads and " << keyHeads << " key heads has no " << ranks
      << " equal parts, and each rank computes all of it; --mesh=tp=N with an "
         "N that divides both cuts it";
  return false;
}

LogicalResult StateShards::addRule(DeltaRuleOp rule) {
  int64_t heads = columnsOf(rule.getStep());
  int64_t keys = columnsOf(rule.getQuery()),
          values = columnsOf(rule.getValue());
  auto query = findPart(rule.getQuery(), 0, Value());
  if (failed(query))
    return refuse(rule);
  Value all = query->getSource();
  auto key = findPart(rule.getKey(), keys, all);
  auto value = findPart(rule.getValue(), 2 * keys, all);
  auto step = rule.getStep().getDefiningOp<LinearOp>();
  auto beta = rule.getBeta().getDefiningOp<LinearOp>();
  if (failed(key) || failed(value) || columnsOf(all) != 2 * keys + values ||
      !step || !beta)
    return refuse(rule);
  for (tensor::ExtractSliceOp part : {*query, *key, *value}) {
    parts.insert(part);
    SmallVector<int64_t> offsets(part.getStaticOffsets());
    offsets.back() /= ranks;
    part.setStaticOffsets(offsets);
    int64_t columns = columnsOf(part.getResult()) / ranks;
    setSliceColumns(part, columns);
    setColumns(part.getResult(), columns);
  }
  Ranges channels = {{0, keys}, {keys, keys}, {2 * keys, values}};
  Ranges each = {{0, heads}};
  if (failed(mark(all, channels)) || failed(cutProjection(step, each)) ||
      failed(cutProjection(beta, each)) ||
      failed(weights.cutRows(rule.getALog(), each)))
    return failure();
  setColumns(step.getResult(), heads / ranks);
  setColumns(beta.getResult(), heads / ranks);
  // Memories come from no projection.
  if (rule.getState() && failed(mark(rule.getState(), {})))
    return failure();
  return mark(rule.getLast(), {});
}

LogicalResult StateShards::cutProjection(LinearOp linear,
                                         const Ranges &ranges) {
  if (linear.getResidual() || linear.getGated() || ranges.empty())
    return refuse(linear);
  if (failed(weights.cutRows(linear.getWeight(), ranges)))
    return failure();
  return linear.getBias() ? weights.cutRows(linear.getBias(), ranges)
                          : success();
}

LogicalResult StateShards::followArgument(BlockArgument argument,
                                          const Ranges &ranges) {
  Operation *parent = argument.getOwner()->getParentOp();
  FailureOr<SmallVector<Value>> values = valuesOfArgument(module, argument);
  if (failed(values))
    return refuse(parent);
  auto func = dyn_cast<func::FuncOp>(parent);
  if (func && func->hasAttr("attune.entry")) {
    auto use = func.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                 "attune.kind");
    return use && use.getValue() == "cache"
               ? success()
               : func.emitError("an input of the model would have to be cut "
                                "by heads among ranks");
  }
  for (Value value : *values)
    if (failed(mark(value, ranges)))
      return failure();
  return success();
}

/// The tensors that the body of an op reads elements of.
static void forEachRead(linalg::GenericOp op,
                        llvm::function_ref<void(Value)> visit) {
  op.getBody()->walk([&](tensor::ExtractOp read) { visit(read.getTensor()); });
}

LogicalResult StateShards::followSource(Value value, const Ranges &ranges) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return followArgument(argument, ranges);
  Operation *op = value.getDefiningOp();
  unsigned number = cast<OpResult>(value).getResultNumber();
  if (auto linear = dyn_cast<LinearOp>(op))
    return cutProjection(linear, ranges);
  if (auto conv = dyn_cast<CausalConvOp>(op)) {
    for (Value weight : {conv.getWeight(), conv.getBias()})
      if (weight && failed(weights.cutRows(weight, ranges)))
        return failure();
    return mark(conv.getInput(), ranges);
  }
  if (isa<tensor::EmptyOp>(op) || isa<DeltaRuleOp>(op))
    return success();
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
    if (columnsOf(slice.getSource()) != columnsOf(value) * ranks &&
        !marked.contains(slice.getSource()))
      return refuse(op);
    setSliceColumns(slice, columnsOf(value));
    return mark(slice.getSource(), ranges);
  }
  if (auto slice = dyn_cast<tensor::InsertSliceOp>(op)) {
    if (slice.getStaticSizes().back() != columnsOf(value) &&
        slice.getStaticSizes().back() != columnsOf(value) * ranks)
      return refuse(op);
    setSliceColumns(slice, columnsOf(value));
    return success(succeeded(mark(slice.getSource(), ranges)) &&
                   succeeded(mark(slice.getDest(), ranges)));
  }
  if (auto generic = dyn_cast<linalg::GenericOp>(op)) {
    if (!generic.getInputs().empty() || generic.getOutputs().size() != 1)
      return refuse(op);
    bool good = succeeded(mark(generic.getOutputs()[0], ranges));
    forEachRead(generic, [&](Value read) {
      good = good && succeeded(mark(read, ranges));
    });
    return success(good);
  }
  if (auto call = dyn_cast<func::CallOp>(op)) {
    auto callee = module.lookupSymbol<func::FuncOp>(call.getCallee());
    return mark(callee.getBody().back().getTerminator()->getOperand(number),
                ranges);
  }
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return mark(loop.getRegionIterArg(number), ranges);
  return refuse(op);
}

LogicalResult StateShards::followUse(OpOperand &use, const Ranges &ranges) {
  Operation *op = use.getOwner();
  unsigned number = use.getOperandNumber();
  if (isa<tensor::DimOp, DeltaRuleOp>(op) || parts.contains(op))
    return success();
  if (isa<tensor::ExtractSliceOp, tensor::InsertSliceOp, CausalConvOp>(op))
    return mark(op->getResult(0), ranges);
  if (isa<tensor::ExtractOp>(op))
    op = op->getParentOp();
  if (auto generic = dyn_cast<linalg::GenericOp>(op))
    return mark(generic.getResult(0), ranges);
  if (auto call = dyn_cast<func::CallOp>(op)) {
    auto callee = module.lookupSymbol<func::FuncOp>(call.getCallee());
    return mark(callee.getArgument(number), ranges);
  }
  if (auto loop = dyn_cast<scf::ForOp>(op); loop && number >= 3)
    return mark(loop.getRegionIterArg(number - 3), ranges);
  if (auto yield = dyn_cast<scf::YieldOp>(op))
    if (auto loop = dyn_cast<scf::ForOp>(yield->getParentOp()))
      return mark(loop.getRegionIterArg(number), ranges);
  if (auto result = dyn_cast<func::ReturnOp>(op)) {
    auto func = cast<func::FuncOp>(result->getParentOp());
    if (func->hasAttr("attune.entry"))
      return success();
    auto uses = func.getSymbolUses(module);
    for (SymbolTable::SymbolUse symbol : *uses)
      if (auto call = dyn_cast<func::CallOp>(symbol.getUser()))
        if (failed(mark(call.getResult(number), ranges)))
          return failure();
    return success();
  }
  return refuse(op);
}

LogicalResult StateShards::follow() {
  while (!work.empty()) {
    Value value = work.pop_back_val();
    Ranges ranges = marked.lookup(value);
    if (failed(followSource(value, ranges)))
      return failure();
    for (OpOperand &use : value.getUses())
      if (failed(followUse(use, ranges)))
        return failure();
  }
  return success();
}

void StateShards::updateCaches() {
  Builder b(module.getContext());
  // What a caller allocates, and for who puts parts of ranks together what lies
  // side by side in them.
  auto update = [&](Value value, DictionaryAttr known, auto set) {
    auto shape = known ? known.getAs<ArrayAttr>("attune.shape") : ArrayAttr();
    if (!shape || !marked.contains(value))
      return;
    SmallVector<Attribute> sizes(shape.getValue());
    sizes.back() = b.getI64IntegerAttr(columnsOf(value));
    set("attune.shape", b.getArrayAttr(sizes));
    SmallVector<int64_t> sideBySide;
    for (const WeightShards::Range &range : marked.lookup(value))
      sideBySide.push_back(range.units);
    if (!sideBySide.empty())
      set("attune.side_by_side", b.getDenseI64ArrayAttr(sideBySide));
  };
  for (auto func : module.getOps<func::FuncOp>()) {
    if (!func->hasAttr("attune.entry") || func.isExternal())
      continue;
    for (BlockArgument argument : func.getArguments()) {
      unsigned number = argument.getArgNumber();
      update(argument, func.getArgAttrDict(number),
             [&](StringRef name, Attribute value) {
               func.setArgAttr(number, name, value);
             });
    }
    Operation *result = func.getBody().back().getTerminator();
    for (OpOperand &operand : result->getOpOperands()) {
      unsigned number = operand.getOperandNumber();
      update(operand.get(), func.getResultAttrDict(number),
             [&](StringRef name, Attribute value) {
               func.setResultAttr(number, name, value);
             });
    }
  }
}

} // namespace attune

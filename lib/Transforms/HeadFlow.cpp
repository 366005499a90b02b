//===- HeadFlow.cpp - Where the heads of attention go -----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HeadFlow.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace attune {

int64_t HeadFlow::headDim(RankedTensorType type) {
  return type.getRank() == 4 ? 1 : 2;
}

LogicalResult HeadFlow::mark(Value value, unsigned kind) {
  auto [known, fresh] = marked.insert({value, kind});
  if (!fresh) {
    if (known->second == kind)
      return success();
    return emitError(value.getLoc())
           << "holds heads of two attentions, and cannot be " << verb;
  }
  RankedTensorType share = shareOf(value, kind);
  if (!share)
    return failure();
  wholeHeads[value] =
      cast<RankedTensorType>(value.getType()).getDimSize(headDim(share));
  value.setType(share);
  work.push_back(value);
  return success();
}

LogicalResult HeadFlow::refuse(Operation *op) {
  return op->emitError("'") << op->getName() << "' cannot be " << verb;
}

LogicalResult HeadFlow::markCaches(func::FuncOp, StringRef, unsigned) {
  return success();
}

FailureOr<SmallVector<Value>> valuesOfArgument(ModuleOp module,
                                               BlockArgument argument) {
  Operation *parent = argument.getOwner()->getParentOp();
  unsigned number = argument.getArgNumber();
  if (auto loop = dyn_cast<scf::ForOp>(parent)) {
    if (number == 0)
      return failure();
    unsigned carried = number - 1;
    auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
    return SmallVector<Value>{loop.getInitArgs()[carried],
                              yield.getOperand(carried),
                              loop.getResult(carried)};
  }
  auto func = dyn_cast<func::FuncOp>(parent);
  if (!func)
    return failure();
  SmallVector<Value> values;
  if (func->hasAttr("attune.entry"))
    return values;
  auto uses = func.getSymbolUses(module);
  for (SymbolTable::SymbolUse use : *uses)
    if (auto call = dyn_cast<func::CallOp>(use.getUser()))
      values.push_back(call.getOperand(number));
  return values;
}

/// Whether the entry that encodes gives what has this name.
static bool isEncoded(ModuleOp module, StringRef name) {
  auto encode = module.lookupSymbol<func::FuncOp>("encode");
  for (unsigned i = 0; encode && i < encode.getNumResults(); ++i)
    if (auto known = encode.getResultAttrOfType<StringAttr>(i, "attune.name");
        known && known.getValue() == name)
      return true;
  return false;
}

LogicalResult HeadFlow::markHandedOn(StringRef name, unsigned kind) {
  auto isIt = [&](DictionaryAttr attributes) {
    auto known =
        attributes ? attributes.getAs<StringAttr>("attune.name") : StringAttr();
    return known && known.getValue() == name;
  };
  for (auto func : module.getOps<func::FuncOp>()) {
    if (!func->hasAttr("attune.entry") || func.isExternal())
      continue;
    for (BlockArgument argument : func.getArguments())
      if (isIt(func.getArgAttrDict(argument.getArgNumber())) &&
          failed(mark(argument, kind)))
        return failure();
    Operation *result = func.getBody().back().getTerminator();
    for (OpOperand &operand : result->getOpOperands())
      if (isIt(func.getResultAttrDict(operand.getOperandNumber())) &&
          failed(mark(operand.get(), kind)))
        return failure();
  }
  return success();
}

LogicalResult HeadFlow::followArgument(BlockArgument argument) {
  Operation *parent = argument.getOwner()->getParentOp();
  unsigned kind = marked.lookup(argument);
  unsigned number = argument.getArgNumber();
  FailureOr<SmallVector<Value>> values = valuesOfArgument(module, argument);
  if (failed(values))
    return refuse(parent);
  auto func = dyn_cast<func::FuncOp>(parent);
  if (func && func->hasAttr("attune.entry")) {
    auto use = func.getArgAttrOfType<StringAttr>(number, "attune.kind");
    auto name = func.getArgAttrOfType<StringAttr>(number, "attune.name");
    if (use && use.getValue() == "cache")
      return markCaches(func, name, kind);
    if (name && isEncoded(module, name))
      return markHandedOn(name, kind);
    return func.emitError("an input of the model would have to be ") << verb;
  }
  for (Value value : *values)
    if (failed(mark(value, kind)))
      return failure();
  return success();
}

LogicalResult HeadFlow::markKeys(Value value, unsigned queries) {
  std::optional<unsigned> kind = keysOf(queries);
  return kind ? mark(value, *kind) : success();
}

/// Whether an op takes channels of all heads apart or puts them together, or
/// multiplies each head by a matrix of its own.
static bool isChannels(Operation *op) {
  if (isa<HeadLinearOp>(op))
    return true;
  auto slice = dyn_cast<OffsetSizeAndStrideOpInterface>(op);
  if (!isa<tensor::ExtractSliceOp, tensor::InsertSliceOp>(op) ||
      slice.getStaticSizes().size() != 4)
    return false;
  int64_t heads = slice.getStaticSizes()[1];
  return slice.getStaticOffsets()[1] == 0 && !ShapedType::isDynamic(heads);
}

/// The operands that have as many heads as the result.
static ValueRange channelsOf(Operation *op) {
  return op->getOperands().take_front(isa<tensor::InsertSliceOp>(op) ? 2 : 1);
}

/// A slice has all heads of its result, if the type of that has changed.
static void setHeads(Operation *op) {
  auto slice = dyn_cast<OffsetSizeAndStrideOpInterface>(op);
  if (!slice)
    return;
  SmallVector<int64_t> sizes(slice.getStaticSizes());
  sizes[1] = cast<RankedTensorType>(op->getResult(0).getType()).getDimSize(1);
  op->setAttr("static_sizes", DenseI64ArrayAttr::get(op->getContext(), sizes));
}

/// The values that `value` is made of have fewer heads, too.
LogicalResult HeadFlow::followSource(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return followArgument(argument);
  Operation *op = value.getDefiningOp();
  unsigned kind = marked.lookup(value);
  unsigned number = cast<OpResult>(value).getResultNumber();
  if (auto split = dyn_cast<SplitHeadsOp>(op)) {
    if (marked.contains(split.getInput()))
      return success();
    Value rows = split.getInput();
    if (auto norm = rows.getDefiningOp<RMSNormOp>(); norm && cutsAround())
      rows = norm.getInput();
    auto linear = rows.getDefiningOp<LinearOp>();
    if (!linear)
      return refuse(split);
    projections.insert(linear);
    return success();
  }
  if (isa<RotaryOp, LayerNormOp, RMSNormOp, MaskScoresOp, SoftmaxOp,
          CacheReadOp, MergeHeadsOp, ActivationOp>(op))
    return mark(op->getOperand(0), kind);
  if (isa<arith::MulFOp, arith::MaximumFOp, arith::MinimumFOp>(op) &&
      cutsAround())
    return success(succeeded(mark(op->getOperand(0), kind)) &&
                   succeeded(mark(op->getOperand(1), kind)));
  if (auto linear = dyn_cast<LinearOp>(op); linear && cutsAround()) {
    gates.insert(linear);
    return success();
  }
  if (isa<DeltaRuleOp>(op) && number == 0 && cutsAround())
    return success();
  if (isa<tensor::EmptyOp, tensor::SplatOp>(op))
    return success();
  if (isChannels(op) && cutsAround()) {
    if (isa<HeadLinearOp>(op))
      headMatrices.insert(op);
    setHeads(op);
    for (Value operand : channelsOf(op))
      if (failed(mark(operand, kind)))
        return failure();
    return success();
  }
  if (isa<CacheAppendOp>(op))
    return success(succeeded(mark(op->getOperand(0), kind)) &&
                   succeeded(mark(op->getOperand(1), kind)));
  if (isa<SimilarityOp, WeightedSumOp, AttentionOp>(op)) {
    if (failed(mark(op->getOperand(0), kind)) ||
        failed(markKeys(op->getOperand(1), kind)))
      return failure();
    return isa<AttentionOp>(op) ? markKeys(op->getOperand(2), kind) : success();
  }
  if (auto call = dyn_cast<func::CallOp>(op)) {
    auto callee = module.lookupSymbol<func::FuncOp>(call.getCallee());
    return mark(callee.getBody().back().getTerminator()->getOperand(number),
                kind);
  }
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return mark(loop.getRegionIterArg(number), kind);
  if (auto either = dyn_cast<scf::IfOp>(op)) {
    for (scf::YieldOp yield : {either.thenYield(), either.elseYield()})
      if (failed(mark(yield.getOperand(number), kind)))
        return failure();
    return success();
  }
  return refuse(op);
}

LogicalResult HeadFlow::followUse(OpOperand &use) {
  Operation *op = use.getOwner();
  unsigned kind = marked.lookup(use.get());
  unsigned number = use.getOperandNumber();
  if (isa<tensor::DimOp>(op))
    return success();
  if (isa<RotaryOp, LayerNormOp, RMSNormOp, MaskScoresOp, SoftmaxOp,
          SimilarityOp, WeightedSumOp, AttentionOp, CacheAppendOp, CacheReadOp,
          MergeHeadsOp, ActivationOp>(op)) {
    // The second result of attention is what attention maps are made of.
    if (isa<AttentionOp>(op) && op->getNumResults() > 1)
      return refuse(op);
    perHead.insert(op);
    bool isKey =
        isa<SimilarityOp, WeightedSumOp, AttentionOp>(op) && number > 0;
    for (Value result : op->getResults())
      if (failed(mark(result, isKey ? queriesOf(kind) : kind)))
        return failure();
    return success();
  }
  if (isa<arith::MulFOp, arith::MaximumFOp, arith::MinimumFOp>(op) &&
      cutsAround())
    return mark(op->getResult(0), kind);
  if (auto split = dyn_cast<SplitHeadsOp>(op); split && cutsAround())
    return mark(split.getResult(), kind);
  if (isChannels(op) && cutsAround())
    return mark(op->getResult(0), kind);
  if (auto linear = dyn_cast<LinearOp>(op); linear && number == 0) {
    outputs.insert(linear);
    return success();
  }
  if (auto call = dyn_cast<func::CallOp>(op)) {
    auto callee = module.lookupSymbol<func::FuncOp>(call.getCallee());
    return mark(callee.getArgument(number), kind);
  }
  if (auto loop = dyn_cast<scf::ForOp>(op); loop && number >= 3)
    return mark(loop.getRegionIterArg(number - 3), kind);
  if (auto yield = dyn_cast<scf::YieldOp>(op)) {
    if (auto loop = dyn_cast<scf::ForOp>(yield->getParentOp()))
      return mark(loop.getRegionIterArg(number), kind);
    if (auto either = dyn_cast<scf::IfOp>(yield->getParentOp()))
      return mark(either.getResult(number), kind);
  }
  if (auto result = dyn_cast<func::ReturnOp>(op)) {
    auto func = cast<func::FuncOp>(result->getParentOp());
    if (func->hasAttr("attune.entry")) {
      auto use = func.getResultAttrOfType<StringAttr>(number, "attune.kind");
      auto name = func.getResultAttrOfType<StringAttr>(number, "attune.name");
      if (use && use.getValue() == "cache")
        return markCaches(func, name, kind);
      if (func.getSymName() == "encode" && name)
        return markHandedOn(name, kind);
      return func.emitError("an output of the model would have to be ")
             << verb << "; leave out --tap";
    }
    auto uses = func.getSymbolUses(module);
    for (SymbolTable::SymbolUse symbol : *uses)
      if (auto call = dyn_cast<func::CallOp>(symbol.getUser()))
        if (failed(mark(call.getResult(number), kind)))
          return failure();
    return success();
  }
  return refuse(op);
}

LogicalResult HeadFlow::follow() {
  while (!work.empty()) {
    Value value = work.pop_back_val();
    if (failed(followSource(value)))
      return failure();
    for (OpOperand &use : value.getUses())
      if (failed(followUse(use)))
        return failure();
  }
  return success();
}

RMSNormOp HeadFlow::normOf(LinearOp linear) {
  RMSNormOp norm;
  for (Operation *user : linear.getResult().getUsers())
    if (auto found = dyn_cast<RMSNormOp>(user))
      norm = found;
    else if (!isa<tensor::DimOp>(user))
      return {};
  return cutsAround() ? norm : RMSNormOp();
}

FailureOr<SmallVector<SplitHeadsOp>> HeadFlow::splitsOf(LinearOp linear) {
  if (linear.getGated() || (linear.getResidual() && !cutsAround()))
    return refuse(linear);
  SmallVector<SplitHeadsOp> splits;
  RMSNormOp norm = normOf(linear);
  for (Operation *user :
       (norm ? norm.getResult() : linear.getResult()).getUsers()) {
    // Sizes of a batch are asked of anything that has it.
    if (isa<tensor::DimOp>(user))
      continue;
    auto split = dyn_cast<SplitHeadsOp>(user);
    if (!split)
      return refuse(user);
    splits.push_back(split);
  }
  llvm::sort(splits, [](SplitHeadsOp a, SplitHeadsOp b) {
    return a.getOffset() < b.getOffset();
  });
  return splits;
}

void HeadFlow::updateCaches() {
  auto update = [&](Value value, ArrayAttr shape) -> ArrayAttr {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!shape || !type || !marked.contains(value))
      return {};
    SmallVector<Attribute> sizes(shape.getValue());
    int64_t dim = headDim(type);
    sizes[dim] =
        Builder(module.getContext()).getI64IntegerAttr(type.getDimSize(dim));
    return ArrayAttr::get(module.getContext(), sizes);
  };
  constexpr StringRef name = "attune.shape";
  for (auto func : module.getOps<func::FuncOp>()) {
    if (!func->hasAttr("attune.entry") || func.isExternal())
      continue;
    for (BlockArgument argument : func.getArguments()) {
      unsigned i = argument.getArgNumber();
      if (auto sizes =
              update(argument, func.getArgAttrOfType<ArrayAttr>(i, name)))
        func.setArgAttr(i, name, sizes);
    }
    Operation *result = func.getBody().back().getTerminator();
    for (auto [i, value] : llvm::enumerate(result->getOperands()))
      if (auto sizes = update(
              value, func.getResultAttrOfType<ArrayAttr>(unsigned(i), name)))
        func.setResultAttr(unsigned(i), name, sizes);
  }
}

void HeadFlow::updateFunctions() {
  for (auto func : module.getOps<func::FuncOp>()) {
    if (func.isExternal())
      continue;
    Operation *result = func.getBody().back().getTerminator();
    func.setFunctionType(FunctionType::get(
        func.getContext(), func.getBody().front().getArgumentTypes(),
        result->getOperandTypes()));
  }
}

} // namespace attune

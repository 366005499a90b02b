//===- NarrowActivations.cpp - Inputs that 16-bit weights multiply --------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneCachedRows.h"
#include "Attune/AttuneDialect.h"
#include "Attune/AttuneMeshOps.h"
#include "attune/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_NARROWACTIVATIONS
#include "attune/Transforms/Passes.h.inc"

namespace {

bool isNarrow(Type type) { return type.isBF16() || type.isF16(); }

RankedTensorType withElements(Value value, FloatType type) {
  return cast<RankedTensorType>(value.getType()).clone(type);
}

/// f16 ends at 65504: a norm or softmax bounds what it gives, whatever it is
/// given.
bool isBounded(Value value) {
  Operation *op = value.getDefiningOp();
  while (isa_and_nonnull<MergeHeadsOp, arith::TruncFOp, AllMergeOp>(op))
    op = op->getOperand(0).getDefiningOp();
  return isa_and_nonnull<LayerNormOp, RMSNormOp, AttentionOp>(op);
}

struct NarrowActivations final
    : impl::NarrowActivationsBase<NarrowActivations> {
  using Base::Base;

  //===--------------------------------------------------------------------===//
  // Operands of products
  //===--------------------------------------------------------------------===//

  /// The 16 bits that products with this weight take their input in, or null.
  FloatType factorOf(Value weight, int64_t rank) {
    auto type = cast<RankedTensorType>(weight.getType());
    // Two numbers of 16 bits make a word, in pairs as in copies.
    bool fits = type.getRank() == rank && type.getShape().back() % 2 == 0 &&
                weight.getDefiningOp<WeightGetOp>();
    return fits ? storedAs(weight) : FloatType();
  }

  /// The 16 bits that an op reads an operand in if it is given that, or null.
  FloatType readAs(OpOperand &use) {
    Operation *op = use.getOwner();
    unsigned number = use.getOperandNumber();
    FloatType type;
    if (auto linear = dyn_cast<LinearOp>(op); linear && number == 0)
      type = factorOf(linear.getWeight(), 2);
    else if (auto moe = dyn_cast<MoEOp>(op); moe && number == 0)
      type = factorOf(moe.getUp(), 3);
    else if (isa<QuantizedLinearOp, QuantizedMoEOp>(op) && number == 0)
      type = readByNumbers();
    else if (auto heads = dyn_cast<HeadLinearOp>(op);
             heads && number == 0 && tensorCores)
      type = factorOf(heads.getWeight(), 3);
    else if (auto attention = dyn_cast<AttentionOp>(op);
             attention && number < 3)
      return factorsOf(attention);
    else if (isa<AttentionWeightsOp>(op) && number < 2)
      return readByAttention(use);
    bool may = !type || !type.isF16() || isBounded(use.get()) ||
               getElementTypeOrSelf(use.get()) == type;
    return may ? type : FloatType();
  }

  /// What layers with weights in few bits take on tensor cores, which widen
  /// these to the type of the rows.
  FloatType readByNumbers() {
    return tensorCores && !exactActivations ? otherWeights : FloatType();
  }

  /// Weights are recomputed from what attention read.
  FloatType readByAttention(OpOperand &use) {
    for (OpOperand &other : use.get().getUses())
      if (isa<AttentionOp>(other.getOwner()) &&
          other.getOperandNumber() == use.getOperandNumber())
        return readAs(other);
    return {};
  }

  /// Attention between layers of 16 bits multiplies them, too: all of it or
  /// none. Tensor cores widen caches in bytes to the queries' type.
  FloatType factorsOf(AttentionOp op) {
    constexpr int64_t kWidth = 16; // what the kernels of CPUs take
    int64_t width = op.getQuery().getType().getDimSize(3);
    if (!tensorCores && width % kWidth != 0)
      return {};
    FloatType type;
    for (Value heads : {op.getQuery(), op.getKey(), op.getValue()}) {
      if (tensorCores && isInBytes(getElementTypeOrSelf(heads)))
        continue;
      FloatType here = madeAs(heads);
      if (!here || (type && type != here))
        return {};
      type = here;
    }
    return type;
  }

  /// The type, if its 16 bits are multiplied; or null.
  FloatType ifMultiplied(Type element) {
    bool multiplied =
        element && (element.isBF16() || (tensorCores && element.isF16()));
    return multiplied ? cast<FloatType>(element) : FloatType();
  }

  /// The 16 bits that a tensor consists of, if they are multiplied; or null.
  FloatType storedAs(Value value) {
    return ifMultiplied(getElementTypeOrSelf(value));
  }

  /// The 16 bits of a cache, or of the products that heads come from; or null.
  FloatType madeAs(Value heads) {
    if (!getElementTypeOrSelf(heads).isF32())
      return storedAs(heads);
    Operation *op = heads.getDefiningOp();
    if (!op)
      return {};
    if (isa<LinearOp, HeadLinearOp>(op))
      return readAs(op->getOpOperand(0));
    // Bytes do not say what the layers around them consist of.
    if (isa<QuantizedLinearOp>(op))
      return otherWeights;
    if (isa<RotaryOp, SplitHeadsOp, RMSNormOp, LayerNormOp,
            tensor::ExtractSliceOp>(op))
      return madeAs(op->getOperand(0));
    // Channels side by side.
    if (auto insert = dyn_cast<tensor::InsertSliceOp>(op)) {
      FloatType type = madeAs(insert.getSource());
      bool first = insert.getDest().getDefiningOp<tensor::EmptyOp>();
      return first || type == madeAs(insert.getDest()) ? type : FloatType();
    }
    if (auto concat = dyn_cast<tensor::ConcatOp>(op)) {
      FloatType type = madeAs(concat.getInputs().front());
      for (Value input : concat.getInputs().drop_front())
        if (madeAs(input) != type)
          return {};
      return type;
    }
    return {};
  }

  //===--------------------------------------------------------------------===//
  // Where values are rounded
  //===--------------------------------------------------------------------===//

  static bool hasResidual(Operation *linear) {
    if (auto quantized = dyn_cast<QuantizedLinearOp>(linear))
      return bool(quantized.getResidual());
    return bool(cast<LinearOp>(linear).getResidual());
  }

  /// Makes the op that defines `value` write 16 bits, if it can.
  static bool narrowAtSource(Value value, FloatType type) {
    Operation *op = value.getDefiningOp();
    if (!op)
      return false;
    if (auto heads = dyn_cast<MergeHeadsOp>(op)) {
      // Heads change their place and nothing else: who made them has to round.
      Value input = heads.getInput();
      if (!input.hasOneUse() ||
          !isa_and_nonnull<AttentionOp, HeadLinearOp>(input.getDefiningOp()))
        return false;
      input.setType(withElements(input, type));
    } else if (isa<LinearOp, QuantizedLinearOp>(op)) {
      if (hasResidual(op))
        return false;
    } else if (!isa<AttentionOp, HeadLinearOp, LayerNormOp, RMSNormOp, RotaryOp,
                    SplitHeadsOp>(op)) {
      return false;
    }
    value.setType(withElements(value, type));
    return true;
  }

  static Value round(Value value, FloatType type) {
    OpBuilder b(value.getContext());
    b.setInsertionPointAfterValue(value);
    return arith::TruncFOp::create(b, value.getLoc(), withElements(value, type),
                                   value);
  }

  /// Rounds rows that only go to a 16-bit cache there, or where they are made.
  bool roundsForCache(CacheAppendOp append) {
    Value rows = append.getNewRows();
    FloatType type = storedAs(append.getCache());
    if (!type || !getElementTypeOrSelf(rows).isF32() || !rows.hasOneUse() ||
        !isa_and_nonnull<LayerNormOp, RMSNormOp, RotaryOp, SplitHeadsOp>(
            rows.getDefiningOp()))
      return false;
    rows.setType(withElements(rows, type));
    return true;
  }

  /// A layer whose result is only split in heads that round it rounds itself.
  static bool roundsInHeads(Operation *linear) {
    Value result = linear->getResult(0);
    if (hasResidual(linear) || result.use_empty() ||
        !getElementTypeOrSelf(result).isF32())
      return false;
    Type type;
    for (Operation *user : result.getUsers()) {
      auto heads = dyn_cast<SplitHeadsOp>(user);
      Type here = heads ? getElementTypeOrSelf(heads.getResult()) : Type();
      if (!heads || !isNarrow(here) || (type && type != here))
        return false;
      type = here;
    }
    result.setType(withElements(result, cast<FloatType>(type)));
    return true;
  }

  /// Which 16 bits all weights consist of that are not quantized; or null.
  FloatType typeOfOthers() {
    Type common;
    for (auto weight : getOperation().getOps<WeightOp>()) {
      Type element = weight.getTensorType().getElementType();
      if (weight.getGroup())
        continue;
      if (common && element != common)
        return {};
      common = element;
    }
    return ifMultiplied(common);
  }

  void runOnOperation() override {
    otherWeights = typeOfOthers();
    llvm::SetVector<std::pair<Value, FloatType>> inputs;
    getOperation().walk([&](Operation *op) {
      for (OpOperand &use : op->getOpOperands())
        if (getElementTypeOrSelf(use.get()).isF32())
          if (FloatType type = readAs(use))
            inputs.insert({use.get(), type});
    });
    for (auto [value, type] : inputs) {
      SmallVector<OpOperand *> uses;
      for (OpOperand &use : value.getUses())
        if (readAs(use) == type)
          uses.push_back(&use);
      ++numNarrowed;
      bool all = size_t(std::distance(value.use_begin(), value.use_end())) ==
                 uses.size();
      if (all && narrowAtSource(value, type))
        continue;
      Value rounded = round(value, type);
      for (OpOperand *use : uses)
        use->set(rounded);
    }
    getOperation().walk([&](CacheAppendOp append) {
      if (roundsForCache(append))
        ++numNarrowed;
    });
    getOperation().walk([&](Operation *op) {
      if (isa<LinearOp, QuantizedLinearOp>(op) && roundsInHeads(op))
        ++numNarrowed;
    });
  }

  FloatType otherWeights;
};
} // namespace
} // namespace attune

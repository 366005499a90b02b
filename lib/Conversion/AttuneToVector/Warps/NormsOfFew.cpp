//===- NormsOfFew.cpp - Norms that products make themselves -----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Few rows pass a GPU's memory in no time, but a kernel that normalises them
// takes microseconds from the one before to the one behind. A block that
// multiplies few rows reads all of them, so it can find their norm as well. Of
// many rows each would be normalised again in every block: these are normalised
// before, which the host decides by their number.

#include "NormsOfFew.h"

#include "../Rows/Norms.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace attune {
namespace {

/// On a norm: up to how many rows products make it.
constexpr StringRef kFewRowsOfNorm = "attune.norm_of_few";

/// Whether the use is a layer's input that blocks of threads multiply.
bool isInputOfLayer(OpOperand &use) {
  Operation *op = use.getOwner();
  if (use.getOperandNumber() != 0 || op->getNumResults() != 1)
    return false;
  int64_t rank = cast<RankedTensorType>(op->getResult(0).getType()).getRank();
  if (rank != 2 && rank != 3)
    return false;
  if (auto linear = dyn_cast<LinearOp>(op))
    return !linear.getRmsEps();
  auto quantized = dyn_cast<QuantizedLinearOp>(op);
  return quantized && !quantized.getInputScales() &&
         cast<RankedTensorType>(quantized.getWeight().getType()).getRank() == 3;
}

/// Whether something may write over the rows before all of these layers have
/// read them: a copy would have to be read then.
bool isOverwritten(Operation *norm, Value rows, ArrayRef<Operation *> layers) {
  Block *block = norm->getBlock();
  return llvm::any_of(rows.getUses(), [&](OpOperand &use) {
    Operation *user = use.getOwner();
    if (isa<RMSNormOp, LayerNormOp>(user) || isInputOfLayer(use))
      return false;
    Operation *top = block->findAncestorOpInBlock(*user);
    return !top || llvm::any_of(layers, [&](Operation *layer) {
      return !layer->isBeforeInBlock(top);
    });
  });
}

/// The number of rows, if it is known.
std::optional<int64_t> countRows(RankedTensorType type) {
  int64_t rows = 1;
  for (int64_t size : type.getShape().drop_back()) {
    if (ShapedType::isDynamic(size))
      return std::nullopt;
    rows *= size;
  }
  return rows;
}

/// How many rows, at most `few`, all layers that read the norm can normalise
/// themselves; 0 if there are none, or something else reads it.
int64_t countRowsToNormalise(Operation *op, int64_t few) {
  std::optional<Norm> norm = Norm::of(op);
  if (!norm || op->use_empty())
    return 0;
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  if (type.getRank() != 2 && type.getRank() != 3)
    return 0;
  // They are read before the kernel that makes the rows has ended.
  for (Value channels : {norm->gamma, norm->beta})
    if (channels && (!channels.getDefiningOp<WeightGetOp>() ||
                     cast<ShapedType>(channels.getType()).getRank() != 1))
      return 0;
  SmallVector<Operation *> layers;
  for (OpOperand &use : op->getUses()) {
    if (!isInputOfLayer(use) || use.getOwner()->getBlock() != op->getBlock())
      return 0;
    layers.push_back(use.getOwner());
    // Several rows of gate and up in few bits leave no registers for a norm.
    auto quantized = dyn_cast<QuantizedLinearOp>(use.getOwner());
    if (quantized && quantized.getGated())
      few = std::min<int64_t>(few, 1);
  }
  if (isOverwritten(op, op->getOperand(0), layers) ||
      countRows(type).value_or(1) > few)
    return 0;
  return few;
}

/// Whether all that reads rows makes their norm where they are few.
bool readByProductsAlone(Value rows) {
  return llvm::all_of(rows.getUses(), [](OpOperand &use) {
    Operation *op = use.getOwner();
    if (isa<FlattenTokensOp>(op))
      return readByProductsAlone(op->getResult(0));
    bool multiplied =
        isa<NormedLinearIntoOp>(op) && use.getOperandNumber() == 0;
    return multiplied || isa<tensor::DimOp>(op);
  });
}

} // namespace

void markNormsOfFew(Operation *root, int64_t few) {
  root->walk([&](Operation *op) {
    if (int64_t rows = countRowsToNormalise(op, few))
      op->setAttr(kFewRowsOfNorm, Builder(op).getI64IntegerAttr(rows));
  });
}

NormedLinearIntoOp multiplyNorm(KernelBuilder &k, Operation *layer,
                                const PanelProduct &product, Value input,
                                Value scales, bool zeros, Value dest,
                                FloatAttr scale) {
  Operation *op = layer->getOperand(0).getDefiningOp();
  auto few =
      op ? op->getAttrOfType<IntegerAttr>(kFewRowsOfNorm) : IntegerAttr();
  if (!few)
    return {};
  Norm norm = *Norm::of(op);
  return NormedLinearIntoOp::create(
      k.b, k.loc, dest.getType(), input, asRows(k, op->getOperand(0)),
      norm.gamma, norm.beta, product.weight, scales, product.bias, dest,
      norm.centred, APFloat(float(norm.eps)), APFloat(float(norm.offset)),
      few.getInt(), product.activation, product.gated, product.residual, scale,
      zeros);
}

void lowerNormsOfFew(Operation *root, const VectorLowering &lowering) {
  SmallVector<Operation *> norms;
  root->walk([&](Operation *op) {
    if (op->hasAttr(kFewRowsOfNorm) && readByProductsAlone(op->getResult(0)))
      norms.push_back(op);
  });
  for (Operation *op : norms) {
    OpBuilder builder(op);
    KernelBuilder k(builder, op->getLoc());
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    int64_t few = op->getAttrOfType<IntegerAttr>(kFewRowsOfNorm).getInt();
    Value rows = asRows(k, op->getOperand(0)), count = k.dim(rows, 0);
    // Memory of its own, as the branches that may fill it do not share it
    // otherwise.
    auto made = RankedTensorType::get(
        {cast<RankedTensorType>(rows.getType()).getDimSize(0),
         type.getShape().back()},
        type.getElementType());
    SmallVector<Value> sizes;
    if (made.isDynamicDim(0))
      sizes.push_back(count);
    Value dest = bufferization::AllocTensorOp::create(k.b, k.loc, made, sizes);
    if (!sizes.empty()) {
      Value isMany = arith::CmpIOp::create(
          k.b, k.loc, arith::CmpIPredicate::ugt, count, k.index(few));
      dest = scf::IfOp::create(
                 k.b, k.loc, isMany,
                 [&](OpBuilder &builder, Location loc) {
                   KernelBuilder k(builder, loc);
                   scf::YieldOp::create(
                       builder, loc,
                       normaliseRows(k, rows, dest, *Norm::of(op), lowering));
                 },
                 [&](OpBuilder &builder, Location loc) {
                   scf::YieldOp::create(builder, loc, dest);
                 })
                 .getResult(0);
    }
    op->getResult(0).replaceAllUsesWith(
        fromRows(k, dest, type, op->getOperand(0)));
    op->erase();
  }
}

} // namespace attune

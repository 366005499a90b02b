//===- AttuneMeshOps.cpp - Ranks that share a model -------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttuneInto.h"

#include "Attune/AttuneMeshOps.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::bufferization;
using namespace attune;

#define GET_OP_CLASSES
#include "Attune/AttuneMeshOps.cpp.inc"

//===----------------------------------------------------------------------===//
// Verifiers
//===----------------------------------------------------------------------===//

/// C1
static LogicalResult checkPlaces(Operation *op, ValueRange inputs, Value dest) {
  bool tensors = isa<RankedTensorType>(dest.getType());
  for (Value input : inputs)
    if (isa<RankedTensorType>(input.getType()) != tensors)
      return op->emitOpError("has both tensors and buffers as operands");
  if (tensors == (op->getNumResults() == 0))
    return op->emitOpError(tensors ? "writes a tensor and gives none"
                                   : "writes a buffer and gives a tensor");
  SmallVector<Value> places(inputs);
  places.push_back(dest);
  for (Value value : places)
    if (!cast<ShapedType>(value.getType()).getElementType().isF32())
      return op->emitOpError("has an operand of type ")
             << value.getType() << ", but ranks exchange f32";
  if (tensors && op->getResult(0).getType() != dest.getType())
    return op->emitOpError("gives ")
           << op->getResult(0).getType() << ", but its destination is "
           << dest.getType();
  return success();
}

/// Whether two sizes may be the same.
static bool agree(int64_t a, int64_t b) {
  return a == b || ShapedType::isDynamic(a) || ShapedType::isDynamic(b);
}

static bool agree(ArrayRef<int64_t> a, ArrayRef<int64_t> b) {
  return a.size() == b.size() &&
         llvm::equal(a, b, [](int64_t x, int64_t y) { return agree(x, y); });
}

static ArrayRef<int64_t> shapeOf(Value value) {
  return cast<ShapedType>(value.getType()).getShape();
}

LogicalResult AllReduceOp::verify() {
  if (failed(checkPlaces(*this, getInput(), getDest())))
    return failure();
  // C2
  if (!agree(shapeOf(getInput()), shapeOf(getDest())))
    return emitOpError("sums ")
           << getInput().getType() << " into " << getDest().getType();
  // C5
  if (bool(getExperts()) != getBelow().has_value())
    return emitOpError("needs both experts and below, or neither");
  if (!getExperts())
    return success();
  auto experts = cast<ShapedType>(getExperts().getType());
  if (isa<RankedTensorType>(experts) !=
          isa<RankedTensorType>(getInput().getType()) ||
      !experts.getElementType().isInteger(64) || experts.getRank() == 0 ||
      !agree(experts.getShape().drop_back(), shapeOf(getInput()).drop_back()))
    return emitOpError("sums rows of ")
           << getInput().getType() << " that experts of " << experts
           << " choose";
  return success();
}

LogicalResult AllMergeOp::verify() {
  if (failed(checkPlaces(*this, {getInput(), getLse()}, getDest())))
    return failure();
  // C2
  ArrayRef<int64_t> from = shapeOf(getInput());
  if (from.empty() || !agree(from, shapeOf(getDest())))
    return emitOpError("merges ")
           << getInput().getType() << " into " << getDest().getType();
  // C4
  if (!agree(from.drop_back(), shapeOf(getLse())))
    return emitOpError("merges ")
           << getInput().getType() << " by " << getLse().getType();
  return success();
}

LogicalResult AllGatherOp::verify() {
  if (failed(checkPlaces(*this, getInput(), getDest())))
    return failure();
  // C3
  std::optional<int64_t> columns = getConstantIntValue(getColumns());
  auto fits = [&](int64_t size) {
    return !columns || ShapedType::isDynamic(size) ||
           (*columns >= 0 && *columns <= size);
  };
  ArrayRef<int64_t> from = shapeOf(getInput()), to = shapeOf(getDest());
  if (from.empty() || to.empty() || !agree(from.drop_back(), to.drop_back()) ||
      !fits(from.back()) || !fits(to.back()))
    return emitOpError("puts ")
           << columns.value_or(0) << " columns of " << getInput().getType()
           << " side by side in " << getDest().getType();
  return success();
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

void AllReduceOp::getEffects(
    SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  effectsOf(*this, getAccumulate(), effects);
}
bool AllReduceOp::bufferizesToMemoryRead(OpOperand &operand,
                                         const AnalysisState &) {
  return getAccumulate() || !isDpsInit(&operand);
}
bool AllReduceOp::bufferizesToMemoryWrite(OpOperand &operand,
                                          const AnalysisState &) {
  return isDpsInit(&operand);
}
AliasingValueList AllReduceOp::getAliasingValues(OpOperand &operand,
                                                 const AnalysisState &) {
  return destinationOf(*this, operand);
}
LogicalResult AllReduceOp::bufferize(RewriterBase &rewriter,
                                     const BufferizationOptions &options,
                                     BufferizationState &state) {
  return bufferizeInto(*this, rewriter, options, state);
}

void AllGatherOp::getEffects(
    SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  effectsOf(*this, /*reads=*/false, effects);
}
bool AllGatherOp::bufferizesToMemoryRead(OpOperand &operand,
                                         const AnalysisState &) {
  return !isDpsInit(&operand);
}
bool AllGatherOp::bufferizesToMemoryWrite(OpOperand &operand,
                                          const AnalysisState &) {
  return isDpsInit(&operand);
}
AliasingValueList AllGatherOp::getAliasingValues(OpOperand &operand,
                                                 const AnalysisState &) {
  return destinationOf(*this, operand);
}
LogicalResult AllGatherOp::bufferize(RewriterBase &rewriter,
                                     const BufferizationOptions &options,
                                     BufferizationState &state) {
  return bufferizeInto(*this, rewriter, options, state);
}

void AllMergeOp::getEffects(
    SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  effectsOf(*this, /*reads=*/false, effects);
}
bool AllMergeOp::bufferizesToMemoryRead(OpOperand &operand,
                                        const AnalysisState &) {
  return !isDpsInit(&operand);
}
bool AllMergeOp::bufferizesToMemoryWrite(OpOperand &operand,
                                         const AnalysisState &) {
  return isDpsInit(&operand);
}
AliasingValueList AllMergeOp::getAliasingValues(OpOperand &operand,
                                                const AnalysisState &) {
  return destinationOf(*this, operand);
}
LogicalResult AllMergeOp::bufferize(RewriterBase &rewriter,
                                    const BufferizationOptions &options,
                                    BufferizationState &state) {
  return bufferizeInto(*this, rewriter, options, state);
}

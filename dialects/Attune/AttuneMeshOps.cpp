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
static LogicalResult checkPlaces(Operation *op, Value input, Value dest) {
  bool tensors = isa<RankedTensorType>(dest.getType());
  if (isa<RankedTensorType>(input.getType()) != tensors)
    return op->emitOpError("has both tensors and buffers as operands");
  if (tensors == (op->getNumResults() == 0))
    return op->emitOpError(tensors ? "writes a tensor and gives none"
                                   : "writes a buffer and gives a tensor");
  for (Value value : {input, dest})
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

LogicalResult AllReduceOp::verify() {
  if (failed(checkPlaces(*this, getInput(), getDest())))
    return failure();
  // C2
  ArrayRef<int64_t> from = cast<ShapedType>(getInput().getType()).getShape();
  ArrayRef<int64_t> to = cast<ShapedType>(getDest().getType()).getShape();
  if (from.size() != to.size() || !llvm::equal(from, to, agree))
    return emitOpError("sums ")
           << getInput().getType() << " into " << getDest().getType();
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
  ArrayRef<int64_t> from = cast<ShapedType>(getInput().getType()).getShape();
  ArrayRef<int64_t> to = cast<ShapedType>(getDest().getType()).getShape();
  if (from.empty() || from.size() != to.size() ||
      !llvm::equal(from.drop_back(), to.drop_back(), agree) ||
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

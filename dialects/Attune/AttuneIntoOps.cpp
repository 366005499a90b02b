//===- AttuneIntoOps.cpp - Ops with a destination ---------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneDialect.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::bufferization;
using namespace attune;

#define GET_OP_CLASSES
#include "Attune/AttuneIntoOps.cpp.inc"

void AttuneDialect::registerIntoOps() {
  addOperations<
#define GET_OP_LIST
#include "Attune/AttuneIntoOps.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Verifiers
//===----------------------------------------------------------------------===//

/// Fails if a size of `value` is known and is not `expected`, which is known.
static LogicalResult sizeAt(Operation *op, Value value, unsigned dim,
                            int64_t expected, StringRef what) {
  int64_t size = cast<ShapedType>(value.getType()).getDimSize(dim);
  if (ShapedType::isDynamic(size) || ShapedType::isDynamic(expected) ||
      size == expected)
    return success();
  return op->emitOpError("has ")
         << size << " " << what << " where it takes " << expected;
}
static LogicalResult rankIs(Operation *op, Value value, int64_t rank,
                            StringRef what) {
  int64_t found = cast<ShapedType>(value.getType()).getRank();
  if (found == rank)
    return success();
  return op->emitOpError("has ")
         << what << " of rank " << found << ", not " << rank;
}

LogicalResult LinearIntoOp::verify() {
  auto sizeOf = [](Value value, unsigned dim) {
    return cast<ShapedType>(value.getType()).getDimSize(dim);
  };
  // I1
  bool tensors = isa<RankedTensorType>(getDest().getType());
  for (Value operand : getOperands())
    if (isa<RankedTensorType>(operand.getType()) != tensors)
      return emitOpError("has both tensors and buffers as operands");
  if (tensors == (getResult() == nullptr))
    return emitOpError(tensors ? "writes a tensor and gives none"
                               : "writes a buffer and gives a tensor");
  // I2
  if (failed(rankIs(*this, getInput(), 2, "an input")) ||
      failed(rankIs(*this, getWeight(), 3, "a weight")) ||
      failed(rankIs(*this, getDest(), 2, "a destination")) ||
      failed(sizeAt(*this, getInput(), 0, sizeOf(getDest(), 0), "rows")) ||
      failed(sizeAt(*this, getInput(), 1, sizeOf(getWeight(), 1), "columns")))
    return failure();
  int64_t lanes = sizeOf(getWeight(), 2), width = sizeOf(getDest(), 1);
  if (ShapedType::isDynamic(lanes) || lanes == 0 ||
      ShapedType::isDynamic(width))
    return emitOpError("has panels or channels whose number is not known");
  // I3
  int64_t parts = getGated() ? 2 : 1;
  if (failed(sizeAt(*this, getWeight(), 0,
                    llvm::divideCeil(width, lanes) * parts, "panels")))
    return failure();
  // I4
  if (!getBias())
    return success();
  return failed(rankIs(*this, getBias(), 1, "a bias"))
             ? failure()
             : sizeAt(*this, getBias(), 0, width * parts, "entries of bias");
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

void LinearIntoOp::getEffects(
    SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  if (!isa<MemRefType>(getDest().getType()))
    return;
  OpOperand &dest = getDestMutable();
  for (OpOperand &operand : getOperation()->getOpOperands())
    if (&operand != &dest || getResidual())
      effects.emplace_back(MemoryEffects::Read::get(), &operand);
  effects.emplace_back(MemoryEffects::Write::get(), &dest);
}
bool LinearIntoOp::bufferizesToMemoryRead(OpOperand &operand,
                                          const AnalysisState &) {
  return getResidual() || !isDpsInit(&operand);
}
bool LinearIntoOp::bufferizesToMemoryWrite(OpOperand &operand,
                                           const AnalysisState &) {
  return isDpsInit(&operand);
}
AliasingValueList LinearIntoOp::getAliasingValues(OpOperand &operand,
                                                  const AnalysisState &) {
  if (!isDpsInit(&operand))
    return {};
  return {{getOperation()->getResult(0), BufferRelation::Equivalent}};
}
LogicalResult LinearIntoOp::bufferize(RewriterBase &rewriter,
                                      const BufferizationOptions &options,
                                      BufferizationState &state) {
  SmallVector<Value> buffers;
  for (Value operand : getOperands()) {
    FailureOr<Value> buffer = getBuffer(rewriter, operand, options, state);
    if (failed(buffer))
      return failure();
    buffers.push_back(*buffer);
  }
  create(rewriter, getLoc(), TypeRange{}, buffers, (*this)->getAttrs());
  Value dest = buffers[getDestMutable().getOperandNumber()];
  replaceOpWithBufferizedValues(rewriter, *this, dest);
  return success();
}

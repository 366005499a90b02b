//===- AttuneGroupOps.cpp - Stacks of matrices for blocks -------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneGroupOps.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::bufferization;
using namespace attune;

#define GET_OP_CLASSES
#include "Attune/AttuneGroupOps.cpp.inc"

//===----------------------------------------------------------------------===//
// Verifiers
//===----------------------------------------------------------------------===//

/// G1: tensors and results, or buffers and none.
static LogicalResult verifyPlaces(Operation *op) {
  bool tensors = isa<RankedTensorType>(op->getOperand(0).getType());
  for (Value operand : op->getOperands())
    if (isa<RankedTensorType>(operand.getType()) != tensors)
      return op->emitOpError("has both tensors and buffers as operands");
  if (tensors != (op->getNumResults() == 0))
    return success();
  return op->emitOpError(tensors ? "writes a tensor and gives none"
                                 : "writes a buffer and gives a tensor");
}

/// Fails if `value` has another rank than `shape`, or a size that is known and
/// not the one there.
static LogicalResult verifyShape(Operation *op, Value value,
                                 ArrayRef<int64_t> shape, StringRef what) {
  auto type = cast<ShapedType>(value.getType());
  auto differs = [](int64_t a, int64_t b) {
    return !ShapedType::isDynamic(a) && !ShapedType::isDynamic(b) && a != b;
  };
  if (type.getRank() == int64_t(shape.size()) &&
      llvm::none_of(llvm::zip(type.getShape(), shape), [&](auto sizes) {
        return differs(std::get<0>(sizes), std::get<1>(sizes));
      }))
    return success();
  InFlightDiagnostic diag = op->emitOpError("has ")
                            << what << " of type " << type
                            << " where it takes [";
  llvm::interleaveComma(shape, diag, [&](int64_t size) {
    if (ShapedType::isDynamic(size))
      diag << "?";
    else
      diag << size;
  });
  return diag << "]";
}
static LogicalResult verifyNumbers(Operation *op, Value value,
                                   ArrayRef<int64_t> shape, StringRef what) {
  if (failed(verifyShape(op, value, shape, what)))
    return failure();
  Type element = getElementTypeOrSelf(value.getType());
  if (element.isInteger(64))
    return success();
  return op->emitOpError("has ") << what << " of " << element << ", not i64";
}

constexpr int64_t kAny = ShapedType::kDynamic;

LogicalResult GroupedLinearIntoOp::verify() {
  auto shapeOf = [](Value value) {
    return cast<ShapedType>(value.getType()).getShape();
  };
  // G1
  if (failed(verifyPlaces(*this)))
    return failure();
  // G2
  ArrayRef<int64_t> stack = shapeOf(getWeight());
  if (stack.size() != 4)
    return emitOpError("has a stack of rank ") << stack.size() << ", not 4";
  SmallVector<int64_t> rows(getTasks() ? 1 : 2, kAny);
  auto withWidth = [&](int64_t width) {
    SmallVector<int64_t> shape = rows;
    shape.push_back(width);
    return shape;
  };
  if (failed(verifyShape(*this, getInput(), withWidth(stack[2]), "an input")))
    return failure();
  if (!getFrom())
    rows.assign(shapeOf(getInput()).drop_back().begin(),
                shapeOf(getInput()).drop_back().end());
  if (failed(verifyShape(*this, getDest(), withWidth(kAny), "a destination")))
    return failure();
  int64_t width = shapeOf(getDest()).back(), lanes = stack[3];
  if (ShapedType::isDynamic(lanes) || lanes == 0 ||
      ShapedType::isDynamic(width) || ShapedType::isDynamic(stack[0]))
    return emitOpError("has matrices, panels or channels whose number is not "
                       "known");
  // G3
  int64_t panels = llvm::divideCeil(width, lanes) * (getGated() ? 2 : 1);
  if (failed(verifyShape(*this, getWeight(),
                         {stack[0], panels, stack[2], lanes}, "panels")))
    return failure();
  // G4
  if (getTasks() &&
      failed(verifyNumbers(*this, getTasks(), {kAny, 3}, "tasks")))
    return failure();
  // G5
  if (!getFrom())
    return success();
  if (!getTasks())
    return emitOpError("takes rows from elsewhere without tasks");
  return verifyNumbers(*this, getFrom(), {shapeOf(getDest())[0]},
                       "rows to take");
}

LogicalResult ExpertTasksIntoOp::verify() {
  if (failed(verifyPlaces(*this)))
    return failure();
  // G6
  if (failed(verifyNumbers(*this, getChosen(), {kAny, kAny}, "a choice")))
    return failure();
  ArrayRef<int64_t> chosen = cast<ShapedType>(getChosen().getType()).getShape();
  if (ShapedType::isDynamic(chosen[1]) || chosen[1] == 0)
    return emitOpError("has tokens whose number of experts is not known");
  int64_t slots =
      ShapedType::isDynamic(chosen[0]) ? kAny : chosen[0] * chosen[1];
  if (failed(verifyNumbers(*this, getTasks(), {kAny, 3}, "tasks")) ||
      failed(verifyNumbers(*this, getFrom(), {slots}, "rows to take")) ||
      failed(verifyNumbers(*this, getPlaces(), {slots}, "places")))
    return failure();
  if (getExperts() < 1 || getRows() < 1)
    return emitOpError("has no expert, or blocks without rows");
  return success();
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

// A destination is the result of its number. Rows of no task are kept, so the
// destination of a product is read; a list of tasks is written whole.

template <typename Op>
static void effectsOf(Op op, bool readsDest,
                      SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  if (op->getNumResults() != 0)
    return;
  for (OpOperand &operand : op->getOpOperands()) {
    if (!op.isDpsInit(&operand) || readsDest)
      effects.emplace_back(MemoryEffects::Read::get(), &operand);
    if (op.isDpsInit(&operand))
      effects.emplace_back(MemoryEffects::Write::get(), &operand);
  }
}
template <typename Op>
static AliasingValueList aliasesOf(Op op, OpOperand &operand) {
  if (!op.isDpsInit(&operand))
    return {};
  return {{op.getTiedOpResult(&operand), BufferRelation::Equivalent}};
}
template <typename Op>
static LogicalResult bufferizeInto(Op op, RewriterBase &rewriter,
                                   const BufferizationOptions &options,
                                   BufferizationState &state) {
  SmallVector<Value> buffers, dests;
  for (OpOperand &operand : op->getOpOperands()) {
    FailureOr<Value> buffer =
        getBuffer(rewriter, operand.get(), options, state);
    if (failed(buffer))
      return failure();
    buffers.push_back(*buffer);
    if (op.isDpsInit(&operand))
      dests.push_back(*buffer);
  }
  Op::create(rewriter, op.getLoc(), TypeRange{}, buffers, op->getAttrs());
  replaceOpWithBufferizedValues(rewriter, op, dests);
  return success();
}

void GroupedLinearIntoOp::getEffects(
    SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  effectsOf(*this, /*readsDest=*/bool(getTasks()), effects);
}
bool GroupedLinearIntoOp::bufferizesToMemoryRead(OpOperand &operand,
                                                 const AnalysisState &) {
  return getTasks() || !isDpsInit(&operand);
}
bool GroupedLinearIntoOp::bufferizesToMemoryWrite(OpOperand &operand,
                                                  const AnalysisState &) {
  return isDpsInit(&operand);
}
AliasingValueList
GroupedLinearIntoOp::getAliasingValues(OpOperand &operand,
                                       const AnalysisState &) {
  return aliasesOf(*this, operand);
}
LogicalResult
GroupedLinearIntoOp::bufferize(RewriterBase &rewriter,
                               const BufferizationOptions &options,
                               BufferizationState &state) {
  return bufferizeInto(*this, rewriter, options, state);
}

void ExpertTasksIntoOp::getEffects(
    SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  effectsOf(*this, /*readsDest=*/false, effects);
}
bool ExpertTasksIntoOp::bufferizesToMemoryRead(OpOperand &operand,
                                               const AnalysisState &) {
  return !isDpsInit(&operand);
}
bool ExpertTasksIntoOp::bufferizesToMemoryWrite(OpOperand &operand,
                                                const AnalysisState &) {
  return isDpsInit(&operand);
}
AliasingValueList ExpertTasksIntoOp::getAliasingValues(OpOperand &operand,
                                                       const AnalysisState &) {
  return aliasesOf(*this, operand);
}
LogicalResult ExpertTasksIntoOp::bufferize(RewriterBase &rewriter,
                                           const BufferizationOptions &options,
                                           BufferizationState &state) {
  return bufferizeInto(*this, rewriter, options, state);
}

//===- AttuneIntoOps.cpp - Ops with a destination ---------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttuneInto.h"

#include "Attune/AttuneCachedRows.h"
#include "Attune/AttuneChecks.h"
#include "Attune/AttuneGroupOps.h"
#include "Attune/AttuneMeshOps.h"
#include "Attune/AttunePanels.h"

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
  addOperations<
#define GET_OP_LIST
#include "Attune/AttuneGroupOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "Attune/AttuneMeshOps.cpp.inc"
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

static int64_t sizeOf(Value value, unsigned dim) {
  return cast<ShapedType>(value.getType()).getDimSize(dim);
}

/// All operands are tensors and there is a result, or all are buffers.
template <typename Op> static LogicalResult verifyPlaces(Op op) {
  bool tensors = isa<RankedTensorType>(op.getDest().getType());
  for (Value operand : op->getOperands())
    if (isa<RankedTensorType>(operand.getType()) != tensors)
      return op.emitOpError("has both tensors and buffers as operands");
  if (tensors == (op.getResult() == nullptr))
    return op.emitOpError(tensors ? "writes a tensor and gives none"
                                  : "writes a buffer and gives a tensor");
  return success();
}

/// Checks that panels of `lanes` rows hold the channels, as does the bias.
template <typename Op>
static LogicalResult verifyPanels(Op op, int64_t lanes, int64_t width) {
  if (ShapedType::isDynamic(lanes) || lanes == 0 ||
      ShapedType::isDynamic(width))
    return op.emitOpError("has panels or channels whose number is not known");
  int64_t parts = op.getGated() ? 2 : 1;
  if (failed(sizeAt(op, op.getWeight(), 0,
                    llvm::divideCeil(width, lanes) * parts, "panels")))
    return failure();
  if (!op.getBias())
    return success();
  return failed(rankIs(op, op.getBias(), 1, "a bias"))
             ? failure()
             : sizeAt(op, op.getBias(), 0, width * parts, "entries of bias");
}

LogicalResult LinearIntoOp::verify() {
  // I1
  if (failed(verifyPlaces(*this)))
    return failure();
  // I2
  if (failed(rankIs(*this, getInput(), 2, "an input")) ||
      failed(rankIs(*this, getWeight(), 3, "a weight")) ||
      failed(rankIs(*this, getDest(), 2, "a destination")) ||
      failed(sizeAt(*this, getInput(), 0, sizeOf(getDest(), 0), "rows")))
    return failure();
  bool pairs = holdsPairs(cast<ShapedType>(getWeight().getType()),
                          sizeOf(getInput(), 1));
  int64_t lanes = sizeOf(getWeight(), 2), width = sizeOf(getDest(), 1);
  bool quads = holdsQuads(cast<ShapedType>(getWeight().getType()),
                          sizeOf(getInput(), 1));
  if ((pairs || quads) && !ShapedType::isDynamic(lanes))
    lanes /= pairs ? 2 : 4;
  else if (failed(
               sizeAt(*this, getInput(), 1, sizeOf(getWeight(), 1), "columns")))
    return failure();
  // I5
  auto holdsBytes = [](Value value) {
    return cast<ShapedType>(value.getType()).getElementType().isInteger(8);
  };
  bool sums =
      cast<ShapedType>(getDest().getType()).getElementType().isInteger(32);
  if ((holdsBytes(getInput()) || holdsBytes(getWeight()) || sums) &&
      (!quads || !holdsBytes(getInput()) || !sums || getBias() || getGated() ||
       getScale() || getActivation() != Activation::Identity))
    return emitOpError("has bytes, but is no plain product of bytes in quads "
                       "that gives i32");
  // I3, I4
  return verifyPanels(*this, lanes, width);
}

int64_t QuantizedLinearIntoOp::getBits() {
  return quantizedBits(cast<ShapedType>(getWeight().getType()),
                       sizeOf(getInput(), 1));
}

int64_t QuantizedLinearIntoOp::getGroup() {
  return sizeOf(getInput(), 1) * (getZeros() ? 2 : 1) /
         sizeOf(getWeightScales(), 1);
}

LogicalResult QuantizedLinearIntoOp::verify() {
  // J1
  if (failed(verifyPlaces(*this)))
    return failure();
  // J2
  if (failed(rankIs(*this, getInput(), 2, "an input")) ||
      failed(rankIs(*this, getWeight(), 3, "a weight")) ||
      failed(rankIs(*this, getWeightScales(), 3, "scales")) ||
      failed(rankIs(*this, getDest(), 2, "a destination")) ||
      failed(sizeAt(*this, getInput(), 0, sizeOf(getDest(), 0), "rows")))
    return failure();
  auto weight = cast<ShapedType>(getWeight().getType());
  int64_t depth = sizeOf(getInput(), 1), bits = getBits(),
          lanes = sizeOf(getWeight(), 2) / 4,
          scales = sizeOf(getWeightScales(), 1);
  if (!takesBytes(weight.getElementType()) || !weight.hasStaticShape() ||
      weight.getDimSize(1) * (bits == 4 ? 8 : 4) != depth)
    return emitOpError("takes panels of bytes, four columns or eight of 4 bits "
                       "to a row, for rows of floats as long");
  int64_t groups = groupsOfScales(scales, getZeros());
  if (groups < 1 || depth % groups != 0)
    return emitOpError("has scales of no whole groups");
  if (failed(sizeAt(*this, getWeightScales(), 0, weight.getDimSize(0),
                    "panels of scales")) ||
      failed(sizeAt(*this, getWeightScales(), 2, lanes, "scales side by side")))
    return failure();
  // J5
  if (areScalesOfFloats(cast<ShapedType>(getWeightScales().getType())) &&
      (bits != 4 || getZeros()))
    return emitOpError("has scales of floats of 4 bits, but other numbers");
  if (failed(byteFloatsFit(*this, getWeight(), getWeightScales(), getZeros())))
    return failure();
  // J3, J4
  return verifyPanels(*this, lanes, sizeOf(getDest(), 1));
}

MutableOperandRange AttentionIntoOp::getDpsInitsMutable() {
  return MutableOperandRange(
      getOperation(), getDestMutable().getOperandNumber(), getLse() ? 2 : 1);
}

LogicalResult AttentionIntoOp::verify() {
  // N1
  bool tensors = isa<RankedTensorType>(getDest().getType());
  for (Value operand : getOperands())
    if (isa<RankedTensorType>(operand.getType()) != tensors)
      return emitOpError("has both tensors and buffers as operands");
  size_t expected = tensors ? getDpsInitsMutable().size() : 0;
  if (getNumResults() != expected)
    return emitOpError("gives ")
           << getNumResults() << " tensors where it writes "
           << getDpsInitsMutable().size()
           << (tensors ? " of them" : " buffers");
  // N2
  auto typeOf = [](Value value) { return cast<ShapedType>(value.getType()); };
  std::pair<Value, StringRef> named[] = {
      {getQuery(), "a query"}, {getKey(), "a key"}, {getValue(), "a value"}};
  for (auto [value, what] : named) {
    if (failed(rankIs(*this, value, 4, what)))
      return failure();
    if (typeOf(value).isDynamicDim(1) || typeOf(value).isDynamicDim(3))
      return emitOpError("has ") << what << " of unknown heads or width";
  }
  ShapedType query = typeOf(getQuery()), key = typeOf(getKey()),
             value = typeOf(getValue());
  Type stored = key.getElementType();
  if (failed(sizeAt(*this, getKey(), 3,
                    elementsOfRow(stored, query.getDimSize(3)),
                    "channels of keys")))
    return failure();
  if ((query.getElementType() != stored && !isInBytes(stored)) ||
      stored != value.getElementType())
    return emitOpError("has queries, keys and values of more than one type");
  // N3
  if (failed(
          sizeAt(*this, getValue(), 1, key.getDimSize(1), "heads of values")))
    return failure();
  if (key.getDimSize(1) == 0 || query.getDimSize(1) % key.getDimSize(1) != 0)
    return emitOpError("has ")
           << query.getDimSize(1) << " query heads, which " << key.getDimSize(1)
           << " key/value heads cannot share evenly";
  // N4
  if (typeOf(getDest()).getRank() == 3)
    return sizeAt(*this, getDest(), 2, query.getDimSize(1) * widthOfRows(value),
                  "channels of merged results");
  if (failed(rankIs(*this, getDest(), 4, "a destination")) ||
      failed(
          sizeAt(*this, getDest(), 1, query.getDimSize(1), "heads of results")))
    return failure();
  return sizeAt(*this, getDest(), 3, widthOfRows(value), "channels of results");
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

void attune::effectsOf(
    DestinationStyleOpInterface op, bool reads,
    SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    if (reads || !op.isDpsInit(&operand))
      effects.emplace_back(MemoryEffects::Read::get(), &operand);
    if (op.isDpsInit(&operand))
      effects.emplace_back(MemoryEffects::Write::get(), &operand);
  }
}

AliasingValueList attune::destinationOf(DestinationStyleOpInterface op,
                                        OpOperand &operand) {
  if (!op.isDpsInit(&operand))
    return {};
  return {{op.getTiedOpResult(&operand), BufferRelation::Equivalent}};
}

LogicalResult attune::bufferizeInto(DestinationStyleOpInterface op,
                                    RewriterBase &rewriter,
                                    const BufferizationOptions &options,
                                    BufferizationState &state) {
  SmallVector<Value> buffers, dests;
  for (Value operand : op->getOperands()) {
    FailureOr<Value> buffer = operand;
    if (isa<TensorType>(operand.getType()))
      buffer = getBuffer(rewriter, operand, options, state);
    if (failed(buffer))
      return failure();
    buffers.push_back(*buffer);
  }
  OperationState made(op->getLoc(), op->getName());
  made.addOperands(buffers);
  made.addAttributes(op->getAttrs());
  rewriter.create(made);
  for (OpOperand &dest : op.getDpsInitsMutable())
    dests.push_back(buffers[dest.getOperandNumber()]);
  replaceOpWithBufferizedValues(rewriter, op, dests);
  return success();
}

void LinearIntoOp::getEffects(
    SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  effectsOf(*this, getResidual(), effects);
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
  return destinationOf(*this, operand);
}
LogicalResult LinearIntoOp::bufferize(RewriterBase &rewriter,
                                      const BufferizationOptions &options,
                                      BufferizationState &state) {
  return bufferizeInto(*this, rewriter, options, state);
}

void QuantizedLinearIntoOp::getEffects(
    SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  effectsOf(*this, getResidual(), effects);
}
bool QuantizedLinearIntoOp::bufferizesToMemoryRead(OpOperand &operand,
                                                   const AnalysisState &) {
  return getResidual() || !isDpsInit(&operand);
}
bool QuantizedLinearIntoOp::bufferizesToMemoryWrite(OpOperand &operand,
                                                    const AnalysisState &) {
  return isDpsInit(&operand);
}
AliasingValueList
QuantizedLinearIntoOp::getAliasingValues(OpOperand &operand,
                                         const AnalysisState &) {
  return destinationOf(*this, operand);
}
LogicalResult
QuantizedLinearIntoOp::bufferize(RewriterBase &rewriter,
                                 const BufferizationOptions &options,
                                 BufferizationState &state) {
  return bufferizeInto(*this, rewriter, options, state);
}

void AttentionIntoOp::getEffects(
    SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  effectsOf(*this, /*reads=*/false, effects);
}
bool AttentionIntoOp::bufferizesToMemoryRead(OpOperand &operand,
                                             const AnalysisState &) {
  return !isDpsInit(&operand);
}
bool AttentionIntoOp::bufferizesToMemoryWrite(OpOperand &operand,
                                              const AnalysisState &) {
  return isDpsInit(&operand);
}
AliasingValueList AttentionIntoOp::getAliasingValues(OpOperand &operand,
                                                     const AnalysisState &) {
  return destinationOf(*this, operand);
}
LogicalResult AttentionIntoOp::bufferize(RewriterBase &rewriter,
                                         const BufferizationOptions &options,
                                         BufferizationState &state) {
  return bufferizeInto(*this, rewriter, options, state);
}

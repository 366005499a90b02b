//===- AttuneMoEOps.cpp - Verifiers of routers and experts ------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttuneBytecode.h"

#include "Attune/AttuneChecks.h"
#include "Attune/AttunePanels.h"
#include "Attune/AttuneShapes.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attune;

#define GET_OP_CLASSES
#include "Attune/AttuneMoEOps.cpp.inc"

void AttuneDialect::registerMoEOps() {
  addOperations<
#define GET_OP_LIST
#include "Attune/AttuneMoEOps.cpp.inc"
      >();
}

/// Every matrix of `stack` has `rows` rows, or the panels that hold them (each
/// half on its own if `parts` is 2). `side` columns of a row stand side by side
/// in a panel.
static LogicalResult stackHolds(Operation *op, Value stack, StringRef owner,
                                int64_t rows, int64_t parts, const Twine &why,
                                int64_t side = 1) {
  if (ShapedType::isDynamic(rows))
    return success();
  if (rankOf(stack) == 3)
    return sizeIs(op, {stack, 1, owner, "rows"}, rows * parts, why);
  int64_t panel = cast<RankedTensorType>(stack.getType()).getDimSize(3);
  if (ShapedType::isDynamic(panel) || panel < side)
    return success();
  panel /= side;
  return sizeIs(op, {stack, 1, owner, "panels"},
                int64_t(llvm::divideCeil(rows, panel)) * parts,
                why + ": panels of " + Twine(panel) + " to hold them are");
}

LogicalResult RouterOp::verify() {
  // R1
  NamedSize experts = lastSize(getLogits(), "logits", "experts");
  NamedSize active = lastSize(getExperts(), "result", "active experts");
  if (failed(
          sameTokens(*this, getExperts(), "experts", getLogits(), "logits")) ||
      failed(
          sameTokens(*this, getWeights(), "weights", getLogits(), "logits")) ||
      failed(sameSize(*this, lastSize(getWeights(), "weights", "width"),
                      lastSize(getExperts(), "experts", "width"))))
    return failure();
  if (!experts.known() || !active.known())
    return emitOpError("needs to know how many experts there are and how many "
                       "are active");
  if (active.get() < 1 || active.get() > experts.get())
    return emitOpError("activates ")
           << active.get() << " of " << experts.get() << " experts";
  // R2
  if (getBias() && failed(sizeIs(*this, {getBias(), 0, "bias", "entries"},
                                 experts.get(), "the number of experts is")))
    return failure();
  // R3
  int64_t groups = getGroups(), activeGroups = getActiveGroups();
  if (groups < 1 || experts.get() % groups != 0)
    return emitOpError("divides ")
           << experts.get() << " experts into " << groups << " groups";
  if (activeGroups < 1 || activeGroups > groups)
    return emitOpError("activates ")
           << activeGroups << " of " << groups << " groups";
  // R4
  int64_t reachable = experts.get() / groups * activeGroups;
  if (active.get() > reachable)
    return emitOpError("activates ")
           << active.get() << " experts, but its " << activeGroups
           << " active groups have " << reachable;
  // R5
  bool mixes = getScoring() == RouterScoring::SparseMixer;
  if (activeGroups < groups && getScoring() == RouterScoring::TopSoftmax)
    return emitOpError("has groups, for which a softmax over the chosen "
                       "experts comes too late");
  if (activeGroups < groups && mixes)
    return emitOpError("has groups, which sparse_mixer does not know");
  if (getGroupScore() == GroupScore::TopTwo && experts.get() / groups < 2)
    return emitOpError("judges groups by their best two experts, but they have "
                       "one");
  // R6
  if (mixes && (getBias() || getRenormalise()))
    return emitOpError("takes neither a bias nor 'renormalise' with "
                       "sparse_mixer");
  return success();
}

//===----------------------------------------------------------------------===//
// Experts
//===----------------------------------------------------------------------===//

// Since version 3 experts have biases, a limit and an offset. Older modules do
// not say how their operands are divided: upgradeFromVersion does. Since
// version 5 groups may have zero points.

LogicalResult MoEOp::readProperties(DialectBytecodeReader &reader,
                                    OperationState &state) {
  auto &own = state.getOrAddProperties<Properties>();
  return success(
      succeeded(reader.readAttribute(own.activation)) &&
      succeeded(reader.readOptionalAttribute(own.gated)) &&
      succeeded(readSince(3, reader, own.limit)) &&
      succeeded(readSince(3, reader, own.up_offset)) &&
      succeeded(readSince(3, reader,
                          MutableArrayRef<int32_t>(own.operandSegmentSizes))));
}

void MoEOp::writeProperties(DialectBytecodeWriter &writer) {
  auto &own = getProperties();
  writer.writeAttribute(own.activation);
  writer.writeOptionalAttribute(own.gated);
  writer.writeOptionalAttribute(own.limit);
  writer.writeOptionalAttribute(own.up_offset);
  writer.writeSparseArray(ArrayRef<int32_t>(own.operandSegmentSizes));
}

LogicalResult QuantizedMoEOp::readProperties(DialectBytecodeReader &reader,
                                             OperationState &state) {
  auto &own = state.getOrAddProperties<Properties>();
  return success(
      succeeded(reader.readAttribute(own.activation)) &&
      succeeded(reader.readOptionalAttribute(own.gated)) &&
      succeeded(reader.readAttribute(own.hidden)) &&
      succeeded(readSince(3, reader, own.limit)) &&
      succeeded(readSince(3, reader, own.up_offset)) &&
      succeeded(readSince(3, reader,
                          MutableArrayRef<int32_t>(own.operandSegmentSizes))) &&
      succeeded(readSince(5, reader, own.up_zeros)) &&
      succeeded(readSince(5, reader, own.down_zeros)));
}

void QuantizedMoEOp::writeProperties(DialectBytecodeWriter &writer) {
  auto &own = getProperties();
  writer.writeAttribute(own.activation);
  writer.writeOptionalAttribute(own.gated);
  writer.writeAttribute(own.hidden);
  writer.writeOptionalAttribute(own.limit);
  writer.writeOptionalAttribute(own.up_offset);
  writer.writeSparseArray(ArrayRef<int32_t>(own.operandSegmentSizes));
  writer.writeOptionalAttribute(own.up_zeros);
  writer.writeOptionalAttribute(own.down_zeros);
}

/// M5, M6: biases of `hidden` and `width` channels, and what only gated layers
/// have.
template <typename Op>
static LogicalResult verifyGate(Op op, int64_t hidden, int64_t width) {
  bool gated = op.getGated();
  if (!ShapedType::isDynamic(hidden) && gated)
    hidden *= 2;
  for (auto [bias, owner, rows, why] :
       {std::tuple<Value, StringRef, int64_t, StringRef>(
            op.getUpBias(), "up_bias", hidden,
            gated ? "twice the hidden layer is" : "the hidden layer is"),
        std::tuple<Value, StringRef, int64_t, StringRef>(
            op.getDownBias(), "down_bias", width, "the result takes rows")}) {
    if (!bias)
      continue;
    if (failed(sameSize(op, {op.getUp(), 0, "up", "experts"},
                        {bias, 0, owner, "experts"})) ||
        (!ShapedType::isDynamic(rows) &&
         failed(sizeIs(op, {bias, 1, owner, "entries"}, rows, why))))
      return failure();
  }
  bool limited = op.getLimit() || !op.getUpOffset().isZero();
  if (limited && !gated)
    return op.emitOpError("has a limit or an offset of up, which belong to a "
                          "gated layer");
  if (op.getLimit() && !(op.getLimit()->convertToDouble() > 0))
    return op.emitOpError("has a limit of ")
           << op.getLimit()->convertToDouble() << ", which is not positive";
  return success();
}

LogicalResult MoEOp::verify() {
  // M1
  NamedSize depth{getDown(), 2, "down", "depth"};
  NamedSize input = lastSize(getInput(), "input", "width");
  NamedSize width = lastSize(getResult(), "result", "width");
  int64_t parts = getGated() ? 2 : 1;
  int64_t side = sideOfStacks(cast<ShapedType>(getUp().getType()), input.get());
  int64_t hidden = depth.known() ? side * depth.get() : ShapedType::kDynamic;
  if ((side == 1 &&
       failed(sameSize(*this, input, {getUp(), 2, "up", "depth"}))) ||
      failed(stackHolds(*this, getUp(), "up", hidden, parts,
                        getGated() ? "twice the depth of down is"
                                   : "the depth of down is",
                        side)) ||
      failed(stackHolds(*this, getDown(), "down", width.get(), 1,
                        "the result takes rows", side)) ||
      failed(sameTokens(*this, getResult(), "result", getInput(), "input")))
    return failure();
  // M2
  if (failed(sameTokens(*this, getExperts(), "experts", getInput(), "input")) ||
      failed(sameTokens(*this, getWeights(), "weights", getInput(), "input")) ||
      failed(sameSize(*this, lastSize(getWeights(), "weights", "width"),
                      lastSize(getExperts(), "experts", "width"))))
    return failure();
  // M3
  if (failed(typeOfResult(*this, getResidual(), "residual")))
    return failure();
  // M4
  if (failed(sameSize(*this, {getUp(), 0, "up", "experts"},
                      {getDown(), 0, "down", "experts"})))
    return failure();
  // M5, M6
  return verifyGate(*this, hidden, width.get());
}

//===----------------------------------------------------------------------===//
// Quantized experts
//===----------------------------------------------------------------------===//

/// Bits of a stack that multiplies rows of `inputs` numbers.
static int64_t bitsOf(Value stack, int64_t inputs) {
  auto type = cast<RankedTensorType>(stack.getType());
  if (type.getRank() == 3)
    return type.getElementType().isInteger(4) ? 4 : 8;
  return quantizedBits(type, inputs);
}

int64_t QuantizedMoEOp::getUpBits() {
  return bitsOf(getUp(), lastSize(getInput(), "").get());
}
int64_t QuantizedMoEOp::getDownBits() { return bitsOf(getDown(), getHidden()); }
int64_t QuantizedMoEOp::getInputGroup() {
  auto scales = cast<RankedTensorType>(getUpScales().getType());
  int64_t inputs = lastSize(getInput(), "").get();
  return inputs / groupsOfScales(scales, 2, getUpZeros(), inputs);
}
int64_t QuantizedMoEOp::getHiddenGroup() {
  auto scales = cast<RankedTensorType>(getDownScales().getType());
  auto inputs = int64_t(getHidden());
  return inputs / groupsOfScales(scales, 2, getDownZeros(), inputs);
}

/// A quantized stack and its scales have `rows` rows and columns for `inputs`.
static LogicalResult stackFits(Operation *op, Value stack, Value scales,
                               StringRef owner, StringRef scalesOwner,
                               int64_t rows, int64_t parts, int64_t inputs,
                               int64_t bits, const Twine &why) {
  bool panels = rankOf(stack) == 4;
  if (panels != (rankOf(scales) == 4))
    return op->emitOpError("has ")
           << owner << " and its scales not both in panels";
  // Q1
  int64_t depth = inputs;
  if (panels && !ShapedType::isDynamic(inputs))
    depth = inputs * bits / 32;
  if (!ShapedType::isDynamic(depth) &&
      failed(sizeIs(op, {stack, 2, owner, "depth"}, depth,
                    "rows that it multiplies take")))
    return failure();
  if (failed(stackHolds(op, stack, owner, rows, parts, why, panels ? 4 : 1)))
    return failure();
  // Q2
  return stackHolds(op, scales, scalesOwner, rows, parts, why);
}

LogicalResult QuantizedMoEOp::verify() {
  auto hidden = static_cast<int64_t>(getHidden());
  NamedSize width = lastSize(getResult(), "result");
  if (hidden < 1)
    return emitOpError("has a hidden layer of ") << hidden << " numbers";
  // Q1, Q2
  if (failed(stackFits(
          *this, getUp(), getUpScales(), "up", "scales of up", hidden,
          getGated() ? 2 : 1, lastSize(getInput(), "input").get(), getUpBits(),
          getGated() ? "twice the hidden layer is" : "the hidden layer is")) ||
      failed(stackFits(*this, getDown(), getDownScales(), "down",
                       "scales of down", width.get(), 1, hidden, getDownBits(),
                       "the result takes rows")))
    return failure();
  // Q7
  int64_t inputs = lastSize(getInput(), "input").get();
  if (failed(scalesFit(*this, getInput(), getInputScales(), getInputSums())) ||
      failed(groupsFit(*this, getUpScales(), 2, "scales of up", getUpZeros(),
                       getUpBits(), inputs)) ||
      failed(groupsFit(*this, getDownScales(), 2, "scales of down",
                       getDownZeros(), getDownBits(), hidden)) ||
      failed(byteFloatsFit(*this, getUp(), getUpScales(), getUpZeros(),
                           getInput())) ||
      failed(byteFloatsFit(*this, getDown(), getDownScales(), getDownZeros(),
                           getInput())))
    return failure();
  // Q2
  if (getInputScales()) {
    NamedSize scales = lastSize(getInputScales(), "input scales", "number");
    NamedSize factors{getUpScales(), 2, "scales of up", "number"};
    auto ofUp = cast<ShapedType>(getUpScales().getType());
    if (areScalesInLevels(ofUp)
            ? failed(sizeIs(*this, scales,
                            groupsOfScales(ofUp, 2, getUpZeros(), inputs),
                            "the groups of up are"))
        : getUpZeros()
            ? scales.known() && failed(sizeIs(*this, factors, 2 * scales.get(),
                                              "with zeros twice the input "
                                              "scales are"))
            : failed(sameSize(*this, factors, scales)))
      return failure();
    if (failed(sameSize(*this, lastSize(getInputSums(), "input sums", "number"),
                        scales)))
      return failure();
  }
  // Q3
  for (auto [value, owner] :
       {std::pair<Value, StringRef>(getInput(), "input"),
        std::pair<Value, StringRef>(getInputScales(), "input scales"),
        std::pair<Value, StringRef>(getInputSums(), "input sums"),
        std::pair<Value, StringRef>(getExperts(), "experts"),
        std::pair<Value, StringRef>(getWeights(), "weights")})
    if (value && failed(sameTokens(*this, getResult(), "result", value, owner)))
      return failure();
  if (failed(sameSize(*this, lastSize(getWeights(), "weights", "width"),
                      lastSize(getExperts(), "experts", "width"))))
    return failure();
  // Q4
  if (failed(typeOfResult(*this, getResidual(), "residual")))
    return failure();
  // Q5
  for (auto [value, owner] :
       {std::pair<Value, StringRef>(getUpScales(), "scales of up"),
        std::pair<Value, StringRef>(getDown(), "down"),
        std::pair<Value, StringRef>(getDownScales(), "scales of down")})
    if (failed(sameSize(*this, {getUp(), 0, "up", "experts"},
                        {value, 0, owner, "experts"})))
      return failure();
  // Q6
  return verifyGate(*this, hidden, width.get());
}

LogicalResult HeadLinearOp::verify() {
  // H1
  if (failed(sameSize(*this, {getWeight(), 0, "weight", "heads"},
                      {getInput(), 1, "input", "heads"})) ||
      failed(sameSize(*this, {getResult(), 1, "result", "heads"},
                      {getInput(), 1, "input", "heads"})) ||
      failed(sameSize(*this, lastSize(getInput(), "input", "width"),
                      {getWeight(), 2, "weight", "depth"})) ||
      failed(stackHolds(*this, getWeight(), "weight",
                        lastSize(getResult(), "result", "width").get(), 1,
                        "the result takes rows")))
    return failure();
  // H2
  for (auto [dim, what] : {std::pair(0, "batch"), std::pair(2, "tokens")})
    if (failed(sameSize(*this, {getResult(), dim, "result", what},
                        {getInput(), dim, "input", what})))
      return failure();
  return success();
}

/// The sizes of `like`; its last one where the result knows it.
static LogicalResult reifyTokens(OpBuilder &builder, Value result, Value like,
                                 ReifiedRankedShapedTypeDims &shapes) {
  SmallVector<SizeSource> sources;
  for (int64_t dim = 0; dim + 1 < rankOf(like); ++dim)
    sources.push_back({like, dim});
  return reifySizes(builder, result.getLoc(), result, sources, shapes);
}

LogicalResult RouterOp::reifyResultShapes(OpBuilder &builder,
                                          ReifiedRankedShapedTypeDims &shapes) {
  if (failed(reifyTokens(builder, getExperts(), getLogits(), shapes)))
    return failure();
  return reifyTokens(builder, getWeights(), getLogits(), shapes);
}

LogicalResult MoEOp::reifyResultShapes(OpBuilder &builder,
                                       ReifiedRankedShapedTypeDims &shapes) {
  return reifyTokens(builder, getResult(), getInput(), shapes);
}

LogicalResult
QuantizedMoEOp::reifyResultShapes(OpBuilder &builder,
                                  ReifiedRankedShapedTypeDims &shapes) {
  return reifyTokens(builder, getResult(), getInput(), shapes);
}

LogicalResult
HeadLinearOp::reifyResultShapes(OpBuilder &builder,
                                ReifiedRankedShapedTypeDims &shapes) {
  return reifyTokens(builder, getResult(), getInput(), shapes);
}

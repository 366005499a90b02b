//===- AttuneTileOps.cpp - Arithmetic of one tile ---------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneAttentionChecks.h"
#include "Attune/AttuneChecks.h"
#include "Attune/AttuneInto.h"
#include "Attune/AttunePanels.h"
#include "Attune/AttuneShapes.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attune;

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// The last operands, from the first destination on.
template <typename Op> static MutableOperandRange destsOf(Op op) {
  unsigned first = op.getFirstDest();
  return MutableOperandRange(op, first, op->getNumOperands() - first);
}

template <typename Op>
static LogicalResult reifyDests(Op op, OpBuilder &builder,
                                ReifiedRankedShapedTypeDims &shapes) {
  for (OpResult result : op->getResults()) {
    Value dest = op.getTiedOpOperand(result)->get();
    if (failed(reifyAs(builder, op.getLoc(), result, dest, shapes)))
      return failure();
  }
  return success();
}

// custom<GroupScales>: of an input, its sums and a weight, `a, b, c : types`,
// or those of the weight alone, `c : type`.
static ParseResult
parseGroupScales(OpAsmParser &parser,
                 std::optional<OpAsmParser::UnresolvedOperand> &input,
                 std::optional<OpAsmParser::UnresolvedOperand> &sums,
                 std::optional<OpAsmParser::UnresolvedOperand> &weight,
                 Type &inputType, Type &sumsType, Type &weightType) {
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  SmallVector<Type> types;
  SMLoc at = parser.getCurrentLocation();
  if (parser.parseOperandList(operands) || parser.parseColonTypeList(types))
    return failure();
  if ((operands.size() != 1 && operands.size() != 3) ||
      types.size() != operands.size())
    return parser.emitError(at, "expected the scales of a weight, or those of "
                                "an input, its sums and a weight's scales");
  weight = operands.back();
  weightType = types.back();
  if (operands.size() == 1)
    return success();
  input = operands[0];
  inputType = types[0];
  sums = operands[1];
  sumsType = types[1];
  return success();
}

static void printGroupScales(OpAsmPrinter &printer, Operation *, Value input,
                             Value sums, Value weight, Type inputType,
                             Type sumsType, Type weightType) {
  if (input)
    printer << input << ", " << sums << ", ";
  printer << weight << " : ";
  if (input)
    printer << inputType << ", " << sumsType << ", ";
  printer << weightType;
}

#define GET_OP_CLASSES
#include "Attune/AttuneTileOps.cpp.inc"

void AttuneDialect::registerTileOps() {
  addOperations<
#define GET_OP_LIST
#include "Attune/AttuneTileOps.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Verifiers
//===----------------------------------------------------------------------===//

// T1. The interface counts results and compares their types.
static LogicalResult allTensorsOrBuffers(DestinationStyleOpInterface op) {
  bool tensors = isa<RankedTensorType>(op.getDpsInits().front().getType());
  for (Value operand : op->getOperands())
    if (isa<ShapedType>(operand.getType()) &&
        isa<RankedTensorType>(operand.getType()) != tensors)
      return op->emitOpError("has both tensors and buffers as operands");
  return success();
}

/// A state: maximum and sum are [B, H, M] of an f32 accumulator.
static LogicalResult isState(Operation *op, Value acc, Value max, Value sum) {
  Type type = getElementTypeOrSelf(acc.getType());
  if (!type.isF32()) {
    InFlightDiagnostic diag = op->emitOpError("accumulates in ")
                              << type << ", but only f32 keeps enough digits";
    diag.attachNote(acc.getLoc()) << "the accumulator comes from here";
    return diag;
  }
  return failure(failed(rowsOf(op, max, "maximum", acc, "accumulator")) ||
                 failed(rowsOf(op, sum, "sum", acc, "accumulator")));
}

LogicalResult OnlineStartOp::verify() {
  // T1, B1
  return failure(failed(allTensorsOrBuffers(*this)) ||
                 failed(isState(*this, getAcc(), getMax(), getSum())));
}

/// A bound is positive and no less than a size that is known.
static LogicalResult bounds(Operation *op, int64_t most, NamedSize size) {
  if (most < 1)
    return op->emitOpError("has a tile of ")
           << most << " " << size.what << ", which is not a positive number";
  if (size.known() && size.get() > most)
    return op->emitOpError("has ") << size.get() << " " << size.what
                                   << " in a tile of at most " << most;
  return success();
}

/// What is fetched for later has to be more of `now`.
static LogicalResult goesOn(Operation *op, Value now, Value next,
                            StringRef owner, StringRef nextOwner) {
  if (!next)
    return success();
  Type element = getElementTypeOrSelf(now.getType());
  if (getElementTypeOrSelf(next.getType()) != element)
    return op->emitOpError("prefetches ")
           << owner << "s of another type than " << element;
  return sameSize(op, {next, 3, nextOwner, "width"}, {now, 3, owner, "width"});
}

LogicalResult OnlineAttentionOp::verify() {
  // T1, O1 to O5, O7
  if (failed(allTensorsOrBuffers(*this)) || failed(verifyStep(*this)))
    return failure();
  // O6
  Value acc = getAcc();
  if (failed(isState(*this, acc, getMax(), getSum())) ||
      failed(rowsOf(*this, acc, "accumulator", getQuery(), "query")) ||
      failed(sameWidth(*this, {acc, 3, "accumulator", "width"},
                       {getValue(), 3, "value", "width"})))
    return failure();
  // O8
  if (auto tile = getTile()) {
    if (tile->size() != 2)
      return emitOpError("has a tile of ")
             << tile->size() << " numbers, but needs those of queries and keys";
    if (failed(
            bounds(*this, (*tile)[0], {getQuery(), 2, "query", "queries"})) ||
        failed(bounds(*this, (*tile)[1], {getKey(), 2, "key", "keys"})))
      return failure();
  }
  // O9
  if (bool(getNextKey()) != bool(getNextValue()))
    return emitOpError("prefetches keys without values, or the reverse");
  return failure(
      failed(goesOn(*this, getKey(), getNextKey(), "key", "next key")) ||
      failed(goesOn(*this, getValue(), getNextValue(), "value", "next value")));
}

LogicalResult OnlineMergeOp::verify() {
  // T1, P1
  if (failed(allTensorsOrBuffers(*this)) ||
      failed(isState(*this, getAcc0(), getMax0(), getSum0())) ||
      failed(isState(*this, getAcc1(), getMax1(), getSum1())))
    return failure();
  // P2
  return failure(
      failed(rowsOf(*this, getAcc1(), "second accumulator", getAcc0(),
                    "accumulator")) ||
      failed(sameSize(*this, {getAcc1(), 3, "second accumulator", "width"},
                      {getAcc0(), 3, "accumulator", "width"})));
}

LogicalResult OnlineFinishOp::verify() {
  // T1, Z1
  Value acc = getAcc();
  if (failed(allTensorsOrBuffers(*this)) ||
      failed(isState(*this, acc, getMax(), getSum())))
    return failure();
  // Z2
  if (failed(perHead(*this, getSinks(), "sinks", acc)))
    return failure();
  // Z3
  if (failed(rowsOf(*this, getDest(), "destination", acc, "accumulator")) ||
      failed(sameSize(*this, {getDest(), 3, "destination", "width"},
                      {acc, 3, "accumulator", "width"})))
    return failure();
  return getLse() ? rowsOf(*this, getLse(), "lse", acc, "accumulator")
                  : success();
}

/// M9: what goes with a matrix of a stack, and with rows in an order.
static LogicalResult stackFits(PackedProductOp op) {
  bool stack = bool(op.getMatrix());
  auto isOfStack = [&](Value operand, int64_t rank) {
    return !operand ||
           cast<ShapedType>(operand.getType()).getRank() == rank + stack;
  };
  if (!isOfStack(op.getWeight(), 3) || !isOfStack(op.getBias(), 1) ||
      !isOfStack(op.getWeightScales(), 3))
    return op.emitOpError(stack ? "takes a matrix of what is no stack"
                                : "does not say which matrix of a stack");
  if (op.getNextMatrix() && !(stack && op.getNextPanel()))
    return op.emitOpError(
        "prefetches from a matrix without a panel, or without a stack");
  if ((stack || op.getOrder()) &&
      (op.getPart() || op.getRmsEps() || op.getRest()))
    return op.emitOpError("takes a matrix of a stack, or rows in an order, "
                          "which cannot be in parts, normalised, or have a "
                          "rest");
  return success();
}

/// M1 to M4: the sizes of a product.
static LogicalResult productFits(PackedProductOp op) {
  Value input = op.getInput(), weight = op.getWeight();
  NamedSize inputs{input, 1, "input", "columns"};
  auto panels = cast<ShapedType>(weight.getType());
  int64_t outer = op.getMatrix() ? 1 : 0;
  // M4
  bool bytes = takesBytes(panels.getElementType());
  bool byteRows = getElementTypeOrSelf(input.getType()).isInteger(8);
  if ((byteRows && !bytes) || byteRows != bool(op.getInputScales()) ||
      bytes != bool(op.getWeightScales()) || (op.getZeros() && !bytes))
    return op.emitOpError("multiplies bytes by bytes with scales of both, "
                          "numbers by bytes with scales, or numbers without");
  // M1
  if (!inputs.known() || panels.isDynamicDim(outer + 1) ||
      panels.isDynamicDim(outer + 2))
    return op.emitOpError("has rows or panels whose sizes are not known");
  int64_t side = bytes ? 32 / op.getBits() : op.hasPairs() ? 2 : 1;
  int64_t depth = panels.getDimSize(outer + 1) * side;
  if (depth != inputs.get())
    return op.emitOpError("has panels of ")
           << depth << " inputs, but rows of " << inputs.get();
  // M2
  int64_t width = op.getWidth(), lanes = op.getPanelWidth();
  if (width < 1 || lanes < 1)
    return op.emitOpError("has no channels or panels without channels");
  int64_t halves = op.getGated() ? 2 : 1;
  if (failed(sizeIs(op, {weight, outer, "weight", "panels"},
                    int64_t(llvm::divideCeil(width, lanes)) * halves,
                    Twine(width) + " channels take")))
    return failure();
  // M3
  if (op.getBias() &&
      failed(sizeIs(op, {op.getBias(), outer, "bias", "entries"},
                    halves * width, "the matrix has rows")))
    return failure();
  // M4
  if (!bytes)
    return success();
  NamedSize factors{op.getWeightScales(), unsigned(outer + 1), "weight scales",
                    "groups"};
  if (!factors.known())
    return op.emitOpError("has rows that are no whole groups");
  if (failed(groupsFit(op, op.getWeightScales(), unsigned(outer + 1),
                       "weight scales", op.getZeros(), op.getBits(),
                       inputs.get())) ||
      failed(byteFloatsFit(op, weight, op.getWeightScales(), op.getZeros(),
                           input)))
    return failure();
  if (!byteRows)
    return success();
  NamedSize groups{op.getInputScales(), 1, "input scales", "groups"};
  if (failed(sizeIs(
          op, groups,
          groupsOfScales(cast<ShapedType>(op.getWeightScales().getType()),
                         outer + 1, op.getZeros(), inputs.get()),
          "the weight has groups")))
    return failure();
  return sameSize(op, {op.getInputSums(), 1, "input sums", "groups"}, groups);
}

LogicalResult PackedProductOp::verify() {
  // T1, M9, M1 to M4
  if (failed(allTensorsOrBuffers(*this)) || failed(stackFits(*this)) ||
      failed(productFits(*this)))
    return failure();
  // M5
  ArrayRef<int64_t> tile = getTile();
  if (tile.size() != 2 || tile[0] < 1 || tile[1] < 1 || tile[1] > 2)
    return emitOpError("needs a tile of some rows and of 1 or 2 panels");
  // M6
  bool inF32 = getElementTypeOrSelf(getDest().getType()).isF32();
  if (getPart() && (getGated() || getWeightScales() || !inF32))
    return emitOpError("is in parts, which only sums of numbers that are not "
                       "gated, in a destination of f32, can be");
  // M7
  if (getRowScales() && !getRmsEps())
    return emitOpError("has row_scales without rms_eps");
  if (getRmsEps() && !(getRmsEps()->convertToFloat() >= 0))
    return emitOpError("has a negative rms_eps");
  NamedSize rows{getInput(), 0, "input", "rows"};
  if (getRmsEps() && !getRowScales() &&
      (!rows.known() || rows.get() > tile[0] * tile[1]))
    return emitOpError("needs row_scales: its rows may be more than a tile");
  // M11
  int64_t tileRows = tile[0] * tile[1];
  int64_t wholeRows = tile[0];
  NamedSize destRows{getDest(), 0, "destination", "rows"};
  if (getTileRow() && destRows.known() && destRows.get() > tileRows)
    return emitOpError("has ")
           << destRows.get() << " rows in a tile of " << tileRows;
  if (getWhole() &&
      (!getTileRow() || !destRows.known() || destRows.get() != wholeRows))
    return emitOpError("is a whole tile without all of its rows");
  if (getTileRow() && (getOrder() || getPart()))
    return emitOpError("is a tile of rows in an order, or in parts");
  // M10
  if (!getGated() && (getLimit() || !getUpOffset().isZero()))
    return emitOpError("has a limit or an offset of up, which belong to a "
                       "gated product");
  if (getLimit() && !(getLimit()->convertToDouble() > 0))
    return emitOpError("has a limit that is not positive");
  // M8
  if (!getRest())
    return success();
  if (getElementTypeOrSelf(getRest()) != getElementTypeOrSelf(getInput()))
    return emitOpError("has a rest of another type than its input");
  return sameSize(*this, {getRest(), 1, "rest", "columns"},
                  {getInput(), 1, "input", "columns"});
}

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

static std::optional<int64_t>
most(Value heads, std::optional<ArrayRef<int64_t>> tile, unsigned which) {
  int64_t size = cast<ShapedType>(heads.getType()).getDimSize(2);
  if (!ShapedType::isDynamic(size))
    return size;
  return tile ? std::optional((*tile)[which]) : std::nullopt;
}

std::optional<int64_t> OnlineAttentionOp::getMostQueries() {
  return most(getQuery(), getTile(), 0);
}
std::optional<int64_t> OnlineAttentionOp::getMostKeys() {
  return most(getKey(), getTile(), 1);
}

int64_t PackedProductOp::getDepth() {
  return cast<ShapedType>(getInput().getType()).getDimSize(1);
}
bool PackedProductOp::hasPairs() {
  return holdsPairs(cast<ShapedType>(getWeight().getType()), getDepth());
}
int64_t PackedProductOp::getBits() {
  return quantizedBits(cast<ShapedType>(getWeight().getType()), getDepth());
}
int64_t PackedProductOp::getGroup() {
  auto scales = cast<ShapedType>(getWeightScales().getType());
  return getDepth() /
         groupsOfScales(scales, scales.getRank() - 2, getZeros(), getDepth());
}
int64_t PackedProductOp::getPanelWidth() {
  int64_t last = cast<ShapedType>(getWeight().getType()).getShape().back();
  return last / (getWeightScales() ? 4 : hasPairs() ? 2 : 1);
}

//===- AttuneQuantizationOps.cpp - Verifiers of quantized products --------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttuneBytecode.h"

#include "Attune/AttuneChecks.h"
#include "Attune/AttunePanels.h"
#include "Attune/AttuneShapes.h"

using namespace mlir;
using namespace attune;

#define GET_OP_CLASSES
#include "Attune/AttuneQuantizationOps.cpp.inc"

void AttuneDialect::registerQuantizationOps() {
  addOperations<
#define GET_OP_LIST
#include "Attune/AttuneQuantizationOps.cpp.inc"
      >();
}

/// Columns of a quantized matrix that multiplies rows of `inputs` numbers: in
/// panels four bytes stand side by side, each of which holds one number or two.
static int64_t columnsOf(Value matrix, int64_t inputs) {
  auto type = cast<RankedTensorType>(matrix.getType());
  int64_t depth = type.getDimSize(1);
  if (rankOf(matrix) == 2 || ShapedType::isDynamic(depth))
    return depth;
  return 4 * depth * (8 / quantizedBits(type, inputs));
}

//===----------------------------------------------------------------------===//
// Properties in bytecode
//===----------------------------------------------------------------------===//

// Since version 5 groups may have zero points.

LogicalResult QuantizedLinearOp::readProperties(DialectBytecodeReader &reader,
                                                OperationState &state) {
  auto &own = state.getOrAddProperties<Properties>();
  return success(succeeded(reader.readOptionalAttribute(own.activation)) &&
                 succeeded(reader.readOptionalAttribute(own.gated)) &&
                 succeeded(reader.readOptionalAttribute(own.scale)) &&
                 succeeded(readSince(5, reader, own.zeros)) &&
                 succeeded(reader.readSparseArray(
                     MutableArrayRef<int32_t>(own.operandSegmentSizes))));
}

void QuantizedLinearOp::writeProperties(DialectBytecodeWriter &writer) {
  auto &own = getProperties();
  writer.writeOptionalAttribute(own.activation);
  writer.writeOptionalAttribute(own.gated);
  writer.writeOptionalAttribute(own.scale);
  writer.writeOptionalAttribute(own.zeros);
  writer.writeSparseArray(ArrayRef<int32_t>(own.operandSegmentSizes));
}

LogicalResult
QuantizedEmbeddingOp::readProperties(DialectBytecodeReader &reader,
                                     OperationState &state) {
  auto &own = state.getOrAddProperties<Properties>();
  return success(succeeded(reader.readOptionalAttribute(own.offset)) &&
                 succeeded(reader.readOptionalAttribute(own.scale)) &&
                 succeeded(readSince(5, reader, own.zeros)));
}

void QuantizedEmbeddingOp::writeProperties(DialectBytecodeWriter &writer) {
  auto &own = getProperties();
  writer.writeOptionalAttribute(own.offset);
  writer.writeOptionalAttribute(own.scale);
  writer.writeOptionalAttribute(own.zeros);
}

//===----------------------------------------------------------------------===//
// Verifiers
//===----------------------------------------------------------------------===//

LogicalResult QuantizeRowsOp::verify() {
  // R1
  for (auto [result, owner] :
       {std::pair<Value, StringRef>(getValues(), "values"),
        std::pair<Value, StringRef>(getScales(), "scales"),
        std::pair<Value, StringRef>(getSums(), "sums")}) {
    if (failed(sameTokens(*this, result, owner, getInput(), "input")))
      return failure();
  }
  NamedSize width = lastSize(getInput(), "input");
  if (failed(sameSize(*this, lastSize(getValues(), "values"), width)))
    return failure();
  // R3
  auto group = static_cast<int64_t>(getGroup());
  if (!isGroup(group))
    return emitOpError("has groups of ")
           << group << ", which is not 4, 8, 12, ..., 65536";
  if (!width.known())
    return success();
  if (width.get() % group != 0)
    return emitOpError("has rows of ")
           << width.get() << ", which are no whole groups of " << group;
  // R2
  for (auto [result, owner] :
       {std::pair<Value, StringRef>(getScales(), "scales"),
        std::pair<Value, StringRef>(getSums(), "sums")}) {
    if (failed(sizeIs(*this, lastSize(result, owner, "number"),
                      width.get() / group, "groups are")))
      return failure();
  }
  return success();
}

LogicalResult QuantizedLinearOp::verify() {
  // L1
  NamedSize inputs = lastSize(getInput(), "input");
  if (failed(sizeIs(*this, inputs, columnsOf(getWeight(), inputs.get()),
                    "the weight's depth is")))
    return failure();
  // L2
  NamedSize width = lastSize(getResult(), "result");
  int64_t rows =
      width.known() ? width.get() * (getGated() ? 2 : 1) : ShapedType::kDynamic;
  StringRef why =
      getGated() ? "a gated result takes rows" : "the result takes rows";
  if (failed(hasRows(*this, getWeight(), "weight", rows, getGated(), why,
                     rankOf(getWeight()) == 3 ? 4 : 1)) ||
      failed(
          hasRows(*this, getWeightScales(), "scales", rows, getGated(), why)))
    return failure();
  // L3
  if (failed(hasEntries(*this, getBias(), "bias", rows)))
    return failure();
  // L4
  if (failed(typeOfResult(*this, getResidual(), "residual")))
    return failure();
  // L5
  for (auto [value, owner] :
       {std::pair<Value, StringRef>(getInput(), "input"),
        std::pair<Value, StringRef>(getInputScales(), "input scales"),
        std::pair<Value, StringRef>(getInputSums(), "input sums")})
    if (value && failed(sameTokens(*this, getResult(), "result", value, owner)))
      return failure();
  // L7, L8, L9
  auto type = cast<RankedTensorType>(getWeight().getType());
  if (failed(scalesFit(*this, getInput(), getInputScales(), getInputSums())) ||
      failed(groupsFit(*this, getWeightScales(), 1, "weight scales", getZeros(),
                       quantizedBits(type, inputs.get()), inputs.get())) ||
      failed(byteFloatsFit(*this, getWeight(), getWeightScales(), getZeros(),
                           getInput())))
    return failure();
  // L6
  if (!getInputScales())
    return success();
  NamedSize scales = lastSize(getInputScales(), "input scales", "number");
  NamedSize factors{getWeightScales(), 1, "weight scales", "number"};
  auto ofWeight = cast<ShapedType>(getWeightScales().getType());
  if (areScalesInLevels(ofWeight)
          ? failed(sizeIs(*this, scales,
                          groupsOfScales(ofWeight, 1, getZeros(), inputs.get()),
                          "the weight's groups are"))
      : getZeros() ? scales.known() &&
                         failed(sizeIs(*this, factors, 2 * scales.get(),
                                       "with zeros twice the input scales are"))
                   : failed(sameSize(*this, scales, factors)))
    return failure();
  return sameSize(*this, lastSize(getInputSums(), "input sums", "number"),
                  scales);
}

LogicalResult QuantizedEmbeddingOp::verify() {
  // E1
  if (failed(sameSize(*this, {getResult(), 0, "result", "batch size"},
                      {getIds(), 0, "ids", "batch size"})) ||
      failed(sameSize(*this, {getResult(), 1, "result", "length"},
                      {getIds(), 1, "ids", "length"})) ||
      failed(
          sizeIs(*this, lastSize(getResult(), "result"),
                 columnsOf(getTable(), lastSize(getResult(), "result").get()),
                 "the table's width is")))
    return failure();
  // E2
  if (failed(typeOfResult(*this, getAddend(), "addend")))
    return failure();
  // E3
  int64_t width = lastSize(getResult(), "result").get();
  auto type = cast<RankedTensorType>(getTable().getType());
  if (failed(byteFloatsFit(*this, getTable(), getScales(), getZeros())))
    return failure();
  return groupsFit(*this, getScales(), 1, "scales", getZeros(),
                   quantizedBits(type, width), width);
}

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

int64_t QuantizedLinearOp::getGroup() {
  auto scales = cast<RankedTensorType>(getWeightScales().getType());
  int64_t inputs = lastSize(getInput(), "").get();
  return inputs / groupsOfScales(scales, 1, getZeros(), inputs);
}

int64_t QuantizedEmbeddingOp::getGroup() {
  auto scales = cast<RankedTensorType>(getScales().getType());
  int64_t width = lastSize(getResult(), "").get();
  return width / groupsOfScales(scales, 1, getZeros(), width);
}

LogicalResult
QuantizeRowsOp::reifyResultShapes(OpBuilder &builder,
                                  ReifiedRankedShapedTypeDims &shapes) {
  for (Value result : getResults()) {
    SmallVector<SizeSource> sources;
    for (int64_t dim = 0; dim + 1 < rankOf(result); ++dim)
      sources.push_back({getInput(), dim});
    sources.push_back({});
    if (result == getValues())
      sources.back() = {getInput(), rankOf(result) - 1};
    if (failed(reifySizes(builder, getLoc(), result, sources, shapes)))
      return failure();
  }
  return success();
}

LogicalResult
QuantizedLinearOp::reifyResultShapes(OpBuilder &builder,
                                     ReifiedRankedShapedTypeDims &shapes) {
  SmallVector<SizeSource> sources;
  for (int64_t dim = 0; dim + 1 < rankOf(getInput()); ++dim)
    sources.push_back({getInput(), dim});
  sources.push_back({}); // panels do not tell where padding begins
  if (getResidual())
    sources.back() = {getResidual(), rankOf(getResidual()) - 1};
  return reifySizes(builder, getLoc(), getResult(), sources, shapes);
}

LogicalResult
QuantizedEmbeddingOp::reifyResultShapes(OpBuilder &builder,
                                        ReifiedRankedShapedTypeDims &shapes) {
  return reifySizes(builder, getLoc(), getResult(),
                    {{getIds(), 0}, {getIds(), 1}, {}}, shapes);
}

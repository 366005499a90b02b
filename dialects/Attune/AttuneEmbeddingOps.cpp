//===- AttuneEmbeddingOps.cpp - Verifiers of embeddings and positions -----*-
// C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneBytecode.h"
#include "Attune/AttuneChecks.h"
#include "Attune/AttunePanels.h"
#include "Attune/AttuneShapes.h"
#include "Attune/AttuneSyntax.h"

#include <cmath>

using namespace mlir;
using namespace attune;

/// Six digits, which is what a dense array of f64 prints, would turn text into
/// another model.
static void printExactDoubles(OpAsmPrinter &printer, Operation *,
                              DenseF64ArrayAttr values) {
  printer << "[";
  llvm::interleaveComma(values.asArrayRef(), printer, [&](double value) {
    printer.printFloat(APFloat(value));
  });
  printer << "]";
}

static ParseResult parseExactDoubles(OpAsmParser &parser,
                                     DenseF64ArrayAttr &values) {
  SmallVector<double> numbers;
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
        return parser.parseFloat(numbers.emplace_back());
      }))
    return failure();
  values = parser.getBuilder().getDenseF64ArrayAttr(numbers);
  return success();
}

#define GET_OP_CLASSES
#include "Attune/AttuneEmbeddingOps.cpp.inc"

void AttuneDialect::registerEmbeddingOps() {
  addOperations<
#define GET_OP_LIST
#include "Attune/AttuneEmbeddingOps.cpp.inc"
      >();
}

/// The result is [B, T, ...] for `ids` [B, T].
static LogicalResult tokensOf(Operation *op, Value result, Value ids,
                              StringRef owner) {
  return success(succeeded(sameSize(op, {result, 0, "result", "batch size"},
                                    {ids, 0, owner, "batch size"})) &&
                 succeeded(sameSize(op, {result, 1, "result", "length"},
                                    {ids, 1, owner, "length"})));
}

LogicalResult EmbeddingOp::verify() {
  // E1
  bool pairs = holdsPairs(cast<RankedTensorType>(getTable().getType()),
                          cast<RankedTensorType>(getType()).getDimSize(2));
  if (failed(tokensOf(*this, getResult(), getIds(), "ids")) ||
      (!pairs && failed(sameSize(*this, {getResult(), 2, "result", "width"},
                                 {getTable(), 1, "table", "width"}))))
    return failure();
  // E2
  return typeOfResult(*this, getAddend(), "addend");
}

LogicalResult SinusoidalOp::verify() {
  // E1
  if (failed(tokensOf(*this, getResult(), getPositions(), "positions")))
    return failure();
  NamedSize width{getResult(), 2, "result", "width"};
  if (width.known() && width.get() % 2 != 0)
    return emitOpError("has result width ")
           << width.get() << ", which holds no pairs of sine and cosine";
  // E2
  if (failed(typeOfResult(*this, getAddend(), "addend")))
    return failure();
  // E3
  if (!getBase().isFiniteNonZero() || getBase().isNegative())
    return emitOpError("has base ")
           << getBase().convertToDouble() << ", which is not a positive number";
  return success();
}

LogicalResult RotaryTableOp::readProperties(DialectBytecodeReader &reader,
                                            OperationState &state) {
  auto &own = state.getOrAddProperties<Properties>();
  return success(
      succeeded(reader.readOptionalAttribute(own.dynamic)) &&
      succeeded(reader.readOptionalAttribute(own.factor)) &&
      succeeded(reader.readAttribute(own.frequencies)) &&
      succeeded(reader.readOptionalAttribute(own.long_frequencies)) &&
      succeeded(reader.readOptionalAttribute(own.long_from)) &&
      succeeded(readSince(4, reader, own.growth)));
}

void RotaryTableOp::writeProperties(DialectBytecodeWriter &writer) {
  auto &own = getProperties();
  writer.writeOptionalAttribute(own.dynamic);
  writer.writeOptionalAttribute(own.factor);
  writer.writeAttribute(own.frequencies);
  writer.writeOptionalAttribute(own.long_frequencies);
  writer.writeOptionalAttribute(own.long_from);
  writer.writeOptionalAttribute(own.growth);
}

LogicalResult RotaryTableOp::verify() {
  // R1
  int64_t pairs = getFrequencies().size();
  for (auto [table, owner] :
       {std::pair(getCos(), "cosines"), std::pair(getSin(), "sines")})
    if (failed(sameSize(*this, {table, 0, owner, "batch size"},
                        {getPositions(), 0, "positions", "batch size"})) ||
        failed(sameSize(*this, {table, 1, owner, "length"},
                        {getPositions(), 1, "positions", "length"})) ||
        failed(sizeIs(*this, {table, 2, owner, "width"}, pairs,
                      "the number of frequencies is")))
      return failure();
  // R2
  if (pairs == 0)
    return emitOpError("has no frequency to turn by");
  if (!getFactor().isFinite())
    return emitOpError("has factor ")
           << getFactor().convertToDouble() << ", which is not finite";
  for (auto [i, frequency] : llvm::enumerate(getFrequencies()))
    if (!std::isfinite(frequency))
      return emitOpError("has frequency ")
             << frequency << " at " << i << ", which is not finite";
  // R4
  std::optional<ArrayRef<double>> longOnes = getLongFrequencies();
  if (longOnes.has_value() != getLongFrom().has_value())
    return emitOpError("has ")
           << (longOnes ? "long frequencies" : "a length") << " without "
           << (longOnes ? "the length" : "the frequencies")
           << " from which on they count";
  if (longOnes && int64_t(longOnes->size()) != pairs)
    return emitOpError("has ") << longOnes->size() << " long frequencies for "
                               << pairs << " pairs of channels";
  if (longOnes && getDynamic())
    return emitOpError("has both dynamic scaling and long frequencies");
  // R5
  if (std::optional<ArrayRef<double>> growth = getGrowth()) {
    if (growth->size() != 3)
      return emitOpError("has ")
             << growth->size() << " numbers of growth, not 3";
    if (!std::isfinite((*growth)[0]) || !((*growth)[1] > 0) ||
        !std::isfinite((*growth)[1]) || !((*growth)[2] >= 0) ||
        !std::isfinite((*growth)[2]))
      return emitOpError("has growth by ")
             << (*growth)[0] << " for each " << (*growth)[1] << " tokens from "
             << (*growth)[2]
             << " on, expected finite numbers, the second above 0, the third "
                "from 0 on";
  }
  // R3
  std::optional<ArrayRef<double>> dynamic = getDynamic();
  if (!dynamic)
    return success();
  if (dynamic->size() != 3)
    return emitOpError("has ")
           << dynamic->size() << " numbers of dynamic scaling, not 3";
  if (!((*dynamic)[0] >= 1) || !((*dynamic)[1] > 0) ||
      (*dynamic)[2] != 2.0 * pairs)
    return emitOpError("has dynamic scaling of length ")
           << (*dynamic)[0] << ", factor " << (*dynamic)[1] << " and "
           << (*dynamic)[2] << " channels, but it turns " << 2 * pairs;
  return success();
}

LogicalResult RotaryOp::verify() {
  // R1
  NamedSize width{getInput(), 3, "input", "width"};
  NamedSize pairs{getCos(), 2, "tables", "width"};
  if (failed(sameSize(*this, {getInput(), 0, "input", "batch size"},
                      {getCos(), 0, "tables", "batch size"})) ||
      failed(sameSize(*this, {getInput(), 2, "input", "length"},
                      {getCos(), 1, "tables", "length"})))
    return failure();
  if (!width.known() || !pairs.known() || 2 * pairs.get() <= width.get())
    return shapeOfResult(*this, getInput(), "input"); // R2
  InFlightDiagnostic diag = emitOpError("turns ")
                            << pairs.get()
                            << " pairs of channels, but heads are "
                            << width.get() << " wide";
  diag.attachNote(getCos().getLoc()) << "tables come from here";
  return diag;
}

/// [V, D], or panels [V/R, D, R]: the width is the second dimension of both.
LogicalResult
EmbeddingOp::reifyResultShapes(OpBuilder &builder,
                               ReifiedRankedShapedTypeDims &shapes) {
  return reifySizes(builder, getLoc(), getResult(),
                    {{getIds(), 0}, {getIds(), 1}, {getTable(), 1}}, shapes);
}

LogicalResult
SinusoidalOp::reifyResultShapes(OpBuilder &builder,
                                ReifiedRankedShapedTypeDims &shapes) {
  SizeSource width;
  if (getAddend())
    width = {getAddend(), 2};
  return reifySizes(builder, getLoc(), getResult(),
                    {{getPositions(), 0}, {getPositions(), 1}, width}, shapes);
}

LogicalResult
RotaryTableOp::reifyResultShapes(OpBuilder &builder,
                                 ReifiedRankedShapedTypeDims &shapes) {
  SizeSource pairs(builder.getIndexAttr(getFrequencies().size()));
  for (Value table : {getCos(), getSin()})
    if (failed(reifySizes(builder, getLoc(), table,
                          {{getPositions(), 0}, {getPositions(), 1}, pairs},
                          shapes)))
      return failure();
  return success();
}

LogicalResult RotaryOp::reifyResultShapes(OpBuilder &builder,
                                          ReifiedRankedShapedTypeDims &shapes) {
  return reifyAs(builder, getLoc(), getResult(), getInput(), shapes);
}

//===- AttuneEmbeddingOps.cpp - Verifiers of embeddings and positions -----*-
// C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneShapes.h"

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

LogicalResult EmbeddingOp::verify() { return success(); }
LogicalResult SinusoidalOp::verify() { return success(); }
LogicalResult RotaryTableOp::verify() { return success(); }
LogicalResult RotaryOp::verify() { return success(); }

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

//===- AttuneRecurrentOps.cpp - Verifiers of recurrent layers ---*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneChecks.h"
#include "Attune/AttuneShapes.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attune;

#define GET_OP_CLASSES
#include "Attune/AttuneRecurrentOps.cpp.inc"

void AttuneDialect::registerRecurrentOps() {
  addOperations<
#define GET_OP_LIST
#include "Attune/AttuneRecurrentOps.cpp.inc"
      >();
}

int64_t attune::numGates(CellKind kind) {
  switch (kind) {
  case CellKind::Rnn:
  case CellKind::RnnRelu:
    return 1;
  case CellKind::Gru:
    return 3;
  case CellKind::Lstm:
    return 4;
  }
  llvm_unreachable("every cell is listed");
}

/// R2, R7: `given` cell states and `results` states fit the kind of cell.
static LogicalResult hasCell(Operation *op, CellKind kind, bool required,
                             bool given, size_t results) {
  bool lstm = kind == CellKind::Lstm;
  if (given && !lstm)
    return op->emitOpError("has a cell state, which only an lstm has");
  if (required && lstm && !given)
    return op->emitOpError("is an lstm without a cell state");
  if (results != (lstm ? 2 : 1))
    return op->emitOpError("gives ")
           << results << " states, but a cell of this kind has "
           << (lstm ? 2 : 1);
  return success();
}

LogicalResult RecurrentCellOp::verify() {
  NamedSize width{getHidden(), 1, "state", "width"};
  // R1
  if (width.known())
    for (auto [gates, owner] : {std::pair(getInputGates(), "input gates"),
                                std::pair(getHiddenGates(), "hidden gates")})
      if (failed(sizeIs(*this, {gates, 1, owner, "width"},
                        width.get() * numGates(getKind()), "the state takes")))
        return failure();
  // R2
  if (failed(hasCell(*this, getKind(), /*required=*/true, bool(getCell()),
                     getNext().size())) ||
      (getCell() &&
       failed(sameSize(*this, {getCell(), 1, "cell state", "width"}, width))))
    return failure();
  // R3
  NamedSize batch{getHidden(), 0, "state", "batch size"};
  if (failed(sameSize(*this, {getInputGates(), 0, "input gates", "batch size"},
                      batch)) ||
      failed(sameSize(
          *this, {getHiddenGates(), 0, "hidden gates", "batch size"}, batch)) ||
      (getCell() &&
       failed(sameSize(*this, {getCell(), 0, "cell state", "batch size"},
                       batch))) ||
      (getKeep() &&
       failed(sameSize(*this, {getKeep(), 0, "keep", "batch size"}, batch))))
    return failure();
  // R4
  SmallVector<Value> states = {getHidden()};
  if (getCell())
    states.push_back(getCell());
  for (auto [next, state] : llvm::zip(getNext(), states))
    if (next.getType() != state.getType())
      return emitOpError("gives a state of type ")
             << next.getType() << " for one of type " << state.getType();
  return success();
}

LogicalResult
RecurrentCellOp::reifyResultShapes(OpBuilder &builder,
                                   ReifiedRankedShapedTypeDims &shapes) {
  for (Value next : getNext())
    if (failed(reifyAs(builder, getLoc(), next, getHidden(), shapes)))
      return failure();
  return success();
}

LogicalResult RecurrentOp::verify() {
  int64_t gates = numGates(getKind());
  auto matrix = cast<RankedTensorType>(getWeight().getType());
  // R5
  NamedSize high{getGates(), 2, "gates", "width"};
  NamedSize width{getWeight(), 1, "weight", "depth"};
  if (width.known()) {
    int64_t rows = width.get() * gates;
    if (failed(sizeIs(*this, high, rows, "the weight's depth takes")))
      return failure();
    if (matrix.getRank() == 2 &&
        failed(sizeIs(*this, {getWeight(), 0, "weight", "rows"}, rows,
                      "its depth takes")))
      return failure();
    if (matrix.getRank() == 3 && !matrix.isDynamicDim(2) &&
        matrix.getDimSize(2) > 0 &&
        failed(sizeIs(*this, {getWeight(), 0, "weight", "panels"},
                      llvm::divideCeil(rows, matrix.getDimSize(2)),
                      "its depth takes")))
      return failure();
  }
  // R6
  if (getBias() &&
      failed(sameSize(*this, {getBias(), 0, "bias", "entries"}, high)))
    return failure();
  // R7
  if (failed(hasCell(*this, getKind(), /*required=*/false, bool(getCell()),
                     getLast().size())) ||
      failed(sameSize(*this, {getSequence(), 2, "sequence", "width"}, width)))
    return failure();
  SmallVector<std::pair<Value, StringRef>> states = {{getState(), "state"},
                                                     {getCell(), "cell state"}};
  for (Value last : getLast())
    states.push_back({last, "result"});
  for (auto [state, owner] : states)
    if (state && failed(sameSize(*this, {state, 1, owner, "width"}, width)))
      return failure();
  // R8
  NamedSize batch{getGates(), 0, "gates", "batch size"};
  NamedSize tokens{getGates(), 1, "gates", "tokens"};
  states.push_back({getSequence(), "sequence"});
  states.push_back({getKeep(), "keep"});
  for (auto [state, owner] : states)
    if (state &&
        failed(sameSize(*this, {state, 0, owner, "batch size"}, batch)))
      return failure();
  if (failed(sameSize(*this, {getSequence(), 1, "sequence", "tokens"}, tokens)))
    return failure();
  return getKeep() ? sameSize(*this, {getKeep(), 1, "keep", "tokens"}, tokens)
                   : success();
}

LogicalResult
RecurrentOp::reifyResultShapes(OpBuilder &builder,
                               ReifiedRankedShapedTypeDims &shapes) {
  SizeSource batch{getGates(), 0}, tokens{getGates(), 1};
  if (failed(reifySizes(builder, getLoc(), getSequence(), {batch, tokens},
                        shapes)))
    return failure();
  for (Value last : getLast())
    if (failed(reifySizes(builder, getLoc(), last, {batch}, shapes)))
      return failure();
  return success();
}

LogicalResult AdditiveSimilarityOp::verify() {
  // D1
  if (failed(sameSize(*this, {getKey(), 0, "key", "batch size"},
                      {getQuery(), 0, "query", "batch size"})) ||
      failed(sameSize(*this, {getKey(), 1, "key", "heads"},
                      {getQuery(), 1, "query", "heads"})))
    return failure();
  // D2
  NamedSize width{getQuery(), 3, "query", "width"};
  if (failed(sameSize(*this, {getKey(), 3, "key", "width"}, width)))
    return failure();
  if (cast<RankedTensorType>(getVector().getType()).getRank() != 2)
    return emitOpError("has a vector in panels, but needs it as [1, width]");
  if (failed(sameSize(*this, {getVector(), 1, "vector", "width"}, width)) ||
      failed(
          sizeIs(*this, {getVector(), 0, "vector", "rows"}, 1, "a vector has")))
    return failure();
  // D3
  for (auto [dim, value, at, owner, what] :
       {std::tuple(0, getQuery(), 0, "query", "batch size"),
        std::tuple(1, getQuery(), 1, "query", "heads"),
        std::tuple(2, getQuery(), 2, "query", "length"),
        std::tuple(3, getKey(), 2, "key", "length")})
    if (failed(sameSize(*this, {getResult(), dim, "result", "size"},
                        {value, at, owner, what})))
      return failure();
  return success();
}

LogicalResult
AdditiveSimilarityOp::reifyResultShapes(OpBuilder &builder,
                                        ReifiedRankedShapedTypeDims &shapes) {
  return reifySizes(
      builder, getLoc(), getResult(),
      {{getQuery(), 0}, {getQuery(), 1}, {getQuery(), 2}, {getKey(), 2}},
      shapes);
}

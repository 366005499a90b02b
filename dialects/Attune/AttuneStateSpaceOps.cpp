//===- AttuneStateSpaceOps.cpp - Verifiers of state spaces ------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneChecks.h"
#include "Attune/AttuneShapes.h"

using namespace mlir;
using namespace attune;

/// The type of beta, where it is not that of the steps.
static ParseResult parseBetaType(OpAsmParser &parser, Type &beta, Type step) {
  beta = step;
  return succeeded(parser.parseOptionalKeyword("beta")) ? parser.parseType(beta)
                                                        : success();
}

static void printBetaType(OpAsmPrinter &printer, Operation *, Type beta,
                          Type step) {
  if (beta != step)
    printer << " beta " << beta;
}

#define GET_OP_CLASSES
#include "Attune/AttuneStateSpaceOps.cpp.inc"

void AttuneDialect::registerStateSpaceOps() {
  addOperations<
#define GET_OP_LIST
#include "Attune/AttuneStateSpaceOps.cpp.inc"
      >();
}

LogicalResult CausalConvOp::verify() {
  // V1
  NamedSize channels{getInput(), 2, "input", "channels"};
  if (failed(
          sameSize(*this, {getWeight(), 0, "weight", "channels"}, channels)) ||
      (getBias() &&
       failed(sameSize(*this, {getBias(), 0, "bias", "channels"}, channels))))
    return failure();
  // V2
  for (auto [dim, what] : {std::pair(0, "batch size"), std::pair(1, "tokens")})
    if (getKeep() && failed(sameSize(*this, {getKeep(), dim, "keep", what},
                                     {getInput(), dim, "input", what})))
      return failure();
  return success();
}

LogicalResult
CausalConvOp::reifyResultShapes(OpBuilder &builder,
                                ReifiedRankedShapedTypeDims &shapes) {
  return reifyAs(builder, getLoc(), getResult(), getInput(), shapes);
}

LogicalResult SelectiveScanOp::verify() {
  const char *const sizes[] = {"batch size", "tokens", "channels"};
  auto like = [&](Value value, StringRef owner, int64_t dims) {
    for (int64_t dim = 0; dim < dims; ++dim)
      if (failed(sameSize(*this, {value, dim, owner, sizes[dim]},
                          {getInput(), dim, "input", sizes[dim]})))
        return failure();
    return success();
  };
  bool heads = hasHeads();
  // V3
  if (failed(like(getStep(), "step", heads ? 2 : 3)) ||
      (getGate() && failed(like(getGate(), "gate", 3))) ||
      failed(like(getResult(), "result", 3)))
    return failure();
  NamedSize channels{getInput(), 2, "input", "channels"};
  NamedSize states = heads ? NamedSize{getLast(), 1, "last state", "states"}
                           : NamedSize{getALog(), 1, "a_log", "states"};
  // V4
  for (auto [value, owner] : {std::pair(getB(), "b"), std::pair(getC(), "c")})
    if (failed(like(value, owner, 2)) ||
        (!heads &&
         failed(sameSize(*this, {value, 2, owner, "states"}, states))))
      return failure();
  if (heads) {
    NamedSize number{getALog(), 0, "a_log", "heads"};
    // V3, V5
    if (failed(sameSize(*this, {getStep(), 2, "step", "heads"}, number)) ||
        failed(sameSize(*this, {getSkip(), 0, "skip", "heads"}, number)) ||
        failed(sameSize(*this, {getC(), 2, "c", "states"},
                        {getB(), 2, "b", "states"})))
      return failure();
    // V7
    if (number.known() && channels.known() &&
        (number.get() == 0 || channels.get() % number.get()))
      return emitOpError("has ")
             << number.get() << " heads, which do not "
             << "divide the " << channels.get() << " channels";
    NamedSize all{getB(), 2, "b", "states"};
    if (all.known() && states.known()) {
      int64_t groups = states.get() ? all.get() / states.get() : 0;
      if (groups == 0 || groups * states.get() != all.get() ||
          (number.known() && number.get() % groups))
        return emitOpError("has B and C of ")
               << all.get() << " numbers for " << states.get()
               << " states, which are no groups of heads";
    }
  } else if (failed(sameSize(*this, {getALog(), 0, "a_log", "channels"},
                             channels)) ||
             failed(sameSize(*this, {getSkip(), 0, "skip", "channels"},
                             channels))) { // V5
    return failure();
  }
  // V6
  for (auto [value, owner] :
       {std::pair(getState(), "state"), std::pair(getLast(), "last state")})
    if (value &&
        (failed(like(value, owner, 1)) ||
         failed(sameSize(*this, {value, 1, owner, "states"}, states)) ||
         failed(sameSize(*this, {value, 2, owner, "channels"}, channels))))
      return failure();
  return success();
}

LogicalResult
SelectiveScanOp::reifyResultShapes(OpBuilder &builder,
                                   ReifiedRankedShapedTypeDims &shapes) {
  if (failed(reifyAs(builder, getLoc(), getResult(), getInput(), shapes)))
    return failure();
  // Where there are heads only the type says how many states each has.
  SizeSource states = hasHeads() ? SizeSource() : SizeSource(getALog(), 1);
  return reifySizes(builder, getLoc(), getLast(),
                    {{getInput(), 0}, states, {getInput(), 2}}, shapes);
}

LogicalResult DeltaRuleOp::verify() {
  const char *const sizes[] = {"batch size", "tokens", "channels"};
  auto like = [&](Value value, StringRef owner, int64_t dims) {
    for (int64_t dim = 0; dim < dims; ++dim)
      if (failed(sameSize(*this, {value, dim, owner, sizes[dim]},
                          {getValue(), dim, "value", sizes[dim]})))
        return failure();
    return success();
  };
  // D1; key has the type of query.
  if (failed(like(getQuery(), "query", 2)) ||
      failed(like(getStep(), "step", 2)) ||
      failed(like(getBeta(), "beta", 2)) ||
      failed(like(getResult(), "result", 3)))
    return failure();
  // D2
  NamedSize heads{getALog(), 0, "a_log", "heads"};
  NamedSize states{getLast(), 1, "last state", "states"};
  if (failed(sameSize(*this, {getBeta(), 2, "beta", "heads"}, heads)))
    return failure();
  NamedSize steps{getStep(), 2, "step", "heads"};
  bool ofChannels = steps.known() && heads.known() && states.known() &&
                    steps.get() == heads.get() * states.get();
  if (!ofChannels && failed(sameSize(*this, steps, heads)))
    return failure();
  // D3
  NamedSize channels{getValue(), 2, "value", "channels"};
  if (heads.known() && channels.known() &&
      (heads.get() == 0 || channels.get() % heads.get()))
    return emitOpError("has ") << heads.get() << " heads, which do not divide "
                               << "the " << channels.get() << " channels";
  // D4
  NamedSize width{getQuery(), 2, "query", "channels"};
  if (states.known() && width.known()) {
    int64_t keys = states.get() ? width.get() / states.get() : 0;
    if (keys == 0 || keys * states.get() != width.get() ||
        (heads.known() && heads.get() % keys))
      return emitOpError("has queries of ")
             << width.get() << " channels for " << states.get()
             << " states, which are no heads that divide the others";
  }
  // D5
  for (auto [value, owner] : {std::pair(Value(getState()), "state"),
                              std::pair(Value(getLast()), "last state")})
    if (value &&
        (failed(like(value, owner, 1)) ||
         failed(sameSize(*this, {value, 1, owner, "states"}, states)) ||
         failed(sameSize(*this, {value, 2, owner, "channels"}, channels))))
      return failure();
  // D6
  if (auto eps = getEps(); eps && !(eps->isFinite() && !eps->isNegative()))
    return emitOpError("has an eps that is not a number from 0 on");
  return success();
}

LogicalResult
DeltaRuleOp::reifyResultShapes(OpBuilder &builder,
                               ReifiedRankedShapedTypeDims &shapes) {
  if (failed(reifyAs(builder, getLoc(), getResult(), getValue(), shapes)))
    return failure();
  // Only the type says how many states a head has.
  return reifySizes(builder, getLoc(), getLast(),
                    {{getValue(), 0}, SizeSource(), {getValue(), 2}}, shapes);
}

LogicalResult GeneralizedDeltaRuleOp::verify() {
  // G1; k, decay, remove and replace have the type of q.
  for (auto [dim, what] : {std::pair(0, "batch size"), std::pair(1, "tokens")})
    if (failed(sameSize(*this, {getQuery(), dim, "query", what},
                        {getValue(), dim, "value", what})))
      return failure();
  // G2
  NamedSize width{getQuery(), 2, "query", "channels"};
  if (failed(sameSize(*this, {getBonus(), 0, "bonus", "channels"}, width)))
    return failure();
  // G3
  NamedSize channels{getValue(), 2, "value", "channels"};
  NamedSize states{getLast(), 1, "last state", "states"};
  if (states.known() && width.known()) {
    int64_t heads = states.get() ? width.get() / states.get() : 0;
    if (heads == 0 || heads * states.get() != width.get())
      return emitOpError("has queries of ")
             << width.get() << " channels for " << states.get()
             << " states, which are no heads";
    if (channels.known() && channels.get() % heads)
      return emitOpError("has ") << heads << " heads, which do not divide the "
                                 << channels.get() << " channels";
  }
  // G4
  for (auto [value, owner] : {std::pair(Value(getState()), "state"),
                              std::pair(Value(getLast()), "last state")})
    if (value &&
        (failed(sameSize(*this, {value, 0, owner, "batch size"},
                         {getValue(), 0, "value", "batch size"})) ||
         failed(sameSize(*this, {value, 1, owner, "states"}, states)) ||
         failed(sameSize(*this, {value, 2, owner, "channels"}, channels))))
      return failure();
  return success();
}

LogicalResult
GeneralizedDeltaRuleOp::reifyResultShapes(OpBuilder &builder,
                                          ReifiedRankedShapedTypeDims &shapes) {
  // Only the type says how many states a head has.
  return success(
      succeeded(reifyAs(builder, getLoc(), getResult(), getValue(), shapes)) &&
      succeeded(reifySizes(builder, getLoc(), getLast(),
                           {{getValue(), 0}, SizeSource(), {getValue(), 2}},
                           shapes)) &&
      succeeded(reifyAs(builder, getLoc(), getOwn(), getValue(), shapes)));
}

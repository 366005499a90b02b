//===- Schedule.cpp - Numbers that a schedule gives an op -------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Conversion/Schedule.h"

#include "Attune/AttuneDialect.h"
#include "Attune/AttuneGroupOps.h"
#include "attune/TargetInfo/GpuSchedule.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <limits>

using namespace mlir;

namespace attune {

namespace {
/// Ops that read a number, of CPUs and of GPUs, and the largest it may be. The
/// limits of a GPU depend on more, and are checked where kernels are chosen.
struct Number {
  StringLiteral name;
  SmallVector<StringRef> ops, cooperativeOps;
  int64_t most = std::numeric_limits<int64_t>::max();
};
} // namespace

static ArrayRef<Number> numbers() {
  static const SmallVector<Number> all = [] {
    // A register tile has no more rows than any CPU has registers.
    constexpr int64_t kMostRows = 32;
    StringRef attention = AttentionOp::getOperationName();
    SmallVector<StringRef> products = {
        LinearOp::getOperationName(), QuantizedLinearOp::getOperationName(),
        HeadLinearOp::getOperationName(), MoEOp::getOperationName(),
        QuantizedMoEOp::getOperationName()};
    SmallVector<StringRef> tiles = {attention,
                                    OnlineAttentionOp::getOperationName()};
    llvm::append_range(tiles, products);
    SmallVector<StringRef> attentions = {attention,
                                         AttentionIntoOp::getOperationName()};
    SmallVector<StringRef> blocks = products;
    llvm::append_range(
        blocks, ArrayRef<StringRef>{LinearIntoOp::getOperationName(),
                                    QuantizedLinearIntoOp::getOperationName(),
                                    NormedLinearIntoOp::getOperationName(),
                                    GroupedLinearIntoOp::getOperationName()});
    SmallVector<StringRef> rings = attentions;
    llvm::append_range(rings, blocks);
    return SmallVector<Number>{{kQueryBlock, {attention}, attentions},
                               {kKeyBlock, {attention}, attentions},
                               {kTileRows, tiles, blocks, kMostRows},
                               {kTileColumns, {}, blocks},
                               {kStages, {}, rings},
                               {kPanelBytes, products, {}}};
  }();
  return all;
}

static const Number *findNumber(StringRef name) {
  const Number *number = llvm::find_if(
      numbers(), [&](const Number &known) { return known.name == name; });
  return number == numbers().end() ? nullptr : number;
}

std::string problemOfScheduleName(StringRef name, bool cooperative) {
  std::string problem;
  llvm::raw_string_ostream text(problem);
  const Number *number = findNumber(name);
  if (!number) {
    text << "no schedule has '" << name << "'; there are ";
    llvm::interleaveComma(numbers(), text, [&](const Number &known) {
      text << "'" << known.name << "'";
    });
  } else if ((cooperative ? number->cooperativeOps : number->ops).empty()) {
    text << "'" << name << "' is a number of kernels for "
         << (cooperative ? "CPUs" : "GPUs") << ", but this one is for a "
         << (cooperative ? "GPU" : "CPU");
  }
  return problem;
}

static LogicalResult check(Operation *op, NamedAttribute attribute,
                           bool cooperative) {
  StringRef name = attribute.getName();
  std::string problem = problemOfScheduleName(name, cooperative);
  if (!problem.empty())
    return op->emitError(problem);
  const Number *number = findNumber(name);
  ArrayRef<StringRef> ops = cooperative ? number->cooperativeOps : number->ops;
  if (!llvm::is_contained(ops, op->getName().getStringRef())) {
    InFlightDiagnostic text = op->emitError("'")
                              << op->getName() << "' does not read '" << name
                              << "', but these do: ";
    llvm::interleaveComma(ops, text);
    return text;
  }
  auto integer = dyn_cast<IntegerAttr>(attribute.getValue());
  constexpr int64_t kAny = std::numeric_limits<int64_t>::max();
  int64_t most = cooperative ? kAny : number->most;
  if (integer && integer.getInt() > 0 && integer.getInt() <= most)
    return success();
  InFlightDiagnostic text = op->emitError("'")
                            << name << "' must be a positive integer";
  if (most != kAny)
    text << " of at most " << most;
  return text << ", got " << attribute.getValue();
}

ProductNumbers productNumbers(Operation *op) {
  return {scheduled(op, kTileRows, 0), scheduled(op, kTileColumns, 0),
          scheduled(op, kStages, 0)};
}
AttentionNumbers attentionNumbers(Operation *op) {
  return {scheduled(op, kQueryBlock, 0), scheduled(op, kKeyBlock, 0),
          scheduled(op, kStages, 0)};
}

void keepSchedule(Operation *layer, Operation *op) {
  for (const Number &number : numbers())
    if (Attribute value = layer->getDiscardableAttr(number.name))
      op->setDiscardableAttr(number.name, value);
}

LogicalResult checkSchedule(Operation *root, bool cooperative) {
  auto result = root->walk([=](Operation *op) {
    // Annotations outside of functions, or for other passes, are not checked.
    if (isa<FunctionOpInterface, ModuleOp>(op) ||
        !isa<AttuneDialect>(op->getDialect()))
      return WalkResult::advance();
    for (NamedAttribute attribute : op->getDiscardableAttrs())
      if (attribute.getName().strref().starts_with("attune.") &&
          attribute.getName() != AttuneDialect::kFusionAttr &&
          failed(check(op, attribute, cooperative)))
        return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

} // namespace attune

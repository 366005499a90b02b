//===- Schedule.cpp - Numbers that a schedule gives an op -------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Conversion/Schedule.h"

#include "Attune/AttuneDialect.h"

#include "llvm/ADT/STLExtras.h"

#include <limits>

using namespace mlir;

namespace attune {

namespace {
struct Number {
  StringLiteral name;
  SmallVector<StringRef> ops;
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
        HeadLinearOp::getOperationName(), MoEOp::getOperationName()};
    SmallVector<StringRef> tiles = {attention,
                                    OnlineAttentionOp::getOperationName()};
    llvm::append_range(tiles, products);
    return SmallVector<Number>{{kQueryBlock, {attention}},
                               {kKeyBlock, {attention}},
                               {kTileRows, tiles, kMostRows},
                               {kPanelBytes, products}};
  }();
  return all;
}

static LogicalResult check(Operation *op, NamedAttribute attribute) {
  StringRef name = attribute.getName();
  const Number *number = llvm::find_if(
      numbers(), [&](const Number &known) { return known.name == name; });
  if (number == numbers().end()) {
    InFlightDiagnostic text = op->emitError("no schedule has '") << name << "'";
    text << "; there are ";
    llvm::interleaveComma(numbers(), text, [&](const Number &known) {
      text << "'" << known.name << "'";
    });
    return text;
  }
  if (!llvm::is_contained(number->ops, op->getName().getStringRef())) {
    InFlightDiagnostic text = op->emitError("'")
                              << op->getName() << "' does not read '" << name
                              << "', but these do: ";
    llvm::interleaveComma(number->ops, text);
    return text;
  }
  auto integer = dyn_cast<IntegerAttr>(attribute.getValue());
  if (integer && integer.getInt() > 0 && integer.getInt() <= number->most)
    return success();
  InFlightDiagnostic text = op->emitError("'")
                            << name << "' must be a positive integer";
  if (number->most != std::numeric_limits<int64_t>::max())
    text << " of at most " << number->most;
  return text << ", got " << attribute.getValue();
}

LogicalResult checkSchedule(Operation *root) {
  auto result = root->walk([](Operation *op) {
    // What is annotated outside of functions, or for other passes, is theirs.
    if (isa<FunctionOpInterface, ModuleOp>(op) ||
        !isa<AttuneDialect>(op->getDialect()))
      return WalkResult::advance();
    for (NamedAttribute attribute : op->getDiscardableAttrs())
      if (attribute.getName().strref().starts_with("attune.") &&
          attribute.getName() != AttuneDialect::kFusionAttr &&
          failed(check(op, attribute)))
        return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

} // namespace attune

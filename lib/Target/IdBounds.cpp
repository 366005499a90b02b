//===- IdBounds.cpp - Ids stay within their tables --------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lookups take ids as they come: the runtime looks at inputs before it enters
// (attune.max). So each argument that reaches a lookup as it is must have a
// bound that fits. What is computed of an argument is the program's own.
//
//===----------------------------------------------------------------------===//

#include "IdBounds.h"

#include "Attune/AttuneDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace attune {
namespace {

/// A lookup and the ids that it has a row for: those less than `rows`.
struct Lookup {
  Operation *op = nullptr;
  int64_t rows = 0;
  /// The one id without a row that it leaves out.
  std::optional<int64_t> ignored;
};

/// Rows of a table that is [V, D], or in panels of [V/R, D, R] or [V/R, D/2,
/// 2R]; nothing if they are not known.
std::optional<int64_t> countRows(Value table, Value result) {
  auto type = cast<RankedTensorType>(table.getType());
  int64_t width = cast<RankedTensorType>(result.getType()).getShape().back();
  if (type.getRank() == 2)
    return type.isDynamicDim(0) ? std::nullopt
                                : std::optional<int64_t>(type.getDimSize(0));
  if (!type.hasStaticShape() || ShapedType::isDynamic(width) || width < 1)
    return std::nullopt;
  return type.getNumElements() / width;
}

class Tracer {
public:
  explicit Tracer(ModuleOp module) {
    module.walk(
        [&](func::CallOp call) { calls[call.getCallee()].push_back(call); });
  }

  /// The lookup with the fewest rows that the elements of `ids` reach.
  Lookup find(Value ids) {
    values.clear();
    least = Lookup();
    values.insert(ids);
    // The list grows on the way.
    for (size_t i = 0; i < values.size(); ++i) {
      Value value = values[i];
      for (OpOperand &use : value.getUses())
        follow(use);
    }
    return least;
  }

private:
  void note(Operation *op, std::optional<int64_t> rows, int64_t offset,
            std::optional<int64_t> ignored = std::nullopt) {
    if (!rows)
      return;
    // Rows in front of the table do not exist.
    int64_t own = offset < 0 || offset > *rows ? 0 : *rows - offset;
    if (least.op && own >= least.rows)
      return;
    least = {op, own, ignored};
  }

  void follow(OpOperand &use) {
    Operation *user = use.getOwner();
    unsigned number = use.getOperandNumber();
    if (auto op = dyn_cast<EmbeddingOp>(user)) {
      if (use.get() == op.getIds())
        note(op, countRows(op.getTable(), op.getResult()), op.getOffset());
    } else if (auto op = dyn_cast<QuantizedEmbeddingOp>(user)) {
      if (use.get() == op.getIds())
        note(op, countRows(op.getTable(), op.getResult()), op.getOffset());
    } else if (auto op = dyn_cast<CrossEntropyOp>(user)) {
      int64_t width =
          cast<RankedTensorType>(op.getLogits().getType()).getShape().back();
      if (use.get() == op.getTargets() && !ShapedType::isDynamic(width))
        note(op, width, /*offset=*/0, op.getIgnore());
    } else if (auto call = dyn_cast<func::CallOp>(user)) {
      auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
          call, call.getCalleeAttr());
      if (callee && !callee.isExternal())
        values.insert(callee.getArgument(number));
    } else if (isa<func::ReturnOp>(user)) {
      auto func = user->getParentOfType<func::FuncOp>();
      for (func::CallOp call : calls.lookup(func.getSymName()))
        values.insert(call.getResult(number));
    } else if (auto loop = dyn_cast<scf::ForOp>(user)) {
      if (number >= loop.getNumControlOperands()) {
        values.insert(loop.getTiedLoopRegionIterArg(&use));
        values.insert(loop.getTiedLoopResult(&use));
      }
    } else if (isa<scf::YieldOp>(user)) {
      Operation *parent = user->getParentOp();
      if (auto loop = dyn_cast<scf::ForOp>(parent))
        values.insert(loop.getRegionIterArg(number));
      if (number < parent->getNumResults())
        values.insert(parent->getResult(number));
    } else if (isa<tensor::CastOp, tensor::ExtractSliceOp,
                   tensor::ExpandShapeOp, tensor::CollapseShapeOp,
                   tensor::InsertSliceOp, tensor::ConcatOp, FlattenTokensOp,
                   UnflattenTokensOp, arith::ExtSIOp, arith::ExtUIOp,
                   arith::SelectOp>(user)) {
      values.insert(user->getResult(0));
    }
  }

  llvm::StringMap<SmallVector<func::CallOp>> calls;
  SetVector<Value> values;
  Lookup least;
};

} // namespace

LogicalResult boundIds(func::FuncOp entry) {
  Tracer tracer(entry->getParentOfType<ModuleOp>());
  Builder b(entry.getContext());
  for (BlockArgument argument : entry.getArguments()) {
    auto tensor = dyn_cast<RankedTensorType>(argument.getType());
    if (!tensor || !tensor.getElementType().isInteger())
      continue;
    unsigned number = argument.getArgNumber();
    auto kind = entry.getArgAttrOfType<StringAttr>(number, "attune.kind");
    Lookup lookup = tracer.find(argument);
    if (!kind || kind.getValue() != "input" || !lookup.op)
      continue;
    auto most = entry.getArgAttrOfType<IntegerAttr>(number, "attune.max");
    auto ignored =
        entry.getArgAttrOfType<IntegerAttr>(number, "attune.ignored");
    if (!most && lookup.rows > 0) {
      entry.setArgAttr(number, "attune.max", b.getI64IntegerAttr(lookup.rows));
      if (lookup.ignored && !ignored)
        entry.setArgAttr(number, "attune.ignored",
                         b.getI64IntegerAttr(*lookup.ignored));
    }
    bool fits = lookup.rows > 0 && (!most || most.getInt() <= lookup.rows);
    bool known = !ignored || ignored.getInt() == lookup.ignored;
    if (fits && known)
      continue;
    InFlightDiagnostic diag = emitError(argument.getLoc())
                              << "argument " << number << " of '@"
                              << entry.getSymName() << "' ";
    if (fits)
      diag << "lets the id " << ignored.getInt()
           << " through (attune.ignored), but a table has no row for it; take "
              "attune.ignored off";
    else if (lookup.rows > 0)
      diag << "lets ids through that are less than " << most.getInt()
           << " (attune.max), but a table that they index has " << lookup.rows
           << " rows; write attune.max = " << lookup.rows;
    else
      diag << "has ids for a table that has no row for any of them";
    diag.attachNote(lookup.op->getLoc()) << "the table is indexed here";
    return diag;
  }
  return success();
}

} // namespace attune

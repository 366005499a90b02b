//===- SizeText.cpp - Sizes as people write them ----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SizeText.h"

#include "Attune/AttuneMeshOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace attune;

/// Chains of calls and views are short; a longer one is a cycle.
static constexpr unsigned kDepth = 32;

SizeText::SizeText(ModuleOp module) {
  module.walk(
      [&](func::CallOp call) { calls[call.getCallee()].push_back(call); });
}

/// The value that callers pass for an argument of a function, if they agree.
std::string
SizeText::fromCallers(BlockArgument argument,
                      llvm::function_ref<std::string(Value)> describe) const {
  auto func = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
  if (!func || !argument.getOwner()->isEntryBlock())
    return "?";
  std::string text;
  for (func::CallOp call : calls.lookup(func.getSymName())) {
    std::string here = describe(call.getOperand(argument.getArgNumber()));
    text = text.empty() || text == here ? here : "?";
  }
  return text.empty() ? "?" : text;
}

std::string SizeText::sizeText(OpFoldResult size, unsigned depth) const {
  if (auto number = getConstantIntValue(size))
    return std::to_string(*number);
  return sizeText(cast<Value>(size), depth);
}

std::string SizeText::binaryText(Operation *op, const char *symbol,
                                 unsigned depth) const {
  std::string lhs = sizeText(op->getOperand(0), depth);
  std::string rhs = sizeText(op->getOperand(1), depth);
  if (lhs == "?" || rhs == "?")
    return "?";
  return "(" + lhs + " " + symbol + " " + rhs + ")";
}

std::string SizeText::sizeText(Value value, unsigned depth) const {
  if (depth == 0)
    return "?";
  if (auto number = getConstantIntValue(value))
    return std::to_string(*number);
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (auto func = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()))
      if (auto name = func.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                        "attune.name"))
        return name.str();
    return fromCallers(
        argument, [&](Value passed) { return sizeText(passed, depth - 1); });
  }
  Operation *op = value.getDefiningOp();
  // The first of several ranks, which has no less than the others.
  if (isa<RankOp>(op))
    return "0";
  if (auto dim = dyn_cast<memref::DimOp>(op))
    if (auto index = dim.getConstantIndex())
      return dimText(dim.getSource(), *index, depth - 1);
  if (isa<arith::IndexCastOp>(op))
    return sizeText(op->getOperand(0), depth - 1);
  if (isa<arith::AddIOp>(op))
    return binaryText(op, "+", depth - 1);
  if (isa<arith::SubIOp>(op))
    return binaryText(op, "-", depth - 1);
  if (isa<arith::MulIOp>(op))
    return binaryText(op, "*", depth - 1);
  if (isa<arith::DivSIOp, arith::DivUIOp, arith::FloorDivSIOp>(op))
    return binaryText(op, "/", depth - 1);
  if (isa<arith::CeilDivSIOp, arith::CeilDivUIOp>(op)) {
    std::string quotient = binaryText(op, "/", depth - 1);
    return quotient == "?" ? quotient : "ceil" + quotient;
  }
  if (isa<arith::MinSIOp, arith::MinUIOp, arith::MaxSIOp, arith::MaxUIOp>(op)) {
    std::string both = binaryText(op, ",", depth - 1);
    bool least = isa<arith::MinSIOp, arith::MinUIOp>(op);
    return both == "?" ? both : (least ? "min" : "max") + both;
  }
  return "?";
}

std::string SizeText::dimText(Value buffer, int64_t dim, unsigned depth) const {
  auto type = dyn_cast<MemRefType>(buffer.getType());
  if (depth == 0 || !type)
    return "?";
  if (!type.isDynamicDim(dim))
    return std::to_string(type.getDimSize(dim));
  if (auto argument = dyn_cast<BlockArgument>(buffer)) {
    Operation *parent = argument.getOwner()->getParentOp();
    if (auto loop = dyn_cast<scf::ForOp>(parent))
      if (OpOperand *init = loop.getTiedLoopInit(argument))
        return dimText(init->get(), dim, depth - 1);
    if (auto func = dyn_cast<func::FuncOp>(parent))
      if (auto shape = func.getArgAttrOfType<ArrayAttr>(argument.getArgNumber(),
                                                        "attune.shape")) {
        if (auto symbol = dyn_cast<StringAttr>(shape[dim]))
          return symbol.str();
        if (auto number = dyn_cast<IntegerAttr>(shape[dim]))
          return std::to_string(number.getInt());
      }
    return fromCallers(argument, [&](Value passed) {
      return dimText(passed, dim, depth - 1);
    });
  }
  Operation *op = buffer.getDefiningOp();
  if (isa<memref::AllocOp, memref::ViewOp>(op)) {
    ValueRange sizes =
        isa<memref::AllocOp>(op)
            ? ValueRange(cast<memref::AllocOp>(op).getDynamicSizes())
            : ValueRange(cast<memref::ViewOp>(op).getSizes());
    return sizeText(sizes[type.getDynamicDimIndex(dim)], depth - 1);
  }
  if (auto expand = dyn_cast<memref::ExpandShapeOp>(op))
    return sizeText(expand.getMixedOutputShape()[dim], depth - 1);
  if (auto view = dyn_cast<memref::SubViewOp>(op))
    return view.getDroppedDims().none()
               ? sizeText(view.getMixedSizes()[dim], depth - 1)
               : "?";
  if (auto view = dyn_cast<memref::ReinterpretCastOp>(op))
    return sizeText(view.getMixedSizes()[dim], depth - 1);
  if (auto cast = dyn_cast<memref::CastOp>(op))
    return dimText(cast.getSource(), dim, depth - 1);
  if (auto collapse = dyn_cast<memref::CollapseShapeOp>(op)) {
    SmallVector<std::string> factors;
    ReassociationIndices group = collapse.getReassociationIndices()[dim];
    for (int64_t of : group)
      factors.push_back(dimText(collapse.getSrc(), of, depth - 1));
    return llvm::is_contained(factors, "?")
               ? "?"
               : "(" + llvm::join(factors, " * ") + ")";
  }
  return "?";
}

std::string SizeText::describeSize(Value value) const {
  return sizeText(value, kDepth);
}

std::string SizeText::describeShape(Value buffer) const {
  auto type = cast<MemRefType>(buffer.getType());
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << "[";
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    std::string size = dimText(buffer, dim, kDepth);
    StringRef plain = size;
    if (plain.consume_front("("))
      plain.consume_back(")");
    stream << (dim ? ", " : "") << plain;
  }
  stream << "] " << type.getElementType();
  return text;
}

std::string attune::describePlace(Location location) {
  auto place = location->findInstanceOf<FileLineColLoc>();
  if (!place)
    return "";
  return place.getFilename().str() + ":" + std::to_string(place.getLine()) +
         ":" + std::to_string(place.getColumn());
}

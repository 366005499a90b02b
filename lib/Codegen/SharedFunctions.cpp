//===- SharedFunctions.cpp - Functions that stand there once ----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SharedFunctions.h"

#include "attune/Codegen/EqualBodies.h"

using namespace mlir;

namespace attune {

static llvm::hash_code hashOf(func::FuncOp func) {
  return llvm::hash_combine(Type(func.getFunctionType()),
                            hashOfBody(func.getBody()));
}

static bool computeTheSame(func::FuncOp a, func::FuncOp b) {
  return a.getFunctionType() == b.getFunctionType() &&
         areEqualBodies(a.getBody(), b.getBody());
}

/// `name`, or with the first number behind it that makes it a new one.
static std::string freeName(StringRef name, SymbolTable &symbols) {
  std::string free = name.str();
  for (unsigned number = 2; symbols.lookup(free); ++number)
    free = (name + "." + Twine(number)).str();
  return free;
}

func::FuncOp SharedFunctions::create(Location loc, StringRef name,
                                     ValueRange arguments) {
  Builder b(loc.getContext());
  auto func = func::FuncOp::create(loc, name,
                                   b.getFunctionType(arguments.getTypes(), {}));
  func.setPrivate();
  func->setAttr("attune.kernel", b.getUnitAttr());
  func->setAttr("passthrough", b.getStrArrayAttr({"noinline"}));
  return func;
}

std::pair<func::FuncOp, bool> SharedFunctions::add(func::FuncOp func) {
  auto &candidates = known[hashOf(func)];
  for (func::FuncOp other : candidates)
    if (computeTheSame(other, func)) {
      func.erase();
      return {other, false};
    }
  func.setSymName(freeName(func.getSymName(), symbols));
  symbols.insert(func);
  candidates.push_back(func);
  return {func, true};
}

Location placeOfCall(Location loc) {
  if (loc->findInstanceOf<FileLineColLoc>())
    return loc;
  return FileLineColLoc::get(loc.getContext(), "", 0, 0);
}

} // namespace attune

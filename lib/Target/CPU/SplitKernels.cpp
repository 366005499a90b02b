//===- SplitKernels.cpp - Kernels as modules of their own -------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SplitKernels.h"

#include "Attune/AttuneDialect.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace attune {

namespace {
/// Functions that attune-outline-kernels made.
bool isKernel(Operation *op) {
  auto func = dyn_cast<LLVM::LLVMFuncOp>(op);
  return func && !func.isExternal() && func->hasAttr("attune.kernel");
}

/// A global that is the same wherever a copy of it is read.
bool isOwnConstant(Operation *op) {
  auto global = dyn_cast<LLVM::GlobalOp>(op);
  return global && global.getConstant() &&
         (global.getLinkage() == LLVM::Linkage::Private ||
          global.getLinkage() == LLVM::Linkage::Internal);
}

class Splitter {
public:
  explicit Splitter(ModuleOp module) : module(module), symbols(module) {}

  SmallVector<OwningOpRef<ModuleOp>> split(bool apart) {
    SmallVector<OwningOpRef<ModuleOp>> parts;
    llvm::SetVector<Operation *> rest;
    llvm::SmallVector<llvm::SetVector<Operation *>> kernels;
    for (Operation &op : *module.getBody()) {
      if (isa<WeightOp>(op))
        continue;
      std::optional<llvm::SetVector<Operation *>> needed;
      if (apart && isKernel(&op))
        needed = collect(&op);
      if (needed)
        kernels.push_back(std::move(*needed));
      else
        rest.insert(&op);
    }
    for (const llvm::SetVector<Operation *> &needed : kernels)
      moved.insert(needed.front());
    for (Operation *kernel : moved)
      rest.insert(kernel);
    parts.push_back(copy(rest, nullptr));
    for (const llvm::SetVector<Operation *> &needed : kernels)
      parts.push_back(copy(needed, needed.front()));
    return parts;
  }

private:
  /// The kernel and all that it uses, or nothing if that is also written.
  std::optional<llvm::SetVector<Operation *>> collect(Operation *kernel) {
    llvm::SetVector<Operation *> needed;
    needed.insert(kernel);
    for (size_t i = 0; i < needed.size(); ++i) {
      Operation *op = needed[i];
      if (i > 0 && isKernel(op))
        continue; // is declared
      if (!isa<LLVM::LLVMFuncOp>(op) && !isOwnConstant(op))
        return std::nullopt;
      std::optional<SymbolTable::UseRange> uses =
          SymbolTable::getSymbolUses(op);
      if (!uses)
        return std::nullopt;
      for (SymbolTable::SymbolUse use : *uses)
        if (Operation *used =
                symbols.lookup(use.getSymbolRef().getRootReference()))
          needed.insert(used);
    }
    return needed;
  }

  /// A module with copies of these ops. `own` is the kernel that it defines; of
  /// others it knows that they are there.
  OwningOpRef<ModuleOp> copy(const llvm::SetVector<Operation *> &ops,
                             Operation *own) {
    OwningOpRef<Operation *> shell = module->cloneWithoutRegions();
    auto part = cast<ModuleOp>(shell.release());
    auto b = OpBuilder::atBlockEnd(&part.getBodyRegion().emplaceBlock());
    for (Operation *op : ops) {
      bool declared = op != own && moved.contains(op);
      Operation *copied =
          b.insert(declared ? op->cloneWithoutRegions() : op->clone());
      // Debug info says of a place with a scope that a body is there.
      if (declared)
        copied->setLoc(b.getUnknownLoc());
      // Kernels of their own are seen by the other parts, and by nobody else.
      if (declared || op == own) {
        auto func = cast<LLVM::LLVMFuncOp>(copied);
        func.setLinkage(LLVM::Linkage::External);
        func.setVisibility_(LLVM::Visibility::Hidden);
        func.setDsoLocal(true);
      }
    }
    return part;
  }

  ModuleOp module;
  SymbolTable symbols;
  llvm::SetVector<Operation *> moved; ///< kernels with a part of their own
};
} // namespace

SmallVector<OwningOpRef<ModuleOp>> splitKernels(ModuleOp module, bool apart) {
  return Splitter(module).split(apart);
}

} // namespace attune

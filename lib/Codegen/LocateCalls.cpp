//===- LocateCalls.cpp - A place for each call ------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Codegen/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_LOCATECALLS
#include "attune/Codegen/Passes.h.inc"

namespace {
FileLineColLoc findPlace(Operation *op) {
  return op->getLoc()->findInstanceOf<FileLineColLoc>();
}

struct LocateCalls final : impl::LocateCallsBase<LocateCalls> {
  using Base::Base;

  void runOnOperation() override {
    FileLineColLoc place = findPlace(getOperation());
    // Line 0 is DWARF's word for code that no line of a source is about.
    if (!place)
      place = FileLineColLoc::get(&getContext(), "<unknown>", 0, 0);
    getOperation().walk([&](LLVM::CallOp call) {
      if (!findPlace(call))
        call->setLoc(place);
    });
  }
};
} // namespace
} // namespace attune

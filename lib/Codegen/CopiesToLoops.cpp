//===- CopiesToLoops.cpp - memref.copy as loops -----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Codegen/Passes.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_COPIESTOLOOPS
#include "attune/Codegen/Passes.h.inc"

namespace {
struct CopiesToLoops final : impl::CopiesToLoopsBase<CopiesToLoops> {
  using Base::Base;
  void runOnOperation() override {
    getOperation().walk([&](memref::CopyOp copy) {
      OpBuilder b(copy);
      if (copy.getSource() != copy.getTarget()) {
        linalg::CopyOp::create(b, copy.getLoc(), copy.getSource(),
                               copy.getTarget());
        ++numCopies;
      }
      copy.erase();
    });
  }
};
} // namespace
} // namespace attune

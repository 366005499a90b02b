//===- ParallelLoops.h - scf.forall and scf.parallel as one -----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_CODEGEN_PARALLELLOOPS_H
#define ATTUNE_CODEGEN_PARALLELLOOPS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

namespace attune {

/// A bufferized parallel loop, whichever op it is.
struct ParallelLoop {
  llvm::SmallVector<mlir::Value> ivs;
  llvm::SmallVector<mlir::OpFoldResult> lower, upper, step;
  mlir::Block *body;

  /// An error if the loop has results: a forall on tensors, a reduction.
  static mlir::FailureOr<ParallelLoop> get(mlir::Operation *loop);

  /// The number of iterations of dimension `i`.
  mlir::Value count(mlir::OpBuilder &b, mlir::Location loc, unsigned i) const;
  /// The induction variable of dimension `i` in its iteration `number`.
  mlir::Value at(mlir::OpBuilder &b, mlir::Location loc, unsigned i,
                 mlir::Value number) const;
};

/// The parallel loops of a function that are in no other, in program order.
llvm::SmallVector<mlir::Operation *> findParallelLoops(mlir::func::FuncOp func);

} // namespace attune

#endif // ATTUNE_CODEGEN_PARALLELLOOPS_H

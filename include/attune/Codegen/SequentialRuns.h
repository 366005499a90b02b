//===- SequentialRuns.h - Code between parallel loops -----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_CODEGEN_SEQUENTIALRUNS_H
#define ATTUNE_CODEGEN_SEQUENTIALRUNS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace attune {

/// Operations of one block, from the first that writes to the last, with no
/// parallel loop and no call among them. Code outside parallel loops is run by
/// every thread (or by none that owns the memory), so a write there needs one
/// that does it for all. A parallel loop of one iteration is folded into such
/// code.
struct SequentialRun {
  llvm::SmallVector<mlir::Operation *> ops;
};

/// The runs of a bufferized function, in program order. Sizes and the like
/// that code behind a run reads of it are moved in front of it; an error if
/// that cannot be.
mlir::LogicalResult
findSequentialRuns(mlir::func::FuncOp func,
                   llvm::SmallVectorImpl<SequentialRun> &runs);

} // namespace attune

#endif // ATTUNE_CODEGEN_SEQUENTIALRUNS_H

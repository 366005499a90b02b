//===- SoftmaxSearch.h - Softmaxes and what they weigh ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_TRANSFORMS_SOFTMAXSEARCH_H
#define ATTUNE_LIB_TRANSFORMS_SOFTMAXSEARCH_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/SetVector.h"

namespace attune {

/// A softmax in linalg: the op of that name, or the sum of its exponentials.
struct SoftmaxFound {
  mlir::Operation *op = nullptr;
  /// The products that its weights reach through elementwise ops.
  llvm::SetVector<mlir::Operation *> products;
  /// Its exponentials are divided by something.
  bool divided = false;
};

/// All softmaxes below `top`, in their order.
llvm::SmallVector<SoftmaxFound> findSoftmaxes(mlir::Operation *top);

} // namespace attune

#endif // ATTUNE_LIB_TRANSFORMS_SOFTMAXSEARCH_H

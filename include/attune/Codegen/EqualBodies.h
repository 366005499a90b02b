//===- EqualBodies.h - Functions that compute the same ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_CODEGEN_EQUALBODIES_H
#define ATTUNE_CODEGEN_EQUALBODIES_H

#include "mlir/IR/OperationSupport.h"

namespace attune {

/// By what a body computes, wherever it comes from: equal bodies have one hash.
llvm::hash_code hashOfBody(mlir::Region &body);

/// Whether two bodies differ in nothing but locations.
bool areEqualBodies(mlir::Region &a, mlir::Region &b);

} // namespace attune

#endif // ATTUNE_CODEGEN_EQUALBODIES_H

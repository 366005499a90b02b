//===- EqualBodies.cpp - Functions that compute the same ------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Codegen/EqualBodies.h"

#include "mlir/IR/Operation.h"

using namespace mlir;

namespace attune {

llvm::hash_code hashOfBody(Region &body) {
  llvm::hash_code code(0);
  body.walk<WalkOrder::PreOrder>([&](Operation *op) {
    code =
        llvm::hash_combine(code, OperationEquivalence::computeHash(
                                     op, OperationEquivalence::ignoreHashValue,
                                     OperationEquivalence::ignoreHashValue,
                                     OperationEquivalence::IgnoreLocations));
  });
  return code;
}

bool areEqualBodies(Region &a, Region &b) {
  return OperationEquivalence::isRegionEquivalentTo(
      &a, &b, OperationEquivalence::IgnoreLocations);
}

} // namespace attune

//===- AttuneFFNOps.cpp - Verifiers of linear and feed-forward layers -----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneDialect.h"

using namespace mlir;
using namespace attune;

LogicalResult LinearOp::verify() { return success(); }
LogicalResult FFNOp::verify() { return success(); }
LogicalResult GatedFFNOp::verify() { return success(); }

//===- AttuneNormOps.cpp - Verifiers of the norms ---------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneDialect.h"

using namespace mlir;
using namespace attune;

LogicalResult LayerNormOp::verify() { return success(); }
LogicalResult RMSNormOp::verify() { return success(); }

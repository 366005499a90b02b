//===- AttuneEmbeddingOps.cpp - Verifiers of embeddings and positions -----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneDialect.h"

using namespace mlir;
using namespace attune;

LogicalResult EmbeddingOp::verify() { return success(); }
LogicalResult SinusoidalOp::verify() { return success(); }
LogicalResult RotaryTableOp::verify() { return success(); }
LogicalResult RotaryOp::verify() { return success(); }

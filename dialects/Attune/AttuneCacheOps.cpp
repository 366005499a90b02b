//===- AttuneCacheOps.cpp - Verifiers of the cache ops ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneDialect.h"

using namespace mlir;
using namespace attune;

LogicalResult CacheAppendOp::verify() { return success(); }
LogicalResult CacheReadOp::verify() { return success(); }

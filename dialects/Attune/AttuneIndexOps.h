//===- AttuneIndexOps.h - Keys that an index chooses ------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ops of attention to chosen keys; the rest of the dialect does not wait for
// them to compile.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_INDEX_OPS_H
#define ATTUNE_INDEX_OPS_H

#include "Attune/AttuneDialect.h"

#define GET_OP_CLASSES
#include "Attune/AttuneIndexOps.h.inc"

#endif // ATTUNE_INDEX_OPS_H

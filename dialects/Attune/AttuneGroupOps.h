//===- AttuneGroupOps.h - Ops of a GPU's blocks -----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ops that only the way to GPUs makes and lowers; the rest of the dialect does
// not wait for them to compile.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_GROUP_OPS_H
#define ATTUNE_GROUP_OPS_H

#include "Attune/AttuneDialect.h"

#define GET_OP_CLASSES
#include "Attune/AttuneGroupOps.h.inc"

#endif // ATTUNE_GROUP_OPS_H

//===- AttuneMeshOps.h - Ranks that share a model ---------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ops that only models cut among ranks have; the rest of the dialect does not
// wait for them to compile.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_MESH_OPS_H
#define ATTUNE_MESH_OPS_H

#include "Attune/AttuneDialect.h"

#define GET_OP_CLASSES
#include "Attune/AttuneMeshOps.h.inc"

#endif // ATTUNE_MESH_OPS_H

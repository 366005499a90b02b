//===- CheckedMemory.cpp - Memory under sanitizers ------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Products have their own operator new (lib/Runtime/Standalone.cpp). Sanitizers
// bring theirs, so that only the variable is left of it.
//
//===----------------------------------------------------------------------===//

#include "Standalone.h"

void (*attune::runtime::outOfMemory)() = nullptr;

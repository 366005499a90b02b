//===- Backend.cpp - Products for a kind of machine -------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Target/Backend.h"

namespace attune {

char Refusal::ID = 0;

// Plugins refer to these classes, so their vtables must be here, once.
Backend::~Backend() = default;

} // namespace attune

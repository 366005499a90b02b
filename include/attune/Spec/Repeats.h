//===- Repeats.h - Parts of layers that repeat ------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_SPEC_REPEATS_H
#define ATTUNE_SPEC_REPEATS_H

#include "attune/Spec/Spec.h"

namespace attune::spec {

/// Repeats [begin, end) of a layer as one of their own.
Layer takeRepeats(const Layer &layer, int64_t begin, int64_t end);

} // namespace attune::spec

#endif // ATTUNE_SPEC_REPEATS_H

//===- VisiblePairs.h - What attention sees ---------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_ANALYSIS_VISIBLEPAIRS_H
#define ATTUNE_LIB_ANALYSIS_VISIBLEPAIRS_H

#include "attune/Spec/Spec.h"

namespace attune {

/// How many (query, key) pairs are seen. A mask of blocks that is an input is
/// unknown.
double visiblePairs(const spec::Attention &attention, double queries,
                    double keys);

} // namespace attune

#endif // ATTUNE_LIB_ANALYSIS_VISIBLEPAIRS_H

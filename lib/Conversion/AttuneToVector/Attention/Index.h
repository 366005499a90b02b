//===- Index.h - Keys that an index chooses ---------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_CONVERSION_ATTUNETOVECTOR_ATTENTION_INDEX_H
#define ATTUNE_LIB_CONVERSION_ATTUNETOVECTOR_ATTENTION_INDEX_H

#include "../Patterns.h"

namespace attune {

/// Lowers index_scores and choose_keys for the threads of a CPU.
void populateIndexPatterns(mlir::RewritePatternSet &, const VectorLowering &);

} // namespace attune

#endif // ATTUNE_LIB_CONVERSION_ATTUNETOVECTOR_ATTENTION_INDEX_H

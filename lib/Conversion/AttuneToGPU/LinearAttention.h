//===- LinearAttention.h - Attention by sums over keys ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_CONVERSION_ATTUNETOGPU_LINEARATTENTION_H
#define ATTUNE_LIB_CONVERSION_ATTUNETOGPU_LINEARATTENTION_H

#include "BlockBuilder.h"

#include "attune/TargetInfo/GpuSums.h"

namespace attune {

/// Launches what an op takes; fails with an error if heads are too wide.
mlir::LogicalResult lowerLinearAttention(LinearAttentionIntoOp op,
                                         int64_t multiprocessors);

} // namespace attune

#endif // ATTUNE_LIB_CONVERSION_ATTUNETOGPU_LINEARATTENTION_H

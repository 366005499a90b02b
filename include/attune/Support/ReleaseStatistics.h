//===- ReleaseStatistics.h - LLVM's statistics in a Debug build -----------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// LLVM's headers give statistics of passes a counter where assertions are on.
// LLVM comes without assertions, so its library constructs them without one.
// Debug builds include this file before all others: there statistics are laid
// out as the library has them.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_SUPPORT_RELEASESTATISTICS_H
#define ATTUNE_SUPPORT_RELEASESTATISTICS_H

#ifndef NDEBUG
#define NDEBUG
#include "llvm/ADT/Statistic.h"
#undef NDEBUG
#include <cassert> // with assertions again
#endif

#endif // ATTUNE_SUPPORT_RELEASESTATISTICS_H

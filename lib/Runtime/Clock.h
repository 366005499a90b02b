//===- Clock.h - Seconds that only go forward -------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_CLOCK_H
#define ATTUNE_LIB_RUNTIME_CLOCK_H

#include <ctime>

namespace attune::runtime {

/// Seconds of a clock that never goes back.
inline double monotonicTime() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) +
         static_cast<double>(time.tv_nsec) * 1e-9;
}

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_CLOCK_H

//===- Pointers.h - Memory as numbers ---------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_VALIDATION_INTERPRETER_POINTERS_H
#define ATTUNE_LIB_VALIDATION_INTERPRETER_POINTERS_H

#include "Machine.h"

namespace attune::validation {

/// A memref as the list of scalars that a function of LLVM's dialect takes for
/// it.
inline void appendDescriptor(Machine &machine, const View &view,
                             std::vector<Datum> &to) {
  if (view.memory)
    machine.expose(view.memory.get());
  Datum base(whole(reinterpret_cast<int64_t>(view.base)));
  to.push_back(base);
  to.push_back(base);
  to.push_back(whole(view.offset));
  for (int64_t size : view.shape)
    to.push_back(whole(size));
  for (int64_t stride : view.strides)
    to.push_back(whole(stride));
}

/// Bytes at a pointer, or null if no block of memory has all of them.
uint8_t *bytesAt(Step &step, const Datum &pointer, int64_t count);

} // namespace attune::validation

#endif // ATTUNE_LIB_VALIDATION_INTERPRETER_POINTERS_H

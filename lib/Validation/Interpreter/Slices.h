//===- Slices.h - Parts of tensors ------------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_VALIDATION_INTERPRETER_SLICES_H
#define ATTUNE_LIB_VALIDATION_INTERPRETER_SLICES_H

#include "Machine.h"

#include "mlir/Interfaces/ViewLikeInterface.h"

namespace attune::validation {

struct Slice {
  Shape offsets, sizes, strides;
};

/// The constants of a list with the operands in the places of the rest.
inline Shape mixed(llvm::ArrayRef<int64_t> fixed, llvm::ArrayRef<Datum> in,
                   size_t &at) {
  Shape values;
  for (int64_t value : fixed)
    values.push_back(mlir::ShapedType::isDynamic(value) ? in[at++].integer()
                                                        : value);
  return values;
}

/// `numbers` are the operands behind the source (and the destination).
template <typename Op> Slice readSlice(Op op, llvm::ArrayRef<Datum> numbers) {
  size_t at = 0;
  Slice slice;
  slice.offsets = mixed(op.getStaticOffsets(), numbers, at);
  slice.sizes = mixed(op.getStaticSizes(), numbers, at);
  slice.strides = mixed(op.getStaticStrides(), numbers, at);
  return slice;
}

/// Elements go over in row-major order, so dimensions of one may be missing.
bool extractSlice(Step &step, const Array &from, Array &to, const Slice &slice);
bool insertSlice(Step &step, const Array &from, Array &to, const Slice &slice);

} // namespace attune::validation

#endif // ATTUNE_LIB_VALIDATION_INTERPRETER_SLICES_H

//===- RealNumbers.h - Tensors of floating-point numbers --------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_WEIGHTS_REALNUMBERS_H
#define ATTUNE_LIB_WEIGHTS_REALNUMBERS_H

#include "attune/Runtime/DType.h"

#include <cstdint>
#include <cstring>

namespace attune {

/// Whether a tensor of a file, which has a `dtype`, holds numbers that
/// numberAt() reads.
template <typename Tensor> bool isReal(const Tensor &tensor) {
  return tensor.dtype == runtime::DType::F32 ||
         tensor.dtype == runtime::DType::F16 ||
         tensor.dtype == runtime::DType::BF16 ||
         tensor.dtype == runtime::DType::F64;
}

/// The number `i` of such a tensor, whose `data` lie anywhere.
template <typename Tensor> float numberAt(const Tensor &tensor, int64_t i) {
  const uint8_t *data = tensor.data + i * runtime::dtypeBytes(tensor.dtype);
  if (tensor.dtype == runtime::DType::F32) {
    float value;
    std::memcpy(&value, data, 4);
    return value;
  }
  if (tensor.dtype == runtime::DType::F64) {
    double value;
    std::memcpy(&value, data, 8);
    return static_cast<float>(value);
  }
  uint16_t bits;
  std::memcpy(&bits, data, 2);
  return tensor.dtype == runtime::DType::F16 ? runtime::halfToFloat(bits)
                                             : runtime::bfloatToFloat(bits);
}

} // namespace attune

#endif // ATTUNE_LIB_WEIGHTS_REALNUMBERS_H

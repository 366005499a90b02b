//===- PlainNumbers.h - Numbers that become f32 -----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_WEIGHTS_PLAINNUMBERS_H
#define ATTUNE_LIB_WEIGHTS_PLAINNUMBERS_H

#include "attune/Weights/TensorEncoding.h"

#include <cstring>

namespace attune {

/// Numbers of a type that weights are seldom of, rounded to f32.
template <typename T> class PlainNumbers final : public TensorEncoding {
public:
  explicit PlainNumbers(const char *label) : label(label) {}
  const char *name() const override { return label; }
  bool isQuantized() const override { return false; }
  void decode(const CheckpointTensor &tensor, int64_t first, int64_t count,
              float *out) const override {
    for (int64_t i = 0; i < count; ++i) {
      T value;
      std::memcpy(&value, tensor.data + (first + i) * int64_t(sizeof(T)),
                  sizeof(T));
      out[i] = static_cast<float>(value);
    }
  }

private:
  const char *label;
};

} // namespace attune

#endif // ATTUNE_LIB_WEIGHTS_PLAINNUMBERS_H

//===- TensorMaker.h - What makers of tensors share -------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_WEIGHTS_QUANTIZED_TENSORMAKER_H
#define ATTUNE_LIB_WEIGHTS_QUANTIZED_TENSORMAKER_H

#include "QuantizedTensors.h"

#include <cmath>

namespace attune {

/// Finds and checks the tensors that a matrix is made of.
class TensorMaker {
public:
  TensorMaker(const QuantizationConfig &config, const FindTensor &find,
              QuantizedTensors &result, std::string &problem)
      : config(config), find(find), result(result), problem(problem) {}

  /// The 4-bit matrices of bitsandbytes; `stateName` is the tensor with their
  /// JSON.
  bool makeCodebook(const std::string &base, const std::string &stateName);
  /// Fails if scales of bitsandbytes have no such tensor.
  bool needState(const std::string &base);
  /// Matrices in NVFP4: two numbers of a row in each byte of `pairsName`.
  bool makeNvfp4(const std::string &base, const std::string &pairsName,
                 const std::string &globalName);
  /// Fails: who wrote this tensor computes with it what is not read.
  bool refuseScales(const std::string &name);

protected:
  bool fail(const std::string &tensor, const std::string &what) {
    problem = "tensor '" + tensor + "' " + what;
    return false;
  }
  /// A tensor that must be there, of this shape: I32 if `words`, else real.
  const CheckpointTensor *need(const std::string &name, bool words,
                               const std::vector<int64_t> &shape);
  /// The same with elements of one type.
  const CheckpointTensor *need(const std::string &name, runtime::DType dtype,
                               const std::vector<int64_t> &shape);
  bool finish(const std::string &base, const CheckpointTensor &data,
              int64_t rows, int64_t columns,
              std::unique_ptr<TensorEncoding> encoding,
              runtime::DType dtype = runtime::DType::F32);

  const QuantizationConfig &config;
  const FindTensor &find;
  QuantizedTensors &result;
  std::string &problem;

private:
  const CheckpointTensor *needShape(const std::string &name, bool hasType,
                                    const char *type,
                                    const std::vector<int64_t> &shape);
};

/// A float of 8 bits, e4m3: exact, with the two codes that are not numbers.
inline float eightBitFloat(uint8_t code) {
  int exponent = code >> 3 & 15, fraction = code & 7;
  float value = (code & 127) == 127 ? NAN
                : exponent == 0
                    ? std::ldexp(float(fraction), -9)
                    : std::ldexp(float(8 + fraction), exponent - 10);
  return code & 128 ? -value : value;
}

/// The floats of 4 bits, e2m1.
inline constexpr float kFourBitFloats[] = {0, 0.5,  1,  1.5,  2,  3,  4,  6,
                                           0, -0.5, -1, -1.5, -2, -3, -4, -6};

} // namespace attune

#endif // ATTUNE_LIB_WEIGHTS_QUANTIZED_TENSORMAKER_H

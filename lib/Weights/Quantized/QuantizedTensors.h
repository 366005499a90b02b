//===- QuantizedTensors.h - Quantized folders of Hugging Face ---*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_WEIGHTS_QUANTIZED_QUANTIZEDTENSORS_H
#define ATTUNE_LIB_WEIGHTS_QUANTIZED_QUANTIZEDTENSORS_H

#include "attune/Weights/QuantizationConfig.h"
#include "attune/Weights/TensorEncoding.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace attune {

/// Looks up a tensor of the files; null if it is not there.
using FindTensor = std::function<const CheckpointTensor *(const std::string &)>;

/// The tensors that packed ones stand for.
struct QuantizedTensors {
  std::vector<std::unique_ptr<TensorEncoding>> encodings;
  std::vector<CheckpointTensor> made;
  std::vector<std::string> used; ///< names of the tensors that they are made of
};

/// Makes a matrix "X.weight" of each set of tensors that `config` packs one in.
/// Shapes and indices are checked; `problem` names the tensor.
bool makeQuantizedTensors(const QuantizationConfig &config,
                          const std::vector<std::string> &names,
                          const FindTensor &find, QuantizedTensors &result,
                          std::string &problem);

} // namespace attune

#endif // ATTUNE_LIB_WEIGHTS_QUANTIZED_QUANTIZEDTENSORS_H

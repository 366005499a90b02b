//===- QuantizedTensors.h - Quantized folders of Hugging Face ---*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_IMPORT_QUANTIZED_QUANTIZEDTENSORS_H
#define ATTUNE_LIB_IMPORT_QUANTIZED_QUANTIZEDTENSORS_H

#include "attune/Import/TensorEncoding.h"
#include "attune/Spec/Json.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace attune {

enum class QuantizationMethod { Gptq, Awq, CompressedTensors, Fp8 };

/// What "quantization_config" says.
struct QuantizationConfig {
  QuantizationMethod method = QuantizationMethod::Gptq;
  int64_t bits = 4;
  int64_t group = -1;       ///< columns that share a scale; -1: all
  bool zerosLessOne = true; ///< GPTQ's first format stores zero points less 1
};

/// Reads the object; nothing, with a `problem`, if it asks for what is not
/// read.
std::optional<QuantizationConfig>
readQuantizationConfig(const spec::Value &object, std::string &problem);

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

#endif // ATTUNE_LIB_IMPORT_QUANTIZED_QUANTIZEDTENSORS_H

//===- QuantizationConfig.h - "quantization_config" of a folder -----------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_WEIGHTS_QUANTIZATIONCONFIG_H
#define ATTUNE_WEIGHTS_QUANTIZATIONCONFIG_H

#include "attune/Spec/Json.h"

#include <optional>
#include <string>

namespace attune {

enum class QuantizationMethod {
  Gptq,
  Awq,
  BitsAndBytes,
  CompressedTensors,
  Dense, ///< compressed-tensors that are floats
  Fp8,
  ModelOpt,
  Mxfp4
};

/// The "quantization_config" of a config.json, for the folder's tensors.
struct QuantizationConfig {
  QuantizationMethod method = QuantizationMethod::Gptq;
  int64_t bits = 4;         ///< of a weight: 4 or 8
  int64_t group = -1;       ///< columns that share a scale; -1: all
  bool square = false;      ///< as many rows share it as columns
  bool zerosLessOne = true; ///< GPTQ's first format stores zero points less 1
};

/// Reads the object. Returns nothing, with a `problem`, if it asks for what is
/// not read.
std::optional<QuantizationConfig>
readQuantizationConfig(const spec::Value &object, std::string &problem);

/// Reads a hf_quant_config.json, which ModelOpt writes beside config.json.
std::optional<QuantizationConfig> readModelOptFile(const spec::Value &root,
                                                   std::string &problem);

} // namespace attune

#endif // ATTUNE_WEIGHTS_QUANTIZATIONCONFIG_H

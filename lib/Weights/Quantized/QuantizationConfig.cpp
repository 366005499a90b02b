//===- QuantizationConfig.cpp - "quantization_config" -----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Weights/QuantizationConfig.h"

#include <cctype>

namespace attune {

static std::string textOf(const spec::Value &object, const char *key) {
  const spec::Value *value = object.find(key);
  return value && value->isString() ? value->text : "";
}

static int64_t numberOf(const spec::Value &object, const char *key,
                        int64_t otherwise) {
  const spec::Value *value = object.find(key);
  return value && value->kind == spec::Value::Kind::Integer ? value->integer
                                                            : otherwise;
}

static bool flagOf(const spec::Value &object, const char *key, bool otherwise) {
  const spec::Value *value = object.find(key);
  return value && value->kind == spec::Value::Kind::Boolean ? value->boolean
                                                            : otherwise;
}

/// The sizes of a block, which are equal in all that is published.
static bool readBlock(const spec::Value *sizes, QuantizationConfig &config,
                      std::string &problem) {
  auto size = [&](size_t i) {
    const spec::Value &value = sizes->elements[i];
    return value.kind == spec::Value::Kind::Integer ? value.integer : 0;
  };
  if (!sizes || sizes->elements.size() != 2 || size(0) < 1 ||
      size(0) != size(1)) {
    problem = "expected blocks of two equal sizes, as [128, 128]";
    return false;
  }
  config.group = size(0);
  config.square = true;
  return true;
}

/// "config_groups": all that is read has one way for all weights.
static bool readGroups(const spec::Value &object, QuantizationConfig &config,
                       std::string &problem) {
  const spec::Value *groups = object.find("config_groups");
  std::string format = textOf(object, "format");
  if (format != "pack-quantized" && format != "int-quantized" &&
      format != "float-quantized" && format != "naive-quantized") {
    problem = "the format " + spec::quote(format) +
              " of compressed-tensors is not read; pack-quantized, "
              "int-quantized, float-quantized and naive-quantized are";
    return false;
  }
  const spec::Value *sparse = object.find("sparsity_config");
  if (std::string kind = sparse ? textOf(*sparse, "format") : "";
      !kind.empty() && kind != "dense") {
    problem = "sparse weights of the format " + spec::quote(kind) +
              " are not read; dense ones are";
    return false;
  }
  if (!groups || groups->members.size() != 1) {
    problem = "expected one entry in config_groups";
    return false;
  }
  const spec::Value *weights = groups->members[0].value.find("weights");
  if (!weights || !weights->isObject()) {
    problem = "expected an object \"weights\" in config_groups";
    return false;
  }
  config.bits = numberOf(*weights, "num_bits", 8);
  config.group = numberOf(*weights, "group_size", -1);
  std::string strategy = textOf(*weights, "strategy");
  if (strategy == "block" && format != "pack-quantized")
    return readBlock(weights->find("block_structure"), config, problem);
  if (strategy == "channel" || strategy == "tensor")
    config.group = -1;
  else if (strategy != "group")
    problem = "weights with the strategy " + spec::quote(strategy) +
              " are not read; those of tensor, channel and group are, and "
              "blocks of 8 bits";
  // Only packed integers have a place for them.
  else if (!flagOf(*weights, "symmetric", true) && format != "pack-quantized")
    problem = "weights of 8 bits with zero points are not read; symmetric "
              "ones are";
  return problem.empty();
}

static std::string inLowerCase(std::string text) {
  for (char &c : text)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

std::optional<QuantizationConfig>
readQuantizationConfig(const spec::Value &object, std::string &problem) {
  QuantizationConfig config;
  std::string method = inLowerCase(textOf(object, "quant_method"));
  config.bits = numberOf(object, "bits", 4);
  config.group = numberOf(object, "group_size", -1);
  if (method == "gptq") {
    std::string format = textOf(object, "checkpoint_format");
    config.zerosLessOne = format != "gptq_v2";
    if (!format.empty() && format != "gptq" && format != "gptq_v2")
      problem = "the checkpoint_format " + spec::quote(format) +
                " is not read; gptq and gptq_v2 are";
  } else if (method == "awq") {
    config.method = QuantizationMethod::Awq;
    std::string version = inLowerCase(textOf(object, "version"));
    if ((!version.empty() && version != "gemm") || config.bits != 4)
      problem = "AWQ is read in 4 bits and the version gemm";
  } else if (method == "compressed-tensors") {
    config.method = QuantizationMethod::CompressedTensors;
    if (!readGroups(object, config, problem))
      return std::nullopt;
  } else if (method == "fp8") {
    config.method = QuantizationMethod::Fp8;
    config.bits = 8;
    config.group = -1;
    const spec::Value *block = object.find("weight_block_size");
    if (block && block->kind != spec::Value::Kind::Null)
      readBlock(block, config, problem);
  } else if (method == "mxfp4") {
    config.method = QuantizationMethod::Mxfp4;
    config.bits = 4;
    config.group = 32;
  } else {
    problem = (method.empty() ? "\"quant_method\" is missing"
                              : "weights of the method " + spec::quote(method) +
                                    " are not read") +
              std::string("; gptq, awq, compressed-tensors, fp8 and mxfp4 are, "
                          "and folders whose weights are F32, F16 or BF16: "
                          "transformers' model.dequantize() and "
                          "save_pretrained() make one, or take a GGUF file");
  }
  if (problem.empty() && config.bits != 4 && config.bits != 8)
    problem = "weights of " + std::to_string(config.bits) +
              " bits are not read; 4 and 8 are";
  if (problem.empty() &&
      (config.group == 0 || config.group < -1 || config.group > (1 << 20)))
    problem = "groups of " + std::to_string(config.group) +
              " are not read; expected 1 to 1048576, or -1 for whole rows";
  if (!problem.empty())
    return std::nullopt;
  return config;
}

} // namespace attune

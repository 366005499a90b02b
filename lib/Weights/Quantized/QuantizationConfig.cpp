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

/// Whether a value is there and not null, {} or [].
static bool isGiven(const spec::Value *value) {
  using Kind = spec::Value::Kind;
  return value && value->kind != Kind::Null &&
         !((value->kind == Kind::Object || value->kind == Kind::Array) &&
           value->members.empty() && value->elements.empty());
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
  bool pairs = format == "nvfp4-pack-quantized";
  if (format != "pack-quantized" && format != "int-quantized" &&
      format != "float-quantized" && format != "naive-quantized" && !pairs &&
      format != "dense") {
    problem = "the format " + spec::quote(format) +
              " of compressed-tensors is not read; dense, pack-quantized, "
              "int-quantized, float-quantized, naive-quantized and "
              "nvfp4-pack-quantized are";
    return false;
  }
  if (isGiven(object.find("transform_config"))) {
    problem = "rotations of what layers read (transform_config) are not read";
    return false;
  }
  const spec::Value *sparse = object.find("sparsity_config");
  if (std::string kind = sparse ? textOf(*sparse, "format") : "";
      !kind.empty() && kind != "dense") {
    problem = "sparse weights of the format " + spec::quote(kind) +
              " are not read; dense ones are";
    return false;
  }
  if (format == "dense") {
    config.method = QuantizationMethod::Dense;
    return true;
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
  if (pairs) {
    if (config.bits != 4 || strategy != "tensor_group" || config.group != 16)
      problem = "nvfp4-pack-quantized is read in 4 bits, with the strategy "
                "tensor_group and groups of 16";
    return problem.empty();
  }
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

/// bitsandbytes: what a matrix is, its tensors say.
static void readBitsAndBytes(const spec::Value &object,
                             QuantizationConfig &config) {
  config.method = QuantizationMethod::BitsAndBytes;
  config.bits = flagOf(object, "load_in_8bit", false) ? 8 : 4;
  config.group = -1;
}

/// The "quant_algo" of ModelOpt; with MIXED_PRECISION each layer has its own.
static void readModelOpt(const spec::Value &object, QuantizationConfig &config,
                         std::string &problem) {
  config.method = QuantizationMethod::ModelOpt;
  config.group = -1;
  auto check = [&](const spec::Value &holder, const std::string &where) {
    std::string algorithm = textOf(holder, "quant_algo");
    config.bits = algorithm == "NVFP4" ? 4 : 8;
    if (problem.empty() && algorithm != "NVFP4" && algorithm != "FP8" &&
        algorithm != "FP8_PER_CHANNEL_PER_TOKEN")
      problem = "the quant_algo " + spec::quote(algorithm) + where +
                " of ModelOpt is not read; NVFP4, FP8 and "
                "FP8_PER_CHANNEL_PER_TOKEN are";
  };
  const spec::Value *layers = object.find("quantized_layers");
  if (textOf(object, "quant_algo") != "MIXED_PRECISION" || !layers ||
      !layers->isObject())
    return check(object, "");
  for (const spec::Value::Member &layer : layers->members)
    check(layer.value, " of " + spec::quote(layer.key));
}

/// auto-round, which packs as GPTQ or AWQ do.
static void readAutoRound(const spec::Value &object, QuantizationConfig &config,
                          std::string &problem) {
  std::string packing = textOf(object, "packing_format");
  // The first files have the program instead: "auto_round:gptq:exllamav2".
  if (packing.empty()) {
    packing = textOf(object, "backend");
    size_t second = packing.find(':', packing.find(':') + 1);
    packing = packing.substr(0, second);
  }
  if (packing == "auto_round:auto_awq" || packing == "auto_round:awq") {
    config.method = QuantizationMethod::Awq;
    if (config.bits != 4)
      problem = "AWQ's packing is read in 4 bits";
  } else if (packing == "auto_round" || packing == "auto_round:gptqmodel") {
    config.zerosLessOne = false;
  } else if (packing != "auto_round:auto_gptq" &&
             packing != "auto_round:gptq") {
    problem = "the packing_format " + spec::quote(packing) +
              " of auto-round is not read; auto_round, auto_round:gptqmodel, "
              "auto_round:auto_gptq and auto_round:auto_awq are";
  }
  std::string type = textOf(object, "data_type");
  if (problem.empty() && !type.empty() && type != "int")
    problem = "the data_type " + spec::quote(type) +
              " of auto-round is not read; int is";
  if (problem.empty() && isGiven(object.find("spinquant_config")))
    problem = "rotations of what layers read (spinquant_config) are not read";
  // Layers of 16 bits have no packed tensors.
  const spec::Value *layers = object.find("extra_config");
  for (const spec::Value::Member &layer :
       layers && layers->isObject() ? layers->members
                                    : std::vector<spec::Value::Member>())
    if (int64_t bits = numberOf(layer.value, "bits", config.bits);
        problem.empty() && bits < 16 &&
        (bits != config.bits ||
         numberOf(layer.value, "group_size", config.group) != config.group))
      problem = "the layer " + spec::quote(layer.key) +
                " has other bits or groups than the others, which is not read";
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
  } else if (method == "auto-round" || method == "intel/auto-round") {
    readAutoRound(object, config, problem);
  } else if (method == "bitsandbytes" ||
             (method.empty() && (flagOf(object, "load_in_4bit", false) ||
                                 flagOf(object, "load_in_8bit", false)))) {
    readBitsAndBytes(object, config);
  } else if (method == "modelopt" || method == "modelopt_fp4") {
    readModelOpt(object, config, problem);
  } else {
    problem = (method.empty() ? "\"quant_method\" is missing"
                              : "weights of the method " + spec::quote(method) +
                                    " are not read") +
              std::string("; gptq, awq, auto-round, bitsandbytes, "
                          "compressed-tensors, fp8, modelopt and mxfp4 are, "
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

std::optional<QuantizationConfig> readModelOptFile(const spec::Value &root,
                                                   std::string &problem) {
  const spec::Value *object = root.find("quantization");
  QuantizationConfig config;
  if (!object || !object->isObject())
    problem = "expected an object \"quantization\"";
  else if (textOf(*object, "quant_algo").empty())
    config.method = QuantizationMethod::Dense;
  else
    readModelOpt(*object, config, problem);
  if (!problem.empty())
    return std::nullopt;
  return config;
}

} // namespace attune

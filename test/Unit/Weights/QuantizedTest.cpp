//===- QuantizedTest.cpp - Folders that others have quantized -------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Inputs/quantized has a matrix "x.weight" for each method and what it stands
// for by the method's definition, in double precision. They are made by
// "test/lib/quantized_folders.py matrices".
//
//===----------------------------------------------------------------------===//

#include "attune/Weights/Checkpoint.h"
#include "attune/Weights/QuantizationConfig.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

using namespace attune;

namespace {
struct Method {
  const char *name;
  StoredForm form; ///< none: no kernel has such numbers
  const char *type;
};

class Quantized : public testing::TestWithParam<Method> {};
} // namespace

static double knownAt(const CheckpointTensor &tensor, int64_t i) {
  double value;
  std::memcpy(&value, tensor.data + 8 * i, 8);
  return value;
}

/// Of 1 sign, 4 exponent and 3 fraction bits.
static float floatOfByte(uint8_t code) {
  int exponent = code >> 3 & 15, fraction = code & 7;
  float size = exponent ? std::ldexp(float(8 + fraction), exponent - 10)
                        : std::ldexp(float(fraction), -9);
  return code & 128 ? -size : size;
}

static StoredForm ordered(StoredForm form) {
  form.ordered = true;
  return form;
}

TEST_P(Quantized, StandsForTheValuesOfItsDefinition) {
  DiagnosticEngine diags;
  auto checkpoint = Checkpoint::open(
      std::string(ATTUNE_TEST_DIR "/Unit/Weights/Inputs/quantized/") +
          GetParam().name,
      diags);
  ASSERT_TRUE(checkpoint);
  // What it is made of is no tensor of the model.
  ASSERT_EQ(checkpoint->tensors().size(), 2u);
  const CheckpointTensor *tensor = checkpoint->find("x.weight");
  const CheckpointTensor *known = checkpoint->find("values");
  ASSERT_TRUE(tensor && known && tensor->encoding);
  ASSERT_EQ(tensor->shape, known->shape);
  EXPECT_STREQ(tensor->encoding->name(), GetParam().type);
  int64_t count = known->shape[0] * known->shape[1];
  std::vector<float> values(count);
  tensor->encoding->decode(*tensor, 0, count, values.data());
  // Products are rounded once to f32.
  for (int64_t i = 0; i < count; ++i)
    ASSERT_EQ(values[i], static_cast<float>(knownAt(*known, i))) << i;
  // From within a row to within another.
  std::vector<float> part(100);
  tensor->encoding->decode(*tensor, 40, 100, part.data());
  EXPECT_TRUE(std::equal(part.begin(), part.end(), values.begin() + 40));

  StoredForm form = tensor->encoding->form();
  ASSERT_EQ(form, GetParam().form) << form.text();
  std::vector<uint8_t> numbers(form.group);
  const std::vector<int32_t> &order = tensor->encoding->order();
  EXPECT_EQ(form.ordered, !order.empty());
  int64_t columns = known->shape[1];
  const float floats[] = {0, .5, 1, 1.5, 2, 3, 4, 6};
  for (int64_t first = 0; form.bits && first < count; first += form.group) {
    GroupScale by = tensor->encoding->readGroup(*tensor, first, numbers.data());
    for (int64_t i = 0; i < form.group; ++i) {
      float number = numbers[i];
      if (form.byteFloats)
        number = floatOfByte(numbers[i]);
      else if (form.areFloats())
        number = numbers[i] < 8 ? floats[numbers[i]] : -floats[numbers[i] - 8];
      else
        number -= form.zeros ? by.zero : float(form.middle());
      int64_t at = first + i, place = at % columns;
      if (form.ordered)
        at += order[place] - place;
      ASSERT_EQ(by.scale * number, values[at]) << first + i;
    }
  }
}

static const Method methods[] = {
    {"gptq", StoredForm::plain(4, 32), "GPTQ"},
    {"gptq-order", ordered(StoredForm::withZeros(4, 32, ScaleType::Half)),
     "GPTQ"},
    {"gptq-v2-8", StoredForm::withZeros(8, 32, ScaleType::Single), "GPTQ"},
    {"awq", StoredForm::withZeros(4, 32, ScaleType::Half), "AWQ"},
    {"packed4", StoredForm::plain(4, 32), "compressed-tensors"},
    {"packed8", StoredForm::plain(8, 32), "compressed-tensors"},
    {"packed-order", ordered(StoredForm::withZeros(4, 32, ScaleType::Half)),
     "compressed-tensors"},
    {"int8", StoredForm::plain(8, 64), "I8"},
    {"float8", StoredForm::floatsOfBytes(64), "F8_E4M3"},
    {"block8", {}, "F8_E4M3"},
    {"fp8", {}, "F8_E4M3"},
    {"fp8-wide", StoredForm::floatsOfBytes(32), "F8_E4M3"},
    {"mxfp4", StoredForm::floats(), "MXFP4"},
    {"nf4", {}, "NF4"},
    {"fp4", {}, "FP4"},
    {"llm-int8", StoredForm::plain(8, 64), "LLM.int8()"},
    {"nvfp4", {}, "NVFP4"},
    {"nvfp4-packed", {}, "NVFP4"},
    {"fp8-whole", StoredForm::floatsOfBytes(64), "F8_E4M3"},
    {"auto-round", StoredForm::withZeros(4, 32, ScaleType::Half), "GPTQ"},
    {"auto-round-awq", StoredForm::withZeros(4, 32, ScaleType::Half), "AWQ"},
};

INSTANTIATE_TEST_SUITE_P(Methods, Quantized, testing::ValuesIn(methods),
                         [](const auto &info) {
                           std::string name = info.param.name;
                           for (char &c : name)
                             c = c == '-' ? '_' : c;
                           return name;
                         });

static std::string problemOf(const char *text) {
  DiagnosticEngine diags;
  SourceFile file;
  file.text = text;
  auto shared = std::make_shared<const SourceFile>(file);
  spec::LineTable lines(shared);
  spec::Reporter reporter(lines, diags);
  auto value = spec::parseJson(*shared, reporter, spec::JsonDialect::Python);
  EXPECT_TRUE(value) << text;
  std::string problem;
  EXPECT_EQ(value && readQuantizationConfig(*value, problem).has_value(),
            problem.empty())
      << text;
  return problem;
}

TEST(QuantizationConfig, SaysWhatIsNotRead) {
  EXPECT_EQ(problemOf(R"({"quant_method": "gptq", "bits": 8})"), "");
  EXPECT_EQ(problemOf(R"({"quant_method": "mxfp4"})"), "");
  EXPECT_EQ(problemOf(R"({"quant_method": "fp8",
                          "weight_block_size": [128, 128]})"),
            "");
  EXPECT_EQ(problemOf(R"({"quant_method": "bitsandbytes"})"), "");
  EXPECT_EQ(problemOf(R"({"load_in_8bit": true})"), "");
  EXPECT_EQ(problemOf(R"({"quant_method": "modelopt", "quant_algo": "NVFP4"})"),
            "");
  EXPECT_EQ(problemOf(R"({"quant_method": "modelopt",
                          "quant_algo": "MIXED_PRECISION",
                          "quantized_layers": {"a": {"quant_algo": "FP8"}}})"),
            "");
  EXPECT_EQ(problemOf(R"({"quant_method": "compressed-tensors",
                          "format": "dense", "config_groups": {}})"),
            "");
  EXPECT_EQ(problemOf(R"({"quant_method": "auto-round", "bits": 8,
                          "packing_format": "auto_round:auto_gptq"})"),
            "");
  EXPECT_EQ(problemOf(R"({"quant_method": "intel/auto-round",
                          "backend": "auto_round:gptq:exllamav2"})"),
            "");
  const std::pair<const char *, const char *> refused[] = {
      {R"({"quant_method": "gptq", "bits": 3})", "weights of 3 bits"},
      {R"({"quant_method": "gptq", "group_size": 0})", "groups of 0"},
      {R"({"quant_method": "gptq", "checkpoint_format": "marlin"})",
       "checkpoint_format 'marlin'"},
      {R"({"quant_method": "awq", "version": "gemv"})", "version gemm"},
      {R"({"quant_method": "quanto"})", "'quanto' are not read"},
      {R"({})", "gptq, awq, auto-round, bitsandbytes, compressed-tensors, fp8, "
                "modelopt and mxfp4 are"},
      {R"({"quant_method": "modelopt", "quant_algo": "W4A16_AWQ"})",
       "the quant_algo 'W4A16_AWQ' of ModelOpt"},
      {R"({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION",
           "quantized_layers": {"a.b": {"quant_algo": "W4A8_AWQ"}}})",
       "the quant_algo 'W4A8_AWQ' of 'a.b' of ModelOpt"},
      {R"({"quant_method": "auto-round", "packing_format": "auto_round:fp8"})",
       "the packing_format 'auto_round:fp8'"},
      {R"({"quant_method": "auto-round"})", "the packing_format ''"},
      {R"({"quant_method": "auto-round", "packing_format": "auto_round",
           "spinquant_config": {"r1": true}})",
       "spinquant_config"},
      {R"({"quant_method": "compressed-tensors", "format": "pack-quantized",
           "transform_config": {"config_groups": {}}})",
       "transform_config"},
      {R"({"quant_method": "auto-round", "packing_format": "auto_round",
           "data_type": "mx_fp"})",
       "the data_type 'mx_fp'"},
      {R"({"quant_method": "auto-round", "packing_format": "auto_round",
           "bits": 4, "extra_config": {"a.b": {"bits": 8}}})",
       "the layer 'a.b' has other bits"},
      {R"({"quant_method": "auto-round", "bits": 8,
           "packing_format": "auto_round:auto_awq"})",
       "AWQ's packing is read in 4 bits"},
      {R"({"quant_method": "compressed-tensors",
           "format": "nvfp4-pack-quantized", "config_groups": {"a":
           {"weights": {"num_bits": 4, "strategy": "group",
                        "group_size": 16}}}})",
       "with the strategy tensor_group"},
      {R"({"quant_method": "fp8", "weight_block_size": [128, 64]})",
       "two equal sizes"},
      {R"({"quant_method": "fp8", "weight_block_size": "a"})",
       "two equal sizes"},
      {R"({"quant_method": "compressed-tensors", "format": "marlin-24"})",
       "'marlin-24'"},
      {R"({"quant_method": "compressed-tensors", "format": "pack-quantized",
           "config_groups": {}})",
       "one entry in config_groups"},
      {R"({"quant_method": "compressed-tensors", "format": "pack-quantized",
           "config_groups": {"a": {"weights": {"strategy": "odd"}}}})",
       "strategy 'odd'"},
      {R"({"quant_method": "compressed-tensors", "format": "int-quantized",
           "sparsity_config": {"format": "sparse-bitmask"}})",
       "'sparse-bitmask'"},
  };
  for (const auto &[text, expected] : refused)
    EXPECT_NE(problemOf(text).find(expected), std::string::npos)
        << text << "\ngave " << problemOf(text);
}

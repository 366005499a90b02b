//===- GgufTest.cpp - Blocks of GGUF --------------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Inputs/blocks.gguf has blocks of every type and Inputs/blocks.safetensors
// what they stand for by the types' definitions, in double precision. Both are
// made by "test/lib/gguf.py blocks". Inputs/rows.gguf has every row of every
// table, and Inputs/rows.safetensors FNV-1a of the values ("gguf.py rows").
//
//===----------------------------------------------------------------------===//

#include "attune/Weights/Checkpoint.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

using namespace attune;

namespace {
class GgufBlocks : public testing::Test {
protected:
  void SetUp() override {
    const std::string inputs = ATTUNE_TEST_DIR "/Unit/Import/Inputs/";
    checkpoint = Checkpoint::open(inputs + "blocks.gguf", diags);
    ASSERT_TRUE(checkpoint);
    std::string error;
    ASSERT_TRUE(known.open(inputs + "blocks.safetensors", error)) << error;
  }

  DiagnosticEngine diags;
  std::optional<Checkpoint> checkpoint;
  runtime::SafetensorsFile known;
};
} // namespace

static double knownAt(const runtime::TensorInfo &info, int64_t i) {
  double value;
  std::memcpy(&value, info.data + 8 * i, 8);
  return value;
}

static bool isSmall(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return (bits & 0xffff) == 0;
}

// Sums are rounded once to f32; everything else is exact.
TEST_F(GgufBlocks, StandForTheValuesOfTheirDefinition) {
  int encoded = 0;
  for (const runtime::TensorInfo &info : known.tensors()) {
    const CheckpointTensor *tensor = checkpoint->find(info.name);
    ASSERT_TRUE(tensor) << info.name;
    EXPECT_EQ(tensor->shape, info.shape);
    if (!tensor->encoding)
      continue;
    ++encoded;
    auto count = static_cast<int64_t>(info.bytes / 8);
    std::vector<float> values(count);
    tensor->encoding->decode(*tensor, 0, count, values.data());
    for (int64_t i = 0; i < count; ++i) {
      ASSERT_EQ(values[i], static_cast<float>(knownAt(info, i)))
          << info.name << " value " << i;
      if (tensor->dtype == runtime::DType::BF16) {
        EXPECT_TRUE(isSmall(values[i]));
      }
    }
  }
  EXPECT_EQ(encoded, 29);
}

TEST(GgufRows, StandForTheValuesOfTheirTables) {
  const std::string inputs = ATTUNE_TEST_DIR "/Unit/Import/Inputs/";
  DiagnosticEngine diags;
  std::optional<Checkpoint> checkpoint =
      Checkpoint::open(inputs + "rows.gguf", diags);
  ASSERT_TRUE(checkpoint);
  runtime::SafetensorsFile known;
  std::string error;
  ASSERT_TRUE(known.open(inputs + "rows.safetensors", error)) << error;
  ASSERT_EQ(known.tensors().size(), 7u);
  for (const runtime::TensorInfo &info : known.tensors()) {
    const CheckpointTensor *tensor = checkpoint->find(info.name);
    ASSERT_TRUE(tensor && tensor->encoding) << info.name;
    std::vector<float> values(tensor->shape[0] * tensor->shape[1]);
    tensor->encoding->decode(*tensor, 0, int64_t(values.size()), values.data());
    uint64_t hash = 0xcbf29ce484222325u, expected;
    for (float value : values) {
      uint32_t bits;
      std::memcpy(&bits, &value, 4);
      for (int i = 0; i < 32; i += 8)
        hash = (hash ^ (bits >> i & 255)) * 0x100000001b3u;
    }
    std::memcpy(&expected, info.data, 8);
    EXPECT_EQ(hash, expected) << info.name;
  }
}

TEST_F(GgufBlocks, DecodeFromAnyValueOn) {
  for (const auto &[name, tensor] : checkpoint->tensors()) {
    if (!tensor->encoding)
      continue;
    int64_t count = tensor->shape[0] * tensor->shape[1];
    std::vector<float> whole(count), part(count);
    tensor->encoding->decode(*tensor, 0, count, whole.data());
    for (int64_t first : {int64_t(1), int64_t(31), count / 2, count - 1}) {
      tensor->encoding->decode(*tensor, first, count - first, part.data());
      for (int64_t i = first; i < count; ++i)
        ASSERT_EQ(part[i - first], whole[i]) << name << " from " << first;
    }
  }
}

static double valueOf(const StoredForm &form, GroupScale by, uint8_t number) {
  const double floats[] = {0, .5, 1, 1.5, 2, 3, 4, 6};
  if (form.areFloats())
    return by.scale * (number < 8 ? floats[number] : -floats[number - 8]);
  return by.scale *
         (double(number) - (form.zeros ? by.zero : double(form.middle())));
}

// What kernels take as it is: numbers times the scale of their group, less the
// zero point, which is a quotient that is rounded once.
TEST_F(GgufBlocks, GiveNumbersAndScales) {
  int forms = 0;
  for (const auto &[name, tensor] : checkpoint->tensors()) {
    if (!tensor->encoding || !tensor->encoding->form().bits)
      continue;
    ++forms;
    StoredForm form = tensor->encoding->form();
    EXPECT_GE(form.group, 16);
    int64_t count = tensor->shape[0] * tensor->shape[1];
    std::vector<float> values(count);
    tensor->encoding->decode(*tensor, 0, count, values.data());
    for (int64_t first = 0; first < count; first += form.group) {
      uint8_t numbers[32];
      GroupScale by = tensor->encoding->readGroup(*tensor, first, numbers);
      double rounding =
          form.zeros ? std::ldexp(std::fabs(by.scale * by.zero), -23) : 0;
      // Of scales of f32 products are rounded, too.
      bool exact = name != "Q8_K.weight";
      for (int64_t i = 0; i < form.group; ++i) {
        EXPECT_NEAR(valueOf(form, by, numbers[i]), values[first + i],
                    exact ? rounding
                          : std::ldexp(std::fabs(values[first + i]), -24))
            << name;
        EXPECT_LT(numbers[i], 1 << form.bits);
      }
    }
  }
  EXPECT_EQ(forms, 24);
}

// Scales in two levels are exactly what the block's formula says.
TEST_F(GgufBlocks, GiveScalesInTwoLevels) {
  int forms = 0;
  for (const auto &[name, tensor] : checkpoint->tensors()) {
    if (!tensor->encoding || !tensor->encoding->form().hasByteScales())
      continue;
    ++forms;
    StoredForm form = tensor->encoding->form();
    int64_t count = tensor->shape[0] * tensor->shape[1];
    std::vector<float> values(count);
    tensor->encoding->decode(*tensor, 0, count, values.data());
    for (int64_t first = 0; first < count; first += form.group) {
      uint8_t numbers[32];
      tensor->encoding->readGroup(*tensor, first, numbers);
      GroupLevels by = tensor->encoding->readLevels(*tensor, first);
      double scale = double(by.factor) * by.steps,
             least = double(by.leastFactor) * by.leastSteps;
      EXPECT_EQ(float(scale), scale);
      for (int64_t i = 0; i < form.group; ++i)
        EXPECT_EQ(float(form.zeros
                            ? scale * numbers[i] - least
                            : scale * (numbers[i] - double(form.middle()))),
                  values[first + i])
            << name;
    }
  }
  EXPECT_EQ(forms, 5);
}

//===- NumbersTest.cpp - Numbers of a checkpoint in packed weights --------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Weights/WeightFile.h"

#include "../Import/Files.h"
#include "Attune/AttuneDialect.h"

#include "mlir/Parser/Parser.h"

#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>

using namespace attune;
using namespace attune::test;
using namespace mlir;
using runtime::DType;

namespace {
struct Numbers : testing::Test {
  Numbers() { context.loadDialect<AttuneDialect>(); }

  void parse(const std::string &text) {
    module = parseSourceString<ModuleOp>(text, &context);
    ASSERT_TRUE(module) << text;
  }
  /// Opens a checkpoint of these tensors; those without numbers hold zeros.
  void write(const std::vector<runtime::TensorDecl> &decls,
             const std::vector<const void *> &numbers) {
    runtime::SafetensorsWriter writer;
    std::string error;
    ASSERT_TRUE(writer.create(folder / "model.safetensors", decls, error));
    for (size_t i = 0; i < numbers.size(); ++i)
      std::memcpy(writer.data(i), numbers[i], writer.bytes(i));
    ASSERT_TRUE(writer.commit(error));
    checkpoint = Checkpoint::open(folder.str(), diags);
    ASSERT_TRUE(checkpoint) << diags.all();
  }
  /// With these values, of f32.
  struct Values {
    const char *name;
    std::vector<int64_t> shape;
    std::vector<float> values;
  };
  void openValues(const std::vector<Values> &tensors) {
    std::vector<runtime::TensorDecl> decls;
    std::vector<const void *> numbers;
    for (const Values &tensor : tensors) {
      decls.push_back({tensor.name, DType::F32, tensor.shape});
      numbers.push_back(tensor.values.data());
    }
    write(decls, numbers);
  }
  std::vector<uint8_t> pack() {
    auto layout = layoutWeights(*module);
    EXPECT_TRUE(succeeded(layout));
    std::vector<uint8_t> blob(layout->totalBytes);
    EXPECT_TRUE(packWeights(*module, {&*checkpoint}, blob.data(), diags))
        << diags.all();
    return blob;
  }

  MLIRContext context;
  TempFolder folder;
  Recorder diags;
  OwningOpRef<ModuleOp> module;
  std::optional<Checkpoint> checkpoint;
};
} // namespace

/// How often `what` is in `text`.
static size_t countOf(const std::string &text, const std::string &what) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; ++at)
    ++count;
  return count;
}

TEST_F(Numbers, NamesTensorsThatAreNotFinite) {
  parse(R"(
    attune.weight @same : tensor<2x3xf32> from [#attune.source<"nan">]
    attune.weight @again : tensor<2x3xbf16> from [#attune.source<"nan">]
    attune.weight @panels panels 16 : tensor<1x3x16xf32>
        from [#attune.source<"inf", transposed>]
    attune.weight @bytes : tensor<1x32xi8> from [#attune.source<"rounded">]
        {attune.group = 32 : i64}
    attune.weight @bytes.scales : tensor<1x1xf32>
        from [#attune.source<"rounded">] {attune.group = 32 : i64}
    attune.weight @mask : tensor<3xf32> from [#attune.source<"mask">]
    attune.weight @bias : tensor<3xf32> from [#attune.source<"bias">]
    attune.weight @fine : tensor<2x3xf32> from [#attune.source<"fine">]
  )");
  std::vector<float> rounded(32, 1);
  rounded[5] = -NAN;
  openValues({{"nan", {2, 3}, {1, 2, 3, 4, NAN, INFINITY}},
              {"inf", {3, 2}, {1, -INFINITY, 3, 4, 5, 6}},
              {"rounded", {1, 32}, rounded},
              {"mask", {3}, {0, -INFINITY, -INFINITY}},
              {"bias", {3}, {0, -INFINITY, NAN}},
              {"fine", {2, 3}, {0, -1e38f, 3e38f, 1e-45f, 5, 6}}});
  pack();
  std::string said = diags.all();
  EXPECT_TRUE(
      diags.saw({"tensor 'nan'", "holds NaN at [1, 1]; 2 of its values "
                                 "are not finite; the outputs will be NaN"}))
      << said;
  EXPECT_TRUE(diags.saw({"tensor 'inf'", "holds infinity at [0, 1]; 1 of"}))
      << said;
  EXPECT_TRUE(diags.saw({"tensor 'rounded'", "holds NaN at [0, 5]; 1 of"}))
      << said;
  EXPECT_TRUE(diags.saw({"tensor 'bias'", "holds infinity at [1]; 2 of"}))
      << said;
  EXPECT_EQ(countOf(said, "not finite"), 4u) << said;
}

TEST_F(Numbers, NamesTenSuchTensors) {
  std::string text;
  std::vector<Values> tensors;
  std::vector<std::string> names;
  for (int i = 0; i < 12; ++i)
    names.push_back("t" + std::to_string(i));
  for (const std::string &name : names) {
    text += "attune.weight @" + name +
            " : tensor<1xf32> from [#attune.source<"
            "\"" +
            name + "\">]\n";
    tensors.push_back({name.c_str(), {1}, {NAN}});
  }
  parse(text);
  openValues(tensors);
  pack();
  EXPECT_EQ(countOf(diags.all(), "holds NaN at [0]"), 10u) << diags.all();
  EXPECT_TRUE(diags.saw({"2 more tensors hold values that are not finite"}));
}

// A group that is copied as it is has a zero point, too.
TEST_F(Numbers, NamesLeastValuesThatAreNotFinite) {
  const std::string whole = ATTUNE_TEST_DIR "/Unit/Import/Inputs/blocks.gguf";
  const std::string name = "Q5_1.weight";
  checkpoint = Checkpoint::open(whole, diags);
  ASSERT_TRUE(checkpoint && checkpoint->find(name)) << diags.all();
  std::ifstream in(whole, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  // Behind the scale of the first block: a NaN of f16.
  bytes.replace(checkpoint->find(name)->offset + 2, 2, "\x01\x7e");
  folder.write("model.gguf", bytes);
  checkpoint = Checkpoint::open(folder / "model.gguf", diags);
  ASSERT_TRUE(checkpoint) << diags.all();
  parse(R"(
    attune.weight @w : tensor<2x32xi8> from [#attune.source<"Q5_1.weight">]
        {attune.group = 32 : i64, attune.zeros}
    attune.weight @w.scales : tensor<2x2xf32>
        from [#attune.source<"Q5_1.weight">]
        {attune.group = 32 : i64, attune.zeros}
  )");
  pack();
  EXPECT_TRUE(diags.saw({"tensor 'Q5_1.weight'", "holds NaN at [0, 0]; 32 of"}))
      << diags.all();
}

TEST_F(Numbers, NamesDoublesThatDoNotFit) {
  parse("attune.weight @f : tensor<2xf32> from [#attune.source<\"d\">]");
  double numbers[2] = {1, 1e300};
  write({{"d", DType::F64, {2}}}, {numbers});
  pack();
  EXPECT_TRUE(diags.saw({"holds 1e+300 at [1], which does not fit f32; 1 of"}))
      << diags.all();
}

TEST_F(Numbers, ReadsDoubles) {
  parse(R"(
    attune.weight @f : tensor<3xf32> from [#attune.source<"d">]
    attune.weight @b : tensor<3xbf16> from [#attune.source<"d">]
    attune.weight @p panels 16 : tensor<1x3x16xf32>
        from [#attune.source<"m", transposed>]
  )");
  // The first is between two numbers of f32, and nearer to the upper one.
  double numbers[3] = {1.0 + 0x1.8p-24, -3.25, 1e-300};
  std::vector<runtime::TensorDecl> decls = {{"d", DType::F64, {3}},
                                            {"m", DType::F64, {3, 1}},
                                            {"places", DType::I64, {2}}};
  write(decls, {numbers, numbers});
  EXPECT_TRUE(checkWeights(*module, *checkpoint, diags)) << diags.all();
  ASSERT_TRUE(checkFinite(*checkpoint, diags));
  std::vector<uint8_t> blob = pack();
  auto layout = layoutWeights(*module);
  auto at = [&](const char *name, size_t byte) {
    return blob.data() + layout->lookup(name)->getLayerOffset(0) + byte;
  };
  float f[3];
  std::memcpy(f, at("f", 0), sizeof f);
  EXPECT_EQ(f[0], 1 + 0x1p-23f);
  EXPECT_EQ(f[1], -3.25f);
  EXPECT_EQ(f[2], 0.0f);
  uint16_t b[3];
  std::memcpy(b, at("b", 0), sizeof b);
  EXPECT_EQ(b[0], 0x3f80);
  EXPECT_EQ(b[1], 0xc050);
  for (size_t i = 0; i < 3; ++i) {
    float p;
    std::memcpy(&p, at("p", i * 16 * sizeof(float)), sizeof p);
    EXPECT_EQ(p, f[i]);
  }
}

//===- WeightFileTest.cpp - Packed weights against a plain loop -----------===//
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
#include <cstdlib>
#include <fstream>
#include <set>

using namespace attune;
using namespace attune::test;
using namespace mlir;
using runtime::DType;
// MLIR has a Tensor of its own.
using TestTensor = attune::test::Tensor;

namespace {
struct WeightFile : testing::Test {
  WeightFile() { context.loadDialect<AttuneDialect>(); }

  void parse(const std::string &text) {
    module = parseSourceString<ModuleOp>(text, &context);
    ASSERT_TRUE(module) << text;
  }
  void open(const std::vector<TestTensor> &tensors) {
    writeTensors(folder / "model.safetensors", tensors);
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
    for (const Values &tensor : tensors)
      decls.push_back({tensor.name, DType::F32, tensor.shape});
    runtime::SafetensorsWriter writer;
    std::string error;
    ASSERT_TRUE(writer.create(folder / "model.safetensors", decls, error));
    for (size_t i = 0; i < tensors.size(); ++i)
      std::memcpy(writer.data(i), tensors[i].values.data(),
                  tensors[i].values.size() * sizeof(float));
    ASSERT_TRUE(writer.commit(error));
    checkpoint = Checkpoint::open(folder.str(), diags);
    ASSERT_TRUE(checkpoint) << diags.all();
  }
  std::vector<uint8_t> pack(unsigned threads = 1, uint64_t seed = 0) {
    auto layout = layoutWeights(*module);
    EXPECT_TRUE(succeeded(layout));
    std::vector<uint8_t> blob(layout->totalBytes, 0xee);
    WeightValues values;
    values.checkpoint = checkpoint ? &*checkpoint : nullptr;
    values.threads = threads;
    values.seed = seed;
    uint64_t told = 0;
    values.progress = [&](uint64_t done, uint64_t total) {
      EXPECT_GE(done, told);
      EXPECT_LE(done, total);
      EXPECT_EQ(total, blob.size());
      told = done;
    };
    auto report = packWeights(*module, values, blob.data(), diags);
    EXPECT_TRUE(report) << diags.all();
    if (!report)
      return {};
    EXPECT_EQ(report->bytes, blob.size());
    return blob;
  }
  /// The value of element (row, column) of one layer, from the checkpoint.
  float source(WeightOp weight, int64_t layer, int64_t row, int64_t column) {
    for (auto piece : weight.getSources().getAsRange<WeightSourceAttr>()) {
      const runtime::TensorInfo *info =
          checkpoint->find(substituteLayer(piece.getTensor().str(), layer));
      bool transposed = piece.getTransposed() && info->shape.size() == 2;
      int64_t rows = transposed ? info->shape[1] : info->shape[0];
      int64_t columns = info->shape.size() == 1 ? 1
                        : transposed            ? info->shape[0]
                                                : info->shape[1];
      int64_t end = piece.getEnd() < 0 ? rows : piece.getEnd();
      int64_t count = end - piece.getBegin();
      if (row >= count) {
        row -= count;
        continue;
      }
      int64_t r = row + piece.getBegin();
      int64_t at = transposed ? column * rows + r : r * columns + column;
      float value = 0;
      runtime::convertElements(
          info->dtype, info->data + at * runtime::dtypeBytes(info->dtype),
          DType::F32, &value, 1);
      return value;
    }
    return 0; // padding
  }
  int64_t sourceRows(WeightOp weight) {
    int64_t rows = 0;
    while (source(weight, 0, rows, 0) != 0)
      ++rows;
    return rows;
  }
  /// The blob as the documentation of the ops describes it, value by value.
  std::vector<uint8_t> reference() {
    auto layout = layoutWeights(*module);
    std::vector<uint8_t> blob(layout->totalBytes, 0);
    for (auto weight : module->getOps<WeightOp>()) {
      const WeightPlace &place = *layout->lookup(weight.getSymName());
      Type element = weight.getLayerType().getElementType();
      DType dtype = element.isF32()   ? DType::F32
                    : element.isF16() ? DType::F16
                                      : DType::BF16;
      auto shape = weight.getLayerType().getShape();
      int64_t width = weight.getPanelWidth().value_or(0);
      int64_t half = sourceRows(weight) / 2;
      for (int64_t layer = 0; layer < place.numLayers; ++layer) {
        uint8_t *out = blob.data() + place.getLayerOffset(layer);
        auto put = [&](int64_t row, int64_t limit, int64_t column) {
          float value = row < limit ? source(weight, layer, row, column) : 0;
          runtime::convertElements(DType::F32, &value, dtype, out, 1);
          out += runtime::dtypeBytes(dtype);
        };
        constexpr int64_t all = int64_t(1) << 40;
        int64_t columns = shape.size() > 1 ? shape[1] : 1;
        if (!width) {
          for (int64_t r = 0; r < shape[0]; ++r)
            for (int64_t k = 0; k < columns; ++k)
              put(r, all, k);
          continue;
        }
        columns = shape.size() == 3 ? shape[1] : 1;
        for (int64_t p = 0; p < shape[0]; ++p)
          for (int64_t k = 0; k < columns; ++k)
            for (int64_t r = 0; r < width; ++r) {
              if (!weight.getGated())
                put(p * width + r, all, k);
              else if (p % 2 == 0)
                put(p / 2 * width + r, half, k);
              else if (p / 2 * width + r < half)
                put(half + p / 2 * width + r, all, k);
              else
                put(0, 0, k);
            }
      }
    }
    return blob;
  }
  void expectReference() {
    std::vector<uint8_t> expected = reference();
    EXPECT_EQ(pack(1), expected);
    EXPECT_EQ(pack(2), expected);
    EXPECT_EQ(diags.all(), "");
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  TempFolder folder;
  std::optional<Checkpoint> checkpoint;
  Recorder diags;
};
} // namespace

//===----------------------------------------------------------------------===//
// Layout
//===----------------------------------------------------------------------===//

TEST_F(WeightFile, Layout) {
  parse(R"(
    attune.weight @a : tensor<3x5xf32> from [#attune.source<"a">]
    attune.weight @b stacked : tensor<4x7xbf16> from [#attune.source<"b.{i}">]
    attune.weight @c : tensor<2x3x16xf16> from [#attune.source<"c">]
  )");
  auto layout = layoutWeights(*module);
  ASSERT_TRUE(succeeded(layout));
  const WeightPlace &a = *layout->lookup("a");
  EXPECT_EQ(a.offset, 0);
  EXPECT_EQ(a.layerBytes, 60);
  EXPECT_EQ(a.totalBytes, 64);
  const WeightPlace &b = *layout->lookup("b");
  EXPECT_EQ(b.offset, 64);
  EXPECT_EQ(b.layerBytes, 14);
  EXPECT_EQ(b.layerStride, 64);
  EXPECT_EQ(b.numLayers, 4);
  EXPECT_EQ(b.getLayerOffset(3), 64 + 3 * 64);
  EXPECT_EQ(layout->lookup("c")->offset, 64 + 4 * 64);
  EXPECT_EQ(layout->totalBytes, 64 + 256 + 192);
  EXPECT_FALSE(layout->lookup("d"));
}

TEST_F(WeightFile, LayoutTooLarge) {
  parse(R"(
    attune.weight @a : tensor<4000000000x4000000000xf32>
        from [#attune.source<"a">]
  )");
  std::string message;
  ScopedDiagnosticHandler handler(
      &context, [&](mlir::Diagnostic &diag) { message = diag.str(); });
  EXPECT_TRUE(failed(layoutWeights(*module)));
  EXPECT_NE(message.find("larger than any file"), std::string::npos) << message;
}

//===----------------------------------------------------------------------===//
// Packing
//===----------------------------------------------------------------------===//

TEST_F(WeightFile, RowMajor) {
  parse(R"(
    attune.weight @plain : tensor<70x131xf32> from [#attune.source<"a">]
    attune.weight @conv : tensor<131x70xf32> from [#attune.source<"a", transposed>]
    attune.weight @vector : tensor<9xf32> from [#attune.source<"v">]
    attune.weight @cut : tensor<50x131xf32> from [#attune.source<"a", rows = 7 to 57>]
    attune.weight @convcut : tensor<100x70xf32>
        from [#attune.source<"a", transposed, rows = 30 to 130>]
    attune.weight @image : tensor<4x2x3xf32> from [#attune.source<"i">]
  )");
  open({{"a", {70, 131}, DType::F32, 1},
        {"v", {9}, DType::F32, 5},
        {"i", {4, 2, 3}, DType::F32, 9}});
  std::vector<uint8_t> blob = pack(2);
  module->lookupSymbol("image")->erase(); // the reference knows two dimensions
  std::vector<uint8_t> expected = reference();
  ASSERT_GT(blob.size(), expected.size());
  EXPECT_EQ(std::memcmp(blob.data() + expected.size(),
                        checkpoint->find("i")->data, 96),
            0);
  blob.resize(expected.size());
  EXPECT_EQ(blob, expected);
}

TEST_F(WeightFile, Panels) {
  parse(R"(
    attune.weight @whole panels 16 : tensor<4x33x16xf32> from [#attune.source<"a">]
    attune.weight @padded panels 32 : tensor<3x64x32xf32> from [#attune.source<"b">]
    attune.weight @conv panels 32 : tensor<3x64x32xf32>
        from [#attune.source<"c", transposed>]
    attune.weight @bias panels 32 : tensor<3x32xf32> from [#attune.source<"v">]
    attune.weight @wide panels 128 : tensor<1x64x128xf32> from [#attune.source<"b">]
  )");
  open({{"a", {64, 33}, DType::F32, 1},
        {"b", {70, 64}, DType::F32, 1},
        {"c", {64, 70}, DType::F32, 1},
        {"v", {70}, DType::F32, 1}});
  expectReference();
}

// Columns are multiplied by gains, of their own layer, when rows become panels
// and when they do not.
TEST_F(WeightFile, Gains) {
  parse(R"(
    attune.weight @g stacked : tensor<2x3xf32> from [#attune.source<"g{i}">]
    attune.weight @panels stacked panels 2 : tensor<2x2x3x2xf32>
        from [#attune.source<"w{i}">] gain @g gain_offset 1.0
    attune.weight @rows stacked : tensor<2x3x3xf32>
        from [#attune.source<"w{i}">] gain @g gain_offset 1.0
  )");
  std::vector<Values> tensors;
  for (const char *name : {"w0", "w1"})
    tensors.push_back({name, {3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9}});
  tensors.push_back({"g0", {3}, {9, 99, 999}});
  tensors.push_back({"g1", {3}, {-1, 0, 1}});
  openValues(tensors);
  auto layout = layoutWeights(*module);
  for (unsigned threads : {1, 2}) {
    std::vector<uint8_t> blob = pack(threads);
    auto read = [&](const char *name, int64_t layer, int64_t count) {
      std::vector<float> values(count);
      std::memcpy(values.data(),
                  blob.data() + layout->lookup(name)->getLayerOffset(layer),
                  count * sizeof(float));
      return values;
    };
    EXPECT_EQ(read("g", 1, 3), (std::vector<float>{-1, 0, 1}));
    EXPECT_EQ(read("panels", 0, 12),
              (std::vector<float>{10, 40, 200, 500, 3000, 6000, 70, 0, 800, 0,
                                  9000, 0}));
    EXPECT_EQ(read("panels", 1, 12),
              (std::vector<float>{0, 0, 2, 5, 6, 12, 0, 0, 8, 0, 18, 0}));
    EXPECT_EQ(read("rows", 1, 9),
              (std::vector<float>{0, 2, 6, 0, 5, 12, 0, 8, 18}));
  }
}

TEST_F(WeightFile, Stacked) {
  parse(R"(
    attune.weight @qkv stacked panels 16 : tensor<3x3x20x16xf32>
        from [#attune.source<"h.{i}.q">, #attune.source<"h.{i}.k">,
              #attune.source<"h.{i}.v">]
    attune.weight @gpt stacked panels 8 : tensor<3x5x10x8xf32>
        from [#attune.source<"h.{i}.c", transposed, rows = 0 to 30>,
              #attune.source<"h.{i}.c", transposed, rows = 30 to 40>]
    attune.weight @norm stacked : tensor<3x5xf32> from [#attune.source<"h.{i}.n">]
  )");
  std::vector<TestTensor> tensors;
  for (int i = 0; i < 3; ++i) {
    std::string h = "h." + std::to_string(i) + ".";
    float first = 1 + 10000.0f * i;
    tensors.push_back({h + "q", {20, 20}, DType::F32, first});
    tensors.push_back({h + "k", {13, 20}, DType::F32, first + 1000});
    tensors.push_back({h + "v", {14, 20}, DType::F32, first + 2000});
    tensors.push_back({h + "c", {10, 40}, DType::F32, first + 3000});
    tensors.push_back({h + "n", {5}, DType::F32, first + 4000});
  }
  open(tensors);
  expectReference();
}

TEST_F(WeightFile, Gated) {
  // 20 + 20 rows: each half fills two panels of 16, the second with padding.
  parse(R"(
    attune.weight @gate_up gated panels 16 : tensor<4x6x16xf32>
        from [#attune.source<"gate">, #attune.source<"up">]
    attune.weight @bias gated panels 16 : tensor<4x16xf32>
        from [#attune.source<"gate_b">, #attune.source<"up_b">]
    attune.weight @whole gated panels 4 : tensor<10x6x4xf32>
        from [#attune.source<"gate">, #attune.source<"up">]
  )");
  open({{"gate", {20, 6}, DType::F32, 1},
        {"up", {20, 6}, DType::F32, 1001},
        {"gate_b", {20}, DType::F32, 1},
        {"up_b", {20}, DType::F32, 1001}});
  expectReference();
}

TEST_F(WeightFile, GatedHalvesMustBeEqual) {
  parse(R"(
    attune.weight @w gated panels 16 : tensor<4x6x16xf32> from [#attune.source<"w">]
  )");
  open({{"w", {39, 6}}});
  std::vector<uint8_t> blob(layoutWeights(*module)->totalBytes);
  ScopedDiagnosticHandler handler(&context, [](mlir::Diagnostic &) {});
  EXPECT_FALSE(packWeights(*module, {&*checkpoint, 0, 1}, blob.data(), diags));
}

TEST_F(WeightFile, Types) {
  for (const char *storage : {"f32", "f16", "bf16"})
    for (DType dtype : {DType::F32, DType::F16, DType::BF16}) {
      SCOPED_TRACE(storage + std::string(" from ") + runtime::dtypeName(dtype));
      std::string text = R"(
        attune.weight @p panels 16 : tensor<3x67x16xT> from [#attune.source<"a">]
        attune.weight @c panels 16 : tensor<5x40x16xT>
            from [#attune.source<"a", transposed>]
        attune.weight @r : tensor<40x67xT> from [#attune.source<"a">]
        attune.weight @t : tensor<67x40xT> from [#attune.source<"a", transposed>]
      )";
      for (size_t at; (at = text.find("xT>")) != std::string::npos;)
        text.replace(at + 1, 1, storage);
      parse(text);
      open({{"a", {40, 67}, dtype, 1}});
      expectReference();
    }
}

/// The 16-bit patterns of one type, all of them.
static void writeAllPatterns(const std::string &path, DType dtype) {
  runtime::SafetensorsWriter writer;
  std::string error;
  ASSERT_TRUE(writer.create(path, {{"all", dtype, {65536}}}, error)) << error;
  for (uint32_t i = 0; i < 65536; ++i) {
    auto bits = static_cast<uint16_t>(i);
    std::memcpy(writer.data(0) + i * 2, &bits, 2);
  }
  ASSERT_TRUE(writer.commit(error)) << error;
}

TEST_F(WeightFile, WideningIsExact) {
  parse("attune.weight @w : tensor<65536xf32> from [#attune.source<\"all\">]");
  for (DType dtype : {DType::F16, DType::BF16}) {
    writeAllPatterns(folder / "model.safetensors", dtype);
    checkpoint = Checkpoint::open(folder.str(), diags);
    ASSERT_TRUE(checkpoint);
    std::vector<uint8_t> blob = pack();
    for (uint32_t i = 0; i < 65536; ++i) {
      float got, want;
      std::memcpy(&got, blob.data() + i * 4, 4);
      want = dtype == DType::F16 ? runtime::halfToFloat(uint16_t(i))
                                 : runtime::bfloatToFloat(uint16_t(i));
      if (std::isnan(want))
        EXPECT_TRUE(std::isnan(got)) << i;
      else
        EXPECT_EQ(std::memcmp(&got, &want, 4), 0) << i;
    }
  }
}

TEST_F(WeightFile, NarrowingRoundsToNearestEven) {
  parse(R"(
    attune.weight @b : tensor<8xbf16> from [#attune.source<"x">]
    attune.weight @h : tensor<8xf16> from [#attune.source<"x">]
  )");
  std::vector<float> inputs = {1.00390625f, 1.01171875f, -1.00390625f,
                               1.00390637f, INFINITY,    NAN,
                               70000.0f,    1e-8f};
  uint16_t bf16[8] = {0x3f80, 0x3f82, 0xbf80, 0x3f81,
                      0x7f80, 0x7fc0, 0x4789, 0x322c};
  openValues({{"x", {8}, inputs}});
  std::vector<uint8_t> blob = pack();
  for (int i = 0; i < 8; ++i) {
    uint16_t got;
    std::memcpy(&got, blob.data() + 2 * i, 2);
    EXPECT_EQ(got, bf16[i]) << inputs[i];
  }
  // 70000 is no f16; infinity was infinite before.
  EXPECT_TRUE(diags.saw({"weight 'h' has values beyond the range of f16"}));
  EXPECT_FALSE(diags.saw({"weight 'b'"}));
}

// Bytes of four columns side by side, and scales, of gated rows of a transposed
// tensor; padding is a zero, which is 128, and has no scale.
TEST_F(WeightFile, Quantized) {
  constexpr int64_t rows = 6, columns = 8, group = 4, width = 4;
  std::vector<float> values;
  for (int64_t k = 0; k < columns; ++k)
    for (int64_t n = 0; n < rows; ++n)
      values.push_back(float((k * 7 + n * 13) % 11 - 5) * (n == 2 ? 0 : 0.25f));
  openValues({{"w", {columns, rows}, values}});
  parse(R"(
    attune.weight @w gated panels 4 : tensor<2x2x16xi8>
        from [#attune.source<"w", transposed>]
        {attune.group = 4 : i64, attune.rows = 6 : i64}
    attune.weight @w.scales gated panels 4 : tensor<2x2x4xf32>
        from [#attune.source<"w", transposed>]
        {attune.group = 4 : i64, attune.rows = 6 : i64})");
  std::vector<uint8_t> blob = pack(2);
  auto layout = layoutWeights(*module);
  const uint8_t *bytes = blob.data() + layout->lookup("w")->offset;
  const uint8_t *scales = blob.data() + layout->lookup("w.scales")->offset;
  for (int64_t panel = 0; panel < 2; ++panel)
    for (int64_t lane = 0; lane < width; ++lane)
      for (int64_t g = 0; g < columns / group; ++g) {
        float scale, most = 0;
        std::memcpy(&scale, scales + ((panel * 2 + g) * width + lane) * 4, 4);
        bool padding = lane >= rows / 2;
        auto value = [&](int64_t k) {
          return padding ? 0 : values[k * rows + panel * (rows / 2) + lane];
        };
        for (int64_t k = g * group; k < (g + 1) * group; ++k)
          most = std::max(most, std::fabs(value(k)));
        EXPECT_EQ(scale, most / 127);
        for (int64_t k = g * group; k < (g + 1) * group; ++k) {
          int64_t place = (panel * 2 + k / 4) * 4 * width + lane * 4 + k % 4;
          int expected =
              scale > 0 ? int(std::nearbyint(value(k) * (1 / scale))) : 0;
          EXPECT_EQ(bytes[place], expected + 128) << panel << lane << k;
        }
      }
}

// Two columns in a byte; what is largest in a group is -8 steps, whatever its
// sign, and what is as large on the other side ends at 7.
TEST_F(WeightFile, Nibbles) {
  constexpr int64_t rows = 3, columns = 64, width = 4;
  std::vector<float> values(rows * columns);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = float(int(i * 37 % 101) - 50) / 64;
  for (int64_t k = 32; k < 64; ++k)
    values[columns + k] = 0; // a group of zeros
  values[0] = 8.0f;
  values[5] = -8.0f;
  openValues({{"w", {rows, columns}, values}});
  parse(R"(
    attune.weight @w panels 4 : tensor<1x8x16xi8> from [#attune.source<"w">]
        {attune.bits = 4 : i64, attune.group = 32 : i64, attune.rows = 3 : i64}
    attune.weight @w.scales panels 4 : tensor<1x2x4xf16>
        from [#attune.source<"w">]
        {attune.group = 32 : i64, attune.rows = 3 : i64})");
  std::vector<uint8_t> blob = pack(2);
  auto layout = layoutWeights(*module);
  const uint8_t *bytes = blob.data() + layout->lookup("w")->offset;
  const uint8_t *scales = blob.data() + layout->lookup("w.scales")->offset;
  for (int64_t lane = 0; lane < width; ++lane)
    for (int64_t k = 0; k < columns; ++k) {
      auto value = [&](int64_t column) {
        return lane < rows ? values[lane * columns + column] : 0.0f;
      };
      float most = 0;
      for (int64_t i = k / 32 * 32; i < k / 32 * 32 + 32; ++i)
        most = std::fabs(value(i)) > std::fabs(most) ? value(i) : most;
      uint16_t half;
      std::memcpy(&half, scales + (k / 32 * width + lane) * 2, 2);
      // A group of zeros has the scale 0, not -0.
      EXPECT_EQ(half, most == 0 ? 0 : runtime::floatToHalf(most / -8))
          << lane << k;
      float scale = runtime::halfToFloat(half);
      int expected =
          most == 0 ? 0 : int(std::nearbyint(value(k) * (1 / scale)));
      expected = std::min(std::max(expected, -8), 7);
      uint8_t byte = bytes[(k / 8 * width + lane) * 4 + k % 4];
      EXPECT_EQ(k % 8 < 4 ? byte & 15 : byte >> 4, expected + 8) << lane << k;
    }
}

// What rounding to bytes lost is told; values that are not numbers have a scale
// that is none.
TEST_F(WeightFile, QuantizedReport) {
  openValues({{"w", {1, 4}, {127.0f, 0.5f, 3.0f, -4.0f}},
              {"bad", {1, 4}, {1.0f, INFINITY, 0.0f, 0.0f}}});
  parse(R"(
    attune.weight @w : tensor<1x4xi8> from [#attune.source<"w">]
        {attune.group = 4 : i64}
    attune.weight @w.scales : tensor<1x1xf32> from [#attune.source<"w">]
        {attune.group = 4 : i64}
    attune.weight @bad : tensor<1x4xi8> from [#attune.source<"bad">]
        {attune.group = 4 : i64}
    attune.weight @bad.scales : tensor<1x1xf32> from [#attune.source<"bad">]
        {attune.group = 4 : i64})");
  auto layout = layoutWeights(*module);
  std::vector<uint8_t> blob(layout->totalBytes);
  auto report = packWeights(*module, {&*checkpoint}, blob.data(), diags);
  ASSERT_TRUE(report && report->quantized.size() == 1) << diags.all();
  EXPECT_EQ(report->quantized[0].matrices, 2u);
  EXPECT_EQ(report->quantized[0].bytesBefore, 32u);
  EXPECT_EQ(report->quantized[0].bytes, 16u);
  // 0.5 is as near to 0 as to 1, and 0 is even; all else is exact.
  EXPECT_NEAR(report->quantized[0].error,
              0.5 / std::sqrt(127.0 * 127 + 0.25 + 9 + 16), 1e-9);
  float scale;
  std::memcpy(&scale, blob.data() + layout->lookup("bad.scales")->offset, 4);
  EXPECT_TRUE(std::isnan(scale));
}

TEST_F(WeightFile, ManyTasks) {
  // Several megabytes, so that threads share the work.
  parse(R"(
    attune.weight @head panels 32 : tensor<32x512x32xf32> from [#attune.source<"a">]
    attune.weight @table : tensor<1001x512xf32> from [#attune.source<"a">]
  )");
  open({{"a", {1001, 512}, DType::F32, 1}});
  expectReference();
}

//===----------------------------------------------------------------------===//
// Random values
//===----------------------------------------------------------------------===//

TEST_F(WeightFile, RandomValues) {
  parse(R"(
    attune.weight @x.weight stacked : tensor<2x40x64xf32>
        from [#attune.source<"x.{i}", rows = 0 to 40>]
    attune.weight @norm.weight : tensor<64xf32> from [#attune.source<"n">]
    attune.weight @x.bias : tensor<64xf32> from [#attune.source<"b">]
  )");
  std::vector<uint8_t> rows = pack();
  EXPECT_EQ(rows, pack(2));
  EXPECT_NE(rows, pack(1, /*seed=*/1));
  auto value = [](const std::vector<uint8_t> &blob, int64_t i) {
    float value;
    std::memcpy(&value, blob.data() + 4 * i, 4);
    return value;
  };
  int64_t layer = 40 * 64;
  EXPECT_NE(value(rows, 0), value(rows, layer));
  double mean = 0;
  for (int64_t i = 0; i < layer; ++i) {
    EXPECT_LE(std::fabs(value(rows, i)), 0.5f / 8);
    mean += value(rows, i) / double(layer);
  }
  EXPECT_LT(std::fabs(mean), 0.004);
  for (int64_t i = 0; i < 64; ++i) {
    EXPECT_NEAR(value(rows, 2 * layer + i), 1, 0.126);
    EXPECT_NEAR(value(rows, 2 * layer + 64 + i), 0, 0.021);
  }

  // The same numbers, packed.
  parse(R"(
    attune.weight @x.weight stacked panels 16 : tensor<2x3x64x16xf32>
        from [#attune.source<"x.{i}", rows = 0 to 40>]
  )");
  std::vector<uint8_t> panels = pack();
  for (int64_t l = 0; l < 2; ++l)
    for (int64_t r = 0; r < 48; ++r)
      for (int64_t k = 0; k < 64; ++k)
        EXPECT_EQ(value(panels, l * 3072 + r / 16 * 1024 + k * 16 + r % 16),
                  r < 40 ? value(rows, l * layer + r * 64 + k) : 0);

  // Where a source does not tell its rows, the packing pass does.
  parse(R"(
    attune.weight @x.weight stacked panels 16 : tensor<2x3x64x16xf32>
        from [#attune.source<"x.{i}">] {attune.rows = 40}
  )");
  EXPECT_EQ(pack(), panels);
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

static std::string readFile(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST_F(WeightFile, AppendsBlobAndTrailer) {
  parse(R"(
    attune.weight @head panels 32 : tensor<32x512x32xf32> from [#attune.source<"a">]
    attune.weight @v : tensor<3xf32> from [#attune.source<"v">]
  )");
  open({{"a", {1001, 512}, DType::F32, 1}, {"v", {3}}});
  std::vector<uint8_t> expected = reference();
  for (size_t before : {size_t(0), size_t(1), size_t(4096), size_t(5000)}) {
    std::string path = folder / "product";
    std::string head(before, 'x');
    folder.write("product", head);
    auto report = appendWeights(*module, {&*checkpoint, 0, 2}, path, diags);
    ASSERT_TRUE(report) << diags.all();
    EXPECT_EQ(report->bytes, expected.size());
    std::string text = readFile(path);
    size_t offset = (before + 4095) / 4096 * 4096;
    ASSERT_EQ(text.size(), offset + expected.size() + 32);
    EXPECT_EQ(text.substr(0, before), head);
    EXPECT_EQ(
        std::memcmp(text.data() + offset, expected.data(), expected.size()), 0);
    uint64_t words[3];
    std::memcpy(words, text.data() + text.size() - 32, 24);
    EXPECT_EQ(words[0], offset);
    EXPECT_EQ(words[1], expected.size());
    EXPECT_EQ(words[2], layoutWeights(*module)->fingerprint);
    EXPECT_EQ(text.substr(text.size() - 8), "ATTUNEW1");
  }
  // A file of its own is made where there was none.
  ASSERT_TRUE(
      appendWeights(*module, {&*checkpoint, 0, 1}, folder / "new", diags));
  EXPECT_EQ(readFile(folder / "new").size(), expected.size() + 32);
}

TEST_F(WeightFile, AnotherLayoutHasAnotherFingerprint) {
  std::set<uint64_t> seen;
  auto add = [&](const std::string &weights) {
    parse(weights);
    return seen.insert(layoutWeights(*module)->fingerprint).second;
  };
  std::string source = " from [#attune.source<\"a\">]";
  std::string narrow =
      "attune.weight @a panels 16 : tensor<4x8x16xf32>" + source;
  EXPECT_TRUE(add(narrow));
  EXPECT_FALSE(add(narrow));
  // As many bytes, in panels of another width, of another type or order.
  EXPECT_TRUE(add("attune.weight @a panels 32 : tensor<2x8x32xf32>" + source));
  EXPECT_TRUE(add("attune.weight @a : tensor<64x8xf32>" + source));
  EXPECT_TRUE(add("attune.weight @a : tensor<64x16xbf16>" + source));
  EXPECT_TRUE(add("attune.weight @b panels 16 : tensor<4x8x16xf32>" + source));
}

TEST_F(WeightFile, FailuresLeaveTheFile) {
  parse("attune.weight @v : tensor<3xf32> from [#attune.source<\"gone\">]");
  open({{"v", {3}}});
  folder.write("product", "x");
  EXPECT_FALSE(
      appendWeights(*module, {&*checkpoint, 0, 1}, folder / "product", diags));
  EXPECT_TRUE(diags.saw({"tensor 'gone' is missing", "expected shape [3]"}));
  EXPECT_EQ(readFile(folder / "product"), "x");
  parse("attune.weight @v : tensor<3xf32> from [#attune.source<\"v\">]");
  EXPECT_FALSE(appendWeights(*module, {&*checkpoint, 0, 1},
                             folder / "no/such/folder", diags));
  EXPECT_TRUE(diags.saw({"cannot open a file for the weights"})) << diags.all();
}

/// Kilobytes of a mapped file that are in memory; -1: this system does not say.
static int64_t residentOf(const std::string &path) {
  std::ifstream maps("/proc/self/smaps");
  std::string line;
  int64_t sum = -1;
  for (bool inside = false; std::getline(maps, line);) {
    // "7f0000-7f1000 r--p …": a mapping begins, of a file or of none.
    if (line.find('-') < line.find(' '))
      inside = llvm::StringRef(line).ends_with(path);
    else if (inside && line.rfind("Rss:", 0) == 0)
      sum = std::max<int64_t>(sum, 0) + std::atoll(line.c_str() + 4);
  }
  return sum;
}

TEST_F(WeightFile, MemoryDoesNotKeepWhatWasRead) {
  parse(R"(
    attune.weight @rows : tensor<1024x512xf32> from [#attune.source<"a">]
    attune.weight @panels panels 16 : tensor<32x1024x16xf32>
        from [#attune.source<"b", transposed>]
    attune.weight @cut : tensor<1000x512xf32>
        from [#attune.source<"c", rows = 7 to 1007>]
  )");
  open({{"a", {1024, 512}, DType::F32, 1},
        {"b", {1024, 512}, DType::F32, 2},
        {"c", {1024, 512}, DType::F32, 3}});
  std::string path = folder / "model.safetensors";
  std::vector<uint8_t> first = pack(2);
  int64_t resident = residentOf(path);
  if (resident < 0)
    GTEST_SKIP() << "no /proc/self/smaps";
  // Of 6 MiB; a page that is read brings its neighbours, 2 MiB of them where
  // Linux maps whole folios.
  EXPECT_LT(resident, 3072);
  ASSERT_TRUE(checkFinite(*checkpoint, diags));
  EXPECT_LT(residentOf(path), 3072);
  EXPECT_EQ(pack(1), first);
}

//===----------------------------------------------------------------------===//
// Checking
//===----------------------------------------------------------------------===//

TEST_F(WeightFile, CheckPacked) {
  parse(R"(
    attune.weight @w stacked panels 16 : tensor<2x3x8x16xf32>
        from [#attune.source<"w.{i}">] loc("model.json":3:7)
  )");
  open({{"w.0", {33, 8}}, {"w.1", {32, 8}}, {"more", {1}}});
  EXPECT_FALSE(checkWeights(*module, *checkpoint, diags));
  EXPECT_TRUE(diags.saw({"3:7: weight 'w' has 32 rows, expected 33 to 48"}))
      << diags.all();
  EXPECT_TRUE(diags.saw({"tensor 'more' of shape [1]"})) << diags.all();
  EXPECT_EQ(diags.getNumErrors(), 2u) << diags.all();

  diags = Recorder();
  parse(R"(
    attune.weight @w panels 16 : tensor<3x8x16xf32>
        from [#attune.source<"w.0">] {attune.rows = 34}
  )");
  EXPECT_FALSE(checkWeights(*module, *checkpoint, diags));
  EXPECT_TRUE(diags.saw({"tensor 'w.0' has shape [33, 8], expected [34, 8]"}))
      << diags.all();
}

//===- ModelStatisticsTest.cpp - Counts of published models ---------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Analysis/ModelStatistics.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <gtest/gtest.h>

using namespace attune;

using Dims = std::map<std::string, int64_t>;

static ModelStatistics inspect(std::shared_ptr<const SourceFile> file,
                               const Dims &dims) {
  DiagnosticEngine diags;
  std::optional<spec::Model> model = spec::parse(file, diags);
  EXPECT_TRUE(model);
  return model ? analyze(*model, dims) : ModelStatistics();
}

static ModelStatistics inspectExample(const std::string &name,
                                      const Dims &dims = {}) {
  DiagnosticEngine diags;
  auto file = readSourceFile(
      std::string(ATTUNE_EXAMPLES_DIR) + "/" + name + ".json", diags);
  EXPECT_TRUE(file);
  return file ? inspect(file, dims) : ModelStatistics();
}

static ModelStatistics inspectText(std::string text, const Dims &dims = {}) {
  auto file = std::make_shared<SourceFile>();
  file->path = "model.json";
  file->text = std::move(text);
  return inspect(file, dims);
}

static const PartStatistics &partOf(const LayerStatistics &layer,
                                    const std::string &name) {
  for (const PartStatistics &part : layer.parts)
    if (part.name == name)
      return part;
  ADD_FAILURE() << "no part " << name;
  return layer.parts.front();
}

//===----------------------------------------------------------------------===//
// The counts that the papers give
//===----------------------------------------------------------------------===//

TEST(ModelStatistics, PublishedParameterCounts) {
  EXPECT_EQ(inspectExample("transformer-original/model").parameters,
            213'147'648u);
  EXPECT_EQ(inspectExample("gpt2-small/model").parameters, 124'439'808u);
  EXPECT_EQ(inspectExample("gpt2-xl/model").parameters, 1'557'611'200u);
  EXPECT_EQ(inspectExample("gpt3/model").parameters, 174'604'259'328u);
  EXPECT_EQ(inspectExample("megatron-lm/model").parameters, 8'317'040'640u);
  EXPECT_EQ(inspectExample("turing-nlg/model").parameters, 17'176'845'728u);
  EXPECT_EQ(inspectExample("gopher/model").parameters, 279'714'217'984u);
  EXPECT_EQ(inspectExample("block-512/model").parameters, 3'150'336u);
  EXPECT_EQ(inspectExample("block-512/six").parameters, 6u * 3'150'336u);
}

TEST(ModelStatistics, AttentionOfWidth512) {
  ModelStatistics statistics = inspectExample("attention-512/model");
  ASSERT_EQ(statistics.layers.size(), 1u);
  EXPECT_EQ(partOf(statistics.layers[0], "qkv").parameters, 786'432u);
  EXPECT_EQ(partOf(statistics.layers[0], "o").parameters, 262'144u);
}

TEST(ModelStatistics, UnfusedScoresOf100000Tokens) {
  ModelStatistics statistics = inspectExample("attention-100k/model");
  EXPECT_EQ(statistics.scoreBytes, 64.0 * 1e5 * 1e5 * 2);
  EXPECT_EQ(formatBytes(statistics.scoreBytes), "1,192 GiB");
  // Queries, keys, values and results in 16 bits.
  EXPECT_EQ(statistics.activationBytes, 4.0 * 64 * 1e5 * 64 * 2);
  EXPECT_EQ(statistics.parameters, 0u);
}

//===----------------------------------------------------------------------===//
// FLOPs and bytes by hand
//===----------------------------------------------------------------------===//

static std::string attention(const std::string &options) {
  return R"({"attune": 1, "inputs": {
      "q": {"dtype": "f32", "shape": ["batch", 2, "m", 4]},
      "k": {"dtype": "f32", "shape": ["batch", 2, "n", 4]},
      "v": {"dtype": "f32", "shape": ["batch", 2, "n", 4]}},
    "layers": [{"attention": {"query": "q", "key": "k", "value": "v")" +
         options + "}}]}";
}

/// Seen pairs of m queries and n keys, counted one by one.
static int64_t countPairs(int64_t m, int64_t n, bool bottomRight,
                          int64_t window) {
  int64_t pairs = 0;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      int64_t position = bottomRight ? i + n - m : i;
      pairs += j <= position && j > position - window;
    }
  return pairs;
}

TEST(ModelStatistics, OnlyVisibleScoresCount) {
  for (int64_t m : {1, 3, 7, 12})
    for (int64_t n : {1, 4, 7, 20})
      for (bool bottomRight : {false, true})
        for (int64_t window : {1, 2, 5, 100}) {
          std::string align = bottomRight ? "bottom_right" : "top_left";
          ModelStatistics statistics = inspectText(
              attention(", \"causal\": \"" + align +
                        "\", \"window\": " + std::to_string(window)),
              {{"batch", 3}, {"m", m}, {"n", n}});
          double pairs =
              static_cast<double>(countPairs(m, n, bottomRight, window));
          EXPECT_EQ(statistics.flops, 3 * 2 * pairs * 2 * (4 + 4))
              << m << " " << n << " " << align << " " << window;
        }
  EXPECT_EQ(
      inspectText(attention(""), {{"batch", 1}, {"m", 5}, {"n", 6}}).flops,
      2.0 * 5 * 6 * 2 * 8);
}

TEST(ModelStatistics, BlocksThatAreNotComputedCostNothing) {
  auto count = [](int64_t m, int64_t n, bool causal, int64_t local,
                  int64_t first) {
    int64_t pairs = 0;
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        int64_t a = i / 4, b = j / 4;
        bool near = std::abs(a - b) <= local || a < first || b < first;
        pairs += near && (!causal || j <= i + n - m);
      }
    return static_cast<double>(pairs);
  };
  for (int64_t m : {1, 7, 30})
    for (int64_t n : {1, 9, 32})
      for (int64_t local : {0, 2})
        for (int64_t first : {0, 1, 3})
          for (bool causal : {false, true}) {
            std::string options =
                R"(, "block_sparse": {"block": 4, "local": )" +
                std::to_string(local) + R"(, "global": )" +
                std::to_string(first) + "}" +
                (causal ? R"(, "causal": true)" : "");
            EXPECT_EQ(inspectText(attention(options),
                                  {{"batch", 1}, {"m", m}, {"n", n}})
                          .flops,
                      count(m, n, causal, local, first) * 2 * 2 * 8)
                << m << " " << n << " " << local << " " << first << causal;
          }
  // Sums of 4 features and 4 channels and one more, for queries and keys.
  EXPECT_EQ(inspectText(attention(R"(, "linear": {})"),
                        {{"batch", 1}, {"m", 5}, {"n", 6}})
                .flops,
            2.0 * 4 * 5 * (5 * 2 + 6 * 2));
}

TEST(ModelStatistics, BlockByHand) {
  // Width 8, 4 heads of 2 over 2 key/value heads, gated FFN of 16.
  ModelStatistics statistics = inspectText(R"({"attune": 1, "dtype": "bf16",
    "layers": [
      {"embedding": {"vocab": 10, "width": 8}, "name": "e"},
      {"block": {"norm": {"kind": "rms_norm"},
                 "attention": {"heads": 4, "kv_heads": 2, "causal": true},
                 "ffn": {"width": 16, "gated": true, "bias": false}},
       "repeat": 3},
      {"linear": {"tied": "e"}}]})",
                                           {{"batch", 2}, {"seq", 5}});
  uint64_t block = 8 * 8 + 2 * (4 * 8) + 8 * 8 + 3 * 16 * 8 + 2 * 8;
  EXPECT_EQ(statistics.parameters, 10 * 8 + 3 * block);
  EXPECT_EQ(statistics.weightBytes, 2.0 * (10 * 8 + 3 * block));
  double tokens = 10, pairs = 15;
  double flops = 2 * tokens * (8 * 8 + 2 * 4 * 8 + 8 * 8 + 3 * 16 * 8) +
                 2 * 2 * 4 * pairs * (2 + 2);
  EXPECT_EQ(statistics.flops, 3 * flops + 2 * tokens * 8 * 10);
  // bf16, 2 key/value heads of 2 + 2 channels.
  EXPECT_EQ(statistics.cacheBytes, 3 * tokens * 2 * 4 * 2);
  EXPECT_EQ(statistics.scoreBytes, 2.0 * 4 * 5 * 5 * 2);

  ASSERT_TRUE(statistics.decode);
  double matrices = 3.0 * (block - 16) + 80;
  EXPECT_EQ(statistics.decode->flops,
            2 * 2 * matrices + 3 * 2 * 2 * 4 * 5.0 * (2 + 2));
  EXPECT_EQ(statistics.decode->bytes,
            2 * (3.0 * block + 80 + 8) + statistics.cacheBytes);
}

TEST(ModelStatistics, SharedTensorsCountOnce) {
  ModelStatistics statistics = inspectText(R"({"attune": 1,
    "inputs": {"x": {"dtype": "f32", "shape": ["b", "t", 8]}},
    "layers": [
      {"linear": {"out": 8}, "name": "a"},
      {"linear": {"out": 8}, "name": "b", "weights": {"weight": "a.weight"}},
      {"linear": {"out": 8}, "name": "c.{i}", "repeat": 5,
       "weights": {"weight": "shared"}}]})");
  EXPECT_EQ(statistics.layers[0].parameters, 64u);
  EXPECT_EQ(statistics.layers[1].parameters, 0u);
  EXPECT_EQ(statistics.layers[2].parameters, 64u);
  EXPECT_EQ(statistics.parameters, 128u);
}

TEST(ModelStatistics, LengthsOfDims) {
  ModelStatistics statistics = inspectExample("gpt2-small/model");
  EXPECT_EQ(statistics.dims, (Dims{{"batch", 1}, {"seq", 1024}}));
  statistics = inspectExample("gpt2-small/model", {{"seq", 17}, {"batch", 3}});
  EXPECT_EQ(statistics.dims, (Dims{{"batch", 3}, {"seq", 17}}));
  EXPECT_FALSE(inspectExample("transformer-original/model").decode);

  DiagnosticEngine diags;
  auto file =
      readSourceFile(ATTUNE_EXAMPLES_DIR "/gpt2-small/model.json", diags);
  auto model = spec::parse(file, diags);
  EXPECT_EQ(unknownDims(*model, {{"seq", 1}, {"sequence", 2}}),
            std::vector<std::string>{"sequence"});
}

//===----------------------------------------------------------------------===//
// Rendering
//===----------------------------------------------------------------------===//

TEST(PrintStatistics, Numbers) {
  EXPECT_EQ(formatCount(0), "0");
  EXPECT_EQ(formatCount(999), "999");
  EXPECT_EQ(formatCount(1000), "1,000");
  EXPECT_EQ(formatCount(786432), "786,432");
  EXPECT_EQ(formatCount(174604259328u), "174,604,259,328");
  EXPECT_EQ(formatBytes(0), "0 B");
  EXPECT_EQ(formatBytes(999), "999 B");
  EXPECT_EQ(formatBytes(1024), "1.00 KiB");
  EXPECT_EQ(formatBytes(1536 * 1024), "1.50 MiB");
  EXPECT_EQ(formatBytes(1192.0 * (1 << 30)), "1,192 GiB");
  EXPECT_EQ(formatBytes(20000.0 * (1 << 30)), "19.5 TiB");
  EXPECT_EQ(formatShort(213147648), "213 M");
  EXPECT_EQ(formatShort(3150336), "3.15 M");
  EXPECT_EQ(formatShort(999600), "1.00 M");
  EXPECT_EQ(formatShort(174604259328.0), "175 B");
}

TEST(PrintStatistics, Table) {
  std::string text;
  llvm::raw_string_ostream out(text);
  printTable(inspectExample("block-512/model", {{"seq", 128}}), out);
  EXPECT_EQ(text, R"(block-512

layer               kind   parameters   weights   FLOPs  KV cache  activations   scores
------------------  -----  ----------  --------  ------  --------  -----------  -------
block               block   3,150,336  12.0 MiB   839 M         -     1.50 MiB  512 KiB
  attention.qkv               786,432             201 M
  attention.scores                  -            33.6 M
  attention.o                 262,144            67.1 M
  ffn.up                    1,050,624             268 M
  ffn.down                  1,049,088             268 M
  norms                         2,048                 -
------------------  -----  ----------  --------  ------  --------  -----------  -------
total                       3,150,336  12.0 MiB   839 M         -     1.50 MiB  512 KiB

3.15 M parameters, kept as f32 in 12.0 MiB
one forward pass at batch=1, seq=128: 839 M FLOPs (2 per multiply-add; hidden scores not counted)
arithmetic intensity: 67 FLOPs per byte of weights
scores: what attention weights of one layer would take unfused, 512 KiB at most; the compiled program keeps none of them
)");
}

TEST(PrintStatistics, Json) {
  std::string text;
  llvm::raw_string_ostream out(text);
  printJson(inspectExample("gpt3/model"), out);
  llvm::Expected<llvm::json::Value> json = llvm::json::parse(text);
  ASSERT_TRUE(static_cast<bool>(json));
  const llvm::json::Object &root = *json->getAsObject();
  EXPECT_EQ(root.getInteger("parameters"), 174604259328);
  EXPECT_EQ(root.getString("dtype"), "f16");
  EXPECT_EQ(root.getObject("dims")->getInteger("seq"), 2048);
  const llvm::json::Array &layers = *root.getArray("layers");
  ASSERT_EQ(layers.size(), 5u);
  const llvm::json::Object &block = *layers[2].getAsObject();
  EXPECT_EQ(block.getString("name"), "h.{i}");
  EXPECT_EQ(block.getInteger("repeat"), 96);
  EXPECT_EQ(block.getInteger("line"), 10);
  EXPECT_EQ(block.getArray("parts")->size(), 6u);
}

TEST(PrintStatistics, HtmlEscapesNames) {
  ModelStatistics statistics = inspectText(
      R"({"attune": 1, "name": "<script>", "layers": [
          {"embedding": {"vocab": 9, "width": 4}, "name": "a<b"}]})");
  std::string text;
  llvm::raw_string_ostream out(text);
  printHtml(statistics, out);
  EXPECT_EQ(text.find("<script>"), std::string::npos);
  EXPECT_NE(text.find("a&lt;b"), std::string::npos);
  EXPECT_NE(text.find("</html>"), std::string::npos);
}

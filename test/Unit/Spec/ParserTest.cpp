//===- ParserTest.cpp - What a description means --------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Parsing.h"

#include <cmath>
#include <filesystem>

using namespace attune;
using namespace attune::spec;
using namespace attune::test;

static Model parsed(const std::string &text) {
  Parsed result = parseText(text);
  EXPECT_EQ(result.text(), "");
  return result.model ? *result.model : Model();
}

/// A model of one float stream of `width` channels and these layers.
static Model layers(const std::string &list, int width = 64) {
  return parsed(R"({"attune": 1, "inputs": {"x": {"dtype": "f32", "shape": )"
                R"(["batch", "seq", )" +
                std::to_string(width) + R"(]}}, "layers": [)" + list + "]}");
}

static const Attention &attentionOf(const Model &model) {
  return std::get<Attention>(model.streams.at(0).layers.at(0).op);
}

TEST(Parser, LanguageModelDefaults) {
  Model model = parsed(R"({"attune": 1, "layers": [
    {"embedding": {"vocab": 100, "width": 64}},
    {"positions": {"length": 32, "offset": 2}},
    {"block": {"attention": {"heads": 4, "causal": true},
               "ffn": {"width": 256}}, "repeat": 3},
    {"layer_norm": {}},
    {"linear": {"out": 100}}]})");
  EXPECT_EQ(model.name, "model");
  ASSERT_EQ(model.inputs.size(), 1u);
  EXPECT_EQ(model.inputs[0].name, "input_ids");
  EXPECT_EQ(model.inputs[0].dtype, DType::I64);
  EXPECT_EQ(model.inputs[0].shape[1].symbol, "seq");
  ASSERT_EQ(model.streams.size(), 1u);
  EXPECT_EQ(model.streams[0].name, "main");
  EXPECT_EQ(model.streams[0].input, "input_ids");
  ASSERT_EQ(model.outputs.size(), 1u);
  EXPECT_EQ(model.outputs[0].name, "logits");
  EXPECT_EQ(model.outputs[0].layer, "layers.4");
  // The learned table ends the context, less its offset.
  EXPECT_EQ(model.context, 30);

  const Layer &layer = model.streams[0].layers[2];
  EXPECT_EQ(layer.name, "layers.2.{i}");
  EXPECT_EQ(layer.repeat, 3);
  EXPECT_EQ(layer.inputWidth, 64);
  EXPECT_EQ(layer.width, 64);
  const auto &block = std::get<Block>(layer.op);
  EXPECT_EQ(block.placement, Placement::Pre);
  EXPECT_EQ(block.norm.kind, NormKind::LayerNorm);
  EXPECT_EQ(block.attention->headDim, 16);
  EXPECT_EQ(block.attention->valueDim, 16);
  EXPECT_EQ(block.attention->kvHeads, 4);
  EXPECT_EQ(block.attention->sourceWidth, 64);
  EXPECT_EQ(block.attention->causal, Causal::BottomRight);
  EXPECT_DOUBLE_EQ(block.attention->scale, 0.25);
  EXPECT_EQ(block.ffn->activation, Activation::Gelu);
}

TEST(Parser, LastHiddenStateWithoutAVocabularyHead) {
  Model model = parsed(R"({"attune": 1, "layers": [
    {"embedding": {"vocab": 100, "width": 64}}, {"linear": {"out": 99}}]})");
  EXPECT_EQ(model.outputs.at(0).name, "last_hidden_state");
}

TEST(Parser, ArithmeticOverDims) {
  Model model = parsed(R"({"attune": 1,
    "dims": {"F": "4*D", "D": " 2 * (H - -1)/3 + 6 ", "H": 2, "Z": "D-D"},
    "layers": [{"embedding": {"vocab": "F*F", "width": "D/4 "}}]})");
  EXPECT_EQ(model.dims.at("H"), 2);
  EXPECT_EQ(model.dims.at("D"), 8);
  EXPECT_EQ(model.dims.at("F"), 32);
  EXPECT_EQ(model.dims.at("Z"), 0);
  const auto &table = std::get<Embedding>(model.streams[0].layers[0].op);
  EXPECT_EQ(table.vocab, 1024);
  EXPECT_EQ(table.width, 2);
}

TEST(Parser, WholeNumbersMayHaveAFraction) {
  const Model model = parsed(R"({"attune": 1.0, "layers": [
    {"embedding": {"vocab": 1e2, "width": 64.0}}]})");
  EXPECT_EQ(std::get<Embedding>(model.streams[0].layers[0].op).vocab, 100);
}

TEST(Parser, HeadsOfTheirOwnWidth) {
  Model model = layers(R"({"attention": {"heads": 6, "kv_heads": 2,
    "head_dim": 24, "value_dim": 8, "scale": 0.5,
    "rope": {"channels": 12}, "qk_norm": {}}})");
  const Attention &attention = attentionOf(model);
  EXPECT_EQ(attention.headDim, 24);
  EXPECT_EQ(attention.valueDim, 8);
  EXPECT_EQ(attention.scale, 0.5);
  EXPECT_EQ(attention.rope->channels, 12);
  EXPECT_EQ(attention.qkNorm->kind, NormKind::RMSNorm);
  EXPECT_FALSE(attention.qkNorm->bias);
}

TEST(Parser, CausalAlignments) {
  auto causal = [](const std::string &value) {
    return attentionOf(layers(R"({"attention": {"heads": 4, "causal": )" +
                              value + "}}"))
        .causal;
  };
  EXPECT_EQ(causal("true"), Causal::BottomRight);
  EXPECT_EQ(causal("false"), Causal::None);
  EXPECT_EQ(causal("\"bottom_right\""), Causal::BottomRight);
  EXPECT_EQ(causal("\"top_left\""), Causal::TopLeft);
}

TEST(Parser, BareAttentionReadsItsInputs) {
  Model model = parsed(R"({"attune": 1, "inputs": {
      "q": {"dtype": "f32", "shape": ["b", 8, "m", 64]},
      "k": {"dtype": "f32", "shape": ["b", 2, "n", 64]},
      "v": {"dtype": "f32", "shape": ["b", 2, "n", 32]}},
    "layers": [{"attention": {"query": "q", "key": "k", "value": "v",
                              "lse": true}, "name": "a"}],
    "outputs": {"out": "a", "lse": "a.lse"}})");
  const Attention &attention = attentionOf(model);
  EXPECT_FALSE(attention.projections);
  EXPECT_EQ(attention.heads, 8);
  EXPECT_EQ(attention.kvHeads, 2);
  EXPECT_EQ(attention.headDim, 64);
  EXPECT_EQ(attention.valueDim, 32);
  EXPECT_DOUBLE_EQ(attention.scale, 0.125);
  EXPECT_EQ(model.streams[0].layers[0].width, 0);
  EXPECT_EQ(model.streams[0].input, "");
}

TEST(Parser, CrossAttentionSeesItsSourcesWidth) {
  Model model = parsed(everyKey());
  ASSERT_EQ(model.streams.size(), 14u);
  const Layer &layer = model.streams[1].layers[2];
  const auto &block = std::get<Block>(layer.op);
  EXPECT_EQ(block.cross->source, "encoder");
  EXPECT_EQ(block.cross->sourceWidth, 64);
  for (const WeightRole &role : weightRoles(layer))
    if (role.role == "cross.k.weight") {
      EXPECT_EQ(role.rows, 32);
      EXPECT_EQ(role.columns, 64);
    }
}

TEST(Parser, TheInputCalledInputStarts) {
  Model model = parsed(R"({"attune": 1, "inputs": {
      "other": {"dtype": "f32", "shape": ["b", "t", 3]},
      "input": {"dtype": "f32", "shape": ["b", "t", 5]}},
    "layers": [{"linear": {"out": 2}}]})");
  EXPECT_EQ(model.streams[0].input, "input");
  EXPECT_EQ(model.streams[0].layers[0].inputWidth, 5);
}

static std::string roleList(const Layer &layer) {
  std::string result;
  for (const WeightRole &role : weightRoles(layer))
    result += role.role + "[" + std::to_string(role.rows) +
              (role.columns ? "," + std::to_string(role.columns) : "") + "] ";
  return result;
}

static std::string rolesOf(const std::string &layer) {
  return roleList(layers(layer).streams.at(0).layers.at(0));
}

TEST(Weights, RolesOfEachKind) {
  EXPECT_EQ(rolesOf(R"({"attention": {"heads": 4, "kv_heads": 2,
                        "bias": {"out": true}, "qk_norm": {}}})"),
            "q.weight[64,64] k.weight[32,64] v.weight[32,64] q_norm.weight[16] "
            "k_norm.weight[16] o.weight[64,64] o.bias[64] ");
  EXPECT_EQ(rolesOf(R"({"ffn": {"width": 96}})"),
            "up.weight[96,64] up.bias[96] down.weight[64,96] down.bias[64] ");
  EXPECT_EQ(rolesOf(R"({"ffn": {"width": 96, "gated": true, "bias": false}})"),
            "gate.weight[96,64] up.weight[96,64] down.weight[64,96] ");
  EXPECT_EQ(rolesOf(R"({"layer_norm": {}})"), "weight[64] bias[64] ");
  EXPECT_EQ(rolesOf(R"({"rms_norm": {"scale": false}})"), "");
  EXPECT_EQ(rolesOf(R"({"linear": {"out": 7, "bias": true}})"),
            "weight[7,64] bias[7] ");
  EXPECT_EQ(rolesOf(R"({"positions": {"kind": "sinusoidal"}})"), "");
  EXPECT_EQ(rolesOf(R"({"block": {"placement": "peri",
                        "norm": {"kind": "rms_norm"},
                        "ffn": {"width": 8, "bias": false}}})"),
            "norm2.weight[64] norm2_post.weight[64] ffn.up.weight[8,64] "
            "ffn.down.weight[64,8] ");
  EXPECT_EQ(rolesOf(R"({"attention": {"heads": 4, "relative": true}})"),
            "q.weight[64,64] k.weight[64,64] v.weight[64,64] r.weight[64,64] "
            "r.content_bias[64] r.position_bias[64] o.weight[64,64] ");
}

TEST(Weights, WhereTheyComeFrom) {
  Model model = parsed(everyKey());
  const Layer &layer = model.streams[0].layers[2];
  auto byName = resolveWeight(layer, "norm1.weight");
  ASSERT_EQ(byName.size(), 1u);
  EXPECT_EQ(byName[0].tensor, "enc.{i}.norm1.weight");
  EXPECT_EQ(byName[0].end, -1);
  auto sliced = resolveWeight(layer, "attention.q.weight");
  ASSERT_EQ(sliced.size(), 1u);
  EXPECT_TRUE(sliced[0].transposed);
  EXPECT_EQ(sliced[0].begin, 0);
  EXPECT_EQ(sliced[0].end, 128);
  auto pieces = resolveWeight(layer, "attention.v.weight");
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_EQ(pieces[1].tensor, "enc.{i}.v.1");
  Layer unnamed;
  EXPECT_EQ(resolveWeight(unnamed, "q.weight")[0].tensor, "q.weight");
}

TEST(Parser, PlacesAreThoseOfTheFile) {
  Model model = parsed("{\"attune\": 1,\n \"layers\": [\n"
                       "  {\"embedding\": {\"vocab\": 9, \"width\": 4}},\n"
                       "  {\"block\": {\n    \"ffn\": {\"width\": 8}}}]}");
  const Layer &layer = model.streams[0].layers[1];
  EXPECT_EQ(layer.location.line, 4u);
  EXPECT_EQ(layer.location.column, 3u);
  EXPECT_EQ(layer.location.file->path, "model.json");
  EXPECT_EQ(std::get<Block>(layer.op).ffn->location.line, 5u);
}

TEST(Parser, ExamplesOfTheGuideAreRight) {
  std::string text = readText(ATTUNE_SPEC_DIR "/README.md");
  for (const auto &page :
       std::filesystem::directory_iterator(ATTUNE_SPEC_DIR "/Guide"))
    text += readText(page.path());
  int count = 0;
  for (size_t at = text.find("```json\n"); at != std::string::npos;
       at = text.find("```json\n", at)) {
    at += 8;
    size_t end = text.find("```", at);
    ASSERT_NE(end, std::string::npos);
    Parsed result = parseText(text.substr(at, end - at));
    EXPECT_EQ(result.text(), "") << text.substr(at, end - at);
    ++count;
    at = end + 3;
  }
  EXPECT_EQ(count, 24);
}

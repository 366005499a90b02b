//===- HuggingFaceTest.cpp - config.json to descriptions --------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Import/HuggingFace.h"

#include "Files.h"
#include "attune/Weights/Checkpoint.h"

#include <cmath>

using namespace attune;
using namespace attune::test;
namespace fs = std::filesystem;

namespace {
struct HuggingFace : testing::Test {
  std::optional<ImportedModel> import(const std::string &config) {
    folder.write("config.json", config);
    diags = Recorder();
    return importHuggingFace(folder.str(), diags);
  }
  /// GPT-2 or LLaMA of few parameters, with `more` in its configuration.
  std::optional<ImportedModel> gpt2(const std::string &more = "") {
    return import(R"({"model_type": "gpt2", "n_embd": 8, "n_head": 2,
      "n_layer": 3, "n_positions": 16, "vocab_size": 32)" +
                  (more.empty() ? "" : ",\n" + more) + "}");
  }
  std::optional<ImportedModel> llama(const std::string &more = "") {
    return import(R"({"model_type": "llama", "hidden_size": 32,
      "intermediate_size": 48, "num_attention_heads": 4,
      "num_hidden_layers": 3, "max_position_embeddings": 64,
      "vocab_size": 40)" +
                  (more.empty() ? "" : ",\n" + more) + "}");
  }
  const std::vector<spec::Layer> &layers(const ImportedModel &imported) {
    return imported.model.streams.at(0).layers;
  }
  const spec::Block &block(const ImportedModel &imported) {
    for (const spec::Layer &layer : layers(imported))
      if (const auto *block = std::get_if<spec::Block>(&layer.op))
        return *block;
    ADD_FAILURE() << "no block";
    static const spec::Block none;
    return none;
  }
  const spec::Rope &rope(const ImportedModel &imported) {
    return *block(imported).attention->rope;
  }
  std::string tensor(const spec::Layer &layer, const std::string &role) {
    std::vector<spec::WeightSource> sources = spec::resolveWeight(layer, role);
    return sources.size() == 1 ? sources[0].tensor : "?";
  }
  TempFolder folder;
  Recorder diags;
};
} // namespace

TEST_F(HuggingFace, GPT2) {
  auto imported = gpt2();
  ASSERT_TRUE(imported) << diags.all();
  const spec::Model &model = imported->model;
  EXPECT_EQ(model.context, 16);
  EXPECT_EQ(model.dtype, spec::DType::F32);
  ASSERT_EQ(layers(*imported).size(), 5u);
  const spec::Layer &body = layers(*imported)[2];
  EXPECT_EQ(body.repeat, 3);
  EXPECT_EQ(body.name, "transformer.h.{i}");
  const spec::Attention &attention = *block(*imported).attention;
  EXPECT_EQ(attention.headDim, 4);
  EXPECT_EQ(attention.scale, 0.5);
  EXPECT_TRUE(attention.qkvBias && attention.outBias);
  EXPECT_EQ(block(*imported).ffn->width, 32);
  EXPECT_EQ(block(*imported).ffn->activation, spec::Activation::GeluTanh);

  auto key = spec::resolveWeight(body, "attention.k.weight");
  ASSERT_EQ(key.size(), 1u);
  EXPECT_EQ(key[0].tensor, "transformer.h.{i}.attn.c_attn.weight");
  EXPECT_TRUE(key[0].transposed);
  EXPECT_EQ(key[0].begin, 8);
  EXPECT_EQ(key[0].end, 16);
  const auto &head = std::get<spec::Linear>(layers(*imported)[4].op);
  EXPECT_EQ(head.tied, "transformer.wte");
  ASSERT_EQ(model.outputs.size(), 1u);
  EXPECT_EQ(model.outputs[0].name, "logits");
  EXPECT_EQ(model.outputs[0].layer, "lm_head");
  // The block comes from the line that says how many there are.
  EXPECT_EQ(body.location.line, 2u);
}

TEST_F(HuggingFace, GPT2Options) {
  auto imported = gpt2(R"("n_inner": 20, "activation_function": "relu",
    "scale_attn_weights": false, "tie_word_embeddings": false,
    "reorder_and_upcast_attn": true, "layer_norm_epsilon": 1e-6)");
  ASSERT_TRUE(imported) << diags.all();
  EXPECT_EQ(block(*imported).attention->scale, 1);
  EXPECT_EQ(block(*imported).ffn->width, 20);
  EXPECT_EQ(block(*imported).ffn->activation, spec::Activation::Relu);
  EXPECT_EQ(block(*imported).norm.eps, 1e-6);
  EXPECT_EQ(std::get<spec::Linear>(layers(*imported)[4].op).tied, "");
  EXPECT_TRUE(gpt2("\"n_inner\": null, \"n_ctx\": 16")) << diags.all();
}

TEST_F(HuggingFace, GPT2Errors) {
  EXPECT_FALSE(gpt2("\"add_cross_attention\": true"));
  EXPECT_FALSE(gpt2("\"activation_function\": \"gelu_10\""));
  EXPECT_TRUE(diags.saw({"3:24: /activation_function: no activation is called "
                         "'gelu_10'; known are gelu, "}))
      << diags.all();
  EXPECT_FALSE(import(R"({"model_type": "gpt2", "n_embd": 10, "n_head": 4})"));
  EXPECT_TRUE(diags.saw({"1:48: /n_head: 4 heads cannot share a width of 10"}))
      << diags.all();
  EXPECT_FALSE(import(R"({"model_type": "gpt2", "n_layer": 0, "n_embd": "x",
    "vocab_size": 1e300, "n_positions": 1.5})"));
  EXPECT_EQ(diags.getNumErrors(), 4u) << diags.all();
  EXPECT_TRUE(diags.saw({"/n_layer: expected an integer from 1", "found 0"}))
      << diags.all();
}

TEST_F(HuggingFace, KeysThatAreNotUnderstood) {
  EXPECT_FALSE(llama("\"logits_scaling\": 8,\n \"rope_thetta\": 5"));
  EXPECT_TRUE(
      diags.saw({"5:1: /logits_scaling: this key may change the numbers "
                 "and is not understood for the architecture 'llama'"}))
      << diags.all();
  EXPECT_TRUE(diags.saw({"6:2: /rope_thetta: ", "did you mean 'rope_theta'"}))
      << diags.all();
  EXPECT_EQ(diags.getNumErrors(), 2u);
  // Null stands for the default, whatever the key means.
  EXPECT_TRUE(llama("\"logits_scaling\": null")) << diags.all();
  EXPECT_FALSE(llama("\"quantization_config\": {\"bits\": 4}"));
  EXPECT_FALSE(llama("\"pruned_heads\": {\"0\": [1]}"));
  EXPECT_TRUE(llama("\"pruned_heads\": {}, \"use_cache\": false"))
      << diags.all();
  EXPECT_FALSE(llama("\"is_encoder_decoder\": true"));
}

TEST_F(HuggingFace, Llama) {
  auto imported = llama();
  ASSERT_TRUE(imported) << diags.all();
  const spec::Attention &attention = *block(*imported).attention;
  EXPECT_EQ(attention.kvHeads, 4);
  EXPECT_EQ(attention.headDim, 8);
  EXPECT_EQ(rope(*imported).channels, 8);
  EXPECT_EQ(rope(*imported).theta, 10000);
  EXPECT_EQ(rope(*imported).scaling.type, "none");
  EXPECT_FALSE(attention.qkvBias || attention.outBias);
  EXPECT_EQ(block(*imported).norm.kind, spec::NormKind::RMSNorm);
  EXPECT_EQ(block(*imported).norm.eps, 1e-6);
  EXPECT_TRUE(block(*imported).ffn->gated);
  EXPECT_EQ(block(*imported).ffn->activation, spec::Activation::Silu);
  const spec::Layer &body = layers(*imported)[1];
  EXPECT_EQ(tensor(body, "attention.q.weight"),
            "model.layers.{i}.self_attn.q_proj.weight");
  EXPECT_EQ(tensor(body, "norm2.weight"),
            "model.layers.{i}.post_attention_layernorm.weight");
  EXPECT_EQ(tensor(layers(*imported)[2], "weight"), "model.norm.weight");
  EXPECT_EQ(std::get<spec::Linear>(layers(*imported)[3].op).tied, "");
}

TEST_F(HuggingFace, LlamaOptions) {
  // Floats that are whole numbers are integers to Python.
  auto imported = llama(R"("num_key_value_heads": 2.0, "head_dim": 16,
    "rope_theta": 500000, "attention_bias": true, "mlp_bias": true,
    "tie_word_embeddings": true, "hidden_act": "gelu", "rms_norm_eps": 1e-5,
    "pretraining_tp": 2, "attention_dropout": 0.1, "sliding_window": null)");
  ASSERT_TRUE(imported) << diags.all();
  const spec::Attention &attention = *block(*imported).attention;
  EXPECT_EQ(attention.kvHeads, 2);
  EXPECT_EQ(attention.headDim, 16);
  EXPECT_EQ(attention.scale, 0.25);
  EXPECT_EQ(rope(*imported).theta, 500000);
  EXPECT_TRUE(attention.qkvBias && attention.outBias);
  EXPECT_TRUE(block(*imported).ffn->bias);
  const spec::Layer &body = layers(*imported)[1];
  EXPECT_EQ(tensor(body, "attention.o.bias"),
            "model.layers.{i}.self_attn.o_proj.bias");
  EXPECT_EQ(tensor(body, "ffn.gate.bias"),
            "model.layers.{i}.mlp.gate_proj.bias");
  EXPECT_EQ(std::get<spec::Linear>(layers(*imported)[3].op).tied,
            "model.embed_tokens");
}

TEST_F(HuggingFace, LlamaErrors) {
  EXPECT_FALSE(llama("\"num_key_value_heads\": 3"));
  EXPECT_TRUE(
      diags.saw({"/num_key_value_heads: 3 does not divide the 4 query heads"}))
      << diags.all();
  EXPECT_FALSE(llama("\"head_dim\": 7"));
  EXPECT_FALSE(llama("\"sliding_window\": 7"));
  EXPECT_FALSE(llama("\"hidden_act\": 3"));
  EXPECT_FALSE(llama("\"attention_bias\": \"yes\""));
  EXPECT_FALSE(llama("\"rms_norm_eps\": 0"));
  EXPECT_FALSE(llama("\"rope_theta\": -1"));
  EXPECT_FALSE(llama("\"partial_rotary_factor\": 0.5"));
}

TEST_F(HuggingFace, LinearScaling) {
  // Both spellings of the type.
  for (const char *key : {"type", "rope_type"}) {
    auto imported = llama("\"rope_scaling\": {\"" + std::string(key) +
                          "\": \"linear\", \"factor\": 4}");
    ASSERT_TRUE(imported) << diags.all();
    EXPECT_EQ(rope(*imported).scaling.type, "linear");
    EXPECT_EQ(rope(*imported).scaling.factor, 4);
    EXPECT_EQ(imported->model.context, 64);
  }
  EXPECT_FALSE(llama(R"("rope_scaling": {"type": "linear"})"));
  EXPECT_TRUE(diags.saw({"/rope_scaling/factor: expected a number"}))
      << diags.all();
}

TEST_F(HuggingFace, DynamicScaling) {
  auto imported =
      llama(R"("rope_scaling": {"type": "dynamic", "factor": 2.0})");
  ASSERT_TRUE(imported) << diags.all();
  EXPECT_EQ(rope(*imported).scaling.type, "dynamic");
  EXPECT_EQ(rope(*imported).scaling.originalLength, 64);
  // Scaling begins where the trained length ends.
  EXPECT_EQ(imported->model.context, 128);
}

TEST_F(HuggingFace, Llama3Scaling) {
  auto imported = llama(R"("rope_scaling": {"rope_type": "llama3",
    "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16})");
  ASSERT_TRUE(imported) << diags.all();
  const spec::RopeScaling &scaling = rope(*imported).scaling;
  EXPECT_EQ(scaling.type, "llama3");
  EXPECT_EQ(scaling.factor, 8);
  EXPECT_EQ(scaling.lowFreqFactor, 1);
  EXPECT_EQ(scaling.highFreqFactor, 4);
  EXPECT_EQ(scaling.originalLength, 16);
  EXPECT_EQ(imported->model.context, 64);
  EXPECT_FALSE(llama(R"("rope_scaling": {"rope_type": "llama3"})"));
  EXPECT_EQ(diags.getNumErrors(), 4u) << diags.all();
}

TEST_F(HuggingFace, YarnScaling) {
  auto imported = llama(R"("rope_scaling": {"rope_type": "yarn",
    "factor": 4.0, "beta_fast": 4, "truncate": false})");
  ASSERT_TRUE(imported) << diags.all();
  spec::RopeScaling scaling = rope(*imported).scaling;
  EXPECT_EQ(scaling.type, "yarn");
  EXPECT_EQ(scaling.betaFast, 4);
  EXPECT_EQ(scaling.betaSlow, 1);
  EXPECT_FALSE(scaling.truncate);
  EXPECT_FALSE(scaling.attentionFactor);
  EXPECT_EQ(scaling.originalLength, 64);
  EXPECT_EQ(imported->model.context, 256);

  imported = llama(R"("rope_scaling": {"type": "yarn", "factor": 4,
    "original_max_position_embeddings": 16, "attention_factor": 1.25})");
  ASSERT_TRUE(imported) << diags.all();
  EXPECT_EQ(rope(*imported).scaling.originalLength, 16);
  EXPECT_EQ(rope(*imported).scaling.attentionFactor, 1.25);
  EXPECT_EQ(imported->model.context, 64);

  imported = llama(R"("rope_scaling": {"type": "yarn", "factor": 40,
    "mscale": 1.0, "mscale_all_dim": 0.5})");
  ASSERT_TRUE(imported) << diags.all();
  EXPECT_NEAR(*rope(*imported).scaling.attentionFactor,
              (0.1 * std::log(40) + 1) / (0.05 * std::log(40) + 1), 1e-15);
}

TEST_F(HuggingFace, RopeParametersOfVersion5) {
  auto imported = llama(R"("rope_parameters": {"rope_type": "default",
    "rope_theta": 20000}, "layer_types": ["full_attention", "full_attention",
    "full_attention"], "dtype": "bfloat16")");
  ASSERT_TRUE(imported) << diags.all();
  EXPECT_EQ(rope(*imported).theta, 20000);
  EXPECT_EQ(rope(*imported).scaling.type, "none");
  EXPECT_EQ(imported->model.dtype, spec::DType::BF16);
  imported = llama(R"("rope_parameters": {"rope_theta": 30000})");
  ASSERT_TRUE(imported) << diags.all();
  EXPECT_EQ(rope(*imported).theta, 30000);
  imported = llama(R"("rope_parameters": {"full_attention":
    {"rope_type": "linear", "factor": 2, "rope_theta": 7}})");
  ASSERT_TRUE(imported) << diags.all();
  EXPECT_EQ(rope(*imported).theta, 7);
  EXPECT_EQ(rope(*imported).scaling.factor, 2);

  EXPECT_FALSE(llama(R"("layer_types": ["full_attention"])"));
  EXPECT_TRUE(diags.saw({"/layer_types: lists 1 layers"})) << diags.all();
  EXPECT_FALSE(llama(R"("layer_types": ["full_attention", "sliding_attention",
    "full_attention"])"));
  EXPECT_TRUE(diags.saw({"/layer_types/1: expected \"full_attention\", found "
                         "'sliding_attention'"}))
      << diags.all();
}

TEST_F(HuggingFace, ScalingErrors) {
  EXPECT_FALSE(llama(R"("rope_scaling": {"type": "spiral", "factor": 2})"));
  EXPECT_TRUE(diags.saw({"5:26: /rope_scaling/type: 'spiral' is not supported; "
                         "expected one of default, linear"}))
      << diags.all();
  EXPECT_FALSE(llama(R"("rope_scaling": {"factor": 2})"));
  EXPECT_FALSE(llama(R"("rope_scaling": "linear")"));
  EXPECT_FALSE(
      llama(R"("rope_scaling": {"type": "linear", "factor": 2, "beta": 3})"));
  EXPECT_TRUE(diags.saw({"/rope_scaling/beta: this key may change"}))
      << diags.all();
}

TEST_F(HuggingFace, Architectures) {
  EXPECT_FALSE(import(R"({"model_type": "dbrx"})"));
  EXPECT_TRUE(diags.saw({"1:16: /model_type: the architecture 'dbrx' is not "
                         "known; known are ",
                         "llama, ", "description"}))
      << diags.all();
  EXPECT_FALSE(import("{}"));
  EXPECT_FALSE(llama(R"("architectures": ["LlamaForTokenClassification"])"));
  EXPECT_TRUE(
      diags.saw({"/architectures: expected LlamaForCausalLM, LlamaModel "
                 "or LlamaForSequenceClassification, found "
                 "'LlamaForTokenClassification'"}))
      << diags.all();

  auto imported = llama(R"("architectures": ["LlamaModel"])");
  ASSERT_TRUE(imported) << diags.all();
  EXPECT_EQ(layers(*imported).size(), 3u);
  EXPECT_EQ(layers(*imported)[0].name, "embed_tokens");
  EXPECT_EQ(imported->model.outputs[0].name, "last_hidden_state");
  EXPECT_EQ(imported->model.outputs[0].layer, "norm");
  // Old files name only the class.
  EXPECT_TRUE(import(R"({"architectures": ["GPT2LMHeadModel"]})"))
      << diags.all();
}

TEST_F(HuggingFace, BrokenFiles) {
  for (const char *text : {"", "{", "[]", "3", "{\"model_type\": 3}",
                           "{\"model_type\": \"gpt2\", \"n_embd\": [8]}"}) {
    EXPECT_FALSE(import(text)) << text;
    EXPECT_GT(diags.getNumErrors(), 0u) << text;
  }
  TempFolder empty;
  diags = Recorder();
  EXPECT_FALSE(importHuggingFace(empty.str(), diags));
  EXPECT_TRUE(diags.saw({"config.json"})) << diags.all();
}

TEST_F(HuggingFace, DTypes) {
  EXPECT_EQ(llama("\"torch_dtype\": \"float16\"")->model.dtype,
            spec::DType::F16);
  EXPECT_EQ(llama("\"torch_dtype\": \"torch.bfloat16\"")->model.dtype,
            spec::DType::BF16);
  EXPECT_EQ(llama()->model.dtype, spec::DType::F32);
  EXPECT_EQ(llama("\"torch_dtype\": \"half\"")->model.dtype, spec::DType::F16);
  EXPECT_EQ(llama("\"torch_dtype\": \"float64\"")->model.dtype,
            spec::DType::F32);
  EXPECT_FALSE(llama("\"torch_dtype\": \"int8\""));
  // Where nothing is said the checkpoint decides.
  writeTensors(folder / "model.safetensors",
               {{"model.norm.weight", {2}, runtime::DType::F16}});
  EXPECT_EQ(llama()->model.dtype, spec::DType::F16);
  EXPECT_EQ(llama("\"torch_dtype\": \"float8_e4m3fn\"")->model.dtype,
            spec::DType::F16);
}

TEST_F(HuggingFace, Generation) {
  auto imported = llama(R"("eos_token_id": [3, 4], "bos_token_id": 1)");
  ASSERT_TRUE(imported) << diags.all();
  EXPECT_EQ(imported->model.generation.eos, (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(imported->model.generation.bos, 1);
  EXPECT_FALSE(imported->model.generation.pad);
  EXPECT_EQ(imported->tokenizerPath, "");
  EXPECT_EQ(imported->checkpointPath, "");

  folder.write("generation_config.json",
               R"({"eos_token_id": 7, "pad_token_id": 0, "top_p": 0.9})");
  folder.write("tokenizer.json", "{}");
  imported = llama(R"("eos_token_id": [3, 4], "bos_token_id": 1)");
  ASSERT_TRUE(imported) << diags.all();
  EXPECT_EQ(imported->model.generation.eos, std::vector<int64_t>{7});
  EXPECT_EQ(imported->model.generation.bos, 1);
  EXPECT_EQ(imported->model.generation.pad, 0);
  EXPECT_EQ(imported->tokenizerPath, folder / "tokenizer.json");

  folder.write("generation_config.json", R"({"eos_token_id": "x"})");
  EXPECT_FALSE(llama());
  EXPECT_TRUE(diags.saw({"1:18: /eos_token_id: expected a token id"}))
      << diags.all();
}

TEST_F(HuggingFace, TokensOutsideTheVocabulary) {
  auto imported = llama("\"eos_token_id\": [3, 40], \"pad_token_id\": -1");
  ASSERT_TRUE(imported) << diags.all();
  EXPECT_EQ(imported->model.generation.eos, std::vector<int64_t>{3});
  EXPECT_FALSE(imported->model.generation.pad);
  EXPECT_TRUE(diags.saw({"/eos_token_id: token 40 is not in the vocabulary of "
                         "40 and is left out"}))
      << diags.all();
}

TEST_F(HuggingFace, AbsurdSizes) {
  EXPECT_FALSE(import(R"({"model_type": "llama", "vocab_size": 2147483647,
                          "hidden_size": 2147483584})"));
  EXPECT_TRUE(diags.saw({"1:1: the description that this stands for is not "
                         "valid: /layers/0: "}))
      << diags.all();
  EXPECT_FALSE(llama("\"num_hidden_layers\": 100001"));
}

TEST_F(HuggingFace, PrefixFollowsTheCheckpoint) {
  writeTensors(folder / "model.safetensors", {{"wte.weight", {32, 8}}});
  auto imported = gpt2();
  ASSERT_TRUE(imported) << diags.all();
  EXPECT_EQ(layers(*imported)[2].name, "h.{i}");
  EXPECT_EQ(std::get<spec::Linear>(layers(*imported)[4].op).tied, "wte");
  EXPECT_EQ(imported->checkpointPath, folder / "model.safetensors");

  // A checkpoint that the caller names counts instead of the folder's.
  writeTensors(folder / "other.safetensors",
               {{"transformer.wte.weight", {32, 8}}});
  imported = importHuggingFace(folder / "config.json", diags,
                               folder / "other.safetensors");
  ASSERT_TRUE(imported) << diags.all();
  EXPECT_EQ(layers(*imported)[2].name, "transformer.h.{i}");
}

TEST_F(HuggingFace, Paths) {
  EXPECT_TRUE(isHuggingFacePath(folder.str()));
  folder.write("config.json", R"({"model_type": "gpt2"})");
  folder.write("model.json", R"({"attune": 1, "layers": []})");
  folder.write("broken.json", "{");
  EXPECT_TRUE(isHuggingFacePath(folder / "config.json"));
  EXPECT_FALSE(isHuggingFacePath(folder / "model.json"));
  EXPECT_FALSE(isHuggingFacePath(folder / "broken.json"));
  EXPECT_FALSE(isHuggingFacePath(folder / "none.json"));
}

//===----------------------------------------------------------------------===//
// Whole folders
//===----------------------------------------------------------------------===//

/// Imports, compares with the checkpoint, prints and reads back.
static void checkFolder(const std::string &path) {
  SCOPED_TRACE(path);
  Recorder diags;
  auto imported = importHuggingFace(path, diags);
  ASSERT_TRUE(imported) << diags.all();
  auto checkpoint = Checkpoint::open(imported->checkpointPath, diags);
  ASSERT_TRUE(checkpoint) << diags.all();
  EXPECT_TRUE(checkWeights(imported->model, *checkpoint, diags));
  EXPECT_EQ(diags.all(), "");

  std::string text = spec::print(imported->model);
  auto file = std::make_shared<SourceFile>();
  file->path = "printed.json";
  file->text = text;
  auto again = spec::parse(file, diags);
  ASSERT_TRUE(again) << diags.all() << text;
  EXPECT_EQ(spec::print(*again), text);
  EXPECT_TRUE(checkWeights(*again, *checkpoint, diags)) << diags.all();
}

TEST(HuggingFaceFolders, InTheRepository) {
  checkFolder(ATTUNE_EXAMPLES_DIR "/storyteller");
  for (const auto &entry :
       fs::directory_iterator(ATTUNE_TEST_DIR "/Integration/CPU/oracle/hf"))
    checkFolder(entry.path().string());
}

TEST(HuggingFaceFolders, Shared) {
  fs::path shared = ATTUNE_SHARED_DIR;
  if (!fs::exists(shared / "oracle" / "hf"))
    GTEST_SKIP() << "no reference cases in " << shared;
  checkFolder((shared / "storyteller").string());
  checkFolder((shared / "storyteller_draft").string());
  checkFolder((shared / "oracle" / "trained" / "stories260K").string());
  for (const auto &entry : fs::directory_iterator(shared / "oracle" / "hf")) {
    std::string name = entry.path().filename().string();
    if (name.rfind("gpt2", 0) == 0 || name.rfind("llama", 0) == 0)
      checkFolder(entry.path().string());
  }
}

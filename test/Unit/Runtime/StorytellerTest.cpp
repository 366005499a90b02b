//===- StorytellerTest.cpp - A trained model, its kernels written by hand -===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The storyteller's decode step as a plain loop over the weights of its folder,
// called through the runtime as compiled code is. What the recordings then
// prove is everything but the compiler: tokenizer, session, cache, sampler,
// stopping.
//
//===----------------------------------------------------------------------===//

#include "attune/Runtime/Cli.h"
#include "attune/Runtime/Json.h"
#include "attune/Runtime/Safetensors.h"
#include "attune/Runtime/Tokenizer.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <gtest/gtest.h>

using namespace attune::runtime;

namespace {

constexpr int layers = 5, width = 128, heads = 4, kvHeads = 2, headWidth = 32,
              hidden = 288, vocabulary = 1024;

SafetensorsFile *weights = nullptr;

const float *weight(int layer, const char *role) {
  char name[80];
  std::snprintf(name, sizeof(name), "model.layers.%d.%s.weight", layer, role);
  const TensorInfo *info = weights->find(layer < 0 ? role : name);
  EXPECT_NE(info, nullptr) << name;
  return reinterpret_cast<const float *>(info->data);
}

void linear(const float *w, const float *x, int rows, int columns, float *y) {
  for (int r = 0; r < rows; ++r) {
    float sum = 0;
    for (int c = 0; c < columns; ++c)
      sum += w[r * columns + c] * x[c];
    y[r] = sum;
  }
}

void normalize(const float *gain, const float *x, float *y) {
  float squares = 0;
  for (int i = 0; i < width; ++i)
    squares += x[i] * x[i];
  float scale = 1.0f / std::sqrt(squares / width + 1e-5f);
  for (int i = 0; i < width; ++i)
    y[i] = gain[i] * x[i] * scale;
}

void rotate(float *x, int64_t position) {
  for (int i = 0; i < headWidth / 2; ++i) {
    double angle =
        static_cast<double>(position) * std::pow(10000.0, -2.0 * i / headWidth);
    float c = static_cast<float>(std::cos(angle)),
          s = static_cast<float>(std::sin(angle));
    float a = x[i], b = x[i + headWidth / 2];
    x[i] = a * c - b * s;
    x[i + headWidth / 2] = b * c + a * s;
  }
}

struct Memref {
  void *allocated, *aligned;
  int64_t offset, sizes[5];
};

/// Key or value rows of one layer and head in a cache [L, 1, Hkv, C, Dh].
float *cacheRows(Memref *cache, int layer, int head) {
  return static_cast<float *>(cache->aligned) +
         (layer * kvHeads + head) * cache->sizes[3] * headWidth;
}

void attend(const float *q, const float *keys, const float *values,
            int64_t count, float *out) {
  std::vector<float> scores(static_cast<size_t>(count));
  float largest = -INFINITY, sum = 0;
  for (int64_t n = 0; n < count; ++n) {
    float dot = 0;
    for (int d = 0; d < headWidth; ++d)
      dot += q[d] * keys[n * headWidth + d];
    scores[static_cast<size_t>(n)] = dot / std::sqrt(float(headWidth));
    largest = std::max(largest, scores[static_cast<size_t>(n)]);
  }
  std::fill(out, out + headWidth, 0.0f);
  for (int64_t n = 0; n < count; ++n) {
    float e = std::exp(scores[static_cast<size_t>(n)] - largest);
    sum += e;
    for (int d = 0; d < headWidth; ++d)
      out[d] += e * values[n * headWidth + d];
  }
  for (int d = 0; d < headWidth; ++d)
    out[d] /= sum;
}

void decodeToken(int64_t id, int64_t position, Memref *k, Memref *v,
                 float *logits) {
  const float *embedding = weight(-1, "model.embed_tokens.weight");
  float x[width], y[width], q[width], mixed[width], gate[hidden], up[hidden];
  std::memcpy(x, embedding + id * width, sizeof(x));
  for (int layer = 0; layer < layers; ++layer) {
    normalize(weight(layer, "input_layernorm"), x, y);
    linear(weight(layer, "self_attn.q_proj"), y, width, width, q);
    for (int h = 0; h < kvHeads; ++h) {
      float *key = cacheRows(k, layer, h) + position * headWidth;
      float *value = cacheRows(v, layer, h) + position * headWidth;
      int at = h * headWidth * width;
      linear(weight(layer, "self_attn.k_proj") + at, y, headWidth, width, key);
      linear(weight(layer, "self_attn.v_proj") + at, y, headWidth, width,
             value);
      rotate(key, position);
    }
    for (int h = 0; h < heads; ++h) {
      int group = h * kvHeads / heads;
      rotate(q + h * headWidth, position);
      attend(q + h * headWidth, cacheRows(k, layer, group),
             cacheRows(v, layer, group), position + 1, mixed + h * headWidth);
    }
    linear(weight(layer, "self_attn.o_proj"), mixed, width, width, y);
    for (int i = 0; i < width; ++i)
      x[i] += y[i];
    normalize(weight(layer, "post_attention_layernorm"), x, y);
    linear(weight(layer, "mlp.gate_proj"), y, hidden, width, gate);
    linear(weight(layer, "mlp.up_proj"), y, hidden, width, up);
    for (int i = 0; i < hidden; ++i)
      gate[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
    linear(weight(layer, "mlp.down_proj"), gate, width, hidden, y);
    for (int i = 0; i < width; ++i)
      x[i] += y[i];
  }
  normalize(weight(-1, "model.norm.weight"), x, y);
  linear(embedding, y, vocabulary, width, logits);
}

void decode(void **args) {
  auto *ids = static_cast<Memref *>(args[0]);
  auto *positions = static_cast<Memref *>(args[1]);
  int64_t count = ids->sizes[1];
  if (attune_rt_thread() == 0)
    for (int64_t t = 0; t < count; ++t)
      decodeToken(
          static_cast<int64_t *>(ids->aligned)[t],
          static_cast<int64_t *>(positions->aligned)[t],
          static_cast<Memref *>(args[3]), static_cast<Memref *>(args[4]),
          static_cast<float *>(static_cast<Memref *>(args[5])->aligned));
  attune_rt_barrier();
}

const attune_entry_fn entries[] = {decode};

class Storyteller : public ::testing::Test {
protected:
  void SetUp() override {
    std::string problem;
    ASSERT_TRUE(file.open(folder + "model.safetensors", problem)) << problem;
    ASSERT_TRUE(fixtures.open(folder + "fixtures.safetensors", problem));
    ASSERT_TRUE(parseJson(read("case.json"), cases, problem)) << problem;
    weights = &file;
    metadata =
        R"({"name":"storyteller","abi":3,"context":512,"entries":[)"
        R"({"name":"decode","args":[{"kind":"input","name":"input_ids",)"
        R"("dtype":"i64","shape":["batch","seq"],"max":1024},{"kind":"input",)"
        R"("name":"position_ids","dtype":"i64","shape":["batch","seq"],)"
        R"("default":"iota"},{"kind":"past"},{"kind":"cache","name":"k",)"
        R"("dtype":"f32","shape":[5,"batch",2,"capacity",32]},{"kind":"cache",)"
        R"("name":"v","dtype":"f32","shape":[5,"batch",2,"capacity",32]},)"
        R"({"kind":"output","name":"logits","dtype":"f32",)"
        R"("shape":["batch",1024]}]}],"generation":{"eos":1023,"bos":1023},)"
        R"("tokenizer_json":)";
    appendJsonString(metadata, read("tokenizer.json"));
    metadata += "}";
    descriptor = {ATTUNE_ABI_VERSION, 1,       metadata.data(),
                  metadata.size(),    entries, nullptr};
    OpenOptions options;
    options.threads = 2;
    model = CompiledModel::open(&descriptor, options, error);
    ASSERT_NE(model, nullptr) << error.message;
  }

  std::string read(const char *name) {
    std::string text;
    FILE *in = std::fopen((folder + name).c_str(), "rb");
    char buffer[4096];
    while (size_t n = std::fread(buffer, 1, sizeof(buffer), in))
      text.append(buffer, n);
    std::fclose(in);
    return text;
  }

  /// The recorded ids, as `generate --format=ids` prints them.
  std::string recorded(const std::string &name, int64_t &count) {
    const TensorInfo *info = fixtures.find(name + ".generated_ids");
    auto *ids = reinterpret_cast<const int64_t *>(info->data);
    std::string out;
    count = info->shape[1];
    for (int64_t i = 0; i < count; ++i)
      out += (i ? "," : "") + std::to_string(ids[i]);
    return out + "\n";
  }

  std::string generate(GenerateOptions options) {
    FILE *out = std::tmpfile();
    EXPECT_TRUE(executeGenerate(*model, options, out, stderr, error))
        << error.message;
    std::string text(static_cast<size_t>(std::ftell(out)), '\0');
    std::rewind(out);
    EXPECT_EQ(std::fread(text.data(), 1, text.size(), out), text.size());
    std::fclose(out);
    return text;
  }

  std::string folder = ATTUNE_EXAMPLES_DIR "/storyteller/";
  SafetensorsFile file, fixtures;
  JsonValue cases;
  std::string metadata;
  attune_model_descriptor descriptor = {};
  std::unique_ptr<CompiledModel> model;
  Error error;
};

TEST_F(Storyteller, GreedyStoriesAsRecorded) {
  const JsonValue &stories = *cases.find("stories");
  ASSERT_EQ(stories.items.size(), 6u);
  for (size_t i = 0; i < 2; ++i) {
    const JsonValue &story = stories.items[i];
    GenerateOptions options;
    options.hasPrompt = true;
    options.prompt = story.find("prompt")->string;
    options.format = GenerateOptions::Format::Ids;
    std::string want =
        recorded("prompt" + std::to_string(i), options.maxNewTokens);
    EXPECT_EQ(generate(options), want);
    // The recorded text of a begun story repeats its beginning.
    std::string text = story.find("text")->string;
    if (options.prompt[0] != '<')
      text.erase(0, options.prompt.size());
    options.format = GenerateOptions::Format::Text;
    EXPECT_EQ(generate(options), text + "\n");
  }
}

TEST_F(Storyteller, SampledStoriesAsRecorded) {
  const JsonValue &texts = *cases.find("sampled")->find("texts");
  ASSERT_EQ(texts.items.size(), 4u);
  for (size_t i = 0; i < texts.items.size(); ++i) {
    const JsonValue &text = texts.items[i];
    GenerateOptions options;
    options.hasPrompt = true;
    options.prompt = text.find("prompt")->string;
    options.format = GenerateOptions::Format::Ids;
    options.sampling.greedy = false;
    options.sampling.temperature = text.find("temperature")->real;
    options.sampling.seed = static_cast<uint64_t>(text.find("seed")->integer);
    std::string want =
        recorded("sample" + std::to_string(i), options.maxNewTokens);
    EXPECT_EQ(generate(options), want);
  }
}

} // namespace

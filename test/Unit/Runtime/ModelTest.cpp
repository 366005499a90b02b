//===- ModelTest.cpp - A hand-written model, run and generating -----------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Runtime/Cli.h"
#include "attune/Runtime/CompiledModel.h"
#include "attune/Runtime/Json.h"
#include "attune/Runtime/Tokenizer.h"

#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>

using namespace attune::runtime;

extern "C" const attune_entry_fn fake_entries[];
extern "C" const char fake_metadata[];

namespace {

const float zeroWeights[16] = {};

/// The fake model, with changed metadata if need be.
struct Fake {
  std::string metadata = fake_metadata;
  attune_model_descriptor descriptor = {};
  std::unique_ptr<CompiledModel> model;
  Error error;

  bool open(unsigned threads = 2, const float *weights = zeroWeights) {
    descriptor = {ATTUNE_ABI_VERSION, 2,      metadata.data(), metadata.size(),
                  fake_entries,       nullptr};
    OpenOptions options;
    options.threads = threads;
    options.weights = weights;
    options.weightsBytes = 64;
    model = CompiledModel::open(&descriptor, options, error);
    return model != nullptr;
  }
  void replace(const std::string &from, const std::string &to) {
    size_t at = metadata.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    metadata.replace(at, from.size(), to);
  }
};

std::string captured(FILE *file) {
  std::string text(static_cast<size_t>(std::ftell(file)), '\0');
  std::rewind(file);
  EXPECT_EQ(std::fread(text.data(), 1, text.size(), file), text.size());
  std::fclose(file);
  return text;
}

TEST(Model, ForwardBindsAndFills) {
  Fake fake;
  ASSERT_TRUE(fake.open(3)) << fake.error.message;
  Invocation invocation(*fake.model, *fake.model->entry("forward"));
  for (int64_t seq : {3, 5, 2}) {
    invocation.reset();
    std::vector<int64_t> ids(static_cast<size_t>(2 * seq), 4);
    InputTensor input{"input_ids", DType::I64, {2, seq}, ids.data()};
    ASSERT_TRUE(invocation.bindInput(input, fake.error));
    ASSERT_TRUE(invocation.resolve(0, "", fake.error)) << fake.error.message;
    ASSERT_EQ(invocation.outputs().size(), 2u);
    EXPECT_EQ(invocation.outputs()[0].shape,
              (std::vector<int64_t>{2, seq, 16}));
    std::vector<float> logits(static_cast<size_t>(2 * seq * 16)),
        sums(static_cast<size_t>(2 * seq));
    invocation.setOutput(0, logits.data());
    invocation.setOutput(1, sums.data());
    ASSERT_TRUE(invocation.run(fake.error)) << fake.error.message;
    EXPECT_EQ(logits[5], 1.0f);
    EXPECT_EQ(sums.back(), static_cast<float>(4 * seq + seq - 1));
  }
}

TEST(Model, AlignedInputsAreNotCopied) {
  Fake fake;
  ASSERT_TRUE(fake.open(1));
  Invocation invocation(*fake.model, *fake.model->entry("forward"));
  alignas(8) char bytes[8 * 3 + 1];
  for (int shift : {0, 1}) { // the second is not aligned: copied, same result
    invocation.reset();
    int64_t ids[] = {1, 2, 3};
    std::memcpy(bytes + shift, ids, 24);
    InputTensor input{"input_ids", DType::I64, {1, 3}, bytes + shift};
    ASSERT_TRUE(invocation.bindInput(input, fake.error));
    ASSERT_TRUE(invocation.resolve(0, "", fake.error));
    std::memset(bytes + shift, 0, 24); // visible to the model if not copied
    float logits[3 * 16], sums[3];
    invocation.setOutput(0, logits);
    invocation.setOutput(1, sums);
    ASSERT_TRUE(invocation.run(fake.error));
    EXPECT_EQ(sums[2], shift ? 8.0f : 2.0f);
  }
}

TEST(Model, BytesOtherThanZeroAndOneAreTrue) {
  Fake fake;
  ASSERT_TRUE(fake.open(1));
  Invocation invocation(*fake.model, *fake.model->entry("forward"));
  int64_t ids[] = {1, 2};
  uint8_t mask[] = {200, 0};
  ASSERT_TRUE(
      invocation.bindInput({"input_ids", DType::I64, {1, 2}, ids}, fake.error));
  ASSERT_TRUE(invocation.bindInput(
      {"attention_mask", DType::Bool, {1, 2}, mask}, fake.error));
  ASSERT_TRUE(invocation.resolve(0, "", fake.error));
  float logits[32], sums[2];
  invocation.setOutput(0, logits);
  invocation.setOutput(1, sums);
  ASSERT_TRUE(invocation.run(fake.error));
  EXPECT_EQ(sums[0], 1.0f);
  EXPECT_EQ(sums[1], 2.0f);
}

TEST(Model, BadMetadataIsAnInternalError) {
  auto expect = [](const char *from, const char *to, const char *message) {
    Fake fake;
    fake.replace(from, to);
    EXPECT_FALSE(fake.open());
    EXPECT_EQ(fake.error.code, ExitInternalError);
    EXPECT_NE(fake.error.message.find(message), std::string::npos)
        << fake.error.message;
  };
  expect("\"abi\":3", "\"abi\":4", "speaks version 4");
  expect("\"abi\":3,", "", "abi: expected a number, found null");
  expect("\"entries\":[", "\"entries\":[{},", "'entries' does not list");
  expect("\"kind\":\"past\"", "\"kind\":\"passed\"", "unknown kind 'passed'");
  expect("\"dtype\":\"bool\"", "\"dtype\":\"bull\"", "unknown dtype 'bull'");
  expect("\"default\":\"ones\"", "\"default\":\"twos\"", "unknown default");
  expect("[\"batch\",\"seq\"]", "[\"batch\",1.5]", "natural numbers and names");
  expect("\"eos\":[15]", "\"eos\":[[]]", "generation.eos");
  expect("{\"name\":\"fake\"", "\"name\":\"fake\"", "not valid JSON");
  Fake fake;
  fake.descriptor.abi_version = 7;
  fake.error = Error();
  OpenOptions options;
  EXPECT_EQ(CompiledModel::open(&fake.descriptor, options, fake.error),
            nullptr);
}

TEST(Session, PrefillAndStepsAgree) {
  for (unsigned threads : {1u, 2u, 3u}) {
    Fake fake;
    ASSERT_TRUE(fake.open(threads));
    auto session = Session::create(*fake.model, 2, 10, fake.error);
    ASSERT_NE(session, nullptr) << fake.error.message;
    int64_t prompts[] = {1, 2, 3, 4, 5, 6};
    ASSERT_TRUE(session->step(prompts, 3, fake.error)) << fake.error.message;
    EXPECT_EQ(session->vocabulary(), 16);
    EXPECT_EQ(session->logits(fake.error)[6], 1.0f);
    EXPECT_EQ(session->logits(fake.error)[16 + 15], 1.0f);
    const float *logits = session->logits(fake.error);
    std::vector<float> last(logits, logits + 32);
    session->reset();
    for (int i = 0; i < 3; ++i) {
      int64_t column[] = {prompts[i], prompts[3 + i]};
      ASSERT_TRUE(session->step(column, 1, fake.error));
    }
    EXPECT_EQ(session->length(), 3);
    EXPECT_EQ(std::memcmp(last.data(), session->logits(fake.error), 128), 0);
  }
}

TEST(Session, EndsWithItsCapacityAndTheContext) {
  Fake fake;
  ASSERT_TRUE(fake.open());
  auto session = Session::create(*fake.model, 1, 4, fake.error);
  std::vector<int64_t> ids(50, 1);
  EXPECT_FALSE(session->step(ids.data(), 5, fake.error));
  EXPECT_NE(fake.error.message.find("room for 4"), std::string::npos);
  EXPECT_TRUE(session->step(ids.data(), 4, fake.error));
  EXPECT_FALSE(session->step(ids.data(), 1, fake.error));
  session = Session::create(*fake.model, 1, 60, fake.error);
  EXPECT_FALSE(session->step(ids.data(), 41, fake.error));
  EXPECT_EQ(fake.error.message,
            "the sequence has 41 positions, but the model's context is 40");
  Fake blind;
  blind.replace("\"name\":\"decode\"", "\"name\":\"other\"");
  ASSERT_TRUE(blind.open());
  EXPECT_EQ(Session::create(*blind.model, 1, 4, blind.error), nullptr);
  EXPECT_NE(blind.error.message.find("no decode entry"), std::string::npos);
}

std::string generated(Fake &fake, GenerateOptions options) {
  FILE *out = std::tmpfile();
  if (!executeGenerate(*fake.model, options, out, stderr, fake.error)) {
    EXPECT_EQ(std::ftell(out), 0);
    std::fclose(out);
    return "error: " + fake.error.message;
  }
  return captured(out);
}

/// The fake with the storyteller's tokenizer and vocabulary.
struct TextFake : Fake {
  TextFake() {
    FILE *file =
        std::fopen(ATTUNE_EXAMPLES_DIR "/storyteller/tokenizer.json", "rb");
    std::string json;
    char buffer[4096];
    while (size_t n = std::fread(buffer, 1, sizeof(buffer), file))
      json.append(buffer, n);
    std::fclose(file);
    std::string text;
    appendJsonString(text, json);
    replace("\"inspect\":", "\"tokenizer_json\":" + text + ",\"inspect\":");
    for (int i = 0; i < 2; ++i)
      replace("\"max\":16", "\"max\":1024");
    replace("\"shape\":[\"batch\",16]", "\"shape\":[\"batch\",1024]");
  }
};

TEST(Generate, PrintsNewTextIdsOrBoth) {
  TextFake fake;
  ASSERT_TRUE(fake.open()) << fake.error.message;
  GenerateOptions options;
  options.hasPrompt = true;
  options.prompt = "$\""; // ids 3 and 1
  options.maxNewTokens = 3;
  // 4, 8 and 16 modulo 16: '%', ')' and '!'.
  EXPECT_EQ(generated(fake, options), "%)!\n");
  options.format = GenerateOptions::Format::Ids;
  EXPECT_EQ(generated(fake, options), "4,8,0\n");
  options.format = GenerateOptions::Format::Json;
  EXPECT_EQ(generated(fake, options),
            "{\"prompt_ids\":[3,1],\"ids\":[4,8,0],\"text\":\"%)!\","
            "\"stopped_by\":\"length\"}\n");
  // Token 15 ends the text and is no part of it, but it is among the ids.
  options.prompt = "()"; // 7 and 8
  EXPECT_EQ(generated(fake, options),
            "{\"prompt_ids\":[7,8],\"ids\":[15],\"text\":\"\","
            "\"stopped_by\":\"eos\"}\n");
  options.prompt = "";
  options.format = GenerateOptions::Format::Ids;
  EXPECT_EQ(generated(fake, options), "1,2,4\n"); // begins with bos
  options.hasPrompt = false;
  options.promptIds = {};
  EXPECT_EQ(generated(fake, options),
            "error: the prompt is empty, and the model names no token to begin "
            "with");
}

TEST(Generate, FillsTheContextAndRefusesMore) {
  Fake fake;
  ASSERT_TRUE(fake.open());
  GenerateOptions options;
  options.promptIds.assign(38, 8);
  EXPECT_EQ(generated(fake, options), "0,0\n");
  options.promptIds.assign(40, 8);
  EXPECT_NE(
      generated(fake, options).find("has 40 tokens, which leaves no room"),
      std::string::npos);
  options.promptIds = {99};
  EXPECT_NE(generated(fake, options).find("holds 99 at [0, 0]"),
            std::string::npos);
}

TEST(Generate, SamplesBySeed) {
  Fake fake;
  ASSERT_TRUE(fake.open());
  GenerateOptions options;
  options.promptIds = {1};
  options.ignoreEos = true;
  options.maxNewTokens = 20;
  options.sampling.greedy = false;
  std::string first = generated(fake, options);
  EXPECT_EQ(generated(fake, options), first);
  options.sampling.seed = 1;
  EXPECT_NE(generated(fake, options), first);
}

TEST(Generate, DamagedWeightsAreNamed) {
  float weights[16] = {};
  weights[3] = std::strtof("nan", nullptr);
  Fake fake;
  ASSERT_TRUE(fake.open(1, weights));
  GenerateOptions options;
  options.promptIds = {1};
  EXPECT_EQ(generated(fake, options), "error: the logits hold NaN at token 3: "
                                      "the weights may be damaged ('attune "
                                      "compile --check-weights' names the "
                                      "tensors)");
}

} // namespace

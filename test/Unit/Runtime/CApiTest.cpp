//===- CApiTest.cpp - Embedding a model through C -------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Runtime/attune.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace {

const float zeroWeights[16] = {};

class CApi : public ::testing::Test {
protected:
  void SetUp() override {
    attune_open_options options = {};
    options.struct_size = sizeof(options);
    options.threads = 2;
    options.weights = zeroWeights;
    options.weights_bytes = 64;
    instance = attune_open(&attune_model, &options);
    ASSERT_NE(instance, nullptr) << attune_last_error();
  }
  void TearDown() override { attune_close(instance); }
  attune_instance *instance = nullptr;
};

TEST_F(CApi, DescribesTheModel) {
  ASSERT_EQ(attune_num_inputs(instance), 3u);
  ASSERT_EQ(attune_num_outputs(instance), 2u);
  EXPECT_EQ(attune_context(instance), 40);
  attune_tensor_info info;
  ASSERT_EQ(attune_input_info(instance, 1, &info), ATTUNE_OK);
  EXPECT_STREQ(info.name, "attention_mask");
  EXPECT_EQ(info.dtype, ATTUNE_BOOL);
  EXPECT_EQ(info.optional, 1);
  ASSERT_EQ(attune_output_info(instance, 0, &info), ATTUNE_OK);
  EXPECT_EQ(info.rank, 3);
  EXPECT_EQ(info.shape[0], -1);
  EXPECT_STREQ(info.symbols[1], "seq");
  EXPECT_EQ(info.shape[2], 16);
  EXPECT_EQ(info.symbols[2], nullptr);
  EXPECT_EQ(attune_output_info(instance, 2, &info), ATTUNE_BAD_CALL);
}

TEST_F(CApi, RunsIntoItsOwnMemoryOrTheCallers) {
  int64_t ids[] = {1, 2, 3};
  attune_tensor input = {"input_ids", ATTUNE_I64, 2, {1, 3}, ids};
  attune_tensor outputs[2] = {};
  outputs[0].name = "sums";
  outputs[1].name = "logits";
  ASSERT_EQ(attune_run(instance, &input, 1, outputs, 2), ATTUNE_OK)
      << attune_last_error();
  EXPECT_EQ(outputs[0].rank, 2);
  EXPECT_EQ(outputs[0].shape[1], 3);
  EXPECT_EQ(static_cast<float *>(outputs[0].data)[2], 8.0f);
  EXPECT_EQ(static_cast<float *>(outputs[1].data)[2], 1.0f);
  float mine[3] = {};
  attune_tensor own = {"sums", ATTUNE_F32, 2, {1, 3}, mine};
  ASSERT_EQ(attune_run(instance, &input, 1, &own, 1), ATTUNE_OK);
  EXPECT_EQ(mine[1], 4.0f);
  own.shape[1] = 2;
  EXPECT_EQ(attune_run(instance, &input, 1, &own, 1), ATTUNE_BAD_CALL);
  EXPECT_NE(std::strstr(attune_last_error(), "[1, 3]"), nullptr);
  own.name = "nothing";
  EXPECT_EQ(attune_run(instance, &input, 1, &own, 1), ATTUNE_BAD_CALL);
  ids[0] = 16;
  EXPECT_EQ(attune_run(instance, &input, 1, nullptr, 0), ATTUNE_BAD_INPUT);
  EXPECT_NE(std::strstr(attune_last_error(), "holds 16 at [0, 0]"), nullptr);
  ids[0] = 1;
  ASSERT_EQ(attune_set_dim(instance, "seq", 4), ATTUNE_OK);
  EXPECT_EQ(attune_run(instance, &input, 1, nullptr, 0), ATTUNE_BAD_INPUT);
  ASSERT_EQ(attune_set_dim(instance, "seq", 0), ATTUNE_OK);
  EXPECT_EQ(attune_run(instance, &input, 1, nullptr, 0), ATTUNE_OK);
}

TEST_F(CApi, DecodesInSessions) {
  attune_session *session = attune_session_open(instance, 1, 0);
  ASSERT_NE(session, nullptr) << attune_last_error();
  int64_t ids[] = {2, 3};
  ASSERT_EQ(attune_session_step(session, ids, 2), ATTUNE_OK);
  EXPECT_EQ(attune_session_vocabulary(session), 16);
  EXPECT_EQ(attune_session_logits(session)[5], 1.0f);
  EXPECT_EQ(attune_session_length(session), 2);
  attune_session_reset(session);
  EXPECT_EQ(attune_session_length(session), 0);
  EXPECT_EQ(attune_session_step(session, ids, 0), ATTUNE_BAD_CALL);
  EXPECT_EQ(attune_session_step(session, ids, -1), ATTUNE_BAD_CALL);
  EXPECT_EQ(attune_session_step(session, nullptr, 1), ATTUNE_BAD_CALL);
  attune_session_close(session);
  EXPECT_EQ(attune_session_open(instance, 0, 5), nullptr);
}

TEST_F(CApi, SessionsOutliveTheirInstance) {
  attune_session *first = attune_session_open(instance, 1, 0);
  attune_session *second = attune_session_open(instance, 1, 0);
  ASSERT_NE(second, nullptr) << attune_last_error();
  attune_session_close(first);
  attune_close(instance);
  instance = nullptr;
  int64_t ids[] = {2, 3};
  EXPECT_EQ(attune_session_step(second, ids, 2), ATTUNE_BAD_CALL);
  EXPECT_STREQ(attune_last_error(), "the session's instance was closed");
  EXPECT_EQ(attune_session_logits(second), nullptr);
  EXPECT_EQ(attune_session_length(second), -1);
  EXPECT_EQ(attune_session_vocabulary(second), -1);
  EXPECT_EQ(attune_session_rewind(second, 0), ATTUNE_BAD_CALL);
  EXPECT_EQ(attune_session_encode(second, nullptr, 0), ATTUNE_BAD_CALL);
  attune_session_reset(second);
  attune_session_close(second);
}

// The child has none of the model's threads, which would be waited for.
TEST_F(CApi, SaysThatItWasForked) {
  pid_t child = fork();
  if (child == 0) {
    alarm(20);
    int64_t id = 1;
    attune_tensor input = {"input_ids", ATTUNE_I64, 2, {1, 1}, &id};
    bool refused =
        attune_run(instance, &input, 1, nullptr, 0) == ATTUNE_BAD_CALL &&
        std::strstr(attune_last_error(), "forked");
    attune_close(instance);
    _exit(refused ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_F(CApi, RefusesAbsurdNumbers) {
  attune_open_options open = {};
  open.struct_size = sizeof(open);
  open.threads = 3000000;
  open.weights = zeroWeights;
  open.weights_bytes = 64;
  EXPECT_EQ(attune_open(&attune_model, &open), nullptr);
  EXPECT_STREQ(attune_last_error(),
               "3000000 threads are more than the 1024 that a model takes");

  int64_t id = 1;
  char text[8];
  EXPECT_EQ(attune_decode(instance, &id, -1, text, 8), -1);
  EXPECT_EQ(attune_decode(instance, &id, 1, text, -1), -1);
  EXPECT_EQ(attune_decode(instance, &id, INT64_MAX, text, 8), -1);
  EXPECT_EQ(attune_encode(instance, "a", 1, &id, -1), -1);
  EXPECT_EQ(attune_encode(instance, nullptr, 1, &id, 1), -1);

  auto stop = [](void *, int64_t) { return 0; };
  EXPECT_EQ(attune_generate(instance, &id, INT64_MAX, nullptr, stop, nullptr),
            ATTUNE_BAD_CALL);
  for (float value : {NAN, INFINITY, -1.0f, 1e-30f}) {
    attune_generate_options options = {};
    options.struct_size = sizeof(options);
    options.temperature = value;
    EXPECT_EQ(attune_generate(instance, &id, 1, &options, stop, nullptr),
              ATTUNE_BAD_CALL)
        << value;
    options.temperature = 0;
    options.top_p = value == 1e-30f ? NAN : value;
    EXPECT_EQ(attune_generate(instance, &id, 1, &options, stop, nullptr),
              ATTUNE_BAD_CALL)
        << value;
  }
}

TEST_F(CApi, GeneratesUntilTheCallbackStops) {
  int64_t prompt[] = {1, 2};
  std::vector<int64_t> ids;
  auto collect = [](void *context, int64_t id) {
    auto &ids = *static_cast<std::vector<int64_t> *>(context);
    ids.push_back(id);
    return ids.size() < 3 ? 1 : 0;
  };
  ASSERT_EQ(attune_generate(instance, prompt, 2, nullptr, collect, &ids),
            ATTUNE_OK);
  EXPECT_EQ(ids, (std::vector<int64_t>{3, 6, 12}));
  attune_generate_options options = {};
  options.struct_size = sizeof(options);
  options.top_p = 2;
  EXPECT_EQ(attune_generate(instance, prompt, 2, &options, collect, &ids),
            ATTUNE_BAD_CALL);
}

TEST_F(CApi, HasNoTokenizerHere) {
  int64_t ids[4];
  EXPECT_EQ(attune_encode(instance, "a", 1, ids, 4), -1);
  EXPECT_NE(std::strstr(attune_last_error(), "no tokenizer"), nullptr);
}

TEST(CApiOpen, CallsOnNullAreBadCalls) {
  int64_t id = 0;
  attune_tensor input = {"input_ids", ATTUNE_I64, 2, {1, 1}, &id};
  attune_tensor_info info;
  auto hear = [](void *, int64_t) { return 1; };
  EXPECT_EQ(attune_run(nullptr, &input, 1, nullptr, 0), ATTUNE_BAD_CALL);
  EXPECT_STREQ(attune_last_error(), "the instance is null");
  EXPECT_EQ(attune_num_inputs(nullptr), 0u);
  EXPECT_EQ(attune_num_outputs(nullptr), 0u);
  EXPECT_EQ(attune_input_info(nullptr, 0, &info), ATTUNE_BAD_CALL);
  EXPECT_EQ(attune_output_info(nullptr, 0, &info), ATTUNE_BAD_CALL);
  EXPECT_EQ(attune_context(nullptr), 0);
  EXPECT_EQ(attune_set_dim(nullptr, "seq", 1), ATTUNE_BAD_CALL);
  EXPECT_EQ(attune_num_adapters(nullptr), 0u);
  EXPECT_EQ(attune_choose_adapter(nullptr, nullptr), ATTUNE_BAD_CALL);
  EXPECT_EQ(attune_session_open(nullptr, 1, 0), nullptr);
  EXPECT_EQ(attune_load_draft(nullptr, nullptr), ATTUNE_BAD_CALL);
  EXPECT_EQ(attune_generate(nullptr, &id, 1, nullptr, hear, nullptr),
            ATTUNE_BAD_CALL);
  EXPECT_EQ(attune_encode(nullptr, "a", 1, nullptr, 0), -1);
  EXPECT_EQ(attune_decode(nullptr, &id, 1, nullptr, 0), -1);
  EXPECT_EQ(attune_set_step(nullptr, nullptr, nullptr, 0), ATTUNE_BAD_CALL);
  attune_close(nullptr);
}

TEST(CApiOpen, ExplainsItself) {
  EXPECT_EQ(attune_open(nullptr, nullptr), nullptr);
  attune_open_options options = {};
  options.struct_size = sizeof(options);
  options.weights_path = "/nonexistent";
  EXPECT_EQ(attune_open(&attune_model, &options), nullptr);
  EXPECT_NE(std::strstr(attune_last_error(), "/nonexistent: cannot open"),
            nullptr);
}

int collect(void *context, int64_t id) {
  static_cast<std::vector<int64_t> *>(context)->push_back(id);
  return 1;
}

TEST_F(CApi, SamplingSettingsChangeTheText) {
  // The fake model says the sum of all tokens so far, modulo 16.
  attune_generate_options options = {};
  options.struct_size = sizeof(options);
  options.max_new_tokens = 4;
  options.ignore_eos = 1;
  int64_t prompt[] = {3, 1};
  auto generate = [&] {
    std::vector<int64_t> ids;
    EXPECT_EQ(attune_generate(instance, prompt, 2, &options, collect, &ids),
              ATTUNE_OK)
        << attune_last_error();
    return ids;
  };
  EXPECT_EQ(generate(), (std::vector<int64_t>{4, 8, 0, 0}));
  options.no_repeat_ngram = 2;
  EXPECT_EQ(generate(), (std::vector<int64_t>{4, 8, 0, 0}));
  options.no_repeat_ngram = 1; // 3 and 1 stand in the prompt
  EXPECT_EQ(generate(), (std::vector<int64_t>{4, 8, 0, 2}));
  options.no_repeat_ngram = 0;
  attune_logit_bias biases[] = {{4, -2}, {9, 1.5}};
  options.logit_biases = biases;
  options.num_logit_biases = 2;
  EXPECT_EQ(generate()[0], 9);
  options.presence_penalty = 10;
  EXPECT_EQ(generate(), (std::vector<int64_t>{9, 13, 10, 0}));
}

// The model has no entry that checks guesses; storyteller-draft.test runs one
// that does.
TEST_F(CApi, GuessesAreAskedForRightly) {
  int64_t prompt[] = {1};
  std::vector<int64_t> ids;
  auto status = [&](int64_t draft, int64_t lookup) {
    attune_generate_options options = {};
    options.struct_size = sizeof(options);
    options.max_new_tokens = 2;
    options.draft_tokens = draft;
    options.lookup_tokens = lookup;
    return attune_generate(instance, prompt, 1, &options, collect, &ids);
  };
  for (int64_t wrong : {int64_t(-1), int64_t(65), INT64_MAX}) {
    EXPECT_EQ(status(wrong, 0), ATTUNE_BAD_CALL);
    EXPECT_EQ(status(0, wrong), ATTUNE_BAD_CALL);
  }
  EXPECT_EQ(status(4, 4), ATTUNE_BAD_CALL);
  EXPECT_NE(std::strstr(attune_last_error(), "exclude"), nullptr);
  EXPECT_EQ(status(4, 0), ATTUNE_BAD_CALL);
  EXPECT_NE(std::strstr(attune_last_error(), "attune_load_draft"), nullptr);
  EXPECT_EQ(status(0, 4), ATTUNE_BAD_INPUT);
  EXPECT_NE(std::strstr(attune_last_error(), "cannot check guessed tokens"),
            nullptr);
  EXPECT_TRUE(ids.empty());

  EXPECT_EQ(attune_load_draft(nullptr, "x.so"), ATTUNE_BAD_CALL);
  EXPECT_EQ(attune_load_draft(instance, "/nonexistent/x.so"), ATTUNE_BAD_INPUT);
  EXPECT_NE(std::strstr(attune_last_error(), "/nonexistent/x.so"), nullptr);
  EXPECT_EQ(attune_load_draft(instance, nullptr), ATTUNE_OK);
}

TEST_F(CApi, SettingsOutOfRangeAreBadCalls) {
  int64_t prompt[] = {1};
  std::vector<int64_t> ids;
  auto status = [&](auto change) {
    attune_generate_options options = {};
    options.struct_size = sizeof(options);
    options.max_new_tokens = 2;
    change(options);
    return attune_generate(instance, prompt, 1, &options, collect, &ids);
  };
  EXPECT_EQ(status([](auto &options) { options.temperature = 1e-308; }),
            ATTUNE_BAD_CALL);
  EXPECT_STREQ(attune_last_error(),
               "the sampling setting temperature is out of range");
  for (double wrong : {-1.0, 1e9, static_cast<double>(NAN)}) {
    EXPECT_EQ(status([=](auto &options) { options.temperature = wrong; }),
              ATTUNE_BAD_CALL);
    EXPECT_EQ(status([=](auto &options) { options.top_p = wrong; }),
              ATTUNE_BAD_CALL);
    EXPECT_EQ(status([=](auto &options) { options.min_p = wrong; }),
              ATTUNE_BAD_CALL);
    EXPECT_EQ(
        status([=](auto &options) { options.repetition_penalty = wrong; }),
        ATTUNE_BAD_CALL);
  }
  EXPECT_EQ(status([](auto &options) { options.num_logit_biases = 1; }),
            ATTUNE_BAD_CALL);
  EXPECT_TRUE(ids.empty());
}

TEST_F(CApi, SessionsTakeBackPositions) {
  attune_session *session = attune_session_open(instance, 1, 8);
  ASSERT_NE(session, nullptr) << attune_last_error();
  auto best = [&] {
    const float *logits = attune_session_logits(session);
    return std::max_element(logits, logits + 16) - logits;
  };
  int64_t ids[] = {1, 2, 4}, other[] = {5};
  ASSERT_EQ(attune_session_step(session, ids, 3), ATTUNE_OK);
  EXPECT_EQ(best(), 7);
  EXPECT_EQ(attune_session_rewind(session, 4), ATTUNE_BAD_CALL);
  EXPECT_EQ(attune_session_rewind(session, -1), ATTUNE_BAD_CALL);
  ASSERT_EQ(attune_session_rewind(session, 2), ATTUNE_OK);
  EXPECT_EQ(attune_session_length(session), 2);
  ASSERT_EQ(attune_session_step(session, other, 1), ATTUNE_OK);
  EXPECT_EQ(best(), 8); // 1 + 2 + 5
  attune_session_close(session);
}

} // namespace

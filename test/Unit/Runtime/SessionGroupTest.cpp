//===- SessionGroupTest.cpp - Sequences that are decoded together ---------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Generation/SessionGroup.h"

#include <gtest/gtest.h>

using namespace attune::runtime;

namespace {

constexpr int64_t layers = 2, heads = 3, vocabulary = 4;

/// Descriptors of tensors as entries get them.
struct Tensor {
  explicit Tensor(void *arg) : words(static_cast<int64_t *>(arg)) {}
  template <typename T> T *data() const {
    return reinterpret_cast<T *>(words[1]);
  }
  int64_t size(int dim) const { return words[3 + dim]; }
  int64_t *words;
};

int64_t numSingle, numTogether;

/// Writes a token at `past` of every layer and head, and says of all that are
/// there: their number, their sum, and whether layers and heads agree. `next`
/// is from one layer's part of the sequence to the next.
void takeToken(float *cache, int64_t next, int64_t capacity, int64_t past,
               int64_t position, int64_t id, float *logits) {
  double sum = 0;
  bool agree = true;
  for (int64_t layer = 0; layer < layers; ++layer)
    for (int64_t head = 0; head < heads; ++head) {
      float *rows = cache + layer * next + head * capacity;
      rows[past] = static_cast<float>(id * (layer * heads + head + 1));
      double own = 0;
      for (int64_t i = 0; i <= past; ++i)
        own += rows[i];
      own /= static_cast<double>(layer * heads + head + 1);
      agree &= (layer == 0 && head == 0) || own == sum;
      sum = own;
    }
  logits[0] = static_cast<float>(past + 1);
  logits[1] = static_cast<float>(sum);
  logits[2] = agree ? 1 : 0;
  logits[3] = static_cast<float>(position);
}

/// ids, position_ids, past, cache, logits
void decode(void **args) {
  ++numSingle;
  Tensor ids(args[0]), positions(args[1]), cache(args[3]), logits(args[4]);
  int64_t past = *static_cast<int64_t *>(args[2]);
  for (int64_t t = 0; t < ids.size(1); ++t)
    takeToken(cache.data<float>(), heads * cache.size(3), cache.size(3),
              past + t, positions.data<int64_t>()[t], ids.data<int64_t>()[t],
              logits.data<float>());
}

/// ids, position_ids, past, lengths, cache, logits
void decodeBatch(void **args) {
  ++numTogether;
  Tensor ids(args[0]), positions(args[1]), lengths(args[3]), cache(args[4]),
      logits(args[5]);
  int64_t longest = *static_cast<int64_t *>(args[2]), capacity = cache.size(3);
  for (int64_t b = 0; b < ids.size(0); ++b) {
    int64_t past = lengths.data<int64_t>()[b];
    EXPECT_LE(past, longest);
    takeToken(cache.data<float>() + b * layers * heads * capacity,
              heads * capacity, capacity, past, positions.data<int64_t>()[b],
              ids.data<int64_t>()[b], logits.data<float>() + b * vocabulary);
  }
}

std::string metadata(const std::string &batchCache = R"(
["batch", 2, 3, "capacity", 1])") {
  std::string ids = R"({"kind": "input", "name": "input_ids", "dtype": "i64",
    "shape": ["batch", )",
              positions = R"(], "max": 100}, {"kind": "input",
    "name": "position_ids", "dtype": "i64", "default": "iota",
    "shape": ["batch", )",
              cache = R"({"kind": "cache", "name": "kv", "dtype": "f32",
    "shape": )",
              logits = R"(}, {"kind": "output", "name": "logits",
    "dtype": "f32", "shape": ["batch", 4]}]})";
  return R"({"name": "sums", "abi": )" + std::to_string(ATTUNE_ABI_VERSION) +
         R"(, "entries": [{"name": "decode", "args": [)" + ids + "\"seq\"" +
         positions + "\"seq\"]}, {\"kind\": \"past\"}, " + cache +
         R"([2, "batch", 3, "capacity", 1])" + logits +
         R"(, {"name": "decode_batch", "args": [)" + ids + "1" + positions +
         R"(1]}, {"kind": "past"}, {"kind": "lengths", "name": "lengths",
    "dtype": "i64", "shape": ["batch"]}, )" +
         cache + batchCache + logits + "]}";
}

const attune_entry_fn entries[] = {decode, decodeBatch};

struct Group : ::testing::Test {
  bool open(const std::string &text, unsigned count) {
    json = text;
    descriptor = {ATTUNE_ABI_VERSION, 2,       json.data(),
                  json.size(),        entries, nullptr};
    OpenOptions options;
    options.threads = 1;
    model = CompiledModel::open(&descriptor, options, error);
    if (!model)
      return false;
    group.reset(new SessionGroup(*model, count, /*capacity=*/8));
    texts.resize(count);
    numSingle = numTogether = 0;
    return true;
  }
  /// Reads a prompt by itself.
  void read(unsigned number, std::vector<int64_t> ids) {
    ASSERT_TRUE(group->open(number, error)) << error.message;
    ASSERT_TRUE(group->session(number).step(
        ids.data(), static_cast<int64_t>(ids.size()), error))
        << error.message;
    texts[number].insert(texts[number].end(), ids.begin(), ids.end());
    check(number);
  }
  void step(std::vector<unsigned> members, std::vector<int64_t> ids) {
    ASSERT_TRUE(group->step(members, ids, error)) << error.message;
    for (size_t i = 0; i < members.size(); ++i)
      texts[members[i]].push_back(ids[i]);
    for (unsigned number : members)
      check(number);
  }
  /// The logits tell what the sequence has, and nothing of the others.
  void check(unsigned number) {
    const float *logits = group->session(number).logits(error);
    int64_t sum = 0;
    for (int64_t id : texts[number])
      sum += id;
    auto length = static_cast<int64_t>(texts[number].size());
    EXPECT_EQ(logits[0], static_cast<float>(length)) << number;
    EXPECT_EQ(logits[1], static_cast<float>(sum)) << number;
    EXPECT_EQ(logits[2], 1.0f) << number;
    EXPECT_EQ(logits[3], static_cast<float>(length - 1)) << number;
    EXPECT_EQ(group->session(number).length(), length);
  }

  std::string json;
  attune_model_descriptor descriptor = {};
  Error error;
  std::unique_ptr<CompiledModel> model;
  std::unique_ptr<SessionGroup> group;
  std::vector<std::vector<int64_t>> texts;
};

} // namespace

TEST_F(Group, UnequalSequencesTakeOneStep) {
  ASSERT_TRUE(open(metadata(), 4)) << error.message;
  ASSERT_TRUE(group->stepsTogether());
  read(0, {5, 6, 7});
  read(1, {8});
  read(2, {9, 10});
  step({0, 1, 2}, {1, 2, 3});
  // Others than the first ones, in any order; those left out keep theirs.
  step({2, 0}, {4, 5});
  step({1, 2}, {20, 21});
  read(3, {30, 31, 32, 33});
  step({3, 1}, {34, 22});
  step({0, 1, 2, 3}, {50, 51, 52, 53});
  EXPECT_EQ(numTogether, 5);
  EXPECT_EQ(numSingle, 4);
  // One alone needs no row of its own.
  step({2}, {60});
  EXPECT_EQ(numTogether, 5);
  EXPECT_EQ(numSingle, 5);
}

TEST_F(Group, SessionsStartAnewWhereTheyAre) {
  ASSERT_TRUE(open(metadata(), 3)) << error.message;
  read(0, {1, 2, 3});
  read(1, {4});
  read(2, {6, 7});
  step({1, 2}, {8, 9});
  group->session(1).reset();
  texts[1].clear();
  read(1, {11, 12});
  ASSERT_TRUE(group->session(0).rewind(1, error));
  texts[0].resize(1);
  step({0, 1, 2}, {13, 14, 15});
}

TEST_F(Group, GoesOnFromCopies) {
  ASSERT_TRUE(open(metadata(), 4)) << error.message;
  read(0, {5, 6, 7});
  read(1, {8});
  read(2, {9, 10, 11, 12});
  ASSERT_TRUE(group->open(3, error)) << error.message;
  // A beginning, a whole one over what was there, and more of a beginning.
  ASSERT_TRUE(group->session(3).copyFrom(group->session(0), 2, error));
  texts[3] = {5, 6};
  ASSERT_TRUE(group->session(2).copyFrom(group->session(0), 3, error));
  texts[2] = texts[0];
  check(2);
  step({3, 1, 2}, {20, 21, 22});
  step({0, 3}, {23, 24});
  read(1, {25});
  ASSERT_TRUE(group->session(3).rewind(1, error));
  ASSERT_TRUE(group->session(3).copyFrom(group->session(0), 4, error, 1));
  texts[3] = texts[0];
  check(3);
  step({0, 1, 2, 3}, {30, 31, 32, 33});
  EXPECT_FALSE(group->session(1).copyFrom(group->session(0), 6, error));
  EXPECT_EQ(error.message, "one session cannot go on from the other");
}

TEST_F(Group, GoesOnFromBytes) {
  ASSERT_TRUE(open(metadata(), 3)) << error.message;
  read(0, {5, 6, 7});
  read(1, {8});
  step({1, 0}, {1, 2});
  std::vector<uint8_t> bytes(group->session(0).countSaved());
  ASSERT_TRUE(group->session(0).save(bytes.data(), error)) << error.message;
  ASSERT_TRUE(group->open(2, error));
  ASSERT_TRUE(group->session(2).restore(bytes.data(), bytes.size(), error))
      << error.message;
  texts[2] = texts[0];
  check(2);
  step({2, 1, 0}, {3, 4, 5});
  // Whatever is changed in its head, nothing is written beyond a cache.
  for (size_t i = 0; i < 40; ++i)
    for (uint8_t bit : {0x01, 0x80}) {
      std::vector<uint8_t> damaged = bytes;
      damaged[i] ^= bit;
      EXPECT_FALSE(
          group->session(2).restore(damaged.data(), damaged.size(), error))
          << i;
    }
  ASSERT_TRUE(group->session(2).restore(bytes.data(), bytes.size(), error));
}

TEST_F(Group, EndsWithTheCapacity) {
  ASSERT_TRUE(open(metadata(), 3)) << error.message;
  read(0, {1, 2, 3, 4, 5, 6, 7});
  read(1, {1});
  read(2, {2});
  step({0, 1, 2}, {8, 2, 3});
  // One that has no room keeps none of the others back.
  std::vector<Error> errors;
  group->step({1, 0, 2}, {3, 9, 4}, errors);
  ASSERT_EQ(errors.size(), 3u);
  EXPECT_EQ(errors[0].code, ExitSuccess);
  EXPECT_EQ(errors[1].message, "a sequence has no room for a step");
  EXPECT_EQ(errors[2].code, ExitSuccess);
  texts[1].push_back(3);
  texts[2].push_back(4);
  for (unsigned number : {0u, 1u, 2u})
    check(number);
  EXPECT_FALSE(group->step({0, 1}, {9, 4}, error));
  EXPECT_EQ(error.message, "a sequence has no room for a step");
  texts[1].push_back(4);
  check(1);
}

// Where a step is refused as a whole, none of them has its token.
TEST_F(Group, StaysWhatItWasWhereAStepFails) {
  ASSERT_TRUE(open(metadata(), 3)) << error.message;
  read(0, {5, 6, 7});
  read(1, {8});
  read(2, {9});
  step({0, 1, 2}, {1, 2, 3});
  std::vector<Error> errors;
  group->step({2, 1}, {4, 100}, errors); // 100 is no token
  for (const Error &each : errors)
    EXPECT_EQ(each.code, ExitBadInput) << each.message;
  for (unsigned number : {0u, 1u, 2u})
    check(number);
  step({2, 1}, {4, 5});
}

TEST_F(Group, OtherCachesAreNotShared) {
  // One sequence at a time, each with memory of its own.
  ASSERT_TRUE(open(metadata("[2, \"batch\", 3, \"capacity\", 1]"), 3))
      << error.message;
  EXPECT_FALSE(group->stepsTogether());
  read(0, {1, 2});
  read(1, {3});
  read(2, {6});
  step({0}, {4});
  step({0, 1}, {5, 6});
  // Each has its token or its error.
  std::vector<Error> errors;
  group->step({0, 1, 2}, {7, 100, 8}, errors);
  ASSERT_EQ(errors.size(), 3u);
  EXPECT_EQ(errors[0].code, ExitSuccess);
  EXPECT_EQ(errors[1].code, ExitBadInput);
  EXPECT_EQ(errors[2].code, ExitSuccess);
  texts[0].push_back(7);
  texts[2].push_back(8);
  for (unsigned number : {0u, 1u, 2u})
    check(number);
  EXPECT_EQ(numTogether, 0);
}

//===- PictureTest.cpp - Pictures in texts ----------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Runtime/Picture.h"

#include "gtest/gtest.h"

using namespace attune::runtime;

namespace {
/// A model whose pictures have four tokens each.
ModelInfo modelThatSees(Bidirectional bidirectional) {
  ModelInfo model;
  EntryInfo decode;
  decode.name = "decode";
  ArgInfo rows;
  rows.inserted = 37;
  rows.each = 4;
  rows.bidirectional = bidirectional;
  decode.args.push_back(rows);
  model.entries.push_back(decode);
  return model;
}

/// Keys of texts of these lengths, with a picture after each but the last.
std::vector<int64_t> keysOf(const std::vector<size_t> &lengths) {
  std::vector<int64_t> keys;
  for (size_t i = 0; i < lengths.size(); ++i) {
    keys.insert(keys.end(), lengths[i], 5);
    if (i + 1 < lengths.size())
      keys.insert(keys.end(), 4, -1 - static_cast<int64_t>(i));
  }
  return keys;
}
} // namespace

TEST(Picture, PromptsAreCutAroundPictures) {
  ModelInfo model = modelThatSees(Bidirectional::Image);
  static_assert(fewRows == 16);
  // 40 tokens, a picture, 20 tokens, two pictures, 50 tokens.
  std::vector<int64_t> keys = keysOf({40, 20, 0, 50});
  auto before = [&](size_t length) {
    return placeToCut(model, keys, length, /*after=*/false);
  };
  auto after = [&](size_t length) {
    return placeToCut(model, keys, length, /*after=*/true);
  };
  for (size_t length = 0; length <= keys.size(); ++length) {
    EXPECT_LE(before(length), length);
    EXPECT_GE(after(length), length);
    for (size_t cut : {before(length), after(length)})
      EXPECT_FALSE((cut > 40 && cut < 44) || (cut > 64 && cut < 68) ||
                   (cut > 68 && cut < 72))
          << cut;
  }
  EXPECT_EQ(before(43), 40u); // within the first picture
  EXPECT_EQ(after(41), 44u);
  EXPECT_EQ(before(20), 20u); // parts of 16 tokens and more
  EXPECT_EQ(before(15), 0u);
  EXPECT_EQ(before(30), 24u);
  EXPECT_EQ(after(30), 40u);
  EXPECT_EQ(after(5), 16u);
  EXPECT_EQ(before(60), 44u); // a text that is too short for two parts
  EXPECT_EQ(after(50), 64u);
  EXPECT_EQ(before(70), 68u); // between two pictures
  EXPECT_EQ(after(66), 68u);
  EXPECT_EQ(before(119), 106u);
  EXPECT_EQ(after(119), 122u);
}

TEST(Picture, PromptsThatSeeAllOfThemselvesAreNotCut) {
  ModelInfo model = modelThatSees(Bidirectional::Prompt);
  std::vector<int64_t> keys = keysOf({0, 50});
  EXPECT_EQ(placeToCut(model, keys, 30, /*after=*/false), 0u);
  EXPECT_EQ(placeToCut(model, keys, 30, /*after=*/true), 54u);
  model = modelThatSees(Bidirectional::None);
  EXPECT_EQ(placeToCut(model, keys, 2, /*after=*/false), 2u);
  EXPECT_EQ(placeToCut(ModelInfo(), keys, 2, /*after=*/true), 2u);
}

/// Each picture takes its own number of image tokens, one tile as many as
/// another.
TEST(Picture, TilesHaveTheirTokens) {
  ModelInfo model = modelThatSees(Bidirectional::None);
  PicturePtr large(new Picture()), small(new Picture());
  large->rows = 1;
  large->columns = 2;
  EXPECT_EQ(large->countTokens(4), 12);
  std::vector<int64_t> ids(18, 37);
  ids.insert(ids.begin() + 12, 5);
  std::vector<int64_t> keys = cacheKeys(model, ids, {large, small});
  for (size_t i = 0; i < keys.size(); ++i)
    EXPECT_EQ(keys[i], i < 12    ? -1 - large->number
                       : i == 12 ? 5
                       : i < 17  ? -1 - small->number
                                 : 37)
        << i;
  // All are there; then none is added.
  ids.resize(17);
  Error error;
  EXPECT_TRUE(placePictures(model, nullptr, {large, small}, ids, error));
  EXPECT_EQ(ids.size(), 17u);
  // Nobody says what stands between them.
  ids = {37, 5, 37};
  EXPECT_FALSE(placePictures(model, nullptr, {large, small}, ids, error));
  EXPECT_NE(error.message.find("without a 'processor_class' that is known: "
                               "give all 12 of a picture"),
            std::string::npos)
      << error.message;
  // What stands between them is not known.
  std::string problem;
  ASSERT_TRUE(parseJson(R"({"picture_tiles": {"token": "<i>", "end": "."}})",
                        model.images, problem));
  ids = {37, 5, 37};
  EXPECT_FALSE(placePictures(model, nullptr, {large, small}, ids, error));
  EXPECT_NE(error.message.find("give all 12 of a picture"), std::string::npos)
      << error.message;
}

TEST(Picture, TextsAreWrittenAsTheProcessorDoes) {
  auto layout = [](const std::string &json) {
    JsonValue images;
    std::string problem;
    EXPECT_TRUE(parseJson(json, images, problem)) << problem;
    return images;
  };
  JsonValue gemma =
      layout(R"({"picture_text": {"token": "<b>", "text": "[<b>x]"}})");
  std::string text = "a<b>c<b>";
  EXPECT_FALSE(layOutPictures(gemma, 2, text));
  EXPECT_EQ(text, "a[<b>x]c[<b>x]");
  text = "a<b>";
  EXPECT_FALSE(layOutPictures(gemma, 0, text));
  EXPECT_EQ(text, "a<b>"); // there is no picture
  JsonValue pali = layout(R"({"picture_text": {"token": "<i>", "text": "<i>",
                              "start": "<s>", "end": "."}})");
  text = "what";
  EXPECT_TRUE(layOutPictures(pali, 2, text));
  EXPECT_EQ(text, "<i><i><s>what.");
  text = "<i>what";
  EXPECT_TRUE(layOutPictures(pali, 1, text));
  EXPECT_EQ(text, "<i>what.");
  text = "what";
  EXPECT_FALSE(layOutPictures(layout("{}"), 1, text));
  EXPECT_EQ(text, "what");
}

//===- CheckpointTest.cpp - Checkpoints and what is wrong in them ---------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Weights/Checkpoint.h"

#include "../Import/Files.h"

using namespace attune;
using namespace attune::test;
using runtime::DType;

TEST(Checkpoint, OneFile) {
  TempFolder folder;
  writeTensors(folder / "model.safetensors", {{"a", {2, 3}}, {"b", {4}}});
  for (const std::string &path : {folder.str(), folder / "model.safetensors"}) {
    Recorder diags;
    auto checkpoint = Checkpoint::open(path, diags);
    ASSERT_TRUE(checkpoint) << diags.all();
    EXPECT_EQ(checkpoint->tensors().size(), 2u);
    ASSERT_TRUE(checkpoint->find("a"));
    EXPECT_EQ(checkpoint->find("a")->shape, (std::vector<int64_t>{2, 3}));
    EXPECT_FALSE(checkpoint->find("c"));
  }
}

TEST(Checkpoint, Shards) {
  TempFolder folder;
  writeTensors(folder / "m-1.safetensors", {{"a", {2}}, {"unlisted", {9}}});
  writeTensors(folder / "m-2.safetensors", {{"b", {3}}});
  folder.write("model.safetensors.index.json",
               R"({"metadata": {"total_size": 20}, "weight_map":
                   {"a": "m-1.safetensors", "b": "m-2.safetensors"}})");
  for (const std::string &path :
       {folder.str(), folder / "model.safetensors.index.json"}) {
    Recorder diags;
    auto checkpoint = Checkpoint::open(path, diags);
    ASSERT_TRUE(checkpoint) << diags.all();
    EXPECT_EQ(checkpoint->tensors().size(), 2u);
    EXPECT_EQ(checkpoint->find("b")->shape, std::vector<int64_t>{3});
    // The index decides what belongs to the model.
    EXPECT_FALSE(checkpoint->find("unlisted"));
  }
}

/// The names that a checkpoint with such tensors has, and its note.
static std::string namesOf(const std::vector<std::string> &names) {
  TempFolder folder;
  std::vector<attune::test::Tensor> tensors;
  for (const std::string &name : names)
    tensors.push_back({name, {2}});
  writeTensors(folder / "model.safetensors", tensors);
  Recorder diags;
  auto checkpoint = Checkpoint::open(folder.str(), diags);
  EXPECT_TRUE(checkpoint) << diags.all();
  std::string all;
  for (const auto &[name, tensor] : checkpoint->tensors()) {
    EXPECT_EQ(name, tensor->name);
    all += name + " ";
  }
  checkpoint->noteWrappers(diags);
  std::string note = diags.all();
  size_t at = note.find("left in them: ");
  return all + (at == std::string::npos ? note : note.substr(at + 14));
}

TEST(Checkpoint, NamesOfTrainers) {
  auto expect = [](const std::string &got, const std::string &start) {
    EXPECT_EQ(got.substr(0, start.size()), start);
  };
  EXPECT_EQ(namesOf({"a.b", "module.c"}), "a.b module.c ");
  expect(namesOf({"module.a.b", "module.c"}),
         "a.b c 'module.' (DistributedDataParallel)");
  expect(namesOf({"_orig_mod.a", "b._orig_mod.c", "not_orig_mod.d"}),
         "a b.c not_orig_mod.d '_orig_mod.' (torch.compile)");
  expect(namesOf({"module._orig_mod.a", "module._orig_mod.module.b"}),
         "a module.b '_orig_mod.' (torch.compile), 'module.' "
         "(DistributedDataParallel)");
  expect(namesOf({"base_model.model.model.a", "base_model.model.lm_head.b"}),
         "lm_head.b model.a 'base_model.model.' (PEFT)");
  // Two would be one.
  EXPECT_EQ(namesOf({"_orig_mod.a", "a"}), "_orig_mod.a a ");
  // Nobody wraps a model so often.
  std::string often;
  for (int i = 0; i < 9; ++i)
    often += "module.";
  expect(namesOf({often + "a"}), "module.a ");
  for (int i = 0; i < 100000; ++i)
    often += "module.";
  EXPECT_EQ(namesOf({often + "a"}), often + "a ");
}

TEST(Checkpoint, FolderWithoutOne) {
  TempFolder folder;
  folder.write("pytorch_model.bin", "x");
  Recorder diags;
  EXPECT_FALSE(Checkpoint::open(folder.str(), diags));
  EXPECT_TRUE(diags.saw({"holds neither model.safetensors nor",
                         "pytorch_model.bin must be saved as safetensors"}))
      << diags.all();
  EXPECT_EQ(Checkpoint::findIn(folder.str()), "");
}

TEST(Checkpoint, MissingFile) {
  Recorder diags;
  EXPECT_FALSE(Checkpoint::open("/nonexistent/model.safetensors", diags));
  EXPECT_EQ(diags.getNumErrors(), 1u);
  EXPECT_TRUE(diags.saw({"/nonexistent/model.safetensors"})) << diags.all();
}

static std::string openIndex(const std::string &text) {
  TempFolder folder;
  writeTensors(folder / "m.safetensors", {{"a", {2}}});
  folder.write("x.safetensors.index.json", text);
  Recorder diags;
  EXPECT_FALSE(Checkpoint::open(folder / "x.safetensors.index.json", diags));
  return diags.all();
}

TEST(Checkpoint, MalformedIndex) {
  using testing::internal::RE;
  auto expect = [](const std::string &text, const char *pattern) {
    std::string message = openIndex(text);
    EXPECT_TRUE(RE::PartialMatch(message, RE(pattern))) << text << "\ngave\n"
                                                        << message;
  };
  expect("", "1:1: ");
  expect("{", "1:");
  expect("[]", "1:1: expected an object with \"weight_map\", found an array");
  expect("{}", "1:1: .*without it");
  expect(R"({"weight_map": 3})", "1:16: /weight_map: expected an object");
  expect(R"({"weight_map": {"a": 3}})",
         "1:22: /weight_map/a: expected the name of a shard, found an integer");
  expect(R"({"weight_map": {"a": "n.safetensors"}})",
         "1:22: /weight_map/a: cannot open this shard: ");
  expect(R"({"weight_map": {"b": "m.safetensors"}})",
         "1:22: /weight_map/b: the shard 'm.safetensors' does not hold");
  expect(R"({"weight_map": {"a": "m.safetensors", "a": "m.safetensors"}})",
         "1:39: .*a");
}

TEST(Checkpoint, ShardsOutsideTheFolderAreRefused) {
  for (const char *name :
       {"../m.safetensors", "/etc/passwd", "..", ".", "", "a/../m.safetensors",
        "a\\\\m.safetensors", "m.safetensors\\u0000"}) {
    std::string message =
        openIndex(R"({"weight_map": {"a": ")" + std::string(name) + R"("}})");
    EXPECT_NE(message.find("expected the name of a file beside the index"),
              std::string::npos)
        << name << "\n"
        << message;
  }
}

TEST(Checkpoint, LayerNumbers) {
  EXPECT_EQ(substituteLayer("h.{i}.x", 3), "h.3.x");
  EXPECT_EQ(substituteLayer("h.{i+5}.{i}", 3), "h.8.3");
  EXPECT_EQ(substituteLayer("{i}{i}", 10), "1010");
  for (const char *name : {"h", "{", "{i", "{j}", "{i+}", "{i+x}", "{i-1}", ""})
    EXPECT_EQ(substituteLayer(name, 3), name);
}

//===----------------------------------------------------------------------===//
// checkWeights
//===----------------------------------------------------------------------===//

namespace {
struct WeightCheck : testing::Test {
  /// The messages for `needed` against `tensors`.
  std::string check(const std::vector<Tensor> &tensors,
                    const std::vector<NeededWeight> &needed) {
    writeTensors(folder / "model.safetensors", tensors);
    Recorder diags;
    auto checkpoint = Checkpoint::open(folder.str(), diags);
    EXPECT_TRUE(checkpoint) << diags.all();
    bool ok = checkWeights(needed, *checkpoint, diags);
    EXPECT_EQ(ok, diags.getNumErrors() == 0);
    return diags.all();
  }
  NeededWeight need(std::vector<int64_t> shape,
                    std::vector<spec::WeightSource> sources) {
    NeededWeight weight;
    weight.name = "w";
    weight.shape = std::move(shape);
    weight.sources = std::move(sources);
    weight.location.line = 7;
    weight.location.column = 9;
    return weight;
  }
  static bool has(const std::string &text, const std::string &part) {
    return text.find(part) != std::string::npos;
  }
  TempFolder folder;
};
} // namespace

TEST_F(WeightCheck, Fine) {
  EXPECT_EQ(check({{"a", {4, 6}},
                   {"b", {6, 4}, DType::F16},
                   {"qkv", {5, 12}, DType::BF16},
                   {"k", {3, 2}},
                   {"v", {1, 2}}},
                  {need({4, 6}, {{"a"}}), need({4, 6}, {{"b", true}}),
                   need({4, 5}, {{"qkv", true, 0, 4}}),
                   need({8, 5}, {{"qkv", true, 4, 12}}),
                   need({4, 2}, {{"k"}, {"v"}})}),
            "");
}

TEST_F(WeightCheck, ThreeAreNamedAndTheOthersCounted) {
  std::string text = check(
      {{"bad", {5, 6}}, {"ints", {4}, DType::I32}, {"layers.0.extra", {2}}},
      {need({4, 6}, {{"bad"}}), need({4}, {{"ints"}}),
       need({4, 6}, {{"layers.0.gone"}}), need({4, 6}, {{"also_gone", true}})});
  EXPECT_TRUE(has(text, "7:9: tensor 'bad' has shape [5, 6], expected [4, 6] "
                        "for weight 'w'"))
      << text;
  EXPECT_TRUE(has(text, "tensor 'ints' has elements of type I32, expected F32, "
                        "F16, BF16 or F64"))
      << text;
  EXPECT_TRUE(has(text, "tensor 'layers.0.gone' is missing from")) << text;
  EXPECT_TRUE(has(text, "expected shape [4, 6]")) << text;
  EXPECT_FALSE(has(text, "also_gone")) << text;
  EXPECT_TRUE(has(text, "and 2 more tensors of")) << text;
}

TEST_F(WeightCheck, MissingAndUnusedTensorsAreNamed) {
  std::string text =
      check({{"layers.0.extra", {2}}}, {need({4, 6}, {{"also_gone", true}})});
  EXPECT_TRUE(has(text, "tensor 'also_gone' is missing")) << text;
  EXPECT_TRUE(has(text, "expected shape [6, 4]")) << text;
  EXPECT_TRUE(has(text, "tensor 'layers.0.extra' of shape [2]")) << text;
}

TEST_F(WeightCheck, NamesThatBeginOtherwiseAreFound) {
  std::string text =
      check({{"transformer.h.0.mlp.weight", {4, 6}}, {"lm.weight", {4}}},
            {need({4, 6}, {{"h.0.mlp.weight"}}),
             need({4}, {{"model.decoder.layers.lm.weight"}})});
  EXPECT_TRUE(has(text, "there is 'transformer.h.0.mlp.weight'")) << text;
  EXPECT_TRUE(has(text, "there is 'lm.weight'")) << text;
}

TEST_F(WeightCheck, TransposedShapesAreShownAsInTheFile) {
  std::string text = check({{"c", {7, 4}}}, {need({4, 6}, {{"c", true}})});
  EXPECT_TRUE(has(text, "has shape [7, 4], expected [6, 4]")) << text;
}

TEST_F(WeightCheck, CutsSideBySideFixTheShape) {
  // Three roles share a tensor: one error, with the whole shape.
  std::string text =
      check({{"qkv", {5, 13}}}, {need({4, 5}, {{"qkv", true, 0, 4}}),
                                 need({4, 5}, {{"qkv", true, 4, 8}}),
                                 need({4, 5}, {{"qkv", true, 8, 12}})});
  EXPECT_TRUE(has(text, "has shape [5, 13], expected [5, 12]")) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
}

TEST_F(WeightCheck, OneCutMayLeaveRows) {
  EXPECT_EQ(check({{"a", {9, 2}}}, {need({4, 2}, {{"a", false, 1, 5}})}), "");
  std::string text =
      check({{"a", {4, 2}}}, {need({4, 2}, {{"a", false, 1, 5}})});
  EXPECT_TRUE(has(text, "has shape [4, 2], expected [>= 5, 2]")) << text;
}

TEST_F(WeightCheck, PiecesMustAddUp) {
  std::string text =
      check({{"k", {3, 2}}, {"v", {2, 2}}}, {need({4, 2}, {{"k"}, {"v"}})});
  EXPECT_TRUE(has(text, "weight 'w' has 5 rows, expected 4; it is made of 'k' "
                        "of shape [3, 2], 'v' of shape [2, 2]"))
      << text;
}

TEST_F(WeightCheck, PaddedRows) {
  NeededWeight weight = need({8, 2}, {{"a"}});
  weight.padding = 3;
  EXPECT_EQ(check({{"a", {5, 2}}}, {weight}), "");
  EXPECT_EQ(check({{"a", {8, 2}}}, {weight}), "");
  std::string text = check({{"a", {4, 2}}}, {weight});
  EXPECT_TRUE(has(text, "has 4 rows, expected 5 to 8")) << text;
}

TEST_F(WeightCheck, KnownBuffersArePassedOver) {
  EXPECT_EQ(check({{"a", {2}},
                   {"h.0.attn.bias", {1, 1, 4, 4}},
                   {"transformer.h.11.attn.masked_bias", {1}},
                   {"model.layers.3.self_attn.rotary_emb.inv_freq", {8}},
                   {"lm_head.weight", {9, 2}}},
                  {need({2}, {{"a"}})}),
            "");
}

TEST_F(WeightCheck, SlipsGetAHint) {
  std::string text = check({{"model.layers.0.q_proj.weight", {2}}},
                           {need({2}, {{"model.layers.0.q_porj.weight"}})});
  EXPECT_TRUE(has(text, "there is 'model.layers.0.q_proj.weight'")) << text;
}

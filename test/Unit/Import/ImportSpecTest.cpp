//===- ImportSpecTest.cpp - From a description to attune IR -----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Import/ImportSpec.h"

#include "Attune/AttuneDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace attune;

namespace {

/// Keeps what is reported instead of printing it.
struct Collected : attune::DiagnosticEngine {
  void report(const attune::Diagnostic &diagnostic) override {
    if (diagnostic.severity == Severity::Error)
      ++numErrors;
    text += std::to_string(diagnostic.location.line) + ": " +
            diagnostic.message + "\n";
  }
  std::string text;
};

struct ImportSpec : ::testing::Test {
  std::optional<spec::Model> parse(const std::string &json) {
    auto file = std::make_shared<SourceFile>(SourceFile{"model.json", json});
    std::optional<spec::Model> model = spec::parse(file, diags);
    EXPECT_TRUE(model) << diags.text;
    return model;
  }
  OwningOpRef<ModuleOp> import(const std::string &json,
                               ImportOptions options = {}) {
    std::optional<spec::Model> model = parse(json);
    return model ? importSpec(context, *model, options, diags)
                 : OwningOpRef<ModuleOp>();
  }

  MLIRContext context;
  Collected diags;
};

std::string gpt(int64_t layers) {
  return R"({"attune": 1, "dims": {"D": 32, "H": 4},
 "layers": [
  {"embedding": {"vocab": 97, "width": "D"}, "name": "wte"},
  {"positions": {"kind": "learned", "length": 64}, "name": "wpe"},
  {"block": {"placement": "pre", "norm": {"kind": "layer_norm"},
    "attention": {"heads": "H", "head_dim": "D/H", "causal": true},
    "ffn": {"width": "4*D", "activation": "gelu_tanh"}},
   "repeat": )" +
         std::to_string(layers) + R"(, "name": "h.{i}"},
  {"layer_norm": {}, "name": "ln_f"},
  {"linear": {"out": 97, "tied": "wte"}, "name": "lm_head"}],
 "outputs": {"logits": "lm_head", "hidden_states": "hidden_states"}})";
}

unsigned countOps(ModuleOp module) {
  unsigned count = 0;
  module->walk([&](Operation *) { ++count; });
  return count;
}

} // namespace

TEST_F(ImportSpec, SizeDoesNotDependOnDepth) {
  OwningOpRef<ModuleOp> shallow = import(gpt(2)), deep = import(gpt(96));
  ASSERT_TRUE(shallow && deep) << diags.text;
  EXPECT_EQ(countOps(*shallow), countOps(*deep));
}

TEST_F(ImportSpec, EveryOpStandsInTheDescription) {
  OwningOpRef<ModuleOp> module = import(gpt(2));
  ASSERT_TRUE(module) << diags.text;
  module->walk([&](Operation *op) {
    auto loc = dyn_cast<FileLineColLoc>(op->getLoc());
    ASSERT_TRUE(loc) << op->getName().getStringRef().str();
    EXPECT_EQ(loc.getFilename(), "model.json");
    if (isa<SoftmaxOp>(op)) {
      EXPECT_EQ(loc.getLine(), 6u);
    } else if (isa<FFNOp>(op)) {
      EXPECT_EQ(loc.getLine(), 7u);
    }
  });
}

TEST_F(ImportSpec, DecodeIsMadeOnRequest) {
  OwningOpRef<ModuleOp> module = import(gpt(2));
  ASSERT_TRUE(module) << diags.text;
  EXPECT_TRUE(module->lookupSymbol<func::FuncOp>("decode"));
  ImportOptions options;
  options.decode = false;
  module = import(gpt(2), options);
  ASSERT_TRUE(module) << diags.text;
  EXPECT_FALSE(module->lookupSymbol<func::FuncOp>("decode"));
}

TEST_F(ImportSpec, TapsCanBeLeftOut) {
  ImportOptions options;
  OwningOpRef<ModuleOp> module = import(gpt(2), options);
  ASSERT_TRUE(module) << diags.text;
  EXPECT_EQ(module->lookupSymbol<func::FuncOp>("forward").getNumResults(), 2u);
  options.taps = false;
  module = import(gpt(2), options);
  ASSERT_TRUE(module) << diags.text;
  EXPECT_EQ(module->lookupSymbol<func::FuncOp>("forward").getNumResults(), 1u);
}

TEST_F(ImportSpec, StorageTypeOfWeights) {
  ImportOptions options;
  options.dtype = spec::DType::BF16;
  OwningOpRef<ModuleOp> module = import(gpt(2), options);
  ASSERT_TRUE(module) << diags.text;
  module->walk([&](WeightOp weight) {
    EXPECT_TRUE(weight.getTensorType().getElementType().isBF16());
  });
  options.dtype = spec::DType::I8;
  EXPECT_FALSE(import(gpt(2), options));
  EXPECT_NE(diags.text.find("weights can be stored as"), std::string::npos);
}

TEST_F(ImportSpec, OnlyCausalLanguageModelsDecode) {
  std::string causal = gpt(2), plain = causal;
  plain.replace(plain.find("true"), 4, "false");
  EXPECT_TRUE(canDecode(*parse(causal)));
  EXPECT_FALSE(canDecode(*parse(plain)));
  std::string narrow = causal, head = "\"out\": 97, \"tied\": \"wte\"";
  narrow.replace(narrow.find(head), head.size(), "\"out\": 96");
  EXPECT_FALSE(canDecode(*parse(narrow)));
}

TEST_F(ImportSpec, UnequalSequencesShareNoLength) {
  std::string model = gpt(2);
  EXPECT_EQ(whyDecodesAlone(*parse(model)), "");
  auto with = [&](const std::string &what) {
    std::string changed = model;
    changed.insert(changed.find("\"causal\": true"), what + ", ");
    return parse(changed);
  };
  std::string rope = "\"rope\": {\"scaling\": {\"type\": ",
              original = ", \"factor\": 2, \"original_length\": 64}}";
  EXPECT_EQ(whyDecodesAlone(*with("\"softcap\": 30")), "");
  EXPECT_EQ(whyDecodesAlone(*with(rope + "\"yarn\"" + original)), "");
  EXPECT_EQ(whyDecodesAlone(*with("\"window\": 8")), "");
  EXPECT_EQ(whyDecodesAlone(*with("\"alibi\": true")), "");
  EXPECT_EQ(whyDecodesAlone(*with("\"linear\": {}")), "");
  EXPECT_EQ(whyDecodesAlone(*with(rope + "\"dynamic\"" + original)),
            "it has rotary angles that change with the length of a text "
            "(dynamic)");
  EXPECT_EQ(whyDecodesAlone(*with("\"block_sparse\": {\"block\": 4, "
                                  "\"local\": 1}")),
            "");
  std::string plain = model;
  plain.replace(plain.find("true"), 4, "false");
  EXPECT_EQ(whyDecodesAlone(*parse(plain)), "it does not generate");
}

TEST_F(ImportSpec, UnequalSequencesAreDecodedOnRequest) {
  ImportOptions options;
  OwningOpRef<ModuleOp> module = import(gpt(2), options);
  ASSERT_TRUE(module) << diags.text;
  EXPECT_FALSE(module->lookupSymbol<func::FuncOp>("decode_batch"));
  options.decodeBatch = true;
  module = import(gpt(2), options);
  ASSERT_TRUE(module) << diags.text;
  EXPECT_TRUE(module->lookupSymbol<func::FuncOp>("decode_batch"));
  EXPECT_FALSE((*module)->hasAttr("attune.decodes_alone"));
}

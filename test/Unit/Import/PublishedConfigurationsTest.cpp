//===- PublishedConfigurationsTest.cpp - Folders as published ---*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Inputs/published.json lists configurations of published models: the keys that
// a family shares, and those of each model. All become IR at their full size,
// for weights are no part of IR. Those of Inputs/refused.json do not: they
// stand there with the reason. (The factors of long rotary scaling are made
// up.)
//
//===----------------------------------------------------------------------===//

#include "attune/Import/HuggingFace.h"
#include "attune/Import/ImportSpec.h"

#include "Files.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/JSON.h"

#include <functional>
#include <sstream>

using namespace attune;
using namespace attune::test;
namespace json = llvm::json;

namespace {

/// What imports is a module that verifies.
bool becomesIR(const std::string &folder, Recorder &diags) {
  std::optional<ImportedModel> imported = importHuggingFace(folder, diags);
  if (!imported)
    return false;
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  mlir::OwningOpRef<mlir::ModuleOp> module =
      importSpec(context, imported->model, ImportOptions(), diags);
  return module && mlir::succeeded(mlir::verify(*module));
}

/// Calls `use` with the configuration of every model in the list, as a file's
/// text, and with the reason to refuse it, if there is one.
void forEachModel(
    const std::string &list,
    const std::function<void(const std::string &, llvm::StringRef)> &use) {
  std::ifstream file(ATTUNE_TEST_DIR "/Unit/Import/Inputs/" + list);
  std::stringstream text;
  text << file.rdbuf();
  llvm::Expected<json::Value> families = json::parse(text.str());
  if (!families) {
    ADD_FAILURE() << llvm::toString(families.takeError());
    return;
  }
  for (const json::Value &entry : *families->getAsArray()) {
    const json::Object &family = *entry.getAsObject();
    for (const auto &[name, own] : *family.getObject("models")) {
      SCOPED_TRACE(llvm::StringRef(name).str());
      json::Object config = *family.getObject("keys");
      for (const auto &[key, value] : *own.getAsObject())
        config[key] = value;
      std::string file;
      llvm::raw_string_ostream(file) << json::Value(std::move(config));
      use(file, family.getString("refused").value_or(""));
    }
  }
}

} // namespace

TEST(PublishedConfigurations, BecomeIR) {
  TempFolder folder;
  unsigned count = 0;
  forEachModel("published.json",
               [&](const std::string &config, llvm::StringRef) {
                 folder.write("config.json", config);
                 Recorder diags;
                 EXPECT_TRUE(becomesIR(folder.str(), diags)) << diags.all();
                 ++count;
               });
  EXPECT_GE(count, 300u);
}

TEST(PublishedConfigurations, SayWhyTheyAreRefused) {
  TempFolder folder;
  unsigned count = 0;
  forEachModel("refused.json",
               [&](const std::string &config, llvm::StringRef reason) {
                 folder.write("config.json", config);
                 Recorder diags;
                 EXPECT_FALSE(becomesIR(folder.str(), diags));
                 EXPECT_EQ(diags.getNumErrors(), 1u) << diags.all();
                 EXPECT_TRUE(diags.saw({reason.str().c_str()})) << diags.all();
                 ++count;
               });
  EXPECT_GE(count, 40u);
}

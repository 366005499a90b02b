//===- Extensions.cpp - Passes that others bring ----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Extensions.h"

#include "attune/Codegen/Passes.h"
#include "attune/Conversion/Passes.h"
#include "attune/Transforms/Passes.h"

#include "mlir/Tools/Plugins/PassPlugin.h"
#include "mlir/Transforms/Passes.h"

#include <mutex>

using namespace attune;
using namespace attune::driver;

/// Passes have names from here on: those of Attune, and what cleans up.
static void registerNames() {
  static std::once_flag once;
  std::call_once(once, [] {
    registerAttuneTransformsPasses();
    registerAttuneConversionPasses();
    registerAttuneCodegenPasses();
    mlir::registerTransformsPasses();
  });
}

bool driver::loadExtensions(const Options &options, PipelineOptions &pipeline,
                            Report &report) {
  if (options.insertions.empty() && options.plugins.empty())
    return true;
  registerNames();
  for (const std::string &path : options.plugins) {
    llvm::Expected<mlir::PassPlugin> plugin = mlir::PassPlugin::load(path);
    if (!plugin) {
      report.fail("the plugin '" + path +
                  "' cannot be loaded: " + llvm::toString(plugin.takeError()));
      return false;
    }
    plugin->registerPassRegistryCallbacks();
  }
  for (const std::string &text : options.insertions) {
    std::string problem;
    auto insertion = parseInsertion(text, problem);
    if (!insertion) {
      report.fail("--insert: " + llvm::StringRef(problem).trim("\n").str());
      return false;
    }
    pipeline.insertions.push_back(std::move(*insertion));
  }
  return true;
}

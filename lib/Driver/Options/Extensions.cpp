//===- Extensions.cpp - Plugins of the compiler -----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Extensions.h"

#include "attune/Codegen/Passes.h"
#include "attune/Conversion/Passes.h"
#include "attune/Transforms/Passes.h"

#include "mlir/Dialect/Transform/IR/TransformDialect.h"
#include "mlir/Dialect/Transform/IR/TransformOps.h"
#include "mlir/Dialect/Transform/Transforms/Passes.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "mlir/Tools/Plugins/PassPlugin.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/DynamicLibrary.h"

#include <mutex>

using namespace attune;
using namespace attune::driver;

/// Passes have names from here on: those of Attune, what cleans up, and what
/// runs schedules.
static void registerNames() {
  static std::once_flag once;
  std::call_once(once, [] {
    registerAttuneTransformsPasses();
    registerAttuneConversionPasses();
    registerAttuneCodegenPasses();
    mlir::registerTransformsPasses();
    mlir::transform::registerTransformPasses();
  });
}

/// The plugins with dialects, of this process.
static std::vector<mlir::DialectPlugin> &dialectPlugins() {
  static std::vector<mlir::DialectPlugin> plugins;
  return plugins;
}

bool driver::loadPlugins(const Options &options, Report &report) {
  for (const std::string &path : options.plugins) {
    // A plugin has one entry point or both, and need not bring passes.
    std::string problem;
    auto library =
        llvm::sys::DynamicLibrary::getPermanentLibrary(path.c_str(), &problem);
    bool dialects =
        library.isValid() &&
        library.getAddressOfSymbol("mlirGetDialectPluginInfo") != nullptr;
    if (dialects) {
      llvm::Expected<mlir::DialectPlugin> plugin =
          mlir::DialectPlugin::load(path);
      if (plugin)
        dialectPlugins().push_back(*plugin);
      else
        problem = llvm::toString(plugin.takeError());
    }
    if (problem.empty() &&
        (!dialects || library.getAddressOfSymbol("mlirGetPassPluginInfo"))) {
      llvm::Expected<mlir::PassPlugin> plugin = mlir::PassPlugin::load(path);
      if (plugin)
        plugin->registerPassRegistryCallbacks();
      else
        problem = llvm::toString(plugin.takeError());
    }
    if (problem.empty())
      continue;
    report.fail("the plugin '" + path + "' cannot be loaded: " + problem);
    return false;
  }
  return true;
}

void driver::registerPluginDialects(mlir::DialectRegistry &registry) {
  for (const mlir::DialectPlugin &plugin : dialectPlugins())
    plugin.registerDialectRegistryCallbacks(registry);
}

/// Loads a library of the transform dialect. Each of its public sequences runs
/// at the insertion point of its name.
static bool addSchedule(const std::string &path, mlir::MLIRContext &context,
                        PipelineOptions &pipeline, Report &report) {
  auto *dialect = context.getOrLoadDialect<mlir::transform::TransformDialect>();
  auto library = mlir::parseSourceFile<mlir::ModuleOp>(path, &context);
  if (!library) {
    report.fail("the schedule '" + path + "' cannot be read");
    return false;
  }
  llvm::StringMap<llvm::StringRef> points;
  for (llvm::StringRef point : getInsertionPoints()) {
    std::string name = point.str();
    llvm::replace(name, '-', '_');
    points[name] = point;
  }
  for (auto sequence : library->getOps<mlir::transform::NamedSequenceOp>()) {
    if (!sequence.isPublic())
      continue; // a part of others
    auto point = points.find(sequence.getSymName());
    if (point == points.end()) {
      sequence.emitError("'@")
          << sequence.getSymName()
          << "' is not named after a point such as @before_tiling; what only "
             "others include is private";
      return false;
    }
    pipeline.insertions.push_back(
        {point->second.str(), "transform-interpreter{entry-point=" +
                                  sequence.getSymName().str() + "}"});
  }
  return mlir::succeeded(dialect->loadIntoLibraryModule(std::move(library)));
}

bool driver::addInsertions(const Options &options, mlir::MLIRContext &context,
                           PipelineOptions &pipeline, Report &report) {
  if (options.insertions.empty() && options.schedule.empty())
    return true;
  registerNames();
  for (const std::string &text : options.insertions) {
    std::string problem;
    auto insertion = parseInsertion(text, problem);
    if (!insertion) {
      report.fail("--insert: " + llvm::StringRef(problem).trim("\n").str());
      return false;
    }
    pipeline.insertions.push_back(std::move(*insertion));
  }
  return options.schedule.empty() ||
         addSchedule(options.schedule, context, pipeline, report);
}

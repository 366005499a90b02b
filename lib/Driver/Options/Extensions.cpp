//===- Extensions.cpp - Plugins of the compiler -----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Extensions.h"

#include "Attune/AttuneDialect.h"
#include "attune/Codegen/Passes.h"
#include "attune/Conversion/Passes.h"
#include "attune/Conversion/Schedule.h"
#include "attune/Transforms/Passes.h"

#include "mlir/Dialect/Transform/IR/TransformDialect.h"
#include "mlir/Dialect/Transform/IR/TransformOps.h"
#include "mlir/Dialect/Transform/Transforms/Passes.h"
#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "mlir/Tools/Plugins/PassPlugin.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/DynamicLibrary.h"

#include <dlfcn.h>
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

/// Seen by plugins wherever these see Attune's functions.
extern "C" LLVM_ATTRIBUTE_USED void attune_takes_plugins() {}

/// A plugin brings its own copy of LLVM where the program does not lend one,
/// and two of them end the process.
static bool takesPlugins() {
  return dlsym(RTLD_DEFAULT, "attune_takes_plugins") != nullptr;
}

bool driver::loadPlugins(const Options &options, Report &report) {
  if (!options.plugins.empty() && !takesPlugins()) {
    report.fail(
        "this attune has LLVM inside and takes no plugins; use one that "
        "is linked with LLVM's shared libraries");
    return false;
  }
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

/// Annotations of a schedule that no layer reads, whatever it matches. The
/// others depend on the layer, and are checked where it is lowered.
static bool checkAnnotations(mlir::ModuleOp library, bool cooperative) {
  auto result = library->walk([=](mlir::transform::AnnotateOp op) {
    llvm::StringRef name = op.getName();
    if (!name.starts_with("attune.") || name == AttuneDialect::kFusionAttr)
      return mlir::WalkResult::advance();
    std::string problem = problemOfScheduleName(name, cooperative);
    if (problem.empty())
      return mlir::WalkResult::advance();
    op.emitError(problem);
    return mlir::WalkResult::interrupt();
  });
  return !result.wasInterrupted();
}

/// Loads a library of the transform dialect. Each of its public sequences runs
/// at the insertion point of its name.
static bool addSchedule(const Options &options, Modules &modules,
                        PipelineOptions &pipeline, Report &report) {
  auto *dialect = modules.getContext()
                      .getOrLoadDialect<mlir::transform::TransformDialect>();
  std::shared_ptr<const SourceFile> file =
      readSourceFile(options.schedule, report);
  if (!file)
    return false;
  mlir::OwningOpRef<mlir::ModuleOp> library = modules.parse(file);
  if (!library)
    return false;
  llvm::StringMap<llvm::StringRef> points;
  std::string names;
  for (llvm::StringRef point : getInsertionPoints()) {
    std::string name = point.str();
    llvm::replace(name, '-', '_');
    points[name] = point;
    names += (names.empty() ? "@" : ", @") + name;
  }
  size_t before = pipeline.insertions.size();
  for (auto sequence : library->getOps<mlir::transform::NamedSequenceOp>()) {
    if (!sequence.isPublic())
      continue; // a part of others
    auto point = points.find(sequence.getSymName());
    if (point == points.end()) {
      sequence.emitError("'@")
          << sequence.getSymName() << "' is not named after a point: these are "
          << names << "; a sequence that only others include is private";
      return false;
    }
    pipeline.insertions.push_back(
        {point->second.str(), "transform-interpreter{entry-point=" +
                                  sequence.getSymName().str() + "}"});
  }
  if (pipeline.insertions.size() == before) {
    report.error({file}, "has no public transform.named_sequence, so nothing "
                         "would run; name one after a point: " +
                             names);
    return false;
  }
  return checkAnnotations(*library, options.machine.tilesInParallel()) &&
         mlir::succeeded(dialect->loadIntoLibraryModule(std::move(library)));
}

ExitCode driver::addInsertions(const Options &options, Modules &modules,
                               PipelineOptions &pipeline, Report &report) {
  if (options.insertions.empty() && options.schedule.empty())
    return ExitCode::Success;
  registerNames();
  for (const std::string &text : options.insertions) {
    std::string problem;
    auto insertion = parseInsertion(text, problem);
    if (!insertion)
      return report.fail("--insert: " +
                             llvm::StringRef(problem).trim("\n").str(),
                         ExitCode::BadCommandLine);
    pipeline.insertions.push_back(std::move(*insertion));
  }
  if (!options.schedule.empty() &&
      !addSchedule(options, modules, pipeline, report))
    return ExitCode::BadInput;
  return ExitCode::Success;
}

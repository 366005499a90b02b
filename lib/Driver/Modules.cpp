//===- Modules.cpp - MLIR in the driver: context, messages, import --------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Modules.h"

#include "Options/Extensions.h"

#include "attune/Import/IRGuard.h"
#include "attune/InitAll.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/Location.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

using namespace attune;
using namespace attune::driver;

static mlir::DialectRegistry makeRegistry() {
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  attune::registerAllDialects(registry);
  registerPTXTranslations(registry);
  registerPluginDialects(registry);
  return registry;
}

Modules::Modules(DiagnosticEngine &diags, unsigned threads)
    : diags(diags),
      context(makeRegistry(), mlir::MLIRContext::Threading::DISABLED),
      handler(&context,
              [this](mlir::Diagnostic &diagnostic) { convert(diagnostic); }) {
  // The place in the JSON says more than the operation in its generic form.
  context.printOpOnDiagnostic(false);
  llvm::ThreadPoolStrategy strategy = llvm::hardware_concurrency(threads);
  if (strategy.compute_thread_count() == 1)
    return;
  pool = std::make_unique<llvm::DefaultThreadPool>(strategy);
  context.setThreadPool(*pool);
}

void Modules::addFile(std::shared_ptr<const SourceFile> file) {
  if (file)
    files[file->path] = file;
}

/// The place in a file behind any location; the nearest one of a call chain or
/// a fused location.
static mlir::FileLineColLoc findPlace(mlir::Location location) {
  mlir::FileLineColLoc place;
  location->walk([&](mlir::Location inner) {
    place = llvm::dyn_cast<mlir::FileLineColLoc>(inner);
    return place ? mlir::WalkResult::interrupt() : mlir::WalkResult::advance();
  });
  return place;
}

SourceLocation Modules::locate(mlir::Location location) {
  mlir::FileLineColLoc place = findPlace(location);
  if (!place)
    return {};
  std::shared_ptr<const SourceFile> &file = files[place.getFilename().str()];
  if (!file) {
    auto unread = std::make_shared<SourceFile>();
    unread->path = place.getFilename().str();
    file = unread;
  }
  return {file, place.getLine(), place.getColumn()};
}

static Severity toSeverity(mlir::DiagnosticSeverity severity) {
  switch (severity) {
  case mlir::DiagnosticSeverity::Error:
    return Severity::Error;
  case mlir::DiagnosticSeverity::Warning:
    return Severity::Warning;
  case mlir::DiagnosticSeverity::Remark:
    return Severity::Remark;
  case mlir::DiagnosticSeverity::Note:
    return Severity::Note;
  }
  return Severity::Error;
}

void Modules::convert(mlir::Diagnostic &diagnostic) {
  Diagnostic own = {toSeverity(diagnostic.getSeverity()),
                    locate(diagnostic.getLocation()), diagnostic.str()};
  if (own.severity == Severity::Error) {
    ++numErrors;
    // A layer is in several functions (forward, decode), and is one mistake.
    if (!shown.insert(formatDiagnosticJson(own)).second)
      return;
  }
  diags.report(own);
  for (mlir::Diagnostic &note : diagnostic.getNotes())
    diags.report({Severity::Note, locate(note.getLocation()), note.str()});
}

mlir::OwningOpRef<mlir::ModuleOp>
Modules::import(const ModelSource &source, const ImportOptions &options) {
  addFile(source.file);
  if (source.model)
    return importSpec(context, *source.model, options, diags);
  return parse(source.file);
}

mlir::OwningOpRef<mlir::ModuleOp>
Modules::parse(const std::shared_ptr<const SourceFile> &file) {
  addFile(file);
  if (auto problem = findIRProblem(file->text, context.getDialectRegistry())) {
    diags.error({file, problem->line, problem->column}, problem->message);
    return nullptr;
  }
  llvm::SourceMgr manager;
  manager.AddNewSourceBuffer(
      llvm::MemoryBuffer::getMemBuffer(file->text, file->path), llvm::SMLoc());
  return mlir::parseSourceFile<mlir::ModuleOp>(manager,
                                               mlir::ParserConfig(&context));
}

/// Functions that attune-outline-kernels made.
static bool isKernel(mlir::func::FuncOp func) {
  return func->hasAttr("attune.kernel");
}

std::string driver::printKernels(mlir::ModuleOp module, bool locations) {
  mlir::OwningOpRef<mlir::Operation *> copy = module->cloneWithoutRegions();
  auto outline = mlir::cast<mlir::ModuleOp>(*copy);
  auto b = mlir::OpBuilder::atBlockEnd(&outline.getBodyRegion().emplaceBlock());
  for (mlir::Operation &op : *module.getBody()) {
    auto func = llvm::dyn_cast<mlir::func::FuncOp>(op);
    if (func && isKernel(func))
      b.insert(op.cloneWithoutRegions());
    else
      b.clone(op);
  }
  return printModule(outline, locations);
}

std::optional<std::string> driver::printKernel(mlir::ModuleOp module,
                                               llvm::StringRef name,
                                               bool locations) {
  auto func = module.lookupSymbol<mlir::func::FuncOp>(name);
  if (!func || !isKernel(func))
    return std::nullopt;
  mlir::OwningOpRef<mlir::ModuleOp> alone =
      mlir::ModuleOp::create(module.getLoc());
  // Callees are declared, or the text could not be read back.
  llvm::SetVector<mlir::Operation *> called;
  func.walk([&](mlir::CallOpInterface call) {
    if (mlir::Operation *callee = call.resolveCallable())
      called.insert(callee);
  });
  for (mlir::Operation *callee : called)
    alone->push_back(callee->cloneWithoutRegions());
  alone->push_back(func->clone());
  return printModule(*alone, locations);
}

std::vector<std::string> driver::listKernels(mlir::ModuleOp module) {
  std::vector<std::string> names;
  for (auto func : module.getOps<mlir::func::FuncOp>())
    if (isKernel(func))
      names.push_back(func.getSymName().str());
  return names;
}

std::string driver::printModule(mlir::ModuleOp module, bool locations) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  mlir::OpPrintingFlags flags;
  flags.enableDebugInfo(locations);
  module.print(stream, flags);
  stream << '\n';
  return text;
}

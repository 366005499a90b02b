//===- Compile.cpp - attune compile -----------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Modules.h"
#include "OutputFile.h"
#include "Verbs.h"

#include "attune/Import/Checkpoint.h"

#include "llvm/Support/Path.h"

using namespace attune;
using namespace attune::driver;

static Emit chooseEmit(const Options &options) {
  if (options.emit)
    return *options.emit;
  static const std::pair<llvm::StringRef, Emit> suffixes[] = {
      {".json", Emit::Json}, {".mlir", Emit::Mlir}, {".ll", Emit::Llvm},
      {".s", Emit::Asm},     {".o", Emit::Obj},     {".so", Emit::So}};
  for (auto [suffix, emit] : suffixes)
    if (llvm::StringRef(options.output).ends_with(suffix))
      return emit;
  return Emit::Exe;
}

ExitCode driver::runCompile(const Options &options, Report &report) {
  Emit emit = chooseEmit(options);
  bool isText = emit <= Emit::Asm;
  if (options.output.empty() && !isText)
    return report.fail(
        "'compile' needs -o OUT for the file to write; only text goes to "
        "stdout (--emit=json, mlir, tensor, loops, llvm or asm)",
        ExitCode::BadCommandLine);
  std::optional<ModelSource> source = openModel(options, report);
  if (!source)
    return ExitCode::BadInput;
  if (!source->checkpointPath.empty() && source->model) {
    std::optional<Checkpoint> checkpoint =
        Checkpoint::open(source->checkpointPath, report);
    if (!checkpoint || !checkWeights(*source->model, *checkpoint, report))
      return ExitCode::BadInput;
  }

  OutputFiles files(report);
  std::string text;
  if (emit == Emit::Json) {
    if (source->isMlir())
      return report.fail("an .mlir file has no description to print");
    text = spec::print(*source->model);
  } else {
    Modules modules(report);
    mlir::OwningOpRef<mlir::ModuleOp> module =
        modules.import(*source, /*decode=*/true);
    if (!module)
      return ExitCode::BadInput;
    text = printModule(*module, options.locations);
  }
  bool written =
      files.write(options.output.empty() ? "-" : options.output, text) &&
      files.commit();
  return written ? ExitCode::Success : ExitCode::BadInput;
}

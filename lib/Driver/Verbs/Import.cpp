//===- Import.cpp - attune import -------------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Modules.h"
#include "../OutputFile.h"
#include "Verbs.h"

#include "attune/Weights/Checkpoint.h"

using namespace attune;
using namespace attune::driver;

ExitCode driver::runImport(const Options &options, Report &report) {
  std::optional<ModelSource> source = openModel(options, report);
  if (!source)
    return ExitCode::BadInput;
  if (source->isMlir())
    return report.fail("'" + options.model +
                       "' is already imported; import takes a Hugging Face "
                       "folder or a description");
  // Names and shapes that do not fit the checkpoint show here, not later.
  if (!source->checkpointPath.empty()) {
    std::optional<Checkpoint> checkpoint =
        Checkpoint::open(source->checkpointPath, report);
    if (checkpoint)
      checkpoint->leaveOut(source->leftOut);
    if (!checkpoint || !checkWeights(*source->model, *checkpoint, report))
      return ExitCode::BadInput;
  }

  std::string text;
  if (options.emit == "mlir") {
    Modules modules(report);
    mlir::OwningOpRef<mlir::ModuleOp> module =
        modules.import(*source, ImportOptions());
    if (!module)
      return ExitCode::BadInput;
    text = printModule(*module, options.locations);
  } else {
    text = spec::print(*source->model);
  }
  OutputFiles files(report);
  bool written =
      files.write(options.output.empty() ? "-" : options.output, text) &&
      files.commit();
  return written ? ExitCode::Success : ExitCode::BadInput;
}

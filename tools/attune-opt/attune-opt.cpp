//===- attune-opt.cpp - mlir-opt with Attune's dialect and passes ---------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/InitAll.h"
#include "attune/Support/BugReport.h"

#include "mlir/Tools/mlir-opt/MlirOptMain.h"

/// Defined in RegisterUpstream.cpp.
void registerUpstream(mlir::DialectRegistry &registry);

int main(int argc, char **argv) {
  attune::installBugReport();
  mlir::DialectRegistry registry;
  registerUpstream(registry);
  attune::registerAllDialects(registry);
  attune::registerAllPasses();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "Attune optimizer driver\n", registry));
}

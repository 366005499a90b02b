//===- attune-lsp-server.cpp - Attune's IR in an editor -------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HoverDocs.h"

#include "attune/InitAll.h"
#include "attune/Support/BugReport.h"

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"
#include "llvm/Support/thread.h"

#include <cstdlib>
#include <optional>

/// The parser calls itself for each level of a text, which an editor sends as
/// it is: a stack of the usual 8 MiB overflows after some thousand levels.
/// Pages that nothing touches cost nothing.
static constexpr std::optional<unsigned> kStackBytes = 1u << 30;

static attune::HoverDocs hoverDocs;

int main(int argc, char **argv) {
  attune::installBugReport();
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  attune::registerAllDialects(registry);
  // `--help` and wrong options exit within the server.
  if (hoverDocs.start())
    std::atexit([] { hoverDocs.finish(); });
  bool failed = true;
  llvm::thread server(kStackBytes, [&] {
    failed = mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
  });
  server.join();
  return failed;
}

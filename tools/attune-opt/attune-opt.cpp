//===- attune-opt.cpp - mlir-opt with Attune's dialect and passes ---------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Import/IRGuard.h"
#include "attune/InitAll.h"
#include "attune/Support/BugReport.h"
#include "attune/Validation/Validation.h"

#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace attune;

/// Defined in RegisterUpstream.cpp.
void registerUpstream(mlir::DialectRegistry &registry);

static llvm::cl::opt<std::string>
    validate("attune-validate", llvm::cl::ValueOptional, llvm::cl::init("no"),
             llvm::cl::desc(
                 "Run functions before and after each pass and report the "
                 "first pass that changes an answer; the exit code is 3 then"),
             llvm::cl::value_desc(
                 "atol=,rtol=,seed=,budget=,total=,lengths=1/7/19,verbose"));

static int fail(const llvm::Twine &message, int code) {
  llvm::errs() << "attune-opt: " << message << '\n';
  return code;
}

/// mlir-opt's main, but for validation and for guards before the parser.
int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  installBugReport();
  mlir::DialectRegistry registry;
  registerUpstream(registry);
  registerAllDialects(registry);
  registerPTXTranslations(registry);
  registerAllPasses();
  auto [input, output] = mlir::registerAndParseCLIOptions(
      argc, argv, "Attune optimizer driver\n", registry);
  auto config = mlir::MlirOptMainConfig::createFromCLOptions();
  // Upstream handles whatever needs no input, and input typed by hand.
  if (config.shouldShowDialects() || config.shouldListPasses() ||
      (input == "-" && llvm::sys::Process::StandardInIsUserInput()))
    return mlir::asMainReturnCode(
        mlir::MlirOptMain(argc, argv, input, output, registry));

  ValidationOptions options;
  auto result = std::make_shared<ValidationResult>();
  if (validate != "no") {
    if (auto problem = parseValidationOptions(validate, options))
      return fail(*problem, 2);
    auto withoutValidation = config;
    config.setPassPipelineSetupFn([=](mlir::PassManager &passes) {
      if (mlir::failed(withoutValidation.setupPassPipeline(passes)))
        return mlir::failure();
      Validation(options, result).attach(passes);
      return mlir::success();
    });
  }
  std::string problem;
  auto source = mlir::openInputFile(input, &problem);
  if (!source)
    return fail(problem, 1);
  if (auto found = findIRProblem(source->getBuffer(), registry)) {
    llvm::errs() << found->in(source->getBufferIdentifier()) << '\n';
    return 1;
  }
  auto target = mlir::openOutputFile(output, &problem);
  if (!target)
    return fail(problem, 1);
  if (mlir::failed(
          mlir::MlirOptMain(target->os(), std::move(source), registry, config)))
    return 1;
  target->os().flush();
  if (target->os().has_error()) {
    problem = target->os().error().message();
    target->os().clear_error();
    return fail("'" + output + "' cannot be written: " + problem, 1);
  }
  target->keep();
  return result->mismatches ? 3 : 0;
}

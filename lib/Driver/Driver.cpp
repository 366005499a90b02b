//===- Driver.cpp - The attune command line ---------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Driver/Driver.h"

#include "Options/Extensions.h"
#include "Options/Target.h"
#include "OutputFile.h"
#include "Verbs/Verbs.h"

#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace attune;
using namespace attune::driver;

static ExitCode runVerb(const Options &options, Report &report) {
  switch (options.verb) {
  case Verb::Compile:
    return runCompile(options, report);
  case Verb::Inspect:
    return runInspect(options, report);
  case Verb::Run:
    return runRun(options, report);
  case Verb::Generate:
    return runGenerate(options, report);
  case Verb::Embed:
    return runEmbed(options, report);
  case Verb::Chat:
    return runChat(options, report);
  case Verb::Serve:
    return runServe(options, report);
  case Verb::Verify:
    return runVerify(options, report);
  case Verb::Import:
    return runImport(options, report);
  case Verb::Bench:
    return runBench(options, report);
  case Verb::Perplexity:
    return runPerplexity(options, report);
  case Verb::Compare:
    return runCompare(options, report);
  case Verb::Split:
    return runSplit(options, report);
  case Verb::Tokenize:
    return runTokenize(options, report);
  }
  return ExitCode::InternalError;
}

/// Text that nobody can read was not printed: a full disk is an error.
static bool flushOutput(Report &report) {
  outs().flush();
  std::error_code problem = outs().error();
  if (!problem)
    return true;
  outs().clear_error();
  report.error({}, "stdout cannot be written: " + problem.message());
  return false;
}

int attune::runDriver(int argc, char **argv) {
  ArrayRef<const char *> args(argv + (argc > 0), argv + argc);
  Report report(findMessageFormat(args));
  std::variant<Options, ExitCode> parsed = parseOptions(args, report);
  if (ExitCode *code = std::get_if<ExitCode>(&parsed)) {
    return int(flushOutput(report) ? *code : ExitCode::BadInput);
  }
  Options &options = std::get<Options>(parsed);
  if (!loadPlugins(options, report) || !chooseTarget(options, report))
    return int(ExitCode::BadCommandLine);
  if (!keepsInputs(options, report))
    return int(ExitCode::BadInput);
  ExitCode code = runVerb(options, report);
  if (options.timing && code == ExitCode::Success)
    report.printTiming();
  return int(flushOutput(report) ? code : ExitCode::BadInput);
}

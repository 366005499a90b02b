//===- Verbs.h - One function per verb --------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_DRIVER_VERBS_VERBS_H
#define ATTUNE_LIB_DRIVER_VERBS_VERBS_H

#include "../Options/Options.h"
#include "../Report/Report.h"

namespace attune::driver {

ExitCode runCompile(const Options &options, Report &report);
ExitCode runInspect(const Options &options, Report &report);
ExitCode runRun(const Options &options, Report &report);
ExitCode runGenerate(const Options &options, Report &report);
ExitCode runEmbed(const Options &options, Report &report);
ExitCode runChat(const Options &options, Report &report);
ExitCode runServe(const Options &options, Report &report);
ExitCode runVerify(const Options &options, Report &report);
ExitCode runImport(const Options &options, Report &report);
ExitCode runBench(const Options &options, Report &report);
ExitCode runPerplexity(const Options &options, Report &report);
ExitCode runCompare(const Options &options, Report &report);
ExitCode runSplit(const Options &options, Report &report);
ExitCode runTokenize(const Options &options, Report &report);

} // namespace attune::driver

#endif // ATTUNE_LIB_DRIVER_VERBS_VERBS_H

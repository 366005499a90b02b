//===- Perplexity.cpp - attune perplexity -----------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../InMemory.h"
#include "Verbs.h"

#include "attune/Runtime/Cli.h"

#include "llvm/Support/FileSystem.h"

using namespace attune;
using namespace attune::driver;

ExitCode driver::runPerplexity(const Options &options, Report &report) {
  runtime::PerplexityOptions measured;
  measured.file = options.textFile;
  measured.window = options.window;
  measured.json = options.format == "json";
  measured.adapter = options.adapter;
  runtime::Error error;
  if (!measured.finish(error))
    return reportError(error, report);
  // Before the model is compiled.
  llvm::sys::fs::file_status status;
  if (std::error_code problem = llvm::sys::fs::status(options.textFile, status))
    return report.fail(options.textFile + ": " + problem.message());
  InMemoryModel model;
  ExitCode code = prepareModel(options, report, Entries::Forward, model);
  if (code != ExitCode::Success)
    return code;
  if (!model.getModel().info().hasTokenizer())
    return report.fail("'" + options.model +
                       "' comes without a tokenizer, so it cannot read texts; "
                       "name one with --tokenizer=FILE");
  report.beginStage("running");
  if (!runtime::executePerplexity(model.getModel(), measured, stdout, error))
    return reportError(error, report);
  report.endStage();
  return ExitCode::Success;
}

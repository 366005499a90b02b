//===- Inspect.cpp - attune inspect -----------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Inspect.h"
#include "ModelSource.h"
#include "OutputFile.h"
#include "Verbs.h"

#include "attune/Analysis/ModelStatistics.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace attune;
using namespace attune::driver;

/// The sizes asked for; one that the model does not have is an error.
static std::optional<std::map<std::string, int64_t>>
chooseDims(const Options &options, const spec::Model &model, Report &report) {
  std::map<std::string, int64_t> dims(options.dims.begin(), options.dims.end());
  for (const std::string &unknown : unknownDims(model, dims)) {
    std::vector<llvm::StringRef> known;
    for (const spec::TensorSpec &input : model.inputs)
      for (const spec::Dim &dim : input.shape)
        if (dim.size < 0 && !llvm::is_contained(known, dim.symbol))
          known.push_back(dim.symbol);
    report.error({}, "the model has no open size '" + unknown + "'; it has " +
                         (known.empty() ? "none" : llvm::join(known, ", ")));
  }
  if (report.getNumErrors())
    return std::nullopt;
  return dims;
}

std::string driver::describeStatistics(const spec::Model &model) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  printJson(analyze(model, {}), stream);
  return text;
}

ExitCode driver::runInspect(const Options &options, Report &report) {
  std::optional<ModelSource> source = openModel(options, report);
  if (!source)
    return ExitCode::BadInput;
  if (source->isMlir())
    return report.fail("'" + options.model +
                       "' is an .mlir file; inspect counts from a description "
                       "or a Hugging Face folder");
  auto dims = chooseDims(options, *source->model, report);
  if (!dims)
    return ExitCode::BadInput;
  ModelStatistics statistics = analyze(*source->model, *dims);
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (options.format == "json")
    printJson(statistics, stream);
  else if (options.format == "html")
    printHtml(statistics, stream);
  else
    printTable(statistics, stream);
  OutputFiles files(report);
  bool written =
      files.write(options.output.empty() ? "-" : options.output, text) &&
      files.commit();
  return written ? ExitCode::Success : ExitCode::BadInput;
}

//===- Run.cpp - attune run, generate, embed, chat, serve -------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../InMemory.h"
#include "Verbs.h"

#include "attune/Runtime/Chat.h"
#include "attune/Runtime/Cli.h"
#include "attune/Runtime/Guess.h"
#include "attune/Runtime/Serve.h"
#include "attune/Runtime/Sight.h"

using namespace attune;
using namespace attune::driver;

ExitCode driver::prepareModel(const Options &options, Report &report,
                              Entries entries, InMemoryModel &model) {
  std::optional<ModelSource> source = openModel(options, report);
  if (!source)
    return ExitCode::BadInput;
  if (options.verb == Verb::Chat && source->chatJson.empty())
    return report.fail(
        "'" + options.model +
        (source->tokenizerPath.empty()
             ? "' comes without a tokenizer, so it cannot chat; name one with "
               "--tokenizer=FILE"
             : "' comes without a chat template: it continues texts "
               "('generate') but was not taught to talk. --chat-template=FILE "
               "names a Jinja template that lays out the messages"));
  std::optional<Checkpoint> checkpoint;
  if (!source->checkpointPath.empty()) {
    checkpoint = openCheckpoint(*source, options, report);
    if (!checkpoint)
      return ExitCode::BadInput;
  }
  model.needsWeights = !checkpoint && !options.hasRandomWeights();
  return model.build(options, report, *source,
                     checkpoint ? &*checkpoint : nullptr, entries,
                     options.fusion);
}

/// Notes and warnings of the runtime, in the form of the driver's.
static runtime::Messages messagesTo(std::FILE *file, const Report &report) {
  return {file, report.getFormat() == DiagnosticEngine::Format::Json};
}

ExitCode driver::runRun(const Options &options, Report &report) {
  InMemoryModel model;
  ExitCode code = prepareModel(options, report, Entries::Forward, model);
  if (code != ExitCode::Success)
    return code;
  report.beginStage("running");
  runtime::Error error;
  if (!runtime::executeRun(model.getModel(), options.run,
                           messagesTo(stderr, report), error))
    return reportError(error, report);
  report.endStage();
  return ExitCode::Success;
}

ExitCode driver::runGenerate(const Options &options, Report &report) {
  InMemoryModel model;
  ExitCode code = prepareModel(options, report, Entries::Decode, model);
  if (code != ExitCode::Success)
    return code;
  runtime::GenerateOptions generate = options.generate;
  InMemoryModel draft;
  std::optional<runtime::DraftModel> guesser;
  // A shared library is loaded by the runtime.
  if (!generate.draft.empty() &&
      !llvm::StringRef(generate.draft).ends_with(".so")) {
    Options small = options;
    small.model = generate.draft;
    small.weights.clear();
    small.tokenizer.clear();
    small.threads = 1;
    // Adapters are for the other model.
    small.loras.clear();
    small.lorasApart = false;
    small.mayMeasureNothing = true;
    code = prepareModel(small, report, Entries::Decode, draft);
    if (code != ExitCode::Success)
      return code;
    guesser.emplace(draft.getModel());
    generate.draftModel = &*guesser;
  }
  runtime::Error error;
  // The program's own runtime refers to it weakly.
  [[maybe_unused]] const volatile char sees = attune_rt_sees;
  if (!runtime::executeGenerate(model.getModel(), generate, stdout,
                                messagesTo(stderr, report), error))
    return reportError(error, report);
  return ExitCode::Success;
}

ExitCode driver::runEmbed(const Options &options, Report &report) {
  InMemoryModel model;
  ExitCode code = prepareModel(options, report, Entries::Forward, model);
  if (code != ExitCode::Success)
    return code;
  runtime::Error error;
  if (!runtime::executeEmbed(model.getModel(), options.embed, stdout, error))
    return reportError(error, report);
  return ExitCode::Success;
}

ExitCode driver::runChat(const Options &options, Report &report) {
  InMemoryModel model;
  ExitCode code = prepareModel(options, report, Entries::Decode, model);
  if (code != ExitCode::Success)
    return code;
  runtime::Error error;
  if (!runtime::executeChat(model.getModel(), options.chat, stdout,
                            messagesTo(stderr, report), error))
    return reportError(error, report);
  return ExitCode::Success;
}

ExitCode driver::runServe(const Options &options, Report &report) {
  InMemoryModel model;
  ExitCode code = prepareModel(options, report, Entries::All, model);
  if (code != ExitCode::Success)
    return code;
  runtime::Error error;
  if (!runtime::executeServe(model.getModel(), options.serve, stdout,
                             messagesTo(stderr, report), error))
    return reportError(error, report);
  return ExitCode::Success;
}

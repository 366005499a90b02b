//===- Cli.cpp - The main function of a compiled executable ---------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Runtime/Cli.h"
#include "../Mesh/Mpi.h"
#include "attune/Runtime/Chat.h"
#include "attune/Runtime/Serve.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#ifndef ATTUNE_VERSION
#define ATTUNE_VERSION "1.0.0"
#endif

namespace attune::runtime {

/// Null in products that are linked without AttuneRuntimeServe.
[[gnu::weak]] bool executeServe(CompiledModel &model,
                                const ServeOptions &options, FILE *out,
                                const Messages &messages, Error &error);

namespace {

enum class Verb {
  Run,
  Generate,
  Embed,
  Chat,
  Serve,
  Perplexity,
  Bench,
  Tokenize,
  Inspect
};

const OptionSpecs &commonSpecs() {
  static const OptionSpecs specs = {
      {"weights", "FILE", "the model's packed weights, if not beside or in it"},
      {"message-format", "text|json",
       "how to print errors, warnings and notes"},
      {"help", "", "print this and exit"},
  };
  return specs;
}

const OptionSpecs &inspectSpecs() {
  static const OptionSpecs specs = {
      {"format", "table|json", "how to print (default: table)"},
  };
  return specs;
}

class Program {
public:
  Program(const attune_model_descriptor *descriptor, int argc, char **argv)
      : descriptor(descriptor), argc(argc), argv(argv),
        name(argc > 0 ? argv[0] : "model") {}

  int main();

private:
  const attune_model_descriptor *descriptor;
  int argc;
  char **argv;
  std::string name;
  bool jsonMessages = false;
  OpenOptions open;
  TeamOptions team;
  RunOptions run;
  GenerateOptions generate;
  EmbedOptions embed;
  TokenizeOptions tokenize;
  ChatOptions chat;
  ServeOptions serve;
  PerplexityOptions perplexity;
  BenchOptions bench;
  bool inspectJson = false;
  /// Whether another rank speaks: all are given the same command line.
  bool silent = false;

  void beSilent();
  int fail(const Error &error);
  std::string usage() const;
  static OptionSpecs specsOf(Verb verb);
  bool readOptions(Verb verb, const CommandLine &line, Error &error);
  bool execute(Verb verb, Error &error);
  bool executeOn(CompiledModel &model, Verb verb, Error &error);
};

/// Silences all ranks of a model but the first.
void Program::beSilent() {
  if (LaunchedRank::read().rank <= 0)
    return;
  ModelInfo info;
  Error error;
  silent = readModelInfo(*descriptor, info, error) && info.hasRanks() &&
           std::freopen("/dev/null", "w", stdout);
}

int Program::fail(const Error &error) {
  if (silent)
    return error.code ? error.code : ExitInternalError;
  if (jsonMessages) {
    std::string line = "{\"severity\":\"error\",\"message\":";
    appendJsonString(line, error.message);
    std::fprintf(stderr, "%s}\n", line.c_str());
  } else {
    std::fprintf(stderr, "%s: error: %s\n", name.c_str(),
                 error.message.c_str());
  }
  return error.code ? error.code : ExitInternalError;
}

std::string Program::usage() const {
  return "usage: " + name +
         " VERB [options]\n\n"
         "A model compiled by Attune. Verbs:\n"
         "  run         one forward pass from a safetensors file to another\n"
         "  generate    continue a text or a list of token ids\n"
         "  embed       turn texts into vectors\n"
         "  tokenize    the ids and pieces of a text\n"
         "  chat        talk with the model, on a terminal or line by line\n"
         "  serve       answer requests over HTTP, as OpenAI's interface has "
         "them\n"
         "  perplexity  how well the model predicts a text\n"
         "  bench       how fast the model is here\n"
         "  inspect     say what the model is, takes and gives\n\n"
         "`" +
         name +
         " VERB --help` lists the options of a verb;\n"
         "`" +
         name +
         " --version` prints the version.\n"
         "Exit codes: 0 done, 1 bad input, 2 bad command line, 4 over a "
         "resource limit,\n70 internal error.\n";
}

OptionSpecs Program::specsOf(Verb verb) {
  OptionSpecs specs;
  auto add = [&](const OptionSpecs &more) {
    specs.insert(specs.end(), more.begin(), more.end());
  };
  switch (verb) {
  case Verb::Run:
    add(RunOptions::specs());
    break;
  case Verb::Generate:
    add(GenerateOptions::specs());
    break;
  case Verb::Embed:
    add(EmbedOptions::specs());
    break;
  case Verb::Tokenize:
    add(TokenizeOptions::specs());
    add(commonSpecs());
    return specs;
  case Verb::Chat:
    add(ChatOptions::specs());
    break;
  case Verb::Serve:
    add(ServeOptions::specs());
    break;
  case Verb::Perplexity:
    add(PerplexityOptions::specs());
    break;
  case Verb::Bench:
    add(BenchOptions::specs());
    break;
  case Verb::Inspect:
    add(inspectSpecs());
    add(commonSpecs());
    return specs;
  }
  add(TeamOptions::specs());
  add(commonSpecs());
  return specs;
}

bool Program::readOptions(Verb verb, const CommandLine &line, Error &error) {
  if (!line.positionals.empty())
    return error.set(ExitBadCommandLine,
                     "unexpected argument '" + line.positionals[0] + "'");
  for (const ParsedOption &option : line.options) {
    bool mine = false;
    if (option.name == "message-format") {
      if (option.value != "text" && option.value != "json")
        return error.set(ExitBadCommandLine,
                         "--message-format: expected text or json, found '" +
                             option.value + "'");
      jsonMessages = option.value == "json";
      continue;
    }
    if (option.name == "weights") {
      open.weightsPath = option.value;
      continue;
    }
    if (verb == Verb::Inspect && option.name == "format") {
      if (!parseFormat(option, inspectJson, error))
        return false;
      continue;
    }
    if (verb == Verb::Tokenize) {
      if (!tokenize.set(option, mine, error))
        return false;
      continue;
    }
    if (!team.set(option, mine, error))
      return false;
    if (!mine && verb == Verb::Run && !run.set(option, mine, error))
      return false;
    if (!mine && verb == Verb::Embed && !embed.set(option, mine, error))
      return false;
    if (!mine && verb == Verb::Generate && !generate.set(option, mine, error))
      return false;
    if (!mine && verb == Verb::Chat && !chat.set(option, mine, error))
      return false;
    if (!mine && verb == Verb::Serve && !serve.set(option, mine, error))
      return false;
    if (!mine && verb == Verb::Perplexity &&
        !perplexity.set(option, mine, error))
      return false;
    if (!mine && verb == Verb::Bench && !bench.set(option, mine, error))
      return false;
  }
  if (verb == Verb::Tokenize)
    return tokenize.finish(error);
  if (verb == Verb::Run)
    return run.finish(error);
  if (verb == Verb::Embed)
    return embed.finish(error);
  if (verb == Verb::Chat)
    return chat.finish(error);
  if (verb == Verb::Serve)
    return serve.finish(error);
  if (verb == Verb::Perplexity)
    return perplexity.finish(error);
  return verb != Verb::Generate || generate.finish(error);
}

bool Program::execute(Verb verb, Error &error) {
  if (verb == Verb::Inspect || verb == Verb::Tokenize) {
    ModelInfo info;
    if (!readModelInfo(*descriptor, info, error))
      return false;
    if (verb == Verb::Tokenize) {
      if (!info.hasTokenizer())
        return error.badInput("model '" + info.name + "' carries no tokenizer");
      std::unique_ptr<Tokenizer> tokenizer = Tokenizer::open(info, error);
      return tokenizer && executeTokenize(*tokenizer, tokenize, stdout, error);
    }
    std::string text = formatInspection(info, inspectJson);
    std::fwrite(text.data(), 1, text.size(), stdout);
    return std::fflush(stdout) == 0 ||
           error.badInput("cannot write the output");
  }
  if (verb == Verb::Serve && !executeServe)
    return error.badInput("this program was linked without the server; those "
                          "that 'attune compile' makes of a model with a "
                          "tokenizer have it");
  open.threads = team.threads;
  open.memoryLimit = team.memoryLimit;
  open.readsWeights = team.readsWeights;
  open.timeout = team.timeout;
  open.checkRanks = team.checkRanks;
  std::unique_ptr<CompiledModel> model =
      CompiledModel::open(descriptor, open, error);
  if (!model)
    return false;
  if (model->follows())
    return model->follow(error);
  bool good = executeOn(*model, verb, error);
  if (!good)
    model->endGroups(error);
  return good;
}

bool Program::executeOn(CompiledModel &model, Verb verb, Error &error) {
  // Groups of ranks share these verbs; the first group alone does the others.
  bool shared =
      verb == Verb::Run || verb == Verb::Perplexity || verb == Verb::Generate;
  if (model.group() > 0 && !shared)
    return true;
  if (model.numGroups() > 1 && verb == Verb::Serve)
    return error.badInput("groups of ranks (dp) do not share the requests of a "
                          "server; compile the model without dp, and start a "
                          "server for each group, with a --port of its own");
  if (model.numGroups() > 1 && !shared)
    Messages(stderr, jsonMessages).note(kFirstGroupAlone);
  if (verb == Verb::Run)
    return executeRun(model, run, {stderr, jsonMessages}, error);
  if (verb == Verb::Embed)
    return executeEmbed(model, embed, stdout, error);
  if (verb == Verb::Chat)
    return executeChat(model, chat, stdout, {stderr, jsonMessages}, error);
  if (verb == Verb::Serve)
    return executeServe(model, serve, stdout, {stderr, jsonMessages}, error);
  if (verb == Verb::Perplexity)
    return executePerplexity(model, perplexity, stdout, error);
  if (verb == Verb::Bench)
    return executeBench(model, bench, stdout, error);
  return executeGenerate(model, generate, stdout, {stderr, jsonMessages},
                         error);
}

int Program::main() {
  Error error;
  beSilent();
  std::string verb = argc > 1 ? argv[1] : "";
  if (verb == "--help" || verb == "-h" || verb == "help") {
    std::fputs(usage().c_str(), stdout);
    return ExitSuccess;
  }
  if (verb == "--version") {
    std::printf("attune runtime %s\n", ATTUNE_VERSION);
    return ExitSuccess;
  }
  Verb which;
  if (verb == "run") {
    which = Verb::Run;
  } else if (verb == "generate") {
    which = Verb::Generate;
  } else if (verb == "embed") {
    which = Verb::Embed;
  } else if (verb == "tokenize") {
    which = Verb::Tokenize;
  } else if (verb == "chat") {
    which = Verb::Chat;
  } else if (verb == "serve") {
    which = Verb::Serve;
  } else if (verb == "perplexity") {
    which = Verb::Perplexity;
  } else if (verb == "bench") {
    which = Verb::Bench;
  } else if (verb == "inspect") {
    which = Verb::Inspect;
  } else if (verb.empty()) {
    std::fputs(usage().c_str(), stderr);
    return ExitBadCommandLine;
  } else {
    bool option = verb[0] == '-';
    std::string nearest =
        option
            ? nearestName(verb, {"--help", "--version"})
            : nearestName(verb, {"run", "generate", "embed", "chat", "serve",
                                 "tokenize", "perplexity", "bench", "inspect"});
    error.set(ExitBadCommandLine,
              (option ? "unknown option '" : "unknown verb '") + verb + "'" +
                  (nearest.empty() ? "; the verbs are run, generate, embed, "
                                     "chat, serve, tokenize, perplexity, "
                                     "bench, inspect"
                                   : "; did you mean " + nearest + "?"));
    return fail(error);
  }
  OptionSpecs specs = specsOf(which);
  CommandLine line;
  if (!line.parse(argc - 2, argv + 2, specs, error))
    return fail(error);
  for (const ParsedOption &option : line.options)
    if (option.name == "help" && option.value == "true") {
      std::printf("usage: %s %s [options]\n\n%s", name.c_str(), verb.c_str(),
                  formatOptions(specs).c_str());
      return ExitSuccess;
    }
  if (!readOptions(which, line, error) || !execute(which, error))
    return fail(error);
  return ExitSuccess;
}

} // namespace

} // namespace attune::runtime

int attune_cli_main(const attune_model_descriptor *model, int argc,
                    char **argv) {
  int code = attune::runtime::Program(model, argc, argv).main();
  // A failure has been told already.
  if (code || (std::fflush(stdout) == 0 && !std::ferror(stdout)))
    return code;
  std::fprintf(stderr, "error: stdout cannot be written: %s\n",
               std::strerror(errno));
  return attune::runtime::ExitBadInput;
}

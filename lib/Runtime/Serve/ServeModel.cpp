//===- ServeModel.cpp - From a compiled model to a server -----------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Server.h"

#include "attune/Runtime/WholeFile.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace attune::runtime {

/// Room for a sequence where the model sets no limit.
static constexpr int64_t defaultContext = 4096;

/// Makes a linker that is told of it take this file from its archive.
extern "C" {
extern const char attune_rt_serves;
const char attune_rt_serves = 1;
}

static bool readKeys(const std::string &path, std::vector<std::string> &keys,
                     Error &error) {
  constexpr size_t mostBytes = size_t(64) << 10;
  std::string text;
  if (!readWholeFile(path, mostBytes, text, error))
    return false;
  size_t before = keys.size();
  for (size_t begin = 0, end; begin < text.size(); begin = end + 1) {
    end = std::min(text.find_first_of("\r\n", begin), text.size());
    if (end > begin)
      keys.push_back(text.substr(begin, end - begin));
  }
  return keys.size() > before || error.badInput(path + ": holds no key");
}

namespace {
/// Keeps what requests are read against.
struct Served {
  ServedModel model;
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<ConstraintFactory> constraints;
  std::unique_ptr<ChatPrompt> chat;
  std::unique_ptr<Embedder> embedder, scorer;
  /// Why the model gives no vectors, and no scores that rank texts.
  std::string noEmbedding, noScoring;
  bool generates = false;

  bool open(CompiledModel &compiled, const ServeOptions &options, Error &error);
};
} // namespace

bool Served::open(CompiledModel &compiled, const ServeOptions &options,
                  Error &error) {
  const ModelInfo &info = compiled.info();
  model.info = &info;
  model.adapter = compiled.adapter();
  model.created = static_cast<int64_t>(std::time(nullptr));
  model.defaults = options.chat.generate;
  if (info.hasTokenizer()) {
    tokenizer = Tokenizer::open(info, error);
    if (!tokenizer)
      return false;
    model.tokenizer = tokenizer.get();
    constraints.reset(new ConstraintFactory(*tokenizer));
    model.constraints = constraints.get();
  }
  if (!tokenizer) {
    model.noChat = "model '" + info.name + "' carries no tokenizer";
  } else if (info.chatTemplate.empty() && options.chat.chat.file.empty()) {
    model.noChat = "model '" + info.name +
                   "' has no chat template: it continues texts "
                   "(/v1/completions) but was not taught to talk";
  } else {
    chat = ChatPrompt::create(info, options.chat.chat, error);
    if (!chat)
      return false;
    model.chat = chat.get();
    model.chatEnds = chat->findEnds(*tokenizer);
    model.answers = AnswerFormat(*chat, *tokenizer);
  }
  // A model may give both.
  embedder.reset(new Embedder(compiled));
  scorer.reset(new Embedder(compiled));
  Error problem;
  if (!embedder->open(problem))
    noEmbedding = problem.message;
  else if (embedder->isScoring())
    noEmbedding = "it scores texts and gives no vectors of them";
  if (!scorer->open(problem, /*wantsScores=*/true))
    noScoring = problem.message;
  else if (!scorer->isScoring())
    noScoring = "it gives no scores of texts";
  else if (scorer->width() != 1)
    noScoring = "it gives several scores of a text, of which none says how "
                "good an answer it is";
  const EntryInfo *decode = compiled.entry("decode");
  generates = decode && !compiled.encodes();
  if (!generates && !noEmbedding.empty() && !noScoring.empty())
    return error.badInput(
        "model '" + info.name +
        "' has nothing to serve: it is no causal language model, and " +
        noEmbedding + (noScoring == noEmbedding ? "" : ", and " + noScoring));
  if (!generates)
    return true;
  int64_t most = decode->countablePositions(info.context);
  model.capacity = options.chat.context;
  if (most >= 0 && model.capacity > most)
    return error.badInput("--context=" + std::to_string(model.capacity) +
                          " is more than the model's context of " +
                          std::to_string(most));
  if (model.capacity < 0)
    model.capacity = most >= 0 ? most : defaultContext;
  const ArgInfo *seen = decode->findInserted();
  if (seen && seen->bidirectional == Bidirectional::Prompt)
    model.noScores = "all tokens of a prompt see each other, so that none is "
                     "predicted by those before it";
  if (decode->recomputeBeyond > 0)
    model.mostScored = decode->recomputeBeyond;
  for (const ArgInfo &arg : decode->args)
    if (arg.kind == ArgKind::Output && arg.name == "logits" &&
        arg.shape.size() == 2)
      model.vocabulary = arg.shape[1].size;
  std::string settings;
  GenerateOptions probe = model.defaults;
  return probe.takeSettings(info, settings, error);
}

bool executeServe(CompiledModel &compiled, const ServeOptions &given, FILE *out,
                  const Messages &messages, Error &error) {
  ServeOptions options = given;
  if (!options.apiKeyFile.empty() &&
      !readKeys(options.apiKeyFile, options.apiKeys, error))
    return false;
  Served served;
  if (!compiled.chooseAdapter(options.chat.generate.adapter, error) ||
      !served.open(compiled, options, error))
    return false;
  const char *wrong = options.cacheMemory > 0 ? "--cache-memory"
                      : options.swapMemory    ? "--swap-memory"
                                              : nullptr;
  if (wrong && !compiled.device())
    return error.badInput(std::string(wrong) +
                          " is for a model on a GPU; on a CPU caches take "
                          "memory as texts need it");
  Outbox outbox;
  std::unique_ptr<Scheduler> scheduler = Scheduler::create(
      compiled, served.generates ? static_cast<unsigned>(options.slots) : 0,
      served.model.capacity, {options.cacheMemory, options.swapMemory}, error);
  if (!scheduler)
    return false;
  std::string memory = scheduler->describeMemory();
  if (served.generates)
    served.model.capacity = scheduler->capacity();
  Desk desk(served.model, *scheduler, outbox, *served.embedder, *served.scorer,
            served.noEmbedding, served.noScoring);
  Server server(options, served.model, *scheduler, desk, outbox, messages);
  if (!server.listen(error) || !desk.start(error))
    return false;
  if (!server.isLocal() && options.apiKeys.empty())
    messages.warning("anybody who reaches " + server.url() +
                     " may use the model; --api-key-file=FILE asks for a key");
  messages.note(
      "serving " + compiled.info().name + ": " +
      std::to_string(scheduler->numSlots()) + " texts at a time, of " +
      std::to_string(scheduler->capacity()) +
      " tokens each; OpenAI's interface is at " + server.url() + "/v1");
  if (std::string why = scheduler->whyAlone(); !why.empty())
    messages.note("a step decodes one text, not all at once, because " + why);
  if (!memory.empty())
    messages.note(memory);
  std::fprintf(out, "%s\n", server.url().c_str());
  if (std::fflush(out) != 0)
    return error.badInput("cannot write the output");
  return server.run(error);
}

} // namespace attune::runtime

//===- Desk.cpp - Reads what requests ask for -----------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Desk.h"

#include "../Clock.h"
#include "../Grammar/GrammarAutomaton.h"
#include "Completion.h"
#include "EmbeddingTask.h"

#include <cstring>

namespace attune::runtime {

static constexpr std::string_view paths[] = {
    "/v1/completions", "/v1/chat/completions", "/v1/embeddings", "/tokenize",
    "/detokenize"};

bool Desk::handles(std::string_view path) {
  for (std::string_view known : paths)
    if (path == known)
      return true;
  return false;
}

bool Desk::start(Error &error) {
  int failure = pthread_create(
      &thread, nullptr,
      [](void *self) -> void * {
        static_cast<Desk *>(self)->loop();
        return nullptr;
      },
      this);
  isRunning = failure == 0;
  return isRunning ||
         error.set(ExitResourceLimit, std::string("cannot start a thread: ") +
                                          std::strerror(failure));
}

Desk::~Desk() {
  if (!isRunning)
    return;
  {
    MutexLock lock(mutex);
    isStopping = true;
    pthread_cond_signal(&changed);
  }
  pthread_join(thread, nullptr);
}

void Desk::submit(ExchangePtr exchange) {
  MutexLock lock(mutex);
  waiting.push_back(std::move(exchange));
  pthread_cond_signal(&changed);
}

void Desk::loop() {
  for (;;) {
    std::vector<ExchangePtr> next;
    {
      MutexLock lock(mutex);
      while (waiting.empty() && !isStopping)
        pthread_cond_wait(&changed, &mutex);
      if (waiting.empty())
        return;
      next.swap(waiting);
    }
    for (const ExchangePtr &exchange : next)
      handle(exchange);
  }
}

void Desk::reply(const ExchangePtr &exchange, std::string body) {
  ReplyPart part;
  part.exchange = exchange;
  part.status = 200;
  part.body = std::move(body);
  outbox.post(std::move(part));
}

void Desk::refuse(const ExchangePtr &exchange, const RequestError &error) {
  postError(outbox, exchange, error.status, error.message, error.parameter,
            error.code);
}

void Desk::handle(const ExchangePtr &exchange) {
  std::string_view path = exchange->request.path();
  JsonValue body;
  RequestError error;
  std::string problem;
  JsonLimits limits;
  limits.maxValues = size_t(1) << 20;
  if (exchange->isGone.load()) {
    reply(exchange, "");
    return;
  }
  if (monotonicTime() > exchange->deadline) {
    postError(outbox, exchange, 503,
              "the request took longer than the server allows", "", "timeout");
    return;
  }
  if (!parseJson(exchange->request.body, body, problem, limits)) {
    error.set("the body is no JSON: " + problem);
    refuse(exchange, error);
    return;
  }
  // Its text may be long, and what it says is known now.
  exchange->request.body = std::string();
  if (path == "/v1/embeddings")
    embed(exchange, body);
  else if (path == "/tokenize")
    tokenize(exchange, body);
  else if (path == "/detokenize")
    detokenize(exchange, body);
  else
    complete(exchange, body, path == "/v1/chat/completions");
}

void Desk::complete(const ExchangePtr &exchange, const JsonValue &body,
                    bool chat) {
  RequestError error;
  if (!scheduler.generates()) {
    error.set("model '" + model.info->name + "' does not generate texts");
    refuse(exchange, error);
    return;
  }
  CompletionRequest request;
  if (!request.read(body, chat, model, error)) {
    refuse(exchange, error);
    return;
  }
  if (request.options.automaton)
    exchange->note = request.options.automaton->note;
  // make_shared wants more of the C++ library than products have.
  std::shared_ptr<Completion> completion(
      new Completion(exchange, outbox, model, std::move(request)));
  completion->start(scheduler);
}

/// Texts or ids as `input` gives them: one or several.
static bool readInputs(RequestFields &fields, const ServedModel &model,
                       const Embedder &embedder,
                       std::vector<std::vector<int64_t>> &inputs,
                       RequestError &error) {
  const JsonValue *input = fields.find("input");
  if (!input)
    return error.set("'input' is missing: a text to embed, or several", "input",
                     "missing_required_parameter");
  std::vector<const JsonValue *> all;
  if (input->isArray() && !input->items.empty() && !input->items[0].isInt())
    for (const JsonValue &item : input->items)
      all.push_back(&item);
  else
    all.push_back(input);
  if (all.size() > 2048)
    return error.set("'input': expected at most 2048 texts", "input");
  for (const JsonValue *item : all) {
    std::vector<int64_t> ids;
    Encoding encoding;
    size_t whole;
    Error problem;
    if (!item->isString()) {
      if (!fields.takeIds("input", *item, INT64_MAX, ids))
        return false;
    } else if (!model.tokenizer) {
      return error.set("the model carries no tokenizer: 'input' must be token "
                       "ids",
                       "input");
    } else if (!embedder.encode(*model.tokenizer, item->string, encoding, whole,
                                problem)) {
      return error.set("'input': " + problem.message, "input");
    }
    if (item->isString())
      ids = std::move(encoding.ids);
    if (ids.empty())
      return error.set("'input': a text has no tokens", "input");
    inputs.push_back(std::move(ids));
  }
  return true;
}

void Desk::embed(const ExchangePtr &exchange, const JsonValue &body) {
  RequestError error;
  RequestFields fields(body, error);
  EmbeddingTask::Settings settings;
  std::string format = "float", name;
  int64_t width = 0;
  std::vector<std::vector<int64_t>> inputs;
  bool good = true;
  if (!embedder)
    good = error.set(noEmbedding);
  else if (!body.isObject())
    good = error.set("the body is no JSON object");
  width = embedder ? embedder->width() : 0;
  good = good && fields.take("model", name) &&
         fields.take("encoding_format", format) &&
         fields.take("dimensions", width, width, width) &&
         readInputs(fields, model, *embedder, inputs, error);
  Error problem;
  // As of texts: no name is that of `serve --adapter`.
  settings.adapter = model.adapter;
  if (good && !name.empty() && !model.info->adapters.empty()) {
    settings.adapter = 0;
    good = name == model.info->name ||
           model.info->findAdapter(name, settings.adapter, problem) ||
           error.setNoModel(problem.message);
  }
  if (good && format != "float" && format != "base64")
    good = error.set("'encoding_format': expected float or base64, found '" +
                         format + "'",
                     "encoding_format");
  if (!good) {
    refuse(exchange, error);
    return;
  }
  settings.pooling = model.info->pooling == Pooling::Auto ? Pooling::Mean
                                                          : model.info->pooling;
  settings.normalizes = model.info->normalizes;
  settings.isBase64 = format == "base64";
  settings.name = settings.adapter
                      ? model.info->adapters[size_t(settings.adapter) - 1]
                      : model.info->name;
  scheduler.submit(std::shared_ptr<ModelTask>(new EmbeddingTask(
      exchange, outbox, *embedder, std::move(settings), std::move(inputs))));
}

void Desk::tokenize(const ExchangePtr &exchange, const JsonValue &body) {
  RequestError error;
  RequestFields fields(body, error);
  std::string text;
  bool addSpecial = true, pieces = false, good = true;
  if (!model.tokenizer)
    good = error.set("the model carries no tokenizer");
  else if (!body.isObject() || !fields.has("content"))
    good = error.set("'content' is missing: the text to cut", "content",
                     "missing_required_parameter");
  std::vector<int64_t> ids;
  Error problem;
  good = good && fields.take("content", text) &&
         fields.take("add_special", addSpecial) &&
         fields.take("with_pieces", pieces) &&
         (model.tokenizer->encode(text, ids, problem, addSpecial) ||
          error.set(problem.message, "content"));
  if (!good) {
    refuse(exchange, error);
    return;
  }
  std::string out = "{\"tokens\":[";
  for (size_t i = 0; i < ids.size(); ++i) {
    out += i ? "," : "";
    if (pieces) {
      out += "{\"id\":" + std::to_string(ids[i]) + ",\"piece\":";
      appendJsonString(out, model.tokenizer->bytesOf(ids[i]));
      out += '}';
    } else {
      out += std::to_string(ids[i]);
    }
  }
  reply(exchange, out + "],\"count\":" + std::to_string(ids.size()) + "}");
}

void Desk::detokenize(const ExchangePtr &exchange, const JsonValue &body) {
  RequestError error;
  RequestFields fields(body, error);
  std::vector<int64_t> ids;
  bool good = true;
  if (!model.tokenizer)
    good = error.set("the model carries no tokenizer");
  else if (!body.isObject() || !fields.has("tokens"))
    good = error.set("'tokens' is missing: the ids of a text", "tokens",
                     "missing_required_parameter");
  good = good && fields.takeIds("tokens", *fields.find("tokens"),
                                model.tokenizer->size(), ids);
  if (!good) {
    refuse(exchange, error);
    return;
  }
  std::string out = "{\"content\":";
  appendJsonString(out, model.tokenizer->decode(ids, /*skipSpecial=*/false));
  reply(exchange, out + "}");
}

} // namespace attune::runtime

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
#include "LongText.h"
#include "ResponseReply.h"
#include "ResponseRequest.h"
#include "TextsTask.h"

#include <cstring>

namespace attune::runtime {

static constexpr std::string_view paths[] = {
    "/v1/completions", "/v1/chat/completions", "/v1/responses",
    "/v1/embeddings",  "/v1/rerank",           "/tokenize",
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
    error.set("the body is not JSON: " + problem);
    refuse(exchange, error);
    return;
  }
  // Its text may be long, and what it says is known now.
  exchange->request.body = std::string();
  if (path == "/v1/embeddings")
    embed(exchange, body);
  else if (path == "/v1/responses")
    respond(exchange, body);
  else if (path == "/v1/rerank")
    rerank(exchange, body);
  else if (path == "/tokenize")
    tokenize(exchange, body);
  else if (path == "/detokenize")
    detokenize(exchange, body);
  else
    complete(exchange, body, path == "/v1/chat/completions");
}

bool Desk::read(const ExchangePtr &exchange, const JsonValue &body, bool chat,
                CompletionRequest &request, RequestError &error) {
  if (!scheduler.generates())
    return error.set("model '" + model.info->name +
                     "' does not generate texts");
  bool isGood = request.read(body, chat, model, error);
  exchange->unknown = std::move(request.unknown);
  return isGood;
}

void Desk::complete(const ExchangePtr &exchange, const JsonValue &body,
                    bool chat) {
  RequestError error;
  CompletionRequest request;
  if (!read(exchange, body, chat, request, error)) {
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

void Desk::respond(const ExchangePtr &exchange, const JsonValue &body) {
  RequestError error;
  CompletionRequest request;
  JsonValue chat;
  if (!makeChatBody(body, chat, error) ||
      !read(exchange, chat, /*chat=*/true, request, error)) {
    nameMembersOfResponse(error);
    refuse(exchange, error);
    return;
  }
  std::shared_ptr<Completion> completion(
      new ResponseReply(exchange, outbox, model, std::move(request), body));
  completion->start(scheduler);
}

/// Texts or ids as `input` gives them: one or several.
static bool readInputs(RequestFields &fields, const ServedModel &model,
                       const Embedder &embedder, std::vector<Encoding> &inputs,
                       RequestError &error) {
  const JsonValue *input = fields.find("input");
  if (!input)
    return error.set("'input' is missing: a text to embed, or several", "input",
                     "missing_required_parameter");
  std::vector<const JsonValue *> all;
  if (input->isArray() && !input->items.empty() && !input->items[0].isNumber())
    for (const JsonValue &item : input->items)
      all.push_back(&item);
  else
    all.push_back(input);
  if (all.size() > 2048)
    return error.set("'input': expected at most 2048 texts", "input");
  std::string name = model.info->defaultPrompt, prompt;
  if (!fields.take("prompt_name", name))
    return false;
  const std::string *found = model.info->findPrompt(name);
  if (!found && !name.empty())
    return error.set("'prompt_name': the model has no prompt '" + name + "'",
                     "prompt_name");
  if (found)
    prompt = *found;
  for (const JsonValue *item : all) {
    Encoding encoding;
    size_t whole;
    Error problem;
    if (!item->isString() && !item->isArray())
      return fields.expected("input", "texts, or token ids", *item);
    if (!item->isString()) {
      if (!fields.takeIds("input", *item, INT64_MAX, encoding.ids))
        return false;
    } else if (!model.tokenizer) {
      return error.set("the model carries no tokenizer: 'input' must be token "
                       "ids",
                       "input");
    } else {
      // Where texts are cut, what is behind the last token does not count.
      std::string full = prompt + item->string;
      std::string_view text = full;
      bool cuts = model.info->mostTokens.value_or(-1) >= 0;
      int64_t most = model.info->mostTokens.value_or(0);
      if (most <= 0 || (model.info->context > 0 && most > model.info->context))
        most = model.info->context;
      if (most > 0)
        text =
            findBeginning(*model.tokenizer, text, size_t(most), model.cutBytes);
      if (!cuts && text.size() < full.size())
        return error.set("'input': a text has more than " +
                             std::to_string(most) +
                             " tokens, which are the model's context",
                         "input", "context_length_exceeded");
      model.cutBytes.fetch_add(static_cast<int64_t>(text.size()));
      if (!embedder.encode(*model.tokenizer, text, encoding, whole, problem))
        return error.set("'input': " + problem.message, "input");
    }
    if (encoding.ids.empty())
      return error.set("'input': a text has no tokens", "input");
    inputs.push_back(std::move(encoding));
  }
  return true;
}

/// The adapter that `model` names. As of texts: no name is that of
/// `serve --adapter`.
bool Desk::chooseModel(RequestFields &fields, TextsTask::Settings &settings,
                       RequestError &error) {
  std::string name;
  Error problem;
  if (!fields.take("model", name))
    return false;
  settings.adapter = model.adapter;
  if (!name.empty() && !model.info->adapters.empty()) {
    settings.adapter = 0;
    if (name != model.info->name &&
        !model.info->findAdapter(name, settings.adapter, problem))
      return error.setNoModel(problem.message);
  }
  settings.name = settings.adapter
                      ? model.info->adapters[size_t(settings.adapter) - 1]
                      : model.info->name;
  return true;
}

void Desk::embed(const ExchangePtr &exchange, const JsonValue &body) {
  RequestError error;
  RequestFields fields(body, error);
  TextsTask::Settings settings;
  std::string format = "float";
  std::vector<Encoding> inputs;
  bool good = true;
  if (!noEmbedding.empty())
    good = error.set(noEmbedding);
  else if (!body.isObject())
    good = error.set("the body is not a JSON object");
  int64_t width = embedder.width(), asked = width;
  good = good && fields.take("encoding_format", format) &&
         fields.take("dimensions", 1, width, asked) &&
         readInputs(fields, model, embedder, inputs, error) &&
         chooseModel(fields, settings, error);
  if (good && format != "float" && format != "base64")
    good = error.set("'encoding_format': expected float or base64, found '" +
                         format + "'",
                     "encoding_format");
  if (!good) {
    refuse(exchange, error);
    return;
  }
  settings.form = VectorForm::of(*model.info);
  settings.form.width = asked;
  settings.input = "input";
  scheduler.submit(std::shared_ptr<ModelTask>(
      new EmbeddingTask(exchange, outbox, embedder, std::move(settings),
                        std::move(inputs), format == "base64")));
}

/// Texts, or objects with a `text`.
static bool readDocuments(RequestFields &fields,
                          std::vector<std::string> &documents,
                          RequestError &error) {
  const JsonValue *list = fields.find("documents");
  if (!list)
    return error.set("'documents' is missing: the texts to rank", "documents",
                     "missing_required_parameter");
  if (!list->isArray())
    return fields.expected("documents", "an array of texts", *list);
  constexpr size_t most = 2048;
  if (list->items.empty() || list->items.size() > most)
    return error.set("'documents': expected 1 to " + std::to_string(most) +
                         " texts, found " + std::to_string(list->items.size()),
                     "documents");
  for (const JsonValue &item : list->items) {
    const JsonValue *text = item.isObject() ? item.find("text") : &item;
    if (!text || !text->isString())
      return fields.expected("documents", "texts, or objects with a 'text'",
                             item);
    documents.push_back(text->string);
  }
  return true;
}

void Desk::rerank(const ExchangePtr &exchange, const JsonValue &body) {
  RequestError error;
  RequestFields fields(body, error);
  TextsTask::Settings settings;
  std::string query;
  std::vector<std::string> documents;
  std::vector<Encoding> inputs;
  bool isReturned = false, good = true;
  int64_t most = INT64_MAX;
  if (!noScoring.empty())
    good = error.set(noScoring);
  else if (!model.tokenizer)
    good = error.set("the model carries no tokenizer");
  else if (!body.isObject())
    good = error.set("the body is not a JSON object");
  else if (!fields.has("query"))
    good = error.set("'query' is missing: the text that documents answer",
                     "query", "missing_required_parameter");
  good = good && fields.take("query", query) &&
         fields.take("top_n", 1, INT64_MAX, most) &&
         fields.take("return_documents", isReturned) &&
         readDocuments(fields, documents, error) &&
         chooseModel(fields, settings, error);
  auto checkLength = [&](std::string_view text, const char *parameter) {
    int64_t context = model.info->context;
    return context <= 0 ||
           findBeginning(*model.tokenizer, text, size_t(context),
                         model.cutBytes)
                   .size() == text.size() ||
           error.set("'" + std::string(parameter) + "': a text has more than " +
                         std::to_string(context) +
                         " tokens, which are the model's context",
                     parameter, "context_length_exceeded");
  };
  // The query is cut again beside each document.
  constexpr size_t mostQueries = size_t(1) << 24;
  if (good && query.size() * documents.size() > mostQueries)
    good = error.set("'query': expected at most " +
                         std::to_string(mostQueries / documents.size()) +
                         " bytes beside " + std::to_string(documents.size()) +
                         " documents, found " + std::to_string(query.size()),
                     "query");
  good = good && checkLength(query, "query");
  for (size_t i = 0; good && i < documents.size(); ++i) {
    Error problem;
    std::string_view second = documents[i];
    good = checkLength(second, "documents");
    if (!good)
      break;
    inputs.emplace_back();
    good = model.tokenizer->encode(query, &second, EncodeOptions(),
                                   inputs.back(), problem) ||
           error.set("'documents': " + problem.message, "documents");
  }
  if (!good) {
    refuse(exchange, error);
    return;
  }
  settings.input = "documents";
  if (!isReturned)
    documents.clear();
  scheduler.submit(std::shared_ptr<ModelTask>(new RerankTask(
      exchange, outbox, scorer, std::move(settings), std::move(inputs),
      static_cast<size_t>(most), std::move(documents))));
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
  model.cutBytes.fetch_add(static_cast<int64_t>(text.size()));
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

//===- CompletionRequest.cpp - A request for a text -----------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CompletionRequest.h"

#include "MessageParts.h"

#include <algorithm>
#include <cstdlib>

#include <sys/random.h>

namespace attune::runtime {

static constexpr int64_t mostChoices = 16;
static constexpr size_t mostPrompts = 64, mostStops = 16, mostMessages = 4096;

/// Members of OpenAI's requests that would change the answer, and that are not
/// understood: an answer without them would be a wrong one.
static bool refuseUnknown(const RequestFields &fields, RequestError &error) {
  for (const char *name : {"suffix", "functions", "function_call", "audio"})
    if (fields.has(name))
      return error.set("'" + std::string(name) +
                           "' is not supported by this server",
                       name, "unsupported_parameter");
  return true;
}

bool CompletionRequest::readPrompts(RequestFields &fields,
                                    const ServedModel &model,
                                    RequestError &error) {
  const JsonValue *prompt = fields.find("prompt");
  if (!prompt)
    return error.set("'prompt' is missing: a text to continue", "prompt",
                     "missing_required_parameter");
  std::vector<const JsonValue *> all;
  bool isList =
      prompt->isArray() && !prompt->items.empty() && !prompt->items[0].isInt();
  if (!isList)
    all.push_back(prompt);
  else
    for (const JsonValue &item : prompt->items)
      all.push_back(&item);
  if (all.size() > mostPrompts)
    return error.set("'prompt': expected at most " +
                         std::to_string(mostPrompts) + " prompts, found " +
                         std::to_string(all.size()),
                     "prompt");
  for (const JsonValue *item : all) {
    CompletionPrompt next;
    if (item->isString()) {
      if (!model.tokenizer)
        return error.set("the model carries no tokenizer: 'prompt' must be an "
                         "array of token ids",
                         "prompt");
      Error problem;
      if (!model.tokenizer->encode(item->string, next.ids, problem))
        return error.set("'prompt': " + problem.message, "prompt");
      next.text = item->string;
    } else {
      if (!item->isArray())
        return fields.expected("prompt", "a text, or token ids", *item);
      if (item->items.empty())
        return error.set("'prompt': expected token ids, found none", "prompt");
      if (!fields.takeIds("prompt", *item, model.vocabulary, next.ids))
        return false;
      if (model.tokenizer)
        next.text = model.tokenizer->decode(next.ids, /*skipSpecial=*/true);
    }
    if (next.ids.empty() && model.info->bos >= 0)
      next.ids.push_back(model.info->bos);
    prompts.push_back(std::move(next));
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

/// Moves a schema to `place` of another one: what it refers to, as
/// #/$defs/NAME, moves with it. Data in it (const, enum, examples) stays as it
/// is.
static void moveReferences(JsonValue &schema, const std::string &place) {
  for (size_t i = 0; schema.isObject() && i < schema.keys.size(); ++i) {
    std::string_view key = schema.keys[i];
    JsonValue &value = schema.items[i];
    if (key == "$ref" && value.isString() && value.string.substr(0, 1) == "#")
      value.string.insert(1, place);
    else if (key == "properties" || key == "$defs" || key == "definitions" ||
             key == "prefixItems" || key == "anyOf" || key == "oneOf" ||
             key == "allOf")
      for (JsonValue &part : value.items)
        moveReferences(part, place);
    else if (key == "items" || key == "additionalProperties")
      moveReferences(value, place);
  }
}

/// The texts that are a call of one of the tools, `only` this one if it is not
/// empty, as a schema. False: a tool has no name, or none is called `only`.
static bool describeCalls(const JsonValue &tools, const std::string &only,
                          std::string &schema) {
  size_t count = 0;
  schema = "{\"anyOf\":[";
  for (const JsonValue &tool : tools.items) {
    const JsonValue *function =
        tool.isObject() ? tool.find("function") : nullptr;
    const JsonValue *name =
        function && function->isObject() ? function->find("name") : nullptr;
    if (!name || !name->isString())
      return false;
    if (!only.empty() && name->string != only)
      continue;
    schema += std::string(count ? "," : "") +
              "{\"type\":\"object\",\"properties\":{\"name\":{\"const\":";
    appendJsonString(schema, name->string);
    schema += "},\"arguments\":";
    const JsonValue *parameters = function->find("parameters");
    if (parameters && !parameters->isNull()) {
      JsonValue moved = *parameters;
      moveReferences(moved, "/anyOf/" + std::to_string(count) +
                                "/properties/arguments");
      appendJson(schema, moved);
    } else {
      schema += "{\"type\":\"object\"}";
    }
    schema += "},\"required\":[\"name\",\"arguments\"],"
              "\"additionalProperties\":false}";
    ++count;
  }
  schema += "]}";
  return count > 0;
}

/// `tool_choice`: whether tools may be called is in `tools`, which becomes null
/// if not; if one must be, the text has no other form.
bool CompletionRequest::readToolChoice(RequestFields &fields,
                                       const ServedModel &model,
                                       const JsonValue *&tools,
                                       RequestError &error) {
  const JsonValue *choice = fields.find("tool_choice");
  if (!choice)
    return true;
  std::string_view word;
  if (choice->isString())
    word = choice->string;
  if (word == "auto")
    return true;
  if (word == "none") {
    tools = nullptr;
    return true;
  }
  const JsonValue *function =
      choice->isObject() ? choice->find("function") : nullptr;
  const JsonValue *name =
      function && function->isObject() ? function->find("name") : nullptr;
  if (word != "required" && !(name && name->isString()))
    return fields.expected("tool_choice",
                           "\"none\", \"auto\", \"required\" or "
                           "{\"type\": \"function\", \"function\": {\"name\": "
                           "...}}",
                           *choice);
  TextForm form;
  form.kind = TextForm::Kind::JsonSchema;
  if (!tools || !describeCalls(*tools, name ? name->string : "", form.source))
    return error.set(name ? "'tool_choice': 'tools' has no function '" +
                                name->string + "'"
                          : "'tool_choice': 'tools' has no function",
                     "tool_choice");
  if (options.automaton)
    return error.set("'tool_choice': a call of a tool has a form of its own, "
                     "which 'response_format' cannot change",
                     "tool_choice");
  Error problem;
  options.automaton = model.constraints->make(form, problem);
  return options.automaton || error.set("'tools': " + problem.message, "tools");
}

bool CompletionRequest::readMessages(RequestFields &fields,
                                     const ServedModel &model,
                                     RequestError &error) {
  if (!model.chat)
    return error.set(model.noChat, "messages");
  const JsonValue *list = fields.find("messages");
  if (!list)
    return error.set("'messages' is missing: what was said so far", "messages",
                     "missing_required_parameter");
  if (!list->isArray())
    return fields.expected("messages", "an array of messages", *list);
  if (list->items.empty())
    return error.set("'messages': expected at least one message", "messages");
  if (list->items.size() > mostMessages)
    return error.set("'messages': expected at most " +
                         std::to_string(mostMessages) + " messages",
                     "messages");
  JsonValue messages = *list;
  MessageReader reader(*model.info, model.capacity, model.mostPixels, error);
  for (JsonValue &message : messages.items)
    if (!reader.read(message))
      return false;
  const JsonValue *tools = fields.find("tools");
  if (tools && !tools->isArray())
    return fields.expected("tools", "an array of tools", *tools);
  if (tools && tools->items.empty())
    tools = nullptr;
  if (!readToolChoice(fields, model, tools, error))
    return false;
  if (tools && !model.chat->takesTools())
    return error.set("'tools': the model's chat template knows no tools",
                     "tools", "unsupported_parameter");
  findsToolCalls = tools != nullptr;
  const JsonValue *variables = fields.find("chat_template_kwargs");
  if (variables && !variables->isObject())
    return fields.expected("chat_template_kwargs", "an object", *variables);
  CompletionPrompt prompt;
  Error problem;
  if (!model.chat->encode(*model.tokenizer, messages, tools, variables,
                          prompt.ids, problem) ||
      !placePictures(*model.info, reader.pictures.size(), prompt.ids, problem))
    return error.set(problem.message, "messages");
  prompt.pictures = std::move(reader.pictures);
  prompts.push_back(std::move(prompt));
  return true;
}

//===----------------------------------------------------------------------===//
// Settings
//===----------------------------------------------------------------------===//

static bool readBias(const JsonValue &bias, RequestFields &fields,
                     const ServedModel &model, SamplingOptions &sampling,
                     RequestError &error) {
  if (!bias.isObject())
    return fields.expected("logit_bias", "an object of token ids", bias);
  for (size_t i = 0; i < bias.keys.size(); ++i) {
    const std::string &key = bias.keys[i];
    char *end = nullptr;
    long long id = std::strtoll(key.c_str(), &end, 10);
    const JsonValue &value = bias.items[i];
    bool isId = !key.empty() && key[0] >= '0' && key[0] <= '9' && !*end &&
                key.size() < 19 && id < model.vocabulary;
    if (!isId)
      return error.set("'logit_bias': expected ids of tokens below " +
                           std::to_string(model.vocabulary) + ", found '" +
                           key + "'",
                       "logit_bias");
    if (!value.isNumber() || !(value.real >= -1000 && value.real <= 1000))
      return error.set("'logit_bias': expected a number from -1000 to 1000 "
                       "for token " +
                           key,
                       "logit_bias");
    sampling.logitBias.emplace_back(id, value.real);
  }
  return true;
}

bool CompletionRequest::readSampling(RequestFields &fields,
                                     const ServedModel &model,
                                     RequestError &error) {
  SamplingOptions &sampling = options.sampling;
  double heat = -1;
  int64_t seed = -1;
  if (!fields.take("temperature", 0, 1000, heat) ||
      !fields.take("top_p", 0, 1, sampling.topP) ||
      !fields.take("min_p", 0, 1, sampling.minP) ||
      !fields.take("top_k", -1, INT64_MAX, sampling.topK) ||
      !fields.take("frequency_penalty", -100, 100, sampling.frequencyPenalty) ||
      !fields.take("presence_penalty", -100, 100, sampling.presencePenalty) ||
      !fields.take("repetition_penalty", 0.01, 100,
                   sampling.repetitionPenalty) ||
      !fields.take("min_tokens", 0, INT64_MAX, sampling.minNewTokens) ||
      !fields.take("ignore_eos", options.ignoreEos) ||
      !fields.take("seed", INT64_MIN, INT64_MAX, seed))
    return false;
  if (fields.has("min_tokens") && options.maxNewTokens >= 0 &&
      sampling.minNewTokens > options.maxNewTokens)
    return error.set("'min_tokens': " + std::to_string(sampling.minNewTokens) +
                         " is more than the most new tokens, " +
                         std::to_string(options.maxNewTokens),
                     "min_tokens");
  sampling.topK = std::max<int64_t>(sampling.topK, 0); // -1 means 0 elsewhere
  if (const JsonValue *bias = fields.find("logit_bias"))
    if (!readBias(*bias, fields, model, sampling, error))
      return false;
  // Fields of the request override the model's own settings.
  static const std::pair<const char *, const char *> names[] = {
      {"temperature", "temperature"},
      {"top_p", "top-p"},
      {"min_p", "min-p"},
      {"top_k", "top-k"},
      {"repetition_penalty", "repetition-penalty"},
      {"min_tokens", "min-new-tokens"}};
  for (auto [field, option] : names)
    if (fields.has(field))
      options.given.push_back(option);
  if (heat == 0) {
    options.askedGreedy = sampling.greedy = true;
    options.askedSampling = false;
  } else if (heat > 0) {
    options.askedSampling = true;
    options.askedGreedy = sampling.greedy = false;
    sampling.temperature = std::max(heat, SamplingOptions::leastTemperature);
  } else if (!options.askedGreedy &&
             (fields.has("top_p") || fields.has("top_k") ||
              fields.has("min_p"))) {
    options.askedSampling = true;
    sampling.greedy = false;
  }
  if (fields.has("seed"))
    sampling.seed = static_cast<uint64_t>(seed);
  else if (getrandom(&sampling.seed, sizeof(sampling.seed), 0) < 0)
    sampling.seed = 0;
  std::string taken;
  Error problem;
  return options.takeSettings(*model.info, taken, problem) ||
         error.set(problem.message);
}

bool CompletionRequest::readOutput(RequestFields &fields,
                                   const ServedModel &model,
                                   RequestError &error) {
  int64_t most = -1;
  for (const char *name : {"max_tokens", "max_completion_tokens"})
    if (!fields.take(name, 1, INT64_MAX, most))
      return false;
  if (most > 0) {
    options.maxNewTokens = most;
    options.given.push_back("max-new-tokens");
  }
  bool wants = false;
  int64_t likeliest = -1, bestOf = 1;
  if (isChat) {
    if (!fields.take("logprobs", wants) ||
        !fields.take("top_logprobs", 0, 20, likeliest))
      return false;
    if (likeliest >= 0 && !wants)
      return error.set("'top_logprobs' needs 'logprobs': true", "top_logprobs");
    likeliest = wants ? std::max<int64_t>(likeliest, 0) : -1;
  } else if (!fields.take("logprobs", 0, 20, likeliest)) {
    return false;
  }
  options.logprobs = likeliest;
  if (!fields.take("n", 1, mostChoices, choices) ||
      !fields.take("best_of", choices, choices, bestOf) ||
      !fields.take("stream", streams) || !fields.take("echo", echo) ||
      !fields.take("stop", mostStops, options.stops))
    return false;
  if (echo && likeliest >= 0)
    return error.set("'echo' with 'logprobs': the log-probabilities of a "
                     "prompt are not computed; leave one of them out (the "
                     "program's 'perplexity' scores a text)",
                     "echo");
  for (const std::string &stop : options.stops)
    if (stop.empty())
      return error.set("'stop': a text is empty", "stop");
  if (!model.tokenizer && !options.stops.empty())
    return error.set("'stop': the model carries no tokenizer", "stop");
  if (const JsonValue *of = fields.find("stream_options")) {
    if (!of->isObject())
      return fields.expected("stream_options", "an object", *of);
    if (!RequestFields(*of, error).take("include_usage", includesUsage))
      return false;
  }
  return readForm(fields, model, error);
}

/// Reads the form that the text must have.
bool CompletionRequest::readForm(RequestFields &fields,
                                 const ServedModel &model,
                                 RequestError &error) {
  const JsonValue *format = fields.find("response_format");
  if (!format)
    return true;
  auto fail = [&](const std::string &what) {
    return error.set("'response_format': " + what, "response_format");
  };
  const JsonValue *type = format->isObject() ? format->find("type") : nullptr;
  if (!type || !type->isString())
    return fail("expected an object with a type");
  TextForm form;
  auto takeText = [&](const char *name) {
    const JsonValue *text = format->find(name);
    if (text && text->isString())
      form.source = text->string;
    return (text && text->isString()) ||
           fail("expected a string '" + std::string(name) + "'");
  };
  if (type->string == "text")
    return true;
  if (type->string == "json_object") {
    form.kind = TextForm::Kind::JsonObject;
  } else if (type->string == "json_schema") {
    form.kind = TextForm::Kind::JsonSchema;
    const JsonValue *inner = format->find("json_schema");
    const JsonValue *schema =
        inner && inner->isObject() ? inner->find("schema") : nullptr;
    if (!schema)
      return fail("expected 'json_schema': {\"schema\": ...}");
    appendJson(form.source, *schema);
  } else if (type->string == "regex") {
    form.kind = TextForm::Kind::Pattern;
    if (!takeText("pattern"))
      return false;
  } else if (type->string == "grammar") {
    form.kind = TextForm::Kind::Grammar;
    if (!takeText("grammar"))
      return false;
  } else {
    return fail("expected a type text, json_object, json_schema, regex or "
                "grammar, found '" +
                type->string + "'");
  }
  if (!model.constraints)
    return fail("the model carries no tokenizer");
  Error problem;
  options.automaton = model.constraints->make(form, problem);
  return options.automaton || fail(problem.message);
}

/// A model with adapters goes by its own name and those of the adapters. Of
/// others any name is good: there is no choice.
bool CompletionRequest::readModel(RequestFields &fields,
                                  const ServedModel &model,
                                  RequestError &error) {
  std::string name;
  if (!fields.take("model", name))
    return false;
  adapter = model.adapter;
  if (name.empty() || model.info->adapters.empty())
    return true;
  adapter = 0;
  Error problem;
  return name == model.info->name ||
         model.info->findAdapter(name, adapter, problem) ||
         error.setNoModel(problem.message);
}

bool CompletionRequest::read(const JsonValue &body, bool chat,
                             const ServedModel &model, RequestError &error) {
  if (!body.isObject())
    return error.set("the body is no JSON object");
  isChat = chat;
  options = model.defaults;
  RequestFields fields(body, error);
  if (!readModel(fields, model, error) || !refuseUnknown(fields, error) ||
      !readOutput(fields, model, error) || !readSampling(fields, model, error))
    return false;
  if (!(chat ? readMessages(fields, model, error)
             : readPrompts(fields, model, error)))
    return false;
  if (!options.ignoreEos) {
    ends = model.info->eos;
    if (chat)
      ends.insert(ends.end(), model.chatEnds.begin(), model.chatEnds.end());
  }
  options.sampling.ends = ends;
  const char *parameter = chat ? "messages" : "prompt";
  for (const CompletionPrompt &prompt : prompts) {
    auto length = static_cast<int64_t>(prompt.ids.size());
    if (length == 0)
      return error.set("the prompt is empty, and the model names no token to "
                       "begin with",
                       parameter);
    if (length >= model.capacity)
      return error.set("the prompt has " + std::to_string(length) +
                           " tokens, which leaves no room for new ones in a "
                           "context of " +
                           std::to_string(model.capacity),
                       parameter, "context_length_exceeded");
  }
  return true;
}

} // namespace attune::runtime

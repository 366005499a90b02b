//===- CompletionRequest.cpp - A request for a text -----------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CompletionRequest.h"

#include "LongText.h"
#include "RequestMembers.h"

#include <algorithm>
#include <cstdlib>

#include <sys/random.h>

namespace attune::runtime {

static constexpr int64_t mostChoices = 16;
/// Log-probabilities of prompts in a reply. Each takes 64 bytes or less until
/// then, and some 20 as JSON.
static constexpr int64_t mostScores = int64_t(1) << 22;
static constexpr size_t mostPrompts = 64, mostStops = 16;
/// Each of a request's texts, of which there may be a thousand, has a copy of
/// these.
static constexpr size_t mostStopIds = 256, mostBiases = 4096,
                        mostStopBytes = 4096;

bool CompletionRequest::readPrompts(RequestFields &fields,
                                    const ServedModel &model,
                                    RequestError &error) {
  const JsonValue *prompt = fields.find("prompt");
  if (!prompt)
    return error.set("'prompt' is missing: a text to continue", "prompt",
                     "missing_required_parameter");
  std::vector<const JsonValue *> all;
  bool isList = prompt->isArray() && !prompt->items.empty() &&
                !prompt->items[0].isNumber();
  bool addsSpecial = true;
  if (!fields.take("add_special_tokens", addsSpecial))
    return false;
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
      if (!cutText(item->string, addsSpecial, model, next.ids, "prompt", error))
        return false;
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
// Settings
//===----------------------------------------------------------------------===//

static bool readBias(const JsonValue &bias, RequestFields &fields,
                     const ServedModel &model, SamplingOptions &sampling,
                     RequestError &error) {
  if (!bias.isObject())
    return fields.expected("logit_bias", "an object of token ids", bias);
  if (bias.keys.size() > mostBiases)
    return error.set("'logit_bias': expected at most " +
                         std::to_string(mostBiases) + " tokens, found " +
                         std::to_string(bias.keys.size()),
                     "logit_bias");
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
      !fields.take("repeat_penalty", 0.01, 100, // llama.cpp's name
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
      {"repeat_penalty", "repetition-penalty"},
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

static bool readStopIds(const JsonValue &value, RequestFields &fields,
                        const ServedModel &model, std::vector<int64_t> &ids,
                        RequestError &error) {
  if (!fields.takeIds("stop_token_ids", value, model.vocabulary, ids))
    return false;
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids.size() <= mostStopIds ||
         error.set("'stop_token_ids': expected at most " +
                       std::to_string(mostStopIds) + " ids, found " +
                       std::to_string(ids.size()),
                   "stop_token_ids");
}

bool CompletionRequest::readOutput(RequestFields &fields,
                                   const ServedModel &model,
                                   RequestError &error) {
  int64_t most = -1;
  // llama.cpp's name, and -1 for as many as there may be.
  const JsonValue *predict = fields.find("n_predict");
  bool isEndless = predict && predict->isNumber() && predict->real == -1;
  for (const char *name : {"n_predict", "max_tokens", "max_completion_tokens"})
    if (!(isEndless && fields.find(name) == predict) &&
        !fields.take(name, isChat ? 1 : 0, INT64_MAX, most))
      return false;
  if (most >= 0) {
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
  if (!fields.take("prompt_logprobs", 0, 20, promptLogprobs))
    return false;
  if (const JsonValue *ids = fields.find("stop_token_ids"))
    if (!readStopIds(*ids, fields, model, stopIds, error))
      return false;
  if (!fields.take("n", 1, mostChoices, choices) ||
      !fields.take("best_of", 1, INT64_MAX, bestOf) ||
      !fields.take("stream", streams) ||
      !fields.take("return_tokens_as_token_ids", namesIds) ||
      (!isChat && !fields.take("echo", echo)) ||
      !fields.take("stop", mostStops, options.stops))
    return false;
  if (fields.has("best_of") && bestOf != choices)
    return error.set("'best_of': expected as many as 'n', " +
                         std::to_string(choices) +
                         ", since all texts are given",
                     "best_of");
  if (scoresPrompt() && !model.noScores.empty())
    return refuseScores(model.noScores, error);
  if (promptLogprobs >= 0 && streams)
    return error.set("'prompt_logprobs' are part of a whole reply, not of a "
                     "stream",
                     "prompt_logprobs");
  for (const std::string &stop : options.stops) {
    if (stop.empty())
      return error.set("'stop': a text is empty", "stop");
    if (stop.size() > mostStopBytes)
      return error.set("'stop': expected texts of at most " +
                           std::to_string(mostStopBytes) + " bytes",
                       "stop");
  }
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
    return error.set("the body is not a JSON object");
  isChat = chat;
  options = model.defaults;
  RequestFields fields(body, error);
  if (!readModel(fields, model, error) ||
      !checkMembers(body, chat, unknown, error) ||
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
  ends.insert(ends.end(), stopIds.begin(), stopIds.end());
  options.sampling.ends = ends;
  return checkLengths(model, error);
}

bool CompletionRequest::refuseLength(const std::string &count,
                                     const ServedModel &model,
                                     const char *parameter,
                                     RequestError &error) {
  return error.set("the prompt has " + count +
                       " tokens, which leaves no room for new ones in a "
                       "context of " +
                       std::to_string(model.capacity),
                   parameter, "context_length_exceeded");
}

bool CompletionRequest::cutText(const std::string &text, bool addSpecial,
                                const ServedModel &model,
                                std::vector<int64_t> &ids,
                                const char *parameter,
                                RequestError &error) const {
  auto most = static_cast<size_t>(std::max<int64_t>(mostTokens(model), 0));
  if (findBeginning(*model.tokenizer, text, most, model.cutBytes).size() <
      text.size())
    return refuseLength("more than " + std::to_string(most), model, parameter,
                        error);
  model.cutBytes.fetch_add(static_cast<int64_t>(text.size()));
  Error problem;
  return model.tokenizer->encode(text, ids, problem, addSpecial) ||
         error.set("'" + std::string(parameter) + "': " + problem.message,
                   parameter);
}

bool CompletionRequest::checkLengths(const ServedModel &model,
                                     RequestError &error) const {
  const char *parameter = isChat ? "messages" : "prompt";
  int64_t sum = 0;
  for (const CompletionPrompt &prompt : prompts) {
    auto length = static_cast<int64_t>(prompt.ids.size());
    sum += length;
    if (length == 0)
      return error.set("the prompt is empty, and the model names no token to "
                       "begin with",
                       parameter);
    if (length > mostTokens(model))
      return refuseLength(std::to_string(length), model, parameter, error);
    if (scoresPrompt() && model.mostScored >= 0 && length > model.mostScored)
      return refuseScores("the prompt has " + std::to_string(length) +
                              " tokens, but this model computes texts of more "
                              "than " +
                              std::to_string(model.mostScored) +
                              " otherwise, which are not scored",
                          error);
    if (scoresPrompt() && !prompt.pictures.empty())
      return refuseScores("prompts with pictures are not scored", error);
  }
  if (!scoresPrompt())
    return true;
  // The reply has them once for each choice, and in two forms if both are
  // wanted.
  int64_t ofEach = (echoesScores() ? options.logprobs + 1 : 0) * choices +
                   (promptLogprobs + 1) * (isChat ? 1 : choices);
  int64_t most = mostScores / ofEach;
  if (sum > most)
    return refuseScores(
        "the prompts have " + std::to_string(sum) +
            " tokens, of which at most " + std::to_string(most) +
            " are scored at once with " + std::to_string(numScores()) +
            " likeliest ones beside each" +
            (choices > 1 ? " in " + std::to_string(choices) + " choices" : ""),
        error);
  return true;
}

} // namespace attune::runtime

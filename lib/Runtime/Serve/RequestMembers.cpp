//===- RequestMembers.cpp - Names that requests may have ------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RequestMembers.h"

#include <algorithm>
#include <iterator>

namespace attune::runtime {

/// Read by CompletionRequest, or of no meaning for an answer.
static constexpr std::string_view known[] = {
    "model", "stream", "stream_options", "n", "best_of", "stop", "logprobs",
    "temperature", "top_p", "top_k", "min_p", "frequency_penalty",
    "presence_penalty", "repetition_penalty", "min_tokens", "ignore_eos",
    "seed", "logit_bias", "max_tokens", "max_completion_tokens",
    "response_format", "stop_token_ids", "guided_json", "guided_regex",
    "guided_grammar", "guided_choice", "structured_outputs", "json_schema",
    "grammar", "return_tokens_as_token_ids", "prompt_logprobs",
    "repeat_penalty", "n_predict",
    // Whose request it is, what becomes of it, and how fast it is.
    "user", "metadata", "store", "service_tier", "safety_identifier",
    "prompt_cache_key", "prompt_cache_retention", "prediction", "verbosity",
    "request_id", "priority", "cache_salt", "cache_prompt", "id_slot",
    "guided_decoding_backend"};
static constexpr std::string_view knownOfChats[] = {"messages",
                                                    "tools",
                                                    "tool_choice",
                                                    "parallel_tool_calls",
                                                    "top_logprobs",
                                                    "reasoning_effort",
                                                    "documents",
                                                    "chat_template_kwargs",
                                                    "add_generation_prompt",
                                                    "continue_final_message"};
static constexpr std::string_view knownOfTexts[] = {"prompt", "echo",
                                                    "add_special_tokens"};

namespace {
/// A member that is not there, and the value that asks for nothing, as JSON;
/// empty: any value asks for something.
struct Missing {
  std::string_view name, neutral;
};
} // namespace

static constexpr Missing missing[] = {
    {"suffix", "\"\""},
    {"functions", "[]"},
    {"function_call", "\"none\""},
    {"audio", ""},
    {"modalities", "[\"text\"]"},
    {"web_search_options", ""},
    // vLLM's
    {"prompt_embeds", ""},
    {"use_beam_search", "false"},
    {"length_penalty", "1"},
    {"skip_special_tokens", "true"},
    {"include_stop_str_in_output", "false"},
    {"truncate_prompt_tokens", ""},
    {"allowed_token_ids", "[]"},
    {"bad_words", "[]"},
    {"logits_processors", "[]"},
    {"guided_whitespace_pattern", ""},
    {"chat_template", ""},
    {"mm_processor_kwargs", "{}"},
    // Of llama.cpp, and of others that draw tokens in more ways.
    {"typical_p", "1"},
    {"typical", "1"},
    {"tfs", "1"},
    {"tfs_z", "1"},
    {"top_a", "0"},
    {"epsilon_cutoff", "0"},
    {"eta_cutoff", "0"},
    {"mirostat", "0"},
    {"mirostat_mode", "0"},
    {"dynatemp_range", "0"},
    {"smoothing_factor", "0"},
    {"xtc_probability", "0"},
    {"dry_multiplier", "0"},
    {"no_repeat_ngram_size", "0"},
    {"n_probs", "0"},
    // Of texts in a chat, and of chats in a text.
    {"echo", "false"},
    {"add_special_tokens", "false"},
    {"messages", ""},
    {"prompt", ""},
    {"tools", "[]"},
    {"tool_choice", "\"none\""},
    {"add_generation_prompt", "true"},
    {"continue_final_message", "false"}};

template <size_t N>
static bool holds(const std::string_view (&names)[N], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

static bool isEqual(const JsonValue &value, std::string_view json) {
  JsonValue other;
  std::string ignored, own, wanted;
  if (json.empty() || !parseJson(json, other, ignored))
    return false;
  if (value.isNumber() && other.isNumber())
    return value.real == other.real;
  appendJson(own, value);
  appendJson(wanted, other);
  return own == wanted;
}

bool checkMembers(const JsonValue &body, bool chat,
                  std::vector<std::string> &unknown, RequestError &error) {
  for (size_t i = 0; i < body.keys.size(); ++i) {
    const std::string &name = body.keys[i];
    if (body.items[i].isNull() || holds(known, name) ||
        (chat ? holds(knownOfChats, name) : holds(knownOfTexts, name)))
      continue;
    const Missing *found =
        std::find_if(std::begin(missing), std::end(missing),
                     [&](const Missing &each) { return each.name == name; });
    constexpr size_t most = 32; // the server tells of no more
    if (found == std::end(missing) && unknown.size() < most)
      unknown.push_back(name);
    if (found != std::end(missing) && !isEqual(body.items[i], found->neutral))
      return error.set("'" + name + "' is not supported by this server" +
                           (found->neutral.empty()
                                ? ""
                                : "; the only value it takes is " +
                                      std::string(found->neutral)),
                       name, "unsupported_parameter");
  }
  return true;
}

} // namespace attune::runtime

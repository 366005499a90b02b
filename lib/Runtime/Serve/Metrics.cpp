//===- Metrics.cpp - Counters of a server ---------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Metrics.h"

#include <cstdio>

namespace attune::runtime {

static std::string formatNumber(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.9g", value);
  return text;
}

static void begin(std::string &out, const std::string &name, const char *type,
                  const char *help) {
  out += "# HELP " + name + " " + help + "\n# TYPE " + name + " " + type + "\n";
}

void Histogram::add(double seconds) {
  size_t place = 0;
  while (place < numBounds && seconds > bounds[place])
    ++place;
  ++counts[place];
  sum += seconds;
}

void Histogram::format(std::string &out, const char *name,
                       const char *help) const {
  begin(out, name, "histogram", help);
  uint64_t total = 0;
  for (size_t i = 0; i <= numBounds; ++i) {
    total += counts[i];
    out += std::string(name) + "_bucket{le=\"" +
           (i < numBounds ? formatNumber(bounds[i]) : "+Inf") + "\"} " +
           std::to_string(total) + "\n";
  }
  out += std::string(name) + "_sum " + formatNumber(sum) + "\n" + name +
         "_count " + std::to_string(total) + "\n";
}

void Metrics::countRequest(std::string_view path, int status, double seconds,
                           double untilFirstToken) {
  durations.add(seconds);
  if (untilFirstToken > 0)
    firstTokens.add(untilFirstToken);
  for (Requests &each : requests)
    if (each.path == path && each.status == status) {
      ++each.count;
      return;
    }
  requests.push_back({std::string(path), status, 1});
}

std::string Metrics::format(const Scheduler &scheduler, size_t connections,
                            int64_t cutBytes) const {
  std::string out;
  begin(out, "attune_requests_total", "counter", "Requests answered.");
  for (const Requests &each : requests)
    out += "attune_requests_total{path=\"" + each.path + "\",status=\"" +
           std::to_string(each.status) + "\"} " + std::to_string(each.count) +
           "\n";
  auto add = [&](const char *name, const char *type, const char *help,
                 int64_t value) {
    begin(out, name, type, help);
    out += std::string(name) + " " + std::to_string(value) + "\n";
  };
  const SchedulerCounts &counts = scheduler.counts();
  add("attune_tokenized_bytes_total", "counter",
      "Bytes of texts that were cut into tokens.", cutBytes);
  add("attune_prompts_total", "counter", "Prompts that got a slot.",
      counts.prompts.load());
  add("attune_prompt_hits_total", "counter",
      "Of them, those that a cache held some tokens of.",
      counts.promptHits.load());
  add("attune_prompt_tokens_total", "counter",
      "Tokens of prompts that were computed.", counts.promptTokens.load());
  add("attune_reused_tokens_total", "counter",
      "Tokens of prompts that a cache still held.", counts.reusedTokens.load());
  add("attune_new_tokens_total", "counter", "Tokens that were generated.",
      counts.newTokens.load());
  add("attune_decode_rounds_total", "counter",
      "Rounds of one token for every sequence.", counts.rounds.load());
  add("attune_prompt_pauses_total", "counter",
      "Of them, those that a prompt was paused for.", counts.pauses.load());
  add("attune_decode_steps_total", "counter",
      "Steps of the model that gave a token to one or more sequences.",
      counts.steps.load());
  add("attune_decode_batch_size", "gauge", "Sequences of the last such step.",
      counts.sequencesOfStep.load());
  add("attune_sequences_running", "gauge", "Sequences that have a slot.",
      counts.running.load());
  add("attune_sequences_waiting", "gauge", "Sequences that wait for a slot.",
      counts.waiting.load());
  add("attune_slots", "gauge", "Sequences that fit at a time.",
      scheduler.numSlots());
  add("attune_cached_positions", "gauge", "Positions that all caches hold.",
      counts.cachedPositions.load());
  add("attune_cache_positions", "gauge", "Positions that all caches have.",
      scheduler.numSlots() * scheduler.capacity());
  if (counts.pages.load() > 0) {
    add("attune_cache_pages_used", "gauge",
        "Pages of the GPU's memory that keys and values are in.",
        counts.pagesInUse.load());
    add("attune_cache_pages", "gauge", "Such pages at most.",
        counts.pages.load());
    add("attune_cache_page_bytes", "gauge", "Bytes of such a page.",
        counts.pageBytes.load());
    add("attune_preemptions_total", "counter",
        "Texts that gave their memory back to older ones.",
        counts.putBack.load());
    add("attune_preemptions_recomputed_total", "counter",
        "Of them, those that are computed again as the host had no memory for "
        "what they had.",
        counts.forgotten.load());
    add("attune_cache_pages_on_host", "gauge",
        "As many pages as what such texts have takes of the host's memory.",
        counts.pagesOnHost.load());
  }
  if (std::string why = scheduler.whyNotPersistent(); !why.empty()) {
    begin(out, "attune_persistent_kernel_refused", "gauge",
          "Steps do without the persistent kernel that they were compiled "
          "with.");
    out += "attune_persistent_kernel_refused{reason=\"" + why + "\"} 1\n";
  }
  add("attune_connections", "gauge", "Connections that are open.",
      static_cast<int64_t>(connections));
  durations.format(out, "attune_request_seconds",
                   "From a request's end to the end of its reply.");
  firstTokens.format(out, "attune_first_token_seconds",
                     "From a request's end to its first token.");
  return out;
}

} // namespace attune::runtime

//===- TextsTask.cpp - What a model computes of texts ---------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TextsTask.h"

#include "../Clock.h"
#include "../Text/Unicode.h"

#include "attune/Runtime/Json.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace attune::runtime {

/// JSON has no NaN and no infinity.
static void appendNumber(std::string &out, double value) {
  char number[32];
  std::snprintf(number, sizeof(number), "%.9g", value);
  out += std::isfinite(value) ? number : "null";
}

bool TextsTask::runPiece() {
  ReplyPart part;
  part.exchange = exchange;
  if (exchange->isGone.load()) {
    outbox.post(std::move(part));
    return false;
  }
  if (monotonicTime() > exchange->deadline) {
    postError(outbox, exchange, 503,
              "the request took longer than the server allows", "", "timeout");
    return false;
  }
  const Encoding &input = inputs[numDone];
  std::vector<double> numbers;
  Error error;
  embedder.setAdapter(settings.adapter);
  if (!embedder.embed(input.ids,
                      input.typeIds.empty() ? nullptr : &input.typeIds,
                      settings.form, numbers, error)) {
    // Errors that the model finds in an input are the client's to mend.
    bool isTheirs = error.code == ExitBadInput;
    postError(outbox, exchange, isTheirs ? 400 : 500,
              std::string(settings.input) + " " + std::to_string(numDone) +
                  ": " + error.message,
              isTheirs ? settings.input : "");
    return false;
  }
  take(numDone, numbers);
  exchange->promptTokens += static_cast<int64_t>(input.ids.size());
  if (++numDone < inputs.size())
    return true;
  std::string tokens = std::to_string(exchange->promptTokens);
  part.status = 200;
  part.body = "{" + format() + ",\"model\":";
  appendJsonString(part.body, settings.name);
  part.body += ",\"usage\":{\"prompt_tokens\":" + tokens +
               ",\"total_tokens\":" + tokens + "}}";
  outbox.post(std::move(part));
  return false;
}

//===----------------------------------------------------------------------===//
// Vectors
//===----------------------------------------------------------------------===//

/// The vector as 32-bit floats in base64.
static void appendFloats(std::string &out, const std::vector<double> &vector) {
  std::string bytes(vector.size() * sizeof(float), 0);
  for (size_t i = 0; i < vector.size(); ++i) {
    auto value = static_cast<float>(vector[i]);
    std::memcpy(&bytes[i * sizeof(float)], &value, sizeof(float));
  }
  appendBase64(out, bytes);
}

void EmbeddingTask::take(size_t number, const std::vector<double> &numbers) {
  data += number ? "," : "";
  data += "{\"object\":\"embedding\",\"index\":" + std::to_string(number) +
          ",\"embedding\":";
  if (isBase64) {
    data += '"';
    appendFloats(data, numbers);
    data += "\"}";
    return;
  }
  for (size_t i = 0; i < numbers.size(); ++i) {
    data += i ? "," : "[";
    appendNumber(data, numbers[i]);
  }
  data += "]}";
}

std::string EmbeddingTask::format() {
  return "\"object\":\"list\",\"data\":[" + data + "]";
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

void RerankTask::take(size_t number, const std::vector<double> &numbers) {
  scores.emplace_back(1 / (1 + std::exp(-numbers[0])), number);
}

std::string RerankTask::format() {
  // Equal scores keep the order of the documents; NaN comes last.
  std::sort(scores.begin(), scores.end(), [](const auto &a, const auto &b) {
    bool isNumber = !std::isnan(a.first), isOther = !std::isnan(b.first);
    if (isNumber != isOther)
      return isNumber;
    return isNumber && a.first != b.first ? a.first > b.first
                                          : a.second < b.second;
  });
  std::string out = "\"object\":\"list\",\"results\":[";
  for (size_t i = 0; i < std::min(most, scores.size()); ++i) {
    auto [score, number] = scores[i];
    out += (i ? ",{\"index\":" : "{\"index\":") + std::to_string(number) +
           ",\"relevance_score\":";
    appendNumber(out, score);
    if (!documents.empty()) {
      out += ",\"document\":{\"text\":";
      appendJsonString(out, documents[number]);
      out += '}';
    }
    out += '}';
  }
  return out + "]";
}

} // namespace attune::runtime

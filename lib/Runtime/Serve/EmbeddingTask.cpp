//===- EmbeddingTask.cpp - Vectors for a request --------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EmbeddingTask.h"

#include "../Clock.h"
#include "../Text/Unicode.h"

#include "attune/Runtime/Json.h"

#include <cmath>
#include <cstdio>
#include <cstring>

namespace attune::runtime {

/// The vector as 32-bit floats in base64.
static void appendFloats(std::string &out, const std::vector<double> &vector) {
  std::string bytes(vector.size() * sizeof(float), 0);
  for (size_t i = 0; i < vector.size(); ++i) {
    auto value = static_cast<float>(vector[i]);
    std::memcpy(&bytes[i * sizeof(float)], &value, sizeof(float));
  }
  appendBase64(out, bytes);
}

void EmbeddingTask::append(const std::vector<double> &vector) {
  data += numDone ? "," : "";
  data += "{\"object\":\"embedding\",\"index\":" + std::to_string(numDone) +
          ",\"embedding\":";
  if (settings.isBase64) {
    data += '"';
    appendFloats(data, vector);
    data += "\"}";
    return;
  }
  char number[32];
  for (size_t i = 0; i < vector.size(); ++i) {
    // JSON has no NaN and no infinity.
    std::snprintf(number, sizeof(number), "%.9g", vector[i]);
    data += i ? "," : "[";
    data += std::isfinite(vector[i]) ? number : "null";
  }
  data += "]}";
}

bool EmbeddingTask::runPiece() {
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
  std::vector<double> vector;
  Error error;
  embedder.setAdapter(settings.adapter);
  if (!embedder.embed(inputs[numDone], settings.pooling, settings.normalizes,
                      vector, error)) {
    // Errors that the model finds in an input are the client's to mend.
    bool isTheirs = error.code == ExitBadInput;
    postError(outbox, exchange, isTheirs ? 400 : 500,
              "input " + std::to_string(numDone) + ": " + error.message,
              isTheirs ? "input" : "");
    return false;
  }
  append(vector);
  exchange->promptTokens += static_cast<int64_t>(inputs[numDone].size());
  if (++numDone < inputs.size())
    return true;
  std::string tokens = std::to_string(exchange->promptTokens);
  part.status = 200;
  part.body = "{\"object\":\"list\",\"data\":[" + data + "],\"model\":";
  appendJsonString(part.body, settings.name);
  part.body += ",\"usage\":{\"prompt_tokens\":" + tokens +
               ",\"total_tokens\":" + tokens + "}}";
  outbox.post(std::move(part));
  return false;
}

} // namespace attune::runtime

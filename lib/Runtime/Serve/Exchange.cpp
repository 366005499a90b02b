//===- Exchange.cpp - A request and its reply -----------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Exchange.h"

#include "attune/Runtime/Json.h"

#include <sys/eventfd.h>
#include <unistd.h>

namespace attune::runtime {

Outbox::Outbox() : wake(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

Outbox::~Outbox() {
  if (wake >= 0)
    close(wake);
}

void Outbox::post(ReplyPart part) {
  bool wasEmpty;
  {
    MutexLock lock(mutex);
    wasEmpty = waiting.empty();
    waiting.push_back(std::move(part));
  }
  uint64_t one = 1;
  // The descriptor cannot be full: it counts takers that are late, at most one.
  if (wasEmpty && write(wake, &one, sizeof(one)) < 0)
    return;
}

void Outbox::take(std::vector<ReplyPart> &parts) {
  parts.clear();
  uint64_t count;
  MutexLock lock(mutex);
  if (read(wake, &count, sizeof(count)) < 0)
    return; // nothing was posted
  parts.swap(waiting);
}

/// The type of an error with this status in OpenAI's API.
static const char *typeOf(int status) {
  switch (status) {
  case 401:
    return "authentication_error";
  case 429:
    return "rate_limit_error";
  default:
    return status >= 500 ? "server_error" : "invalid_request_error";
  }
}

std::string formatError(int status, std::string_view message,
                        std::string_view parameter, std::string_view code) {
  auto orNull = [](std::string &out, std::string_view text) {
    if (text.empty())
      out += "null";
    else
      appendJsonString(out, text);
  };
  std::string out = "{\"error\":{\"message\":";
  appendJsonString(out, message);
  out += ",\"type\":\"";
  out += typeOf(status);
  out += "\",\"param\":";
  orNull(out, parameter);
  out += ",\"code\":";
  orNull(out, code);
  return out + "}}";
}

void postError(Outbox &outbox, const ExchangePtr &exchange, int status,
               std::string_view message, std::string_view parameter,
               std::string_view code) {
  ReplyPart part;
  part.exchange = exchange;
  part.status = status;
  part.body = formatError(status, message, parameter, code);
  outbox.post(std::move(part));
}

} // namespace attune::runtime

//===- Exchange.h - A request and its reply ---------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Three threads serve: the loop speaks HTTP, the desk reads what requests ask
// for, the scheduler computes. An exchange goes from one to the next and back;
// each part of its reply goes through the outbox.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_SERVE_EXCHANGE_H
#define ATTUNE_LIB_RUNTIME_SERVE_EXCHANGE_H

#include "../MutexLock.h"
#include "HttpParser.h"

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <pthread.h>

namespace attune::runtime {

class Connection;

struct Exchange {
  HttpRequest request;
  double started = 0;
  double deadline = 0; ///< when it is given up
  /// The client hung up: nobody reads a reply.
  std::atomic<bool> isGone{false};
  Connection *connection = nullptr; ///< the loop's; null when it is closed

  // For the log, set before the last part of the reply.
  int64_t promptTokens = 0, cachedTokens = 0, newTokens = 0;
  int64_t reasoningTokens = 0;      ///< of the new ones
  double firstToken = 0;            ///< when it came
  std::string finish;               ///< why the text ended
  std::string note;                 ///< what the request may not expect
  std::vector<std::string> unknown; ///< members of the request that none reads
  int status = 0;                   ///< of the reply; the loop keeps it
};
using ExchangePtr = std::shared_ptr<Exchange>;

/// A part of a reply. The first one has the status; a reply of one part says
/// its length, others are sent in chunks.
struct ReplyPart {
  ExchangePtr exchange;
  int status = 0; ///< 0: more of the body
  const char *type = "application/json";
  std::string body;
  bool isLast = true;
};

/// Where other threads leave parts of replies for the loop.
class Outbox {
public:
  Outbox();
  ~Outbox();
  /// Becomes readable when there is something to take; -1: it could not be
  /// made.
  int wakeDescriptor() const { return wake; }
  void post(ReplyPart part);
  void take(std::vector<ReplyPart> &parts);

private:
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  std::vector<ReplyPart> waiting;
  int wake = -1;
};

/// The body of an error in OpenAI's form.
std::string formatError(int status, std::string_view message,
                        std::string_view parameter = "",
                        std::string_view code = "");

/// Answers with an error.
void postError(Outbox &outbox, const ExchangePtr &exchange, int status,
               std::string_view message, std::string_view parameter = "",
               std::string_view code = "");

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_SERVE_EXCHANGE_H

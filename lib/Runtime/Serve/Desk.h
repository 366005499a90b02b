//===- Desk.h - Reads what requests ask for ---------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Parsing JSON, laying out messages and cutting texts into tokens take time.
// Neither connections nor sequences should wait for it, so a thread of its own
// does it. Requests that need the model go on to the scheduler.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_SERVE_DESK_H
#define ATTUNE_LIB_RUNTIME_SERVE_DESK_H

#include "../Generation/Embedder.h"
#include "CompletionRequest.h"
#include "Exchange.h"
#include "Scheduler.h"
#include "TextsTask.h"

#include <memory>
#include <vector>

#include <pthread.h>

namespace attune::runtime {

class Desk {
public:
  /// `noEmbedding` says why `embedder` gives no vectors, and `noScoring` why
  /// `scorer` gives no scores; they are empty where it does.
  Desk(const ServedModel &model, Scheduler &scheduler, Outbox &outbox,
       Embedder &embedder, Embedder &scorer, std::string noEmbedding,
       std::string noScoring)
      : model(model), scheduler(scheduler), outbox(outbox), embedder(embedder),
        scorer(scorer), noEmbedding(std::move(noEmbedding)),
        noScoring(std::move(noScoring)) {}
  /// Waits for the thread; what was not read yet is answered.
  ~Desk();
  bool start(Error &error);

  /// Whether a path is one of the desk's.
  static bool handles(std::string_view path);
  void submit(ExchangePtr exchange);

private:
  void loop();
  void handle(const ExchangePtr &exchange);
  void complete(const ExchangePtr &exchange, const JsonValue &body, bool chat);
  void respond(const ExchangePtr &exchange, const JsonValue &body);
  bool read(const ExchangePtr &exchange, const JsonValue &body, bool chat,
            CompletionRequest &request, RequestError &error);
  void embed(const ExchangePtr &exchange, const JsonValue &body);
  void rerank(const ExchangePtr &exchange, const JsonValue &body);
  bool chooseModel(RequestFields &fields, TextsTask::Settings &settings,
                   RequestError &error);
  void tokenize(const ExchangePtr &exchange, const JsonValue &body);
  void detokenize(const ExchangePtr &exchange, const JsonValue &body);
  void refuse(const ExchangePtr &exchange, const RequestError &error);
  void reply(const ExchangePtr &exchange, std::string body);

  const ServedModel &model;
  Scheduler &scheduler;
  Outbox &outbox;
  Embedder &embedder, &scorer;
  std::string noEmbedding, noScoring;
  pthread_t thread;
  bool isRunning = false;
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
  std::vector<ExchangePtr> waiting;
  bool isStopping = false;
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_SERVE_DESK_H

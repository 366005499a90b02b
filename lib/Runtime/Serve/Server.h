//===- Server.h - Connections and who answers them --------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_SERVE_SERVER_H
#define ATTUNE_LIB_RUNTIME_SERVE_SERVER_H

#include "CompletionRequest.h"
#include "Connection.h"
#include "Desk.h"
#include "LoadLine.h"
#include "Metrics.h"

#include "attune/Runtime/Serve.h"

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

struct addrinfo;
struct evconnlistener;
struct event;
struct event_base;

namespace attune::runtime {

/// The event loop: it accepts connections, answers what needs no work itself
/// and hands the rest to the desk.
class Server {
public:
  Server(const ServeOptions &options, const ServedModel &model,
         Scheduler &scheduler, Desk &desk, Outbox &outbox, const Messages &log);
  ~Server();

  /// Binds the address.
  bool listen(Error &error);
  /// "http://127.0.0.1:8080"
  const std::string &url() const { return address; }
  /// Whether only this machine can reach it.
  bool isLocal() const { return isLoopback; }
  /// Serves until a signal, and then until all is answered.
  bool run(Error &error);

  // For connections.
  void dispatch(Connection &connection, HttpRequest request);
  void remove(Connection &connection);
  void countRefused(int status);
  const HttpLimits &limits() const { return httpLimits; }
  double readTimeout() const { return options.readTimeout; }
  double idleTimeout() const { return options.readTimeout * 2; }
  bool isDraining() const { return draining; }
  /// Header lines for pages of another origin.
  const std::string &originHeaders() const { return origin; }

private:
  bool bind(const addrinfo &places, Error &error);
  evconnlistener *bindOne(const addrinfo &place, uint16_t port);
  void pauseAccepting();
  void goOnAccepting();
  void stopAccepting();
  bool isAllowed(const HttpRequest &request) const;
  bool hasGoodHost(const HttpRequest &request) const;
  void answer(Connection &connection, const HttpRequest &request, int status,
              std::string_view type, std::string_view body,
              std::string_view more = "");
  void refuse(Connection &connection, const HttpRequest &request, int status,
              std::string_view message, std::string_view more = "");
  void get(Connection &connection, const HttpRequest &request);
  void getPage(Connection &connection, const HttpRequest &request);
  void queue(Connection &connection, HttpRequest request);
  /// What /v1/models says of the model, or of one of its adapters.
  std::string formatModel(const std::string &name) const;
  void accept(int socket);
  void deliver();
  void deliver(const ReplyPart &part);
  void drain();
  void stopIfDone();
  void note(const Exchange &exchange, int status);
  void noteUnknown(const std::vector<std::string> &names);
  bool watchLoad();

  const ServeOptions &options;
  const ServedModel &model;
  Scheduler &scheduler;
  Desk &desk;
  Outbox &outbox;
  const Messages &log;
  HttpLimits httpLimits;
  Metrics metrics;
  LoadLine load;
  bool saidNotPersistent = false;
  std::vector<std::string> saidUnknown; ///< names in the log
  std::string address, origin;
  bool isLoopback = false;
  event_base *base = nullptr;
  std::vector<evconnlistener *> listeners; ///< one for each address
  event *wake = nullptr, *tick = nullptr, *retry = nullptr, *signals[2] = {};
  std::vector<std::unique_ptr<Connection>> connections;
  std::vector<ReplyPart> parts;
  int64_t numOpen = 0; ///< exchanges that are not answered yet
  bool draining = false, stopsNow = false;
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_SERVE_SERVER_H

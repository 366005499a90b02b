//===- Connection.h - A client's connection ---------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One request after the other is read and answered; what a client sends ahead
// waits. While a request is answered the connection still listens, so that a
// client that hangs up is noticed at once. All that takes a client time has a
// deadline.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_SERVE_CONNECTION_H
#define ATTUNE_LIB_RUNTIME_SERVE_CONNECTION_H

#include "Exchange.h"
#include "HttpParser.h"

#include <string>
#include <string_view>

struct bufferevent;
struct event;
struct event_base;

namespace attune::runtime {

class Server;

class Connection {
public:
  Connection(Server &server, event_base *base, int socket);
  ~Connection();
  Connection(const Connection &) = delete;
  Connection &operator=(const Connection &) = delete;

  /// Whether libevent had memory for it.
  bool isGood() const { return events && timer; }
  /// No request is being read or answered.
  bool isIdle() const;
  /// It is of no use any more; the server removes it.
  bool isDead() const { return dead; }
  double idleSince() const { return sinceIdle; }

  /// A whole reply. `more` are further header lines.
  void reply(int status, std::string_view type, std::string_view body,
             std::string_view more = "");
  /// A reply in parts.
  void replyPart(const ReplyPart &part);
  /// From now on the exchange answers.
  void wait(ExchangePtr exchange);
  /// Closes after the reply that is on its way, or at once.
  void close();

private:
  static void leave(void *self);
  void read();
  void written();
  void ended();
  void expired();
  void arm(double seconds);
  void send(std::string_view bytes);
  void endReply();
  void die();
  std::string formatHead(int status, std::string_view type,
                         std::string_view more) const;

  Server &server;
  bufferevent *events = nullptr;
  event *timer = nullptr;
  HttpParser parser;
  ExchangePtr exchange; ///< that is being answered
  double sinceIdle;
  bool keepsAlive = true; ///< after the reply that is on its way
  bool isHead = false;    ///< the reply has no body
  bool isOld = false;     ///< HTTP/1.0 knows no chunks
  bool continued = false; ///< the client was told to send its body
  bool isClosing = false, isShut = false, sawEnd = false, dead = false;
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_SERVE_CONNECTION_H

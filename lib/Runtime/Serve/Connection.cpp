//===- Connection.cpp - A client's connection -----------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Connection.h"

#include "../Clock.h"
#include "Server.h"

#include <algorithm>
#include <cstdio>
#include <ctime>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <sys/socket.h>

namespace attune::runtime {

/// Bytes that are read ahead; then the client has to wait.
static constexpr size_t readAhead = size_t(1) << 16;
/// A client that is so far behind with reading, before it gets more, does not
/// read.
static constexpr size_t mostUnsent = size_t(16) << 20;
/// Seconds in which a client whose connection is closed may still send, lest
/// the reply be lost with what it sent.
static constexpr double lingering = 2;

static timeval toTimeval(double seconds) {
  timeval time;
  time.tv_sec = static_cast<time_t>(seconds);
  time.tv_usec = static_cast<suseconds_t>(
      (seconds - static_cast<double>(time.tv_sec)) * 1e6);
  return time;
}

Connection::Connection(Server &server, event_base *base, int socket)
    : server(server), parser(server.limits()), sinceIdle(monotonicTime()) {
  events = bufferevent_socket_new(base, socket, BEV_OPT_CLOSE_ON_FREE);
  if (!events) {
    evutil_closesocket(socket);
    return;
  }
  timer = event_new(
      base, -1, 0,
      [](evutil_socket_t, short, void *self) {
        static_cast<Connection *>(self)->expired();
        leave(self);
      },
      this);
  bufferevent_setcb(
      events,
      [](bufferevent *, void *self) {
        static_cast<Connection *>(self)->read();
        leave(self);
      },
      [](bufferevent *, void *self) {
        static_cast<Connection *>(self)->written();
        leave(self);
      },
      [](bufferevent *, short what, void *self) {
        if (what & BEV_EVENT_EOF)
          static_cast<Connection *>(self)->ended();
        else // an error, or the client does not read
          static_cast<Connection *>(self)->die();
        leave(self);
      },
      this);
  timeval time = toTimeval(server.readTimeout());
  bufferevent_set_timeouts(events, nullptr, &time);
  bufferevent_setwatermark(events, EV_READ, 0, readAhead);
  if (!timer)
    return;
  arm(server.readTimeout());
  bufferevent_enable(events, EV_READ | EV_WRITE);
}

Connection::~Connection() {
  if (exchange) {
    exchange->connection = nullptr;
    exchange->isGone.store(true);
  }
  if (timer)
    event_free(timer);
  if (events)
    bufferevent_free(events);
}

/// The end of each callback, which may have been the connection's last.
void Connection::leave(void *self) {
  auto *connection = static_cast<Connection *>(self);
  if (connection->dead)
    connection->server.remove(*connection);
}

bool Connection::isIdle() const {
  return !exchange && parser.isFresh() && !isClosing &&
         evbuffer_get_length(bufferevent_get_output(events)) == 0;
}

void Connection::arm(double seconds) {
  timeval time = toTimeval(seconds);
  event_add(timer, &time);
}

/// Nobody is there any more.
void Connection::die() {
  dead = true;
  if (!exchange)
    return;
  exchange->connection = nullptr;
  exchange->isGone.store(true);
  exchange.reset();
}

void Connection::read() {
  evbuffer *input = bufferevent_get_input(events);
  while (!exchange && !isClosing && !dead) {
    size_t length = evbuffer_get_contiguous_space(input);
    if (length == 0)
      return;
    bool wasFresh = parser.isFresh();
    auto *bytes =
        reinterpret_cast<const char *>(evbuffer_pullup(input, length));
    size_t used = parser.feed({bytes, length});
    evbuffer_drain(input, used);
    if (parser.isFailed()) {
      keepsAlive = false;
      std::string body = formatError(parser.status(), parser.problem());
      server.countRefused(parser.status());
      reply(parser.status(), "application/json", body);
      return;
    }
    if (parser.isDone()) {
      event_del(timer);
      HttpRequest request = std::move(parser.request());
      parser.reset();
      continued = false;
      keepsAlive = request.keepsAlive() && !server.isDraining();
      isHead = request.method == "HEAD";
      isOld = request.isOld;
      server.dispatch(*this, std::move(request));
      continue;
    }
    if (wasFresh && !parser.isFresh())
      arm(server.readTimeout());
    if (parser.wantsContinue() && !continued) {
      continued = true;
      send("HTTP/1.1 100 Continue\r\n\r\n");
    }
  }
  if (isClosing)
    evbuffer_drain(input, evbuffer_get_length(input));
}

/// The client sends no more. It may still read, but whoever waits for a model
/// and sends no more has hung up, as far as anybody can tell.
void Connection::ended() {
  sawEnd = true;
  if (exchange)
    return die();
  if (!isClosing && !parser.isFresh()) {
    keepsAlive = false;
    server.countRefused(400);
    reply(400, "application/json",
          formatError(400, "the request ends before it is whole"));
  }
  if (!dead && evbuffer_get_length(bufferevent_get_output(events)) == 0)
    return die();
  isClosing = true;
}

/// All that was to be sent is.
void Connection::written() {
  if (!isClosing || exchange)
    return;
  if (sawEnd || isShut || server.isDraining())
    return die();
  isShut = true;
  shutdown(bufferevent_getfd(events), SHUT_WR);
  arm(lingering);
}

void Connection::expired() {
  if (isClosing || parser.isFresh())
    return die();
  keepsAlive = false;
  server.countRefused(408);
  reply(408, "application/json",
        formatError(408, "the request did not come to its end in time"));
}

void Connection::close() {
  if (exchange) {
    keepsAlive = false; // after its reply
    return;
  }
  if (evbuffer_get_length(bufferevent_get_output(events)) == 0)
    return die();
  isClosing = true;
}

void Connection::wait(ExchangePtr next) {
  exchange = std::move(next);
  exchange->connection = this;
}

void Connection::send(std::string_view bytes) {
  size_t unsent = evbuffer_get_length(bufferevent_get_output(events));
  if (unsent > mostUnsent ||
      bufferevent_write(events, bytes.data(), bytes.size()) != 0)
    die();
}

static const char *nameStatus(int status) {
  switch (status) {
  case 200:
    return "OK";
  case 204:
    return "No Content";
  case 400:
    return "Bad Request";
  case 401:
    return "Unauthorized";
  case 403:
    return "Forbidden";
  case 404:
    return "Not Found";
  case 405:
    return "Method Not Allowed";
  case 408:
    return "Request Timeout";
  case 413:
    return "Content Too Large";
  case 415:
    return "Unsupported Media Type";
  case 417:
    return "Expectation Failed";
  case 431:
    return "Request Header Fields Too Large";
  case 501:
    return "Not Implemented";
  case 503:
    return "Service Unavailable";
  case 505:
    return "HTTP Version Not Supported";
  default:
    return "Internal Server Error";
  }
}

std::string Connection::formatHead(int status, std::string_view type,
                                   std::string_view more) const {
  char date[64];
  std::time_t now = std::time(nullptr);
  std::tm parts;
  gmtime_r(&now, &parts);
  std::strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", &parts);
  std::string head = "HTTP/1.1 " + std::to_string(status) + " " +
                     nameStatus(status) + "\r\nDate: " + date + "\r\n";
  if (!type.empty())
    head += "Content-Type: " + std::string(type) + "\r\n";
  head += server.originHeaders();
  head += more;
  if (!keepsAlive)
    head += "Connection: close\r\n";
  return head;
}

void Connection::reply(int status, std::string_view type, std::string_view body,
                       std::string_view more) {
  std::string head = formatHead(status, type, more);
  if (status != 204)
    head += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  head += "\r\n";
  if (!isHead)
    head += body;
  send(head);
  endReply();
}

void Connection::replyPart(const ReplyPart &part) {
  if (part.status != 0 && part.isLast) {
    exchange.reset();
    reply(part.status, part.type, part.body);
    return;
  }
  std::string bytes;
  if (part.status != 0) {
    if (isOld)
      keepsAlive = false; // the end of the connection ends the reply
    bytes = formatHead(part.status, part.type,
                       isOld ? "Cache-Control: no-cache\r\n"
                             : "Cache-Control: no-cache\r\n"
                               "Transfer-Encoding: chunked\r\n") +
            "\r\n";
  }
  if (!part.body.empty()) {
    char size[24];
    std::snprintf(size, sizeof(size), "%zx\r\n", part.body.size());
    bytes += isOld ? part.body : size + part.body + "\r\n";
  }
  if (part.isLast && !isOld)
    bytes += "0\r\n\r\n";
  if (part.isLast)
    exchange.reset();
  send(bytes);
  if (part.isLast && !dead)
    endReply();
}

void Connection::endReply() {
  sinceIdle = monotonicTime();
  isHead = false;
  if (dead)
    return;
  if (keepsAlive && !server.isDraining()) {
    arm(server.idleTimeout());
    // Bytes that the client sent ahead have waited.
    if (evbuffer_get_length(bufferevent_get_input(events)) > 0)
      bufferevent_trigger(events, EV_READ, BEV_TRIG_DEFER_CALLBACKS);
    return;
  }
  isClosing = true;
  arm(server.readTimeout());
}

} // namespace attune::runtime

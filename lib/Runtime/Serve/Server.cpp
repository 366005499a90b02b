//===- Server.cpp - Connections and who answers them ----------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Server.h"
#include "../Clock.h"
#include "WebPage.h"

#include "attune/Runtime/Json.h"
#include "attune/Runtime/Picture.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <utility>

#include <arpa/inet.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace attune::runtime {

static constexpr const char *json = "application/json";

Server::Server(const ServeOptions &options, const ServedModel &model,
               Scheduler &scheduler, Desk &desk, Outbox &outbox,
               const Messages &log)
    : options(options), model(model), scheduler(scheduler), desk(desk),
      outbox(outbox), log(log),
      load(options.quiet ? nullptr : log.terminal(), scheduler) {
  httpLimits.body = options.maxBody;
  if (!options.allowOrigin.empty())
    origin = "Access-Control-Allow-Origin: " + options.allowOrigin +
             "\r\nVary: Origin\r\n";
}

Server::~Server() {
  connections.clear();
  for (event *each : {wake, tick, retry, signals[0], signals[1]})
    if (each)
      event_free(each);
  stopAccepting();
  if (base)
    event_base_free(base);
}

//===----------------------------------------------------------------------===//
// The loop
//===----------------------------------------------------------------------===//

/// "127.0.0.1:8080" or "[::1]:8080".
static std::string formatAddress(const sockaddr_storage &place,
                                 bool &isLoopback) {
  char text[INET6_ADDRSTRLEN] = "";
  if (place.ss_family == AF_INET6) {
    auto &v6 = reinterpret_cast<const sockaddr_in6 &>(place);
    isLoopback = IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
    inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
    return "[" + std::string(text) + "]:" + std::to_string(ntohs(v6.sin6_port));
  }
  auto &v4 = reinterpret_cast<const sockaddr_in &>(place);
  isLoopback = ntohl(v4.sin_addr.s_addr) >> 24 == 127;
  inet_ntop(AF_INET, &v4.sin_addr, text, sizeof(text));
  return std::string(text) + ":" + std::to_string(ntohs(v4.sin_port));
}

/// Listens on an address; null, with errno, if it cannot. A port of 0 is that
/// of the address.
evconnlistener *Server::bindOne(const addrinfo &place, uint16_t port) {
  sockaddr_storage at = {};
  std::memcpy(&at, place.ai_addr, place.ai_addrlen);
  if (port && at.ss_family == AF_INET6)
    reinterpret_cast<sockaddr_in6 &>(at).sin6_port = htons(port);
  else if (port)
    reinterpret_cast<sockaddr_in &>(at).sin_port = htons(port);
  evconnlistener *listener = evconnlistener_new_bind(
      base,
      [](evconnlistener *, evutil_socket_t socket, sockaddr *, int,
         void *self) { static_cast<Server *>(self)->accept(socket); },
      this, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_REUSEABLE,
      /*backlog=*/128, reinterpret_cast<sockaddr *>(&at),
      static_cast<int>(place.ai_addrlen));
  if (!listener)
    return nullptr;
  // Without descriptors a connection stays in the kernel's queue for a while.
  evconnlistener_set_error_cb(listener, [](evconnlistener *, void *self) {
    auto &server = *static_cast<Server *>(self);
    server.pauseAccepting();
    timeval second = {1, 0};
    event_add(server.retry, &second);
  });
  return listener;
}

/// Listens on all addresses of a name, as localhost has two. Those behind the
/// first have its port, and may be of a family that this machine lacks.
bool Server::bind(const addrinfo &places, Error &error) {
  uint16_t port = 0;
  for (const addrinfo *place = &places; place; place = place->ai_next) {
    evconnlistener *listener = bindOne(*place, port);
    if (!listener && listeners.empty() && !place->ai_next)
      return error.badInput("cannot listen on " + options.host + " port " +
                            std::to_string(options.port) + ": " +
                            std::strerror(errno));
    if (!listener)
      continue;
    listeners.push_back(listener);
    sockaddr_storage bound = {};
    socklen_t length = sizeof(bound);
    if (getsockname(evconnlistener_get_fd(listener),
                    reinterpret_cast<sockaddr *>(&bound), &length) != 0)
      return error.badInput(std::string("cannot listen: ") +
                            std::strerror(errno));
    bool isLocal = false;
    std::string text = formatAddress(bound, isLocal);
    isLoopback = isLocal && (port == 0 || isLoopback);
    if (port)
      continue;
    address = "http://" + text;
    port = ntohs(bound.ss_family == AF_INET6
                     ? reinterpret_cast<sockaddr_in6 &>(bound).sin6_port
                     : reinterpret_cast<sockaddr_in &>(bound).sin_port);
  }
  return true;
}

void Server::pauseAccepting() {
  for (evconnlistener *listener : listeners)
    evconnlistener_disable(listener);
}

/// Unless as many are connected as may be.
void Server::goOnAccepting() {
  if (connections.size() >= static_cast<size_t>(options.connections))
    return;
  for (evconnlistener *listener : listeners)
    evconnlistener_enable(listener);
}

void Server::stopAccepting() {
  for (evconnlistener *listener : listeners)
    evconnlistener_free(listener);
  listeners.clear();
}

bool Server::listen(Error &error) {
  base = event_base_new();
  if (!base || outbox.wakeDescriptor() < 0)
    return error.set(ExitResourceLimit, "cannot wait for events");
  std::signal(SIGPIPE, SIG_IGN);
  addrinfo hints = {}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  std::string port = std::to_string(options.port);
  int failure = getaddrinfo(options.host.c_str(), port.c_str(), &hints, &found);
  if (failure)
    return error.badInput("--host: " + options.host + ": " +
                          gai_strerror(failure));
  bool good = bind(*found, error);
  freeaddrinfo(found);
  if (!good)
    return false;
  wake = event_new(
      base, outbox.wakeDescriptor(), EV_READ | EV_PERSIST,
      [](evutil_socket_t, short, void *self) {
        static_cast<Server *>(self)->deliver();
      },
      this);
  for (int i = 0; i < 2; ++i)
    signals[i] = evsignal_new(
        base, i ? SIGINT : SIGTERM,
        [](evutil_socket_t, short, void *self) {
          static_cast<Server *>(self)->drain();
        },
        this);
  retry = evtimer_new(
      base,
      [](evutil_socket_t, short, void *self) {
        static_cast<Server *>(self)->goOnAccepting();
      },
      this);
  if (!retry)
    return error.set(ExitResourceLimit, "cannot wait for events");
  for (event *each : {wake, signals[0], signals[1]})
    if (!each || event_add(each, nullptr) != 0)
      return error.set(ExitResourceLimit, "cannot wait for events");
  return !load.isWanted() || watchLoad() ||
         error.set(ExitResourceLimit, "cannot wait for events");
}

/// Shows the load from second to second.
bool Server::watchLoad() {
  tick = event_new(
      base, -1, EV_PERSIST,
      [](evutil_socket_t, short, void *self) {
        static_cast<Server *>(self)->load.update(monotonicTime());
      },
      this);
  timeval second = {1, 0};
  return tick && event_add(tick, &second) == 0;
}

bool Server::run(Error &error) {
  return event_base_dispatch(base) >= 0 ||
         error.set(ExitInternalError, "the event loop failed");
}

void Server::accept(int socket) {
  int on = 1; // tokens go out as they come
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  std::unique_ptr<Connection> next(new Connection(*this, base, socket));
  if (!next->isGood())
    return;
  connections.push_back(std::move(next));
  if (connections.size() < static_cast<size_t>(options.connections))
    return;
  // The one that was idle for longest makes room; if all are busy, a new one
  // waits in the kernel's queue.
  Connection *oldest = nullptr;
  for (auto &each : connections)
    if (each->isIdle() && (!oldest || each->idleSince() < oldest->idleSince()))
      oldest = each.get();
  if (oldest && oldest != connections.back().get())
    remove(*oldest);
  else
    pauseAccepting();
}

void Server::remove(Connection &connection) {
  auto place =
      std::find_if(connections.begin(), connections.end(),
                   [&](const auto &each) { return each.get() == &connection; });
  if (place != connections.end())
    connections.erase(place);
  goOnAccepting();
  stopIfDone();
}

/// Accepts no more, answers what was asked, then ends. The second time, ends.
void Server::drain() {
  if (draining) {
    stopsNow = true;
    event_base_loopbreak(base);
    return;
  }
  draining = true;
  stopAccepting();
  load.clear();
  log.note("stopping: " + std::to_string(numOpen) +
           " requests are being answered");
  for (size_t i = connections.size(); i-- > 0;) {
    Connection &each = *connections[i];
    each.close();
    if (each.isDead())
      remove(each);
  }
  stopIfDone();
}

void Server::stopIfDone() {
  if (draining && connections.empty())
    event_base_loopbreak(base);
}

void Server::deliver() {
  outbox.take(parts);
  for (const ReplyPart &part : parts)
    deliver(part);
}

void Server::deliver(const ReplyPart &part) {
  Exchange &exchange = *part.exchange;
  if (part.status != 0)
    exchange.status = part.status;
  if (Connection *connection = exchange.connection) {
    if (part.isLast)
      exchange.connection = nullptr;
    connection->replyPart(part);
    if (connection->isDead())
      remove(*connection);
  }
  if (!part.isLast)
    return;
  --numOpen;
  note(exchange, exchange.isGone.load() ? 499 : exchange.status);
}

//===----------------------------------------------------------------------===//
// The log
//===----------------------------------------------------------------------===//

/// Once for each name, and not for as many as somebody may think of.
void Server::noteUnknown(const std::vector<std::string> &names) {
  constexpr size_t most = 32, longest = 64;
  for (const std::string &name : names) {
    bool isName = name.size() <= longest &&
                  name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJK"
                                         "LMNOPQRSTUVWXYZ0123456789_-.") ==
                      std::string::npos;
    if (!isName || saidUnknown.size() == most ||
        std::find(saidUnknown.begin(), saidUnknown.end(), name) !=
            saidUnknown.end())
      continue;
    saidUnknown.push_back(name);
    load.clear();
    log.note("a request has a member '" + name +
             "', which this server does not know: it changes nothing");
  }
}

void Server::note(const Exchange &exchange, int status) {
  double now = monotonicTime();
  std::string path(exchange.request.path());
  double first =
      exchange.firstToken > 0 ? exchange.firstToken - exchange.started : 0;
  metrics.countRequest(path, status, now - exchange.started, first);
  // The first steps tell.
  if (std::string why = scheduler.whyNotPersistent();
      !why.empty() && !std::exchange(saidNotPersistent, true))
    log.note(kWithoutPersistent + why);
  if (options.quiet)
    return;
  noteUnknown(exchange.unknown);
  char date[32];
  std::time_t time = std::time(nullptr);
  std::tm parts;
  gmtime_r(&time, &parts);
  std::strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", &parts);
  char seconds[32];
  std::snprintf(seconds, sizeof(seconds), "%.3f", now - exchange.started);
  const std::string &method = exchange.request.method;
  std::string text = std::string(date) + " " + method + " " + path + " " +
                     std::to_string(status) + " " + seconds + "s";
  std::string object = std::string("{\"time\":\"") + date + "\",\"method\":";
  appendJsonString(object, method);
  object += ",\"path\":";
  appendJsonString(object, path);
  object += ",\"status\":" + std::to_string(status) + ",\"seconds\":" + seconds;
  auto add = [&](const char *word, const char *key, int64_t tokens) {
    text += std::string(" ") + word + "=" + std::to_string(tokens);
    object += std::string(",\"") + key + "\":" + std::to_string(tokens);
  };
  if (exchange.promptTokens > 0) {
    add("prompt", "prompt_tokens", exchange.promptTokens);
    add("cached", "cached_tokens", exchange.cachedTokens);
  }
  if (exchange.newTokens > 0)
    add("new", "new_tokens", exchange.newTokens);
  if (!exchange.finish.empty()) {
    text += " end=" + exchange.finish;
    object += ",\"finish_reason\":";
    appendJsonString(object, exchange.finish);
  }
  if (!exchange.note.empty()) {
    text += " note: " + exchange.note;
    object += ",\"note\":";
    appendJsonString(object, exchange.note);
  }
  load.clear();
  log.line(text, object + "}");
}

void Server::countRefused(int status) {
  Exchange exchange;
  exchange.started = monotonicTime();
  exchange.request.method = "-";
  exchange.request.target = "-";
  note(exchange, status);
}

//===----------------------------------------------------------------------===//
// Requests
//===----------------------------------------------------------------------===//

/// Compares in a time that does not tell how much is right.
static bool isSame(std::string_view a, std::string_view b) {
  size_t difference = a.size() ^ b.size();
  for (size_t i = 0; i < a.size(); ++i)
    difference |= static_cast<unsigned char>(a[i]) ^
                  static_cast<unsigned char>(i < b.size() ? b[i] : 0);
  return difference == 0;
}

bool Server::isAllowed(const HttpRequest &request) const {
  if (options.apiKeys.empty())
    return true;
  const std::string *given = request.find("authorization");
  static constexpr std::string_view scheme = "Bearer ";
  if (!given || std::string_view(*given).substr(0, scheme.size()) != scheme)
    return false;
  bool known = false;
  for (const std::string &key : options.apiKeys)
    known |= isSame(std::string_view(*given).substr(scheme.size()), key);
  return known;
}

/// A page of the web whose name leads to this machine (DNS rebinding) names
/// itself as the host.
bool Server::hasGoodHost(const HttpRequest &request) const {
  const std::string *given = request.find("host");
  if (!isLoopback || !given)
    return true;
  std::string_view host = *given;
  if (host.substr(0, 1) == "[")
    host = host.substr(0, host.find(']') + 1);
  else
    host = host.substr(0, host.find(':'));
  // Names have no case, and may end with the dot of the root.
  std::string name(host);
  if (!name.empty() && name.back() == '.')
    name.pop_back();
  auto is = [&](const char *other) {
    return strcasecmp(name.c_str(), other) == 0;
  };
  in_addr address; // all of 127.0.0.0/8 is this machine
  return is("localhost") || is("[::1]") || is(options.host.c_str()) ||
         (inet_pton(AF_INET, name.c_str(), &address) == 1 &&
          ntohl(address.s_addr) >> 24 == 127);
}

void Server::answer(Connection &connection, const HttpRequest &request,
                    int status, std::string_view type, std::string_view body,
                    std::string_view more) {
  connection.reply(status, type, body, more);
  // Probes come every few seconds: their names would fill the log.
  if (status < 400)
    return;
  Exchange exchange;
  exchange.started = monotonicTime();
  exchange.request.method = request.method.substr(0, 16);
  bool isKnown = Desk::handles(request.path());
  exchange.request.target = isKnown ? std::string(request.path()) : "-";
  note(exchange, status);
}

void Server::refuse(Connection &connection, const HttpRequest &request,
                    int status, std::string_view message,
                    std::string_view more) {
  answer(connection, request, status, json, formatError(status, message), more);
}

void Server::dispatch(Connection &connection, HttpRequest request) {
  if (!hasGoodHost(request))
    return refuse(connection, request, 403,
                  "the header 'host' names another host than this server's");
  if (request.method == "OPTIONS" && !origin.empty())
    return answer(connection, request, 204, "", "",
                  "Access-Control-Allow-Methods: GET, POST\r\n"
                  "Access-Control-Allow-Headers: Authorization, "
                  "Content-Type\r\nAccess-Control-Max-Age: 600\r\n");
  if (request.path() == "/" && options.webPage)
    return getPage(connection, request);
  bool isHealth = request.path() == "/health";
  if (!isHealth && !isAllowed(request))
    return refuse(connection, request, 401,
                  "expected a key of this server as 'Authorization: Bearer "
                  "KEY'",
                  "WWW-Authenticate: Bearer\r\n");
  if (!Desk::handles(request.path()))
    return get(connection, request);
  if (request.method != "POST")
    return refuse(connection, request, 405, "expected POST", "Allow: POST\r\n");
  // A form of a page of another origin cannot send this type unasked.
  const std::string *type = request.find("content-type");
  size_t length = std::strlen(json);
  bool isJson = type && strncasecmp(type->c_str(), json, length) == 0 &&
                std::strchr("; \t", type->c_str()[length]); // or the end
  if (!isJson)
    return refuse(connection, request, 415,
                  "expected 'Content-Type: application/json'");
  const std::string *coding = request.find("content-encoding");
  if (coding && strcasecmp(coding->c_str(), "identity") != 0)
    return refuse(connection, request, 415,
                  "compressed bodies are not read; send it without "
                  "'Content-Encoding'",
                  "Accept-Encoding: identity\r\n");
  queue(connection, std::move(request));
}

void Server::queue(Connection &connection, HttpRequest request) {
  if (numOpen >= options.slots + options.queue)
    return refuse(connection, request, 503,
                  "too many requests wait already; try again later",
                  "Retry-After: 1\r\n");
  ExchangePtr exchange(new Exchange());
  exchange->request = std::move(request);
  exchange->started = monotonicTime();
  exchange->deadline = exchange->started + options.timeout;
  ++numOpen;
  connection.wait(exchange);
  desk.submit(std::move(exchange));
}

std::string Server::formatModel(const std::string &id) const {
  std::string name, parent;
  appendJsonString(name, id);
  // As vLLM lists them.
  if (id != model.info->name) {
    parent = ",\"parent\":";
    appendJsonString(parent, model.info->name);
  }
  // As OpenRouter lists models that see.
  Error ignored;
  const char *input =
      canSee(*model.info, ignored) ? "[\"text\",\"image\"]" : "[\"text\"]";
  return "{\"id\":" + name +
         ",\"object\":\"model\",\"created\":" + std::to_string(model.created) +
         ",\"owned_by\":\"attune\",\"chat\":" +
         (model.chat ? "true" : "false") +
         ",\"context_length\":" + std::to_string(model.capacity) +
         ",\"architecture\":{\"input_modalities\":" + input +
         ",\"output_modalities\":[\"text\"]}" + parent + "}";
}

/// A part of an address, whose %XX are bytes (RFC 3986).
static std::string decodePart(std::string_view part) {
  std::string out;
  for (size_t i = 0; i < part.size(); ++i) {
    auto digit = [&](size_t at) {
      char c = at < part.size() ? part[at] : ' ';
      return c >= '0' && c <= '9'   ? c - '0'
             : c >= 'A' && c <= 'F' ? c - 'A' + 10
             : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                    : -1;
    };
    bool isByte = part[i] == '%' && digit(i + 1) >= 0 && digit(i + 2) >= 0;
    out +=
        isByte ? static_cast<char>(digit(i + 1) << 4 | digit(i + 2)) : part[i];
    i += isByte ? 2 : 0;
  }
  return out;
}

/// The model or adapter of "/v1/models/NAME"; empty: it is neither.
static std::string nameOfModel(std::string_view path, const ModelInfo &info) {
  static constexpr std::string_view start = "/v1/models/";
  if (path.substr(0, start.size()) != start)
    return "";
  std::string name = decodePart(path.substr(start.size()));
  bool known = name == info.name ||
               std::find(info.adapters.begin(), info.adapters.end(), name) !=
                   info.adapters.end();
  return known ? name : "";
}

/// The page asks for the key itself, so that everybody may see it.
void Server::getPage(Connection &connection, const HttpRequest &request) {
  if (request.method != "GET" && request.method != "HEAD")
    return refuse(connection, request, 405, "expected GET", "Allow: GET\r\n");
  answer(connection, request, 200, "text/html; charset=utf-8", webPage,
         "Content-Security-Policy: default-src 'none'; script-src "
         "'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; "
         "img-src data:; frame-ancestors 'none'\r\nX-Content-Type-Options: "
         "nosniff\r\n"
         "Referrer-Policy: no-referrer\r\n");
}

void Server::get(Connection &connection, const HttpRequest &request) {
  std::string_view path = request.path();
  static constexpr std::string_view models = "/v1/models";
  std::string type = json, body;
  if (path == "/health") {
    body = draining ? "{\"status\":\"stopping\"}" : "{\"status\":\"ok\"}";
  } else if (path == "/metrics") {
    type = "text/plain; version=0.0.4; charset=utf-8";
    body = metrics.format(scheduler, connections.size(), model.cutBytes.load());
  } else if (path == models) {
    body = "{\"object\":\"list\",\"data\":[" + formatModel(model.info->name);
    for (const std::string &adapter : model.info->adapters)
      body += "," + formatModel(adapter);
    body += "]}";
  } else if (std::string name = nameOfModel(path, *model.info); !name.empty()) {
    body = formatModel(name);
  } else {
    return refuse(connection, request, 404,
                  "there is nothing here; /v1/models, /v1/completions, "
                  "/v1/chat/completions, /v1/responses, /v1/embeddings, "
                  "/v1/rerank, /tokenize, "
                  "/detokenize, /health and /metrics are");
  }
  if (request.method != "GET" && request.method != "HEAD")
    return refuse(connection, request, 405, "expected GET", "Allow: GET\r\n");
  answer(connection, request, 200, type, body);
}

} // namespace attune::runtime

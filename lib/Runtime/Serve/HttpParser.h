//===- HttpParser.h - Requests of HTTP/1.1 ----------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads requests as RFC 9112 writes them, byte by byte as they come. It is
// strict: what two readers could take for two different requests is refused
// (bare line feeds, folded lines, a length beside chunks, two lengths).
// libevent's own reader (evhttp) is not used: it stops reading while a request
// is answered, so that a client that hangs up is not noticed.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_SERVE_HTTPPARSER_H
#define ATTUNE_LIB_RUNTIME_SERVE_HTTPPARSER_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace attune::runtime {

struct HttpRequest {
  std::string method;
  std::string target; ///< with the query
  bool isOld = false; ///< HTTP/1.0
  /// Names in lower case.
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;

  /// The value of a header, or null.
  const std::string *find(std::string_view name) const;
  /// The target up to its query.
  std::string_view path() const;
  /// Whether the connection may serve another request.
  bool keepsAlive() const;
};

struct HttpLimits {
  size_t head = 16384; ///< bytes of the request line and of all headers
  size_t headers = 100;
  size_t body = size_t(8) << 20;
};

class HttpParser {
public:
  explicit HttpParser(const HttpLimits &limits) : limits(limits) {}

  /// Reads on and returns how many bytes it took: all, unless the request ends
  /// before or is wrong.
  size_t feed(std::string_view bytes);
  bool isDone() const { return state == State::Done; }
  bool isFailed() const { return state == State::Failed; }
  /// Nothing of a request was read yet.
  bool isFresh() const { return state == State::RequestLine && line.empty(); }
  /// The client waits for leave to send its body (Expect: 100-continue).
  bool wantsContinue() const {
    return expects && state != State::Done && state != State::Failed &&
           received == 0;
  }
  /// Valid when isDone().
  HttpRequest &request() { return result; }
  /// The status to answer when isFailed(), and why.
  int status() const { return failure; }
  const std::string &problem() const { return why; }
  /// Begins with the next request.
  void reset();

private:
  enum class State : uint8_t {
    RequestLine,
    Headers,
    Body,
    ChunkSize,
    Chunk,
    ChunkEnd,
    Trailers,
    Done,
    Failed
  };

  void fail(int status, std::string problem);
  void takeLine();
  void takeRequestLine();
  void takeHeader();
  void takeChunkSize();
  void endHead();
  void addBody(std::string_view bytes);

  const HttpLimits limits;
  State state = State::RequestLine;
  HttpRequest result;
  std::string authority; ///< of the target; empty: it is a path
  std::string line;      ///< that has not ended yet
  size_t headBytes = 0;  ///< of this request, or of its trailers
  uint64_t left = 0;     ///< bytes of the body or of the chunk
  size_t received = 0;   ///< bytes of the body, as sent
  bool expects = false;
  int failure = 0;
  std::string why;
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_SERVE_HTTPPARSER_H

//===- HttpFuzzer.cpp - Requests of HTTP ----------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Fuzzing.h"

#include "Serve/HttpParser.h"

using namespace attune::runtime;

namespace {
/// What a connection made of its bytes.
struct Reading {
  std::string requests;
  int status = 0;
};
} // namespace

/// Feeds the bytes in pieces; their sizes come from `step`.
static Reading readAll(std::string_view bytes, size_t step) {
  HttpLimits limits;
  limits.head = 512;
  limits.headers = 8;
  limits.body = 256;
  HttpParser parser(limits);
  Reading reading;
  while (!bytes.empty()) {
    std::string_view piece = bytes.substr(0, step);
    size_t used = parser.feed(piece);
    FUZZ_REQUIRE(used <= piece.size());
    bytes.remove_prefix(used);
    if (parser.isFailed()) {
      FUZZ_REQUIRE(parser.status() >= 400 && parser.status() < 600);
      FUZZ_REQUIRE(!parser.problem().empty());
      reading.status = parser.status();
      return reading;
    }
    if (!parser.isDone()) {
      FUZZ_REQUIRE(used == piece.size());
      continue;
    }
    HttpRequest &request = parser.request();
    FUZZ_REQUIRE(request.body.size() <= limits.body);
    FUZZ_REQUIRE(request.headers.size() <= limits.headers);
    reading.requests += request.method + " " + request.target + "\n";
    for (const auto &[name, value] : request.headers)
      reading.requests += name + ": " + value + "\n";
    reading.requests += request.body + (request.keepsAlive() ? "\n+" : "\n-");
    parser.reset();
  }
  return reading;
}

/// How the bytes arrive does not change what they say.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view bytes = attune::fuzzing::asText(data, size);
  Reading whole = readAll(bytes, size + 1);
  for (size_t step : {1, 7}) {
    Reading pieces = readAll(bytes, step);
    FUZZ_REQUIRE(pieces.requests == whole.requests);
    FUZZ_REQUIRE(pieces.status == whole.status);
  }
  return 0;
}

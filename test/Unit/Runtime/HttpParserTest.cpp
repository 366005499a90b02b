//===- HttpParserTest.cpp - Requests of HTTP/1.1 --------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Serve/HttpParser.h"

#include "gtest/gtest.h"

#include <random>

using namespace attune::runtime;

namespace {

const std::string host = "Host: here\r\n";

/// Feeds a text in pieces of `step` bytes; what was not taken is left.
std::string feed(HttpParser &parser, std::string text, size_t step) {
  while (!text.empty() && !parser.isDone() && !parser.isFailed()) {
    size_t size = std::min(step, text.size());
    size_t used = parser.feed(std::string_view(text).substr(0, size));
    EXPECT_LE(used, size);
    text.erase(0, used);
    if (used < size)
      break;
  }
  return text;
}

int statusOf(const std::string &text, HttpLimits limits = {}) {
  int status = -1;
  for (size_t step : {size_t(1), size_t(7), text.size()}) {
    HttpParser parser(limits);
    feed(parser, text, step);
    int now = parser.isFailed() ? parser.status() : parser.isDone() ? 200 : 0;
    EXPECT_TRUE(status == -1 || status == now) << text;
    status = now;
    if (parser.isFailed())
      EXPECT_FALSE(parser.problem().empty());
  }
  return status;
}

TEST(HttpParser, ReadsRequestsAsTheyCome) {
  std::string first = "POST /a?b HTTP/1.1\r\n" + host +
                      "X-Name:  some value \r\nContent-Length: 5\r\n\r\nhello",
              second = "\r\nGET / HTTP/1.0\r\n\r\n";
  for (size_t step = 1; step < first.size(); ++step) {
    HttpParser parser{HttpLimits()};
    std::string left = feed(parser, first + second, step);
    ASSERT_TRUE(parser.isDone());
    HttpRequest &request = parser.request();
    EXPECT_EQ(request.method, "POST");
    EXPECT_EQ(request.path(), "/a");
    EXPECT_EQ(request.target, "/a?b");
    EXPECT_EQ(request.body, "hello");
    ASSERT_TRUE(request.find("x-name"));
    EXPECT_EQ(*request.find("x-name"), "some value");
    EXPECT_TRUE(request.keepsAlive());
    EXPECT_EQ(left, second);
    parser.reset();
    EXPECT_TRUE(parser.isFresh());
    EXPECT_EQ(feed(parser, left, step), "");
    ASSERT_TRUE(parser.isDone());
    EXPECT_TRUE(parser.request().isOld);
    EXPECT_FALSE(parser.request().keepsAlive());
    EXPECT_TRUE(parser.request().body.empty());
  }
}

/// A target with a host says which one is meant, and needless escapes are gone.
TEST(HttpParser, ReadsTargetsOfAllForms) {
  auto read = [](const std::string &target, const std::string &path,
                 const std::string &named) {
    HttpParser parser{HttpLimits()};
    feed(parser, "GET " + target + " HTTP/1.1\r\n" + host + "\r\n", 5);
    ASSERT_TRUE(parser.isDone()) << target;
    EXPECT_EQ(parser.request().path(), path) << target;
    EXPECT_EQ(*parser.request().find("host"), named) << target;
  };
  read("/v1/%63ompletions?a=%62", "/v1/completions", "here");
  read("/a%2Fb%zz%4", "/a%2Fb%zz%4", "here");
  read("http://there:80/health", "/health", "there:80");
  read("HTTP://there", "/", "there");
  read("http://there?a", "/", "there");
  for (const char *target : {"http://", "http:///a", "http://a@b/", "ftp://a/"})
    EXPECT_EQ(statusOf(std::string("GET ") + target + " HTTP/1.1\r\n" + host +
                       "\r\n"),
              400)
        << target;
}

TEST(HttpParser, ReadsChunks) {
  std::string text = "POST / HTTP/1.1\r\n" + host +
                     "Transfer-Encoding: Chunked\r\n\r\n"
                     "3\r\nabc\r\nA ; x=\"y\"\r\n0123456789\r\n"
                     "000\r\nTrailer: z\r\n\r\n";
  for (size_t step = 1; step < text.size(); ++step) {
    HttpParser parser{HttpLimits()};
    EXPECT_EQ(feed(parser, text + "next", step), "next");
    ASSERT_TRUE(parser.isDone());
    EXPECT_EQ(parser.request().body, "abc0123456789");
  }
}

TEST(HttpParser, KnowsWhenAClientWaits) {
  HttpParser parser{HttpLimits()};
  parser.feed("POST / HTTP/1.1\r\n" + host +
              "Expect: 100-Continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_TRUE(parser.wantsContinue());
  parser.feed("a");
  EXPECT_FALSE(parser.wantsContinue());
  parser.feed("b");
  EXPECT_TRUE(parser.isDone());
}

TEST(HttpParser, RefusesWhatHasTwoMeanings) {
  std::string get = "GET / HTTP/1.1\r\n", end = host + "\r\n";
  EXPECT_EQ(statusOf(get + end), 200);
  EXPECT_EQ(statusOf(get), 0);
  EXPECT_EQ(statusOf(get + "\r\n"), 400);
  EXPECT_EQ(statusOf(get + host + end), 400);
  EXPECT_EQ(statusOf("GET / HTTP/1.1\n" + end), 400);
  EXPECT_EQ(statusOf("GET  / HTTP/1.1\r\n" + end), 400);
  EXPECT_EQ(statusOf("GET / HTTP/1.2\r\n" + end), 505);
  EXPECT_EQ(statusOf("G(T / HTTP/1.1\r\n" + end), 400);
  EXPECT_EQ(statusOf("GET http://a@here/ HTTP/1.1\r\n" + end), 400);
  EXPECT_EQ(statusOf(get + "Name : value\r\n" + end), 400);
  EXPECT_EQ(statusOf(get + host + " folded\r\n\r\n"), 400);
  EXPECT_EQ(statusOf(get +
                     "Content-Length: 1\r\nTransfer-Encoding: chunked"
                     "\r\n" +
                     end),
            400);
  for (const char *length : {"+1", " ", "1,1", "0x1", "1 1"})
    EXPECT_EQ(statusOf(get + "Content-Length: " + length + "\r\n" + end), 400)
        << length;
  EXPECT_EQ(statusOf(get + std::string("A: b\0c\r\n", 8) + end), 400);
}

TEST(HttpParser, HoldsItsLimits) {
  HttpLimits limits;
  limits.head = 200;
  limits.headers = 4;
  limits.body = 10;
  std::string post = "POST / HTTP/1.1\r\n" + host;
  EXPECT_EQ(statusOf(post + "Content-Length: 10\r\n\r\n0123456789", limits),
            200);
  EXPECT_EQ(statusOf(post + "Content-Length: 11\r\n\r\n", limits), 413);
  EXPECT_EQ(
      statusOf(post + "Content-Length: 18446744073709551616\r\n\r\n", limits),
      413);
  std::string chunked = post + "Transfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(statusOf(chunked + "a\r\n0123456789\r\n0\r\n\r\n", limits), 200);
  EXPECT_EQ(statusOf(chunked + "a\r\n0123456789\r\n1\r\n", limits), 413);
  EXPECT_EQ(statusOf(chunked + "ffffffffffffffffff\r\n", limits), 413);
  EXPECT_EQ(statusOf(chunked + "1;" + std::string(300, 'x'), limits), 431);
  EXPECT_EQ(statusOf(post + "A: " + std::string(300, 'x'), limits), 431);
  EXPECT_EQ(statusOf(std::string(300, 'x'), limits), 431);
  EXPECT_EQ(statusOf(post + "A: b\r\nC: d\r\nE: f\r\nG: h\r\n\r\n", limits),
            431);
}

/// Whatever comes, a parser takes it to an end that does not depend on how it
/// was cut, and keeps no more than its limits allow.
TEST(HttpParser, TakesAnything) {
  std::mt19937 random(1);
  const std::string words[] = {"GET ",
                               "POST ",
                               "/",
                               " HTTP/1.1",
                               " HTTP/1.0",
                               "\r\n",
                               "\n",
                               "\r",
                               host,
                               "Content-Length: ",
                               "Transfer-Encoding: chunked\r\n",
                               "0",
                               "5",
                               "ff",
                               ";",
                               ":",
                               " ",
                               "\t",
                               std::string(1, '\0'),
                               "\xff",
                               "abc",
                               "99999",
                               "Expect: 100-continue\r\n",
                               "Connection: close\r\n"};
  HttpLimits limits;
  limits.head = 256;
  limits.body = 64;
  for (int round = 0; round < 20000; ++round) {
    std::string text = round % 2 ? "POST / HTTP/1.1\r\n" + host : "";
    for (size_t count = random() % 20; count > 0; --count)
      text += words[random() % std::size(words)];
    HttpParser whole(limits), parts(limits);
    std::string a = feed(whole, text, text.size()),
                b = feed(parts, text, 1 + random() % 5);
    ASSERT_EQ(whole.isDone(), parts.isDone()) << text;
    ASSERT_EQ(whole.status(), parts.status()) << text;
    if (whole.isDone()) {
      ASSERT_EQ(a, b) << text;
      ASSERT_EQ(whole.request().body, parts.request().body) << text;
      ASSERT_LE(whole.request().body.size(), limits.body) << text;
    }
  }
}

} // namespace

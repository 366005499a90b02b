//===- HttpParser.cpp - Requests of HTTP/1.1 ------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HttpParser.h"

#include <algorithm>

namespace attune::runtime {

static char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

static bool equalsIgnoringCase(std::string_view text, std::string_view word) {
  return std::equal(text.begin(), text.end(), word.begin(), word.end(),
                    [](char a, char b) { return lower(a) == b; });
}

/// Whether names of methods and headers may contain it.
static bool isTokenChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

static bool isToken(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), isTokenChar);
}

static std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t'))
    text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t'))
    text.remove_suffix(1);
  return text;
}

const std::string *HttpRequest::find(std::string_view name) const {
  for (const auto &[key, value] : headers)
    if (key == name)
      return &value;
  return nullptr;
}

std::string_view HttpRequest::path() const {
  return std::string_view(target).substr(0, target.find('?'));
}

bool HttpRequest::keepsAlive() const {
  if (isOld)
    return false;
  for (const auto &[name, value] : headers) {
    if (name != "connection")
      continue;
    std::string_view rest = value;
    while (!rest.empty()) {
      size_t comma = rest.find(',');
      if (equalsIgnoringCase(trim(rest.substr(0, comma)), "close"))
        return false;
      rest.remove_prefix(comma == std::string_view::npos ? rest.size()
                                                         : comma + 1);
    }
  }
  return true;
}

void HttpParser::reset() {
  state = State::RequestLine;
  result = HttpRequest();
  authority.clear();
  line.clear();
  headBytes = received = 0;
  left = 0;
  expects = false;
  failure = 0;
  why.clear();
}

void HttpParser::fail(int status, std::string problem) {
  state = State::Failed;
  failure = status;
  why = std::move(problem);
}

size_t HttpParser::feed(std::string_view bytes) {
  size_t used = 0;
  while (used < bytes.size() && state != State::Done &&
         state != State::Failed) {
    std::string_view rest = bytes.substr(used);
    if (state == State::Body || state == State::Chunk) {
      std::string_view part =
          rest.substr(0, std::min<uint64_t>(rest.size(), left));
      addBody(part);
      used += part.size();
      continue;
    }
    size_t end = rest.find('\n');
    std::string_view part = rest.substr(0, end); // all of it without an end
    used += part.size() + (end != std::string_view::npos);
    headBytes += part.size() + 1;
    if (headBytes > limits.head) {
      fail(431, "the request line and the headers take more than " +
                    std::to_string(limits.head) + " bytes");
      break;
    }
    line += part;
    if (end == std::string_view::npos) {
      --headBytes;
      break;
    }
    if (line.empty() || line.back() != '\r') {
      fail(400, "a line does not end in CR LF");
      break;
    }
    line.pop_back();
    takeLine();
    line.clear();
  }
  return used;
}

void HttpParser::takeLine() {
  switch (state) {
  case State::RequestLine:
    if (!line.empty()) // empty lines may come before a request
      takeRequestLine();
    break;
  case State::Headers:
    if (line.empty())
      endHead();
    else
      takeHeader();
    break;
  case State::ChunkSize:
    takeChunkSize();
    break;
  case State::ChunkEnd:
    if (line.empty())
      state = State::ChunkSize;
    else
      fail(400, "a chunk is longer than it says");
    break;
  default: // trailers say nothing that is of use here
    if (line.empty())
      state = State::Done;
    break;
  }
}

/// "%63" for a character that need not be written so is that character
/// (RFC 3986, 6.2.2.2).
static std::string unescapePath(std::string_view target) {
  auto digit = [](char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
  };
  size_t end = std::min(target.find('?'), target.size());
  std::string result;
  for (size_t i = 0; i < end; ++i) {
    int high = target[i] == '%' && i + 2 < end ? digit(target[i + 1]) : -1;
    int low = high >= 0 ? digit(target[i + 2]) : -1;
    auto c = static_cast<char>(16 * high + low);
    bool isFree = low >= 0 && ((lower(c) >= 'a' && lower(c) <= 'z') ||
                               (c >= '0' && c <= '9') || c == '-' || c == '.' ||
                               c == '_' || c == '~');
    result += isFree ? c : target[i];
    i += isFree ? 2 : 0;
  }
  return result + std::string(target.substr(end));
}

void HttpParser::takeRequestLine() {
  size_t first = line.find(' '), last = line.rfind(' ');
  if (first == std::string::npos || first == last)
    return fail(400, "the first line is not METHOD TARGET HTTP/1.1");
  std::string_view all = line;
  std::string_view version = all.substr(last + 1);
  std::string_view target = all.substr(first + 1, last - first - 1);
  if (!isToken(all.substr(0, first)))
    return fail(400, "the method is not a word");
  if (version.size() != 8 || version.substr(0, 5) != "HTTP/")
    return fail(400, "the first line does not end in a version of HTTP");
  if (version != "HTTP/1.1" && version != "HTTP/1.0")
    return fail(505, "only HTTP/1.1 and HTTP/1.0 are spoken here");
  // What a client sends that takes this for a proxy (RFC 9112, 3.2.2).
  for (std::string_view scheme : {"http://", "https://"})
    if (equalsIgnoringCase(target.substr(0, scheme.size()), scheme)) {
      target.remove_prefix(scheme.size());
      size_t end = std::min(target.find_first_of("/?"), target.size());
      authority = std::string(target.substr(0, end));
      target.remove_prefix(end);
      if (authority.empty() || authority.find('@') != std::string::npos)
        return fail(400, "the target names no host");
      break;
    }
  std::string path(target);
  if (!authority.empty() && (path.empty() || path[0] == '?'))
    path.insert(0, "/");
  bool good = !path.empty() && (path[0] == '/' || path == "*");
  for (char c : all)
    good &= c >= ' ' && c < 127;
  good &= path.find(' ') == std::string::npos;
  if (!good)
    return fail(400, "the target is not a path");
  result.method = line.substr(0, first);
  result.target = unescapePath(path);
  result.isOld = version == "HTTP/1.0";
  state = State::Headers;
}

void HttpParser::takeHeader() {
  size_t colon = line.find(':');
  if (colon == std::string::npos ||
      !isToken(std::string_view(line).substr(0, colon)))
    return fail(400, "a header is not NAME: VALUE");
  if (result.headers.size() == limits.headers)
    return fail(431,
                "more than " + std::to_string(limits.headers) + " headers");
  std::string name = line.substr(0, colon);
  std::transform(name.begin(), name.end(), name.begin(), lower);
  std::string value(trim(std::string_view(line).substr(colon + 1)));
  for (char c : value)
    if ((static_cast<unsigned char>(c) < ' ' && c != '\t') || c == 127)
      return fail(400, "the header '" + name + "' holds a control character");
  bool isAlone = name == "host" || name == "content-length" ||
                 name == "transfer-encoding" || name == "authorization" ||
                 name == "content-type";
  // The target says it better.
  if (name == "host" && !authority.empty())
    value = authority;
  if (isAlone && result.find(name))
    return fail(400, "the header '" + name + "' stands there twice");
  result.headers.emplace_back(std::move(name), std::move(value));
}

void HttpParser::endHead() {
  const std::string *length = result.find("content-length");
  const std::string *coding = result.find("transfer-encoding");
  const std::string *expect = result.find("expect");
  if (!result.isOld && !result.find("host"))
    return fail(400, "HTTP/1.1 asks for the header 'host'");
  if (!authority.empty() && !result.find("host"))
    result.headers.emplace_back("host", authority);
  if (expect && !result.isOld) {
    if (!equalsIgnoringCase(*expect, "100-continue"))
      return fail(417, "the header 'expect' knows only 100-continue");
    expects = true;
  }
  if (coding) {
    if (length || result.isOld)
      return fail(400, "the length of the body is said in two ways");
    if (!equalsIgnoringCase(*coding, "chunked"))
      return fail(501, "the only transfer coding is chunked");
    headBytes = 0;
    state = State::ChunkSize;
    return;
  }
  if (!length) {
    expects = false;
    state = State::Done;
    return;
  }
  for (char c : *length) {
    if (c < '0' || c > '9')
      return fail(400, "the header 'content-length' is not a number");
    left = left * 10 + static_cast<uint64_t>(c - '0');
    if (left > limits.body)
      return fail(413, "the body has more than " + std::to_string(limits.body) +
                           " bytes");
  }
  if (length->empty())
    return fail(400, "the header 'content-length' is not a number");
  state = left == 0 ? State::Done : State::Body;
}

void HttpParser::takeChunkSize() {
  headBytes = 0; // each line counts for itself, trailers together
  std::string_view digits = std::string_view(line).substr(0, line.find(';'));
  digits = trim(digits);
  uint64_t size = 0;
  for (char c : digits) {
    c = lower(c);
    bool isDigit = c >= '0' && c <= '9', isLetter = c >= 'a' && c <= 'f';
    if (!isDigit && !isLetter)
      return fail(400, "the size of a chunk is no hexadecimal number");
    size = size * 16 + static_cast<uint64_t>(isDigit ? c - '0' : c - 'a' + 10);
    if (size > limits.body)
      break;
  }
  if (digits.empty())
    return fail(400, "the size of a chunk is no hexadecimal number");
  if (size > limits.body - result.body.size())
    return fail(413, "the body has more than " + std::to_string(limits.body) +
                         " bytes");
  left = size;
  received += line.size();
  state = size == 0 ? State::Trailers : State::Chunk;
}

void HttpParser::addBody(std::string_view bytes) {
  result.body += bytes;
  received += bytes.size();
  left -= bytes.size();
  if (left > 0)
    return;
  state = state == State::Body ? State::Done : State::ChunkEnd;
}

} // namespace attune::runtime

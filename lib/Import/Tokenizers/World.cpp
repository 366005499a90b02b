//===- World.cpp - The vocabulary of RWKV's World models ------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TokenizerConfig.h"

#include "attune/Runtime/Utf8.h"

#include <algorithm>
#include <cstdint>
#include <set>

namespace attune {

/// A number of up to seven digits.
static bool readNumber(std::string_view text, uint32_t &number) {
  number = 0;
  if (text.empty() || text.size() > 7)
    return false;
  for (char c : text) {
    if (c < '0' || c > '9')
      return false;
    number = number * 10 + static_cast<uint32_t>(c - '0');
  }
  return true;
}

static int hexDigit(char c) {
  if (c >= '0' && c <= '9')
    return c - '0';
  if (c >= 'a' && c <= 'f')
    return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/// The bytes of a string as Python's repr() writes it: 'text', "text" or
/// b'bytes'.
static bool readLiteral(std::string_view text, std::string &bytes) {
  bytes.clear();
  bool raw = !text.empty() && text[0] == 'b';
  text.remove_prefix(raw ? 1 : 0);
  if (text.size() < 2 || (text[0] != '\'' && text[0] != '"') ||
      text.back() != text[0])
    return false;
  char quote = text[0];
  text = text.substr(1, text.size() - 2);
  for (size_t at = 0; at < text.size();) {
    char c = text[at++];
    if (c == quote)
      return false;
    if (c != '\\') {
      bytes += c;
      continue;
    }
    if (at == text.size())
      return false;
    c = text[at++];
    if (c == 'n' || c == 't' || c == 'r' || c == '\\' || c == '\'' ||
        c == '"') {
      bytes += c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
      continue;
    }
    size_t digits = c == 'x' ? 2 : raw ? 0 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (digits == 0 || text.size() - at < digits)
      return false;
    uint32_t code = 0;
    for (size_t end = at + digits; at < end; ++at) {
      int digit = hexDigit(text[at]);
      if (digit < 0)
        return false;
      code = code << 4 | static_cast<uint32_t>(digit);
    }
    if (raw)
      bytes += static_cast<char>(code);
    else if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
      return false;
    else
      runtime::appendUtf8(bytes, code);
  }
  return !bytes.empty();
}

/// "300 ' the' 4": false if the line is not that.
static bool readToken(std::string_view line, uint32_t &id, std::string &bytes) {
  size_t first = line.find(' '), last = line.rfind(' ');
  uint32_t length;
  return first != last && line.size() < 8192 &&
         readNumber(line.substr(0, first), id) && id < (1u << 22) &&
         readLiteral(line.substr(first + 1, last - first - 1), bytes) &&
         readNumber(line.substr(last + 1), length) && length == bytes.size();
}

/// The line at `at`, without its end; `at` becomes the start of the next.
static std::string_view nextLine(std::string_view text, size_t &at) {
  size_t end = std::min(text.find('\n', at), text.size());
  std::string_view line = text.substr(at, end - at);
  at = end + 1;
  if (!line.empty() && line.back() == '\r')
    line.remove_suffix(1);
  return line;
}

bool looksLikeWorld(std::string_view text) {
  size_t at = 0;
  uint32_t id;
  std::string bytes;
  return readToken(nextLine(text, at), id, bytes);
}

bool convertWorld(std::string_view text, std::string &json,
                  runtime::Error &error) {
  std::set<uint32_t> ids;
  std::set<std::string> tokens;
  std::string vocab, bytes;
  for (size_t at = 0, number = 1; at < text.size(); ++number) {
    std::string_view line = nextLine(text, at);
    uint32_t id;
    if (line.empty())
      continue;
    if (!readToken(line, id, bytes) || !ids.insert(id).second ||
        !tokens.insert(bytes).second)
      return error.badInput("line " + std::to_string(number) +
                            ": expected a new id, a new token in quotes and "
                            "how many bytes that has");
    vocab += vocab.empty() ? "" : ",";
    runtime::appendJsonString(vocab, spellBytes(bytes));
    vocab += ":" + std::to_string(id);
  }
  // The whole text is one word, in which the longest match goes first.
  json = "{\"version\":\"1.0\",\"added_tokens\":[],\"pre_tokenizer\":{\"type\":"
         "\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,"
         "\"use_regex\":false},\"decoder\":{\"type\":\"ByteLevel\"},"
         "\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"\","
         "\"continuing_subword_prefix\":\"\","
         "\"max_input_chars_per_word\":9007199254740991,\"vocab\":{" +
         vocab + "}}}";
  return true;
}

} // namespace attune

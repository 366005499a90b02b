//===- IRText.cpp - Guards before MLIR's parser ---------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Support/IRText.h"

namespace attune {

/// The end of the string that begins at `at`; a string ends with its line.
static size_t endOfString(std::string_view text, size_t at) {
  for (++at; at < text.size() && text[at] != '"' && text[at] != '\n'; ++at)
    at += text[at] == '\\';
  return at;
}

size_t findTooDeep(std::string_view text) {
  unsigned depth = 0, minuses = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    char c = text[at], next = at + 1 < text.size() ? text[at + 1] : '\0';
    if (c == '-' && next == '>') {
      ++at;
      minuses = 0;
      continue;
    }
    if (c == '-' && ++minuses > kMaxIRDepth)
      return at;
    if (c != '-' && c != ' ' && c != '\n' && c != '\t' && c != '\r')
      minuses = 0;
    switch (c) {
    case '"':
      at = endOfString(text, at);
      break;
    case '/':
      if (next == '/')
        while (at < text.size() && text[at] != '\n')
          ++at;
      break;
    case '(':
    case '[':
    case '{':
    case '<':
      if (++depth > kMaxIRDepth)
        return at;
      break;
    case '>':
      // ">=" compares in affine sets; "=>" is in no bracket's pair either.
      if (next == '=' || (at > 0 && text[at - 1] == '='))
        break;
      [[fallthrough]];
    case ')':
    case ']':
    case '}':
      depth -= depth > 0;
      break;
    default:
      break;
    }
  }
  return std::string_view::npos;
}

bool isBytecode(std::string_view text) {
  return text.substr(0, 4) == std::string_view("ML\xefR", 4);
}

} // namespace attune

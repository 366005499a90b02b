//===- Utf8.h - UTF-8 decoding and encoding ---------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_RUNTIME_UTF8_H
#define ATTUNE_RUNTIME_UTF8_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace attune::runtime {

/// Length in bytes of the well-formed sequence that `text` starts with (no
/// overlong forms, no surrogates, at most U+10FFFF), or 0. `codePoint` is set
/// when the result is not 0.
inline unsigned decodeUtf8(std::string_view text, uint32_t &codePoint) {
  auto at = [&](size_t i) -> uint32_t {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  auto tail = [&](size_t i) { return (at(i) & 0xC0) == 0x80; };
  uint32_t b = at(0);
  if (text.empty())
    return 0;
  if (b < 0x80) {
    codePoint = b;
    return 1;
  }
  if (b >= 0xC2 && b <= 0xDF && tail(1)) {
    codePoint = (b & 0x1F) << 6 | (at(1) & 0x3F);
    return 2;
  }
  if ((b & 0xF0) == 0xE0 && tail(1) && tail(2)) {
    uint32_t c = (b & 0x0F) << 12 | (at(1) & 0x3F) << 6 | (at(2) & 0x3F);
    if (c < 0x800 || (c >= 0xD800 && c <= 0xDFFF))
      return 0;
    codePoint = c;
    return 3;
  }
  if (b >= 0xF0 && b <= 0xF4 && tail(1) && tail(2) && tail(3)) {
    uint32_t c = (b & 0x07) << 18 | (at(1) & 0x3F) << 12 | (at(2) & 0x3F) << 6 |
                 (at(3) & 0x3F);
    if (c < 0x10000 || c > 0x10FFFF)
      return 0;
    codePoint = c;
    return 4;
  }
  return 0;
}

/// Appends the UTF-8 form of a code point.
inline void appendUtf8(std::string &out, uint32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0 | c >> 6);
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0 | c >> 12);
    out += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | c >> 18);
    out += static_cast<char>(0x80 | (c >> 12 & 0x3F));
    out += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  }
}

/// Length of the longest prefix of `text` that ends on a character boundary:
/// everything but a sequence at the end that more bytes could still complete.
inline size_t completeUtf8Prefix(std::string_view text) {
  size_t n = text.size();
  for (size_t back = 1; back <= 3 && back <= n; ++back) {
    unsigned char b = static_cast<unsigned char>(text[n - back]);
    if ((b & 0xC0) == 0x80)
      continue;
    size_t want = b >= 0xF0 ? 4 : b >= 0xE0 ? 3 : b >= 0xC0 ? 2 : 1;
    return want > back ? n - back : n;
  }
  return n;
}

/// `text` with every byte that is not part of well-formed UTF-8 replaced by
/// U+FFFD.
std::string sanitizeUtf8(std::string_view text);

} // namespace attune::runtime

#endif // ATTUNE_RUNTIME_UTF8_H

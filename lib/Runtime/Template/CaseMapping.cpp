//===- CaseMapping.cpp - Upper and lower case of all characters -----------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Text.h"

#include "attune/Runtime/Utf8.h"

#include <algorithm>
#include <iterator>

namespace attune::runtime::jinja {

namespace {
struct CodeRange {
  uint32_t first, last;
};
/// Every `stride`th character moves by `delta`.
struct CaseRun {
  uint32_t first, last, stride;
  int32_t delta;
};
struct CaseSpecial {
  uint32_t code;
  const char *to;
};
#include "CaseTables.inc"
} // namespace

template <typename Row, size_t count>
static const Row *findRange(const Row (&rows)[count], uint32_t c) {
  const Row *row = std::lower_bound(
      std::begin(rows), std::end(rows), c,
      [](const Row &row, uint32_t code) { return row.last < code; });
  return row != std::end(rows) && row->first <= c ? row : nullptr;
}

bool isIn(CharacterClass what, uint32_t c) {
  switch (what) {
  case CharacterClass::Cased:
    return findRange(casedClass, c) != nullptr;
  case CharacterClass::Alpha:
    return findRange(alphaClass, c) != nullptr;
  case CharacterClass::Printable:
    return findRange(printableClass, c) != nullptr;
  }
  return false;
}

template <size_t runs, size_t specials>
static void appendCase(std::string &out, uint32_t c,
                       const CaseRun (&table)[runs],
                       const CaseSpecial (&special)[specials]) {
  for (const CaseSpecial &row : special)
    if (row.code == c) {
      out += row.to;
      return;
    }
  // Two runs with gaps may lie between each other.
  for (const CaseRun &run : table) {
    if (run.first > c)
      break;
    if (c <= run.last && (c - run.first) % run.stride == 0) {
      appendUtf8(out,
                 static_cast<uint32_t>(static_cast<int32_t>(c) + run.delta));
      return;
    }
  }
  appendUtf8(out, c);
}

static void appendUpper(std::string &out, uint32_t c) {
  if (c < 0x80)
    out += static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
  else
    appendCase(out, c, upperRuns, upperSpecial);
}

static void appendTitle(std::string &out, uint32_t c) {
  if (c < 0x80)
    appendUpper(out, c);
  else
    appendCase(out, c, titleRuns, titleSpecial);
}

/// A sigma that ends a word has a form of its own.
static void appendLower(std::string &out, uint32_t c, bool casedBefore,
                        std::string_view rest) {
  uint32_t next = 0;
  if (c < 0x80)
    out += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  else if (c == 0x3A3)
    appendUtf8(out, casedBefore && !(decodeUtf8(rest, next) &&
                                     isIn(CharacterClass::Cased, next))
                        ? 0x3C2
                        : 0x3C3);
  else
    appendCase(out, c, lowerRuns, lowerSpecial);
}

/// Whether a cased character has a lower case of its own.
bool isUpper(uint32_t c) {
  std::string same, lower;
  appendUtf8(same, c);
  appendLower(lower, c, false, {});
  return lower != same;
}

/// Calls `use(code, whether a cased character is before it, the rest)`.
template <typename Use>
static std::string mapCharacters(std::string_view text, const Use &use) {
  std::string out;
  out.reserve(text.size());
  bool casedBefore = false;
  while (!text.empty()) {
    uint32_t c;
    unsigned n = decodeUtf8(text, c);
    if (!n) {
      out += text[0];
      text.remove_prefix(1);
      continue;
    }
    text.remove_prefix(n);
    use(out, c, casedBefore, text);
    casedBefore = isIn(CharacterClass::Cased, c);
  }
  return out;
}

std::string toUpper(std::string_view text) {
  return mapCharacters(text, [](std::string &out, uint32_t c, bool,
                                std::string_view) { appendUpper(out, c); });
}

std::string toLower(std::string_view text) {
  return mapCharacters(
      text, [](std::string &out, uint32_t c, bool before,
               std::string_view rest) { appendLower(out, c, before, rest); });
}

std::string toTitle(std::string_view text) {
  return mapCharacters(text, [](std::string &out, uint32_t c, bool before,
                                std::string_view rest) {
    if (before)
      appendLower(out, c, before, rest);
    else
      appendTitle(out, c);
  });
}

std::string capitalize(std::string_view text) {
  bool first = true;
  return mapCharacters(text, [&](std::string &out, uint32_t c, bool before,
                                 std::string_view rest) {
    if (first)
      appendTitle(out, c);
    else
      appendLower(out, c, before, rest);
    first = false;
  });
}

std::string swapCase(std::string_view text) {
  return mapCharacters(text, [](std::string &out, uint32_t c, bool before,
                                std::string_view rest) {
    if (isUpper(c))
      appendLower(out, c, before, rest);
    else
      appendUpper(out, c);
  });
}

} // namespace attune::runtime::jinja

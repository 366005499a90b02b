//===- AddedTokens.cpp - Tokens that are cut out of the text --------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AddedTokens.h"

#include <algorithm>

namespace attune::runtime {

void AddedTokenMatcher::set(std::vector<const AddedToken *> chosen) {
  tokens = std::move(chosen);
  std::sort(tokens.begin(), tokens.end(),
            [](const AddedToken *a, const AddedToken *b) {
              return a->pattern < b->pattern;
            });
  size_t at = 0;
  for (unsigned byte = 0; byte <= 256; ++byte) {
    while (at < tokens.size() &&
           static_cast<unsigned char>(tokens[at]->pattern[0]) < byte)
      ++at;
    starts[byte] = static_cast<uint32_t>(at);
  }
}

/// Each byte narrows the sorted tokens down to those that agree so far.
const AddedToken *AddedTokenMatcher::longestAt(std::string_view text,
                                               size_t at) const {
  unsigned char first = static_cast<unsigned char>(text[at]);
  auto begin = tokens.begin() + starts[first],
       end = tokens.begin() + starts[first + 1];
  const AddedToken *longest = nullptr;
  for (size_t depth = 1; begin != end; ++depth) {
    if ((*begin)->pattern.size() == depth) {
      longest = *begin++;
      // If several tokens look for the same text the last one counts.
      while (begin != end && (*begin)->pattern.size() == depth)
        longest = *begin++;
    }
    if (at + depth >= text.size())
      break;
    unsigned char byte = static_cast<unsigned char>(text[at + depth]);
    auto byteOf = [&](const AddedToken *token) {
      return static_cast<unsigned char>(token->pattern[depth]);
    };
    begin = std::partition_point(begin, end, [&](const AddedToken *token) {
      return byteOf(token) < byte;
    });
    end = std::partition_point(begin, end, [&](const AddedToken *token) {
      return byteOf(token) == byte;
    });
  }
  return longest;
}

/// Words here may hold the joiners U+200C and U+200D.
static bool isWord(const Unicode &unicode, uint32_t c) {
  return c == 0x200C || c == 0x200D || unicode.isWord(c);
}

bool AddedTokenMatcher::isWordBefore(std::string_view text, size_t at) const {
  uint32_t c;
  if (at == 0)
    return false;
  decodeCharacter(text, previousCharacter(text, at), c);
  return isWord(unicode, c);
}

bool AddedTokenMatcher::isWordAt(std::string_view text, size_t at) const {
  uint32_t c;
  if (at >= text.size())
    return false;
  decodeCharacter(text, at, c);
  return isWord(unicode, c);
}

void AddedTokenMatcher::split(std::string_view text, bool special,
                              std::vector<Span> &spans) const {
  spans.clear();
  size_t done = 0;
  for (size_t at = 0; at < text.size() && !tokens.empty();) {
    unsigned char byte = static_cast<unsigned char>(text[at]);
    const AddedToken *token = nullptr;
    if (starts[byte] != starts[byte + 1])
      token = longestAt(text, at);
    if (!token) {
      ++at;
      continue;
    }
    size_t begin = at, end = at + token->pattern.size();
    at = end;
    if (token->special && !special)
      continue;
    if (token->singleWord && (isWordBefore(text, begin) || isWordAt(text, end)))
      continue;
    uint32_t c;
    while (token->stripLeft && begin > done) {
      size_t before = previousCharacter(text, begin);
      decodeCharacter(text, before, c);
      if (!Unicode::isSpace(c))
        break;
      begin = before;
    }
    while (token->stripRight && end < text.size()) {
      unsigned length = decodeCharacter(text, end, c);
      if (!Unicode::isSpace(c))
        break;
      end += length;
    }
    if (done < begin)
      spans.push_back({done, begin, nullptr});
    spans.push_back({begin, end, token});
    done = end;
  }
  if (done < text.size())
    spans.push_back({done, text.size(), nullptr});
}

} // namespace attune::runtime

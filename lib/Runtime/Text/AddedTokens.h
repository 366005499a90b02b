//===- AddedTokens.h - Tokens that are cut out of the text ------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_TEXT_ADDEDTOKENS_H
#define ATTUNE_LIB_RUNTIME_TEXT_ADDEDTOKENS_H

#include "Unicode.h"

#include <string>
#include <string_view>
#include <vector>

namespace attune::runtime {

struct AddedToken {
  std::string text;    ///< as the file has it
  std::string pattern; ///< what is looked for: `text`, normalized if it asks
  uint32_t id = 0;
  bool special = false, stripLeft = false, stripRight = false,
       singleWord = false, normalized = false;

  /// All of these in one number.
  uint32_t flags() const {
    return uint32_t(special) | uint32_t(stripLeft) << 1 |
           uint32_t(stripRight) << 2 | uint32_t(singleWord) << 3 |
           uint32_t(normalized) << 4;
  }
  void takeFlags(uint32_t flags) {
    special = flags & 1;
    stripLeft = flags & 2;
    stripRight = flags & 4;
    singleWord = flags & 8;
    normalized = flags & 16;
  }
};

/// Finds the longest token at the leftmost place, again and again.
class AddedTokenMatcher {
public:
  /// A stretch of text; `token` is null between tokens.
  struct Span {
    size_t begin, end;
    const AddedToken *token;
  };

  explicit AddedTokenMatcher(const Unicode &unicode) : unicode(unicode) {}
  /// The tokens must outlive this.
  void set(std::vector<const AddedToken *> chosen);
  bool empty() const { return tokens.empty(); }
  /// Special tokens are passed over unless `special` is set.
  void split(std::string_view text, bool special,
             std::vector<Span> &spans) const;

private:
  const Unicode &unicode;
  std::vector<const AddedToken *> tokens; ///< by pattern
  /// For a first byte, the tokens from one place to another.
  uint32_t starts[257] = {};

  const AddedToken *longestAt(std::string_view text, size_t at) const;
  bool isWordBefore(std::string_view text, size_t at) const;
  bool isWordAt(std::string_view text, size_t at) const;
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_TEXT_ADDEDTOKENS_H

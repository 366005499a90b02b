//===- Regex.h - Patterns of tokenizers -------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The regular expressions of "Split" and "Replace", with the syntax and meaning
// of Oniguruma, which the reference uses: alternation takes the first branch
// that matches, `^` and `$` are ends of lines, classes nest and intersect.
// Back references, conditionals and recursion are errors.
//
// Matching backtracks. Its steps are counted, so that a pattern made to be slow
// ends in an error instead of in hours.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_TEXT_REGEX_H
#define ATTUNE_LIB_RUNTIME_TEXT_REGEX_H

#include "Unicode.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attune::runtime {

/// What is wrong with a pattern, with the byte of it where there is one.
struct RegexProblem {
  std::string message;
  bool unsupported = false; ///< a pattern, but not one that is read here

  /// The first one counts.
  bool set(std::string text, bool isUnsupported = false) {
    if (message.empty()) {
      message = std::move(text);
      unsupported = isUnsupported;
    }
    return false;
  }
};

class Regex {
public:
  bool compile(std::string_view pattern, const Unicode &unicode,
               RegexProblem &problem);
  /// A pattern that is this text alone.
  void compileLiteral(std::string_view text);

  struct Match {
    size_t begin, end;
  };
  /// All matches from left to right. An empty one right behind another does
  /// not count. Takes from `steps` what it needs; false if that is not enough.
  bool findAll(std::string_view text, std::vector<Match> &matches,
               size_t &steps) const;
  /// What is enough for any published pattern on a text of `size` bytes.
  static size_t stepsFor(size_t size) { return (size_t(1) << 25) + 512 * size; }

  enum class Op : uint8_t {
    Literal,  ///< bytes `a` to `b` of `literals`
    Set,      ///< a character of set `a`
    SetLoop,  ///< `low` to `high` characters of set `a`
    Fork,     ///< goes on here + 1, or at `a`; the first only if the next
              ///< byte is in firsts `b`
    ForkLazy, ///< goes on at `a`, or here + 1
    Jump,     ///< goes on at `a`
    Mark,     ///< register `a` is the place
    Progress, ///< fails unless the place has moved since mark `a`
    Look,     ///< the part up to `a` matches from here (`low` & 1: it does
              ///< not); `b` characters back if `low` & 2
    Atomic,   ///< the part up to `a` matches, once
    LineStart,
    LineEnd,
    TextStart,
    TextEnd,
    TextEndLine, ///< the end, or before a line end there
    WordEdge,
    NoWordEdge,
    Done
  };
  enum class Greed : uint8_t { Greedy, Lazy, Possessive };
  struct Instruction {
    Op op;
    Greed greed = Greed::Greedy;
    uint32_t a = 0, b = 0, low = 0, high = 0;
  };
  struct Set {
    bool ascii[128];
    CharacterRanges ranges; ///< from 128 on
    bool malformed;         ///< bytes that are not UTF-8, too
    bool has(uint32_t c) const {
      return c < 128              ? ascii[c]
             : c >= malformedByte ? malformed
                                  : contains(ranges, c);
    }
  };
  /// Bytes that a match can start with.
  struct Firsts {
    bool at[256];
    bool atEnd; ///< it may be empty
  };

private:
  friend class RegexCompiler;
  friend class RegexMatcher;
  std::vector<Instruction> program;
  std::vector<Set> sets;
  std::vector<Firsts> firsts; ///< number 0 is the whole pattern's
  std::string literals;
  uint32_t registers = 0;
  const Unicode *unicode = nullptr;
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_TEXT_REGEX_H

//===- Pattern.h - Regular expressions as grammars --------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_GRAMMAR_PATTERN_H
#define ATTUNE_LIB_RUNTIME_GRAMMAR_PATTERN_H

#include "Grammar.h"

#include <string>
#include <string_view>

namespace attune::runtime {

/// Appends what a regular expression matches: alternatives, groups, classes,
/// the repetitions * + ? {m,n}, and the escapes \d \w \s and their opposites
/// (of ASCII), \n \r \t \f \v \xHH \uHHHH. Look-around, back references and
/// anchors other than ^ at the beginning and $ at the end are refused. The
/// whole text has to match, unless `isSearch` is set: then, where an anchor is
/// missing, anything may stand. `inString`: characters are those of a string of
/// JSON, which are written with escapes where they must be.
bool appendPattern(Grammar &grammar, Grammar::Sequence &to,
                   std::string_view pattern, bool isSearch, bool inString,
                   std::string &problem);

/// One character of these ranges; in a string of JSON with its escapes.
void appendCharacters(Grammar &grammar, Grammar::Sequence &to,
                      const std::vector<CodeRange> &ranges, bool inString);

/// Reads a class behind its '[', up to and with the ']'.
bool readClass(std::string_view text, size_t &at,
               std::vector<CodeRange> &ranges, std::string &problem);

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_GRAMMAR_PATTERN_H

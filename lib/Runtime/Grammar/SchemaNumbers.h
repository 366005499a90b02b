//===- SchemaNumbers.h - Bounds of numbers as patterns ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_GRAMMAR_SCHEMANUMBERS_H
#define ATTUNE_LIB_RUNTIME_GRAMMAR_SCHEMANUMBERS_H

#include "Grammar.h"

#include "attune/Runtime/Json.h"

#include <string>

namespace attune::runtime {

/// What a schema says of the size of its numbers. Whole numbers alone are
/// bounds; at most 15 digits, as all whole numbers of a text.
struct NumberBounds {
  static constexpr int64_t most = 999999999999999;
  int64_t least = -most, greatest = most;
  bool isAboveLeast = false, isBelowGreatest = false; ///< not the bound itself
  int64_t multipleOf = 1;
  bool hasBounds = false;

  /// Reads minimum, maximum, their exclusive forms and multipleOf. False:
  /// `keyword` has a value that is not supported, for the reason `why`.
  bool read(const JsonValue &schema, bool isInteger, std::string &keyword,
            std::string &why);
};

/// A pattern of the numbers within bounds, one for each value but for zeros at
/// the end of a fraction; empty: there are none.
std::string describeNumbers(const NumberBounds &bounds, bool isInteger);

/// Adds the multiples of `divisor` to a rule, whole numbers of any sign.
void addMultiples(Grammar &grammar, Grammar::Rule rule, int64_t divisor);

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_GRAMMAR_SCHEMANUMBERS_H

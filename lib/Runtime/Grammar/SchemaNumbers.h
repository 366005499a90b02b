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

/// What a schema says of the size of its numbers; at most 15 digits before the
/// point, as all whole numbers of a text.
struct NumberBounds {
  struct Bound {
    double value;
    bool isOpen; ///< not the bound itself
  };
  static constexpr double most = 999999999999999;
  Bound least = {-most, false}, greatest = {most, false};
  bool hasBounds = false;
  /// Multiples of divisor / 10^decimals.
  int64_t divisor = 1;
  unsigned decimals = 0;
  bool hasDivisor = false;

  /// Reads minimum, maximum, their exclusive forms and multipleOf. False:
  /// `keyword` has a value that is not supported, for the reason `why`.
  bool read(const JsonValue &schema, bool isInteger, std::string &keyword,
            std::string &why);
};

/// A pattern of the numbers within bounds, one for each value but for zeros at
/// the end of a fraction; empty: there are none.
std::string describeNumbers(const NumberBounds &bounds, bool isInteger);

/// Adds the multiples of the divisor to a rule, of any sign and size.
void addMultiples(Grammar &grammar, Grammar::Rule rule,
                  const NumberBounds &bounds);

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_GRAMMAR_SCHEMANUMBERS_H

//===- LowRankRules.h - Which matrix gets which rank ------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_TRANSFORMS_LOWRANKRULES_H
#define ATTUNE_TRANSFORMS_LOWRANKRULES_H

#include "attune/Transforms/NameRules.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>
#include <vector>

namespace attune {

/// The rank of a matrix: given, or the least that an error allows.
struct RankBound {
  int64_t rank = 0; ///< 0: not given
  double error = 0; ///< relative to the matrix, both as roots of sums of
                    ///< squares; 0: not given

  bool isNone() const { return rank == 0 && error == 0; }
  bool operator==(const RankBound &other) const {
    return rank == other.rank && error == other.error;
  }
};

/// The words of `--low-rank`, separated by commas: `PATTERN:RANK`,
/// `PATTERN:ERROR%` or `PATTERN:none`. The first pattern that matches a name
/// decides. `none` alone: no matrix.
class LowRankRules {
public:
  /// Nothing, with a `problem`, if a word is none of these.
  static std::optional<LowRankRules> parse(llvm::ArrayRef<std::string> words,
                                           std::string &problem);
  static std::optional<LowRankRules> parse(llvm::StringRef text,
                                           std::string &problem);

  /// The bound of a weight that goes by `names`. A pattern may leave out the
  /// end `.weight` of a name.
  RankBound lookup(llvm::ArrayRef<std::string> names);
  /// The patterns that matched nothing so far.
  std::vector<std::string> unused() const { return rules.unused(); }
  /// Whether a rank depends on the weights' values.
  bool needsValues() const;
  /// Whether it is about any matrix.
  bool isNone() const { return rules.empty(); }
  /// Their words, in order.
  const std::vector<std::string> &words() const { return text; }

private:
  NameRules<RankBound> rules;
  std::vector<std::string> text;
};

} // namespace attune

#endif // ATTUNE_TRANSFORMS_LOWRANKRULES_H

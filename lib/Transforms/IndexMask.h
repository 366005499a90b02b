//===- IndexMask.h - Masks that compare indices -----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_TRANSFORMS_INDEXMASK_H
#define ATTUNE_LIB_TRANSFORMS_INDEXMASK_H

#include "AttentionProducts.h"
#include "ScoreExpr.h"

#include <map>

namespace attune {

/// A sum of sizes with integer factors, and a constant.
struct LinearSize {
  int64_t constant = 0;
  /// By tensor and dimension, or by an integer (dimension -1).
  std::map<std::pair<const void *, int64_t>, int64_t> terms;

  void add(const LinearSize &other, int64_t factor = 1);
  bool isConstant() const { return terms.empty(); }
  bool operator==(const LinearSize &other) const {
    return constant == other.constant && terms == other.terms;
  }
};

/// How many queries and keys there are, whatever names the sizes have.
class ScoreSizes {
public:
  ScoreSizes(const Weighing &weighing, const ScoreProduct &product);

  /// An integer outside of the formulas.
  LinearSize sizeOf(mlir::Value integer) const;

  LinearSize queries, keys;

private:
  LinearSize
  equate(llvm::ArrayRef<std::pair<const LabelledTensor *, unsigned>> places);

  std::map<std::pair<const void *, int64_t>, LinearSize> names;
};

/// The keys that a condition on scores lets a query see, as attention spells
/// it.
struct VisibleKeys {
  CausalAlign causal = CausalAlign::None;
  std::optional<int64_t> window;
  /// An element of an i1 tensor that must hold, too, or must not.
  const ScoreExpr *mask = nullptr;
  bool maskHides = false;
  /// Each query is known to see a key, whatever the sizes at run time.
  bool everyRowSees = false;
};

/// Reads the condition under which a score is seen (`hidden`: is not seen), or
/// says why attention has no word for it.
MatchFailure readVisibleKeys(const ScoreExpr *condition, bool hidden,
                             const ScoreReader &reader, const ScoreSizes &sizes,
                             unsigned query, unsigned key,
                             VisibleKeys &visible);

} // namespace attune

#endif // ATTUNE_LIB_TRANSFORMS_INDEXMASK_H

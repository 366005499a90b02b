//===- HeadRules.h - Which heads go -----------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_TRANSFORMS_HEADRULES_H
#define ATTUNE_TRANSFORMS_HEADRULES_H

#include "attune/Transforms/NameRules.h"

#include <cstdint>
#include <optional>

namespace attune {

/// The heads that `--prune-heads` and the rules of `attune-prune-heads` name:
/// by patterns of names, `PATTERN:N,N-M,...`, with commas between patterns, of
/// which the first that matches decides; or `N%`, a share of all; or `none`.
class HeadRules {
public:
  using Heads = std::vector<int64_t>;

  /// Nothing, with a `problem`, if the text is none of these.
  static std::optional<HeadRules> parse(llvm::StringRef text,
                                        std::string &problem);

  /// The heads that go, ascending, of an attention with one of these names.
  Heads lookup(llvm::ArrayRef<std::string> names);
  /// The patterns that matched nothing so far.
  std::vector<std::string> unused() const { return rules.unused(); }
  /// The share of all heads that is to go; measurements say which.
  std::optional<double> getShare() const { return share; }
  bool isNone() const { return rules.empty() && !share; }

private:
  NameRules<Heads> rules;
  std::optional<double> share;
};

/// Heads of queries and of keys that stay in an attention.
struct KeptHeads {
  HeadRules::Heads queries, keys;
};

/// The heads that are left of `heads` heads without `gone`, ascending; equally
/// many heads share each of the `keyHeads` of keys. Keys go with the last head
/// that shares them; all others have to keep equally many. Nothing, with a
/// `problem`, if they do not, if none stays, or if there is no such head.
std::optional<KeptHeads> keepHeads(int64_t heads, int64_t keyHeads,
                                   llvm::ArrayRef<int64_t> gone,
                                   std::string &problem);

} // namespace attune

#endif // ATTUNE_TRANSFORMS_HEADRULES_H

//===- HeadRules.cpp - Which heads go ---------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Transforms/HeadRules.h"

#include <algorithm>

using namespace llvm;

namespace attune {

/// Adds `N` or the numbers of `N-M`; false if the word is neither.
static bool addHeads(StringRef word, HeadRules::Heads &heads) {
  constexpr int64_t most = 1 << 16;
  auto [first, last] = word.split('-');
  int64_t begin = 0, end = 0;
  if (first.getAsInteger(10, begin) || begin < 0 || begin >= most)
    return false;
  end = begin;
  if (word.contains('-') &&
      (last.getAsInteger(10, end) || end < begin || end >= most))
    return false;
  for (int64_t head = begin; head <= end; ++head)
    if (!is_contained(heads, head))
      heads.push_back(head);
  return true;
}

std::optional<HeadRules> HeadRules::parse(StringRef text,
                                          std::string &problem) {
  HeadRules result;
  if (text == "none")
    return result;
  auto fail = [&](StringRef word) {
    problem = "'" + word.str() +
              "' of --prune-heads is no PATTERN:HEADS, such as "
              "'layers.3.attention:0,4' or '*.attention:0-3', and no share of "
              "all heads, such as 40%";
    return std::nullopt;
  };
  if (StringRef number = text; number.consume_back("%")) {
    double share = 0;
    if (number.getAsDouble(share) || !(share > 0) || !(share < 100))
      return fail(text);
    result.share = share / 100;
    return result;
  }
  std::string pattern;
  Heads heads;
  auto finish = [&] {
    llvm::sort(heads);
    return pattern.empty() ||
           result.rules.add(pattern, heads, "--prune-heads", problem);
  };
  for (const std::string &word : splitWords(text)) {
    StringRef numbers = word;
    if (numbers.contains(':')) {
      if (!finish())
        return std::nullopt;
      auto [name, rest] = numbers.rsplit(':');
      if (name.empty())
        return fail(word);
      pattern = name.str();
      heads.clear();
      numbers = rest;
    }
    if (pattern.empty() || !addHeads(numbers, heads))
      return fail(word);
  }
  if (!finish())
    return std::nullopt;
  return result;
}

HeadRules::Heads HeadRules::lookup(ArrayRef<std::string> names) {
  const Heads *heads = rules.lookup(names);
  return heads ? *heads : Heads();
}

std::optional<KeptHeads> keepHeads(int64_t heads, int64_t keyHeads,
                                   ArrayRef<int64_t> gone,
                                   std::string &problem) {
  if (!gone.empty() && gone.back() >= heads) {
    problem = "there is no head " + std::to_string(gone.back()) +
              ": it has heads 0 to " + std::to_string(heads - 1);
    return std::nullopt;
  }
  int64_t group = heads / keyHeads;
  KeptHeads kept;
  std::optional<int64_t> each; // heads that a group keeps
  for (int64_t key = 0; key < keyHeads; ++key) {
    size_t before = kept.queries.size();
    for (int64_t head = key * group; head < (key + 1) * group; ++head)
      if (!is_contained(gone, head))
        kept.queries.push_back(head);
    auto left = int64_t(kept.queries.size() - before);
    if (left == 0)
      continue;
    if (each && *each != left) {
      problem = "it has " + std::to_string(keyHeads) + " heads of keys for " +
                std::to_string(group) +
                " heads of queries each, and of one group " +
                std::to_string(*each) + " would stay, of another " +
                std::to_string(left) +
                ": prune whole groups, or equally many heads of each group "
                "that stays";
      return std::nullopt;
    }
    each = left;
    kept.keys.push_back(key);
  }
  if (kept.queries.empty()) {
    problem = "it would lose all of its " + std::to_string(heads) +
              " heads; one has to stay";
    return std::nullopt;
  }
  return kept;
}

} // namespace attune

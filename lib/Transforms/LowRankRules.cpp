//===- LowRankRules.cpp - Which matrix gets which rank ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Transforms/LowRankRules.h"

using namespace llvm;

namespace attune {

static std::optional<RankBound> parseBound(StringRef text) {
  RankBound bound;
  if (text == "none")
    return bound;
  if (text.consume_back("%")) {
    if (text.getAsDouble(bound.error) || !(bound.error > 0) ||
        !(bound.error < 100))
      return std::nullopt;
    bound.error /= 100;
    return bound;
  }
  constexpr int64_t most = 1 << 20;
  if (text.getAsInteger(10, bound.rank) || bound.rank < 1 || bound.rank > most)
    return std::nullopt;
  return bound;
}

std::optional<LowRankRules> LowRankRules::parse(ArrayRef<std::string> words,
                                                std::string &problem) {
  LowRankRules result;
  result.text = words.vec();
  if (words.size() == 1 && words[0] == "none")
    return result;
  for (const std::string &word : words) {
    auto [pattern, text] = StringRef(word).rsplit(':');
    std::optional<RankBound> bound =
        word.find(':') == std::string::npos ? std::nullopt : parseBound(text);
    if (!bound) {
      problem = "'" + word +
                "' of --low-rank is no PATTERN:RANK, PATTERN:ERROR% or "
                "PATTERN:none, such as '*.ffn.*:64' or '*:10%'; a rank is 1 or "
                "more, an error between 0% and 100%";
      return std::nullopt;
    }
    if (!result.rules.add(pattern, *bound, "--low-rank", problem))
      return std::nullopt;
  }
  if (words.empty()) {
    problem = "--low-rank needs PATTERN:RANK or PATTERN:ERROR%";
    return std::nullopt;
  }
  return result;
}

std::optional<LowRankRules> LowRankRules::parse(StringRef text,
                                                std::string &problem) {
  return parse(splitWords(text), problem);
}

RankBound LowRankRules::lookup(ArrayRef<std::string> names) {
  const RankBound *bound = rules.lookup(names);
  return bound ? *bound : RankBound();
}

bool LowRankRules::needsValues() const {
  return rules.anyOf([](const RankBound &bound) { return bound.error > 0; });
}

} // namespace attune

//===- LowRankRules.cpp - Which matrix gets which rank ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Transforms/LowRankRules.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"

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
    Expected<GlobPattern> glob = GlobPattern::create(pattern);
    if (!glob || pattern.empty()) {
      problem = "'" + pattern.str() + "' of --low-rank is no pattern of names" +
                (glob ? "" : ": " + toString(glob.takeError()));
      return std::nullopt;
    }
    result.rules.push_back({pattern.str(), std::move(*glob), *bound});
  }
  if (words.empty()) {
    problem = "--low-rank needs PATTERN:RANK or PATTERN:ERROR%";
    return std::nullopt;
  }
  return result;
}

std::optional<LowRankRules> LowRankRules::parse(StringRef text,
                                                std::string &problem) {
  SmallVector<StringRef> parts;
  text.split(parts, ',');
  std::vector<std::string> words;
  for (StringRef part : parts)
    words.push_back(part.str());
  return parse(words, problem);
}

RankBound LowRankRules::lookup(ArrayRef<std::string> names) {
  for (Rule &rule : rules)
    if (any_of(names, [&](StringRef name) {
          return rule.glob.match(name) ||
                 (name.consume_back(".weight") && rule.glob.match(name));
        })) {
      rule.used = true;
      return rule.bound;
    }
  return {};
}

std::vector<std::string> LowRankRules::unused() const {
  std::vector<std::string> result;
  for (const Rule &rule : rules)
    if (!rule.used)
      result.push_back(rule.pattern);
  return result;
}

bool LowRankRules::needsValues() const {
  return any_of(rules, [](const Rule &rule) { return rule.bound.error > 0; });
}

} // namespace attune

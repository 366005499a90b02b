//===- Grammar.cpp - Which texts may be written ---------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Grammar.h"

#include "attune/Runtime/Utf8.h"

#include <algorithm>
#include <cstring>

namespace attune::runtime {

static constexpr uint32_t lastCode = 0x10FFFF;

std::vector<CodeRange> normalizeRanges(std::vector<CodeRange> ranges,
                                       bool negate) {
  std::sort(ranges.begin(), ranges.end(),
            [](CodeRange a, CodeRange b) { return a.first < b.first; });
  std::vector<CodeRange> joined;
  for (CodeRange range : ranges)
    if (!joined.empty() && range.first <= joined.back().last + 1)
      joined.back().last = std::max(joined.back().last, range.last);
    else
      joined.push_back(range);
  if (!negate)
    return joined;
  std::vector<CodeRange> others;
  uint32_t next = 0;
  for (CodeRange range : joined) {
    if (range.first > next)
      others.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= lastCode)
    others.push_back({next, lastCode});
  return others;
}

Grammar::Rule Grammar::addRule() {
  all.emplace_back();
  return static_cast<Rule>(all.size() - 1);
}

void Grammar::addAlternative(Rule rule, Sequence sequence) {
  ++numElements; // its elements are counted where they were appended
  all[rule].push_back(std::move(sequence));
}

uint32_t Grammar::addSet(const ByteSet &set) {
  uint64_t words[4], hash = 0;
  static_assert(sizeof(words) == sizeof(set));
  std::memcpy(words, &set, sizeof(words));
  for (uint64_t word : words)
    hash = HashIndex::mix(hash, word);
  uint32_t number = setIndex.find(
      hash, sets.size(), [&](uint32_t known) { return sets[known] == set; });
  if (number == sets.size())
    sets.push_back(set);
  return number;
}

void Grammar::appendText(Sequence &to, std::string_view bytes) {
  for (size_t i = 0; i < bytes.size() && !isTooLarge(); ++i) {
    ByteSet set;
    set.set(static_cast<unsigned char>(bytes[i]));
    appendSet(to, set);
  }
}

/// Splits a range into parts whose UTF-8 forms have the same length and differ
/// byte by byte in a whole range each, and calls `take` with each.
template <typename Take>
static void splitRange(uint32_t first, uint32_t last, Take take) {
  // Lengths change here, and surrogates are no characters.
  static constexpr CodeRange classes[] = {{0, 0x7F},
                                          {0x80, 0x7FF},
                                          {0x800, 0xD7FF},
                                          {0xE000, 0xFFFF},
                                          {0x10000, lastCode}};
  for (CodeRange part : classes) {
    uint32_t from = std::max(first, part.first), to = std::min(last, part.last);
    while (from <= to) {
      // The largest block at `from` whose lower bytes take all values.
      uint32_t low = 0;
      for (uint32_t bits = 0x3F; part.first >= 0x80 && bits < 0x40000;
           bits = bits << 6 | 0x3F)
        if ((from & bits) == 0 && (from | bits) <= to)
          low = bits;
      // The byte above the block may take several values, too.
      uint32_t step = low + 1, end = from | low;
      uint32_t above = part.first >= 0x80 ? low << 6 | 0x3F : 0x7F;
      while (end < to && ((end + 1) & ~above) == (from & ~above) &&
             end + step <= to)
        end += step;
      take(from, end);
      from = end + 1;
    }
  }
}

void Grammar::appendRanges(Sequence &to, const std::vector<CodeRange> &ranges) {
  std::vector<Sequence> choices;
  ByteSet single;
  for (CodeRange range : ranges)
    splitRange(range.first, range.last, [&](uint32_t first, uint32_t last) {
      std::string low, high;
      appendUtf8(low, first);
      appendUtf8(high, last);
      if (low.size() == 1) {
        for (uint32_t byte = first; byte <= last; ++byte)
          single.set(byte);
        return;
      }
      Sequence bytes;
      for (size_t i = 0; i < low.size(); ++i) {
        ByteSet set;
        for (unsigned b = static_cast<unsigned char>(low[i]);
             b <= static_cast<unsigned char>(high[i]); ++b)
          set.set(b);
        appendSet(bytes, set);
      }
      choices.push_back(std::move(bytes));
    });
  if (single.any() || choices.empty()) { // no byte at all: nothing fits
    choices.emplace_back();
    appendSet(choices.back(), single);
  }
  if (choices.size() == 1) {
    to.insert(to.end(), choices[0].begin(), choices[0].end());
    return;
  }
  Rule rule = addRule();
  for (Sequence &choice : choices)
    addAlternative(rule, std::move(choice));
  appendRule(to, rule);
}

bool Grammar::appendRepeat(Sequence &to, Rule rule, int64_t least,
                           int64_t most) {
  if (least > 100000 || most > 100000)
    return false;
  for (int64_t i = 0; i < least && !isTooLarge(); ++i)
    appendRule(to, rule);
  // What may follow: nothing, or one and what may follow that.
  auto addOneAnd = [&](Rule more, Rule then) {
    Sequence sequence;
    appendRule(sequence, rule);
    appendRule(sequence, then);
    addAlternative(more, {});
    addAlternative(more, std::move(sequence));
  };
  Rule next = addRule();
  if (most < 0) {
    addOneAnd(next, next);
  } else {
    // Each further one is there only if the one before is.
    addAlternative(next, {});
    for (int64_t i = least; i < most && !isTooLarge(); ++i) {
      Rule before = addRule();
      addOneAnd(before, next);
      next = before;
    }
  }
  appendRule(to, next);
  return !isTooLarge();
}

/// The rules with an alternative whose rules are all among them, and whose
/// other elements are good. Each element is looked at once.
std::vector<char> Grammar::findRules(bool (Grammar::*isGood)(Element)
                                         const) const {
  struct Alternative {
    Rule rule;
    size_t open; ///< rules of it that are not found yet
  };
  std::vector<Alternative> alternatives;
  std::vector<std::vector<uint32_t>> users(all.size());
  std::vector<char> found(all.size());
  std::vector<Rule> work;
  auto take = [&](Rule rule) {
    if (!found[rule])
      work.push_back(rule);
    found[rule] = 1;
  };
  for (Rule r = 0; r < all.size(); ++r)
    for (const Sequence &sequence : all[r]) {
      bool isBad =
          std::any_of(sequence.begin(), sequence.end(), [&](Element element) {
            return !element.isRule && !(this->*isGood)(element);
          });
      if (isBad)
        continue;
      size_t open = 0;
      for (Element element : sequence)
        if (element.isRule) {
          users[element.index].push_back(
              static_cast<uint32_t>(alternatives.size()));
          ++open;
        }
      alternatives.push_back({r, open});
      if (open == 0)
        take(r);
    }
  while (!work.empty()) {
    Rule rule = work.back();
    work.pop_back();
    for (uint32_t user : users[rule])
      if (--alternatives[user].open == 0)
        take(alternatives[user].rule);
  }
  return found;
}

void Grammar::removeDeadEnds() {
  std::vector<char> ends = findRules(&Grammar::hasBytes);
  for (std::vector<Sequence> &alternatives : all) {
    auto isDead = [&](const Sequence &sequence) {
      return std::any_of(
          sequence.begin(), sequence.end(), [&](Element element) {
            return element.isRule ? !ends[element.index] : !hasBytes(element);
          });
    };
    alternatives.erase(
        std::remove_if(alternatives.begin(), alternatives.end(), isDead),
        alternatives.end());
  }
}

int64_t Grammar::findLeftRecursion() const {
  std::vector<char> mayBeEmpty = findRules(&Grammar::isNothing);
  auto isEmpty = [&](Element element) {
    return element.isRule && mayBeEmpty[element.index];
  };
  // Rules that a rule may begin with. Where one stands last, nothing has to be
  // remembered, and coming back is no harm.
  std::vector<std::vector<uint32_t>> begins(all.size());
  std::vector<std::pair<uint32_t, uint32_t>> risky;
  for (uint32_t r = 0; r < all.size(); ++r)
    for (const Sequence &sequence : all[r])
      for (size_t i = 0; i < sequence.size(); ++i) {
        if (sequence[i].isRule) {
          begins[r].push_back(sequence[i].index);
          if (i + 1 < sequence.size())
            risky.push_back({sequence[i].index, r});
        }
        if (!isEmpty(sequence[i]))
          break;
      }
  // A cycle with a risky step: groups of rules that reach each other (Tarjan,
  // without recursion).
  std::vector<uint32_t> number(all.size()), low(all.size()), group(all.size());
  std::vector<uint32_t> path, open;
  std::vector<size_t> next(all.size());
  uint32_t count = 0, numGroups = 0;
  for (uint32_t start = 0; start < all.size(); ++start) {
    if (number[start])
      continue;
    path.push_back(start);
    while (!path.empty()) {
      uint32_t at = path.back();
      if (!number[at]) {
        number[at] = low[at] = ++count;
        open.push_back(at);
      }
      if (next[at] < begins[at].size()) {
        uint32_t to = begins[at][next[at]++];
        if (!number[to])
          path.push_back(to);
        else if (!group[to])
          low[at] = std::min(low[at], number[to]);
        continue;
      }
      path.pop_back();
      if (!path.empty())
        low[path.back()] = std::min(low[path.back()], low[at]);
      if (low[at] != number[at])
        continue;
      ++numGroups;
      for (uint32_t member = ~0u; member != at; open.pop_back())
        group[member = open.back()] = numGroups;
    }
  }
  for (auto [to, from] : risky)
    if (group[to] == group[from])
      return from;
  return -1;
}

} // namespace attune::runtime

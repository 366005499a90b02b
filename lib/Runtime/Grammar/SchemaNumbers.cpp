//===- SchemaNumbers.cpp - Bounds of numbers as patterns ------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SchemaNumbers.h"

#include <algorithm>
#include <cmath>

namespace attune::runtime {

/// More would make thousands of rules.
static constexpr int64_t mostDivisor = 100;
static constexpr unsigned mostDigits = 15;

bool NumberBounds::read(const JsonValue &schema, bool isInteger,
                        std::string &keyword, std::string &why) {
  for (const char *name : {"minimum", "exclusiveMinimum", "maximum",
                           "exclusiveMaximum", "multipleOf"}) {
    const JsonValue *value = schema.find(name);
    if (!value)
      continue;
    keyword = name;
    bool isLower = keyword == "minimum" || keyword == "exclusiveMinimum";
    bool isExclusive = keyword.compare(0, 9, "exclusive") == 0;
    double number = value->real;
    if (!value->isNumber() || !(std::fabs(number) <= double(most))) {
      why = "expected a number of at most 15 digits";
      return false;
    }
    bool isWhole = number == std::floor(number);
    if (keyword == "multipleOf") {
      if (!isInteger || !isWhole || number < 1 || number > mostDivisor) {
        why = "whole numbers from 1 to 100 are supported, for integers";
        return false;
      }
      multipleOf = static_cast<int64_t>(number);
      continue;
    }
    if (!isWhole && !isInteger) {
      why = "whole numbers alone are supported as bounds";
      return false;
    }
    hasBounds = true;
    auto bound =
        static_cast<int64_t>(isLower ? std::ceil(number) : std::floor(number));
    bool isOpen = isExclusive && isWhole;
    int64_t &own = isLower ? least : greatest;
    bool &ownIsOpen = isLower ? isAboveLeast : isBelowGreatest;
    if (isLower ? bound > own : bound < own) {
      own = bound;
      ownIsOpen = isOpen;
    } else if (bound == own) {
      ownIsOpen |= isOpen;
    }
  }
  keyword = "multipleOf";
  why = "it stands beside bounds, which is not supported";
  return !(hasBounds && multipleOf > 1);
}

static std::string anyDigits(size_t count) {
  return count == 0 ? "" : "[0-9]{" + std::to_string(count) + "}";
}

static void addPart(std::string &to, const std::string &part) {
  to += (to.empty() ? "" : "|") + part;
}

/// From `low` to `high`, which have as many digits.
static std::string sameLength(const std::string &low, const std::string &high) {
  if (low.empty())
    return "";
  size_t rest = low.size() - 1;
  std::string lowRest = low.substr(1), highRest = high.substr(1);
  bool fromFirst = lowRest == std::string(rest, '0');
  bool toLast = highRest == std::string(rest, '9');
  if (low[0] == high[0] && !(fromFirst && toLast))
    return low[0] + ("(" + sameLength(lowRest, highRest) + ")");
  std::string all;
  char first = static_cast<char>(low[0] + !fromFirst);
  char last = static_cast<char>(high[0] - !toLast);
  if (!fromFirst)
    addPart(all,
            low[0] + ("(" + sameLength(lowRest, std::string(rest, '9')) + ")"));
  if (first <= last)
    addPart(all, std::string("[") + first + "-" + last + "]" + anyDigits(rest));
  if (!toLast)
    addPart(all, high[0] + ("(" + sameLength(std::string(rest, '0'), highRest) +
                            ")"));
  return all;
}

/// From `low` to `high`, 0 or more.
static std::string wholeNumbers(int64_t low, int64_t high) {
  std::string all;
  int64_t first = 0, last = 9;
  for (unsigned digits = 1; digits <= mostDigits; ++digits) {
    int64_t from = std::max(low, first), to = std::min(high, last);
    if (from <= to)
      addPart(all, sameLength(std::to_string(from), std::to_string(to)));
    first = last + 1;
    last = last * 10 + 9;
  }
  return all;
}

/// The same with fractions; `isAbove` and `isBelow`: without the bounds.
static std::string realNumbers(int64_t low, bool isAbove, int64_t high,
                               bool isBelow) {
  std::string all;
  if (isAbove && low < high)
    addPart(all, std::to_string(low) + "\\.0{0,14}[1-9][0-9]{0,14}");
  std::string inner = wholeNumbers(low + isAbove, high - 1);
  if (!inner.empty())
    addPart(all, "(" + inner + ")(\\.[0-9]{1,16})?");
  if (!isBelow && (low < high || (low == high && !isAbove)))
    addPart(all, std::to_string(high) + "(\\.0{1,16})?");
  return all;
}

std::string describeNumbers(const NumberBounds &bounds, bool isInteger) {
  int64_t least = bounds.least, greatest = bounds.greatest;
  std::string positive, negative;
  if (isInteger) {
    least += bounds.isAboveLeast;
    greatest -= bounds.isBelowGreatest;
    positive = wholeNumbers(std::max<int64_t>(least, 0), greatest);
    negative = wholeNumbers(std::max<int64_t>(-greatest, 1), -least);
  } else {
    if (greatest >= 0)
      positive = realNumbers(std::max<int64_t>(least, 0),
                             least >= 0 && bounds.isAboveLeast, greatest,
                             bounds.isBelowGreatest);
    if (least < 0)
      negative = realNumbers(std::max<int64_t>(-greatest, 0),
                             greatest >= 0 || bounds.isBelowGreatest, -least,
                             bounds.isAboveLeast);
  }
  std::string all;
  if (!negative.empty())
    addPart(all, "-(" + negative + ")");
  if (!positive.empty())
    addPart(all, "(" + positive + ")");
  return all;
}

/// A rule for each remainder of what was read so far, and each number of digits
/// that may follow.
void addMultiples(Grammar &grammar, Grammar::Rule rule, int64_t divisor) {
  auto count = static_cast<size_t>(divisor);
  std::vector<Grammar::Rule> shorter, longer(count);
  auto makeRules = [&] {
    for (size_t rest = 0; rest < count; ++rest) {
      longer[rest] = grammar.addRule();
      if (rest == 0)
        grammar.addAlternative(longer[rest], {});
      for (size_t digit = 0; digit < 10 && !shorter.empty(); ++digit) {
        Grammar::Sequence next;
        grammar.appendText(next, std::string(1, char('0' + digit)));
        grammar.appendRule(next, shorter[(rest * 10 + digit) % count]);
        grammar.addAlternative(longer[rest], std::move(next));
      }
    }
    shorter = longer;
  };
  for (unsigned digits = 0; digits < mostDigits; ++digits)
    makeRules();
  for (const char *sign : {"", "-"})
    for (size_t digit = 1; digit < 10; ++digit) {
      Grammar::Sequence first;
      grammar.appendText(first, sign + std::string(1, char('0' + digit)));
      grammar.appendRule(first, shorter[digit % count]);
      grammar.addAlternative(rule, std::move(first));
    }
  Grammar::Sequence zero;
  grammar.appendText(zero, "0");
  grammar.addAlternative(rule, std::move(zero));
}

} // namespace attune::runtime

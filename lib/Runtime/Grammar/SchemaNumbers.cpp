//===- SchemaNumbers.cpp - Bounds of numbers as patterns ------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SchemaNumbers.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace attune::runtime {

/// More would make thousands of rules.
static constexpr int64_t mostDivisor = 125;
static constexpr unsigned mostDigits = 15;
/// Of a fraction: those of bounds, and those that are written.
static constexpr unsigned mostDecimals = 12, mostWritten = 16;

/// The digits before and behind the point of a number from 0; false: there are
/// too many. A decimal of so few digits is the one that was written.
static bool splitNumber(double number, int64_t &whole, std::string &fraction) {
  double power = 1;
  for (unsigned decimals = 0; decimals <= mostDecimals; ++decimals) {
    double scaled = std::round(number * power);
    if (scaled > 9e15)
      return false;
    if (scaled / power == number) {
      auto digits = static_cast<int64_t>(scaled),
           unit = static_cast<int64_t>(power);
      whole = digits / unit;
      fraction = std::to_string(unit + digits % unit).substr(1);
      return true;
    }
    power *= 10;
  }
  return false;
}

/// `divisor` and `decimals` from the value of multipleOf; false: it is not
/// supported.
static bool readDivisor(double number, bool isInteger, NumberBounds &bounds) {
  int64_t whole;
  std::string fraction;
  if (!(number > 0 && number <= mostDivisor) ||
      !splitNumber(number, whole, fraction))
    return false;
  int64_t scaled = whole, power = 1;
  for (char digit : fraction) {
    scaled = scaled * 10 + (digit - '0');
    power *= 10;
  }
  if (isInteger) { // whole numbers are multiples of the power already
    scaled /= std::gcd(scaled, power);
    fraction.clear();
  }
  bounds.divisor = scaled;
  bounds.decimals = static_cast<unsigned>(fraction.size());
  return scaled <= mostDivisor;
}

bool NumberBounds::read(const JsonValue &schema, bool isInteger,
                        std::string &keyword, std::string &why) {
  for (const char *name : {"minimum", "exclusiveMinimum", "maximum",
                           "exclusiveMaximum", "multipleOf"}) {
    const JsonValue *value = schema.find(name);
    if (!value)
      continue;
    keyword = name;
    bool isLower = keyword == "minimum" || keyword == "exclusiveMinimum";
    double number = value->real;
    if (!value->isNumber() || !(std::fabs(number) <= most)) {
      why = "expected a number of at most 15 digits";
      return false;
    }
    if (keyword == "multipleOf") {
      if (!readDivisor(number, isInteger, *this)) {
        why = "expected a number above 0 whose digits are at most 125, as "
              "0.01, 0.25, 12.5 or 100";
        return false;
      }
      hasDivisor = divisor > 1 || !isInteger;
      continue;
    }
    Bound bound = {number, keyword.compare(0, 9, "exclusive") == 0};
    int64_t whole;
    std::string fraction;
    if (isInteger) {
      double next = isLower ? std::ceil(number) : std::floor(number);
      bound.isOpen &= next == number;
      bound.value = next;
    } else if (!splitNumber(std::fabs(number), whole, fraction)) {
      why = "expected a number of at most 12 digits behind its point";
      return false;
    }
    hasBounds = true;
    Bound &own = isLower ? least : greatest;
    if (isLower ? bound.value > own.value : bound.value < own.value)
      own = bound;
    else if (bound.value == own.value)
      own.isOpen |= bound.isOpen;
  }
  return true;
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

namespace {
/// An end of a range of fractions: digits behind a point.
struct FractionBound {
  bool is; ///< false: there is no bound
  bool isOpen;
  std::string digits; ///< more are 0
};
} // namespace

static bool isZero(const std::string &digits) {
  return digits.find_first_not_of('0') == std::string::npos;
}

/// The digits of fractions from `low` to `high`, at most `most` of them. False:
/// there are none.
static bool describeFractions(FractionBound low, FractionBound high,
                              unsigned most, bool mayBeEmpty,
                              std::string &pattern) {
  pattern.clear();
  low.is = low.is && (low.isOpen || !isZero(low.digits));
  if (!low.is && !high.is) {
    if (most > 0)
      pattern = "[0-9]{" + std::to_string(!mayBeEmpty) + "," +
                std::to_string(most) + "}";
    return most > 0 || mayBeEmpty;
  }
  bool any = false;
  auto add = [&](const std::string &part) {
    pattern += (any ? "|" : "") + part;
    any = true;
  };
  if (mayBeEmpty && !low.is && !(high.isOpen && isZero(high.digits)))
    add("");
  if (most == 0)
    return any;
  auto rest = [](const std::string &digits) {
    return digits.empty() ? digits : digits.substr(1);
  };
  char first = low.is && !low.digits.empty() ? low.digits[0] : '0';
  char last = !high.is ? '9' : high.digits.empty() ? '0' : high.digits[0];
  // A digit that is one of a bound leaves the rest to decide.
  auto addEdge = [&](char digit) {
    std::string behind;
    if (describeFractions(
            {low.is && digit == first, low.isOpen, rest(low.digits)},
            {high.is && digit == last, high.isOpen, rest(high.digits)},
            most - 1, /*mayBeEmpty=*/true, behind))
      add(digit + ("(" + behind + ")"));
  };
  char from = static_cast<char>(first + low.is);
  char to = static_cast<char>(last - high.is);
  if (low.is && first <= last)
    addEdge(first);
  if (from <= to)
    add(std::string("[") + from + "-" + to + "][0-9]{0," +
        std::to_string(most - 1) + "}");
  if (high.is && first <= last && !(low.is && first == last))
    addEdge(last);
  return any;
}

/// Numbers from `low` to `high`, 0 or more.
static std::string realNumbers(NumberBounds::Bound low,
                               NumberBounds::Bound high) {
  int64_t from = 0, to = 0;
  FractionBound lowEnd = {true, low.isOpen, ""},
                highEnd = {true, high.isOpen, ""};
  splitNumber(low.value, from, lowEnd.digits);
  splitNumber(high.value, to, highEnd.digits);
  std::string all;
  auto add = [&](const std::string &whole, const FractionBound &least,
                 const FractionBound &most) {
    bool isWhole = !(least.is && (least.isOpen || !isZero(least.digits))) &&
                   !(most.is && most.isOpen && isZero(most.digits));
    std::string digits;
    bool isFraction = describeFractions(least, most, mostWritten,
                                        /*mayBeEmpty=*/false, digits);
    if (isFraction)
      addPart(all,
              "(" + whole + ")(\\.(" + digits + "))" + (isWhole ? "?" : ""));
    else if (isWhole)
      addPart(all, "(" + whole + ")");
  };
  const FractionBound none = {false, false, ""};
  if (from == to) {
    add(std::to_string(from), lowEnd, highEnd);
    return all;
  }
  add(std::to_string(from), lowEnd, none);
  std::string inner = wholeNumbers(from + 1, to - 1);
  if (!inner.empty())
    add(inner, none, none);
  add(std::to_string(to), none, highEnd);
  return all;
}

std::string describeNumbers(const NumberBounds &bounds, bool isInteger) {
  NumberBounds::Bound least = bounds.least, greatest = bounds.greatest;
  std::string positive, negative;
  if (least.value > greatest.value)
    return "";
  if (isInteger) {
    int64_t from = static_cast<int64_t>(least.value) + least.isOpen;
    int64_t to = static_cast<int64_t>(greatest.value) - greatest.isOpen;
    positive = wholeNumbers(std::max<int64_t>(from, 0), to);
    negative = wholeNumbers(std::max<int64_t>(-to, 1), -from);
  } else {
    if (greatest.value >= 0)
      positive = realNumbers(
          least.value >= 0 ? least : NumberBounds::Bound{0, false}, greatest);
    if (least.value < 0) // no -0
      negative =
          realNumbers(greatest.value < 0 ? NumberBounds::Bound{-greatest.value,
                                                               greatest.isOpen}
                                         : NumberBounds::Bound{0, true},
                      {-least.value, least.isOpen});
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
void addMultiples(Grammar &grammar, Grammar::Rule rule,
                  const NumberBounds &bounds) {
  auto count = static_cast<size_t>(bounds.divisor);
  // What follows `behind` digits of a fraction; 0 of them: an end or a point.
  std::vector<Grammar::Rule> next;
  auto addDigits = [&](Grammar::Rule to, const std::string &before, size_t rest,
                       size_t first = 0) {
    for (size_t digit = first; digit < 10; ++digit) {
      Grammar::Sequence sequence;
      grammar.appendText(sequence, before + char('0' + digit));
      grammar.appendRule(sequence, next[(rest * 10 + digit) % count]);
      grammar.addAlternative(to, std::move(sequence));
    }
  };
  size_t power = 1 % count; // of the digits that are not written
  std::vector<Grammar::Rule> ends(count);
  for (unsigned behind = bounds.decimals + 1; behind-- > 0;) {
    for (size_t rest = 0; rest < count; ++rest) {
      ends[rest] = grammar.addRule();
      if (rest * power % count == 0)
        grammar.addAlternative(ends[rest], {});
      if (behind < bounds.decimals)
        addDigits(ends[rest], behind == 0 ? "." : "", rest);
    }
    next = ends;
    power = power * 10 % count;
  }
  for (unsigned digits = 1; digits < mostDigits; ++digits) {
    std::vector<Grammar::Rule> longer(count);
    for (size_t rest = 0; rest < count; ++rest) {
      longer[rest] = grammar.addRule();
      grammar.addAlternative(longer[rest], {{true, ends[rest]}});
      addDigits(longer[rest], "", rest);
    }
    next = std::move(longer);
  }
  for (const char *sign : {"", "-"})
    addDigits(rule, sign, 0, /*first=*/1);
  for (const char *zero : {"0", "-0"}) {
    if (zero[0] == '-' && bounds.decimals == 0)
      continue;
    Grammar::Sequence sequence;
    grammar.appendText(sequence, zero);
    grammar.appendRule(sequence, ends[0]);
    grammar.addAlternative(rule, std::move(sequence));
  }
}

} // namespace attune::runtime

//===- TextFilters.cpp - Filters of texts and numbers ---------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Filters.h"
#include "Parser.h"
#include "Text.h"

#include "attune/Runtime/Utf8.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace attune::runtime::jinja {

static const FilterEntry *findFilter(std::string_view name) {
  for (auto find :
       {findTextFilter, findSequenceFilter, findHtmlFilter, findLayoutFilter})
    if (const FilterEntry *filter = find(name))
      return filter;
  return nullptr;
}

bool isFilter(std::string_view name) { return findFilter(name); }

bool Interpreter::applyFilter(std::string_view name, const Value &input,
                              const Arguments &args, Value &out) {
  const FilterEntry *filter = findFilter(name);
  if (!filter)
    return fail("there is no filter '" + std::string(name) + "'");
  // map may apply map, and so on.
  if (depth >= mostLevels)
    return fail("filters within filters without end");
  ++depth;
  bool good = filter->apply({*this, name, input, args, out});
  --depth;
  return good;
}

/// The input as a text, by a method of texts.
static bool viaMethod(const FilterCall &call, std::string_view method,
                      const Arguments &args) {
  Value text;
  return call.in.toText(call.input, text) &&
         call.in.callMethod(text, method, args, call.out);
}

bool noArguments(const FilterCall &call) {
  return call.in.bind(call.what(), call.args, {}, 0, nullptr, nullptr);
}

static bool sameMethod(const FilterCall &call) {
  return noArguments(call) && viaMethod(call, call.name, Arguments());
}

/// Jinja's own rule: words begin behind white space, hyphens and brackets.
static bool applyTitle(const FilterCall &call) {
  Value text;
  if (!noArguments(call) || !call.in.toText(call.input, text))
    return false;
  Interpreter::Builder out(call.in);
  std::string_view rest = text.text();
  auto splits = [](std::string_view at) -> size_t {
    if (std::string_view("-({[<").find(at[0]) != std::string_view::npos)
      return 1;
    return spaceAt(at);
  };
  while (!rest.empty()) {
    size_t end = 0;
    while (end < rest.size() && splits(rest.substr(end)))
      end += splits(rest.substr(end));
    out.add(rest.substr(0, end));
    rest.remove_prefix(end);
    for (end = 0; end < rest.size() && !splits(rest.substr(end));)
      ++end;
    size_t first = std::min(characterOffset(rest, 1), end);
    out.add(toUpper(rest.substr(0, first)));
    out.add(toLower(rest.substr(first, end - first)));
    rest.remove_prefix(end);
  }
  call.out = out.take();
  return call.in.step(text.text().size() / 4);
}

static bool applyTrim(const FilterCall &call) {
  Value chars;
  bool given;
  if (!call.in.bind(call.what(), call.args, {"chars"}, 0, &chars, &given))
    return false;
  Arguments args;
  if (given)
    args.positional.push_back(chars);
  return viaMethod(call, "strip", args);
}

static bool applyReplace(const FilterCall &call) {
  Value values[3];
  bool given[3];
  if (!call.in.bind(call.what(), call.args, {"old", "new", "count"}, 2, values,
                    given))
    return false;
  Arguments args;
  args.positional.resize(2);
  if (!call.in.toText(values[0], args.positional[0]) ||
      !call.in.toText(values[1], args.positional[1]))
    return false;
  if (given[2] && !values[2].isNone())
    args.positional.push_back(values[2]);
  return viaMethod(call, "replace", args);
}

static bool applyString(const FilterCall &call) {
  return noArguments(call) && call.in.toText(call.input, call.out);
}

static bool applySafe(const FilterCall &call) {
  Value text;
  if (!noArguments(call) || !call.in.toText(call.input, text))
    return false;
  Interpreter::Builder out(call.in);
  if (call.name == "safe" || (text.isMarkup() && call.name != "forceescape"))
    out.add(text.text());
  else
    escapeHtml(out, text.text());
  call.out = out.take();
  call.out.as<StringObject>().isMarkup = true;
  return call.in.step(0);
}

static bool applyCenter(const FilterCall &call) {
  Value width = Value::integer(80);
  bool given;
  if (!call.in.bind(call.what(), call.args, {"width"}, 0, &width, &given))
    return false;
  Arguments args;
  args.positional.push_back(width);
  return viaMethod(call, "center", args);
}

static bool applyIndent(const FilterCall &call) {
  Value values[3] = {Value::integer(4), Value::boolean(false),
                     Value::boolean(false)};
  bool given[3];
  Value text, lines;
  if (!call.in.bind(call.what(), call.args, {"width", "first", "blank"}, 0,
                    values, given))
    return false;
  std::string_view source;
  if (!call.in.wantText(call.input, call.what(), source))
    return false;
  std::string indention;
  if (values[0].isString()) {
    indention = values[0].text();
  } else {
    int64_t width;
    if (!call.in.wantInteger(values[0], call.what(), width))
      return false;
    if (width > 10000)
      return call.in.fail(call.what() + ": more than 10000 columns");
    indention.assign(static_cast<size_t>(std::max<int64_t>(width, 0)), ' ');
  }
  // A line end is put behind the text, as Jinja does.
  text = call.in.newString(std::string(source) + "\n");
  if (!call.in.callMethod(text, "splitlines", Arguments(), lines))
    return false;
  Interpreter::Builder out(call.in);
  bool first = truth(values[1]), blank = truth(values[2]);
  const std::vector<Value> &items = lines.list().items;
  for (size_t i = 0; i < items.size(); ++i) {
    std::string_view line = items[i].text();
    out.add(i ? "\n" : "");
    if (i ? blank || !line.empty() : first)
      out.add(indention);
    out.add(line);
  }
  call.out = out.take();
  return call.in.step(items.size());
}

static bool applyTruncate(const FilterCall &call) {
  Value values[4] = {Value::integer(255), Value::boolean(false),
                     call.in.newString("..."), Value::integer(5)};
  bool given[4];
  if (!call.in.bind(call.what(), call.args,
                    {"length", "killwords", "end", "leeway"}, 0, values, given))
    return false;
  std::string_view text, end;
  int64_t length, leeway = 5;
  if (!call.in.wantText(call.input, call.what(), text) ||
      !call.in.wantInteger(values[0], call.what(), length) ||
      !call.in.wantText(values[2], call.what(), end) ||
      (!values[3].isNone() &&
       !call.in.wantInteger(values[3], call.what(), leeway)))
    return false;
  int64_t keep = length - countCharacters(end);
  if (keep < 0 || leeway < 0)
    return call.in.fail(call.what() + ": the length is below that of its end");
  call.out = call.input;
  if (countCharacters(text) <= length + leeway)
    return true;
  std::string_view kept = text.substr(0, characterOffset(text, keep));
  if (!truth(values[1]))
    kept = kept.substr(0, kept.rfind(' '));
  call.out = call.in.newString(std::string(kept) + std::string(end));
  return call.in.step(text.size() / 16);
}

static bool applyFormat(const FilterCall &call) {
  Value text, values;
  if (!call.in.toText(call.input, text))
    return false;
  if (!call.args.positional.empty() && !call.args.named.empty())
    return call.in.fail("the filter 'format' takes positional or named "
                        "arguments, not both");
  if (!call.args.named.empty()) {
    values = call.in.newDict();
    for (const auto &[key, value] : call.args.named)
      if (!call.in.dictSet(values, call.in.newString(std::string(key)), value))
        return false;
  } else {
    values = call.in.newList(Kind::Tuple);
    for (const Value &value : call.args.positional)
      if (!call.in.append(values, value))
        return false;
  }
  return call.in.formatPercent(text.text(), values, call.out);
}

static bool applyWordCount(const FilterCall &call) {
  Value text;
  if (!noArguments(call) || !call.in.toText(call.input, text))
    return false;
  int64_t count = 0;
  bool inside = false;
  std::string_view rest = text.text();
  while (!rest.empty()) {
    uint32_t c;
    unsigned n = decodeUtf8(rest, c);
    bool word = n && (isIn(CharacterClass::Alpha, c) || c == '_' ||
                      (c >= '0' && c <= '9'));
    count += word && !inside;
    inside = word;
    rest.remove_prefix(n ? n : 1);
  }
  call.out = Value::integer(count);
  return call.in.step(text.text().size() / 8);
}

static void quoteUrl(Interpreter::Builder &out, std::string_view text,
                     bool isQuery) {
  for (char c : text) {
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                 (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-' ||
                 c == '~' || (c == '/' && !isQuery);
    char buffer[8];
    std::snprintf(buffer, sizeof(buffer), "%%%02X",
                  static_cast<unsigned>(static_cast<unsigned char>(c)));
    if (plain)
      out.add(std::string_view(&c, 1));
    else
      out.add(c == ' ' && isQuery ? "+" : buffer);
  }
}

static bool applyUrlEncode(const FilterCall &call) {
  if (!noArguments(call))
    return false;
  Interpreter::Builder out(call.in);
  Value text;
  if (!call.input.isDict() && !call.input.hasItems()) {
    if (!call.in.toText(call.input, text))
      return false;
    quoteUrl(out, text.text(), /*isQuery=*/false);
    call.out = out.take();
    return call.in.step(0);
  }
  Value pairs = call.input;
  std::vector<Value> items;
  if (call.input.isDict() &&
      !call.in.callMethod(call.input, "items", Arguments(), pairs))
    return false;
  if (!call.in.itemsOf(pairs, items))
    return false;
  for (size_t i = 0; i < items.size(); ++i) {
    std::vector<Value> pair;
    if (!call.in.itemsOf(items[i], pair))
      return false;
    if (pair.size() != 2)
      return call.in.fail(call.what() + " takes pairs");
    out.add(i ? "&" : "");
    for (int part = 0; part < 2; ++part) {
      if (!call.in.toText(pair[static_cast<size_t>(part)], text))
        return false;
      out.add(part ? "=" : "");
      quoteUrl(out, text.text(), /*isQuery=*/true);
    }
  }
  call.out = out.take();
  return call.in.step(0);
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

/// A number as Python's int() and float() read it, nothing but white space
/// around it.
static bool readReal(std::string_view source, double &value) {
  std::string text(trimLeft(trimRight(source)));
  std::string digits;
  for (size_t i = 0; i < text.size(); ++i)
    if (text[i] != '_' || i == 0 || i + 1 == text.size())
      digits += text[i];
  std::string lower = toLower(digits);
  size_t sign = !lower.empty() && (lower[0] == '-' || lower[0] == '+');
  std::string bare = lower.substr(sign);
  if (bare == "inf" || bare == "infinity" || bare == "nan") {
    value = bare == "nan" ? NAN : lower[0] == '-' ? -INFINITY : INFINITY;
    return true;
  }
  if (bare.empty() ||
      bare.find_first_not_of("0123456789.e+-") != std::string::npos)
    return false;
  char *end = nullptr;
  value = std::strtod(lower.c_str(), &end);
  return end == lower.c_str() + lower.size();
}

static bool readInteger(std::string_view source, int64_t base, int64_t &value) {
  std::string text(trimLeft(trimRight(source)));
  bool negative = !text.empty() && text[0] == '-';
  size_t at = negative || (!text.empty() && text[0] == '+') ? 1 : 0;
  auto prefix = [&](char letter) {
    return at + 1 < text.size() && text[at] == '0' &&
           (text[at + 1] | 32) == letter;
  };
  char letter = base == 16 ? 'x' : base == 8 ? 'o' : base == 2 ? 'b' : 0;
  if (letter && prefix(letter))
    at += 2;
  value = 0;
  bool digits = false;
  for (; at < text.size(); ++at) {
    char c = text[at];
    if (c == '_' && digits && at + 1 < text.size() && text[at + 1] != '_')
      continue;
    int digit = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'a' && c <= 'z' ? c - 'a' + 10
                : c >= 'A' && c <= 'Z' ? c - 'A' + 10
                                       : 99;
    if (digit >= base || __builtin_mul_overflow(value, base, &value) ||
        __builtin_add_overflow(value, int64_t(digit), &value))
      return false;
    digits = true;
  }
  value = negative ? -value : value;
  return digits;
}

static bool applyInt(const FilterCall &call) {
  Value values[2] = {Value::integer(0), Value::integer(10)};
  bool given[2];
  int64_t base, whole = 0;
  if (!call.in.bind(call.what(), call.args, {"default", "base"}, 0, values,
                    given) ||
      !call.in.wantInteger(values[1], call.what(), base))
    return false;
  if (base < 2 || base > 36)
    return call.in.fail(call.what() + ": a base from 2 to 36");
  call.out = values[0];
  double real = NAN;
  if (call.input.isString()) {
    if (readInteger(call.input.text(), base, whole)) {
      call.out = Value::integer(whole);
      return true;
    }
    if (!readReal(call.input.text(), real))
      return true;
  } else if (call.input.isInteger()) {
    call.out = Value::integer(call.input.integer());
    return true;
  } else if (call.input.is(Kind::Float)) {
    real = call.input.real();
  } else {
    return true;
  }
  if (std::fabs(real) < 0x1p63)
    call.out = Value::integer(static_cast<int64_t>(real));
  return true;
}

static bool applyFloat(const FilterCall &call) {
  Value fallback = Value::real(0);
  bool given;
  if (!call.in.bind(call.what(), call.args, {"default"}, 0, &fallback, &given))
    return false;
  double real;
  call.out = fallback;
  if (call.input.isNumber())
    call.out = Value::real(call.input.real());
  else if (call.input.isString() && readReal(call.input.text(), real))
    call.out = Value::real(real);
  return true;
}

static bool applyAbs(const FilterCall &call) {
  if (!noArguments(call) || !call.in.wantDefined(call.input))
    return false;
  if (!call.input.isNumber())
    return call.in.fail(std::string("bad operand type for abs(): '") +
                        call.input.typeName() + "'");
  if (call.input.is(Kind::Float)) {
    call.out = Value::real(std::fabs(call.input.real()));
    return true;
  }
  int64_t value = call.input.integer();
  if (value == INT64_MIN)
    return call.in.fail("a whole number beyond 64 bits");
  call.out = Value::integer(value < 0 ? -value : value);
  return true;
}

/// round(value, digits) of Python: correctly rounded, halves to even.
static double roundReal(double value, int64_t digits) {
  if (!std::isfinite(value) || digits > 400)
    return value;
  if (digits < 0) {
    double scale = std::pow(10.0, static_cast<double>(-digits));
    return std::isinf(scale) ? std::copysign(0.0, value)
                             : std::nearbyint(value / scale) * scale;
  }
  std::string buffer(800, '\0');
  std::snprintf(&buffer[0], buffer.size(), "%.*f", static_cast<int>(digits),
                value);
  return std::strtod(buffer.c_str(), nullptr);
}

static bool applyRound(const FilterCall &call) {
  Value values[2] = {Value::integer(0), call.in.newString("common")};
  bool given[2];
  int64_t digits;
  std::string_view method;
  if (!call.in.bind(call.what(), call.args, {"precision", "method"}, 0, values,
                    given) ||
      !call.in.wantInteger(values[0], call.what(), digits) ||
      !call.in.wantText(values[1], call.what(), method))
    return false;
  if (method != "common" && method != "ceil" && method != "floor")
    return call.in.fail("method must be common, ceil or floor");
  if (!call.input.isNumber())
    return call.in.wantDefined(call.input) &&
           call.in.fail(std::string("type ") + call.input.typeName() +
                        " doesn't define __round__ method");
  if (method == "common") {
    if (call.input.isInteger() && digits >= 0)
      call.out = Value::integer(call.input.integer());
    else if (call.input.isInteger())
      call.out = Value::integer(
          static_cast<int64_t>(roundReal(call.input.real(), digits)));
    else
      call.out = Value::real(roundReal(call.input.real(), digits));
    return true;
  }
  double scale = std::pow(10.0, static_cast<double>(digits));
  double scaled = call.input.real() * scale;
  call.out = Value::real(
      (method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale);
  return true;
}

/// 4100000 as "4.1 MB".
static bool applyFileSize(const FilterCall &call) {
  Value binary = Value::boolean(false);
  bool given;
  if (!call.in.bind(call.what(), call.args, {"binary"}, 0, &binary, &given) ||
      !call.in.wantDefined(call.input))
    return false;
  double bytes;
  if (call.input.isNumber())
    bytes = call.input.real();
  else if (!call.input.isString())
    return call.in.fail(call.what() + " takes a number, not " +
                        call.input.typeName());
  else if (!readReal(call.input.text(), bytes))
    return call.in.fail("could not convert string to float");
  bool inTwos = truth(binary);
  double base = inTwos ? 1024 : 1000;
  char buffer[400];
  if (bytes < base) {
    if (std::isinf(bytes))
      return call.in.fail("cannot convert float infinity to integer");
    std::snprintf(buffer, sizeof(buffer), "%.0f %s", std::trunc(bytes) + 0.0,
                  bytes == 1 ? "Byte" : "Bytes");
    call.out = call.in.newString(buffer);
    return true;
  }
  if (std::isnan(bytes))
    bytes = std::fabs(bytes); // printed without a sign
  static constexpr double powers[] = {1e6,  1e9,  1e12, 1e15,
                                      1e18, 1e21, 1e24, 1e27};
  for (unsigned i = 0; i < 8; ++i) {
    double unit =
        inTwos ? std::ldexp(1, 10 * (static_cast<int>(i) + 2)) : powers[i];
    // 1e24 as a double is a little less than that.
    bool less = bytes < unit || (!inTwos && i == 6 && bytes == unit);
    if (!less && i < 7)
      continue;
    std::snprintf(buffer, sizeof(buffer), "%.1f %c%sB", base * bytes / unit,
                  (inTwos ? "KMGTPEZY" : "kMGTPEZY")[i], inTwos ? "i" : "");
    break;
  }
  call.out = call.in.newString(buffer);
  return true;
}

static bool applyToJson(const FilterCall &call) {
  Value values[4];
  bool given[4];
  if (!call.in.bind(call.what(), call.args,
                    {"ensure_ascii", "indent", "separators", "sort_keys"}, 0,
                    values, given))
    return false;
  JsonStyle style;
  style.ascii = given[0] && truth(values[0]);
  style.sortKeys = given[3] && truth(values[3]);
  if (given[1] && !values[1].isNone()) {
    style.indented = true;
    style.itemSeparator = ",";
    if (values[1].isString()) {
      style.indent = values[1].text();
    } else {
      int64_t width;
      if (!call.in.wantInteger(values[1], "tojson's indent", width))
        return false;
      if (width > 1000)
        return call.in.fail("tojson's indent is at most 1000");
      style.indent.assign(static_cast<size_t>(std::max<int64_t>(width, 0)),
                          ' ');
    }
  }
  if (given[2] && !values[2].isNone()) {
    std::vector<Value> pair;
    std::string_view item, key;
    if (!call.in.itemsOf(values[2], pair))
      return false;
    if (pair.size() != 2)
      return call.in.fail("tojson's separators are two strings");
    if (!call.in.wantText(pair[0], "tojson's separators", item) ||
        !call.in.wantText(pair[1], "tojson's separators", key))
      return false;
    style.itemSeparator = item;
    style.keySeparator = key;
  }
  Interpreter::Builder out(call.in);
  if (!call.in.toJson(out, call.input, style, 0))
    return false;
  call.out = out.take();
  return call.in.step(0);
}

const FilterEntry *findTextFilter(std::string_view name) {
  static const FilterEntry filters[] = {
      {"abs", applyAbs},
      {"capitalize", sameMethod},
      {"center", applyCenter},
      {"e", applySafe},
      {"escape", applySafe},
      {"filesizeformat", applyFileSize},
      {"float", applyFloat},
      {"forceescape", applySafe},
      {"format", applyFormat},
      {"indent", applyIndent},
      {"int", applyInt},
      {"lower", sameMethod},
      {"replace", applyReplace},
      {"round", applyRound},
      {"safe", applySafe},
      {"string", applyString},
      {"title", applyTitle},
      {"tojson", applyToJson},
      {"trim", applyTrim},
      {"truncate", applyTruncate},
      {"upper", sameMethod},
      {"urlencode", applyUrlEncode},
      {"wordcount", applyWordCount},
  };
  for (const FilterEntry &filter : filters)
    if (filter.name == name)
      return &filter;
  return nullptr;
}

} // namespace attune::runtime::jinja

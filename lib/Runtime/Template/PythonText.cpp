//===- PythonText.cpp - Texts of values -----------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Text.h"

#include "attune/Runtime/Utf8.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace attune::runtime::jinja {

/// Levels of lists in lists that are written.
static constexpr unsigned mostDepth = 200;

std::string formatReal(double value) {
  if (std::isnan(value))
    return "nan";
  if (std::isinf(value))
    return value < 0 ? "-inf" : "inf";
  char buffer[40];
  for (int digits = 0; digits < 17; ++digits) {
    std::snprintf(buffer, sizeof(buffer), "%.*e", digits, value);
    if (std::strtod(buffer, nullptr) == value)
      break;
  }
  std::string_view text = buffer;
  std::string out;
  if (text[0] == '-') {
    out += '-';
    text.remove_prefix(1);
  }
  size_t e = text.find('e');
  int exponent = std::atoi(text.data() + e + 1);
  std::string digits;
  for (char c : text.substr(0, e))
    if (c != '.')
      digits += c;
  auto count = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    out += digits[0];
    if (count > 1)
      out += "." + digits.substr(1);
    std::snprintf(buffer, sizeof(buffer), "e%c%02d", exponent < 0 ? '-' : '+',
                  std::abs(exponent));
    return out + buffer;
  }
  if (exponent < 0)
    return out + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') +
           digits;
  if (count <= exponent + 1)
    return out + digits +
           std::string(static_cast<size_t>(exponent + 1 - count), '0') + ".0";
  auto point = static_cast<size_t>(exponent + 1);
  return out + digits.substr(0, point) + "." + digits.substr(point);
}

void appendQuoted(std::string &out, std::string_view text) {
  bool single = text.find('\'') != std::string_view::npos,
       both = single && text.find('"') != std::string_view::npos;
  char quote = single && !both ? '"' : '\'';
  out += quote;
  while (!text.empty()) {
    uint32_t c;
    unsigned n = decodeUtf8(text, c);
    char buffer[16];
    if (!n) {
      c = static_cast<unsigned char>(text[0]);
      n = 1;
      std::snprintf(buffer, sizeof(buffer), "\\x%02x", c);
      out += buffer;
    } else if (c == static_cast<unsigned char>(quote) || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n' || c == '\r' || c == '\t') {
      out += c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
    } else if (isIn(CharacterClass::Printable, c)) {
      out.append(text.data(), n);
    } else {
      std::snprintf(buffer, sizeof(buffer),
                    c < 0x100     ? "\\x%02x"
                    : c < 0x10000 ? "\\u%04x"
                                  : "\\U%08x",
                    c);
      out += buffer;
    }
    text.remove_prefix(n);
  }
  out += quote;
}

void escapeHtml(Interpreter::Builder &out, std::string_view text) {
  for (; !text.empty(); text.remove_prefix(1)) {
    switch (text[0]) {
    case '&':
      out.add("&amp;");
      break;
    case '<':
      out.add("&lt;");
      break;
    case '>':
      out.add("&gt;");
      break;
    case '"':
      out.add("&#34;");
      break;
    case '\'':
      out.add("&#39;");
      break;
    default:
      out.add(text.substr(0, 1));
    }
  }
}

bool Interpreter::toText(const Value &value, Value &out) {
  if (value.isString()) {
    out = value;
    return true;
  }
  Builder text(*this);
  if (!appendText(text, value))
    return false;
  out = text.take();
  return step(0);
}

bool Interpreter::appendText(Builder &out, const Value &value) {
  if (value.isUndefined())
    return true;
  if (value.isString()) {
    out.add(value.text());
    return step(0);
  }
  return appendRepr(out, value);
}

bool Interpreter::appendRepr(Builder &out, const Value &value, unsigned level) {
  if (level > mostDepth)
    return fail("a value nested deeper than " + std::to_string(mostDepth) +
                " levels");
  if (!step())
    return false;
  auto appendItems = [&](const std::vector<Value> &items) {
    for (size_t i = 0; i < items.size(); ++i) {
      out.add(i ? ", " : "");
      if (!appendRepr(out, items[i], level + 1))
        return false;
    }
    return true;
  };
  switch (value.kind()) {
  case Kind::Undefined:
    out.add("Undefined");
    break;
  case Kind::None:
    out.add("None");
    break;
  case Kind::Bool:
    out.add(value.boolean() ? "True" : "False");
    break;
  case Kind::Int:
    out.add(std::to_string(value.integer()));
    break;
  case Kind::Float:
    out.add(formatReal(value.real()));
    break;
  case Kind::String: {
    std::string quoted;
    appendQuoted(quoted, value.text());
    if (value.isMarkup())
      quoted = "Markup(" + quoted + ")";
    out.add(quoted);
    break;
  }
  case Kind::List:
    out.add("[");
    if (!appendItems(value.list().items))
      return false;
    out.add("]");
    break;
  case Kind::Tuple:
    out.add("(");
    if (!appendItems(value.list().items))
      return false;
    out.add(value.list().items.size() == 1 ? ",)" : ")");
    break;
  case Kind::View:
    out.add(value.typeName()).add("([");
    if (!appendItems(value.list().items))
      return false;
    out.add("])");
    break;
  case Kind::Range: {
    const auto &range = value.as<RangeObject>();
    out.add("range(" + std::to_string(range.start) + ", " +
            std::to_string(range.stop) +
            (range.step == 1 ? "" : ", " + std::to_string(range.step)) + ")");
    break;
  }
  case Kind::Namespace:
    out.add("<Namespace ");
    [[fallthrough]];
  case Kind::Dict: {
    const auto &dict = value.as<DictObject>();
    out.add("{");
    for (size_t i = 0; i < dict.keys.size(); ++i) {
      out.add(i ? ", " : "");
      if (!appendRepr(out, dict.keys[i], level + 1))
        return false;
      out.add(": ");
      if (!appendRepr(out, dict.values[i], level + 1))
        return false;
    }
    out.add(value.isDict() ? "}" : "}>");
    break;
  }
  case Kind::Macro:
    out.add("<Macro '" + value.as<MacroObject>().node->text + "'>");
    break;
  case Kind::Loop: {
    const auto &loop = value.as<LoopObject>();
    out.add("<LoopContext " + std::to_string(loop.index + 1) + "/" +
            std::to_string(loop.items.size()) + ">");
    break;
  }
  default:
    return fail(std::string("a ") + value.typeName() +
                " has no text of its own");
  }
  return step(0);
}

//===----------------------------------------------------------------------===//
// Formats
//===----------------------------------------------------------------------===//

namespace {
/// What stands in a conversion: of `%05.1f` or `{:>8,.2f}`.
struct FormatSpec {
  std::string fill = " ";
  char align = 0; ///< '<', '>', '^', '=', or 0 for the type's own
  char sign = '-';
  bool alternate = false, zero = false, comma = false, underscore = false;
  int64_t width = 0, precision = -1;
  char type = 0;
};
} // namespace

static constexpr int64_t mostWidth = 100000;

/// Groups the digits before the point in threes.
static std::string group(const std::string &digits, char separator) {
  size_t end = 0;
  while (end < digits.size() && digits[end] >= '0' && digits[end] <= '9')
    ++end;
  std::string out;
  for (size_t i = 0; i < end; ++i) {
    if (i && (end - i) % 3 == 0)
      out += separator;
    out += digits[i];
  }
  return out + digits.substr(end);
}

/// A magnitude without its sign; false if the type is not one of reals.
static bool formatMagnitude(double value, FormatSpec &spec, std::string &out) {
  char type = spec.type;
  int64_t precision = spec.precision;
  if (type == 0 && precision < 0) {
    out = formatReal(value);
    return true;
  }
  if (type == '%') {
    value *= 100;
    type = 'f';
  }
  bool general = type == 0;
  if (general)
    type = 'g';
  if (!std::isfinite(value)) {
    bool upper = type >= 'A' && type <= 'Z';
    out = std::isnan(value) ? (upper ? "NAN" : "nan") : (upper ? "INF" : "inf");
  } else {
    if (std::string_view("eEfFgG").find(type) == std::string_view::npos ||
        precision > 500)
      return false;
    char format[] = "%.*f";
    format[3] = type;
    char alternate[] = "%#.*f";
    alternate[4] = type;
    std::string buffer(900, '\0');
    int count = std::snprintf(
        &buffer[0], buffer.size(), spec.alternate ? alternate : format,
        static_cast<int>(precision < 0 ? 6 : precision), value);
    buffer.resize(static_cast<size_t>(count));
    out = std::move(buffer);
    if (general && out.find_first_of(".e") == std::string::npos)
      out += ".0";
  }
  if (spec.type == '%')
    out += '%';
  return true;
}

static std::string integerDigits(uint64_t value, unsigned base, bool upper) {
  std::string digits;
  do {
    unsigned digit = static_cast<unsigned>(value % base);
    digits += static_cast<char>(
        digit < 10 ? '0' + digit : (upper ? 'A' : 'a') + (digit - 10));
    value /= base;
  } while (value);
  std::reverse(digits.begin(), digits.end());
  return digits;
}

/// Puts sign and body into the field that the specification asks for.
static void pad(Interpreter::Builder &out, const FormatSpec &spec,
                const std::string &sign, const std::string &body,
                char standard) {
  int64_t missing =
      spec.width - countCharacters(body) - static_cast<int64_t>(sign.size());
  missing = std::max<int64_t>(missing, 0);
  char align = spec.align ? spec.align : standard;
  int64_t left = align == '>' ? missing : align == '^' ? missing / 2 : 0;
  int64_t inner = align == '=' ? missing : 0;
  auto fill = [&](int64_t count) {
    for (int64_t i = 0; i < count; ++i)
      out.add(spec.fill);
  };
  fill(left);
  out.add(sign);
  fill(inner);
  out.add(body);
  fill(missing - left - inner);
}

/// format(number, spec), for both kinds of formats.
static bool formatNumber(Interpreter &in, Interpreter::Builder &out,
                         const Value &value, FormatSpec spec) {
  std::string body, sign;
  bool negative =
      value.is(Kind::Float) ? std::signbit(value.real()) : value.integer() < 0;
  char type = spec.type;
  bool integral = type == 'd' || type == 'x' || type == 'X' || type == 'o' ||
                  type == 'b' || type == 'c' || type == 'n';
  if (value.isInteger() && (integral || (type == 0))) {
    auto magnitude = static_cast<uint64_t>(value.integer());
    if (negative)
      magnitude = 0 - magnitude;
    if (type == 'c') {
      if (value.integer() < 0 || value.integer() > 0x10FFFF)
        return in.fail("a number that is no character");
      appendUtf8(body, static_cast<uint32_t>(value.integer()));
      negative = false;
    } else {
      unsigned base = type == 'x' || type == 'X' ? 16
                      : type == 'o'              ? 8
                      : type == 'b'              ? 2
                                                 : 10;
      body = integerDigits(magnitude, base, type == 'X');
      if (spec.precision > static_cast<int64_t>(body.size()))
        body.insert(
            0, std::string(static_cast<size_t>(spec.precision) - body.size(),
                           '0'));
      if (spec.alternate && base != 10)
        sign = std::string("0") + type;
    }
  } else if (integral ||
             !formatMagnitude(std::fabs(value.real()), spec, body)) {
    return in.fail(std::string("unknown format code '") + type +
                   "' for object of type '" + value.typeName() + "'");
  }
  if (spec.comma || spec.underscore)
    body = group(body, spec.comma ? ',' : '_');
  if (negative)
    sign.insert(0, "-");
  else if (spec.sign != '-')
    sign.insert(0, 1, spec.sign);
  if (spec.zero && !spec.align) {
    spec.align = '=';
    spec.fill = "0";
  }
  pad(out, spec, sign, body, '>');
  return in.step(0);
}

/// The first characters of a text, all of it for a negative count.
static std::string firstCharacters(std::string_view text, int64_t count) {
  return std::string(count < 0 ? text
                               : text.substr(0, characterOffset(text, count)));
}

bool Interpreter::formatPercent(std::string_view format, const Value &values,
                                Value &out) {
  Builder text(*this);
  size_t used = 0;
  bool isTuple = values.is(Kind::Tuple);
  size_t count = isTuple ? values.list().items.size() : 1;
  auto nextValue = [&](Value &value) {
    if (used >= count)
      return fail("not enough arguments for format string");
    value = isTuple ? values.list().items[used] : values;
    ++used;
    return true;
  };
  bool named = false;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      text.add(format.substr(i, 1));
      continue;
    }
    FormatSpec spec;
    Value value;
    bool keyed = false;
    auto at = [&]() { return i < format.size() ? format[i] : '\0'; };
    ++i;
    if (at() == '(') {
      size_t close = format.find(')', i);
      if (close == std::string_view::npos || !values.isDict())
        return fail("format requires a mapping");
      const Value *found =
          dictFind(values, format.substr(i + 1, close - i - 1));
      if (!found)
        return fail("no value for '" +
                    std::string(format.substr(i + 1, close - i - 1)) +
                    "' in a format");
      value = *found;
      named = keyed = true;
      i = close + 1;
    }
    for (;; ++i) {
      if (at() == '-')
        spec.align = '<';
      else if (at() == '0')
        spec.zero = true;
      else if (at() == '+')
        spec.sign = '+';
      else if (at() == ' ')
        spec.sign = spec.sign == '+' ? '+' : ' ';
      else if (at() == '#')
        spec.alternate = true;
      else
        break;
    }
    auto readCount = [&](int64_t &number) {
      if (at() == '*') {
        Value given;
        ++i;
        return nextValue(given) && wantInteger(given, "* in a format", number);
      }
      for (number = 0; at() >= '0' && at() <= '9' && number < mostWidth; ++i)
        number = number * 10 + (at() - '0');
      return true;
    };
    if (!readCount(spec.width))
      return false;
    if (at() == '.' && (++i, !readCount(spec.precision)))
      return false;
    if (spec.width > mostWidth || spec.precision > mostWidth)
      return fail("a format that is too wide");
    while (at() == 'l' || at() == 'h' || at() == 'L')
      ++i;
    char type = at();
    if (type == '%') {
      text.add("%");
      continue;
    }
    if (!keyed && !nextValue(value))
      return false;
    if (type == 's' || type == 'r' || type == 'a') {
      Builder piece(*this);
      if (!(type == 's' ? appendText(piece, value) : appendRepr(piece, value)))
        return false;
      pad(text, spec, "", firstCharacters(piece.out, spec.precision), '>');
    } else if (type == 'c' && value.isString()) {
      pad(text, spec, "", std::string(value.text()), '>');
    } else {
      if (!wantDefined(value))
        return false;
      if (!value.isNumber())
        return fail(std::string("%") + type +
                    " format: a real number is "
                    "required, not " +
                    value.typeName());
      spec.type = type == 'i' || type == 'u' ? 'd' : type;
      if (spec.type == 'd' && value.is(Kind::Float)) {
        if (!(std::fabs(value.real()) < 0x1p63))
          return fail("a number that is too large for %d");
        value = Value::integer(static_cast<int64_t>(value.real()));
      }
      if (spec.type == 0)
        return fail("incomplete format");
      if (!formatNumber(*this, text, value, spec))
        return false;
    }
  }
  if (used < count && isTuple && !named)
    return fail("not all arguments converted during string formatting");
  if (used == 0 && !isTuple && !values.isDict() && !values.hasItems() && !named)
    return fail("not all arguments converted during string formatting");
  out = text.take();
  return step(0);
}

/// The specification behind the colon of "{:>10}".
static bool parseSpec(Interpreter &in, std::string_view text,
                      FormatSpec &spec) {
  auto isAlign = [](char c) {
    return c == '<' || c == '>' || c == '^' || c == '=';
  };
  size_t first = characterOffset(text, 1);
  if (first < text.size() && first > 0 && isAlign(text[first])) {
    spec.fill = std::string(text.substr(0, first));
    spec.align = text[first];
    text.remove_prefix(first + 1);
  } else if (!text.empty() && isAlign(text[0])) {
    spec.align = text[0];
    text.remove_prefix(1);
  }
  auto skip = [&](char c) {
    if (text.empty() || text[0] != c)
      return false;
    text.remove_prefix(1);
    return true;
  };
  auto number = [&](int64_t &value) {
    for (value = 0;
         !text.empty() && text[0] >= '0' && text[0] <= '9' && value < mostWidth;
         text.remove_prefix(1))
      value = value * 10 + (text[0] - '0');
  };
  if (skip('+'))
    spec.sign = '+';
  else if (skip(' '))
    spec.sign = ' ';
  else
    skip('-');
  spec.alternate = skip('#');
  spec.zero = skip('0');
  number(spec.width);
  spec.comma = skip(',');
  spec.underscore = skip('_');
  if (skip('.'))
    number(spec.precision);
  if (!text.empty()) {
    spec.type = text[0];
    text.remove_prefix(1);
  }
  return (text.empty() && spec.width <= mostWidth &&
          spec.precision <= mostWidth) ||
         in.fail("invalid format specifier");
}

/// "{}", "{0}", "{name}", "{a.b[c]!r:>8}"
bool Interpreter::formatBraces(std::string_view format, const Arguments &args,
                               Value &out) {
  Builder text(*this);
  size_t automatic = 0;
  bool numbered = false;
  for (size_t i = 0; i < format.size(); ++i) {
    char c = format[i];
    if ((c == '{' || c == '}') && i + 1 < format.size() && format[i + 1] == c) {
      text.add(format.substr(i++, 1));
      continue;
    }
    if (c == '}')
      return fail("single '}' encountered in format string");
    if (c != '{') {
      text.add(format.substr(i, 1));
      continue;
    }
    size_t close = format.find('}', i);
    if (close == std::string_view::npos)
      return fail("expected '}' before end of string");
    std::string_view field = format.substr(i + 1, close - i - 1);
    i = close;
    std::string_view specText;
    size_t colon = field.find(':');
    if (colon != std::string_view::npos) {
      specText = field.substr(colon + 1);
      field = field.substr(0, colon);
    }
    char conversion = 0;
    size_t mark = field.find('!');
    if (mark != std::string_view::npos) {
      conversion = mark + 1 < field.size() ? field[mark + 1] : '?';
      field = field.substr(0, mark);
    }
    size_t end = std::min(field.find_first_of(".["), field.size());
    std::string_view name = field.substr(0, end);
    field.remove_prefix(end);
    Value value;
    bool isNumber =
        !name.empty() && name.size() < 6 &&
        name.find_first_not_of("0123456789") == std::string_view::npos;
    if (name.empty() || isNumber) {
      size_t index = name.empty() ? automatic++ : 0;
      numbered = numbered || !name.empty();
      if (numbered && automatic)
        return fail("numbered and unnumbered fields in one format");
      for (char digit : name)
        index = index * 10 + static_cast<size_t>(digit - '0');
      if (index >= args.positional.size())
        return fail("replacement index " + std::to_string(index) +
                    " out of range for positional args tuple");
      value = args.positional[index];
    } else {
      bool found = false;
      for (const auto &[key, given] : args.named)
        if (key == name) {
          value = given;
          found = true;
        }
      if (!found)
        return fail("a format names '" + std::string(name) +
                    "', which is not given");
    }
    while (!field.empty()) {
      bool isItem = field[0] == '[';
      field.remove_prefix(1);
      end = std::min(field.find_first_of(isItem ? "]" : ".["), field.size());
      std::string_view member = field.substr(0, end);
      field.remove_prefix(isItem ? std::min(end + 1, field.size()) : end);
      bool index =
          isItem && !member.empty() && member.size() < 10 &&
          member.find_first_not_of("0123456789") == std::string_view::npos;
      Value key = index
                      ? Value::integer(std::atoll(std::string(member).c_str()))
                      : newString(std::string(member));
      if (!(isItem ? getItem(value, key, value)
                   : getAttribute(value, member, value)))
        return false;
    }
    FormatSpec spec;
    if (!parseSpec(*this, specText, spec))
      return false;
    if (value.isNumber() && !conversion && !value.is(Kind::Bool)) {
      if (!formatNumber(*this, text, value, spec))
        return false;
      continue;
    }
    Builder piece(*this);
    if (!(conversion == 'r' ? appendRepr(piece, value)
                            : appendText(piece, value)))
      return false;
    if (spec.type && spec.type != 's')
      return fail(std::string("unknown format code '") + spec.type +
                  "' for object of type 'str'");
    pad(text, spec, "", firstCharacters(piece.out, spec.precision), '<');
  }
  out = text.take();
  return step(0);
}

} // namespace attune::runtime::jinja

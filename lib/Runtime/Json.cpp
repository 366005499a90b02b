//===- Json.cpp - A small strict JSON reader ------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Runtime/Json.h"
#include "attune/Runtime/Utf8.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <numeric>

namespace attune::runtime {

/// Bytes of the longest start of a character at the start of `text`, which is
/// not well-formed: they are replaced together.
static size_t brokenUtf8Length(std::string_view text) {
  auto at = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  unsigned lead = at(0);
  unsigned low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  unsigned high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  size_t length = lead >= 0xF0 && lead <= 0xF4   ? 4
                  : lead >= 0xE0 && lead <= 0xEF ? 3
                                                 : 1;
  if (length == 1 || at(1) < low || at(1) > high)
    return 1;
  size_t n = 2;
  while (n < length && (at(n) & 0xC0) == 0x80)
    ++n;
  return n;
}

std::string sanitizeUtf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    uint32_t c;
    unsigned n = decodeUtf8(text, c);
    if (n)
      out.append(text.data(), n);
    else
      appendUtf8(out, 0xFFFD);
    text.remove_prefix(n ? n : brokenUtf8Length(text));
  }
  return out;
}

const JsonValue *JsonValue::find(std::string_view key) const {
  if (kind != Kind::Object)
    return nullptr;
  for (size_t i = 0; i < keys.size(); ++i)
    if (keys[i] == key)
      return &items[i];
  return nullptr;
}

const char *JsonValue::kindName() const {
  switch (kind) {
  case Kind::Null:
    return "null";
  case Kind::Bool:
    return "a boolean";
  case Kind::Int:
    return "an integer";
  case Kind::Real:
    return "a number";
  case Kind::String:
    return "a string";
  case Kind::Array:
    return "an array";
  case Kind::Object:
    return "an object";
  }
  return "a value";
}

namespace {

class Parser {
public:
  Parser(std::string_view text, const JsonLimits &limits, std::string &error,
         size_t pos = 0)
      : text(text), limits(limits), error(error), pos(pos) {}

  bool parseDocument(JsonValue &value) {
    if (text.size() > limits.maxBytes)
      return fail("the text has " + std::to_string(text.size()) +
                  " bytes, more than the limit of " +
                  std::to_string(limits.maxBytes));
    skipSpace();
    if (!parseValue(value, 0))
      return false;
    skipSpace();
    return pos == text.size() || fail("expected the end of the text");
  }

  size_t position() const { return pos; }

private:
  std::string_view text;
  const JsonLimits &limits;
  std::string &error;
  size_t pos;
  size_t numValues = 0;

  bool fail(const std::string &what) {
    error = "byte " + std::to_string(pos) + ": " + what;
    return false;
  }

  int peek() const {
    return pos < text.size() ? static_cast<unsigned char>(text[pos]) : -1;
  }

  void skipSpace() {
    while (pos < text.size() && (text[pos] == ' ' || text[pos] == '\t' ||
                                 text[pos] == '\n' || text[pos] == '\r'))
      ++pos;
  }

  bool consume(char c) {
    if (peek() != static_cast<unsigned char>(c))
      return false;
    ++pos;
    return true;
  }

  bool parseWord(std::string_view word) {
    if (text.substr(pos, word.size()) != word)
      return fail("expected a JSON value");
    pos += word.size();
    return true;
  }

public:
  bool parseValue(JsonValue &value, unsigned depth) {
    if (++numValues > limits.maxValues)
      return fail("more than " + std::to_string(limits.maxValues) + " values");
    switch (peek()) {
    case -1:
      return fail("the text ends where a value is expected");
    case '{':
      return parseObject(value, depth + 1);
    case '[':
      return parseArray(value, depth + 1);
    case '"':
      value.kind = JsonValue::Kind::String;
      return parseString(value.string);
    case 't':
      value.kind = JsonValue::Kind::Bool;
      value.boolean = true;
      return parseWord("true");
    case 'f':
      value.kind = JsonValue::Kind::Bool;
      return parseWord("false");
    case 'n':
      return parseWord("null");
    default:
      return parseNumber(value);
    }
  }

private:
  bool enter(unsigned depth) {
    return depth <= limits.maxDepth ||
           fail("nested deeper than " + std::to_string(limits.maxDepth) +
                " levels");
  }

  bool parseArray(JsonValue &value, unsigned depth) {
    if (!enter(depth))
      return false;
    value.kind = JsonValue::Kind::Array;
    ++pos;
    skipSpace();
    if (consume(']'))
      return true;
    do {
      skipSpace();
      value.items.emplace_back();
      if (!parseValue(value.items.back(), depth))
        return false;
      skipSpace();
    } while (consume(','));
    return consume(']') || fail("expected ',' or ']'");
  }

  bool parseObject(JsonValue &value, unsigned depth) {
    if (!enter(depth))
      return false;
    value.kind = JsonValue::Kind::Object;
    ++pos;
    skipSpace();
    if (consume('}'))
      return true;
    do {
      skipSpace();
      if (peek() != '"')
        return fail("expected a member name in quotes");
      value.keys.emplace_back();
      if (!parseString(value.keys.back()))
        return false;
      skipSpace();
      if (!consume(':'))
        return fail("expected ':'");
      skipSpace();
      value.items.emplace_back();
      if (!parseValue(value.items.back(), depth))
        return false;
      skipSpace();
    } while (consume(','));
    if (!consume('}'))
      return fail("expected ',' or '}'");
    return !limits.uniqueKeys || checkUnique(value);
  }

  bool checkUnique(const JsonValue &value) {
    std::vector<uint32_t> order(value.keys.size());
    std::iota(order.begin(), order.end(), 0u);
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      return value.keys[a] < value.keys[b];
    });
    for (size_t i = 1; i < order.size(); ++i)
      if (value.keys[order[i - 1]] == value.keys[order[i]])
        return fail("the object that ends here names '" +
                    value.keys[order[i]].substr(0, 80) + "' twice");
    return true;
  }

  bool parseHex4(uint32_t &value) {
    value = 0;
    for (int i = 0; i < 4; ++i, ++pos) {
      int c = peek();
      unsigned digit;
      if (c >= '0' && c <= '9')
        digit = c - '0';
      else if (c >= 'a' && c <= 'f')
        digit = c - 'a' + 10;
      else if (c >= 'A' && c <= 'F')
        digit = c - 'A' + 10;
      else
        return fail("expected four hexadecimal digits");
      value = value << 4 | digit;
    }
    return true;
  }

  bool parseEscape(std::string &out) {
    ++pos;
    int c = peek();
    ++pos;
    switch (c) {
    case '"':
    case '\\':
    case '/':
      out += static_cast<char>(c);
      return true;
    case 'b':
      out += '\b';
      return true;
    case 'f':
      out += '\f';
      return true;
    case 'n':
      out += '\n';
      return true;
    case 'r':
      out += '\r';
      return true;
    case 't':
      out += '\t';
      return true;
    case 'u':
      break;
    default:
      --pos;
      return fail("unknown escape in a string");
    }
    uint32_t unit, low;
    if (!parseHex4(unit))
      return false;
    if (unit >= 0xD800 && unit <= 0xDBFF) {
      if (text.substr(pos, 2) != "\\u")
        return fail("a high surrogate without its low surrogate");
      pos += 2;
      if (!parseHex4(low))
        return false;
      if (low < 0xDC00 || low > 0xDFFF)
        return fail("a high surrogate without its low surrogate");
      unit = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
    } else if (unit >= 0xDC00 && unit <= 0xDFFF) {
      return fail("a low surrogate without its high surrogate");
    }
    appendUtf8(out, unit);
    return true;
  }

public:
  bool parseString(std::string &out) {
    ++pos;
    for (;;) {
      size_t start = pos;
      while (pos < text.size() && text[pos] != '"' && text[pos] != '\\' &&
             static_cast<unsigned char>(text[pos]) >= 0x20 &&
             static_cast<unsigned char>(text[pos]) < 0x80)
        ++pos;
      out.append(text.data() + start, pos - start);
      int c = peek();
      if (c == -1)
        return fail("the text ends inside a string");
      if (c == '"') {
        ++pos;
        return true;
      }
      if (c == '\\') {
        if (!parseEscape(out))
          return false;
        continue;
      }
      if (c < 0x20)
        return fail("a control character inside a string");
      uint32_t codePoint;
      unsigned n = decodeUtf8(text.substr(pos), codePoint);
      if (!n)
        return fail("a string that is not UTF-8");
      out.append(text.data() + pos, n);
      pos += n;
    }
  }

private:
  /// The grammar of RFC 8259. Reals are read in extended precision, which is
  /// within an ulp; nothing here depends on the process's locale.
  bool parseNumber(JsonValue &value) {
    size_t start = pos;
    bool negative = consume('-');
    if (peek() < '0' || peek() > '9') {
      pos = start;
      return fail("expected a JSON value");
    }
    uint64_t whole = 0;
    bool fits = true;
    long double mantissa = 0;
    long exponent = 0;
    // More digits than these say nothing, but would overflow.
    constexpr long double enough = 1e40L;
    auto digit = [&] { return peek() >= '0' && peek() <= '9'; };
    if (consume('0')) {
      if (digit())
        return fail("a number with a leading zero");
    } else {
      for (; digit(); ++pos) {
        unsigned d = text[pos] - '0';
        fits = fits && !__builtin_mul_overflow(whole, uint64_t(10), &whole) &&
               !__builtin_add_overflow(whole, uint64_t(d), &whole);
        if (mantissa < enough)
          mantissa = mantissa * 10 + d;
        else
          ++exponent;
      }
    }
    bool isInteger = true;
    if (consume('.')) {
      isInteger = false;
      if (!digit())
        return fail("expected a digit after the decimal point");
      for (; digit(); ++pos) {
        if (mantissa >= enough)
          continue;
        mantissa = mantissa * 10 + (text[pos] - '0');
        --exponent;
      }
    }
    if (peek() == 'e' || peek() == 'E') {
      ++pos;
      isInteger = false;
      bool down = consume('-');
      if (!down)
        consume('+');
      if (!digit())
        return fail("expected a digit in the exponent");
      long written = 0;
      for (; digit(); ++pos)
        written = std::min(written * 10 + (text[pos] - '0'), 1L << 40);
      exponent += down ? -written : written;
    }
    uint64_t limit = uint64_t(INT64_MAX) + (negative ? 1 : 0);
    if (isInteger && fits && whole <= limit) {
      value.kind = JsonValue::Kind::Int;
      value.integer = negative ? static_cast<int64_t>(0 - whole)
                               : static_cast<int64_t>(whole);
      value.real = static_cast<double>(value.integer);
      return true;
    }
    long double scale = 1, base = 10;
    for (unsigned long e = exponent < 0 ? -exponent : exponent; e; e >>= 1) {
      if (e & 1)
        scale *= base;
      base *= base;
    }
    if (mantissa != 0)
      mantissa = exponent < 0 ? mantissa / scale : mantissa * scale;
    value.kind = JsonValue::Kind::Real;
    value.real = static_cast<double>(negative ? -mantissa : mantissa);
    return true;
  }
};

} // namespace

bool parseJson(std::string_view text, JsonValue &result, std::string &error,
               const JsonLimits &limits) {
  result = JsonValue();
  return Parser(text, limits, error).parseDocument(result);
}

//===----------------------------------------------------------------------===//
// JsonReader
//===----------------------------------------------------------------------===//

bool JsonReader::fail(const std::string &what) {
  if (error.empty())
    error = what;
  return false;
}

void JsonReader::skipSpace() {
  while (position < text.size() &&
         (text[position] == ' ' || text[position] == '\t' ||
          text[position] == '\n' || text[position] == '\r'))
    ++position;
}

int JsonReader::peek() {
  skipSpace();
  return position < text.size() ? static_cast<unsigned char>(text[position])
                                : -1;
}

bool JsonReader::enter(char open, const char *expected) {
  if (failed() || peek() != open)
    return fail(expected);
  ++position;
  fresh = true;
  return true;
}

bool JsonReader::next(char close, const char *expected) {
  if (failed())
    return false;
  int c = peek();
  if (c == close) {
    ++position;
    fresh = false;
    return false;
  }
  if (!fresh) {
    if (c != ',')
      return fail(c < 0 ? "the text ends too early" : expected);
    ++position;
  }
  fresh = false;
  return true;
}

bool JsonReader::nextMember(std::string &key) {
  if (!next('}', "expected ',' or '}'"))
    return false;
  if (peek() != '"')
    return fail("expected a member name in quotes");
  if (!readString(key))
    return false;
  if (peek() != ':')
    return fail("expected ':'");
  ++position;
  return true;
}

/// Messages of the parser start with the byte, which `position` has.
static std::string withoutPlace(const std::string &error) {
  return error.substr(error.find(": ") + 2);
}

bool JsonReader::read(JsonValue &value) {
  if (failed())
    return false;
  skipSpace();
  value = JsonValue();
  std::string problem;
  Parser parser(text, limits, problem, position);
  bool good = parser.parseValue(value, 0);
  position = parser.position();
  return good || fail(withoutPlace(problem));
}

bool JsonReader::readString(std::string &value) {
  if (failed() || peek() != '"')
    return fail("expected a string");
  value.clear();
  std::string problem;
  Parser parser(text, limits, problem, position);
  bool good = parser.parseString(value);
  position = parser.position();
  return good || fail(withoutPlace(problem));
}

bool JsonReader::readIndex(uint64_t most, uint64_t &value) {
  if (failed())
    return false;
  int c = peek();
  size_t begin = position;
  for (value = 0; c >= '0' && c <= '9' && value <= most;
       c = ++position < text.size() ? text[position] : -1)
    value = value * 10 + static_cast<uint64_t>(c - '0');
  bool good =
      position > begin && value <= most && c != '.' && c != 'e' && c != 'E';
  if (!good)
    position = begin;
  return good ||
         fail("expected a whole number from 0 to " + std::to_string(most));
}

bool JsonReader::skip(std::string_view &value) {
  if (failed())
    return false;
  skipSpace();
  size_t begin = position;
  unsigned depth = 0;
  do {
    int c = peek();
    if (c < 0)
      return fail("the text ends where a value is expected");
    if (c == '"') {
      for (++position;; ++position) {
        while (position < text.size() && text[position] != '"' &&
               text[position] != '\\')
          ++position;
        if (position >= text.size())
          return fail("the text ends inside a string");
        if (text[position] == '"')
          break;
        ++position;
      }
      ++position;
    } else if (c == '{' || c == '[') {
      if (++depth > limits.maxDepth)
        return fail("nested deeper than " + std::to_string(limits.maxDepth) +
                    " levels");
      ++position;
    } else if (c == '}' || c == ']') {
      if (depth == 0)
        return fail("expected a JSON value");
      --depth;
      ++position;
    } else if (depth && (c == ',' || c == ':')) {
      ++position;
    } else {
      size_t start = position;
      position = std::min(text.find_first_of(",:]}[{\" \t\n\r", start),
                          text.size()); // a number or a word
      if (position == start)
        return fail("expected a JSON value");
    }
  } while (depth);
  value = text.substr(begin, position - begin);
  return true;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

void appendJsonString(std::string &out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    uint32_t c;
    unsigned n = decodeUtf8(text, c);
    if (!n) {
      appendUtf8(out, 0xFFFD);
      n = 1;
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c < 0x20 || c == 0x7F) {
      char buffer[8];
      std::snprintf(buffer, sizeof(buffer), "\\u%04x", c);
      out += buffer;
    } else {
      out.append(text.data(), n);
    }
    text.remove_prefix(n);
  }
  out += '"';
}

void appendJson(std::string &out, const JsonValue &value) {
  switch (value.kind) {
  case JsonValue::Kind::Null:
    out += "null";
    return;
  case JsonValue::Kind::Bool:
    out += value.boolean ? "true" : "false";
    return;
  case JsonValue::Kind::Int:
    out += std::to_string(value.integer);
    return;
  case JsonValue::Kind::Real: {
    char buffer[40];
    std::snprintf(buffer, sizeof(buffer), "%.17g", value.real);
    // JSON has no infinities; a number too large to hold is written as such.
    bool finite = value.real - value.real == 0;
    out += finite ? buffer : value.real < 0 ? "-1e999" : "1e999";
    // It stays a number that is not an integer when it is read again.
    if (finite && !std::strpbrk(buffer, ".e"))
      out += ".0";
    return;
  }
  case JsonValue::Kind::String:
    appendJsonString(out, value.string);
    return;
  case JsonValue::Kind::Array:
  case JsonValue::Kind::Object: {
    bool object = value.isObject();
    out += object ? '{' : '[';
    for (size_t i = 0; i < value.items.size(); ++i) {
      if (i)
        out += ',';
      if (object) {
        appendJsonString(out, value.keys[i]);
        out += ':';
      }
      appendJson(out, value.items[i]);
    }
    out += object ? '}' : ']';
    return;
  }
  }
}

} // namespace attune::runtime

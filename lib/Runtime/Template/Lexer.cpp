//===- Lexer.cpp - Tokens of a template -----------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lexer.h"

#include "attune/Runtime/Utf8.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace attune::runtime::jinja {

std::string normalizeLines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out += source[i];
      continue;
    }
    out += '\n';
    if (i + 1 < source.size() && source[i + 1] == '\n')
      ++i;
  }
  if (!out.empty() && out.back() == '\n')
    out.pop_back();
  return out;
}

void setPosition(std::string_view source, size_t offset,
                 TemplateProblem &problem) {
  offset = std::min(offset, source.size());
  std::string_view before = source.substr(0, offset);
  problem.line =
      1 + static_cast<unsigned>(std::count(before.begin(), before.end(), '\n'));
  size_t start = before.rfind('\n');
  start = start == std::string_view::npos ? 0 : start + 1;
  problem.column = static_cast<unsigned>(offset - start) + 1;
}

unsigned spaceAt(std::string_view text) {
  uint32_t c;
  unsigned n = decodeUtf8(text, c);
  if (!n)
    return 0;
  bool space = (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) ||
               c == 0x85 || c == 0xA0 || c == 0x1680 ||
               (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
               c == 0x202F || c == 0x205F || c == 0x3000;
  return space ? n : 0;
}

std::string_view trimLeft(std::string_view text) {
  while (unsigned n = spaceAt(text))
    text.remove_prefix(n);
  return text;
}

std::string_view trimRight(std::string_view text) {
  for (;;) {
    size_t start = text.size();
    while (start > 0 && start + 4 > text.size()) {
      --start;
      if ((text[start] & 0xC0) != 0x80)
        break;
    }
    if (start == text.size() ||
        spaceAt(text.substr(start)) != text.size() - start)
      return text;
    text = text.substr(0, start);
  }
}

namespace {

class Lexer {
public:
  Lexer(std::string_view source, std::vector<Token> &tokens,
        TemplateProblem &problem)
      : source(source), tokens(tokens), problem(problem) {}

  bool run();

private:
  std::string_view source;
  std::vector<Token> &tokens;
  TemplateProblem &problem;
  size_t pos = 0;
  size_t counted = 0, lineBegin = 0;
  unsigned line = 1;
  /// Whether what comes next begins a line of the source.
  bool lineStarting = true;

  bool fail(size_t offset, const std::string &message) {
    problem.message = message;
    setPosition(source, offset, problem);
    return false;
  }
  bool startsWith(std::string_view text) const {
    return source.substr(pos, text.size()) == text;
  }
  void add(TokenKind kind, size_t offset, std::string text = std::string()) {
    Token token;
    token.kind = kind;
    token.offset = offset;
    token.text = std::move(text);
    // Tokens come in the order of the text.
    for (; counted < offset; ++counted)
      if (source[counted] == '\n') {
        ++line;
        lineBegin = counted + 1;
      }
    token.line = line;
    token.column = static_cast<unsigned>(offset - lineBegin) + 1;
    tokens.push_back(std::move(token));
  }

  void addData(size_t begin, size_t end, char sign, bool isVariable);
  size_t skipSpace(size_t at) const {
    while (unsigned n = spaceAt(source.substr(at)))
      at += n;
    return at;
  }
  /// The tag's end at `at` ("%}", "-%}" or "+%}"): where what follows it
  /// begins, or npos.
  size_t tagEnd(size_t at, std::string_view close, bool trims,
                bool takesPlus) const;
  size_t findRawBegin(size_t at, char &sign) const;
  bool lexComment(size_t contentBegin);
  bool lexRaw(size_t contentBegin, size_t tagBegin);
  bool lexTag(bool isVariable);
  bool lexString();
  bool lexNumber();
  bool lexName();
  bool lexOperator(std::string &brackets);
  bool unescape(std::string_view text, size_t offset, std::string &out);
};

} // namespace

/// Template text before a tag: what the tag's sign and lstrip_blocks leave.
void Lexer::addData(size_t begin, size_t end, char sign, bool isVariable) {
  std::string_view text = source.substr(begin, end - begin);
  if (sign == '-') {
    text = trimRight(text);
  } else if (sign != '+' && !isVariable) {
    size_t last = text.rfind('\n');
    size_t line = last == std::string_view::npos ? 0 : last + 1;
    if ((line > 0 || lineStarting) && line < text.size() &&
        trimLeft(text.substr(line)).empty())
      text = text.substr(0, line);
  }
  if (!text.empty())
    add(TokenKind::Data, begin, std::string(text));
}

size_t Lexer::tagEnd(size_t at, std::string_view close, bool trims,
                     bool takesPlus) const {
  auto closes = [&](size_t i) {
    return source.substr(i, close.size()) == close;
  };
  if (takesPlus && at < source.size() && source[at] == '+' && closes(at + 1))
    return at + 1 + close.size();
  if (at < source.size() && source[at] == '-' && closes(at + 1))
    return skipSpace(at + 1 + close.size());
  if (!closes(at))
    return std::string_view::npos;
  at += close.size();
  return trims && at < source.size() && source[at] == '\n' ? at + 1 : at;
}

/// At "{%": where the content of a raw block begins, or npos.
size_t Lexer::findRawBegin(size_t at, char &sign) const {
  at += 2;
  sign = at < source.size() && (source[at] == '-' || source[at] == '+')
             ? source[at]
             : 0;
  at = skipSpace(sign ? at + 1 : at);
  if (source.substr(at, 3) != "raw")
    return std::string_view::npos;
  at = skipSpace(at + 3);
  return tagEnd(at, "%}", /*trims=*/false, /*takesPlus=*/false);
}

bool Lexer::lexComment(size_t contentBegin) {
  size_t close = source.find("#}", contentBegin);
  if (close == std::string_view::npos)
    return fail(pos, "a comment that does not end; expected '#}'");
  // The sign before the end belongs to it.
  if (close > contentBegin &&
      (source[close - 1] == '-' || source[close - 1] == '+'))
    --close;
  pos = tagEnd(close, "#}", /*trims=*/true, /*takesPlus=*/true);
  lineStarting = source[pos - 1] == '\n';
  return true;
}

bool Lexer::lexRaw(size_t contentBegin, size_t tagBegin) {
  lineStarting = source[contentBegin - 1] == '\n';
  for (size_t at = contentBegin;; ++at) {
    at = source.find("{%", at);
    if (at == std::string_view::npos)
      return fail(tagBegin, "a raw block that does not end; expected "
                            "'{% endraw %}'");
    size_t next = at + 2;
    char sign =
        next < source.size() && (source[next] == '-' || source[next] == '+')
            ? source[next]
            : 0;
    next = skipSpace(sign ? next + 1 : next);
    if (source.substr(next, 6) != "endraw")
      continue;
    next = tagEnd(skipSpace(next + 6), "%}", /*trims=*/true,
                  /*takesPlus=*/true);
    if (next == std::string_view::npos)
      continue;
    addData(contentBegin, at, sign, /*isVariable=*/false);
    pos = next;
    lineStarting = source[pos - 1] == '\n';
    return true;
  }
}

static bool isNameStart(unsigned char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         c >= 0x80;
}
static bool isDigit(unsigned char c) { return c >= '0' && c <= '9'; }

static int digitValue(char c) {
  if (c >= '0' && c <= '9')
    return c - '0';
  if (c >= 'a' && c <= 'f')
    return c - 'a' + 10;
  if (c >= 'A' && c <= 'F')
    return c - 'A' + 10;
  return -1;
}

/// The escapes of Python's "unicode-escape"; one that it does not know stays
/// as it is written.
bool Lexer::unescape(std::string_view text, size_t offset, std::string &out) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    size_t start = i;
    char c = text[++i];
    static const std::string_view letters = "\\'\"abfnrtv",
                                  values = "\\'\"\a\b\f\n\r\t\v";
    size_t simple = letters.find(c);
    int digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (simple != std::string_view::npos) {
      out += values[simple];
    } else if (c == '\n') {
      continue;
    } else if (c >= '0' && c <= '7') {
      uint32_t value = 0;
      size_t end = std::min(i + 3, text.size());
      for (; i < end && text[i] >= '0' && text[i] <= '7'; ++i)
        value = value * 8 + static_cast<uint32_t>(text[i] - '0');
      --i;
      appendUtf8(out, value);
    } else if (digits) {
      uint64_t value = 0;
      for (int d = 0; d < digits; ++d) {
        int digit = i + 1 < text.size() ? digitValue(text[i + 1]) : -1;
        if (digit < 0)
          return fail(offset + start, "a truncated escape in a string; '\\" +
                                          std::string(1, c) + "' takes " +
                                          std::to_string(digits) +
                                          " hexadecimal digits");
        value = value * 16 + static_cast<uint64_t>(digit);
        ++i;
      }
      if (value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF))
        return fail(offset + start, "an escape that is no character");
      appendUtf8(out, static_cast<uint32_t>(value));
    } else if (c == 'N') {
      return fail(offset + start, "a character by its Unicode name, which "
                                  "templates of this compiler cannot use; "
                                  "write it as it is");
    } else if (static_cast<unsigned char>(c) >= 0x80) {
      // Python spells the character as an escape before it reads escapes.
      uint32_t code = 0;
      unsigned n = decodeUtf8(text.substr(i), code);
      char buffer[16];
      std::snprintf(buffer, sizeof(buffer),
                    code < 0x100     ? "\\x%02x"
                    : code < 0x10000 ? "\\u%04x"
                                     : "\\U%08x",
                    code);
      out += buffer;
      i += std::max(n, 1u) - 1;
    } else {
      out += '\\';
      out += c;
    }
  }
  return true;
}

bool Lexer::lexString() {
  char quote = source[pos];
  size_t end = pos + 1;
  while (end < source.size() && source[end] != quote)
    end += source[end] == '\\' ? 2 : 1;
  if (end >= source.size())
    return fail(pos, "a string that does not end");
  std::string value;
  if (!unescape(source.substr(pos + 1, end - pos - 1), pos + 1, value))
    return false;
  add(TokenKind::String, pos, std::move(value));
  pos = end + 1;
  return true;
}

bool Lexer::lexNumber() {
  size_t begin = pos;
  auto digitsFrom = [&](size_t at, auto isOne) {
    while (at < source.size() &&
           (isOne(source[at]) ||
            (source[at] == '_' && at > begin && at + 1 < source.size() &&
             isOne(source[at + 1]))))
      ++at;
    return at;
  };
  auto decimal = [](char c) { return isDigit(static_cast<unsigned char>(c)); };
  int base = 10;
  if (source[pos] == '0' && pos + 2 < source.size()) {
    char prefix = source[pos + 1];
    base = prefix == 'x' || prefix == 'X'   ? 16
           : prefix == 'o' || prefix == 'O' ? 8
           : prefix == 'b' || prefix == 'B' ? 2
                                            : 10;
  }
  size_t end;
  bool isReal = false;
  if (base != 10) {
    end = digitsFrom(pos + 2, [&](char c) {
      int digit = digitValue(c);
      return digit >= 0 && digit < base;
    });
    begin += 2;
  } else {
    end = digitsFrom(pos, decimal);
    // A point makes a number only between digits and not after one: a.0.1.
    bool afterDot = pos > 0 && source[pos - 1] == '.';
    if (!afterDot && end + 1 < source.size() && source[end] == '.' &&
        decimal(source[end + 1])) {
      isReal = true;
      end = digitsFrom(end + 1, decimal);
    }
    size_t e = end;
    if (!afterDot && e < source.size() &&
        (source[e] == 'e' || source[e] == 'E')) {
      ++e;
      if (e < source.size() && (source[e] == '+' || source[e] == '-'))
        ++e;
      if (e < source.size() && decimal(source[e])) {
        isReal = true;
        end = digitsFrom(e, decimal);
      }
    }
  }
  std::string digits;
  for (char c : source.substr(begin, end - begin))
    if (c != '_')
      digits += c;
  if (digits.size() > 400)
    return fail(pos, "a number of more than 400 digits");
  add(isReal ? TokenKind::Float : TokenKind::Int, pos);
  Token &token = tokens.back();
  if (isReal) {
    token.real = std::strtod(digits.c_str(), nullptr);
  } else {
    for (char c : digits)
      if (__builtin_mul_overflow(token.integer, int64_t(base),
                                 &token.integer) ||
          __builtin_add_overflow(token.integer, int64_t(digitValue(c)),
                                 &token.integer))
        return fail(pos, "a whole number beyond 64 bits");
    if (base == 10 && digits.size() > 1 && digits[0] == '0' &&
        token.integer != 0)
      return fail(pos, "a whole number that starts with 0");
  }
  pos = end;
  return true;
}

bool Lexer::lexName() {
  size_t end = pos;
  while (end < source.size() &&
         (isNameStart(static_cast<unsigned char>(source[end])) ||
          isDigit(static_cast<unsigned char>(source[end])))) {
    uint32_t code;
    unsigned n = decodeUtf8(source.substr(end), code);
    if (!n || spaceAt(source.substr(end)))
      break;
    end += n;
  }
  if (end == pos)
    return fail(pos, "a byte that is not UTF-8");
  add(TokenKind::Name, pos, std::string(source.substr(pos, end - pos)));
  pos = end;
  return true;
}

bool Lexer::lexOperator(std::string &brackets) {
  static const std::string_view operators[] = {
      "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
      "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};
  for (std::string_view op : operators) {
    if (!startsWith(op))
      continue;
    char c = op[0];
    if (c == '(' || c == '[' || c == '{')
      brackets += c == '(' ? ')' : c == '[' ? ']' : '}';
    if (c == ')' || c == ']' || c == '}') {
      if (brackets.empty())
        return fail(pos, "unexpected '" + std::string(op) + "'");
      if (brackets.back() != c)
        return fail(pos, "unexpected '" + std::string(op) + "'; expected '" +
                             std::string(1, brackets.back()) + "'");
      brackets.pop_back();
    }
    add(TokenKind::Operator, pos, std::string(op));
    pos += op.size();
    return true;
  }
  return fail(pos,
              "unexpected character '" + std::string(1, source[pos]) + "'");
}

/// From behind "{{" or "{%" and its sign to behind the end of the tag.
bool Lexer::lexTag(bool isVariable) {
  size_t begin = tokens.back().offset;
  std::string_view close = isVariable ? "}}" : "%}";
  std::string brackets;
  for (;;) {
    if (brackets.empty()) {
      size_t end = tagEnd(pos, close, /*trims=*/!isVariable,
                          /*takesPlus=*/!isVariable);
      if (end != std::string_view::npos) {
        add(isVariable ? TokenKind::VariableEnd : TokenKind::BlockEnd, pos);
        pos = end;
        lineStarting = source[pos - 1] == '\n';
        return true;
      }
    }
    if (pos >= source.size())
      return fail(begin, "a tag that does not end; expected '" +
                             std::string(close) + "'");
    auto c = static_cast<unsigned char>(source[pos]);
    if (unsigned n = spaceAt(source.substr(pos))) {
      pos += n;
    } else if (isDigit(c)) {
      if (!lexNumber())
        return false;
    } else if (isNameStart(c)) {
      if (!lexName())
        return false;
    } else if (c == '"' || c == '\'') {
      if (!lexString())
        return false;
    } else if (!lexOperator(brackets)) {
      return false;
    }
  }
}

bool Lexer::run() {
  while (pos < source.size()) {
    size_t begin = pos, at = pos;
    for (;; ++at) {
      at = source.find('{', at);
      if (at == std::string_view::npos || at + 1 >= source.size()) {
        add(TokenKind::Data, begin, std::string(source.substr(begin)));
        pos = source.size();
        add(TokenKind::End, pos);
        return true;
      }
      char kind = source[at + 1];
      if (kind == '{' || kind == '%' || kind == '#')
        break;
    }
    char kind = source[at + 1];
    char sign = 0;
    if (kind == '%') {
      size_t content = findRawBegin(at, sign);
      if (content != std::string_view::npos) {
        addData(begin, at, sign, /*isVariable=*/false);
        if (!lexRaw(content, at))
          return false;
        continue;
      }
    }
    sign = at + 2 < source.size() ? source[at + 2] : '\0';
    if (sign != '-' && sign != '+')
      sign = 0;
    addData(begin, at, sign, kind == '{');
    pos = at;
    lineStarting = false;
    if (kind == '#') {
      if (!lexComment(at + 2 + (sign ? 1 : 0)))
        return false;
      continue;
    }
    add(kind == '{' ? TokenKind::VariableBegin : TokenKind::BlockBegin, at);
    pos = at + 2 + (sign ? 1 : 0);
    if (!lexTag(kind == '{'))
      return false;
  }
  add(TokenKind::End, pos);
  return true;
}

bool tokenize(std::string_view source, std::vector<Token> &tokens,
              TemplateProblem &problem) {
  return Lexer(source, tokens, problem).run();
}

} // namespace attune::runtime::jinja

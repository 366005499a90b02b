//===- HtmlFilters.cpp - Filters of HTML ----------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Text/Regex.h"
#include "Filters.h"
#include "Lexer.h"
#include "Text.h"

#include "attune/Runtime/Utf8.h"

#include "EntityTable.inc"

#include <algorithm>

namespace attune::runtime::jinja {

/// escape(str(value)); what is marked as safe stays as it is.
static bool escaped(const FilterCall &call, const Value &value,
                    std::string &out) {
  Value text;
  if (!call.in.toText(value, text))
    return false;
  Interpreter::Builder builder(call.in);
  if (text.isMarkup())
    builder.add(text.text());
  else
    escapeHtml(builder, text.text());
  out = std::move(builder.out);
  return call.in.step(out.size() / 16);
}

//===----------------------------------------------------------------------===//
// striptags
//===----------------------------------------------------------------------===//

/// What a name with or without ';' stands for; false if there is none.
static bool findEntity(std::string_view name, std::string_view &text) {
  std::string_view table(entityTable, sizeof(entityTable) - 1);
  size_t low = 0, high = table.size();
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    size_t begin =
        middle == 0 ? std::string_view::npos : table.rfind('\2', middle - 1);
    begin = begin == std::string_view::npos || begin < low ? low : begin + 1;
    size_t split = table.find('\1', begin), end = table.find('\2', split);
    int order = table.substr(begin, split - begin).compare(name);
    if (order == 0) {
      text = table.substr(split + 1, end - split - 1);
      return true;
    }
    if (order < 0)
      low = end + 1;
    else
      high = begin;
  }
  return false;
}

/// The character that "&#...;" stands for, by the rules of HTML 5.
static void appendNumbered(std::string &out, uint32_t number) {
  static constexpr uint16_t windows1252[32] = {
      0x20AC, 0x81,   0x201A, 0x192,  0x201E, 0x2026, 0x2020, 0x2021,
      0x2C6,  0x2030, 0x160,  0x2039, 0x152,  0x8D,   0x17D,  0x8F,
      0x90,   0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014,
      0x2DC,  0x2122, 0x161,  0x203A, 0x153,  0x9D,   0x17E,  0x178};
  if (number >= 0x80 && number <= 0x9F)
    return appendUtf8(out, windows1252[number - 0x80]);
  if (number == 0 || (number >= 0xD800 && number <= 0xDFFF) ||
      number > 0x10FFFF)
    return appendUtf8(out, 0xFFFD);
  bool invalid = number <= 8 || number == 0xB ||
                 (number >= 0xE && number <= 0x1F) || number == 0x7F ||
                 (number >= 0xFDD0 && number <= 0xFDEF) ||
                 (number & 0xFFFE) == 0xFFFE;
  if (!invalid)
    appendUtf8(out, number);
}

/// Replaces a reference to a character behind an '&' at the start of `text`;
/// gives the number of bytes that it takes, 0 if it is none.
static size_t unescapeNumber(std::string &out, std::string_view text) {
  bool hex = text.size() > 1 && (text[1] | 32) == 'x';
  size_t first = hex ? 2 : 1, at = first;
  uint32_t number = 0;
  for (; at < text.size(); ++at) {
    char c = text[at], lower = static_cast<char>(c | 32);
    uint32_t digit;
    if (c >= '0' && c <= '9')
      digit = static_cast<uint32_t>(c - '0');
    else if (hex && lower >= 'a' && lower <= 'f')
      digit = static_cast<uint32_t>(lower - 'a' + 10);
    else
      break;
    number = std::min<uint32_t>(number * (hex ? 16 : 10) + digit, 0x110000);
  }
  if (at == first)
    return 0;
  appendNumbered(out, number);
  return at + (at < text.size() && text[at] == ';');
}

/// The longest name counts, with its ';' or without.
static size_t unescapeName(std::string &out, std::string_view text) {
  // A name is up to 32 of these characters; all known ones are ASCII.
  size_t end = 0;
  for (int64_t count = 0; end < text.size() && count < 32; ++count) {
    if (std::string_view("\t\n\f <&#;").find(text[end]) !=
        std::string_view::npos)
      break;
    end += characterOffset(text.substr(end), 1);
  }
  if (end == 0)
    return 0;
  end += end < text.size() && text[end] == ';';
  std::string_view found;
  for (size_t size = end; size > 1; --size)
    if (findEntity(text.substr(0, size), found)) {
      out += found;
      return size;
    }
  return 0;
}

/// html.unescape of Python.
static std::string unescape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    if (text[at] != '&') {
      out += text[at++];
      continue;
    }
    std::string_view rest = text.substr(at + 1);
    size_t taken = rest.empty()     ? 0
                   : rest[0] == '#' ? unescapeNumber(out, rest)
                                    : unescapeName(out, rest);
    if (taken == 0)
      out += '&';
    at += 1 + taken;
  }
  return out;
}

/// Comments go first. What stands around one may make another.
static std::string withoutComments(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size(); ++at) {
    out += text[at];
    if (out.size() < 4 || out.compare(out.size() - 4, 4, "<!--") != 0)
      continue;
    std::string_view rest = text.substr(at + 1);
    size_t end;
    // The hyphens that open a comment may close it.
    if (rest.substr(0, 1) == ">")
      end = 1;
    else if (rest.substr(0, 2) == "->")
      end = 2;
    else if ((end = rest.find("-->")) != std::string_view::npos)
      end += 3;
    else
      return out.append(rest);
    out.resize(out.size() - 4);
    at += end;
  }
  return out;
}

static bool applyStripTags(const FilterCall &call) {
  Value text;
  if (!call.in.bind(call.what(), call.args, {}, 0, nullptr, nullptr) ||
      !call.in.toText(call.input, text))
    return false;
  std::string bare = withoutComments(text.text()), plain;
  std::string_view rest = bare;
  size_t start;
  while ((start = rest.find('<')) != std::string_view::npos) {
    size_t end = rest.find('>', start);
    if (end == std::string_view::npos)
      break;
    plain += rest.substr(0, start);
    rest.remove_prefix(end + 1);
  }
  plain += rest;
  std::string words;
  for (std::string_view left = trimLeft(plain); !left.empty();
       left = trimLeft(left)) {
    size_t end = 0;
    while (end < left.size() && !spaceAt(left.substr(end)))
      ++end;
    words += words.empty() ? "" : " ";
    words += left.substr(0, end);
    left.remove_prefix(end);
  }
  call.out = call.in.newString(unescape(words));
  return call.in.step(text.text().size() / 4);
}

//===----------------------------------------------------------------------===//
// urlize
//===----------------------------------------------------------------------===//

/// Jinja's patterns: \w is a letter, a number or "_", and [a-z] without regard
/// to case holds four characters beyond ASCII.
#define WORD R"([\p{L}\p{N}_])"
#define WORD_ANY R"([\p{L}\p{N}_%-])"
#define HTTP R"([hH][tT][tT][pP][sSſ]?://)"
#define I R"([iIıİ])"
#define HEX R"([\p{Nd}a-fA-F]{0,4})"
static constexpr std::string_view httpPattern =
    R"(\A(?:(?:)" HTTP R"(|[wW]{3}\.)(?:)" WORD_ANY
    R"(+\.)*(?:[a-zA-ZſKıİ]{2,63}|[xX][nN]--[\p{L}\p{N}_%]{2,59}))"
    R"(|(?:)" WORD_ANY R"({2,63}\.)+(?:[cC][oO][mM]|[nN][eE][tT]|)" I
    R"([nN][tT]|[eE][dD][uU]|[gG][oO][vV]|[oO][rR][gG]|)" I R"([nN][fF][oO]|)"
    R"([mM])" I R"([lL]))"
    R"(|)" HTTP R"((?:\p{Nd}{1,3}(?:\.\p{Nd}{1,3}){3}|\[(?:)" HEX
    R"(:){2}(?:)" HEX R"(:?){1,6}\])))"
    R"((?::\p{Nd}{1,5})?(?:[/?#][\s\S]*)?\z)";
static constexpr std::string_view mailPattern =
    R"(\A[\s\S]+@)" WORD R"([\p{L}\p{N}_.-]*\.)" WORD R"(+\z)";
static constexpr std::string_view schemePattern =
    R"(\A[\p{L}\p{N}_.+-]{2,}:/{0,2}\z)";
#undef WORD
#undef WORD_ANY
#undef HTTP
#undef I
#undef HEX

namespace {
/// What decides what a link is; all of it is made once for a call.
struct LinkPatterns {
  Unicode unicode;
  Regex http, mail, scheme;

  LinkPatterns() {
    RegexProblem problem;
    http.compile(httpPattern, unicode, problem);
    mail.compile(mailPattern, unicode, problem);
    scheme.compile(schemePattern, unicode, problem);
  }
};

class Linker {
public:
  explicit Linker(const FilterCall &call) : call(call) {}
  bool run();

private:
  const FilterCall &call;
  LinkPatterns patterns;
  std::string attributes;
  std::vector<std::string> schemes;
  bool trims = false;
  int64_t limit = 0;

  bool readArguments();
  bool fits(const Regex &pattern, std::string_view text, bool &result);
  bool appendWord(std::string &out, std::string_view word);
  bool appendLink(std::string &out, std::string_view word);
  std::string shown(std::string_view url) const;
};
} // namespace

bool Linker::fits(const Regex &pattern, std::string_view text, bool &result) {
  std::vector<Regex::Match> matches;
  size_t steps = Regex::stepsFor(text.size());
  if (!pattern.findAll(text, matches, steps))
    return call.in.fail(call.what() + ": a word that takes too many steps");
  result = !matches.empty();
  return call.in.step((Regex::stepsFor(text.size()) - steps) / 64);
}

bool Linker::readArguments() {
  Value values[5] = {Value(), Value::boolean(false), Value(), Value(), Value()};
  bool given[5];
  if (!call.in.bind(
          call.what(), call.args,
          {"trim_url_limit", "nofollow", "target", "rel", "extra_schemes"}, 0,
          values, given))
    return false;
  trims = !values[0].isNone();
  if (trims && !call.in.wantInteger(values[0], call.what(), limit))
    return false;
  std::vector<std::string_view> parts = {"noopener"};
  if (truth(values[1]))
    parts.push_back("nofollow");
  if (truth(values[3])) {
    std::string_view rest;
    if (!call.in.wantText(values[3], call.what(), rest))
      return false;
    for (rest = trimLeft(rest); !rest.empty(); rest = trimLeft(rest)) {
      size_t end = 0;
      while (end < rest.size() && !spaceAt(rest.substr(end)))
        ++end;
      parts.push_back(rest.substr(0, end));
      rest.remove_prefix(end);
    }
  }
  std::sort(parts.begin(), parts.end());
  parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
  std::string rel, quoted;
  for (std::string_view part : parts)
    (rel += rel.empty() ? "" : " ") += part;
  if (!escaped(call, call.in.newString(std::move(rel)), quoted))
    return false;
  attributes = " rel=\"" + quoted + "\"";
  if (truth(values[2])) {
    if (!escaped(call, values[2], quoted))
      return false;
    attributes += " target=\"" + quoted + "\"";
  }
  std::vector<Value> items;
  if (!values[4].isNone() && !call.in.itemsOf(values[4], items))
    return false;
  for (const Value &item : items) {
    std::string_view scheme;
    bool good;
    if (!call.in.wantText(item, call.what(), scheme) ||
        !fits(patterns.scheme, scheme, good))
      return false;
    std::string name;
    appendQuoted(name, scheme);
    if (!good)
      return call.in.fail(name + " is not a valid URI scheme prefix.");
    schemes.emplace_back(scheme);
  }
  return true;
}

std::string Linker::shown(std::string_view url) const {
  int64_t size = countCharacters(url);
  if (!trims || size <= limit)
    return std::string(url);
  int64_t kept = limit < 0 ? std::max<int64_t>(limit + size, 0) : limit;
  return std::string(url.substr(0, characterOffset(url, kept))) + "...";
}

static bool startsWith(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

bool Linker::appendLink(std::string &out, std::string_view word) {
  auto link = [&](std::string_view address, std::string_view more,
                  std::string_view text) {
    ((((out += "<a href=\"") += address) += "\"") += more) += ">";
    (out += text) += "</a>";
    return true;
  };
  bool good;
  if (!fits(patterns.http, word, good))
    return false;
  if (good) {
    bool full = startsWith(word, "https://") || startsWith(word, "http://");
    return link((full ? "" : "https://") + std::string(word), attributes,
                shown(word));
  }
  bool mailto = startsWith(word, "mailto:");
  if (mailto) {
    if (!fits(patterns.mail, word.substr(7), good))
      return false;
    if (good)
      return link(word, "", word.substr(7));
  } else if (word.find('@') != std::string_view::npos &&
             !startsWith(word, "www.") && word[0] != '@' &&
             word.find(':') == std::string_view::npos) {
    if (!fits(patterns.mail, word, good))
      return false;
    if (good)
      return link("mailto:" + std::string(word), "", word);
  }
  for (const std::string &scheme : schemes)
    if (word != scheme && startsWith(word, scheme))
      return link(word, attributes, word);
  out += word;
  return true;
}

static size_t countOf(std::string_view text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string_view::npos;
       at = text.find(part, at + part.size()))
    ++count;
  return count;
}

/// Punctuation around a word is no part of a link, but brackets that the word
/// opens are.
bool Linker::appendWord(std::string &out, std::string_view word) {
  size_t begin = 0, end = word.size();
  auto openAt = [&](size_t at) -> size_t {
    if (at < word.size() && (word[at] == '(' || word[at] == '<'))
      return 1;
    return startsWith(word.substr(at), "&lt;") ? 4 : 0;
  };
  while (size_t size = openAt(begin))
    begin += size;
  auto closeBefore = [&](size_t at) -> size_t {
    if (at >= begin + 4 && word.substr(at - 4, 4) == "&gt;")
      return 4;
    return at > begin && std::string_view(")>.,").find(word[at - 1]) !=
                             std::string_view::npos;
  };
  while (size_t size = closeBefore(end))
    end -= size;
  const std::pair<std::string_view, std::string_view> brackets[] = {
      {"(", ")"}, {"<", ">"}, {"&lt;", "&gt;"}};
  for (auto [open, close] : brackets) {
    size_t opened = countOf(word.substr(begin, end - begin), open);
    if (opened <= countOf(word.substr(begin, end - begin), close))
      continue;
    size_t most = std::min(opened, countOf(word.substr(end), close));
    for (size_t i = 0; i < most; ++i)
      end = word.find(close, end) + close.size();
  }
  out += word.substr(0, begin);
  if (!appendLink(out, word.substr(begin, end - begin)))
    return false;
  out += word.substr(end);
  return true;
}

bool Linker::run() {
  std::string text, out;
  if (!readArguments() || !escaped(call, call.input, text))
    return false;
  std::string_view rest = text;
  while (!rest.empty()) {
    size_t space = 0, end = 0;
    while (space < rest.size() && spaceAt(rest.substr(space)))
      space += spaceAt(rest.substr(space));
    out += rest.substr(0, space);
    rest.remove_prefix(space);
    while (end < rest.size() && !spaceAt(rest.substr(end)))
      ++end;
    if (end && !appendWord(out, rest.substr(0, end)))
      return false;
    rest.remove_prefix(end);
    if (!call.in.step())
      return false;
  }
  call.out = call.in.newString(std::move(out));
  return call.in.step(text.size() / 16);
}

static bool applyUrlize(const FilterCall &call) { return Linker(call).run(); }

//===----------------------------------------------------------------------===//
// xmlattr
//===----------------------------------------------------------------------===//

static bool applyXmlAttributes(const FilterCall &call) {
  Value space = Value::boolean(true);
  bool given;
  if (!call.in.bind(call.what(), call.args, {"autospace"}, 0, &space, &given) ||
      !call.in.wantDefined(call.input))
    return false;
  if (!call.input.isDict())
    return call.in.fail(call.what() + " takes a dict, not a value of type " +
                        call.input.typeName());
  const DictObject &dict = call.input.dict();
  std::string out, name, value;
  for (size_t i = 0; i < dict.keys.size(); ++i) {
    if (dict.values[i].isNone() || dict.values[i].isUndefined())
      continue;
    std::string_view key;
    if (!call.in.wantText(dict.keys[i], call.what(), key))
      return false;
    if (key.find_first_of(" \t\n\r\f\v/>=") != std::string_view::npos) {
      appendQuoted(name = "", key);
      return call.in.fail("Invalid character in attribute name: " + name);
    }
    if (!escaped(call, dict.keys[i], name) ||
        !escaped(call, dict.values[i], value))
      return false;
    out += out.empty() ? "" : " ";
    (((out += name) += "=\"") += value) += "\"";
  }
  if (!out.empty() && truth(space))
    out.insert(0, " ");
  call.out = call.in.newString(std::move(out));
  return call.in.step(dict.keys.size());
}

const FilterEntry *findHtmlFilter(std::string_view name) {
  static const FilterEntry filters[] = {{"striptags", applyStripTags},
                                        {"urlize", applyUrlize},
                                        {"xmlattr", applyXmlAttributes}};
  for (const FilterEntry &filter : filters)
    if (filter.name == name)
      return &filter;
  return nullptr;
}

} // namespace attune::runtime::jinja

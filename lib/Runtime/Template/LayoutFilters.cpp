//===- LayoutFilters.cpp - Filters that break lines -----------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `wordwrap` and `pprint`, which are Python's modules textwrap and pprint.
//
//===----------------------------------------------------------------------===//

#include "../Text/Unicode.h"
#include "Filters.h"
#include "Lexer.h"
#include "Text.h"

#include <algorithm>

namespace attune::runtime::jinja {

static bool splitLines(const FilterCall &call, std::string_view text,
                       bool keepEnds, std::vector<Value> &lines) {
  Arguments args;
  args.positional.push_back(Value::boolean(keepEnds));
  Value list;
  return call.in.callMethod(call.in.newString(std::string(text)), "splitlines",
                            args, list) &&
         call.in.itemsOf(list, lines);
}

//===----------------------------------------------------------------------===//
// wordwrap
//===----------------------------------------------------------------------===//

namespace {
/// One call. Lengths are in characters.
class Wrapper {
public:
  explicit Wrapper(const FilterCall &call) : call(call) {}
  bool run();

private:
  struct Chunk {
    size_t begin, end; ///< characters of `text`
    size_t size() const { return end - begin; }
  };
  const FilterCall &call;
  Unicode unicode;
  size_t width = 0;
  bool breaksWords = true, breaksHyphens = true, splitsAtHyphens = true;
  std::string text; ///< of the line
  std::vector<uint32_t> characters;
  std::vector<size_t> places; ///< where each starts in `text`, and the end
  std::vector<std::string> lines;

  bool isSpace(size_t at) const {
    uint32_t c = characters[at];
    return c == ' ' || (c >= '\t' && c <= '\r');
  }
  bool isWord(size_t at) const {
    return at < characters.size() &&
           (characters[at] == '_' ||
            unicode.isIn(characters[at], letterCategories | numberCategories));
  }
  bool isLetter(size_t at) const {
    return isWord(at) && unicode.category(characters[at]) != Category::Nd;
  }
  bool isWordOrMark(size_t at) const {
    uint32_t c = characters[at];
    return isWord(at) ||
           (c < 0x80 &&
            std::string_view("!\"'&.,?").find(static_cast<char>(c)) !=
                std::string_view::npos);
  }
  bool isHyphen(size_t at) const {
    return at < characters.size() && characters[at] == '-';
  }
  /// Two hyphens or more stand from here on, and a word behind them.
  bool dashesAt(size_t at) const {
    size_t end = at;
    while (isHyphen(end))
      ++end;
    return end >= at + 2 && isWord(end);
  }
  std::string_view textOf(Chunk chunk) const {
    return std::string_view(text).substr(
        places[chunk.begin], places[chunk.end] - places[chunk.begin]);
  }
  bool isBlank(Chunk chunk) const { return trimLeft(textOf(chunk)).empty(); }
  size_t chunkEnd(size_t begin) const;
  size_t longWordEnd(Chunk chunk, size_t left) const;
  void wrap();
};
} // namespace

/// Chunks are white space, dashes between words, and words; these end behind a
/// hyphen between letters, too.
size_t Wrapper::chunkEnd(size_t begin) const {
  size_t size = characters.size(), at = begin;
  while (at < size && isSpace(at))
    ++at;
  if (at > begin)
    return at;
  if (splitsAtHyphens && begin > 0 && isWordOrMark(begin - 1) &&
      dashesAt(begin)) {
    while (isHyphen(at))
      ++at;
    return at;
  }
  for (at = begin + 1; at < size && !isSpace(at); ++at) {
    if (!splitsAtHyphens || !isHyphen(at))
      continue;
    bool behindLetters =
        (at >= 2 && isLetter(at - 1) && isLetter(at - 2)) ||
        (at >= 3 && isLetter(at - 1) && isHyphen(at - 2) && isLetter(at - 3));
    bool beforeLetters =
        isLetter(at + 1) &&
        (isLetter(at + 2) || (isHyphen(at + 2) && isLetter(at + 3)));
    if (behindLetters && beforeLetters)
      return at + 1;
    if (isWordOrMark(at - 1) && dashesAt(at))
      return at;
  }
  return at;
}

/// Where a word that fits on no line is cut, with `left` characters free.
size_t Wrapper::longWordEnd(Chunk chunk, size_t left) const {
  size_t end = std::min(chunk.begin + left, chunk.end);
  if (!breaksHyphens || chunk.size() <= left)
    return end;
  size_t hyphen = end;
  while (hyphen > chunk.begin && !isHyphen(hyphen - 1))
    --hyphen;
  bool others = false;
  for (size_t at = chunk.begin; at + 1 < hyphen; ++at)
    others = others || !isHyphen(at);
  return others ? hyphen : end;
}

/// Appends the lines that `text` becomes.
void Wrapper::wrap() {
  characters.clear();
  places.clear();
  for (size_t at = 0; at < text.size();) {
    uint32_t c;
    places.push_back(at);
    at += decodeCharacter(text, at, c);
    characters.push_back(c);
  }
  places.push_back(text.size());
  std::vector<Chunk> chunks;
  for (size_t at = 0; at < characters.size();) {
    size_t end = chunkEnd(at);
    chunks.push_back({at, end});
    at = end;
  }
  size_t next = 0;
  bool first = true;
  while (next < chunks.size()) {
    std::vector<Chunk> line;
    size_t size = 0;
    if (!first && isBlank(chunks[next]))
      ++next;
    while (next < chunks.size() && size + chunks[next].size() <= width) {
      size += chunks[next].size();
      line.push_back(chunks[next++]);
    }
    if (next < chunks.size() && chunks[next].size() > width) {
      if (breaksWords) {
        size_t end = longWordEnd(chunks[next], width - size);
        line.push_back({chunks[next].begin, end});
        chunks[next].begin = end;
      } else if (line.empty()) {
        line.push_back(chunks[next++]);
      }
    }
    if (!line.empty() && isBlank(line.back()))
      line.pop_back();
    if (line.empty())
      continue;
    lines.emplace_back();
    first = false;
    for (Chunk chunk : line)
      lines.back() += textOf(chunk);
  }
}

bool Wrapper::run() {
  Value values[4] = {Value::integer(79), Value::boolean(true), Value(),
                     Value::boolean(true)};
  bool given[4];
  std::string_view source, separator = "\n";
  int64_t columns;
  if (!call.in.bind(
          call.what(), call.args,
          {"width", "break_long_words", "wrapstring", "break_on_hyphens"}, 0,
          values, given) ||
      !call.in.wantText(call.input, call.what(), source) ||
      !call.in.wantInteger(values[0], call.what(), columns) ||
      (!values[2].isNone() &&
       !call.in.wantText(values[2], call.what(), separator)))
    return false;
  std::vector<Value> paragraphs;
  if (!splitLines(call, source, /*keepEnds=*/false, paragraphs))
    return false;
  if (columns <= 0 && !paragraphs.empty())
    return call.in.fail("invalid width " + std::to_string(columns) +
                        " (must be > 0)");
  width = static_cast<size_t>(columns);
  breaksWords = truth(values[1]);
  breaksHyphens = truth(values[3]);
  splitsAtHyphens = values[3].is(Kind::Bool) && breaksHyphens;
  Interpreter::Builder out(call.in);
  for (size_t i = 0; i < paragraphs.size(); ++i) {
    text = paragraphs[i].text();
    lines.clear();
    wrap();
    out.add(i ? separator : "");
    for (size_t line = 0; line < lines.size(); ++line)
      out.add(line ? separator : "").add(lines[line]);
    if (!call.in.step(text.size() / 2))
      return false;
  }
  call.out = out.take();
  return call.in.step(paragraphs.size());
}

static bool applyWordWrap(const FilterCall &call) {
  return Wrapper(call).run();
}

//===----------------------------------------------------------------------===//
// pprint
//===----------------------------------------------------------------------===//

namespace {
/// Values in lines of 80 columns where they fit; the keys of dicts in order.
class PrettyPrinter {
public:
  explicit PrettyPrinter(const FilterCall &call) : call(call), out(call.in) {}
  bool run() {
    if (!format(call.input, 0, 0, 0))
      return false;
    call.out = out.take();
    return call.in.step(0);
  }

private:
  static constexpr size_t columns = 80;
  static constexpr unsigned mostLevels = 100;
  const FilterCall &call;
  Interpreter::Builder out;

  bool represent(const Value &value, std::string &text, unsigned level = 0);
  bool format(const Value &value, size_t indent, size_t allowance,
              unsigned level);
  bool formatDict(const Value &value, size_t indent, size_t allowance,
                  unsigned level);
  bool formatItems(const std::vector<Value> &items, size_t indent,
                   size_t allowance, unsigned level);
  bool formatText(const Value &value, size_t indent, size_t allowance,
                  bool outermost);
  bool cutText(std::string_view text, size_t indent, size_t allowance,
               std::vector<std::string> &chunks, std::string &lastLine);
  bool sortedKeys(const Value &value, std::vector<size_t> &order);
  void newLine(size_t indent) { out.add("\n").add(std::string(indent, ' ')); }
};
} // namespace

/// Python compares signed numbers here: indented beyond the last column,
/// nothing fits.
static bool fitsIn(size_t size, size_t columns, size_t taken) {
  return size + taken <= columns;
}

static size_t quotedSize(std::string_view text) {
  std::string quoted;
  appendQuoted(quoted, text);
  return static_cast<size_t>(countCharacters(quoted));
}

/// Numbers and texts have an order each; of other types the names count.
bool PrettyPrinter::sortedKeys(const Value &value, std::vector<size_t> &order) {
  const std::vector<Value> &keys = value.dict().keys;
  for (size_t i = 0; i < keys.size(); ++i)
    order.push_back(i);
  bool good = true;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const Value &x = keys[a], &y = keys[b];
    if (x.isNumber() && y.isNumber())
      return x.real() < y.real();
    if (x.isString() && y.isString())
      return x.text() < y.text();
    if (!x.is(y.kind()))
      return std::string_view(x.typeName()) < y.typeName();
    int sign = 0;
    if (!x.isNone() && good)
      good = call.in.order(x, y, "<", sign);
    return sign < 0;
  });
  return good && call.in.step(order.size());
}

/// repr(value), but for the order of keys.
bool PrettyPrinter::represent(const Value &value, std::string &text,
                              unsigned level) {
  if (level > mostLevels)
    return call.in.fail("a value nested deeper than " +
                        std::to_string(mostLevels) + " levels");
  std::string part;
  if (value.isDict()) {
    std::vector<size_t> order;
    if (!sortedKeys(value, order))
      return false;
    text += "{";
    for (size_t i = 0; i < order.size(); ++i) {
      text += i ? ", " : "";
      if (!represent(value.dict().keys[order[i]], text, level + 1))
        return false;
      text += ": ";
      if (!represent(value.dict().values[order[i]], text, level + 1))
        return false;
    }
    text += "}";
  } else if (value.is(Kind::List) || value.is(Kind::Tuple)) {
    const std::vector<Value> &items = value.list().items;
    bool list = value.is(Kind::List);
    text += list ? "[" : "(";
    for (size_t i = 0; i < items.size(); ++i) {
      text += i ? ", " : "";
      if (!represent(items[i], text, level + 1))
        return false;
    }
    text += list ? "]" : items.size() == 1 ? ",)" : ")";
  } else {
    Interpreter::Builder builder(call.in);
    if (!call.in.appendRepr(builder, value))
      return false;
    text += builder.out;
  }
  return call.in.step();
}

bool PrettyPrinter::format(const Value &value, size_t indent, size_t allowance,
                           unsigned level) {
  std::string text;
  if (level > mostLevels)
    return call.in.fail("a value nested deeper than " +
                        std::to_string(mostLevels) + " levels");
  if (!represent(value, text))
    return false;
  if (!fitsIn(static_cast<size_t>(countCharacters(text)), columns,
              indent + allowance)) {
    const bool isList = value.is(Kind::List);
    if (value.isDict())
      return formatDict(value, indent, allowance + 1, level + 1);
    if (value.isString() && !value.isMarkup() && !value.text().empty())
      return formatText(value, indent, allowance, level == 0);
    if (isList || value.is(Kind::Tuple)) {
      const std::vector<Value> &items = value.list().items;
      const char *end = isList ? "]" : items.size() == 1 ? ",)" : ")";
      out.add(isList ? "[" : "(");
      if (!formatItems(items, indent + 1,
                       allowance + std::string_view(end).size(), level + 1))
        return false;
      out.add(end);
      return true;
    }
  }
  out.add(text);
  return call.in.step(text.size() / 16);
}

bool PrettyPrinter::formatDict(const Value &value, size_t indent,
                               size_t allowance, unsigned level) {
  std::vector<size_t> order;
  if (!sortedKeys(value, order))
    return false;
  ++indent;
  out.add("{");
  for (size_t i = 0; i < order.size(); ++i) {
    std::string key;
    if (i) {
      out.add(",");
      newLine(indent);
    }
    if (!represent(value.dict().keys[order[i]], key))
      return false;
    out.add(key).add(": ");
    if (!format(value.dict().values[order[i]],
                indent + static_cast<size_t>(countCharacters(key)) + 2,
                i + 1 < order.size() ? 1 : allowance, level))
      return false;
  }
  out.add("}");
  return true;
}

bool PrettyPrinter::formatItems(const std::vector<Value> &items, size_t indent,
                                size_t allowance, unsigned level) {
  for (size_t i = 0; i < items.size(); ++i) {
    if (i) {
      out.add(",");
      newLine(indent);
    }
    if (!format(items[i], indent, i + 1 < items.size() ? 1 : allowance, level))
      return false;
  }
  return true;
}

/// A long text as one literal for each line, or for as many of its words as
/// fit.
bool PrettyPrinter::cutText(std::string_view text, size_t indent,
                            size_t allowance, std::vector<std::string> &chunks,
                            std::string &lastLine) {
  std::vector<Value> lines;
  if (!splitLines(call, text, /*keepEnds=*/true, lines))
    return false;
  for (size_t i = 0; i < lines.size(); ++i) {
    std::string_view line = lines[i].text();
    bool isLast = i + 1 == lines.size();
    lastLine.clear();
    appendQuoted(lastLine, line);
    if (fitsIn(static_cast<size_t>(countCharacters(lastLine)), columns,
               indent + (isLast ? allowance : 0))) {
      chunks.push_back(lastLine);
      continue;
    }
    std::string current;
    auto flush = [&] {
      if (!current.empty()) {
        chunks.emplace_back();
        appendQuoted(chunks.back(), current);
      }
    };
    for (size_t at = 0; at < line.size();) {
      // A word and the white space behind it.
      size_t end = at;
      while (end < line.size() && !spaceAt(line.substr(end)))
        ++end;
      while (end < line.size() && spaceAt(line.substr(end)))
        end += spaceAt(line.substr(end));
      std::string candidate = current;
      candidate += line.substr(at, end - at);
      bool closes = isLast && end == line.size();
      if (!fitsIn(quotedSize(candidate), columns,
                  indent + (closes ? allowance : 0))) {
        flush();
        current = line.substr(at, end - at);
      } else {
        current = std::move(candidate);
      }
      at = end;
      if (!call.in.step(current.size() / 16 + 1))
        return false;
    }
    flush();
  }
  return true;
}

bool PrettyPrinter::formatText(const Value &value, size_t indent,
                               size_t allowance, bool outermost) {
  std::vector<std::string> chunks;
  std::string lastLine;
  if (outermost) {
    ++indent;
    ++allowance;
  }
  if (!cutText(value.text(), indent, allowance, chunks, lastLine))
    return false;
  if (chunks.size() == 1) {
    out.add(lastLine);
    return call.in.step(0);
  }
  out.add(outermost ? "(" : "");
  for (size_t i = 0; i < chunks.size(); ++i) {
    if (i)
      newLine(indent);
    out.add(chunks[i]);
  }
  out.add(outermost ? ")" : "");
  return call.in.step(chunks.size());
}

static bool applyPrettyPrint(const FilterCall &call) {
  return call.in.bind(call.what(), call.args, {}, 0, nullptr, nullptr) &&
         PrettyPrinter(call).run();
}

const FilterEntry *findLayoutFilter(std::string_view name) {
  static const FilterEntry filters[] = {{"pprint", applyPrettyPrint},
                                        {"wordwrap", applyWordWrap}};
  for (const FilterEntry &filter : filters)
    if (filter.name == name)
      return &filter;
  return nullptr;
}

} // namespace attune::runtime::jinja

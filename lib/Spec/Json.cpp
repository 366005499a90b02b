//===- Json.cpp - JSON values that know their place -------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Spec/Json.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_map>

namespace attune::spec {

const Value *Value::find(std::string_view key) const {
  for (const Member &member : members)
    if (member.key == key)
      return &member.value;
  return nullptr;
}

const char *describe(Value::Kind kind) {
  switch (kind) {
  case Value::Kind::Null:
    return "null";
  case Value::Kind::Boolean:
    return "a boolean";
  case Value::Kind::Integer:
    return "an integer";
  case Value::Kind::Real:
    return "a number";
  case Value::Kind::String:
    return "a string";
  case Value::Kind::Array:
    return "an array";
  case Value::Kind::Object:
    return "an object";
  }
  return "null";
}

//===----------------------------------------------------------------------===//
// Places and messages
//===----------------------------------------------------------------------===//

LineTable::LineTable(std::shared_ptr<const SourceFile> source)
    : file(std::move(source)), lineStarts{0} {
  const std::string &text = file->text;
  for (size_t at = text.find('\n'); at != std::string::npos;
       at = text.find('\n', at + 1))
    lineStarts.push_back(at + 1);
}

SourceLocation LineTable::locate(size_t offset) const {
  auto next = std::upper_bound(lineStarts.begin(), lineStarts.end(), offset);
  SourceLocation where;
  where.file = file;
  where.line = static_cast<uint32_t>(next - lineStarts.begin());
  where.column = static_cast<uint32_t>(offset - *std::prev(next) + 1);
  return where;
}

/// A file of another format can be wrong everywhere; its user needs the start.
static constexpr unsigned maxErrors = 100;

bool Reporter::isFull() const { return numErrors >= maxErrors; }

void Reporter::error(size_t offset, const std::string &pointer,
                     const std::string &message) {
  ++numErrors;
  if (numErrors > maxErrors)
    return;
  diags.error(lines.locate(offset),
              pointer.empty() ? message : pointer + ": " + message);
  if (numErrors == maxErrors)
    diags.note({lines.locate(offset).file, 0, 0},
               "too many errors, the rest is not shown");
}

void Reporter::note(size_t offset, const std::string &pointer,
                    const std::string &message) {
  if (numErrors > maxErrors)
    return;
  diags.note(lines.locate(offset),
             pointer.empty() ? message : pointer + ": " + message);
}

/// At most `limit` bytes of `text`, cut between characters, made printable.
static std::string shorten(std::string_view text, size_t limit) {
  bool cut = text.size() > limit;
  if (cut) {
    while (limit > 0 &&
           (static_cast<unsigned char>(text[limit]) & 0xC0) == 0x80)
      --limit;
    text = text.substr(0, limit);
  }
  std::string result;
  for (char c : text)
    result += static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? '?' : c;
  return cut ? result + "..." : result;
}

std::string quote(std::string_view text) {
  return "'" + shorten(text, 60) + "'";
}

std::string child(const std::string &pointer, std::string_view key) {
  std::string result = pointer + "/";
  for (char c : shorten(key, 60)) {
    if (c == '~')
      result += "~0";
    else if (c == '/')
      result += "~1";
    else
      result += c;
  }
  return result;
}

std::string child(const std::string &pointer, size_t index) {
  return pointer + "/" + std::to_string(index);
}

/// Edits (insert, delete, replace, swap of neighbours) from `a` to `b`.
static size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1),
      row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min(
          {last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

/// Names that other libraries use, and the names here.
static constexpr std::pair<std::string_view, std::string_view> synonyms[] = {
    {"dense", "linear"},
    {"fc", "linear"},
    {"fully_connected", "linear"},
    {"projection", "linear"},
    {"mlp", "ffn"},
    {"feed_forward", "ffn"},
    {"feedforward", "ffn"},
    {"self_attention", "attention"},
    {"multi_head_attention", "attention"},
    {"mha", "attention"},
    {"mixture_of_experts", "moe"},
    {"experts", "moe"},
    {"lstm", "recurrent"},
    {"gru", "recurrent"},
    {"rnn", "recurrent"},
    {"num_heads", "heads"},
    {"num_attention_heads", "heads"},
    {"num_kv_heads", "kv_heads"},
    {"num_key_value_heads", "kv_heads"},
    {"num_layers", "repeat"},
    {"vocab_size", "vocab"},
    {"hidden_size", "width"},
    {"intermediate_size", "width"},
    {"hidden_act", "activation"},
    {"rotary", "rope"}};

std::string nearest(std::string_view word,
                    const std::vector<std::string> &candidates) {
  std::string best;
  if (word.size() > 60)
    return best;
  for (const auto &[theirs, ours] : synonyms)
    for (const std::string &candidate : candidates)
      if (theirs == word && candidate == ours)
        return candidate;
  size_t bestDistance = 0;
  for (const std::string &candidate : candidates) {
    // Every letter that one has more costs an edit: most need no count.
    size_t longer = std::max(word.size(), candidate.size());
    size_t shorter = std::min(word.size(), candidate.size());
    if (3 * (longer - shorter) > longer)
      continue;
    size_t distance = editDistance(word, candidate);
    // Two thirds of the letters must be right; "head" is meant for "heads",
    // but "x" for nothing.
    if (3 * distance > longer)
      continue;
    if (best.empty() || distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

//===----------------------------------------------------------------------===//
// Parsing
//===----------------------------------------------------------------------===//

namespace {

/// Iterator over the text that tells how far the lexer has read: nlohmann's
/// SAX events carry no positions.
struct CountingIterator {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char *;
  using reference = const char &;

  const char *at;
  const char **furthest;

  reference operator*() const { return *at; }
  CountingIterator &operator++() {
    ++at;
    if (at > *furthest)
      *furthest = at;
    return *this;
  }
  bool operator==(const CountingIterator &other) const {
    return at == other.at;
  }
  bool operator!=(const CountingIterator &other) const {
    return at != other.at;
  }
};

/// Builds `Value`s out of SAX events. A token starts at the first byte after
/// the previous token that is no space, comma or colon.
class Builder {
public:
  Builder(const std::string &text, const char **furthest, Reporter &reporter,
          const std::unordered_map<size_t, double> &specials)
      : text(text), furthest(furthest), reporter(reporter), specials(specials) {
  }

  bool null() { return add(make(Value::Kind::Null)); }
  bool boolean(bool value) {
    Value result = make(Value::Kind::Boolean);
    result.boolean = value;
    return add(std::move(result));
  }
  bool number_integer(int64_t value) {
    Value result = make(Value::Kind::Integer, /*lookahead=*/true);
    result.integer = value;
    result.real = static_cast<double>(value);
    return add(std::move(result));
  }
  bool number_unsigned(uint64_t value) {
    if (value <= static_cast<uint64_t>(INT64_MAX))
      return number_integer(static_cast<int64_t>(value));
    return number_float(static_cast<double>(value), std::to_string(value));
  }
  bool number_float(double value, const std::string &spelling) {
    Value result = make(Value::Kind::Real, /*lookahead=*/true);
    result.real = value;
    result.text = spelling;
    return add(std::move(result));
  }
  bool string(std::string &value) {
    Value result = make(Value::Kind::String);
    auto special = specials.find(result.offset);
    if (special != specials.end()) {
      result.kind = Value::Kind::Real;
      result.real = special->second;
    } else {
      result.text = std::move(value);
    }
    return add(std::move(result));
  }
  bool binary(nlohmann::json::binary_t &) { return false; }

  bool start_object(size_t) { return open(Value::Kind::Object); }
  bool key(std::string &name) {
    keyOffset = nextToken();
    endToken();
    keyName = std::move(name);
    return true;
  }
  bool end_object() {
    endToken();
    reportDuplicates(*stack.back());
    stack.pop_back();
    pointers.pop_back();
    return true;
  }
  bool start_array(size_t) { return open(Value::Kind::Array); }
  bool end_array() {
    endToken();
    stack.pop_back();
    pointers.pop_back();
    return true;
  }

  bool parse_error(size_t position, const std::string &,
                   const nlohmann::json::exception &error) {
    std::string message = plainMessage(error);
    // The lexer stands behind a token that it could read.
    bool wholeToken = message.find(" literal") != std::string::npos &&
                      message.find("unexpected ") != std::string::npos;
    size_t offset = wholeToken ? nextToken() : position == 0 ? 0 : position - 1;
    reporter.error(std::min(offset, text.size()),
                   pointers.empty() ? "" : pointers.back(), message);
    return false;
  }

  Value root;

private:
  /// nlohmann's message without its number and place, and without the token
  /// read last, which can be megabytes long.
  static std::string plainMessage(const nlohmann::json::exception &error) {
    std::string message = error.what();
    if (error.id == 406)
      return "number is too large";
    size_t lastRead = message.find("; last read: '");
    if (lastRead != std::string::npos) {
      size_t expected = message.rfind("'; expected ");
      message =
          message.substr(0, lastRead) +
          (expected == std::string::npos ? "" : message.substr(expected + 1));
    }
    size_t start = message.find(" - ");
    message = start == std::string::npos ? message : message.substr(start + 3);
    return "not valid JSON: " + shorten(message, 200);
  }

  size_t nextToken() const {
    size_t at = lastEnd;
    if (at == 0 && text.compare(0, 3, "\xEF\xBB\xBF") == 0)
      at = 3;
    return std::min(text.find_first_not_of(" \t\r\n,:", at), text.size());
  }
  /// The lexer has just read a token, for a number also the byte after it.
  void endToken(bool lookahead = false) {
    size_t read = static_cast<size_t>(*furthest - text.data());
    lastEnd = lookahead && read > 0 ? read - 1 : read;
  }
  Value make(Value::Kind kind, bool lookahead = false) {
    Value value;
    value.kind = kind;
    value.offset = nextToken();
    endToken(lookahead);
    return value;
  }
  /// Places below are stable: a container gets no new element before its last
  /// one is closed.
  Value *place(Value value) {
    if (stack.empty()) {
      root = std::move(value);
      return &root;
    }
    Value &parent = *stack.back();
    if (parent.isArray()) {
      parent.elements.push_back(std::move(value));
      return &parent.elements.back();
    }
    parent.members.push_back({std::move(keyName), keyOffset, std::move(value)});
    return &parent.members.back().value;
  }
  bool mayGrow(const Value &value) {
    if (++numValues <= maxJsonValues)
      return true;
    reporter.error(value.offset, "",
                   "holds more than " + std::to_string(maxJsonValues) +
                       " values");
    return false;
  }
  bool add(Value value) {
    if (!mayGrow(value))
      return false;
    place(std::move(value));
    return true;
  }
  bool open(Value::Kind kind) {
    Value value = make(kind);
    if (!mayGrow(value))
      return false;
    if (stack.size() == maxJsonDepth) {
      reporter.error(value.offset, pointers.back(),
                     "nested deeper than the limit of " +
                         std::to_string(maxJsonDepth) + " levels");
      return false;
    }
    std::string pointer;
    if (!stack.empty())
      pointer = stack.back()->isArray()
                    ? child(pointers.back(), stack.back()->elements.size())
                    : child(pointers.back(), keyName);
    pointers.push_back(std::move(pointer));
    stack.push_back(place(std::move(value)));
    return true;
  }
  void reportDuplicates(const Value &object) {
    std::unordered_map<std::string_view, size_t> seen;
    for (const Value::Member &member : object.members) {
      auto [first, isNew] = seen.emplace(member.key, member.keyOffset);
      if (isNew)
        continue;
      std::string pointer = child(pointers.back(), member.key);
      reporter.error(member.keyOffset, pointer,
                     "duplicate key " + quote(member.key));
      reporter.note(first->second, pointer, "it was first given here");
    }
  }

  const std::string &text;
  const char **furthest;
  Reporter &reporter;
  const std::unordered_map<size_t, double> &specials; ///< by place
  size_t numValues = 0;
  std::vector<Value *> stack;        ///< open objects and arrays
  std::vector<std::string> pointers; ///< of the same
  std::string keyName;
  size_t keyOffset = 0;
  size_t lastEnd = 0;
};

} // namespace

/// Puts a string of the same length in place of each number that Python writes
/// and JSON does not have; gives the numbers by their places.
static std::unordered_map<size_t, double> replaceSpecials(std::string &text) {
  static const std::pair<std::string_view, double> names[] = {
      {"-Infinity", -std::numeric_limits<double>::infinity()},
      {"Infinity", std::numeric_limits<double>::infinity()},
      {"NaN", std::numeric_limits<double>::quiet_NaN()},
  };
  std::unordered_map<size_t, double> specials;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '"') {
      for (++at; at < text.size() && text[at] != '"'; ++at)
        at += text[at] == '\\';
      continue;
    }
    for (const auto &[name, value] : names) {
      if (text.compare(at, name.size(), name) != 0)
        continue;
      specials[at] = value;
      text[at] = text[at + name.size() - 1] = '"';
      at += name.size() - 1;
      break;
    }
  }
  return specials;
}

std::optional<Value> parseJson(const SourceFile &file, Reporter &reporter,
                               JsonDialect dialect) {
  // To the parser below a NUL is the end of the text.
  if (size_t nul = file.text.find('\0'); nul != std::string::npos) {
    reporter.error(nul, "",
                   "JSON text has no NUL bytes; the file is damaged, or it is "
                   "no UTF-8 text");
    return std::nullopt;
  }
  std::string replaced;
  std::unordered_map<size_t, double> specials;
  if (dialect == JsonDialect::Python &&
      (file.text.find("NaN") != std::string::npos ||
       file.text.find("Infinity") != std::string::npos)) {
    replaced = file.text;
    specials = replaceSpecials(replaced);
  }
  const std::string &text = specials.empty() ? file.text : replaced;
  const char *begin = text.data();
  const char *furthest = begin;
  Builder builder(text, &furthest, reporter, specials);
  CountingIterator first{begin, &furthest};
  CountingIterator last{begin + text.size(), &furthest};
  if (!nlohmann::json::sax_parse(first, last, &builder))
    return std::nullopt;
  return std::move(builder.root);
}

} // namespace attune::spec

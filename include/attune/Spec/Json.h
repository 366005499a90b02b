//===- Json.h - JSON values that know their place ---------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_SPEC_JSON_H
#define ATTUNE_SPEC_JSON_H

#include "attune/Support/Diagnostics.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attune::spec {

/// A JSON value and the byte at which it starts.
struct Value {
  enum class Kind { Null, Boolean, Integer, Real, String, Array, Object };
  Kind kind = Kind::Null;
  size_t offset = 0;
  bool boolean = false;
  int64_t integer = 0;
  double real = 0; ///< also set for integers
  /// The string; for a number that fits no int64, its text.
  std::string text;
  struct Member;
  std::vector<Value> elements;
  std::vector<Member> members;

  bool isObject() const { return kind == Kind::Object; }
  bool isArray() const { return kind == Kind::Array; }
  bool isString() const { return kind == Kind::String; }
  bool isNumber() const { return kind == Kind::Integer || kind == Kind::Real; }
  const Value *find(std::string_view key) const;
};

struct Value::Member {
  std::string key;
  size_t keyOffset = 0;
  Value value;
};

/// "an object", "a string", ...: for messages.
const char *describe(Value::Kind kind);

/// Line and column of bytes of a text, found by bisection.
class LineTable {
public:
  explicit LineTable(std::shared_ptr<const SourceFile> file);
  SourceLocation locate(size_t offset) const;
  const SourceFile &getFile() const { return *file; }

private:
  std::shared_ptr<const SourceFile> file;
  std::vector<size_t> lineStarts;
};

/// Reports errors with place and JSON pointer, up to a limit.
class Reporter {
public:
  Reporter(const LineTable &lines, DiagnosticEngine &diags)
      : lines(lines), diags(diags) {}
  void error(size_t offset, const std::string &pointer,
             const std::string &message);
  void note(size_t offset, const std::string &pointer,
            const std::string &message);
  SourceLocation locate(size_t offset) const { return lines.locate(offset); }
  const std::string &getText() const { return lines.getFile().text; }
  unsigned getNumErrors() const { return numErrors; }
  /// Further errors are counted and not shown.
  bool isFull() const;

private:
  const LineTable &lines;
  DiagnosticEngine &diags;
  unsigned numErrors = 0;
};

/// Objects and arrays deeper than this are refused; a description needs seven.
inline constexpr size_t maxJsonDepth = 64;

/// More values than this are refused, which bounds the memory of a parse.
inline constexpr size_t maxJsonValues = 2000000;

/// JSON as written by Python may hold NaN, Infinity and -Infinity.
enum class JsonDialect { Strict, Python };

/// Parses a whole text. Syntax errors and duplicate keys are reported; nothing
/// is returned after a syntax error.
std::optional<Value> parseJson(const SourceFile &file, Reporter &reporter,
                               JsonDialect dialect = JsonDialect::Strict);

/// `text` in single quotes for a message: cut if long, control characters and
/// broken UTF-8 replaced.
std::string quote(std::string_view text);

/// `pointer` + "/" + `key` with JSON pointer escapes, long keys cut.
std::string child(const std::string &pointer, std::string_view key);
std::string child(const std::string &pointer, size_t index);

/// The candidate with the least edit distance from `word` if it is close
/// enough to be a slip, else an empty string.
std::string nearest(std::string_view word,
                    const std::vector<std::string> &candidates);

} // namespace attune::spec

#endif // ATTUNE_SPEC_JSON_H

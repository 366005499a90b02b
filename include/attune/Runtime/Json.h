//===- Json.h - A small strict JSON reader ----------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiled models carry this reader, so it depends on nothing, throws nothing
// and trusts nothing: text from a file is checked byte by byte. The compiler's
// own reader (lib/Spec) is another one, because it keeps source positions.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_RUNTIME_JSON_H
#define ATTUNE_RUNTIME_JSON_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attune::runtime {

/// One JSON value. Objects keep their members in file order.
struct JsonValue {
  enum class Kind : uint8_t { Null, Bool, Int, Real, String, Array, Object };

  Kind kind = Kind::Null;
  bool boolean = false;
  int64_t integer = 0;           ///< Kind::Int
  double real = 0;               ///< Kind::Real and Kind::Int
  std::string string;            ///< Kind::String, UTF-8, may hold NUL
  std::vector<std::string> keys; ///< Kind::Object, parallel to `items`
  std::vector<JsonValue> items;  ///< Kind::Array and Kind::Object

  bool isNull() const { return kind == Kind::Null; }
  bool isBool() const { return kind == Kind::Bool; }
  bool isInt() const { return kind == Kind::Int; }
  bool isNumber() const { return kind == Kind::Int || kind == Kind::Real; }
  bool isString() const { return kind == Kind::String; }
  bool isArray() const { return kind == Kind::Array; }
  bool isObject() const { return kind == Kind::Object; }

  /// The member of an object, or null. Linear: for objects of few members.
  const JsonValue *find(std::string_view key) const;
  /// "a string", "an object", ...: for messages.
  const char *kindName() const;
};

struct JsonLimits {
  unsigned maxDepth = 64;
  size_t maxBytes = size_t(1) << 30;
  /// Most values, in memory of about 120 bytes each.
  size_t maxValues = SIZE_MAX;
  /// Refuse an object that names a member twice.
  bool uniqueKeys = true;
};

/// Parses `text`, which must be one JSON value in UTF-8 with nothing but white
/// space around it. On failure `error` says what is wrong and at which byte.
bool parseJson(std::string_view text, JsonValue &result, std::string &error,
               const JsonLimits &limits = {});

/// Reads a text value by value, so that large arrays and objects need no memory
/// of their own. After a failure every function returns false and `error` and
/// `position` say what is wrong where. Skipped values are checked for their
/// brackets and quotes alone.
///
///     if (reader.enterObject())
///       while (reader.nextMember(key))
///         reader.read(value);
///     if (reader.failed()) ...
class JsonReader {
public:
  explicit JsonReader(std::string_view text, const JsonLimits &limits = {})
      : text(text), limits(limits) {}

  bool enterObject() { return enter('{', "expected an object"); }
  bool enterArray() { return enter('[', "expected an array"); }
  /// False at the end of the object or array, which it leaves.
  bool nextMember(std::string &key);
  bool nextItem() { return next(']', "expected ',' or ']'"); }

  /// The first byte of the next value, or -1.
  int peek();
  bool read(JsonValue &value);
  bool readString(std::string &value);
  /// A whole number from 0 to `most`.
  bool readIndex(uint64_t most, uint64_t &value);
  /// Gives the text of the next value.
  bool skip(std::string_view &value);

  bool fail(const std::string &what);
  bool failed() const { return !error.empty(); }

  std::string error;
  size_t position = 0; ///< the byte at which reading stopped

private:
  std::string_view text;
  JsonLimits limits;
  bool fresh = false; ///< nothing of the innermost array or object is read

  bool enter(char open, const char *expected);
  bool next(char close, const char *expected);
  void skipSpace();
};

/// Appends `text` as a JSON string with its quotes. Control characters are
/// escaped; bytes that are not UTF-8 become U+FFFD.
void appendJsonString(std::string &out, std::string_view text);

/// Appends `value` as compact JSON.
void appendJson(std::string &out, const JsonValue &value);

} // namespace attune::runtime

#endif // ATTUNE_RUNTIME_JSON_H

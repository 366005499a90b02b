//===- Reader.h - Typed access to a checked description ---------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_SPEC_PARSER_READER_H
#define ATTUNE_LIB_SPEC_PARSER_READER_H

#include "../Schema/Schema.h"

#include <map>
#include <unordered_map>

namespace attune::spec {

/// A number that an error made unknown is empty; whoever depends on it stays
/// silent, so that one mistake gives one message.
using Known = std::optional<int64_t>;

/// The named dimensions and the arithmetic over them: + - * / ( ), in 64 bits,
/// where division must be exact.
class Dims {
public:
  Dims(const Value *object, const BadValues &bad, Reporter &reporter);

  /// The value of an integer position: a number or arithmetic. Bounds are
  /// inclusive.
  Known evaluate(const Value &value, const std::string &pointer,
                 int64_t minimum, int64_t maximum);
  bool contains(std::string_view name) const {
    return entries.count(std::string(name));
  }
  /// Evaluates all of them, whether used or not.
  void evaluateAll();
  /// The evaluated ones; complete after evaluateAll().
  const std::map<std::string, int64_t> &getValues() const { return values; }

private:
  friend class ExpressionParser;
  enum class State { New, Active, Done, Failed };
  struct Entry {
    const Value *value;
    State state = State::New;
    int64_t result = 0;
  };
  Known get(const std::string &name, size_t offset, const std::string &pointer);
  Known parse(const Value &value, const std::string &pointer);

  std::unordered_map<std::string, Entry> entries;
  std::vector<std::string> names; ///< in file order
  std::map<std::string, int64_t> values;
  const BadValues &bad;
  Reporter &reporter;
  unsigned depth = 0;
};

/// State that every part of the parser shares.
struct Context {
  Reporter &reporter;
  const BadValues &bad;
  Dims &dims;
};

bool isIdentifier(std::string_view text);

/// An object whose form was checked. Keys that are absent give the fallback,
/// keys that failed the check give nothing (numbers) or the fallback (others).
class Object {
public:
  Object(Context &context, const Value &value, std::string pointer,
         const ObjectType &type)
      : context(&context), value(&value), pointer(std::move(pointer)),
        type(&type) {}

  bool has(std::string_view key) const { return value->find(key); }
  bool isBad() const { return context->bad.count(value); }
  /// Present and well formed.
  const Value *get(std::string_view key) const;
  Known integer(std::string_view key, Known fallback) const;
  double number(std::string_view key, double fallback) const;
  bool boolean(std::string_view key, bool fallback) const;
  std::string string(std::string_view key, std::string fallback = "") const;
  /// The position of the key's word in the table's list of words.
  template <typename Enum>
  Enum choice(std::string_view key, Enum fallback) const {
    Known index = word(key);
    return index ? static_cast<Enum>(*index) : fallback;
  }
  std::optional<Object> object(std::string_view key) const;
  /// The objects of an array or a map, also ill-formed ones: see isBad().
  std::vector<Object> objects(std::string_view key) const;
  std::vector<std::pair<std::string, Object>>
  namedObjects(std::string_view key) const;

  /// Reports at a key's value, or at the object if the key is absent.
  void error(std::string_view key, const std::string &message) const;
  void error(const std::string &message) const;
  /// Reports that `key` is missing, unless its misspelling was reported.
  void missing(const std::string &key, const std::string &what) const;

  Context &getContext() const { return *context; }
  const Value &getValue() const { return *value; }
  const std::string &getPointer() const { return pointer; }
  SourceLocation getLocation() const {
    return context->reporter.locate(value->offset);
  }

private:
  Known word(std::string_view key) const;

  Context *context;
  const Value *value;
  std::string pointer;
  const ObjectType *type;
};

} // namespace attune::spec

#endif // ATTUNE_LIB_SPEC_PARSER_READER_H

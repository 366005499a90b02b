//===- Schema.h - The form of a description, as tables ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_SPEC_SCHEMA_SCHEMA_H
#define ATTUNE_LIB_SPEC_SCHEMA_SCHEMA_H

#include "attune/Spec/Json.h"

#include <set>

/// One set of tables says which keys an object has, with their types, and why.
/// The parser checks every file against it and the published JSON Schema is
/// printed from it, so the two cannot differ.
namespace attune::spec {

struct ObjectType;

/// The form of a JSON value. An `integer` may be written as a string with
/// arithmetic over the named dimensions, which has no bounds until evaluated.
struct Type {
  enum class Form {
    Integer,   ///< integer, or arithmetic
    Dimension, ///< the same, or a symbol such as "batch"
    Number,
    Boolean,
    String,
    Choice, ///< one of `words`
    Object, ///< `object`
    Array,  ///< of `parts[0]`
    Map,    ///< any keys, values of `parts[0]`
    Either, ///< one of `parts`, told apart by the kind of JSON value
  };
  explicit Type(Form form) : form(form) {}

  Form form;
  int64_t minimum = 0, maximum = 0; ///< Integer
  /// Number: exclusive lower bound, if any.
  std::optional<double> above;
  std::optional<size_t> count; ///< Array: exact length, if any
  std::vector<std::string> words;
  const ObjectType *object = nullptr;
  std::vector<Type> parts;
};

struct Key {
  std::string name;
  Type type;
  std::string doc;
  bool required = false;
};

struct ObjectType {
  std::string name; ///< its entry under "$defs" of the schema
  std::string doc;
  std::vector<Key> keys;
  /// Exactly one of these keys must be given.
  std::vector<std::string> exactlyOne;
  /// The name of the choice between them, for messages: "kind".
  std::string choice;

  const Key *find(std::string_view key) const;
  std::vector<std::string> names() const;
  /// Whether `object` has an unknown key that was likely meant to be `key`.
  bool isMisspelt(std::string_view key, const Value &object) const;
};

/// Every integer of a description is in this range.
inline constexpr int64_t maxInteger = INT32_MAX;

const ObjectType &modelType();
/// All object types, each after those that it refers to.
const std::vector<const ObjectType *> &objectTypes();

const ObjectType *objectTypeNamed(std::string_view name);

/// Adds the kind of layer whose key is the type's name; false if that is taken.
/// `type` must live on.
bool addLayerType(const ObjectType &type);

/// Values that failed the check; nobody should look at them again.
using BadValues = std::set<const Value *>;

/// Checks the form of a whole description and reports every violation.
BadValues checkForm(const Value &root, Reporter &reporter);

} // namespace attune::spec

#endif // ATTUNE_LIB_SPEC_SCHEMA_SCHEMA_H

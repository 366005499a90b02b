//===- SchemaValues.h - Values and schemas ----------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which values are valid by a schema: a schema that lists values and says more
// allows those alone that are valid by the rest. And which schemas have no
// value in common: of `oneOf` a value must fit exactly one.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_GRAMMAR_SCHEMAVALUES_H
#define ATTUNE_LIB_RUNTIME_GRAMMAR_SCHEMAVALUES_H

#include "attune/Runtime/Json.h"

#include <string>
#include <string_view>

namespace attune::runtime {

size_t countValues(const JsonValue &value);

/// Equal values have the same text: 1 and 1.0, objects in any order.
std::string canonicalText(const JsonValue &value);

/// Whether a schema restricts values otherwise than by `keyword`.
bool restrictsBeside(const JsonValue &schema, std::string_view keyword);

/// The type of values that a schema without `type` is about; empty: any.
std::string_view impliedType(const JsonValue &schema);

/// What "#/$defs/name" stands for. Null: `problem` says why there is nothing.
const JsonValue *followReference(const JsonValue *root,
                                 const JsonValue &reference,
                                 std::string &problem);

class SchemaValues {
public:
  explicit SchemaValues(const JsonValue *root) : root(root) {}

  enum class Fit : uint8_t { No, Yes, Unknown };
  /// Unknown: `keyword` of the schema cannot be judged.
  Fit fits(const JsonValue &value, const JsonValue &schema);
  const std::string &keyword() const { return unknown; }

  /// Whether a text that is written for one schema is certainly not valid by
  /// another one. Texts have the implied type, and objects no members but those
  /// that are named.
  bool neverFits(const JsonValue &written, const JsonValue &other);

private:
  using Kind = JsonValue::Kind;
  Fit fitsKeyword(const JsonValue &value, const JsonValue &schema,
                  std::string_view key, const JsonValue &rule);
  Fit fitsNumber(const JsonValue &value, std::string_view key,
                 const JsonValue &bound);
  Fit fitsItems(const JsonValue &value, const JsonValue &schema);
  Fit fitsMembers(const JsonValue &value, const JsonValue &schema);
  Fit fitsParts(const JsonValue &value, std::string_view key,
                const JsonValue &parts);
  bool listsNothingFor(const JsonValue &listing, const JsonValue &other);
  bool neverFitsObject(const JsonValue &written, const JsonValue &other);
  const JsonValue *resolve(const JsonValue &schema);
  Fit notKnown(std::string_view key) {
    unknown = key;
    return Fit::Unknown;
  }

  /// Schemas that are looked at in all, and one in another.
  static constexpr size_t mostSteps = 2000000;
  static constexpr unsigned mostDepth = 100;
  const JsonValue *root;
  std::string unknown;
  size_t steps = 0;
  unsigned depth = 0;
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_GRAMMAR_SCHEMAVALUES_H

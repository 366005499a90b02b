//===- SchemaKeywords.cpp - What keywords of a schema do ------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SchemaKeywords.h"

#include <algorithm>
#include <iterator>

namespace attune::runtime {

static bool isTrue(const JsonValue &value) {
  return value.isBool() && value.boolean;
}
static bool isFalse(const JsonValue &value) {
  return value.isBool() && !value.boolean;
}
static bool isEmptyObject(const JsonValue &value) {
  return value.isObject() && value.keys.empty();
}

/// A schema of all names.
static bool takesNames(const JsonValue &schema) {
  if (isTrue(schema) || isEmptyObject(schema))
    return true;
  const JsonValue *type = schema.isObject() ? schema.find("type") : nullptr;
  return type && schema.keys.size() == 1 && type->isString() &&
         type->string == "string";
}

/// Whether a keyword that is not understood has a value, or stands beside what
/// makes it, say nothing.
static bool saysNothing(const JsonValue &schema, std::string_view keyword,
                        const JsonValue &value) {
  auto is = [&](std::string_view name) { return keyword == name; };
  if (keyword.substr(0, 2) == "x-")
    return true;
  if (is("uniqueItems") || is("not"))
    return isFalse(value);
  if (is("unevaluatedProperties") || is("unevaluatedItems"))
    return isTrue(value) || isEmptyObject(value);
  if (is("minProperties"))
    return value.isNumber() && value.real == 0;
  if (is("patternProperties") || is("dependentRequired") ||
      is("dependentSchemas") || is("dependencies"))
    return isEmptyObject(value);
  if (is("propertyNames"))
    return takesNames(value);
  if (is("additionalItems")) { // behind those that a list of schemas names
    const JsonValue *items = schema.find("items");
    return !items || !items->isArray();
  }
  if (is("contains")) {
    const JsonValue *least = schema.find("minContains");
    return least && least->isNumber() && least->real == 0 &&
           !schema.find("maxContains");
  }
  if (is("minContains") || is("maxContains"))
    return !schema.find("contains") ||
           (is("minContains") && value.isNumber() && value.real == 0);
  if (is("if"))
    return !schema.find("then") && !schema.find("else");
  return (is("then") || is("else")) && !schema.find("if");
}

KeywordUse useOfKeyword(const JsonValue &schema, std::string_view keyword,
                        const JsonValue &value) {
  static constexpr std::string_view read[] = {"type",
                                              "enum",
                                              "const",
                                              "properties",
                                              "required",
                                              "additionalProperties",
                                              "items",
                                              "prefixItems",
                                              "minItems",
                                              "maxItems",
                                              "minLength",
                                              "maxLength",
                                              "pattern",
                                              "format",
                                              "anyOf",
                                              "oneOf",
                                              "allOf",
                                              "$ref",
                                              "minimum",
                                              "maximum",
                                              "exclusiveMinimum",
                                              "exclusiveMaximum",
                                              "multipleOf"};
  static constexpr std::string_view notes[] = {"title",
                                               "description",
                                               "default",
                                               "examples",
                                               "example",
                                               "deprecated",
                                               "readOnly",
                                               "writeOnly",
                                               "$schema",
                                               "$id",
                                               "$comment",
                                               "$anchor",
                                               "$vocabulary",
                                               "$defs",
                                               "definitions",
                                               "contentEncoding",
                                               "contentMediaType",
                                               "contentSchema",
                                               "nullable",
                                               "discriminator",
                                               "externalDocs",
                                               "xml"};
  auto isIn = [&](const auto &list) {
    return std::find(std::begin(list), std::end(list), keyword) !=
           std::end(list);
  };
  if (isIn(read))
    return KeywordUse::Read;
  if (keyword == "additionalItems" && !saysNothing(schema, keyword, value))
    return KeywordUse::Read;
  return isIn(notes) || saysNothing(schema, keyword, value)
             ? KeywordUse::Nothing
             : KeywordUse::Unknown;
}

TupleKeys tupleKeys(const JsonValue &schema) {
  const JsonValue *items = schema.find("items");
  if (items && items->isArray())
    return {"items", "additionalItems"};
  return {"prefixItems", "items"};
}

bool hasTwoTuples(const JsonValue &schema) {
  const JsonValue *items = schema.find("items");
  return items && items->isArray() && schema.find("prefixItems");
}

} // namespace attune::runtime

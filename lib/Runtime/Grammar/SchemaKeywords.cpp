//===- SchemaKeywords.cpp - What keywords of a schema do ------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SchemaKeywords.h"

#include <algorithm>
#include <iterator>
#include <string_view>

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
  // Of items behind those that a list of schemas names.
  const JsonValue *items = schema.find("items");
  if (is("additionalItems"))
    return !items || !items->isArray();
  const JsonValue *least = schema.find("minContains");
  if (is("contains"))
    return least && least->isNumber() && least->real == 0 &&
           !schema.find("maxContains");
  if (is("minContains") || is("maxContains"))
    return !schema.find("contains") || (is("minContains") && value.real == 0);
  if (is("if"))
    return !schema.find("then") && !schema.find("else");
  if (is("then") || is("else"))
    return !schema.find("if");
  return keyword.substr(0, 2) == "x-";
}

KeywordUse useOfKeyword(const JsonValue &schema, const std::string &keyword,
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
                                              "$defs",
                                              "definitions",
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

const JsonValue *findByReference(const JsonValue &root,
                                 const JsonValue &reference, std::string &why) {
  if (!reference.isString() || reference.string.substr(0, 1) != "#") {
    why = "expected a place in this schema, as #/$defs/NAME";
    return nullptr;
  }
  const JsonValue *at = &root;
  std::string_view rest = std::string_view(reference.string).substr(1);
  while (at && !rest.empty()) {
    if (rest[0] != '/') {
      why = "'" + reference.string + "' is no JSON pointer";
      return nullptr;
    }
    rest.remove_prefix(1);
    size_t end = std::min(rest.find('/'), rest.size());
    std::string name;
    for (size_t i = 0; i < end; ++i)
      if (rest.substr(i, 2) == "~1" || rest.substr(i, 2) == "~0")
        name += rest[++i] == '1' ? '/' : '~';
      else
        name += rest[i];
    rest.remove_prefix(end);
    if (at->isArray()) {
      size_t index = 0;
      for (char c : name)
        index = c >= '0' && c <= '9' && index < 100000
                    ? index * 10 + static_cast<size_t>(c - '0')
                    : 100000;
      at = !name.empty() && index < at->items.size() ? &at->items[index]
                                                     : nullptr;
    } else {
      at = at->isObject() ? at->find(name) : nullptr;
    }
  }
  if (!at)
    why = "there is no '" + reference.string + "'";
  return at;
}

} // namespace attune::runtime

//===- SchemaUnions.cpp - Schemas that say several things -----------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SchemaKeywords.h"
#include "SchemaMerge.h"
#include "SchemaReader.h"

#include <algorithm>

namespace attune::runtime {

/// Values that are looked at while schemas become one: parts that refer to
/// parts can double what there is at every level.
static constexpr size_t mostMerged = 2000000;

/// The values of `const` or `enum` that are valid by all that stands beside.
bool SchemaReader::addValues(const JsonValue &schema, const std::string &where,
                             Grammar::Rule rule) {
  const JsonValue *single = schema.find("const");
  const JsonValue *list = schema.find("enum");
  if (list && !list->isArray())
    return fail(where + "/enum", "expected an array of values");
  if (list && list->items.empty())
    return fail(where + "/enum",
                "expected a value at least: an empty list allows none");
  JsonValue rest;
  rest.kind = JsonValue::Kind::Object;
  for (size_t i = 0; i < schema.keys.size(); ++i)
    if (schema.keys[i] != (single ? "const" : "enum")) {
      rest.keys.push_back(schema.keys[i]);
      rest.items.push_back(schema.items[i]);
    }
  bool hasValue = false;
  for (size_t i = 0; i < (single ? 1 : list->items.size()); ++i) {
    const JsonValue &value = single ? *single : list->items[i];
    SchemaValues::Fit fit = values.fits(value, rest);
    if (fit == SchemaValues::Fit::Unknown)
      return fail(where, "whether the values that it lists are valid by '" +
                             values.keyword() +
                             "' cannot be told; list those that are, without "
                             "it");
    if (fit == SchemaValues::Fit::No)
      continue;
    std::string json;
    appendJson(json, value);
    grammar.addAlternative(rule, text(json));
    hasValue = true;
    if (grammar.isTooLarge())
      return fail(where, "the schema is too large");
  }
  return hasValue || exclude(where, "none of the values that it lists is valid "
                                    "by the keywords beside");
}

bool SchemaReader::addUnion(const JsonValue &schema, const char *keyword,
                            const std::string &where, Grammar::Rule rule) {
  const JsonValue &schemas = *schema.find(keyword);
  std::string place = where + "/" + keyword;
  if (!schemas.isArray() || schemas.items.empty())
    return fail(place, "expected an array of schemas");
  if (std::string_view(keyword) == "oneOf" || restrictsBeside(schema, keyword))
    return addBranches(schema, keyword, where, rule);
  for (size_t i = 0; i < schemas.items.size(); ++i) {
    Grammar::Rule each;
    if (!readSchema(schemas.items[i], place + "/" + std::to_string(i), each))
      return false;
    grammar.addAlternative(rule, {{true, each}});
  }
  return true;
}

/// The one value that a schema has, as text; empty: it is none or several.
static std::string onlyValue(const JsonValue &schema) {
  const JsonValue *value = schema.find("const"), *list = schema.find("enum");
  if (!value && list && list->items.size() == 1)
    value = &list->items[0];
  return value ? canonicalText(*value) : "";
}

/// A member that has another single value in each of several objects is written
/// in all of them, so that it tells them apart.
static void requireNames(std::vector<JsonValue *> &objects) {
  auto valueOf = [](const JsonValue &object, const std::string &name) {
    const JsonValue *members = object.find("properties");
    const JsonValue *member = members ? members->find(name) : nullptr;
    return member && member->isObject() ? onlyValue(*member) : std::string();
  };
  const JsonValue *first =
      objects.empty() ? nullptr : objects[0]->find("properties");
  for (size_t i = 0; first && i < first->keys.size(); ++i) {
    std::string name = first->keys[i]; // the object may move
    std::vector<std::string> texts;
    for (const JsonValue *object : objects)
      texts.push_back(valueOf(*object, name));
    std::sort(texts.begin(), texts.end());
    if (texts[0].empty() ||
        std::adjacent_find(texts.begin(), texts.end()) != texts.end())
      continue;
    JsonValue entry, list;
    entry.kind = JsonValue::Kind::String;
    entry.string = name;
    list.kind = JsonValue::Kind::Array;
    list.items = {entry};
    for (JsonValue *object : objects) {
      auto place =
          std::find(object->keys.begin(), object->keys.end(), "required");
      if (place != object->keys.end()) {
        object->items[place - object->keys.begin()].items.push_back(entry);
        continue;
      }
      object->keys.emplace_back("required");
      object->items.push_back(list);
    }
    return;
  }
}

/// The schemas of a union, each with what stands beside the union. Of `oneOf`,
/// no text of one may be valid by another one.
bool SchemaReader::addBranches(const JsonValue &schema, const char *keyword,
                               const std::string &where, Grammar::Rule rule) {
  const JsonValue &schemas = *schema.find(keyword);
  std::string place = where + "/" + keyword;
  JsonValue rest;
  rest.kind = JsonValue::Kind::Object;
  for (size_t i = 0; i < schema.keys.size(); ++i)
    if (schema.keys[i] != keyword) {
      rest.keys.push_back(schema.keys[i]);
      rest.items.push_back(schema.items[i]);
    }
  std::vector<JsonValue *> branches;
  std::vector<size_t> numbers;
  for (size_t i = 0; i < schemas.items.size(); ++i) {
    merged.emplace_back(new JsonValue());
    JsonValue &whole = *merged.back();
    whole.kind = JsonValue::Kind::Object;
    bool isExcluded = false;
    if (!mergeParts(whole, rest, where, 0, isExcluded) ||
        !mergeParts(whole, schemas.items[i], place + "/" + std::to_string(i), 1,
                    isExcluded))
      return false;
    if (isExcluded)
      continue;
    branches.push_back(&whole);
    numbers.push_back(i);
  }
  if (std::string_view(keyword) == "oneOf") {
    requireNames(branches);
    for (size_t i = 0; i < branches.size(); ++i)
      for (size_t j = 0; j < branches.size(); ++j)
        if (i != j && !values.neverFits(*branches[i], *branches[j]))
          return fail(place,
                      "a value may be valid by both " +
                          std::to_string(std::min(numbers[i], numbers[j])) +
                          " and " +
                          std::to_string(std::max(numbers[i], numbers[j])) +
                          ", which 'oneOf' excludes; write 'anyOf', or "
                          "tell them apart by their types or by a "
                          "required member with a 'const'");
  }
  for (size_t i = 0; i < branches.size(); ++i) {
    Grammar::Rule each;
    if (!readSchema(*branches[i], place + "/" + std::to_string(numbers[i]),
                    each))
      return false;
    grammar.addAlternative(rule, {{true, each}});
  }
  return !branches.empty() ||
         exclude(where, "no value is valid by '" + std::string(keyword) +
                            "' and what stands beside it");
}

/// Adds what a schema says, with the schemas of `allOf` and `$ref`.
bool SchemaReader::mergeParts(JsonValue &to, const JsonValue &schema,
                              const std::string &where, unsigned level,
                              bool &isExcluded) {
  if (level > mostDepth)
    return fail(where, "schemas refer to each other without end");
  if (schema.isBool()) {
    isExcluded |= !schema.boolean;
    return true;
  }
  if (!schema.isObject())
    return fail(where,
                std::string("expected an object, found ") + schema.kindName());
  if (!checkKeywords(schema, where))
    return false;
  const JsonValue *parts = schema.find("allOf");
  const JsonValue *reference = schema.find("$ref");
  TupleKeys tuple = tupleKeys(schema);
  JsonValue own;
  own.kind = JsonValue::Kind::Object;
  for (size_t i = 0; i < schema.keys.size(); ++i) {
    const std::string &key = schema.keys[i];
    if (key == "allOf" || key == "$ref" ||
        useOfKeyword(schema, key, schema.items[i]) == KeywordUse::Nothing)
      continue;
    own.keys.push_back(key == tuple.firsts ? "prefixItems"
                       : key == tuple.rest ? "items"
                                           : key);
    own.items.push_back(schema.items[i]);
  }
  numMerged += countValues(to) + countValues(own);
  if (numMerged > mostMerged)
    return fail(where, "the parts of all 'allOf' are too large as one");
  std::string keyword;
  MergeResult result = mergeSchema(to, own, keyword);
  if (result == MergeResult::Refused)
    return fail(where, "the parts disagree on '" + keyword +
                           "', and no one schema says both; merge them by "
                           "hand");
  if (result == MergeResult::Nothing) {
    isExcluded = true;
    exclude(where, "no value is valid by '" + keyword + "' of all parts");
  }
  if (reference) {
    const JsonValue *target = followReference(root, *reference, problem);
    if (!target)
      return fail(where + "/$ref", problem);
    if (!mergeParts(to, *target, reference->string, level + 1, isExcluded))
      return false;
  }
  if (parts && (!parts->isArray() || parts->items.empty()))
    return fail(where + "/allOf", "expected an array of schemas");
  for (size_t i = 0; parts && i < parts->items.size(); ++i)
    if (!mergeParts(to, parts->items[i], where + "/allOf/" + std::to_string(i),
                    level + 1, isExcluded))
      return false;
  return true;
}

bool SchemaReader::addAll(const JsonValue &schema, const std::string &where,
                          Grammar::Rule rule) {
  merged.emplace_back(new JsonValue());
  JsonValue &whole = *merged.back();
  whole.kind = JsonValue::Kind::Object;
  Grammar::Rule target;
  bool isExcluded = false;
  if (!mergeParts(whole, schema, where, 0, isExcluded))
    return false;
  if (isExcluded)
    return true;
  if (!readSchema(whole, where, target))
    return false;
  grammar.addAlternative(rule, {{true, target}});
  return true;
}

bool SchemaReader::addReference(const JsonValue &reference,
                                const std::string &where, Grammar::Rule rule) {
  const JsonValue *at = followReference(root, reference, problem);
  if (!at)
    return fail(where, problem);
  Grammar::Rule target;
  if (!readSchema(*at, reference.string.substr(1), target))
    return false;
  grammar.addAlternative(rule, {{true, target}});
  return true;
}

} // namespace attune::runtime

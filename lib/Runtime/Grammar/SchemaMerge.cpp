//===- SchemaMerge.cpp - Several schemas as one ---------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SchemaMerge.h"

#include "SchemaValues.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

namespace attune::runtime {

/// Pairs of parts of two unions.
static constexpr size_t mostPairs = 1000;

static JsonValue *findIn(JsonValue &object, std::string_view key) {
  return const_cast<JsonValue *>(object.find(key));
}

/// {"allOf": [x, y]}
static JsonValue bothOf(JsonValue x, const JsonValue &y) {
  if (x.isBool())
    return x.boolean ? y : x;
  if (y.isBool())
    return y.boolean ? x : y;
  JsonValue both, list;
  list.kind = JsonValue::Kind::Array;
  list.items = {std::move(x), y};
  both.kind = JsonValue::Kind::Object;
  both.keys = {"allOf"};
  both.items = {std::move(list)};
  return both;
}

static bool isOneOf(std::string_view key,
                    std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), key) != names.end();
}

/// The values of `to` that `from` has, too.
static MergeResult intersect(JsonValue &to, const JsonValue &from) {
  if (!to.isArray() || !from.isArray())
    return MergeResult::Refused;
  std::vector<std::string> others;
  for (const JsonValue &value : from.items)
    others.push_back(canonicalText(value));
  std::sort(others.begin(), others.end());
  auto isMissing = [&](const JsonValue &value) {
    return !std::binary_search(others.begin(), others.end(),
                               canonicalText(value));
  };
  to.items.erase(std::remove_if(to.items.begin(), to.items.end(), isMissing),
                 to.items.end());
  return to.items.empty() ? MergeResult::Nothing : MergeResult::Good;
}

/// A whole number is a number.
static MergeResult mergeTypes(JsonValue &to, const JsonValue &from) {
  auto listOf = [](const JsonValue &type) {
    return type.isString() ? std::vector<JsonValue>{type} : type.items;
  };
  std::vector<JsonValue> common, others = listOf(from);
  auto add = [&](const JsonValue &type) {
    auto isSame = [&](const JsonValue &x) { return x.string == type.string; };
    if (std::none_of(common.begin(), common.end(), isSame))
      common.push_back(type);
  };
  for (const JsonValue &x : listOf(to))
    for (const JsonValue &y : others)
      if (x.string == y.string ||
          (x.string == "integer" && y.string == "number"))
        add(x);
      else if (x.string == "number" && y.string == "integer")
        add(y);
  if (common.empty())
    return MergeResult::Nothing;
  if (common.size() == 1) {
    to = std::move(common[0]);
    return MergeResult::Good;
  }
  to = JsonValue();
  to.kind = JsonValue::Kind::Array;
  to.items = std::move(common);
  return MergeResult::Good;
}

/// One of these and one of those.
static MergeResult mergeUnions(JsonValue &to, const JsonValue &from) {
  if (!to.isArray() || !from.isArray() ||
      to.items.size() * from.items.size() > mostPairs)
    return MergeResult::Refused;
  std::vector<JsonValue> pairs;
  for (const JsonValue &x : to.items)
    for (const JsonValue &y : from.items)
      pairs.push_back(bothOf(x, y));
  to.items = std::move(pairs);
  return MergeResult::Good;
}

static MergeResult mergeMembers(JsonValue &to, const JsonValue &from) {
  if (!to.isObject() || !from.isObject())
    return MergeResult::Refused;
  std::vector<std::pair<std::string_view, size_t>> own;
  for (size_t i = 0; i < to.keys.size(); ++i)
    own.emplace_back(to.keys[i], i);
  std::sort(own.begin(), own.end());
  JsonValue more;
  for (size_t i = 0; i < from.keys.size(); ++i) {
    std::string_view key = from.keys[i];
    auto found =
        std::lower_bound(own.begin(), own.end(), std::pair(key, size_t(0)));
    if (found != own.end() && found->first == key) {
      JsonValue &member = to.items[found->second];
      member = bothOf(std::move(member), from.items[i]);
      continue;
    }
    more.keys.push_back(from.keys[i]);
    more.items.push_back(from.items[i]);
  }
  std::move(more.keys.begin(), more.keys.end(), std::back_inserter(to.keys));
  std::move(more.items.begin(), more.items.end(), std::back_inserter(to.items));
  return MergeResult::Good;
}

static MergeResult mergeKeyword(std::string_view key, JsonValue &to,
                                const JsonValue &from) {
  if (key == "prefixItems" || // as merged before
      canonicalText(to) == canonicalText(from))
    return MergeResult::Good;
  if (key == "type")
    return mergeTypes(to, from);
  if (key == "const")
    return MergeResult::Nothing;
  if (key == "enum")
    return intersect(to, from);
  if (key == "properties")
    return mergeMembers(to, from);
  if (isOneOf(key, {"anyOf", "oneOf"}))
    return mergeUnions(to, from);
  if (isOneOf(key, {"items", "additionalProperties"})) {
    to = bothOf(std::move(to), from);
    return MergeResult::Good;
  }
  if (key == "required") {
    if (!to.isArray() || !from.isArray())
      return MergeResult::Refused;
    to.items.insert(to.items.end(), from.items.begin(), from.items.end());
    return MergeResult::Good;
  }
  bool isLeast =
      isOneOf(key, {"minimum", "exclusiveMinimum", "minLength", "minItems"});
  if (isLeast ||
      isOneOf(key, {"maximum", "exclusiveMaximum", "maxLength", "maxItems"})) {
    if (!to.isNumber() || !from.isNumber())
      return MergeResult::Refused;
    if (isLeast ? from.real > to.real : from.real < to.real)
      to = from;
    return MergeResult::Good;
  }
  return MergeResult::Refused;
}

/// Asks what a schema says of members that it does not name of members that the
/// other one names. False: there may be none.
static bool askOfNames(const JsonValue &schema, JsonValue &other) {
  const JsonValue *rest = schema.find("additionalProperties");
  JsonValue *names = findIn(other, "properties");
  if (!rest || (rest->isBool() && rest->boolean) || !names)
    return true;
  const JsonValue *own = schema.find("properties");
  for (size_t i = 0; i < names->keys.size(); ++i) {
    if (own && own->find(names->keys[i]))
      continue;
    if (rest->isBool())
      return false;
    names->items[i] = bothOf(std::move(names->items[i]), *rest);
  }
  return true;
}

/// Each item is asked what both schemas say of its place.
static void mergeFirstItems(JsonValue &to, const JsonValue &from) {
  const JsonValue *firsts[] = {to.find("prefixItems"),
                               from.find("prefixItems")};
  const JsonValue *rests[] = {to.find("items"), from.find("items")};
  size_t count = 0;
  for (const JsonValue *each : firsts)
    if (each)
      count = std::max(count, each->items.size());
  if (count == 0)
    return;
  JsonValue merged;
  merged.kind = JsonValue::Kind::Array;
  for (size_t place = 0; place < count; ++place) {
    JsonValue item;
    item.kind = JsonValue::Kind::Bool;
    item.boolean = true;
    for (int i = 0; i < 2; ++i) {
      bool isFirst = firsts[i] && place < firsts[i]->items.size();
      if (isFirst || rests[i])
        item = bothOf(std::move(item),
                      isFirst ? firsts[i]->items[place] : *rests[i]);
    }
    merged.items.push_back(std::move(item));
  }
  if (JsonValue *own = findIn(to, "prefixItems")) {
    *own = std::move(merged);
    return;
  }
  to.keys.emplace_back("prefixItems");
  to.items.push_back(std::move(merged));
}

MergeResult mergeSchema(JsonValue &to, const JsonValue &given,
                        std::string &keyword) {
  JsonValue from = given;
  keyword = "additionalProperties";
  if (!askOfNames(to, from) || !askOfNames(given, to))
    return MergeResult::Refused;
  mergeFirstItems(to, from);
  for (size_t i = 0; i < from.keys.size(); ++i) {
    keyword = from.keys[i];
    JsonValue *own = findIn(to, keyword);
    if (!own) {
      to.keys.push_back(keyword);
      to.items.push_back(std::move(from.items[i]));
      continue;
    }
    MergeResult result = mergeKeyword(keyword, *own, from.items[i]);
    if (result != MergeResult::Good)
      return result;
  }
  return MergeResult::Good;
}

} // namespace attune::runtime

//===- SchemaMerge.cpp - Several schemas as one ---------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SchemaMerge.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

namespace attune::runtime {

static std::string textOf(const JsonValue &value) {
  std::string text;
  appendJson(text, value);
  return text;
}

static JsonValue *findIn(JsonValue &object, std::string_view key) {
  return const_cast<JsonValue *>(object.find(key));
}

/// {"allOf": [x, y]}
static JsonValue bothOf(JsonValue x, const JsonValue &y) {
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
static bool intersect(JsonValue &to, const JsonValue &from) {
  if (!to.isArray() || !from.isArray())
    return false;
  std::vector<std::string> others;
  for (const JsonValue &value : from.items)
    others.push_back(textOf(value));
  std::sort(others.begin(), others.end());
  auto isMissing = [&](const JsonValue &value) {
    return !std::binary_search(others.begin(), others.end(), textOf(value));
  };
  to.items.erase(std::remove_if(to.items.begin(), to.items.end(), isMissing),
                 to.items.end());
  return !to.items.empty();
}

static bool mergeMembers(JsonValue &to, const JsonValue &from) {
  if (!to.isObject() || !from.isObject())
    return false;
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
  return true;
}

static bool mergeKeyword(std::string_view key, JsonValue &to,
                         const JsonValue &from) {
  if (textOf(to) == textOf(from))
    return true;
  if (key == "type") {
    bool areNumbers = to.isString() && from.isString() &&
                      isOneOf(to.string, {"integer", "number"}) &&
                      isOneOf(from.string, {"integer", "number"});
    if (areNumbers)
      to.string = "integer";
    return areNumbers || intersect(to, from);
  }
  if (key == "enum")
    return intersect(to, from);
  if (key == "properties")
    return mergeMembers(to, from);
  if (key == "items" || key == "additionalItems") {
    if (to.isArray() || from.isArray()) // a schema for each
      return false;
    to = bothOf(std::move(to), from);
    return true;
  }
  if (isOneOf(key, {"required", "allOf"})) {
    if (!to.isArray() || !from.isArray())
      return false;
    to.items.insert(to.items.end(), from.items.begin(), from.items.end());
    return true;
  }
  bool isLeast =
      isOneOf(key, {"minimum", "exclusiveMinimum", "minLength", "minItems"});
  if (isLeast ||
      isOneOf(key, {"maximum", "exclusiveMaximum", "maxLength", "maxItems"})) {
    if (!to.isNumber() || !from.isNumber())
      return false;
    if (isLeast ? from.real > to.real : from.real < to.real)
      to = from;
    return true;
  }
  return isOneOf(key, {"$defs", "definitions"});
}

/// Whether what a schema says of members that it does not name would be asked
/// of members that the other one names.
static bool namesOthers(const JsonValue &closed, const JsonValue &other) {
  const JsonValue *rest = closed.find("additionalProperties");
  const JsonValue *names = other.find("properties");
  if (!rest || (rest->isBool() && rest->boolean) || !names)
    return false;
  const JsonValue *own = closed.find("properties");
  return std::any_of(
      names->keys.begin(), names->keys.end(),
      [&](const std::string &name) { return !own || !own->find(name); });
}

bool mergeSchema(JsonValue &to, const JsonValue &from, std::string &keyword) {
  keyword = "additionalProperties";
  if (namesOthers(to, from) || namesOthers(from, to))
    return false;
  for (size_t i = 0; i < from.keys.size(); ++i) {
    keyword = from.keys[i];
    JsonValue *own = findIn(to, keyword);
    if (own) {
      if (!mergeKeyword(keyword, *own, from.items[i]))
        return false;
      continue;
    }
    to.keys.push_back(keyword);
    to.items.push_back(from.items[i]);
  }
  return true;
}

} // namespace attune::runtime

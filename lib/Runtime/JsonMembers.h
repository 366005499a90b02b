//===- JsonMembers.h - Objects of few members -------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reading and making messages and the like. Members are looked for one by one.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_JSONMEMBERS_H
#define ATTUNE_LIB_RUNTIME_JSONMEMBERS_H

#include "attune/Runtime/Json.h"

#include <string>
#include <string_view>
#include <utility>

namespace attune::runtime {

inline JsonValue makeText(std::string text) {
  JsonValue value;
  value.kind = JsonValue::Kind::String;
  value.string = std::move(text);
  return value;
}

/// As JsonValue::find(), to be changed.
inline JsonValue *memberOf(JsonValue &object, std::string_view key) {
  for (size_t i = 0; i < object.keys.size(); ++i)
    if (object.keys[i] == key)
      return &object.items[i];
  return nullptr;
}

/// The member if it is a text, of an object; else null.
inline const std::string *textOf(const JsonValue &object,
                                 std::string_view key) {
  const JsonValue *value = object.isObject() ? object.find(key) : nullptr;
  return value && value->isString() ? &value->string : nullptr;
}

/// Adds a member that is not there.
inline void addMember(JsonValue &object, std::string_view key,
                      JsonValue value) {
  object.kind = JsonValue::Kind::Object;
  object.keys.emplace_back(key);
  object.items.push_back(std::move(value));
}

/// Adds a member, or gives it another value.
inline void setMember(JsonValue &object, std::string_view key,
                      JsonValue value) {
  if (JsonValue *own = memberOf(object, key))
    *own = std::move(value);
  else
    addMember(object, key, std::move(value));
}

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_JSONMEMBERS_H

//===- RequestFields.cpp - Members of a request's JSON --------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RequestFields.h"

#include <cstdio>

namespace attune::runtime {

const JsonValue *RequestFields::find(std::string_view name) const {
  const JsonValue *value = object.find(name);
  return value && !value->isNull() ? value : nullptr;
}

/// A whole number. Some languages write 8 as 8.0, or 1e3.
static bool asWhole(const JsonValue &value, int64_t &number) {
  constexpr double exact = 9007199254740992; // up to 2^53
  number = value.integer;
  if (value.isInt())
    return true;
  if (!value.isNumber() || !(value.real >= -exact && value.real <= exact))
    return false;
  number = static_cast<int64_t>(value.real);
  return static_cast<double>(number) == value.real;
}

static std::string formatNumber(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.10g", value);
  return text;
}

bool RequestFields::expected(std::string_view name, const std::string &what,
                             const JsonValue &found) {
  std::string value = found.isInt()      ? std::to_string(found.integer)
                      : found.isNumber() ? formatNumber(found.real)
                                         : found.kindName();
  return error.set("'" + std::string(name) + "': expected " + what +
                       ", found " + value,
                   name);
}

bool RequestFields::take(std::string_view name, bool &value) {
  const JsonValue *found = find(name);
  if (found && !found->isBool())
    return expected(name, "true or false", *found);
  if (found)
    value = found->boolean;
  return true;
}

bool RequestFields::take(std::string_view name, int64_t least, int64_t most,
                         int64_t &value) {
  const JsonValue *found = find(name);
  int64_t number = 0;
  if (found && (!asWhole(*found, number) || number < least || number > most))
    return expected(name,
                    "a whole number " +
                        (least == INT64_MIN && most == INT64_MAX ? "of 64 bits"
                         : most == INT64_MAX
                             ? "of " + std::to_string(least) + " or more"
                             : "from " + std::to_string(least) + " to " +
                                   std::to_string(most)),
                    *found);
  if (found)
    value = number;
  return true;
}

bool RequestFields::take(std::string_view name, double least, double most,
                         double &value) {
  const JsonValue *found = find(name);
  // Written so that NaN is refused, too.
  if (found &&
      !(found->isNumber() && found->real >= least && found->real <= most))
    return expected(name,
                    "a number from " + formatNumber(least) + " to " +
                        formatNumber(most),
                    *found);
  if (found)
    value = found->real;
  return true;
}

bool RequestFields::take(std::string_view name, std::string &value) {
  const JsonValue *found = find(name);
  if (found && !found->isString())
    return expected(name, "a string", *found);
  if (found)
    value = found->string;
  return true;
}

bool RequestFields::take(std::string_view name, size_t most,
                         std::vector<std::string> &values) {
  const JsonValue *found = find(name);
  if (!found)
    return true;
  if (found->isString()) {
    values.assign(1, found->string);
    return true;
  }
  if (!found->isArray())
    return expected(name, "a string or an array of strings", *found);
  if (found->items.size() > most)
    return error.set("'" + std::string(name) + "': expected at most " +
                         std::to_string(most) + " strings, found " +
                         std::to_string(found->items.size()),
                     name);
  values.clear();
  for (const JsonValue &item : found->items) {
    if (!item.isString())
      return expected(name, "an array of strings", item);
    values.push_back(item.string);
  }
  return true;
}

bool RequestFields::takeIds(std::string_view name, const JsonValue &value,
                            int64_t end, std::vector<int64_t> &ids) {
  if (!value.isArray())
    return expected(name, "an array of token ids", value);
  ids.clear();
  ids.reserve(value.items.size());
  for (const JsonValue &item : value.items) {
    int64_t id = 0;
    if (!asWhole(item, id) || id < 0 || id >= end)
      return expected(name, "token ids from 0 to " + std::to_string(end - 1),
                      item);
    ids.push_back(id);
  }
  return true;
}

} // namespace attune::runtime

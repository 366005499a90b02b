//===- JsonWriter.cpp - JSON laid out for readers ---------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "JsonWriter.h"

#include <cmath>

namespace attune::spec {

static constexpr size_t lineWidth = 100;

static std::string scalar(const Json &value) {
  // A whole number reads better without its ".0", and parses to the same.
  if (value.is_number_float()) {
    double number = value.get<double>();
    if (number == std::floor(number) && std::fabs(number) < 1e15)
      return std::to_string(static_cast<int64_t>(number));
  }
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// The value on one line; stops growing soon after `limit`.
static std::string flat(const Json &value, size_t limit) {
  if (!value.is_structured())
    return scalar(value);
  bool isObject = value.is_object();
  std::string result = isObject ? "{" : "[";
  bool first = true;
  for (auto it = value.begin(); it != value.end() && result.size() <= limit;
       ++it) {
    if (!first)
      result += ", ";
    first = false;
    if (isObject)
      result += scalar(it.key()) + ": ";
    result += flat(*it, limit);
  }
  return result + (isObject ? "}" : "]");
}

static void write(const Json &value, size_t indent, size_t column,
                  std::string &out) {
  size_t room = lineWidth > column ? lineWidth - column : 0;
  std::string line = flat(value, room);
  if (!value.is_structured() || value.empty() || line.size() <= room) {
    out += line;
    return;
  }
  bool isObject = value.is_object();
  out += isObject ? "{" : "[";
  bool first = true;
  for (auto it = value.begin(); it != value.end(); ++it) {
    out += first ? "\n" : ",\n";
    first = false;
    size_t lineStart = out.size();
    out.append(indent + 2, ' ');
    if (isObject)
      out += scalar(it.key()) + ": ";
    // One column for the comma.
    write(*it, indent + 2, out.size() - lineStart + 1, out);
  }
  out += "\n" + std::string(indent, ' ') + (isObject ? "}" : "]");
}

std::string writeJson(const Json &value) {
  std::string result;
  write(value, 0, 0, result);
  return result + "\n";
}

} // namespace attune::spec

//===- TensorNames.cpp - Names of tensors with a place for numbers --------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Support/TensorNames.h"

#include <charconv>
#include <optional>

namespace attune {

/// The number that `text` begins with, which is taken off.
static std::optional<int64_t> takeNumber(std::string_view &text) {
  int64_t number = 0;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0)
    return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

static bool take(std::string_view &text, char expected) {
  if (text.empty() || text.front() != expected)
    return false;
  text.remove_prefix(1);
  return true;
}

/// Entry `layer` of a list "0,2-4".
static std::optional<int64_t> findInList(std::string_view list, int64_t layer) {
  do {
    std::optional<int64_t> first = takeNumber(list), last = first;
    if (first && take(list, '-'))
      last = takeNumber(list);
    if (!first || !last || *last < *first)
      return std::nullopt;
    if (layer <= *last - *first)
      return *first + layer;
    layer -= *last - *first + 1;
  } while (take(list, ','));
  return std::nullopt;
}

/// What "{i" and `text` and "}" stand for, if it is one of the forms.
static std::optional<int64_t> numberOf(std::string_view text, int64_t layer) {
  if (text.empty())
    return layer;
  if (take(text, '='))
    return findInList(text, layer);
  if (!take(text, '+') || text.size() > 9)
    return std::nullopt;
  std::optional<int64_t> first = takeNumber(text);
  return first && text.empty() ? std::optional(*first + layer) : std::nullopt;
}

std::string substituteLayer(std::string name, int64_t layer) {
  for (size_t at = 0; (at = name.find("{i", at)) != std::string::npos;) {
    size_t close = name.find('}', at);
    if (close == std::string::npos)
      break;
    std::string_view form(name);
    form = form.substr(at + 2, close - at - 2);
    std::optional<int64_t> number = numberOf(form, layer);
    if (!number) {
      at = close;
      continue;
    }
    std::string text = std::to_string(*number);
    name.replace(at, close - at + 1, text);
    at += text.size();
  }
  return name;
}

std::string placeOfNumbers(const std::vector<int64_t> &numbers) {
  bool follow = true;
  for (size_t i = 1; i < numbers.size(); ++i)
    follow &= numbers[i] == numbers[i - 1] + 1;
  if (follow && numbers.front() == 0)
    return "{i}";
  if (follow)
    return "{i+" + std::to_string(numbers.front()) + "}";
  std::string list;
  for (size_t i = 0, end = 0; i < numbers.size(); i = end) {
    end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1)
      ++end;
    list += (list.empty() ? "" : ",") + std::to_string(numbers[i]);
    if (end > i + 1)
      list += "-" + std::to_string(numbers[end - 1]);
  }
  return "{i=" + list + "}";
}

std::string substitutePart(std::string name, int64_t part) {
  std::string text = std::to_string(part);
  for (size_t at = 0; (at = name.find("{e}", at)) != std::string::npos;
       at += text.size())
    name.replace(at, 3, text);
  return name;
}

bool cutEnd(const std::string &name, std::string_view end, std::string &base) {
  if (name.size() <= end.size() ||
      name.compare(name.size() - end.size(), end.size(), end) != 0)
    return false;
  base = name.substr(0, name.size() - end.size());
  return true;
}

} // namespace attune

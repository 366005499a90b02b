//===- PartsOfSet.cpp - Files that are numbered -----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PartsOfSet.h"

namespace attune {

std::vector<std::string> partsOfSet(const std::string &path,
                                    const std::string &end) {
  constexpr size_t digits = 5;
  const std::string of = "-of-";
  size_t tail = 1 + digits + of.size() + digits + end.size();
  if (path.size() < tail ||
      path.compare(path.size() - end.size(), end.size(), end) != 0)
    return {};
  size_t at = path.size() - tail;
  std::string number = path.substr(at + 1, digits),
              total = path.substr(at + 1 + digits + of.size(), digits);
  if (path[at] != '-' || path.compare(at + 1 + digits, of.size(), of) != 0 ||
      (number + total).find_first_not_of("0123456789") != std::string::npos)
    return {};
  std::vector<std::string> parts;
  for (int i = 1; i <= std::stoi(total); ++i) {
    std::string name = std::to_string(i);
    name.insert(0, digits - name.size(), '0');
    parts.push_back(path.substr(0, at + 1) + name + of + total + end);
  }
  return parts;
}

} // namespace attune

//===- TensorNames.cpp - Names of tensors with a place for numbers --------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Support/TensorNames.h"

namespace attune {

std::string substituteLayer(std::string name, int64_t layer) {
  for (size_t at = 0; (at = name.find("{i", at)) != std::string::npos;) {
    size_t close = name.find('}', at);
    if (close == std::string::npos)
      break;
    int64_t number = layer;
    bool isNumber = close == at + 2;
    if (!isNumber && name[at + 2] == '+' && close > at + 3 && close < at + 13) {
      std::string digits = name.substr(at + 3, close - at - 3);
      isNumber = digits.find_first_not_of("0123456789") == std::string::npos;
      if (isNumber)
        number += std::stoll(digits);
    }
    if (!isNumber) {
      at = close;
      continue;
    }
    std::string text = std::to_string(number);
    name.replace(at, close - at + 1, text);
    at += text.size();
  }
  return name;
}

std::string substitutePart(std::string name, int64_t part) {
  std::string text = std::to_string(part);
  for (size_t at = 0; (at = name.find("{e}", at)) != std::string::npos;
       at += text.size())
    name.replace(at, 3, text);
  return name;
}

} // namespace attune

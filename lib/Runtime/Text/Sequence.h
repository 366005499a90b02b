//===- Sequence.h - Steps of a tokenizer's part in a row --------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_TEXT_SEQUENCE_H
#define ATTUNE_LIB_RUNTIME_TEXT_SEQUENCE_H

#include "attune/Runtime/Error.h"
#include "attune/Runtime/Json.h"

#include <string>
#include <vector>

namespace attune::runtime {

/// The steps of a 'Sequence' in tokenizer.json, which may hold further ones.
/// `part` is what they make, as "normalizer"; `depth` counts the sequences
/// around this one. Null with an error if the steps are missing, or if
/// sequences lie too deep for a reader that calls itself.
inline const std::vector<JsonValue> *
stepsOfSequence(const JsonValue &json, const std::string &part,
                const std::string &key, unsigned depth, Error &error) {
  constexpr unsigned maxDepth = 8;
  const JsonValue *list = json.find(key);
  if (!list || !list->isArray()) {
    error.badInput(part + " 'Sequence' without '" + key + "'");
    return nullptr;
  }
  if (depth > maxDepth) {
    error.badInput(part + ": more than " + std::to_string(maxDepth + 1) +
                   " times a 'Sequence' within another");
    return nullptr;
  }
  return &list->items;
}

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_TEXT_SEQUENCE_H

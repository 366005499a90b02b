//===- Vocabulary.cpp - Tokens and their numbers --------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Vocabulary.h"

#include <algorithm>

namespace attune::runtime {

static uint64_t hashOf(std::string_view text) {
  TextHash hash;
  hash.add(text);
  return hash.finish();
}

void Vocabulary::grow() {
  std::vector<uint32_t> old = std::move(slots);
  slots.assign(std::max<size_t>(1024, old.size() * 2), 0);
  size_t mask = slots.size() - 1;
  for (uint32_t slot : old) {
    if (!slot)
      continue;
    size_t i = hashOf(text(slot - 1)) & mask;
    while (slots[i])
      i = (i + 1) & mask;
    slots[i] = slot;
  }
}

bool Vocabulary::add(std::string_view token, uint32_t id) {
  if (has(id))
    return false;
  if (id >= entries.size())
    entries.resize(id + 1);
  entries[id] = {static_cast<uint32_t>(arena.size()),
                 static_cast<uint32_t>(token.size())};
  arena.append(token.data(), token.size());
  maxLength = std::max(maxLength, token.size());
  ++numTexts;
  if (used * 2 >= slots.size())
    grow();
  size_t mask = slots.size() - 1;
  for (size_t i = hashOf(token) & mask;; i = (i + 1) & mask) {
    if (slots[i] && text(slots[i] - 1) != token)
      continue;
    used += !slots[i];
    slots[i] = id + 1;
    return true;
  }
}

uint32_t Vocabulary::find(std::string_view token, uint64_t hash) const {
  if (slots.empty())
    return none;
  size_t mask = slots.size() - 1;
  for (size_t i = hash & mask; slots[i]; i = (i + 1) & mask)
    if (text(slots[i] - 1) == token)
      return slots[i] - 1;
  return none;
}

} // namespace attune::runtime

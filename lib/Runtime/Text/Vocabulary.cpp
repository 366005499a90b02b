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
  std::vector<uint32_t> larger(std::max<size_t>(1024, slots.size() * 2));
  size_t mask = larger.size() - 1;
  for (uint32_t slot : slots) {
    if (!slot)
      continue;
    size_t i = hashOf(text(slot - 1)) & mask;
    while (larger[i])
      i = (i + 1) & mask;
    larger[i] = slot;
  }
  slots.set(std::move(larger));
}

bool Vocabulary::add(std::string_view token, uint32_t id) {
  if (has(id))
    return false;
  if (id >= entries.size())
    entries.resize(id + 1);
  entries.at(id) = {static_cast<uint32_t>(arena.size()),
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
    slots.at(i) = id + 1;
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

void Vocabulary::write(TokenizerTableWriter &table) const {
  table.add(TokenizerTable::Entries, entries);
  table.add(TokenizerTable::Texts, arena);
  table.add(TokenizerTable::TokenSlots, slots);
  table.counts.texts = numTexts;
  table.counts.longest = static_cast<uint32_t>(maxLength);
}

bool Vocabulary::take(const TokenizerTable &table) {
  numTexts = table.counts().texts;
  maxLength = table.counts().longest;
  // A search ends at a slot that is free.
  return table.get(TokenizerTable::Entries, entries) &&
         table.get(TokenizerTable::Texts, arena) &&
         table.get(TokenizerTable::TokenSlots, slots) &&
         (slots.size() & (slots.size() - 1)) == 0 && numTexts < slots.size() &&
         numTexts <= entries.size() && entries.size() <= maxTokens;
}

} // namespace attune::runtime

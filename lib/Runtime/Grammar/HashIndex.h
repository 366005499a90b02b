//===- HashIndex.h - Numbers of things by their hash ------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_GRAMMAR_HASHINDEX_H
#define ATTUNE_LIB_RUNTIME_GRAMMAR_HASHINDEX_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace attune::runtime {

/// Finds things that stand in a list by what they are: the time does not grow
/// with the list. (Maps of the C++ library need its functions, which products
/// do not have.)
class HashIndex {
public:
  /// The number of the thing that `isIt` knows by its number, or `next`, which
  /// is from now on the number of this one.
  template <typename IsIt>
  uint32_t find(uint64_t hash, size_t next, IsIt isIt) {
    if (count * 2 >= slots.size())
      grow();
    hash = mix(hash, 0);
    size_t mask = slots.size() - 1, i = hash & mask;
    for (; slots[i].isUsed; i = (i + 1) & mask)
      if (slots[i].hash == hash && isIt(slots[i].number))
        return slots[i].number;
    slots[i] = {hash, static_cast<uint32_t>(next), true};
    ++count;
    return slots[i].number;
  }

  static uint64_t mix(uint64_t hash, uint64_t value) {
    hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 29;
  }

private:
  struct Slot {
    uint64_t hash;
    uint32_t number;
    bool isUsed;
  };
  void grow() {
    std::vector<Slot> old(slots.empty() ? 64 : slots.size() * 2);
    old.swap(slots);
    for (const Slot &slot : old) {
      size_t mask = slots.size() - 1, i = slot.hash & mask;
      while (slot.isUsed && slots[i].isUsed)
        i = (i + 1) & mask;
      if (slot.isUsed)
        slots[i] = slot;
    }
  }

  std::vector<Slot> slots;
  size_t count = 0;
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_GRAMMAR_HASHINDEX_H

//===- TextHash.h - Hashes of texts -----------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_TEXTHASH_H
#define ATTUNE_LIB_RUNTIME_TEXTHASH_H

#include <cstdint>
#include <string_view>

namespace attune::runtime {

/// The hash of a text, a byte at a time: FNV-1a (Fowler, Noll, Vo).
struct TextHash {
  uint64_t value = 0xcbf29ce484222325u;
  void add(char c) {
    value = (value ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  }
  void add(std::string_view text) {
    for (char c : text)
      add(c);
  }
  /// For tables, whose places are its lowest bits.
  uint64_t finish() const {
    uint64_t mixed = (value ^ value >> 32) * 0x9E3779B97F4A7C15u;
    return mixed ^ mixed >> 29;
  }
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_TEXTHASH_H

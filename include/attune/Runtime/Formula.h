//===- Formula.h - Sizes that follow from others ----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_RUNTIME_FORMULA_H
#define ATTUNE_RUNTIME_FORMULA_H

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

namespace attune::runtime {

/// A size that follows from others, "(samples-10)/5+1" or
/// "((height-2)/2+1)*2".
template <typename Dims> class Formula {
public:
  /// `dim` gives the size of a name, or less than 0.
  Formula(std::string_view text, Dims dim) : text(text), dim(dim) {}

  /// Nothing if it is none or a size is not known.
  std::optional<int64_t> value() {
    if (text.empty() || text[0] != '(')
      return std::nullopt;
    int64_t result = sum();
    return good && text.empty() ? std::optional<int64_t>(result) : std::nullopt;
  }

private:
  static bool isDigit(char c) { return c >= '0' && c <= '9'; }
  bool take(char c) {
    if (text.empty() || text[0] != c)
      return false;
    text.remove_prefix(1);
    return true;
  }
  int64_t number() {
    int64_t result = 0;
    good &= !text.empty() && isDigit(text[0]);
    for (; !text.empty() && isDigit(text[0]); text.remove_prefix(1))
      good &= !__builtin_mul_overflow(result, 10, &result) &&
              !__builtin_add_overflow(result, text[0] - '0', &result);
    return result;
  }
  /// A name, or a sum in parentheses that is divided or multiplied.
  int64_t first() {
    if (take('(')) {
      if (++depth > 100) {
        good = false;
        return 0;
      }
      int64_t inner = sum();
      --depth;
      good &= take(')');
      if (take('*')) {
        int64_t times = number();
        good &= inner >= 0 && !__builtin_mul_overflow(inner, times, &inner);
        return inner;
      }
      good &= take('/');
      int64_t by = good ? number() : 1;
      good &= by > 0;
      // A kernel that has no place at all.
      return !good || inner < 0 ? -1 : inner / by;
    }
    size_t end = std::min(text.find_first_of("()+-*/"), text.size());
    int64_t size = dim(text.substr(0, end));
    text.remove_prefix(end);
    good &= size >= 0;
    return size;
  }
  int64_t sum() {
    int64_t result = first();
    while (good && !text.empty() && (text[0] == '+' || text[0] == '-')) {
      bool plus = take('+');
      if (!plus)
        take('-');
      int64_t more = number();
      good &= !__builtin_add_overflow(result, plus ? more : -more, &result);
    }
    return result;
  }

  std::string_view text;
  Dims dim;
  bool good = true;
  int depth = 0;
};
template <typename Dims> Formula(std::string_view, Dims) -> Formula<Dims>;

} // namespace attune::runtime

#endif // ATTUNE_RUNTIME_FORMULA_H

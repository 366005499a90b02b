//===- TokenLogprobs.cpp - How likely a token was -------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TokenLogprobs.h"

#include <algorithm>
#include <cmath>

namespace attune::runtime {

TokenLogprob computeLogprobs(const NewToken &token, int64_t count,
                             std::vector<TokenLogprob> &likeliest) {
  likeliest.clear();
  if (!token.logits)
    return {token.id, 0};
  double largest = -HUGE_VAL, sum = 0;
  for (int64_t id = 0; id < token.vocabulary; ++id)
    largest = std::max<double>(largest, token.logits[id]);
  for (int64_t id = 0; id < token.vocabulary; ++id)
    sum += std::exp(token.logits[id] - largest);
  double shift = largest + std::log(sum);
  auto of = [&](int64_t id) {
    return TokenLogprob{id, std::max(token.logits[id] - shift, -1e30)};
  };
  count = std::min(count, token.vocabulary);
  if (count > 0) {
    std::vector<int64_t> order(static_cast<size_t>(token.vocabulary));
    for (size_t id = 0; id < order.size(); ++id)
      order[id] = static_cast<int64_t>(id);
    std::partial_sort(order.begin(), order.begin() + count, order.end(),
                      [&](int64_t a, int64_t b) {
                        return token.logits[a] != token.logits[b]
                                   ? token.logits[a] > token.logits[b]
                                   : a < b;
                      });
    for (int64_t i = 0; i < count; ++i)
      likeliest.push_back(of(order[i]));
  }
  return of(token.id);
}

} // namespace attune::runtime

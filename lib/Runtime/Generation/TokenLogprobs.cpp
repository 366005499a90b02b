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
  // The best so far, in order: few are wanted, and most tokens are worse than
  // all of them.
  std::vector<int64_t> best;
  for (int64_t id = 0; id < token.vocabulary && count > 0; ++id) {
    auto isBetter = [&](int64_t other) {
      return token.logits[id] > token.logits[other];
    };
    bool isFull = best.size() == static_cast<size_t>(count);
    if (isFull && !isBetter(best.back()))
      continue;
    if (isFull)
      best.pop_back();
    best.insert(std::find_if(best.begin(), best.end(), isBetter), id);
  }
  for (int64_t id : best)
    likeliest.push_back(of(id));
  return of(token.id);
}

} // namespace attune::runtime

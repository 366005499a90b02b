//===- TimestampRules.cpp - When Whisper says what time it is -------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TimestampRules.h"

#include <algorithm>
#include <cmath>

namespace attune::runtime {

const float *TimestampRules::mask(const float *logits, int64_t count,
                                  const int64_t *said, size_t numSaid,
                                  const std::vector<int64_t> &banned) {
  masked.assign(logits, logits + count);
  auto ban = [&](int64_t first, int64_t last) {
    first = std::max<int64_t>(first, 0);
    last = std::min(last, count);
    if (first < last)
      std::fill(masked.begin() + first, masked.begin() + last, -INFINITY);
  };
  for (int64_t token : banned)
    ban(token, token + 1);
  ban(firstTime - 1, firstTime);
  if (numSaid == 0) {
    ban(0, firstTime);
    if (latestBegin >= 0)
      ban(firstTime + latestBegin + 1, count);
  } else {
    bool isPair = numSaid < 2 || isTime(said[numSaid - 2]);
    bool isAfterTime = isTime(said[numSaid - 1]);
    if (isAfterTime && isPair)
      ban(firstTime, count);
    else if (isAfterTime)
      ban(0, end);
    size_t last = numSaid;
    while (last > 0 && !isTime(said[last - 1]))
      --last;
    // The begin of a pair may be its end.
    if (last > 0)
      ban(firstTime, said[last - 1] + (isAfterTime && !isPair ? 0 : 1));
  }
  double times = 0;
  float largest = *std::max_element(masked.begin(), masked.end());
  float text = -INFINITY;
  for (int64_t token = 0; token < count; ++token)
    if (isTime(token))
      times += std::exp(double(masked[token]) - largest);
    else
      text = std::max(text, masked[token]);
  if (times > std::exp(double(text) - largest))
    ban(0, firstTime);
  return masked.data();
}

} // namespace attune::runtime

//===- TimestampRules.h - When Whisper says what time it is -----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_SOUND_TIMESTAMPRULES_H
#define ATTUNE_LIB_RUNTIME_SOUND_TIMESTAMPRULES_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace attune::runtime {

/// Which tokens may come next in a text with times, as transformers'
/// WhisperTimeStampLogitsProcessor has it:
///
///   1. "no times" never comes.
///   2. The text begins with a time, with number `latestBegin` at most.
///   3. Times come in pairs, an end and a begin: after one that follows text
///      comes another or a token from `end` on, after two comes text.
///   4. Times do not go back, and a piece of text takes some.
///   5. Where all times together are likelier than any other token, a time
///      comes.
class TimestampRules {
public:
  /// Times are the tokens from `firstTime` on; the one before says that there
  /// are none.
  TimestampRules(int64_t firstTime, int64_t latestBegin, int64_t end)
      : firstTime(firstTime), latestBegin(latestBegin), end(end) {}

  bool isTime(int64_t token) const { return token >= firstTime; }
  /// The logits after the new tokens `said`; minus infinity for what may not
  /// come, which `banned` adds to before rule 5.
  const float *mask(const float *logits, int64_t count, const int64_t *said,
                    std::size_t numSaid, const std::vector<int64_t> &banned);

private:
  int64_t firstTime, latestBegin, end;
  std::vector<float> masked;
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_SOUND_TIMESTAMPRULES_H

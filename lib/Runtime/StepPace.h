//===- StepPace.h - How many threads take part in a step --------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A step has hundreds of barriers. Where other programs want the cores, and
// more so where they come first, the threads of a team are seldom all running,
// and each barrier takes as long as the last of them waits for a core. Then
// fewer threads are faster. No result depends on their number.
//
// Nothing says beforehand how many are best, so it is measured, on steps that
// are alike. Steps are looked at in windows. If threads went to sleep at
// barriers in most of one, which none does while all have cores, half of them
// are tried in the next, and then, if half was about as fast as all, one alone.
// That stays so if it was clearly faster. Now and then twice as many are tried,
// by the same rule. A trial that fails is repeated later, each time after twice
// as many windows, and ends once it has taken too long.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_STEPPACE_H
#define ATTUNE_LIB_RUNTIME_STEPPACE_H

#include <cstdint>

namespace attune::runtime {

class StepPace {
public:
  explicit StepPace(unsigned most) : most(most), usual(most) {}

  /// The threads for a step. Steps of one `kind` take about the same time; what
  /// was found out about another kind is forgotten.
  unsigned begin(uint64_t kind);
  /// It took so long, and threads went to sleep in it so often.
  void end(double seconds, uint32_t sleeps);

private:
  static constexpr unsigned windowSteps = 8, firstPause = 16,
                            longestPause = 512;
  /// Steps of a window in which threads sleep, where fewer are tried.
  static constexpr unsigned mostSteps = 6;
  /// A trial has to be faster by this; up to `alike` it is about as fast.
  static constexpr double gain = 0.8, alike = 1.2;

  /// Trials of fewer threads, or of more.
  struct Direction {
    unsigned pause = firstPause; ///< windows from one that fails to the next
    unsigned left = 0;           ///< of them
    bool isFar = false;          ///< half was too many: one is next
  };
  void endTrial(bool isFaster);
  void clearWindow();

  unsigned most, usual, tried = 0; ///< threads; 0: no trial
  uint64_t kind = 0;
  double stepSeconds = 0; ///< with the usual threads
  Direction fewer, more;
  // The window.
  unsigned steps = 0, stepsWithSleep = 0;
  double seconds = 0;
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_STEPPACE_H

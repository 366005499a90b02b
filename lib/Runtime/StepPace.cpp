//===- StepPace.cpp - How many threads take part in a step ----------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StepPace.h"

#include <algorithm>

namespace attune::runtime {

void StepPace::clearWindow() {
  steps = stepsWithSleep = 0;
  seconds = 0;
}

unsigned StepPace::begin(uint64_t next) {
  if (kind != next) {
    *this = StepPace(most);
    kind = next;
  }
  return tried ? tried : usual;
}

void StepPace::endTrial(bool isFaster) {
  Direction &own = tried < usual ? fewer : more;
  Direction &other = tried < usual ? more : fewer;
  if (isFaster) {
    usual = tried;
    own = Direction();
    // What it came from was slower.
    other.left = other.pause;
  } else if (tried < usual && tried > 1 &&
             seconds < alike * stepSeconds * steps) {
    own.isFar = true;
  } else {
    own.isFar = false;
    own.left = own.pause;
    own.pause = std::min(2 * own.pause, longestPause);
  }
  tried = 0;
  clearWindow();
}

void StepPace::end(double stepTook, uint32_t sleeps) {
  ++steps;
  seconds += stepTook;
  stepsWithSleep += sleeps > 0;
  if (tried) {
    bool isFaster = seconds < gain * stepSeconds * windowSteps;
    if (!isFaster || steps == windowSteps)
      endTrial(isFaster);
    return;
  }
  if (steps < windowSteps)
    return;
  stepSeconds = seconds / steps;
  for (Direction *each : {&fewer, &more})
    each->left -= each->left > 0;
  if (usual > 1 && stepsWithSleep >= mostSteps && fewer.left == 0)
    tried = fewer.isFar ? 1 : usual / 2;
  else if (usual < most && more.left == 0)
    tried = std::min(2 * usual, most);
  clearWindow();
}

} // namespace attune::runtime

//===- LoadLine.cpp - What a server does, on a terminal -------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LoadLine.h"

namespace attune::runtime {

void LoadLine::clear() {
  if (!isShown)
    return;
  // To the line's beginning, and all behind it is erased.
  std::fputs("\r\033[K", terminal);
  std::fflush(terminal);
  isShown = false;
}

void LoadLine::update(double now) {
  const SchedulerCounts &counts = scheduler.counts();
  int64_t tokens = counts.newTokens.load(), running = counts.running.load(),
          waiting = counts.waiting.load();
  double speed =
      before > 0 && now > before
          ? static_cast<double>(tokens - tokensBefore) / (now - before)
          : 0;
  before = now;
  tokensBefore = tokens;
  clear();
  if (running == 0 && waiting == 0)
    return;
  int64_t room = scheduler.numSlots() * scheduler.capacity();
  int64_t held = counts.cachedPositions.load();
  if (int64_t pages = counts.pages.load(); pages > 0) {
    held = counts.pagesInUse.load();
    room = pages;
  }
  double used =
      room > 0 ? 100.0 * static_cast<double>(held) / static_cast<double>(room)
               : 0;
  // Shorter than a narrow terminal, so that it stays one line.
  std::fprintf(terminal,
               "%lld of %lld texts, %lld waiting, %.1f tokens/s, caches %.0f%%",
               static_cast<long long>(running),
               static_cast<long long>(scheduler.numSlots()),
               static_cast<long long>(waiting), speed, used);
  std::fflush(terminal);
  isShown = true;
}

} // namespace attune::runtime

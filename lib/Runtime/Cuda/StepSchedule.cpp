//===- StepSchedule.cpp - Launches as a list of instructions --------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StepSchedule.h"

#include <algorithm>

namespace attune::runtime {

namespace {

constexpr CudaAccess kAnything = {0, UINT64_MAX, true};

template <typename Function>
void forEachAccess(const StepLaunch &launch, Function function) {
  if (launch.numAccesses == 0)
    return function(kAnything);
  for (size_t i = 0; i < launch.numAccesses; ++i)
    function(launch.accesses[i]);
}

/// Sets of instructions.
class Sets {
public:
  explicit Sets(size_t count) : width((count + 63) / 64), bits(count * width) {}
  bool has(size_t set, size_t member) const {
    return bits[set * width + member / 64] >> member % 64 & 1;
  }
  void add(size_t set, size_t member) {
    bits[set * width + member / 64] |= uint64_t(1) << member % 64;
  }
  void addAll(size_t set, size_t other) {
    for (size_t i = 0; i < width; ++i)
      bits[set * width + i] |= bits[other * width + i];
  }

private:
  size_t width;
  std::vector<uint64_t> bits;
};

/// Memory, cut where accesses begin and end; each piece knows who used it last.
class Pieces {
public:
  /// Calls `before` with instructions that must be done before this one.
  template <typename Function>
  void read(uint32_t instruction, const CudaAccess &access, Function before) {
    for (auto [at, last] = cut(access); at != last; ++at) {
      if (pieces[at].writer != kNone && pieces[at].writer != instruction)
        before(pieces[at].writer);
      std::vector<uint32_t> &readers = pieces[at].readers;
      if (readers.empty() || readers.back() != instruction)
        readers.push_back(instruction);
    }
  }
  template <typename Function>
  void write(uint32_t instruction, const CudaAccess &access, Function before) {
    for (auto [at, last] = cut(access); at != last; ++at) {
      if (pieces[at].writer != kNone && pieces[at].writer != instruction)
        before(pieces[at].writer);
      for (uint32_t reader : pieces[at].readers)
        if (reader != instruction)
          before(reader);
      pieces[at].writer = instruction;
      pieces[at].readers.clear();
    }
  }

private:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Piece {
    uint64_t begin, end;
    uint32_t writer = kNone;
    std::vector<uint32_t> readers; ///< since then
  };

  /// The pieces of this memory: from the first to behind the last.
  std::pair<size_t, size_t> cut(const CudaAccess &access) {
    size_t first = split(access.begin);
    uint64_t at = access.begin;
    size_t next = first;
    for (; at < access.end; ++next) {
      uint64_t end = access.end;
      if (next < pieces.size() && pieces[next].begin <= at) {
        if (pieces[next].end > end)
          split(end);
        at = pieces[next].end;
        continue;
      }
      if (next < pieces.size())
        end = std::min(end, pieces[next].begin);
      pieces.insert(pieces.begin() + static_cast<ptrdiff_t>(next),
                    Piece{at, end, kNone, {}});
      at = end;
    }
    return {first, next};
  }
  /// Lets a piece begin there, if one lies there; the first that does not end
  /// before.
  size_t split(uint64_t address) {
    auto piece = std::upper_bound(
        pieces.begin(), pieces.end(), address,
        [](uint64_t at, const Piece &piece) { return at < piece.end; });
    if (piece == pieces.end() || piece->begin >= address)
      return static_cast<size_t>(piece - pieces.begin());
    Piece low = *piece;
    low.end = piece->begin = address;
    piece = pieces.insert(piece, std::move(low));
    return static_cast<size_t>(piece - pieces.begin()) + 1;
  }

  std::vector<Piece> pieces; ///< in order, apart from each other
};

} // namespace

StepSchedule makeSchedule(const std::vector<StepLaunch> &launches,
                          uint32_t blocks) {
  StepSchedule made;
  Sets before(launches.size());
  Pieces pieces;
  uint32_t firstBlock = 0;
  std::vector<uint32_t> needed;
  for (uint32_t i = 0; i < launches.size(); ++i) {
    const StepLaunch &launch = launches[i];
    StepInstruction one = {};
    one.kernel = launch.kernel;
    one.tasks = launch.tasks;
    // Side by side in a block only if there are more than blocks.
    one.atOnce = std::clamp<uint32_t>((launch.tasks + blocks - 1) / blocks, 1,
                                      launch.atOnce);
    one.groups = (launch.tasks + one.atOnce - 1) / one.atOnce;
    one.firstBlock = firstBlock;
    firstBlock = (firstBlock + one.groups) % blocks;
    one.firstWord = static_cast<uint32_t>(made.words.size());
    made.words.insert(made.words.end(), launch.words,
                      launch.words + launch.numWords);
    needed.clear();
    auto need = [&](uint32_t other) { needed.push_back(other); };
    // What it reads itself is no reason to wait for it.
    forEachAccess(launch, [&](const CudaAccess &access) {
      if (!access.writes)
        pieces.read(i, access, need);
    });
    forEachAccess(launch, [&](const CudaAccess &access) {
      if (access.writes)
        pieces.write(i, access, need);
    });
    // The last ones first: others are done when these are.
    std::sort(needed.rbegin(), needed.rend());
    one.firstWait = static_cast<uint32_t>(made.waits.size());
    for (uint32_t other : needed) {
      if (before.has(i, other))
        continue;
      before.addAll(i, other);
      before.add(i, other);
      made.waits.push_back({other, made.instructions[other].groups});
    }
    one.numWaits = static_cast<uint32_t>(made.waits.size()) - one.firstWait;
    made.instructions.push_back(one);
  }
  return made;
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

static bool conflict(const StepLaunch &a, const StepLaunch &b) {
  bool found = false;
  forEachAccess(a, [&](const CudaAccess &x) {
    forEachAccess(b, [&](const CudaAccess &y) {
      found |= (x.writes || y.writes) && x.begin < y.end && y.begin < x.end;
    });
  });
  return found;
}

std::string findScheduleProblem(const StepSchedule &schedule,
                                const std::vector<StepLaunch> &launches,
                                uint32_t blocks) {
  const std::vector<StepInstruction> &all = schedule.instructions;
  auto named = [](size_t i) { return "instruction " + std::to_string(i); };
  if (all.size() != launches.size())
    return std::to_string(all.size()) + " instructions for " +
           std::to_string(launches.size()) + " launches";
  Sets before(all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    const StepInstruction &one = all[i];
    const StepLaunch &launch = launches[i];
    // Each group falls to one block: from the first block on, in turns.
    if (one.kernel != launch.kernel || one.tasks != launch.tasks)
      return named(i) + " is not its launch";
    if (one.atOnce == 0 || one.atOnce > launch.atOnce)
      return named(i) + " has more tasks at once than a block has room for";
    if (uint64_t(one.groups) * one.atOnce < one.tasks)
      return named(i) + " has tasks in no group";
    if (one.groups == 0 || uint64_t(one.groups - 1) * one.atOnce >= one.tasks)
      return named(i) + " has groups without a task";
    if (one.firstBlock >= blocks)
      return named(i) + " begins at a block that does not exist";
    if (one.firstWord > schedule.words.size() ||
        launch.numWords > schedule.words.size() - one.firstWord ||
        !std::equal(launch.words, launch.words + launch.numWords,
                    schedule.words.begin() + one.firstWord))
      return named(i) + " has other arguments than its launch";
    if (one.firstWait > schedule.waits.size() ||
        one.numWaits > schedule.waits.size() - one.firstWait)
      return named(i) + " has waits that the list does not have";
    for (uint32_t k = 0; k < one.numWaits; ++k) {
      const StepWait &wait = schedule.waits[one.firstWait + k];
      // All blocks take the list in order, so one that waits for what comes
      // later would never get there.
      if (wait.instruction >= i)
        return named(i) + " waits for " + named(wait.instruction) +
               ", which does not come before it";
      if (wait.groups > all[wait.instruction].groups)
        return named(i) + " waits for more groups than " +
               named(wait.instruction) + " has";
      if (wait.groups < all[wait.instruction].groups)
        return named(i) + " does not wait for all groups of " +
               named(wait.instruction);
      before.addAll(i, wait.instruction);
      before.add(i, wait.instruction);
    }
    for (size_t other = 0; other < i; ++other)
      if (!before.has(i, other) && conflict(launches[other], launch))
        return named(i) + " touches what " + named(other) +
               " does, and does not wait for it";
  }
  return "";
}

} // namespace attune::runtime

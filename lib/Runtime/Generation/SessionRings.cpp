//===- SessionRings.cpp - Caches that hold a window -----------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A layer whose queries see W keys has a cache of W and some more rows. It
// holds the positions from `first` on, in order. When a step finds no room, the
// rows that nothing needs any more give way: the others move to the front. So a
// step reads its keys in one piece, like those of any other cache; what it is
// told is how many there are. Keys are rotated already, and all else that
// depends on where a key is goes by its distance.
//
//===----------------------------------------------------------------------===//

#include "attune/Runtime/CompiledModel.h"

#include <algorithm>
#include <cstring>

namespace attune::runtime {

/// Positions that can be taken back whatever came before.
static int64_t leastBack(int64_t slack) { return slack / 4; }

void Session::addRings() {
  for (const ArgInfo &arg : invocation.entry().args) {
    if (arg.kind != ArgKind::Past || arg.window == 0)
      continue;
    Ring ring;
    ring.window = arg.window;
    ring.slack = arg.slack;
    ring.room = arg.roomOf(maxLength);
    ring.capacity = "capacity_" + std::to_string(arg.window);
    rings.push_back(std::move(ring));
  }
}

Session::Ring *Session::findRing(int64_t window) {
  for (Ring &ring : rings)
    if (ring.window == window)
      return &ring;
  return nullptr;
}

/// The first position that caches of a window hold; of others, that is 0.
int64_t Session::firstOf(int64_t window) const {
  for (const Ring &ring : rings)
    if (ring.window == window)
      return ring.first;
  return 0;
}

/// Whether the caches have what a token behind the first `length` sees.
bool Session::canGoOnFrom(int64_t length, Error &error) const {
  if (length > 0 && length < past && !keepsTokens)
    return error.badInput("model '" + model.info().name +
                          "' keeps a state that no step can take back");
  for (const Ring &ring : rings)
    if (length > 0 && ring.first > 0 && length < ring.first + ring.window - 1)
      return error.badInput(
          "layers with a window of " + std::to_string(ring.window) +
          " keep its keys and some more: the text of " + std::to_string(past) +
          " tokens can be taken back to " +
          std::to_string(ring.first + ring.window - 1) + " of them, not to " +
          std::to_string(length));
  return true;
}

/// How many of `left` tokens a step can append at once. The rest, if there is
/// one, is large enough to give the bits of a longer piece.
int64_t Session::countPiece(int64_t left) const {
  int64_t most = left;
  for (const Ring &ring : rings)
    if (past - ring.first + left > ring.room)
      most = std::min(most, ring.slack / 2);
  auto few = static_cast<int64_t>(fewRows);
  if (most < left && left - most < few && most > 2 * few)
    most -= few;
  return most;
}

/// Makes room for `count` tokens, of which countPiece() says that it is
/// possible.
bool Session::makeRoom(int64_t count, Error &error) {
  for (Ring &ring : rings) {
    int64_t held = past - ring.first;
    if (held + count <= ring.room)
      continue;
    // More than half of the slack is free behind what is kept.
    int64_t drop = held - (ring.window - 1) - leastBack(ring.slack);
    if (drop <= 0 || held - drop + count > ring.room)
      return error.set(ExitInternalError, "a window's cache has no room");
    if (!dropRows(ring, drop, error))
      return false;
    ring.first += drop;
  }
  return true;
}

/// Moves all rows but the first `count` to the front.
bool Session::dropRows(const Ring &ring, int64_t count, Error &error) {
  auto held = static_cast<uint64_t>(past - ring.first);
  for (Cache &cache : caches) {
    if (cache.window != ring.window)
      continue;
    uint64_t planes = cache.planes * static_cast<uint64_t>(batch);
    uint64_t plane = cache.layers * cache.rowBytes / cache.planes;
    uint64_t from = cache.bytesOf(static_cast<uint64_t>(count));
    uint64_t bytes = cache.bytesOf(held) - from;
    // In parts that do not overlap.
    for (uint64_t i = 0; i < planes; ++i)
      for (uint64_t done = 0; done < bytes; done += from) {
        uint8_t *to = cache.place + i * plane + done;
        if (!model.copy(to, to + from, std::min(from, bytes - done), error))
          return false;
      }
  }
  return true;
}

/// Tells a call what the rings hold and how large they are.
bool Session::bindRings(Invocation &call, Error &error) const {
  for (const Ring &ring : rings) {
    if (!call.bindHeld(ring.window, past - ring.first, nullptr, error))
      return false;
    if (call.hasDim(ring.capacity) &&
        !call.bindDim(ring.capacity, ring.room, "the session", error))
      return false;
  }
  return true;
}

} // namespace attune::runtime

//===- SessionState.cpp - What a session has kept, elsewhere --------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Going back, going on from another session, and a sequence as bytes: a head,
// the first position of each ring, the ids that a step may want again, the
// logits, and of each cache the positions that are there, plane by plane.
//
//===----------------------------------------------------------------------===//

#include "SessionGroup.h"

#include "../TextHash.h"

#include "attune/Runtime/CompiledModel.h"

#include <algorithm>
#include <cstring>

namespace attune::runtime {

bool Session::rewind(int64_t length, Error &error) {
  if (length >= past)
    return true;
  if (length == 0) {
    reset();
    return true;
  }
  if (!canGoOnFrom(length, error))
    return false;
  past = length;
  return true;
}

/// Lets paged caches hold the first `length` positions of another session: in
/// its own pages, or in pages of theirs that are to be filled.
bool Session::takeMemory(const Session &from, int64_t length, Error &error) {
  if (!owner)
    return true;
  return from.owner == owner
             ? owner->share(numberOfOwner, from.numberOfOwner, length, error)
             : owner->hold(numberOfOwner, length, error);
}

/// A position's keys and values are in as many places as there are planes.
bool Session::copyCache(size_t number, const Session &other, uint64_t held,
                        uint64_t length, Error &error) {
  Cache &to = caches[number];
  const Cache &from = other.caches[number];
  if (to.paged && owner == other.owner)
    return true;
  auto begin = static_cast<uint64_t>(other.firstOf(from.window));
  // Rows that begin elsewhere are others.
  if (firstOf(to.window) != other.firstOf(from.window))
    held = 0;
  // Which of them a rank has is another on each.
  if (to.share)
    held = 0;
  uint64_t plane = to.layers * to.rowBytes / to.planes;
  uint64_t first = held > begin ? to.positionBytes * (held - begin) : 0;
  uint64_t bytes = to.bytesOf(length > begin ? length - begin : 0) - first;
  for (uint64_t i = 0; bytes > 0 && i < to.planes; ++i) {
    uint64_t at = i * plane + first;
    if (!model.copy(to.place + at, from.place + at, bytes, error))
      return false;
  }
  return true;
}

bool Session::copyFrom(const Session &other, int64_t length, Error &error,
                       int64_t held) {
  if (batch != 1 || other.batch != 1 || maxLength != other.maxLength ||
      &model != &other.model || held < 0 || held > past || length < held ||
      length > other.past)
    return error.set(ExitInternalError,
                     "one session cannot go on from the other");
  if (!other.canGoOnFrom(length, error))
    return false;
  if (&other == this)
    return rewind(length, error);
  past = 0;
  bool works = takeMemory(other, length, error);
  for (size_t i = 0; works && i < caches.size(); ++i)
    works = copyCache(i, other, static_cast<uint64_t>(held),
                      static_cast<uint64_t>(length), error);
  if (!works) {
    reset();
    return false;
  }
  reset();
  if (length > 0)
    for (size_t i = 0; i < rings.size(); ++i)
      rings[i].first = other.rings[i].first;
  past = length;
  insertedAt = other.insertedAt;
  insertedAt.erase(
      std::remove_if(insertedAt.begin(), insertedAt.end(),
                     [&](int64_t position) { return position >= length; }),
      insertedAt.end());
  adapterNumber = other.adapterNumber; // which made what is cached
  history = other.history;
  for (std::vector<int64_t> &row : history)
    row.resize(std::min(row.size(), static_cast<size_t>(length)));
  copied = false;
  if (length < other.past)
    return true;
  if (idsOutput >= 0) {
    auto most = static_cast<uint64_t>(mostCandidates());
    std::memcpy(candidateIdsBuffer.data(), other.candidateIdsBuffer.data(),
                most * sizeof(int64_t));
    std::memcpy(candidateLogitsBuffer.data(),
                other.candidateLogitsBuffer.data(), most * sizeof(float));
  }
  if (other.copied) {
    if (!reserveLogits(error))
      return false;
    setLogits(other.logitsCopy.data());
    return true;
  }
  return model.copy(logitsMemory.data(), other.logitsMemory.data(),
                    static_cast<uint64_t>(vocabularySize) * sizeof(float),
                    error);
}

//===----------------------------------------------------------------------===//
// A sequence as bytes
//===----------------------------------------------------------------------===//

namespace {
struct SavedHead {
  char magic[8];
  uint64_t model; ///< what caches it has, and of which code and weights
  int64_t length, vocabulary, history;
};
const char savedMagic[8] = {'a', 't', 't', 'u', 'n', 'e', 'S', '1'};

struct Fingerprint : TextHash {
  void add(std::string_view text) {
    TextHash::add(text);
    TextHash::add('\xff'); // an end
  }
};
} // namespace

/// A hash of everything that makes another model read the state differently.
uint64_t Session::fingerprint() const {
  Fingerprint all;
  all.add(model.info().name);
  all.add(model.info().weightsLayout);
  if (adapterNumber > 0)
    all.add(model.info().adapters[static_cast<size_t>(adapterNumber - 1)]);
  for (const ArgInfo &arg : invocation.entry().args)
    if (arg.kind == ArgKind::Cache) {
      all.add(arg.name);
      all.add(dtypeName(arg.dtype));
      all.add(arg.formatShape());
    }
  return all.value;
}

uint64_t Session::countSaved() const {
  uint64_t bytes = sizeof(SavedHead) + rings.size() * sizeof(int64_t) +
                   static_cast<uint64_t>(vocabularySize) * sizeof(float);
  if (!history.empty())
    bytes += history[0].size() * sizeof(int64_t);
  for (const Cache &cache : caches)
    bytes += cache.planes * bytesHeld(cache);
  return bytes;
}

/// Calls `each` with the memory of what the caches hold, and with how many of
/// these bytes belong to the first `held` positions, until it fails.
template <typename F> bool Session::visitCaches(int64_t held, F each) {
  for (Cache &cache : caches) {
    uint64_t plane = cache.layers * cache.rowBytes / cache.planes, first = 0;
    if (cache.positionBytes && cache.window == 0)
      first = cache.bytesOf(static_cast<uint64_t>(held));
    for (uint64_t i = 0; i < cache.planes; ++i)
      if (!each(cache.place + i * plane, bytesHeld(cache), first))
        return false;
  }
  return true;
}

bool Session::checkSaving(Error &error) const {
  return canBeSaved() || error.badInput("one sequence of a model without an "
                                        "encoder is saved and restored");
}

bool Session::save(uint8_t *to, Error &error) {
  if (!checkSaving(error))
    return false;
  SavedHead head;
  std::memcpy(head.magic, savedMagic, sizeof(savedMagic));
  head.model = fingerprint();
  head.length = past;
  head.vocabulary = vocabularySize;
  head.history = history.empty() ? 0 : static_cast<int64_t>(history[0].size());
  std::memcpy(to, &head, sizeof(head));
  to += sizeof(head);
  for (const Ring &ring : rings) {
    std::memcpy(to, &ring.first, sizeof(ring.first));
    to += sizeof(ring.first);
  }
  auto add = [&](const void *data, uint64_t bytes) {
    std::memcpy(to, data, bytes);
    to += bytes;
  };
  if (!history.empty())
    add(history[0].data(), history[0].size() * sizeof(int64_t));
  const float *last = logits(error);
  if (!last)
    return false;
  add(last, static_cast<uint64_t>(vocabularySize) * sizeof(float));
  return visitCaches(0, [&](const uint8_t *data, uint64_t bytes, uint64_t) {
    to += bytes;
    return model.read(to - bytes, data, bytes, error);
  });
}

bool Session::restore(const uint8_t *from, uint64_t bytes, Error &error,
                      int64_t held) {
  if (!checkSaving(error))
    return false;
  SavedHead head;
  if (bytes < sizeof(head))
    return error.badInput("this is no saved sequence: it has only " +
                          std::to_string(bytes) + " bytes");
  std::memcpy(&head, from, sizeof(head));
  if (std::memcmp(head.magic, savedMagic, sizeof(savedMagic)) != 0)
    return error.badInput("this is no saved sequence");
  if (head.model != fingerprint() || head.vocabulary != vocabularySize)
    return error.badInput("the sequence was saved by another model than '" +
                          model.info().name + "'");
  if (head.length < held || head.length > maxLength)
    return error.badInput("the sequence has " + std::to_string(head.length) +
                          " positions, but there is room for " +
                          std::to_string(maxLength));
  bool isPlain = invocation.entry().recomputeBeyond == 0;
  if (head.history < 0 || head.history > (isPlain ? 0 : head.length) ||
      bytes < sizeof(head) + rings.size() * sizeof(int64_t))
    return error.badInput("the saved sequence is damaged");
  from += sizeof(head);
  std::vector<int64_t> firsts(rings.size());
  for (size_t i = 0; i < rings.size(); ++i, from += sizeof(int64_t)) {
    std::memcpy(&firsts[i], from, sizeof(int64_t));
    if (firsts[i] < 0 || firsts[i] > head.length ||
        head.length - firsts[i] > rings[i].room ||
        (firsts[i] > 0 && head.length - firsts[i] < rings[i].window - 1))
      return error.badInput("the saved sequence is damaged");
  }
  // With these, the size of all that follows is known.
  reset();
  past = head.length;
  for (size_t i = 0; i < rings.size(); ++i)
    rings[i].first = firsts[i];
  if (head.history > 0)
    history.assign(1, std::vector<int64_t>(head.history));
  if (bytes != countSaved()) {
    reset();
    return error.badInput("the saved sequence is cut off or damaged");
  }
  auto take = [&](uint64_t size) {
    from += size;
    return from - size;
  };
  if (head.history > 0) {
    uint64_t size = history[0].size() * sizeof(int64_t);
    std::memcpy(history[0].data(), take(size), size);
  }
  past = held; // its pages are to be written from here on
  bool hasMemory = !owner || owner->hold(numberOfOwner, head.length, error);
  past = head.length;
  if (hasMemory && reserveLogits(error)) {
    setLogits(take(static_cast<uint64_t>(vocabularySize) * sizeof(float)));
    auto write = [&](uint8_t *data, uint64_t size, uint64_t first) {
      return model.write(data + first, take(size) + first, size - first, error);
    };
    if (visitCaches(held, write))
      return true;
  }
  reset();
  return false;
}

} // namespace attune::runtime

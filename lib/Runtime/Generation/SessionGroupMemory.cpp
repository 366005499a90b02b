//===- SessionGroupMemory.cpp - Memory as sequences grow ------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SessionGroup.h"

#include "../Cuda/CudaPages.h"

#include <algorithm>

namespace attune::runtime {

/// Of the GPU's memory this part stays free for intermediate results.
static constexpr uint64_t partLeft = 20;

bool SessionGroup::isPaged(const ArgInfo &arg) {
  return arg.positionsOutside() && arg.window == 0 && arg.sharers == 1;
}

static uint64_t positionBytes(const ArgInfo &arg) {
  uint64_t bytes = dtypeBytes(arg.dtype);
  for (size_t d = 2; d < arg.shape.size(); ++d)
    bytes *= static_cast<uint64_t>(arg.shape[d].size);
  return bytes;
}

/// Looks for somebody who maps pages, and makes rows whole pages long.
bool SessionGroup::preparePages(Error &error) {
  // Each rank would have to map the same at the same time.
  if (!model.device() || model.ranksToTell())
    return true;
  std::vector<uint64_t> bytes;
  for (const ArgInfo &arg : together->entry().args)
    if (arg.kind == ArgKind::Cache && isPaged(arg))
      bytes.push_back(positionBytes(arg));
  if (bytes.empty())
    return true;
  source = CudaPages::create(*model.device(), error);
  if (source)
    room = static_cast<int64_t>(CachePages::wholePages(
        bytes, source->pageBytes(), static_cast<uint64_t>(capacity)));
  return error.code == ExitSuccess;
}

uint64_t SessionGroup::bytesForPages() const {
  if (memoryLimit > 0)
    return memoryLimit;
  uint64_t free, total;
  source->countMemory(free, total);
  return free - std::min(free, total / partLeft);
}

/// Behind the addresses that were reserved.
bool SessionGroup::addPages(Error &error) {
  pages.reset(
      new CachePages(*source, count(), bytesForPages() / source->pageBytes()));
  size_t next = 0;
  for (const ArgInfo &arg : together->entry().args) {
    if (arg.kind != ArgKind::Cache)
      continue;
    const Cache &cache = caches[next++];
    if (cache.paged)
      pages->addCache(cache.base, cache.bytes, positionBytes(arg));
  }
  return checkPages(error);
}

bool SessionGroup::checkPages(Error &error) const {
  if (pages->mostPositions() > 0)
    return true;
  return error.set(
      ExitResourceLimit,
      "no memory for keys and values: " + std::to_string(bytesForPages()) +
          " bytes of the GPU's are too few for one position, "
          "whose pages have " +
          std::to_string(source->pageBytes()) + " each");
}

/// A step of so many sequences, all as long as they can be.
bool SessionGroup::rehearseTogether(int64_t rows, Error &error) {
  auto number = static_cast<size_t>(rows);
  const Session &any = *sessions[sessionAt[0]];
  idsOfRows.assign(number, 0);
  lengthsOfRows.assign(number, capacity - 1);
  takenOfRows.assign(number, 0);
  heldOfRows.clear();
  for (const Session::Ring &ring : any.rings)
    heldOfRows.emplace_back(number, std::min(capacity, ring.room) - 1);
  return bindStep(rows, std::vector<int64_t>(number, 0), error) &&
         together->rehearse(error);
}

bool SessionGroup::rehearse(int64_t piece, Error &error) {
  if (!model.device() || model.ranksToTell())
    return true;
  for (unsigned i = 0; i < count(); ++i)
    if (!open(i, error))
      return false;
  auto explain = [&](const std::string &call) {
    error.message += ", for " + call + " with texts of " +
                     std::to_string(capacity) +
                     " tokens; a shorter --context needs less";
    return false;
  };
  // Few tokens share out keys among more parts than many do.
  for (int64_t tokens : {piece, static_cast<int64_t>(fewRows), int64_t(1)})
    if (!sessions[0]->rehearse(std::min(tokens, piece), error))
      return explain("up to " + std::to_string(piece) + " tokens of a prompt");
  for (int64_t rows = count(); together && rows > 1; rows /= 2)
    if (!rehearseTogether(rows, error))
      return explain("a step of " + std::to_string(rows) + " texts");
  if (!pages)
    return true;
  if (memoryLimit == 0)
    pages->limitTo(bytesForPages() / source->pageBytes());
  return checkPages(error);
}

std::string SessionGroup::describeMemory() const {
  if (pages) {
    auto most = static_cast<int64_t>(pages->mostPositions());
    return "keys and values take the GPU's memory as texts need it, up to " +
           std::to_string(pages->most()) + " pages of " +
           std::to_string(pages->pageBytes()) + " bytes" +
           (most < capacity ? "; a text has at most " + std::to_string(most) +
                                  " tokens of " + std::to_string(capacity) +
                                  ", as more do not fit"
                            : "");
  }
  bool grows = false;
  if (model.device() && !caches.empty())
    for (const ArgInfo &arg : together->entry().args)
      grows |= arg.kind == ArgKind::Cache && arg.positionsOutside() &&
               arg.window == 0;
  if (!grows)
    return "";
  return "keys and values of " + std::to_string(count()) + " texts of " +
         std::to_string(capacity) +
         " tokens take the GPU's memory from the start, because " +
         (model.ranksToTell() ? "ranks share the model"
                              : "its driver cannot map memory in pages");
}

bool SessionGroup::trim(unsigned number, Error &error) {
  return !pages || pages->trim(rowOf[number],
                               static_cast<uint64_t>(lengthOf(number)), error);
}

bool SessionGroup::trimAll(Error &error) {
  for (unsigned i = 0; i < count(); ++i)
    if (!trim(i, error))
      return false;
  return true;
}

bool SessionGroup::tryHold(unsigned number, int64_t length, Error &error) {
  return !pages ||
         pages->hold(rowOf[number], static_cast<uint64_t>(lengthOf(number)),
                     static_cast<uint64_t>(length), error);
}

/// What sessions were taken back to may have left memory that nobody uses.
bool SessionGroup::hold(unsigned number, int64_t length, Error &error) {
  if (tryHold(number, length, error))
    return true;
  if (error.code != ExitSuccess || !trimAll(error))
    return false;
  return tryHold(number, length, error) || setUsedUp(error);
}

bool SessionGroup::share(unsigned to, unsigned from, int64_t length,
                         Error &error) {
  auto positions = static_cast<uint64_t>(length);
  if (!pages || pages->share(rowOf[to], rowOf[from], positions, error))
    return true;
  if (error.code != ExitSuccess || !trimAll(error))
    return false;
  return pages->share(rowOf[to], rowOf[from], positions, error) ||
         setUsedUp(error);
}

bool SessionGroup::setUsedUp(Error &error) const {
  if (error.code != ExitSuccess)
    return false;
  return error.set(ExitResourceLimit,
                   "all " + std::to_string(pages->most()) + " pages of " +
                       std::to_string(pages->pageBytes()) +
                       " bytes for keys and values are in use");
}

} // namespace attune::runtime

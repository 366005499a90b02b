//===- MeshCalls.cpp - The first rank leads, the others follow ------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MeshCalls.h"

#include "../Cuda/CudaDevice.h"
#include "../MutexLock.h"
#include "../TextHash.h"

#include <algorithm>
#include <cstring>

namespace attune::runtime {

static uint64_t addressOf(const void *place) {
  return reinterpret_cast<uintptr_t>(place);
}

void MeshCalls::tell(Task task, const void *a, const void *b, uint64_t bytes) {
  Order order = {task, addressOf(a), addressOf(b), bytes};
  mesh.broadcast(&order, sizeof order);
}

void MeshCalls::reserve(const void *place, uint64_t bytes) {
  MutexLock mine(turn);
  tell(Task::Reserve, place, nullptr, bytes);
}

void MeshCalls::release(const void *place) {
  MutexLock mine(turn);
  tell(Task::Release, place, nullptr, 0);
}

void MeshCalls::copy(const void *to, const void *from, uint64_t bytes) {
  MutexLock mine(turn);
  tell(Task::Copy, to, from, bytes);
}

void MeshCalls::exchange(const void *a, const void *b, uint64_t bytes) {
  MutexLock mine(turn);
  tell(Task::Exchange, a, b, bytes);
}

void MeshCalls::stop() {
  MutexLock mine(turn);
  tell(Task::Stop, nullptr, nullptr, 0);
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

// The message of a call has, for each argument but the weights, one word (a
// number, or the address of what each rank keeps) and the sizes of its
// dimensions, and then the inputs themselves, each on a cache line.

static uint64_t onLine(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

static bool isNumber(const ArgInfo &arg) {
  return arg.kind == ArgKind::Past || arg.kind == ArgKind::Size;
}

static bool carriesData(const ArgInfo &arg) {
  return (arg.kind == ArgKind::Input && !arg.ofRank) ||
         arg.kind == ArgKind::Lengths;
}

/// Whether a rank has memory of its own, which goes by the first one's address.
static bool isKept(const ArgInfo &arg) {
  return arg.kind == ArgKind::Cache || arg.ofRank;
}

static uint64_t wordsOf(const EntryInfo &entry) {
  uint64_t words = 0;
  for (const ArgInfo &arg : entry.args)
    words += arg.kind == ArgKind::Weights ? 0 : 1 + arg.shape.size();
  return words;
}

/// Bytes of a tensor of these sizes.
static uint64_t bytesOf(const ArgInfo &arg, const int64_t *sizes) {
  uint64_t bytes = dtypeBytes(arg.dtype);
  for (size_t i = 0; i < arg.shape.size(); ++i)
    bytes *= static_cast<uint64_t>(sizes[i]);
  return bytes;
}

bool MeshCalls::call(const EntryInfo &entry, void **args, Error &error) {
  // All the while: what the entry exchanges goes the same way.
  MutexLock mine(turn);
  sendCall(entry, args);
  if (run(entry, args, error))
    return true;
  // Other GPUs may wait for what this one does not send.
  if (model.device())
    mesh.abort(error.message, error.code);
  return false;
}

const uint8_t *MeshCalls::readable(int64_t place, uint64_t bytes,
                                   Error &error) {
  auto *data = reinterpret_cast<const uint8_t *>(uintptr_t(place));
  if (!model.device() || !model.device()->owns(place))
    return data;
  if (!copied.reserve(bytes)) {
    error.set(ExitResourceLimit, "no memory for what ranks compare");
    return nullptr;
  }
  return model.read(copied.data(), data, bytes, error) ? copied.data()
                                                       : nullptr;
}

bool MeshCalls::run(const EntryInfo &entry, void **args, Error &error) {
  if (!model.callHere(entry, args, error))
    return false;
  if (!checks)
    return true;
  // Where candidates were asked for, nobody has made logits.
  bool chosen = false;
  for (size_t i = 0; i < entry.args.size(); ++i)
    chosen |= entry.args[i].kind == ArgKind::Size &&
              entry.args[i].name == "candidates" &&
              *static_cast<const int64_t *>(args[i]) > 0;
  std::vector<uint64_t> own, all;
  std::vector<const ArgInfo *> outputs;
  for (size_t i = 0; i < entry.args.size(); ++i) {
    const ArgInfo &arg = entry.args[i];
    if (arg.kind != ArgKind::Output || arg.ofRank ||
        (chosen && arg.name == "logits"))
      continue;
    auto *words = static_cast<const int64_t *>(args[i]);
    uint64_t bytes = bytesOf(arg, words + 3);
    const uint8_t *data = readable(words[1], bytes, error);
    if (!data)
      return false;
    TextHash hash;
    hash.add({reinterpret_cast<const char *>(data), bytes});
    own.push_back(hash.value);
    outputs.push_back(&arg);
  }
  auto ranks = static_cast<size_t>(mesh.size());
  all.resize(own.size() * ranks);
  if (own.empty())
    return true;
  mesh.gather(own.data(), own.size() * 8, all.data());
  // Those with other positions have a sum of their own, which NCCL may add up
  // in another order if it has more than two parts.
  auto parts = static_cast<size_t>(mesh.numParts());
  size_t equal = model.device() && parts > 2 ? parts : ranks;
  for (size_t rank = 1; rank < ranks; ++rank)
    for (size_t i = 0; i < own.size(); ++i) {
      size_t first = rank - rank % equal;
      if (all[rank * own.size() + i] != all[first * own.size() + i])
        mesh.abort("rank " + std::to_string(rank) +
                       " has computed other bits than rank " +
                       std::to_string(first) + " in output '" +
                       outputs[i]->name + "' of '" + entry.name +
                       "' (--check-ranks)",
                   ExitInternalError);
    }
  return true;
}

void MeshCalls::sendCall(const EntryInfo &entry, void **args) {
  uint64_t header = onLine(wordsOf(entry) * 8), bytes = header;
  // A tensor is { allocated, aligned, offset, sizes, strides }.
  auto sizesOf = [&](size_t i) {
    return static_cast<const int64_t *>(args[i]) + 3;
  };
  for (size_t i = 0; i < entry.args.size(); ++i)
    if (carriesData(entry.args[i]))
      bytes += onLine(bytesOf(entry.args[i], sizesOf(i)));
  tell(Task::Call, reinterpret_cast<const void *>(uintptr_t(entry.index)),
       nullptr, bytes);
  if (!message.reserve(bytes))
    mesh.abort("no memory for what ranks exchange", ExitResourceLimit);
  auto *word = reinterpret_cast<int64_t *>(message.data());
  uint8_t *data = message.data() + header;
  for (size_t i = 0; i < entry.args.size(); ++i) {
    const ArgInfo &arg = entry.args[i];
    if (arg.kind == ArgKind::Weights)
      continue;
    if (isNumber(arg)) {
      *word++ = *static_cast<const int64_t *>(args[i]);
      continue;
    }
    auto *words = static_cast<const int64_t *>(args[i]);
    *word++ = words[1];
    word = std::copy(sizesOf(i), sizesOf(i) + arg.shape.size(), word);
    if (!carriesData(arg))
      continue;
    uint64_t size = bytesOf(arg, sizesOf(i));
    Error error;
    const uint8_t *from = readable(words[1], size, error);
    if (!from)
      mesh.abort(error.message, error.code);
    std::memcpy(data, from, size);
    data += onLine(size);
  }
  mesh.broadcast(message.data(), bytes);
}

//===----------------------------------------------------------------------===//
// Following
//===----------------------------------------------------------------------===//

uint8_t *MeshCalls::find(uint64_t address) {
  // The end of a region may be the beginning of the next one; of nothing the
  // beginning is all there is.
  for (Region &region : regions)
    if (address == region.address ||
        (address > region.address && address - region.address < region.bytes))
      return region.own.data() + (address - region.address);
  mesh.abort("has no memory for what the first rank names", ExitInternalError);
}

uint8_t *MeshCalls::outputOf(size_t argument, uint64_t bytes, Error &error) {
  Output &output = outputs[argument];
  if (!output.memory.data() || bytes > output.bytes) {
    output = Output();
    if (!output.memory.reserve(model, bytes, "results", error))
      return nullptr;
    output.bytes = bytes;
  }
  return output.memory.data();
}

bool MeshCalls::obey(const EntryInfo &entry, uint64_t bytes, Error &error) {
  if (!message.reserve(bytes))
    return error.set(ExitResourceLimit, "no memory for what ranks exchange");
  mesh.broadcast(message.data(), bytes);
  auto *word = reinterpret_cast<const int64_t *>(message.data());
  uint8_t *data = message.data() + onLine(wordsOf(entry) * 8);
  std::vector<std::vector<int64_t>> tensors(entry.args.size());
  std::vector<int64_t> numbers(entry.args.size());
  std::vector<void *> args(entry.args.size());
  if (outputs.size() < entry.args.size())
    outputs.resize(entry.args.size());
  for (size_t i = 0; i < entry.args.size(); ++i) {
    const ArgInfo &arg = entry.args[i];
    if (isNumber(arg)) {
      numbers[i] = *word++;
      args[i] = &numbers[i];
      continue;
    }
    std::vector<int64_t> sizes = {static_cast<int64_t>(model.weightsBytes())};
    void *place = const_cast<uint8_t *>(model.weights());
    if (arg.kind != ArgKind::Weights) {
      auto address = static_cast<uint64_t>(*word++);
      sizes.assign(word, word + arg.shape.size());
      word += arg.shape.size();
      uint64_t size = bytesOf(arg, sizes.data());
      if (carriesData(arg)) {
        place = data;
        data += onLine(size);
      } else if (isKept(arg)) {
        place = find(address);
      } else {
        place = outputOf(i, size, error);
        if (!place)
          return false;
      }
    }
    // Dense, row after row.
    auto base = static_cast<int64_t>(addressOf(place));
    std::vector<int64_t> &words = tensors[i];
    words = {base, base, 0};
    words.insert(words.end(), sizes.begin(), sizes.end());
    int64_t stride = 1;
    words.resize(3 + 2 * sizes.size());
    for (size_t d = sizes.size(); d-- > 0; stride *= sizes[d])
      words[3 + sizes.size() + d] = stride;
    args[i] = words.data();
  }
  return run(entry, args.data(), error);
}

bool MeshCalls::follow(Error &error) {
  for (;;) {
    Order order;
    mesh.broadcast(&order, sizeof order, /*idle=*/true);
    switch (order.task) {
    case Task::Stop:
      return true;
    case Task::Reserve: {
      Region region = {order.a, order.bytes, {}};
      if (!region.own.reserve(model, order.bytes, "keys and values", error))
        return false;
      regions.push_back(std::move(region));
      break;
    }
    case Task::Release:
      regions.erase(std::remove_if(regions.begin(), regions.end(),
                                   [&](const Region &region) {
                                     return region.address == order.a;
                                   }),
                    regions.end());
      break;
    case Task::Copy:
      if (!model.copy(find(order.a), find(order.b), order.bytes, error))
        return false;
      break;
    case Task::Exchange:
      if (!model.exchange(find(order.a), find(order.b), order.bytes, error))
        return false;
      break;
    case Task::Call:
      for (const EntryInfo &entry : model.info().entries)
        if (entry.index == order.a && !obey(entry, order.bytes, error))
          return false;
      break;
    }
  }
}

} // namespace attune::runtime

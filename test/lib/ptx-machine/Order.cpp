//===- Order.cpp - What has to happen between writing and reading ---------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Threads take turns here and copies are done at once, so what is missing
// between writing and reading would not show. Each two bytes of shared memory
// therefore remember who wrote them and how: before another thread reads, the
// writer must have passed a barrier; what cp.async writes, it must have waited
// for; and before wgmma reads what was written in another way than by a tensor
// map there must be a fence. That the reader waits for the right barrier is not
// checked. Two threads may write the same number, as those do who fill with
// zeros.
//
// Registers of wgmma are used by nobody else between its fence and its end.
//
//===----------------------------------------------------------------------===//

#include "Machine.h"

#include <algorithm>
#include <tuple>

namespace ptx {

static void failAt(Thread &t, const Instruction &i, const char *why) {
  t.fail(std::string(why) + ", in line " + std::to_string(i.line));
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

/// The first and the last entry of what lies there; none if it is elsewhere.
static std::pair<Written *, Written *>
entries(Block &block, const uint8_t *place, unsigned bytes) {
  const uint8_t *start = block.shared.data();
  if (block.written.empty() || place < start ||
      place >= start + block.shared.size())
    return {nullptr, nullptr};
  size_t first = size_t(place - start);
  return {&block.written[first / 2],
          &block.written[(first + bytes - 1) / 2] + 1};
}

void write(Thread &t, const uint8_t *place, unsigned bytes, Written::Way way) {
  const Order &order = t.order;
  auto [first, last] = entries(*t.block, place, bytes);
  std::fill(first, last,
            Written{t.block->number, order.number,
                    way == Written::Init ? order.barriers : order.releases,
                    order.proxyFences, order.copies, way});
}

void passBarrier(Order &order) {
  ++order.barriers;
  ++order.releases;
}

void bring(Block &block, const uint8_t *place, unsigned bytes) {
  auto [first, last] = entries(block, place, bytes);
  std::fill(first, last, Written{});
}

void read(Thread &t, const Instruction &i, const uint8_t *place, unsigned bytes,
          bool async) {
  auto [first, last] = entries(*t.block, place, bytes);
  for (const Written *at = first; at != last; ++at) {
    if (at->block != t.block->number)
      continue;
    const Order &writer = t.block->threads[at->thread].order;
    uint32_t releases = at->releases, fences = at->proxyFences;
    if (at->way == Written::Copy) {
      if (at->copies >= writer.waited.size())
        return failAt(t, i, "a copy is read that was not waited for");
      std::tie(releases, fences) = writer.waited[at->copies];
    }
    if (async && fences == writer.proxyFences)
      return failAt(t, i, "wgmma reads without a fence.proxy.async before it");
    // Who arrives at an mbarrier does not tell that it is one.
    uint32_t now = at->way == Written::Init ? writer.barriers : writer.releases;
    if (at->thread != t.order.number && releases == now)
      return failAt(t, i,
                    "what another thread wrote is read without a barrier");
  }
}

//===----------------------------------------------------------------------===//
// Registers
//===----------------------------------------------------------------------===//

void useRegisters(Thread &t, const Instruction &i) {
  Order &order = t.order;
  auto use = [&](int32_t slot, bool writes) {
    if (order.sums[slot] > order.done)
      return failAt(t, i, "sums of a wgmma are used that was not waited for");
    if (writes && order.held[slot] > order.done)
      return failAt(t, i, "rows of a wgmma change that was not waited for");
    order.used[slot] = order.fences + 1;
  };
  for (int32_t slot : i.s)
    use(slot, /*writes=*/false);
  for (int32_t slot : i.d)
    use(slot, /*writes=*/true);
}

void startProduct(Thread &t, const Instruction &i) {
  Order &order = t.order;
  auto start = [&](int32_t slot, std::vector<uint32_t> &by) {
    if (order.fences == 0 || order.used[slot] > order.fences)
      failAt(t, i, "wgmma takes registers without a wgmma.fence before it");
    by[slot] = order.products + 1;
  };
  for (int32_t slot : i.d)
    start(slot, order.sums);
  for (size_t k = 0; i.s.size() == 9 && k < 4; ++k)
    start(i.s[k], order.held);
}

//===----------------------------------------------------------------------===//
// Fences, groups and waiting
//===----------------------------------------------------------------------===//

namespace {
void commitCopies(Thread &t, const Instruction &) { ++t.order.copies; }
/// cp.async.wait_group n; wait_all is for copies of no group, too.
void awaitCopies(Thread &t, const Instruction &i) {
  Order &order = t.order;
  if (i.s.empty())
    ++order.copies;
  uint64_t under = i.s.empty() ? 0 : t.r[i.s[0]];
  while (order.waited.size() + under < order.copies)
    order.waited.emplace_back(order.releases, order.proxyFences);
}
void fenceProxy(Thread &t, const Instruction &) { ++t.order.proxyFences; }
void nothing(Thread &, const Instruction &) {}

template <void (*one)(Order &, uint64_t)>
void ofWarp(Thread *const *lanes, const Instruction &i) {
  for (int lane = 0; lane < 32; ++lane)
    if (Thread *t = lanes[lane])
      one(t->order, i.s.empty() ? 0 : t->r[i.s[0]]);
}
void meetInWarp(Thread *const *lanes, const Instruction &) {
  std::vector<Thread *> there;
  for (int lane = 0; lane < 32; ++lane)
    if (Thread *t = lanes[lane]) {
      passBarrier(t->order);
      there.push_back(t);
    }
  if (Races *races = there.front()->block->races)
    races->meet(there);
}
void fenceProducts(Order &order, uint64_t) { ++order.fences; }
void commitProducts(Order &order, uint64_t) { ++order.products; }
void awaitProducts(Order &order, uint64_t under) {
  if (order.products > under)
    order.done = std::max(order.done, uint32_t(order.products - under));
}
} // namespace

bool chooseOrder(Instruction &i, const std::vector<std::string> &parts) {
  const std::string &op = parts[0];
  auto warp = [&](void (*run)(Thread *const *, const Instruction &)) {
    i.together = Together::Warp;
    i.runWarp = run;
    return true;
  };
  auto is = [&](size_t at, const char *word) {
    return at < parts.size() && parts[at] == word;
  };
  if (op == "bar" || op == "barrier")
    return is(1, "warp") && warp(meetInWarp);
  if (op == "wgmma")
    return is(1, "fence")          ? warp(ofWarp<fenceProducts>)
           : is(1, "commit_group") ? warp(ofWarp<commitProducts>)
           : is(1, "wait_group")   ? warp(ofWarp<awaitProducts>)
                                   : false;
  if (op == "cp" && is(1, "async"))
    i.run = is(2, "commit_group")                      ? commitCopies
            : is(2, "wait_group") || is(2, "wait_all") ? awaitCopies
                                                       : nullptr;
  if (op == "fence" || op == "membar")
    i.run = is(1, "proxy") && is(2, "async") ? fenceProxy : nothing;
  return i.run != nullptr;
}

} // namespace ptx

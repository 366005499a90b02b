//===- Async.cpp - Barriers in memory, copies of tiles, warpgroups --------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What sm_90 added: mbarrier, copies of tiles by a tensor map, and products of
// four warps whose operands lie in shared memory. Copies and products happen
// when they are started, which is the earliest that a GPU may do it: who reuses
// memory too soon is found out, and who reads it too soon as well, since
// nothing is there before the other thread had its turn.
//
//===----------------------------------------------------------------------===//

#include "Machine.h"

#include <cstring>

namespace ptx {
namespace {

//===----------------------------------------------------------------------===//
// mbarrier
//===----------------------------------------------------------------------===//

/// What the eight bytes hold here; a GPU has its own form.
struct Barrier {
  uint16_t count, pending;
  uint32_t phase : 1;
  int32_t bytes : 31; ///< that are still to come
};
static_assert(sizeof(Barrier) == 8, "an mbarrier has 64 bits");

Barrier *barrierAt(Thread &t, const Instruction &i, uint64_t address) {
  Instruction shared = i;
  shared.space = Space::Shared;
  return reinterpret_cast<Barrier *>(reach(t, shared, address, 8));
}

void settle(Barrier &barrier) {
  if (barrier.pending || barrier.bytes)
    return;
  barrier.phase ^= 1;
  barrier.pending = barrier.count;
}

void initBarrier(Thread &t, const Instruction &i) {
  if (Barrier *barrier = barrierAt(t, i, t.r[i.s[0]] + uint64_t(i.offset))) {
    auto count = uint16_t(t.r[i.s[1]]);
    *barrier = {count, count, 0, 0};
    write(t, reinterpret_cast<uint8_t *>(barrier), sizeof(Barrier),
          Written::Init);
  }
}

/// mbarrier.arrive{.expect_tx}.shared.b64 state, [barrier]{, bytes}
void arrive(Thread &t, const Instruction &i) {
  Barrier *barrier = barrierAt(t, i, t.r[i.s[0]] + uint64_t(i.offset));
  if (!barrier)
    return;
  read(t, i, reinterpret_cast<uint8_t *>(barrier), sizeof(Barrier));
  if (barrier->pending == 0)
    return t.fail("more threads arrive at an mbarrier than it expects");
  if (i.s.size() > 1)
    barrier->bytes += int32_t(t.r[i.s[1]]);
  --barrier->pending;
  ++t.order.releases;
  settle(*barrier);
}

/// mbarrier.try_wait.parity.shared.b64 done, [barrier], parity{, time}
void tryWait(Thread &t, const Instruction &i) {
  Barrier *barrier = barrierAt(t, i, t.r[i.s[0]] + uint64_t(i.offset));
  if (!barrier)
    return;
  read(t, i, reinterpret_cast<uint8_t *>(barrier), sizeof(Barrier));
  bool done = barrier->phase != (t.r[i.s[1]] & 1);
  t.r[i.d[0]] = done;
  if (!done)
    t.state = State::Yields;
}

//===----------------------------------------------------------------------===//
// Tensor maps
//===----------------------------------------------------------------------===//

uint64_t swizzle128(uint64_t address) {
  return address ^ (address >> 7 & 7) << 4;
}

/// cp.async.bulk.tensor.Nd...: [to], [map, {column, row, ...}], [barrier]
void copyTile(Thread &t, const Instruction &i) {
  Instruction global = i, shared = i;
  global.space = Space::Generic;
  shared.space = Space::Shared;
  uint64_t to = t.r[i.s[0]] + uint64_t(i.offset);
  TensorMap map;
  uint64_t at = t.r[i.s[1]] + uint64_t(i.from);
  if (at % 64)
    return t.fail("a misaligned tensor map");
  const uint8_t *place = reach(t, global, at, 64);
  if (!place || !reach(t, global, at + 64, 64))
    return;
  std::memcpy(&map, place, sizeof(map));
  if (map.magic != TensorMap::kMagic)
    return t.fail("what is no tensor map");
  if (i.s.size() != 3 + map.rank)
    return t.fail("a tensor map of another rank");
  auto column = int32_t(t.r[i.s[2]]), row = int32_t(t.r[i.s[3]]);
  uint64_t start = map.address;
  bool inside = true;
  for (uint32_t dim = 2; dim < map.rank; ++dim) {
    auto at = int32_t(t.r[i.s[2 + dim]]);
    inside = inside && at >= 0 && uint64_t(at) < map.size[dim];
    start += uint64_t(at) * map.stride[dim - 1];
  }
  uint64_t rowBytes = uint64_t(map.box[0]) * map.elementBytes;
  if (to % (map.swizzled ? 1024 : 128))
    return t.fail("a misaligned tile of a copy");
  for (uint64_t y = 0; y < map.box[1]; ++y)
    for (uint64_t x = 0; x < rowBytes; x += 16) {
      uint8_t chunk[16] = {};
      for (uint64_t b = 0; b < 16; b += map.elementBytes) {
        int64_t c = column + int64_t((x + b) / map.elementBytes),
                r = row + int64_t(y);
        if (!inside || c < 0 || r < 0 || c >= int64_t(map.size[0]) ||
            r >= int64_t(map.size[1]))
          continue;
        uint64_t from = start + uint64_t(r) * map.stride[0] +
                        uint64_t(c) * map.elementBytes;
        const uint8_t *source = reach(t, global, from, map.elementBytes);
        if (!source)
          return;
        std::memcpy(chunk + b, source, map.elementBytes);
      }
      uint64_t target = to + y * rowBytes + x;
      uint8_t *there =
          reach(t, shared, map.swizzled ? swizzle128(target) : target, 16);
      if (!there)
        return;
      bring(*t.block, there, 16);
      std::memcpy(there, chunk, 16);
    }
  if (Barrier *barrier = barrierAt(t, i, t.r[i.s.back()] + uint64_t(i.third))) {
    barrier->bytes -= int32_t(rowBytes * map.box[1]);
    settle(*barrier);
  }
}

//===----------------------------------------------------------------------===//
// wgmma
//===----------------------------------------------------------------------===//

/// A matrix descriptor (PTX manual, 9.7.15.5.1.2.2).
struct Descriptor {
  uint64_t start, leading, stride;
  unsigned swizzle;

  explicit Descriptor(uint64_t bits)
      : start((bits & 0x3fff) << 4), leading((bits >> 16 & 0x3fff) << 4),
        stride((bits >> 32 & 0x3fff) << 4), swizzle(unsigned(bits >> 62)) {}

  /// The address of element [row, k] of 16 bits whose rows run along k: eight
  /// rows of 128 bytes are an atom.
  uint64_t alongDepth(unsigned row, unsigned k) const {
    return swizzle128(start + row / 8 * stride + row % 8 * 128 + k * 2);
  }
  /// The same where rows lie side by side: eight and eight steps of k are 128
  /// bytes, or 64 and eight steps of k an atom.
  uint64_t alongRows(unsigned row, unsigned k) const {
    if (swizzle)
      return swizzle128(start + row / 64 * leading + k / 8 * stride +
                        k % 8 * 128 + row % 64 * 2);
    return start + row / 8 * stride + k / 8 * leading + k % 8 * 16 +
           row % 8 * 2;
  }
};

/// wgmma.mma_async.sync.aligned.m64nNk16.f32.T.T d, a, b, p, 1, 1, 0, t or,
/// with A in four registers, d, {a}, b, p, 1, 1, t: one warp computes 16 of the
/// 64 rows. Of d a lane has pairs of two rows, eight columns apart, and of A
/// (9.7.15.5.1.1) what it has of mma.m16n8k16.
template <bool bfloat>
void multiplyGroup(Thread *const *lanes, const Instruction &i) {
  Thread &first = *lanes[0];
  for (int lane = 0; lane < 32; ++lane)
    startProduct(*lanes[lane], i);
  bool held = i.s.size() == 9;
  size_t behind = held ? 4 : 1; ///< A
  Descriptor b(first.r[i.s[behind]]);
  bool add = first.r[i.s[behind + 1]] & 1;
  for (size_t k = behind + 2; k < behind + 4; ++k)
    if (first.r[i.s[k]] != 1)
      return first.fail("wgmma with a factor that is not 1");
  bool transposed = first.r[i.s.back()] == 1;
  if (!transposed && b.swizzle != 1)
    return first.fail("wgmma whose B is not columns in swizzled atoms");
  if (b.swizzle > 1)
    return first.fail("wgmma with an unknown swizzle");
  unsigned warp = unsigned(first.r[first.block->kernel->special[13]]) % 4;
  auto columns = unsigned(i.d.size() / 4 * 8);
  Instruction shared = i;
  shared.space = Space::Shared;
  auto widen = [](uint16_t bits) {
    return bfloat ? bfloatToFloat(bits) : halfToFloat(bits);
  };
  auto load = [&](uint64_t address) -> float {
    const uint8_t *place = reach(first, shared, address, 2);
    uint16_t bits = 0;
    if (place) {
      read(first, shared, place, 2, /*async=*/true);
      std::memcpy(&bits, place, 2);
    }
    return widen(bits);
  };
  float rows[16][16], panel[16];
  if (held) {
    for (unsigned r = 0; r < 16; ++r)
      for (unsigned k = 0; k < 16; ++k) {
        const Thread &t = *lanes[r % 8 * 4 + k % 8 / 2];
        uint64_t pair = t.r[i.s[k / 8 * 2 + r / 8]];
        rows[r][k] = widen(uint16_t(pair >> k % 2 * 16));
      }
  } else {
    Descriptor a(first.r[i.s[0]]);
    if (first.r[i.s[behind + 4]] != 0 || a.swizzle != 1)
      return first.fail("wgmma whose A is not rows in swizzled atoms");
    for (unsigned r = 0; r < 16; ++r)
      for (unsigned k = 0; k < 16; ++k)
        rows[r][k] = load(a.alongDepth(16 * warp + r, k));
  }
  for (unsigned n = 0; n < columns; ++n) {
    for (unsigned k = 0; k < 16; ++k)
      panel[k] = load(transposed ? b.alongRows(n, k) : b.alongDepth(n, k));
    for (unsigned r = 0; r < 16; ++r) {
      Thread &t = *lanes[r % 8 * 4 + n % 8 / 2];
      int32_t slot = i.d[n / 8 * 4 + r / 8 * 2 + n % 2];
      double sum = add ? double(get<float>(t, slot)) : 0.0;
      for (unsigned k = 0; k < 16; ++k)
        sum += double(rows[r][k]) * panel[k];
      set<float>(t, slot, float(sum));
    }
  }
}

void nothing(Thread &, const Instruction &) {}
void awaitKernel(Thread &t, const Instruction &) { t.waited = true; }

} // namespace

bool chooseAsync(Instruction &i, const std::vector<std::string> &parts) {
  const std::string &op = parts[0];
  if (op == "mbarrier") {
    i.run = parts[1] == "init"       ? initBarrier
            : parts[1] == "arrive"   ? arrive
            : parts[1] == "try_wait" ? tryWait
                                     : nullptr;
    // Threads take turns at it.
    i.waits = true;
    return i.run != nullptr;
  }
  if (op == "setmaxnreg") {
    i.run = nothing;
    return true;
  }
  if (op == "griddepcontrol") {
    i.run = parts[1] == "wait" ? awaitKernel : nothing;
    return true;
  }
  std::string rest;
  for (const std::string &part : parts)
    rest += "." + part;
  for (const char *rank : {"2d", "4d"})
    if (rest == std::string(".cp.async.bulk.tensor.") + rank +
                    ".shared::cluster.global.tile.mbarrier::complete_tx::"
                    "bytes") {
      i.run = copyTile;
      return i.s.size() == (rank[0] == '2' ? 5 : 7);
    }
  if (op != "wgmma")
    return false;
  i.together = Together::Warp;
  std::string shape = "m64n" + std::to_string(i.d.size() / 4 * 8) + "k16";
  std::string start = ".wgmma.mma_async.sync.aligned." + shape + ".f32.";
  // A in memory, or in four registers.
  if (i.s.size() != 7 && i.s.size() != 9)
    return false;
  i.product = true;
  if (rest == start + "bf16.bf16")
    i.runWarp = multiplyGroup<true>;
  if (rest == start + "f16.f16")
    i.runWarp = multiplyGroup<false>;
  return i.runWarp != nullptr;
}

} // namespace ptx

//===- Warps.cpp - What threads do together -------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The fragments of ldmatrix and mma are written down as the PTX manual has them
// (9.7.14): lane = 4 * group + member.
//
//===----------------------------------------------------------------------===//

#include "Machine.h"

#include <cmath>
#include <cstring>

namespace ptx {
namespace {

uint32_t word(const Thread *t, int32_t slot) { return uint32_t(t->r[slot]); }
float asFloat(uint64_t bits) {
  auto low = uint32_t(bits);
  float value;
  std::memcpy(&value, &low, 4);
  return value;
}
uint64_t fromFloat(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return bits;
}

/// ldmatrix.sync.aligned.m8n8.xN{.trans}: lanes 8m to 8m+7 name the rows of
/// matrix m; lane 4r+c gets elements 2c and 2c+1 of row r, or with .trans
/// elements r of rows 2c and 2c+1.
void loadMatrices(Thread *const *lanes, const Instruction &i) {
  bool transposed = i.flags & 1;
  for (size_t m = 0; m < i.d.size(); ++m) {
    uint16_t matrix[8][8];
    for (int row = 0; row < 8; ++row) {
      Thread *source = lanes[8 * m + row];
      uint64_t address = source->r[i.s[0]] + uint64_t(i.offset);
      uint8_t *place = reach(*source, i, address, 16);
      if (!place)
        return;
      read(*source, i, place, 16);
      std::memcpy(matrix[row], place, 16);
    }
    for (int lane = 0; lane < 32; ++lane) {
      int r = lane / 4, c = lane % 4 * 2;
      uint32_t low = transposed ? matrix[c][r] : matrix[r][c],
               high = transposed ? matrix[c + 1][r] : matrix[r][c + 1];
      lanes[lane]->r[i.d[m]] = high << 16 | low;
    }
  }
}

/// The part of mma.sync behind its inputs: d = a b + c, each lane its four
/// elements; c's come after the six registers of a and b.
template <int depth>
void addProduct(Thread *const *lanes, const Instruction &i,
                const float (&a)[16][depth], const float (&b)[depth][8]) {
  for (int lane = 0; lane < 32; ++lane) {
    int group = lane / 4, member = lane % 4;
    float result[4];
    for (int k = 0; k < 4; ++k) {
      int row = group + (k & 2 ? 8 : 0), column = member * 2 + (k & 1);
      double sum = asFloat(lanes[lane]->r[i.s[6 + k]]);
      for (int step = 0; step < depth; ++step)
        sum += double(a[row][step]) * b[step][column];
      result[k] = float(sum);
    }
    for (int k = 0; k < 4; ++k)
      lanes[lane]->r[i.d[k]] = fromFloat(result[k]);
  }
}

/// mma.sync.aligned.m16n8k16.row.col.f32.{f16,bf16}.{f16,bf16}.f32, in f32
/// sums.
template <bool bfloat>
void multiply16(Thread *const *lanes, const Instruction &i) {
  auto widen = [](uint32_t bits) {
    return bfloat ? bfloatToFloat(uint16_t(bits)) : halfToFloat(uint16_t(bits));
  };
  float a[16][16], b[16][8];
  for (int lane = 0; lane < 32; ++lane) {
    int group = lane / 4, member = lane % 4;
    for (int k = 0; k < 4; ++k) {
      uint32_t pair = word(lanes[lane], i.s[k]);
      int row = group + (k & 1 ? 8 : 0), column = member * 2 + (k & 2 ? 8 : 0);
      a[row][column] = widen(pair & 0xffff);
      a[row][column + 1] = widen(pair >> 16);
    }
    for (int k = 0; k < 2; ++k) {
      uint32_t pair = word(lanes[lane], i.s[4 + k]);
      int row = member * 2 + 8 * k;
      b[row][group] = widen(pair & 0xffff);
      b[row + 1][group] = widen(pair >> 16);
    }
  }
  addProduct(lanes, i, a, b);
}

/// mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32
void multiplyTF32(Thread *const *lanes, const Instruction &i) {
  float a[16][8], b[8][8];
  auto cut = [](uint64_t bits) { return asFloat(bits & ~0x1fffull); };
  for (int lane = 0; lane < 32; ++lane) {
    int group = lane / 4, member = lane % 4;
    for (int k = 0; k < 4; ++k)
      a[group + (k & 1 ? 8 : 0)][member + (k & 2 ? 4 : 0)] =
          cut(lanes[lane]->r[i.s[k]]);
    for (int k = 0; k < 2; ++k)
      b[member + 4 * k][group] = cut(lanes[lane]->r[i.s[4 + k]]);
  }
  addProduct(lanes, i, a, b);
}

/// shfl.sync.{idx,up,down,bfly}.b32 d|p, a, b, c, mask
enum Shuffle : uint8_t {
  ShuffleIndex,
  ShuffleUp,
  ShuffleDown,
  ShuffleButterfly
};
void shuffle(Thread *const *lanes, const Instruction &i) {
  uint64_t values[32];
  for (int lane = 0; lane < 32; ++lane)
    values[lane] = lanes[lane] ? lanes[lane]->r[i.s[0]] : 0;
  for (int lane = 0; lane < 32; ++lane) {
    Thread *t = lanes[lane];
    if (!t)
      continue;
    int b = int(word(t, i.s[1]) & 31), c = int(word(t, i.s[2]));
    int clamp = c & 31, segment = c >> 8 & 31;
    int top = (lane & segment) | (clamp & ~segment), bottom = lane & segment;
    int from = lane;
    bool valid = true;
    switch (Shuffle(i.flags)) {
    case ShuffleUp:
      from = lane - b;
      valid = from >= top;
      break;
    case ShuffleDown:
      from = lane + b;
      valid = from <= top;
      break;
    case ShuffleButterfly:
      from = lane ^ b;
      valid = from <= top;
      break;
    case ShuffleIndex:
      from = bottom | (b & ~segment);
      valid = from <= top;
      break;
    }
    t->r[i.d[0]] = uint32_t(values[valid ? from : lane]);
    if (i.d.size() > 1)
      t->r[i.d[1]] = valid;
  }
}

/// redux.sync.{min,max}.s32 d, a, mask: of the lanes that are there.
template <bool largest>
void reduceSigned(Thread *const *lanes, const Instruction &i) {
  int32_t best = largest ? INT32_MIN : INT32_MAX;
  for (int lane = 0; lane < 32; ++lane) {
    if (!lanes[lane])
      continue;
    auto here = int32_t(word(lanes[lane], i.s[0]));
    best = (here > best) == largest ? here : best;
  }
  for (int lane = 0; lane < 32; ++lane)
    if (lanes[lane])
      lanes[lane]->r[i.d[0]] = uint32_t(best);
}

void nothing(Thread &, const Instruction &) {}

/// cp.async.{ca,cg}.shared.global [to], [from], size{, used}: the rest of size
/// is zeros. Here it is done at once.
void copyAsync(Thread &t, const Instruction &i) {
  // Operands: [to], [from], size, used.
  uint64_t target = t.r[i.s[0]] + uint64_t(i.offset);
  uint64_t source = t.r[i.s[1]] + uint64_t(i.from);
  auto bytes = unsigned(t.r[i.s[2]]);
  auto used = i.s.size() > 3 ? unsigned(t.r[i.s[3]]) : bytes;
  Instruction shared = i, global = i;
  shared.space = Space::Shared;
  global.space = Space::Global;
  uint8_t *to = reach(t, shared, target, bytes);
  if (!to)
    return;
  write(t, to, bytes, Written::Copy);
  std::memset(to, 0, bytes);
  if (source % bytes)
    return t.fail("a misaligned source of cp.async");
  if (!used)
    return;
  if (uint8_t *from = reach(t, global, source, used))
    std::memcpy(to, from, used);
}

bool startsWith(const std::vector<std::string> &parts,
                std::initializer_list<const char *> words) {
  size_t at = 0;
  for (const char *word : words)
    if (at >= parts.size() || parts[at++] != word)
      return false;
  return true;
}
/// bar.arrive number, threads
void arriveAtBarrier(Thread &t, const Instruction &i) {
  auto number = uint32_t(t.r[i.s[0]]);
  if (number > 15)
    return t.fail("no such barrier");
  ++t.block->arrived[number];
  passBarrier(t.order);
}
} // namespace

bool chooseTogether(Instruction &i, const std::vector<std::string> &parts) {
  const std::string &op = parts[0];
  auto warp = [&](void (*run)(Thread *const *, const Instruction &)) {
    i.together = Together::Warp;
    i.runWarp = run;
    return true;
  };
  if (chooseOrder(i, parts))
    return true;
  if (op == "bar" || op == "barrier") {
    i.arrives = has(parts, "arrive");
    i.waits = i.arrives;
    i.together = i.arrives ? Together::No : Together::Block;
    i.run = i.arrives ? arriveAtBarrier : nothing;
    // A number, and how many threads if not all.
    return i.s.size() == 2 || (i.s.size() == 1 && !i.arrives);
  }
  if (op == "ldmatrix") {
    i.space = Space::Shared;
    for (const std::string &part : parts)
      i.flags |= part == "trans";
    return i.type == Type::B16 && warp(loadMatrices);
  }
  if (op == "mma") {
    std::string rest;
    for (const std::string &part : parts)
      rest += "." + part;
    if (rest == ".mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32")
      return warp(multiply16<true>);
    if (rest == ".mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
      return warp(multiply16<false>);
    if (rest == ".mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32")
      return warp(multiplyTF32);
    return false;
  }
  if (startsWith(parts, {"shfl", "sync"})) {
    static const char *const kinds[] = {"idx", "up", "down", "bfly"};
    for (uint8_t kind = 0; kind < 4; ++kind)
      if (parts[2] == kinds[kind]) {
        i.flags = kind;
        return warp(shuffle);
      }
    return false;
  }
  if (startsWith(parts, {"redux", "sync", "max", "s32"}))
    return warp(reduceSigned<true>);
  if (startsWith(parts, {"redux", "sync", "min", "s32"}))
    return warp(reduceSigned<false>);
  if (chooseAsync(i, parts))
    return true;
  if (startsWith(parts, {"cp", "async"})) {
    i.run = copyAsync;
    return parts[2] == "ca" || parts[2] == "cg";
  }
  return false;
}

} // namespace ptx

//===- MatrixTiles.cpp - Registers of AMX -----------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// In the amx dialect a tile is an array of its elements. LLVM's tiles have no
// type of elements: an array of words of 32 bits, each an f32 or two bf16.

#include "PairProducts.h"
#include "Pointers.h"

#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/bit.h"

#include <cmath>

using namespace attune;
using namespace attune::validation;
using namespace mlir;

/// TDPBF16PS as Intel's manual has it: what is added to sum (m, n) is two sums,
/// of the even and of the odd elements. `a(m, k)` and `b(k / 2, 2 n + k % 2)`
/// give elements, `c(m, n)` a float to update.
template <typename A, typename B, typename C>
static void multiply(int64_t rows, int64_t columns, int64_t pairs, A a, B b,
                     C c) {
  for (int64_t m = 0; m < rows; ++m)
    for (int64_t n = 0; n < columns; ++n) {
      float sums[2] = {0, 0};
      for (int64_t k = 0; k < 2 * pairs; ++k)
        sums[k % 2] = flush(std::fma(
            flush(a(m, k)), flush(b(k / 2, 2 * n + k % 2)), sums[k % 2]));
      c(m, n, flush(sums[0] + sums[1]));
    }
}

//===----------------------------------------------------------------------===//
// The amx dialect
//===----------------------------------------------------------------------===//

static bool runZero(Step &step) {
  auto type = cast<amx::TileType>(step.op->getResult(0).getType());
  bool whole = type.getElementType().isInteger();
  step.give(makeArray(type.getShape(), whole ? validation::whole(0) : real(0)));
  return true;
}

/// Calls `move` with the place in memory of each element of a tile; the
/// operands from `first` on are a buffer and indices.
template <typename Move>
static bool eachElement(Step &step, size_t first, amx::TileType type,
                        Move move) {
  const View &view = step.in[first].view();
  if (step.in.size() - first != view.shape.size() + 1 || view.shape.size() < 2)
    return step.machine.fail(step.op, Failure::Unsupported,
                             "a tile with a stride of its own");
  Shape origin;
  for (const Datum &index : step.in.drop_front(first + 1))
    origin.push_back(index.integer());
  for (int64_t row = 0; row < type.getDimSize(0); ++row)
    for (int64_t column = 0; column < type.getDimSize(1); ++column) {
      Shape at = origin;
      at[at.size() - 2] += row;
      at.back() += column;
      uint8_t *place = addressOf(view, type.getElementType(), at);
      if (!place)
        return step.machine.outOfBounds(step, "a tile reaches out of a buffer");
      move(row * type.getDimSize(1) + column, place);
    }
  return true;
}

static bool runLoad(Step &step) {
  auto type = cast<amx::TileType>(step.op->getResult(0).getType());
  Datum result = makeArray(type.getShape(), real(0));
  Array &out = result.array();
  if (!eachElement(step, 0, type, [&](int64_t i, uint8_t *place) {
        out.data[i] = loadScalar(type.getElementType(), place);
      }))
    return false;
  step.give(result);
  return true;
}

static bool runStore(Step &step) {
  auto op = cast<amx::TileStoreOp>(step.op);
  amx::TileType type = op.getTileType();
  const Array &from = step.in[step.in.size() - 1].array();
  // The tile comes behind the indices.
  Step place{step.machine, step.op, step.in.drop_back(), step.out};
  return eachElement(place, 0, type, [&](int64_t i, uint8_t *at) {
    storeScalar(type.getElementType(), at, from.data[i]);
  });
}

static bool runMultiply(Step &step) {
  const Array &a = step.in[0].array(), &b = step.in[1].array();
  Datum result = step.in[2];
  Array &c = result.ownArray();
  int64_t depth = a.shape[1], columns = c.shape[1];
  multiply(
      c.shape[0], columns, depth / 2,
      [&](int64_t m, int64_t k) { return float(a.data[m * depth + k].f); },
      [&](int64_t k, int64_t n) { return float(b.data[k * b.shape[1] + n].f); },
      [&](int64_t m, int64_t n, float value) {
        double &sum = c.data[m * columns + n].f;
        sum = flush(flush(float(sum)) + value);
      });
  step.give(std::move(result));
  return step.machine.spend(step, depth * columns);
}

/// TDPBSUD and its kin: bytes by bytes, each signed or not, into 32 bits that
/// wrap around. `a(m, k)` and `b(k / 4, 4 n + k % 4)` give bytes.
template <typename A, typename B, typename C>
static void multiplyBytes(int64_t rows, int64_t columns, int64_t depth, A a,
                          B b, C c) {
  for (int64_t m = 0; m < rows; ++m)
    for (int64_t n = 0; n < columns; ++n) {
      uint32_t sum = 0;
      for (int64_t k = 0; k < depth; ++k)
        sum += uint32_t(a(m, k) * b(k / 4, 4 * n + k % 4));
      c(m, n, sum);
    }
}

static int32_t byteOf(int64_t word, int64_t number, bool isUnsigned) {
  uint8_t bits = uint64_t(word) >> (8 * number);
  return isUnsigned ? int32_t(bits) : int32_t(int8_t(bits));
}

static bool runMultiplyBytes(Step &step) {
  auto op = cast<amx::TileMulIOp>(step.op);
  const Array &a = step.in[0].array(), &b = step.in[1].array();
  Datum result = step.in[2];
  Array &c = result.ownArray();
  int64_t depth = a.shape[1], columns = c.shape[1];
  multiplyBytes(
      c.shape[0], columns, depth,
      [&](int64_t m, int64_t k) {
        return byteOf(a.data[m * depth + k].i, 0, op.getIsZextLhs());
      },
      [&](int64_t k, int64_t n) {
        return byteOf(b.data[k * b.shape[1] + n].i, 0, op.getIsZextRhs());
      },
      [&](int64_t m, int64_t n, uint32_t value) {
        int64_t &sum = c.data[m * columns + n].i;
        sum = int32_t(uint32_t(sum) + value);
      });
  step.give(std::move(result));
  return step.machine.spend(step, depth * columns);
}

//===----------------------------------------------------------------------===//
// LLVM's intrinsics
//===----------------------------------------------------------------------===//

static float lowHalf(int64_t word) {
  return llvm::bit_cast<float>(uint32_t(word) << 16);
}
static float highHalf(int64_t word) {
  return llvm::bit_cast<float>(uint32_t(word) & 0xffff0000u);
}

/// Rows and bytes of a row, then what `move` needs: the address of each word.
template <typename Move> static bool eachWord(Step &step, Move move) {
  int64_t rows = step.in[0].integer(), bytes = step.in[1].integer(),
          stride = step.in[3].integer();
  for (int64_t row = 0; row < rows; ++row) {
    Datum pointer(whole(step.in[2].integer() + row * stride));
    uint8_t *place = bytesAt(step, pointer, bytes);
    if (!place)
      return false;
    for (int64_t word = 0; word < bytes / 4; ++word)
      move(row * (bytes / 4) + word, place + 4 * word);
  }
  return true;
}

static bool multiplyWords(Step &step) {
  int64_t rows = step.in[0].integer(), columns = step.in[1].integer() / 4,
          pairs = step.in[2].integer() / 4;
  Datum result = step.in[3];
  Array &c = result.ownArray();
  const Array &a = step.in[4].array(), &b = step.in[5].array();
  auto half = [](int64_t word, int64_t odd) {
    return odd ? highHalf(word) : lowHalf(word);
  };
  multiply(
      rows, columns, pairs,
      [&](int64_t m, int64_t k) {
        return half(a.data[m * pairs + k / 2].i, k % 2);
      },
      [&](int64_t k, int64_t n) {
        return half(b.data[k * columns + n / 2].i, n % 2);
      },
      [&](int64_t m, int64_t n, float value) {
        int64_t &sum = c.data[m * columns + n].i;
        float before = flush(llvm::bit_cast<float>(uint32_t(sum)));
        sum = llvm::bit_cast<uint32_t>(flush(before + value));
      });
  step.give(std::move(result));
  return step.machine.spend(step, columns * pairs);
}

static bool multiplyWordsOfBytes(Step &step, bool unsignedA, bool unsignedB) {
  int64_t rows = step.in[0].integer(), columns = step.in[1].integer() / 4,
          depth = step.in[2].integer();
  Datum result = step.in[3];
  Array &c = result.ownArray();
  const Array &a = step.in[4].array(), &b = step.in[5].array();
  multiplyBytes(
      rows, columns, depth,
      [&](int64_t m, int64_t k) {
        return byteOf(a.data[m * (depth / 4) + k / 4].i, k % 4, unsignedA);
      },
      [&](int64_t k, int64_t n) {
        return byteOf(b.data[k * columns + n / 4].i, n % 4, unsignedB);
      },
      [&](int64_t m, int64_t n, uint32_t value) {
        int64_t &sum = c.data[m * columns + n].i;
        sum = int32_t(uint32_t(sum) + value);
      });
  step.give(std::move(result));
  return step.machine.spend(step, columns * depth);
}

std::optional<bool> validation::runTileIntrinsic(Step &step,
                                                 llvm::StringRef name) {
  Type word = IntegerType::get(step.op->getContext(), 32);
  if (name == "llvm.x86.tilezero.internal" ||
      name == "llvm.x86.tileloadd64.internal") {
    Datum result =
        makeArray({step.in[0].integer(), step.in[1].integer() / 4}, whole(0));
    Array &out = result.array();
    if (step.in.size() > 2 && !eachWord(step, [&](int64_t i, uint8_t *place) {
          out.data[i] = loadScalar(word, place);
        }))
      return false;
    step.give(result);
    return true;
  }
  if (name == "llvm.x86.tilestored64.internal") {
    const Array &from = step.in[4].array();
    return eachWord(step, [&](int64_t i, uint8_t *place) {
      storeScalar(word, place, from.data[i]);
    });
  }
  if (name == "llvm.x86.tdpbf16ps.internal")
    return multiplyWords(step);
  if (name == "llvm.x86.tdpbsud.internal")
    return multiplyWordsOfBytes(step, /*unsignedA=*/false, /*unsignedB=*/true);
  return std::nullopt;
}

void validation::addMatrixTiles(Handlers &handlers) {
  handlers["amx.tile_zero"] = runZero;
  handlers["amx.tile_load"] = runLoad;
  handlers["amx.tile_store"] = runStore;
  handlers["amx.tile_mulf"] = runMultiply;
  handlers["amx.tile_muli"] = runMultiplyBytes;
}

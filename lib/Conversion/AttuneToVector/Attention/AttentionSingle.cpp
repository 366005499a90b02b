//===- AttentionSingle.cpp - One query over keys where they lie -----------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// A single row (one query of a head that shares its keys with none) needs no
// panels and no tiles of rows: it multiplies keys and adds up values in place,
// at the speed of memory. If the CPU multiplies bf16 pairs it is one of few
// rows: see AttentionFewRows.cpp. Its prefetches: AttentionFetching.cpp.
//
// Keys and values in bf16 are widened two at a time: 32 bits hold two of them,
// the upper half is one as it is and the lower one a shift away. This separates
// even and odd channels, which does not matter to a sum over channels; sums of
// channels are interleaved once they are complete.
//
// Keys and values in bytes become numbers in registers. The scale of a key
// multiplies its score, that of a value multiplies the probability.

#include "StepKernel.h"

#include "attune/Conversion/PairProduct.h"

using namespace mlir;

namespace attune {

using Values = KernelBuilder::Values;

namespace {

bool isBF16(Value heads) { return tensorType(heads).getElementType().isBF16(); }

/// `2 * lanes` elements of a bf16 tensor: those at even and those at odd
/// places.
std::pair<Value, Value> loadWidened(KernelBuilder &k, Value tensor,
                                    ValueRange at, int64_t lanes) {
  auto type = VectorType::get({lanes}, k.b.getI32Type());
  Value both = vector::BitCastOp::create(k.b, k.loc, type,
                                         loadPairs(k, tensor, at, lanes));
  auto number = [&](int32_t bits) -> Value {
    return arith::ConstantOp::create(k.b, k.loc,
                                     DenseElementsAttr::get(type, bits));
  };
  auto toFloat = [&](Value bits) -> Value {
    return arith::BitcastOp::create(k.b, k.loc, k.vectorType(lanes), bits);
  };
  return {toFloat(arith::ShLIOp::create(k.b, k.loc, both, number(16))),
          toFloat(arith::AndIOp::create(k.b, k.loc, both, number(-65536)))};
}

/// The lanes of a vector at even and those at odd places.
std::pair<Value, Value> takeApart(KernelBuilder &k, Value vector) {
  auto parts = vector::DeinterleaveOp::create(k.b, k.loc, vector);
  return {parts.getResult(0), parts.getResult(1)};
}

} // namespace

/// The products of one query with a panel of keys, each read in place: sums of
/// eight keys at a time, whose lanes are then added up.
Value StepKernel::products(KernelBuilder &k, Value panel) {
  Value last = k.sub(keys, k.index(1));
  Value zero = k.index(0);
  Value all = k.splat(0.0, lanes);
  bool bytes = isInBytes(op.getKey());
  int64_t each = isBF16(op.getKey()) ? 2 * kSquare : kSquare;
  if (width % each != 0)
    each = kSquare;
  int64_t whole = width / each * each, steps = whole / each;
  Fetching fetching;
  if (crossing && steps > 0)
    fetching = besideKeys(k, k.mul(panel, lanes), 0, lanes / kSquare * steps);
  for (int64_t lane = 0; lane < lanes; lane += kSquare) {
    Values at;
    for (int64_t i = 0; i < kSquare; ++i)
      at.push_back(k.min(k.add(k.mul(panel, lanes), k.index(lane + i)), last));
    auto step = [&](KernelBuilder &k, Value column, Value valid,
                    ValueRange sums) {
      // Packed queries are zero beyond their width.
      Value q = k.load(packedQueries, {zero, zero, column}, kSquare);
      Values next;
      for (int64_t i = 0; i < kSquare; ++i) {
        Value where[] = {batch, kvHead, at[i], column};
        Value x = bytes ? loadUnscaled(k, op.getKey(), where, kSquare, valid)
                        : k.load(op.getKey(), where, kSquare, valid);
        next.push_back(k.fma(x, q, sums[i]));
      }
      return next;
    };
    auto widened = [&](KernelBuilder &k, Value column, ValueRange sums) {
      auto [evenQuery, oddQuery] = takeApart(
          k, k.load(packedQueries, {zero, zero, column}, 2 * kSquare));
      Values next;
      for (int64_t i = 0; i < kSquare; ++i) {
        auto [even, odd] = loadWidened(k, op.getKey(),
                                       {batch, kvHead, at[i], column}, kSquare);
        next.push_back(k.fma(odd, oddQuery, k.fma(even, evenQuery, sums[i])));
      }
      return next;
    };
    Values sums =
        k.forLoop(k.index(0), k.index(whole), each,
                  Values(kSquare, k.splat(0.0, kSquare)),
                  [&](KernelBuilder &k, Value column, ValueRange c) {
                    Value turn = arith::DivUIOp::create(k.b, k.loc, column,
                                                        k.index(each));
                    turn = k.add(turn, k.index(lane / kSquare * steps));
                    fetch(k, fetching, turn);
                    return each == kSquare ? step(k, column, {}, c)
                                           : widened(k, column, c);
                  });
    if (whole < width)
      sums = step(k, k.index(whole), k.index(width - whole), sums);
    Value products = combineSquare(k, sums, addUp);
    if (bytes) {
      Values scales;
      for (Value key : at)
        scales.push_back(loadRowScale(k, op.getKey(), {batch, kvHead, key}));
      Value by = vector::FromElementsOp::create(k.b, k.loc,
                                                k.vectorType(kSquare), scales);
      products = arith::MulFOp::create(k.b, k.loc, products, by);
    }
    all = vector::InsertStridedSliceOp::create(k.b, k.loc, products, all,
                                               ArrayRef<int64_t>{lane},
                                               ArrayRef<int64_t>{1});
  }
  return all;
}

/// Accumulates the keys into the only row. Carried: scores, acc, max, sum.
Values StepKernel::foldSingle(KernelBuilder &k, ValueRange carried) {
  Row at{k.index(0), k.index(0)};
  auto scores = [&](KernelBuilder &k, Value panel, Value) {
    return Values{products(k, panel)};
  };
  // Two sums a panel, of its even and its odd channels, or one of all.
  bool apart = isBF16(op.getValue()) && valueWidth % lanes == 0;
  bool bytes = isInBytes(op.getValue());
  auto sum = [&](KernelBuilder &k, ValueRange factors, Value probabilities,
                 Value first, Value depth, Value acc) {
    Value factor = k.splat(factors[0], lanes);
    Fetching fetching;
    if (crossing)
      fetching =
          besideValues(k, first, depth, 1, llvm::divideCeil(valuePanels, 4));
    // Four panels at a time fit in registers.
    for (int64_t begin = 0; begin < valuePanels; begin += 4) {
      int64_t end = std::min<int64_t>(begin + 4, valuePanels);
      auto column = [&](int64_t panel) { return k.index(panel * lanes); };
      auto valid = [&](int64_t panel) -> Value {
        int64_t left = valueWidth - panel * lanes;
        return left < lanes ? k.index(left) : Value();
      };
      Values sums;
      for (int64_t p = begin; p < end; ++p) {
        Value x = k.load(acc, place(k, acc, at, column(p)), lanes, valid(p));
        x = arith::MulFOp::create(k.b, k.loc, x, factor);
        if (apart) {
          auto [even, odd] = takeApart(k, x);
          sums.append({even, odd});
        } else {
          sums.push_back(x);
        }
      }
      auto addKey = [&](KernelBuilder &k, Value i, ValueRange c) {
        Value n = k.add(first, i);
        fetch(k, fetching, k.add(i, k.mul(depth, begin / 4)));
        Value p = k.loadScalar(probabilities, {k.index(0), scoreOf(k, n)});
        if (bytes)
          p = arith::MulFOp::create(
              k.b, k.loc, p,
              loadRowScale(k, op.getValue(), {batch, kvHead, n}));
        p = k.splat(p, apart ? lanes / 2 : lanes);
        Values next;
        for (int64_t panel = begin; panel < end; ++panel) {
          Value where[] = {batch, kvHead, n, k.index(panel * lanes)};
          if (apart) {
            auto [even, odd] = loadWidened(k, op.getValue(), where, lanes / 2);
            next.push_back(k.fma(p, even, c[next.size()]));
            next.push_back(k.fma(p, odd, c[next.size()]));
            continue;
          }
          int64_t left = valueWidth - panel * lanes;
          Value valid = left < lanes ? k.index(left) : Value();
          Value x = bytes ? loadUnscaled(k, op.getValue(), where, lanes, valid)
                          : k.load(op.getValue(), where, lanes, valid);
          next.push_back(k.fma(p, x, c[next.size()]));
        }
        return next;
      };
      sums = k.forLoop(k.index(0), depth, 1, sums, addKey);
      for (int64_t p = begin; p < end; ++p) {
        Value made = sums[p - begin];
        if (apart)
          made = vector::InterleaveOp::create(k.b, k.loc, sums[2 * (p - begin)],
                                              sums[2 * (p - begin) + 1]);
        acc = k.store(made, acc, place(k, acc, at, column(p)), valid(p));
      }
    }
    return acc;
  };
  return foldInParts(k, visible(k, at), carried,
                     [&](KernelBuilder &k, const Range &part, ValueRange c) {
                       return foldRows(k, at, part, k.index(0), c, scores, sum);
                     });
}

} // namespace attune

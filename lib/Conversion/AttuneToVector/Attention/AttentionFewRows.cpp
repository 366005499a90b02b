//===- AttentionFewRows.cpp - Few queries over keys where they lie --------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Few rows (a decode step: one query of each head of a GQA group, or some
// queries) do not amortise packing keys and values. They read them in place at
// the speed of memory instead, each key and value once for all rows:
//
//   for each panel of keys, which then is in the first-level cache:
//     for some rows at a time: products of some keys with all of them, channels
//     in lanes; the lanes of the sums are then added up; stored
//   for some rows at a time: new maximum, probabilities, sum *= factor
//   for some values at a time, which then are in the first-level cache:
//     for some rows at a time: sums += probabilities * values
//
// There are as many sums as a register has lanes: two rows by four keys, or
// four by four with registers of 512 bits. This takes the fewest instructions
// to add up their lanes, and hides the latency of an addition. Prefetches are
// spread evenly among the products: see AttentionFetching.cpp.
//
// Keys and values of 16 bits or in bytes are widened to scratch first, once for
// all rows, unless the CPU multiplies pairs of bf16: see AttentionFewPairs.cpp.
// More rows than a vector has groups of four lanes: see AttentionFewQuads.cpp.

#include "StepKernel.h"

#include "attune/Conversion/PairProduct.h"
#include "attune/TargetInfo/TargetDescription.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;

namespace attune {

using Values = KernelBuilder::Values;

namespace {

int64_t elementBits(Value heads) {
  return tensorType(heads).getElementTypeBitWidth();
}

Value lanesOf(KernelBuilder &k, Value vector, int64_t first, int64_t count) {
  return vector::ExtractStridedSliceOp::create(
      k.b, k.loc, vector, ArrayRef<int64_t>{first}, ArrayRef<int64_t>{count},
      ArrayRef<int64_t>{1});
}

} // namespace

Values StepKernel::Lying::at(KernelBuilder &k, Value row, Value column) const {
  Values indices(leading);
  indices.push_back(k.add(first, row));
  indices.push_back(column);
  return indices;
}

void StepKernel::chooseFewRows(bool multiplyPairs) {
  fewPairs = multiplyPairs && pairs && valueWidth % lanes == 0 &&
             lanes == 2 * pairLanes(lanes);
  // A whole register of channels if they divide by it, and eight at least.
  sumsAtOnce = std::max(lanes / 2, kSquare);
  if (width % ((fewPairs ? 2 : 1) * sumsAtOnce) != 0)
    sumsAtOnce = kSquare;
  int64_t most = std::min(kQueriesInPlace, group * maxQueries);
  bool fours = sumsAtOnce > kSquare && (most % 4 == 0 || most > kSquare);
  rowsAtOnce = fours ? 4 : std::min<int64_t>(most, 2);
  // Two quads of rows if a token has more than one of them. (For f32 on CPUs
  // that prefetch to L1, Zen 5, this was not measured.)
  int64_t twoQuads = 2 * quadRows();
  bool quads =
      fewPairs || (lanes > kSquare && width % kQuad == 0 && !nearBytes);
  quads &= group > quadRows();
  // With quads of two rows, six rows take longer than eight.
  if (quadRows() < kQuad)
    quads &= llvm::alignTo(group, twoQuads) == llvm::alignTo(group, rowsAtOnce);
  productRows = quads ? twoQuads : rowsAtOnce;
  if (makesQuads())
    rowsAtOnce = quadRows();
  fewRows = llvm::alignTo(most, productRows);
  chooseFetching();
  // With bf16 pairs, all rows of a token read a value at once, so it need not
  // stay near, and each start costs shuffles: half a block, while the other
  // half is fetched.
  valuesAtOnce = valueBytes / (valueWidth * 4) / lanes * lanes;
  valuesAtOnce = fewPairs ? keysFolded / (crossing ? 1 : 2)
                          : std::max(valuesAtOnce, lanes);
}

void StepKernel::makeFewRowsScratch(KernelBuilder &k) {
  if (foldsParts())
    fewScoreScratch = scratch(k, {fewRows, keysFolded});
  if (makesQuads())
    makeQuadScratch(k);
  if (fewPairs) {
    narrowFewScratch = scratch(k, {fewRows, keysFolded}, /*pairs=*/true);
    return;
  }
  auto widened = [&](Value heads, int64_t count) -> Value {
    int64_t channels = widthOfRows(tensorType(heads));
    return elementBits(heads) == 32
               ? Value()
               : scratch(k, {count, int64_t(llvm::alignTo(channels, lanes))});
  };
  wideKeys = widened(op.getKey(), lanes);
  wideValues = widened(op.getValue(), valuesAtOnce);
}

/// A view of `count` keys or values from `first` on, copied to `wide` if that
/// is given.
StepKernel::Lying StepKernel::inF32(KernelBuilder &k, Value heads, Value first,
                                    Value count, Value wide) {
  if (!wide)
    return {
        heads, {batch, kvHead}, first, k.sub(k.sub(keys, k.index(1)), first)};
  auto widen = [&](KernelBuilder &k, Value i, ValueRange c) {
    return forVectors(
        k, k.index(widthOfRows(tensorType(heads))), lanes, c,
        [&](KernelBuilder &k, Value column, Value valid, ValueRange c) {
          Value x = loadHeads(
              k, heads, {batch, kvHead, k.add(first, i), column}, lanes, valid);
          return Values{k.store(x, c[0], {i, column})};
        });
  };
  Value copies = k.forLoop(k.index(0), count, 1, wide, widen)[0];
  return {copies, {}, k.index(0), k.sub(count, k.index(1))};
}

/// Rows that are multiplied at a time; missing ones repeat the last one.
SmallVector<StepKernel::Row> StepKernel::fewAt(KernelBuilder &k, Value number,
                                               int64_t count) {
  SmallVector<Row> at;
  for (int64_t i = 0; i < count; ++i)
    at.push_back(rowAt(k, k.add(number, k.index(i))));
  return at;
}

/// The products of the rows from `number` on with keys from `key` on:
/// `sumsAtOnce` together, those of a row in a vector.
Values StepKernel::productsOfFew(KernelBuilder &k, Value number, Value key,
                                 const Lying &keys) {
  int64_t keysAtOnce = this->keysAtOnce();
  Values products;
  if (makesQuads()) {
    for (Value quad : quadsOf(k, number, key, keys))
      for (int64_t i = 0; i < quadRows(); ++i)
        products.push_back(lanesOf(k, quad, i * kQuad, kQuad));
    return products;
  }
  int64_t each = sumsAtOnce * (fewPairs ? 2 : 1);
  int64_t whole = width / each * each;
  SmallVector<Values> queries;
  Value last = k.sub(countRows(k), k.index(1));
  for (int64_t i = 0; i < productRows; ++i) {
    Value at = k.min(k.add(number, k.index(i)), last);
    queries.push_back({arith::DivUIOp::create(k.b, k.loc, at, k.index(rows)),
                       arith::RemUIOp::create(k.b, k.loc, at, k.index(rows))});
  }
  auto step = [&](KernelBuilder &k, Value column, Value valid,
                  ValueRange sums) {
    Values loaded, next;
    auto load = [&](Value tensor, ValueRange at, Value valid) {
      return fewPairs ? loadPairs(k, tensor, at, sumsAtOnce)
                      : k.load(tensor, at, sumsAtOnce, valid);
    };
    for (int64_t i = 0; i < keysAtOnce; ++i) {
      Value n = keys.upToLast(k, k.add(key, k.index(i)));
      loaded.push_back(load(keys.tensor, keys.at(k, n, column), valid));
    }
    for (ArrayRef<Value> query : queries) {
      // Packed queries are zero beyond their width.
      Value q = load(packedQueries, {query[0], query[1], column}, {});
      for (Value x : loaded) {
        Value sum = sums[next.size()];
        next.push_back(fewPairs ? addPairProducts(k, sum, x, q)
                                : k.fma(x, q, sum));
      }
    }
    return next;
  };
  Values sums(sumsAtOnce, k.splat(0.0, sumsAtOnce));
  if (whole / each * sumsAtOnce <= unrolled)
    for (int64_t column = 0; column < whole; column += each)
      sums = step(k, k.index(column), {}, sums);
  else
    sums = k.forLoop(k.index(0), k.index(whole), each, sums,
                     [&](KernelBuilder &k, Value column, ValueRange c) {
                       return step(k, column, {}, c);
                     });
  if (whole < width)
    sums = step(k, k.index(whole), k.index(width - whole), sums);
  Value all = combineSquare(k, sums, addUp);
  for (int64_t i = 0; i < productRows; ++i)
    products.push_back(lanesOf(k, all, i * keysAtOnce, keysAtOnce));
  return products;
}

/// Products of all rows with the keys of some panels, into `scores`.
Value StepKernel::scoreFew(KernelBuilder &k, Value begin, Value end,
                           Value scores) {
  int64_t keysAtOnce = this->keysAtOnce();
  int64_t turns = lanes / keysAtOnce; // of some rows
  // One panel, since prefetches are spread over a whole panel, and as many more
  // as cover the latency.
  int64_t panelBytes = lanes * width * elementBits(op.getKey()) / 8;
  int64_t panelsAhead = 1 + llvm::divideCeil(fetchBytes, panelBytes);
  auto panelOfKeys = [&](KernelBuilder &k, Value panel, bool whole,
                         ValueRange c) {
    Value start = k.mul(panel, lanes);
    Value count = whole ? k.index(lanes) : k.sub(keys, start);
    Lying near = inF32(k, op.getKey(), start, count, wideKeys);
    if (whole)
      near.last = {};
    Fetching fetching =
        besideKeys(k, start, panelsAhead * lanes,
                   turns * llvm::divideCeil(group, productRows));
    auto someRows = [&](KernelBuilder &k, Value number, ValueRange c) {
      Value turn = k.mul(
          arith::DivUIOp::create(k.b, k.loc, number, k.index(productRows)),
          turns);
      auto someKeys = [&](KernelBuilder &k, Value key, ValueRange c) {
        Value now = k.add(
            turn, arith::DivUIOp::create(k.b, k.loc, key, k.index(keysAtOnce)));
        fetch(k, fetching, now);
        Value scores = c[0];
        if (keepsQuads())
          return Values{storeQuads(k, quadsOf(k, number, key, near), number,
                                   start, key, scores)};
        Values products = productsOfFew(k, number, key, near);
        for (auto [i, product] : llvm::enumerate(products))
          scores = k.store(
              product, scores,
              {k.add(number, k.index(i)), k.add(scoreOf(k, start), key)});
        return Values{scores};
      };
      return k.forLoop(k.index(0), k.index(lanes), keysAtOnce, c, someKeys);
    };
    return k.forLoop(k.index(0), countRows(k), productRows, c, someRows);
  };
  // Only the last panel of a block may have fewer keys.
  Value all = arith::DivUIOp::create(k.b, k.loc, keys, k.index(lanes));
  Value last = maxIndex(k, begin, k.min(end, all));
  auto panels = [&](Value begin, Value end, bool whole) {
    return k.forLoop(begin, end, 1, scores,
                     [&](KernelBuilder &k, Value panel, ValueRange c) {
                       return panelOfKeys(k, panel, whole, c);
                     })[0];
  };
  scores = panels(begin, last, /*whole=*/true);
  return panels(last, end, /*whole=*/false);
}

/// Products become scores and these become probabilities, as far as any row
/// sees keys; old sums are rescaled. Carried and returned: scores, acc, max,
/// sum; probabilities as bf16 if pairs are multiplied.
Values StepKernel::weighFew(KernelBuilder &k, const Range &seen,
                            ValueRange carried) {
  auto someRows = [&](KernelBuilder &k, Value number, ValueRange c) {
    SmallVector<Row> at = fewAt(k, number, rowsAtOnce);
    auto scoresOf = [&](KernelBuilder &k, Value panel, Value scores) {
      Value start = k.mul(panel, lanes);
      Values loaded;
      if (keepsQuads())
        loaded = rowsOfQuads(k, number, start, scores);
      else
        for (int64_t i = 0; i < rowsAtOnce; ++i)
          loaded.push_back(k.load(
              scores, {k.add(number, k.index(i)), scoreOf(k, start)}, lanes));
      return loaded;
    };
    Value made;
    auto shrink = [&](KernelBuilder &k, ValueRange factors, Value probabilities,
                      Value, Value, Value acc) {
      made = probabilities;
      auto panel = [&](KernelBuilder &k, Value column, Value valid,
                       ValueRange c) {
        Values shrunk;
        for (auto [row, factor] : llvm::zip_equal(at, factors)) {
          Value x = k.load(c[0], place(k, c[0], row, column), lanes, valid);
          shrunk.push_back(
              arith::MulFOp::create(k.b, k.loc, x, k.splat(factor, lanes)));
        }
        Value next = c[0];
        for (auto [row, x] : llvm::zip_equal(at, shrunk))
          next = k.store(x, next, place(k, next, row, column), valid);
        return Values{next};
      };
      return forVectors(k, k.index(valueWidth), lanes, acc, panel)[0];
    };
    Range range = visible(k, at);
    range.first = seen.first;
    range.last = seen.last;
    int64_t turns = llvm::divideCeil(group, rowsAtOnce);
    Fetching fetching = besideWeights(k, turns);
    auto meanwhile = [&](KernelBuilder &k, Value panel) {
      Value done = arith::DivUIOp::create(
          k.b, k.loc, scoreOf(k, k.mul(panel, lanes)), k.index(lanes));
      Value turn =
          arith::DivUIOp::create(k.b, k.loc, number, k.index(rowsAtOnce));
      fetch(k, fetching, k.add(k.mul(done, turns), turn));
    };
    Values next = foldRows(k, at, range, number, c.take_front(4), scoresOf,
                           shrink, fewPairs ? c[4] : Value(), meanwhile);
    if (fewPairs)
      next.push_back(made);
    return next;
  };
  return k.forLoop(k.index(0), countRows(k), rowsAtOnce, carried, someRows);
}

int64_t StepKernel::passesOfValues(int64_t chunk) const {
  return llvm::divideCeil(group, valueRows()) *
         llvm::divideCeil(valueWidth, chunk);
}

Value StepKernel::passOfValues(KernelBuilder &k, Value number, Value column,
                               int64_t chunk) {
  int64_t turns = llvm::divideCeil(group, valueRows());
  auto quotient = [&](Value value, int64_t by) -> Value {
    return arith::DivUIOp::create(k.b, k.loc, value, k.index(by));
  };
  Value turn = k.min(quotient(number, valueRows()), k.index(turns - 1));
  return k.add(k.mul(quotient(column, chunk), turns), turn);
}

/// Adds probabilities times values of keys [first, last) to the sums of all
/// rows.
Value StepKernel::sumFew(KernelBuilder &k, Value first, Value last,
                         Value probabilities, Value acc) {
  // As many panels of channels as make `sumsAtOnce` sums of a register each, if
  // there are enough.
  int64_t panels = std::clamp<int64_t>(sumsAtOnce / (2 * valueRows()), 1,
                                       llvm::divideCeil(valueWidth, lanes));
  int64_t chunk = panels * lanes;
  // Eight sums take so few cycles that the loop counter costs time.
  int64_t valuesTogether = lanes < 32 ? 4 : 1;
  auto someValues = [&](KernelBuilder &k, Value start, ValueRange c) {
    Value depth = k.min(k.index(valuesAtOnce), k.sub(last, start));
    Lying near = inF32(k, op.getValue(), start, depth, wideValues);
    Fetching fetching =
        besideValues(k, start, depth, valuesTogether, passesOfValues(chunk));
    // Some rows, some channels; `left` of them.
    auto sum = [&](KernelBuilder &k, Value number, Value column, int64_t left,
                   Value acc) {
      int64_t count = std::min(panels, int64_t(llvm::divideCeil(left, lanes)));
      auto columnOf = [&](KernelBuilder &k, int64_t panel) {
        return k.add(column, k.index(panel * lanes));
      };
      auto valid = [&](int64_t panel) -> Value {
        int64_t some = left - panel * lanes;
        return some < lanes ? k.index(some) : Value();
      };
      SmallVector<Row> at = fewAt(k, number, valueRows());
      Values sums;
      for (const Row &row : at)
        for (int64_t p = 0; p < count; ++p)
          sums.push_back(
              k.load(acc, place(k, acc, row, columnOf(k, p)), lanes, valid(p)));
      Value turn = k.mul(passOfValues(k, number, column, chunk),
                         k.ceilDiv(depth, valuesTogether));
      auto addValue = [&](KernelBuilder &k, Value i, ValueRange c) {
        Values loaded, next;
        for (int64_t p = 0; p < count; ++p)
          loaded.push_back(k.load(near.tensor, near.at(k, i, columnOf(k, p)),
                                  lanes, valid(p)));
        Value at = scoreOf(k, k.add(start, i));
        for (int64_t row = 0; row < valueRows(); ++row) {
          Value p =
              k.loadScalar(probabilities, {k.add(number, k.index(row)), at});
          for (Value x : loaded)
            next.push_back(k.fma(k.splat(p, lanes), x, c[next.size()]));
        }
        return next;
      };
      auto addValues = [&](KernelBuilder &k, Value step, ValueRange c) {
        fetch(k, fetching, k.add(turn, step));
        Values next(c);
        for (int64_t i = 0; i < valuesTogether; ++i)
          next =
              addValue(k, k.add(k.mul(step, valuesTogether), k.index(i)), next);
        return next;
      };
      Value steps =
          arith::DivUIOp::create(k.b, k.loc, depth, k.index(valuesTogether));
      sums = k.forLoop(k.index(0), steps, 1, sums, addValues);
      if (valuesTogether > 1)
        sums =
            k.forLoop(k.mul(steps, valuesTogether), depth, 1, sums, addValue);
      // Missing rows repeat the last one, and may have no probabilities: that
      // row's own sums are stored last.
      for (int64_t row = valueRows() - 1; row >= 0; --row)
        for (int64_t p = 0; p < count; ++p)
          acc = k.store(sums[row * count + p], acc,
                        place(k, acc, at[row], columnOf(k, p)), valid(p));
      return acc;
    };
    auto channels = [&](KernelBuilder &k, Value column, int64_t left,
                        ValueRange c) {
      return k.forLoop(k.index(0), countRows(k), valueRows(), c,
                       [&](KernelBuilder &k, Value number, ValueRange c) {
                         return Values{sum(k, number, column, left, c[0])};
                       });
    };
    int64_t full = valueWidth / chunk * chunk;
    Values sums = k.forLoop(k.index(0), k.index(full), chunk, c,
                            [&](KernelBuilder &k, Value column, ValueRange c) {
                              return channels(k, column, chunk, c);
                            });
    if (full < valueWidth)
      sums = channels(k, k.index(full), valueWidth - full, sums);
    return sums;
  };
  return k.forLoop(first, last, valuesAtOnce, acc, someValues)[0];
}

/// Accumulates the keys into all rows that share them. Carried: scores, acc,
/// max, sum; returns the last three.
Values StepKernel::foldFewRows(KernelBuilder &k, ValueRange carried) {
  Row bounds[] = {rowAt(k, k.index(0)),
                  rowAt(k, k.sub(countRows(k), k.index(1)))};
  Values states(carried);
  if (fewPairs)
    states.push_back(narrowFewScratch);
  auto fold = [&](KernelBuilder &k, const Range &part, ValueRange carried) {
    Values c(carried);
    Value begin = firstPanel(k, part), first = k.mul(begin, lanes);
    c[0] = scoreFew(k, begin, k.ceilDiv(part.last, lanes), c[0]);
    c = weighFew(k, part, c);
    c[1] = fewPairs ? sumFewPairs(k, first, part.last, c[4], c[1])
                    : sumFew(k, first, part.last, c[0], c[1]);
    return c;
  };
  states = foldInParts(k, visible(k, bounds), states, fold);
  return {states[1], states[2], states[3]};
}

} // namespace attune

//===- PanelSums.cpp - Sums of rows against a panel -------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PanelSums.h"

#include "attune/Conversion/PairProduct.h"

#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;

namespace attune {

static ShapedType typeOf(Value value) {
  return cast<ShapedType>(value.getType());
}

/// The lanes of two equal vectors.
static Value sideBySide(KernelBuilder &k, Value a, Value b) {
  SmallVector<int64_t> lanes(2 *
                             cast<VectorType>(a.getType()).getNumElements());
  std::iota(lanes.begin(), lanes.end(), 0);
  return vector::ShuffleOp::create(k.b, k.loc, a, b, lanes);
}

namespace {
/// Elements that are brought to the cache evenly while a sum over K goes on:
/// `width` from `number` of `shares` equal shares of the `size` elements from
/// `first`.
struct Fetches {
  Fetches(KernelBuilder &k, Type element, Value first, Value size, Value number,
          int64_t width, Value shares, Value turns, int64_t lines)
      : lines(lines), line(kLineBytes * 8 / element.getIntOrFloatBitWidth()) {
    Value even = arith::CeilDivUIOp::create(k.b, k.loc, k.mul(size, width),
                                            k.mul(shares, turns));
    distance = k.min(even, arith::DivUIOp::create(k.b, k.loc, size, turns));
    // From the first line's element to the one behind the last line's: no more
    // than there are, since lines of a turn lie within what a tile's turn has.
    Value all = k.add(k.mul(distance, k.sub(turns, k.index(1))),
                      k.index((lines - 1) * line + 1));
    Value share =
        arith::DivUIOp::create(k.b, k.loc, k.mul(number, size), shares);
    // The last share ends where the elements end.
    begin = k.add(first, k.min(share, k.sub(size, all)));
  }

  /// Fetches the lines of turn `turn`: `one` brings the line of an element.
  void emit(KernelBuilder &k, Value turn,
            function_ref<void(Value at)> one) const {
    Value at = k.add(begin, k.mul(turn, distance));
    for (int64_t i = 0; i < lines; ++i)
      one(k.add(at, k.index(i * line)));
  }

  int64_t lines, line;
  Value begin, distance;
};
} // namespace

PanelProduct::PanelSums::PanelSums(const PanelProduct &p, KernelBuilder &k,
                                   const Place &at, Value tile)
    : p(p), k(k), at(at), tile(tile), rows(at.rows),
      numProducts(p.gated ? 2 : 1),
      half(2 * at.rows * p.joined >= at.tileRows) {
  panel = k.add(at.firstPanel, at.i);
  outputs = p.outputsOf(k, panel, at.column);
  outputs.origin = at.origin;
  bool elsewhere = p.lastRows && !at.whole;
  const auto &read = elsewhere ? p.lastRows->input : p.input;
  Value firstRow =
      elsewhere ? k.add(p.lastRows->first, at.row) : p.inputRow(k, at.row);
  for (int64_t i = 0; i < rows; ++i)
    elements.push_back(read(k, k.add(firstRow, k.index(i))));
  size = divided(p.depth());
  from = at.pass ? k.mul(at.pass, size) : k.index(0);
  // A step of pairs or quads takes as long as four others do. Parts are whole
  // turns: see countPasses().
  stepsOfTurn = p.pairs || p.bytes ? 1 : p.fetchSteps;
  allTurns = p.depth() / stepsOfTurn;
  turns = divided(allTurns);
  // Elements of a panel that a turn passes.
  elementsOfTurn =
      allTurns == 0 ? 0
                    : p.depth() * typeOf(p.weight).getShape().back() / allTurns;
  // Lines that are written must come from memory like those that are read.
  if (p.rowsInMemory && !p.part && allTurns > 0 && at.whole && !at.origin)
    for (int64_t i = 0; i < rows; ++i)
      k.prefetchForWriting(tile,
                           p.placeOf(k, outputs, k.add(at.row, k.index(i))));
}

Value PanelProduct::PanelSums::divided(int64_t steps) {
  if (!p.passesHere)
    return k.index(steps / p.passes);
  return arith::DivUIOp::create(k.b, k.loc, k.index(steps), p.passesHere);
}

Value PanelProduct::PanelSums::isPass(Value pass) {
  return arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::eq, at.pass,
                               pass);
}

Value PanelProduct::PanelSums::isLast() {
  return isPass(k.sub(p.numPasses(k), k.index(1)));
}

Value PanelProduct::PanelSums::storedPanel(int64_t number, int64_t next) {
  Value own = k.add(panel, k.index(next));
  if (p.panels() % p.joined != 0)
    own = k.min(own, k.index(p.panels() - 1));
  return k.add(k.mul(own, numProducts), k.index(number));
}

//===----------------------------------------------------------------------===//
// What is fetched
//===----------------------------------------------------------------------===//

void PanelProduct::PanelSums::fetchAhead(int64_t number, Fetching &fetching) {
  for (int64_t i = 0;
       p.ahead && allTurns > 0 && (p.ahead->few || half) && i < p.joined; ++i) {
    // The same panel's next part, or the first one of the next panel.
    Value area = k.mul(size, typeOf(p.weight).getShape().back());
    Value next = k.add(p.ahead->firstPanel, k.add(at.i, k.index(i)));
    Value begin = k.index(0);
    if (at.pass) {
      Value last = isLast();
      Value after = k.mul(k.add(at.pass, k.index(1)), area);
      next = arith::SelectOp::create(k.b, k.loc, last, next,
                                     k.add(panel, k.index(i)));
      begin = arith::SelectOp::create(k.b, k.loc, last, begin, after);
    }
    next = k.min(next, k.index(p.panels() - 1));
    Value fetched = k.add(k.mul(next, numProducts), k.index(number));
    // As many lines as one tile alone needs: among several, what is fetched
    // twice costs little. Whole tiles are many, where a line is enough (two
    // of each panel in wide ones, so that four tiles fetch all of f32),
    // unless the CPU fetches no more than what it is asked for: half of them
    // then. If it is known how many they are, a tile fetches its own.
    int64_t bits = typeOf(p.weight).getElementTypeBitWidth();
    int64_t lines = std::max<int64_t>(1, elementsOfTurn * bits / 512);
    if (at.whole && !p.ahead->few) {
      auto known = getConstantIntValue(at.numRows);
      int64_t own = known ? llvm::divideCeil(lines * rows, *known) : 1;
      int64_t least = p.streamBytes > 0 ? llvm::divideCeil(lines, 2) : p.joined;
      lines = std::max(own, least);
    }
    Fetches fetches(k, typeOf(p.weight).getElementType(), begin, area, at.row,
                    rows, at.numRows, turns, lines);
    fetching.push_back([=](KernelBuilder &k, Value turn) {
      fetches.emit(k, turn, [&](Value element) {
        SmallVector<Value, 3> place = {fetched, element};
        if (p.ahead->part)
          place.insert(place.begin(), p.ahead->part);
        k.prefetchForNext(p.weight, place);
      });
    });
  }
}

void PanelProduct::PanelSums::fetchStream(int64_t number, Fetching &fetching) {
  auto type = typeOf(p.weight);
  int64_t weightBits = type.getElementTypeBitWidth();
  int64_t bytesAhead = weightBits <= 16
                           ? std::max(p.streamBytes, p.narrowStreamBytes)
                           : p.streamBytes;
  if (fetching.empty() && bytesAhead > 0 && allTurns > 0) {
    // Few rows pass the panel as fast as memory gives it.
    Value begin = k.add(k.mul(from, type.getShape().back()),
                        k.index(bytesAhead * 8 / weightBits));
    fetching.push_back([=](KernelBuilder &k, Value turn) {
      Value at = k.add(begin, k.mul(turn, elementsOfTurn));
      for (int64_t i = 0; i < elementsOfTurn * weightBits / 8;
           i += kLineBytes) {
        SmallVector<Value, 3> place = {storedPanel(number),
                                       k.add(at, k.index(i * 8 / weightBits))};
        if (p.part)
          place.insert(place.begin(), p.part);
        k.prefetchForNext(p.weight, place);
      }
    });
  }
}

void PanelProduct::PanelSums::fetchRows(int64_t number, Fetching &fetching) {
  auto rowsType = typeOf(p.rowsInMemory);
  Value next = k.add(at.row, k.index(rows));
  Value last = k.sub(at.numRows, k.index(rows));
  if (!at.pass) {
    Value which = k.add(k.mul(at.i, numProducts), k.index(number * p.joined));
    Value width = k.index(rowsType.getDimSize(1));
    Value more = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::ult,
                                       next, at.numRows);
    next = arith::SelectOp::create(k.b, k.loc, more, next, k.index(0));
    next = k.min(next, last);
    Fetches fetches(k, rowsType.getElementType(), k.index(0),
                    k.mul(width, rows), which, p.joined,
                    k.mul(at.count, numProducts), turns, 1);
    // The rows of an only tile are there: fetching them would be in the way
    // of weights from memory.
    Value others = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::ugt,
                                         at.numRows, k.index(rows));
    fetches.distance = arith::SelectOp::create(k.b, k.loc, others,
                                               fetches.distance, k.index(0));
    fetching.push_back([=](KernelBuilder &k, Value turn) {
      fetches.emit(k, turn, [&](Value element) {
        k.prefetch(p.rowsInMemory, {p.inputRow(k, next), element});
      });
    });
    return;
  }
  // A part of each: as far as a turn gets in these rows, others of the next
  // ones in turn, so that all get a line while these pass one.
  next = k.min(next, last);
  int64_t bits = rowsType.getElementTypeBitWidth();
  int64_t ofStep = rowsType.getDimSize(1) / p.depth();
  int64_t ofTurn = stepsOfTurn * ofStep;
  int64_t turnsOfLine = std::max<int64_t>(1, kLineBytes * 8 / bits / ofTurn);
  fetching.push_back([=](KernelBuilder &k, Value turn) {
    Value which =
        arith::RemUIOp::create(k.b, k.loc, turn, k.index(turnsOfLine));
    Value column =
        k.add(k.mul(from, ofStep), k.mul(k.sub(turn, which), ofTurn));
    for (int64_t i = 0; i < rows; i += turnsOfLine) {
      Value row = k.min(k.add(which, k.index(i)), k.index(rows - 1));
      k.prefetchFromMemory(p.rowsInMemory,
                           {p.inputRow(k, k.add(next, row)), column});
    }
  });
}

PanelProduct::PanelSums::Fetching
PanelProduct::PanelSums::fetchingFor(int64_t number) {
  Fetching fetching;
  fetchAhead(number, fetching);
  fetchStream(number, fetching);
  // What is fetched of a stack are weights.
  if (p.rowsInMemory && !p.part && allTurns > 0 && at.whole)
    fetchRows(number, fetching);
  return fetching;
}

//===----------------------------------------------------------------------===//
// The sums
//===----------------------------------------------------------------------===//

/// What sums begin with: nothing, or what an earlier pass left in the tile.
KernelBuilder::Values PanelProduct::PanelSums::startSums() {
  KernelBuilder::Values inits(rows, k.splat(0.0, p.lanes()));
  if (at.pass) {
    Value first = isPass(k.index(0));
    for (int64_t i = 0; i < rows; ++i) {
      Value x = k.load(tile, p.placeOf(k, outputs, k.add(at.row, k.index(i))),
                       p.lanes(), outputs.valid);
      inits[i] = p.residual
                     ? x
                     : arith::SelectOp::create(k.b, k.loc, first, inits[i], x)
                           .getResult();
    }
  }
  return inits;
}

KernelBuilder::Values PanelProduct::PanelSums::sum(int64_t number) {
  KernelBuilder::Values stored;
  for (int64_t i = 0; i < p.joined; ++i)
    stored.push_back(storedPanel(number, i));
  Fetching fetching = fetchingFor(number);
  auto fetch = [&](KernelBuilder &k, Value turn) {
    for (auto &one : fetching)
      one(k, turn);
  };
  KernelBuilder::Values inits = startSums();
  // The pairs of `each` lanes from `lane` on.
  auto pairsAt = [&](KernelBuilder &k, Value step, int64_t lane, int64_t each) {
    if (lane == 0)
      fetch(k, step);
    SmallVector<Value> at = {stored[lane / p.panelLanes()], k.add(from, step),
                             k.index(2 * (lane % p.panelLanes()))};
    if (p.part)
      at.insert(at.begin(), p.part);
    return loadPairs(k, p.weight, at, each);
  };
  if (p.widened)
    return emitWidenedMicrokernel(
        k, rows, p.registerLanes, size, inits,
        [&](KernelBuilder &k, int64_t i, Value step, int64_t which) {
          Value pair = k.mul(k.add(from, step), 2);
          return elements[i](k, k.add(pair, k.index(which)));
        },
        [&](KernelBuilder &k, Value step, int64_t lane) {
          return pairsAt(k, step, lane, p.registerLanes);
        });
  if (p.pairs)
    return emitPairMicrokernel(
        k, rows, size, inits,
        [&](KernelBuilder &k, int64_t i, Value step) {
          return elements[i](k, k.add(from, step));
        },
        [&](KernelBuilder &k, Value step, int64_t lane) {
          return pairsAt(k, step, lane, pairLanes(p.panelLanes()));
        });
  auto steps = [&](KernelBuilder &k, Value first, Value number, ValueRange sums,
                   int64_t written = 1) {
    Value begin = k.add(first, from);
    // With more than two registers of a panel, only a few others are free.
    if (p.joined == 1 && p.panelLanes() > 2 * p.registerLanes)
      return emitSplitMicrokernel(
          k, rows, p.registerLanes, number, sums,
          [&](KernelBuilder &k, int64_t i, Value step) {
            return k.splat(elements[i](k, k.add(begin, step)), p.registerLanes);
          },
          [&](KernelBuilder &k, Value step, int64_t lane) {
            SmallVector<Value> at = {stored[0], k.add(begin, step),
                                     k.index(lane)};
            if (p.part)
              at.insert(at.begin(), p.part);
            return k.load(p.weight, at, p.registerLanes);
          },
          [](KernelBuilder &k, Value sum, Value a, Value b) {
            return k.fma(a, b, sum);
          },
          written);
    return emitMicrokernel(
        k, rows, number, sums,
        [&](KernelBuilder &k, int64_t i, Value step) {
          return elements[i](k, k.add(begin, step));
        },
        [&](KernelBuilder &k, Value step) {
          Value row = k.add(begin, step), all;
          for (Value panel : stored) {
            SmallVector<Value> at = {panel, row, k.index(0)};
            if (p.part)
              at.insert(at.begin(), p.part);
            Value one = k.load(p.weight, at, p.panelLanes());
            all = all ? sideBySide(k, all, one) : one;
          }
          return all;
        },
        written);
  };
  if (fetching.empty())
    return steps(k, k.index(0), size, inits);
  KernelBuilder::Values sums =
      k.forLoop(k.index(0), turns, 1, inits,
                [&](KernelBuilder &k, Value turn, ValueRange carried) {
                  fetch(k, turn);
                  return steps(k, k.mul(turn, p.fetchSteps),
                               k.index(p.fetchSteps), carried, p.fetchSteps);
                });
  int64_t left = p.depth() % p.fetchSteps;
  return left == 0 ? sums
                   : steps(k, k.index(p.depth() - left), k.index(left), sums);
}

Value PanelProduct::PanelSums::toMemory(int64_t number, Value scratch) {
  if (!p.bytes) {
    for (auto [i, sum] : llvm::enumerate(sum(number)))
      scratch = k.store(sum, scratch, {k.index(i), k.index(0)});
    return scratch;
  }
  Fetching fetching = fetchingFor(number);
  return p.sumGroups(
      k, at, storedPanel(number), elements,
      [&](KernelBuilder &k, Value turn) {
        for (auto &one : fetching)
          one(k, turn);
      },
      scratch);
}

} // namespace attune

//===- PanelProduct.cpp - Rows against packed weight panels -----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PanelProduct.h"

#include "../Rows/Norms.h"

#include "attune/Conversion/PairProduct.h"
#include "attune/Conversion/QuadProduct.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;

namespace attune {

/// The lanes of two equal vectors.
static Value sideBySide(KernelBuilder &k, Value a, Value b) {
  SmallVector<int64_t> lanes(2 *
                             cast<VectorType>(a.getType()).getNumElements());
  std::iota(lanes.begin(), lanes.end(), 0);
  return vector::ShuffleOp::create(k.b, k.loc, a, b, lanes);
}

static ShapedType typeOf(Value value) {
  return cast<ShapedType>(value.getType());
}

Value packMatrix(KernelBuilder &k, Value matrix, int64_t lanes, bool gated) {
  auto type = typeOf(matrix);
  bool stack = type.getRank() == 3;
  int64_t rows = type.getDimSize(stack ? 1 : 0);
  int64_t depth = type.getShape().back();
  int64_t half = gated ? rows / 2 : rows;
  int64_t panels = (half + lanes - 1) / lanes * (gated ? 2 : 1);
  SmallVector<int64_t> shape = {panels, depth, lanes};
  SmallVector<Value> dynamic;
  if (stack) {
    shape.insert(shape.begin(), type.getDimSize(0));
    if (type.isDynamicDim(0))
      dynamic.push_back(k.dim(matrix, 0));
  }
  auto packed = RankedTensorType::get(shape, type.getElementType());
  return tensor::GenerateOp::create(
      k.b, k.loc, packed, dynamic,
      [&](OpBuilder &b, Location loc, ValueRange at) {
        KernelBuilder in(b, loc);
        Value part = stack ? at.front() : Value();
        if (stack)
          at = at.drop_front();
        Value panel = at[0], first = in.index(0);
        if (gated) {
          Value two = in.index(2);
          first = in.mul(arith::RemSIOp::create(b, loc, panel, two), half);
          panel = arith::DivSIOp::create(b, loc, panel, two);
        }
        Value row = in.add(in.mul(panel, lanes), at[2]);
        Value inside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                                             row, in.index(half));
        Value source = in.add(first, in.min(row, in.index(half - 1)));
        SmallVector<Value> indices = {source, at[1]};
        if (part)
          indices.insert(indices.begin(), part);
        Value value = tensor::ExtractOp::create(b, loc, matrix, indices);
        Value zero = arith::ConstantOp::create(
            b, loc, b.getZeroAttr(type.getElementType()));
        tensor::YieldOp::create(
            b, loc,
            arith::SelectOp::create(b, loc, inside, value, zero).getResult());
      });
}

int64_t PanelProduct::depth() const {
  return typeOf(weight).getShape().drop_back().back();
}

int64_t PanelProduct::panelLanes() const {
  return typeOf(weight).getShape().back() / (bytes ? 4 : pairs ? 2 : 1);
}

int64_t PanelProduct::panelBytes() const {
  return depth() * panelLanes() * 4 * (gated ? 2 : 1);
}

int64_t PanelProduct::panelsPerStep(const VectorLowering &lowering) const {
  return std::max<int64_t>(
      1, std::min(lowering.panelBytes / panelBytes(), 2 * panels() / threads));
}

void PanelProduct::remarkTiles(Operation *op, StringRef what,
                               const VectorLowering &lowering) const {
  int64_t sums = depth() * (bytes ? 32 / bytes->bits : pairs ? 2 : 1);
  int64_t rows = lowering.rows / unit(), columns = unit() * lanes();
  remark::analysis(op->getLoc(), tilingRemark(op, what))
      << remark::add("tiles of {0} rows by {1} columns over sums of {2}", rows,
                     columns, sums)
      << remark::metric("Rows", rows) << remark::metric("Columns", columns)
      << remark::metric("Depth", sums);
}

Value PanelProduct::rowAt(KernelBuilder &k, Value place) const {
  if (!order)
    return place;
  Value row = k.loadScalar(order, {place});
  return arith::IndexCastOp::create(k.b, k.loc, k.b.getIndexType(), row);
}

std::function<PanelProduct::Element(KernelBuilder &, Value row)>
PanelProduct::reading(Value rows) const {
  auto inOrder = [own = *this](KernelBuilder &k, Value place) {
    return own.rowAt(k, place);
  };
  if (bytes) {
    int64_t lanes = std::min(this->lanes(), bytes->lanes);
    return [=](KernelBuilder &k, Value place) {
      Value row = inOrder(k, place);
      return [=](KernelBuilder &k, Value step) {
        return splatQuad(k, rows, {row, k.mul(step, 4)}, lanes);
      };
    };
  }
  return [lanes = pairLanes(lanes()), pairs = pairs, rows,
          inOrder](KernelBuilder &k, Value place) {
    Value row = inOrder(k, place);
    return [=](KernelBuilder &k, Value step) {
      return pairs ? splatPair(k, rows, {row, k.mul(step, 2)}, lanes)
                   : k.loadScalar(rows, {row, step});
    };
  };
}

Value PanelProduct::storeRowScale(KernelBuilder &k, Value row, Value table,
                                  Value at) const {
  auto load = [&](KernelBuilder &k, Value column, int64_t lanes, Value valid) {
    return k.load(rowsInMemory, {row, column}, lanes, valid);
  };
  int64_t width = typeOf(rowsInMemory).getDimSize(1);
  Value scale = inverseRms(k, load, *rmsEps, width, lanes());
  return k.storeScalar(scale, table, at);
}

Value PanelProduct::scratchOf(KernelBuilder &k, ArrayRef<int64_t> shape) const {
  OpBuilder::InsertionGuard guard(k.b);
  if (stack)
    k.b.setInsertionPointToStart(stack);
  return k.scratch(shape, k.b.getF32Type(), /*buffer=*/stack);
}

PanelProduct::Step PanelProduct::step(KernelBuilder &k, Value step,
                                      int64_t group) const {
  int64_t columns = group * lanes();
  Step result;
  result.firstPanel = k.mul(step, group);
  result.count = k.index(group);
  if (panels() % group != 0)
    result.count =
        k.min(result.count, k.sub(k.index(panels()), result.firstPanel));
  result.firstColumn = k.mul(step, columns);
  result.columns = k.b.getIndexAttr(columns);
  if (width % columns != 0)
    result.columns =
        k.min(k.index(columns), k.sub(k.index(width), result.firstColumn));
  return result;
}

PanelProduct::Step PanelProduct::stepAt(KernelBuilder &k, Value firstPanel,
                                        Value count, int64_t unit) const {
  Step result = {firstPanel, count, {}, {}};
  // A step without panels may stand behind the last one.
  if (panels() % unit != 0) {
    result.firstPanel = k.min(firstPanel, k.index(panels()));
    result.count = k.min(count, k.sub(k.index(panels()), result.firstPanel));
  }
  result.firstColumn = k.mul(result.firstPanel, lanes());
  Value columns = k.mul(result.count, lanes());
  if (width % lanes() != 0) {
    result.firstColumn = k.min(result.firstColumn, k.index(width));
    columns = k.min(columns, k.sub(k.index(width), result.firstColumn));
  }
  result.columns = columns;
  return result;
}

int64_t PanelProduct::countPasses(int64_t limit) const {
  bool alone = !gated && !part && !bytes;
  // A residual is what sums start from.
  bool adds =
      !residual || (activation == Activation::Identity && !scale && !rmsEps);
  int64_t number = 1;
  while (alone && adds && panelBytes() / number > limit &&
         depth() % (2 * number * fetchSteps) == 0)
    number *= 2;
  return number;
}

Value PanelProduct::allRows(KernelBuilder &k, int64_t tileRows, Value numRows,
                            Value firstPanel, Value count, Value column,
                            Value tile) const {
  if (passes == 1)
    return onePass(k, tileRows, numRows, firstPanel, count, column, Value(),
                   tile);
  return k.forLoop(k.index(0), numPasses(k), 1, tile,
                   [&](KernelBuilder &k, Value pass, ValueRange carried) {
                     return KernelBuilder::Values{
                         onePass(k, tileRows, numRows, firstPanel, count,
                                 column, pass, carried[0])};
                   })[0];
}

Value PanelProduct::numPasses(KernelBuilder &k) const {
  return passesHere ? passesHere : k.index(passes);
}

KernelBuilder::Values forRowTiles(KernelBuilder &k, int64_t tileRows, bool wide,
                                  Value numRows, ValueRange inits,
                                  RowTileBody body) {
  int64_t wholeRows = wide ? tileRows / 2 : tileRows;
  if (auto known = getConstantIntValue(numRows); known && *known <= tileRows)
    return body(k, k.index(0), numRows, !wide && *known == tileRows, inits);
  Value rest = arith::RemSIOp::create(k.b, k.loc, numRows, k.index(wholeRows));
  // A tile of few rows takes as long as one of four: too few sums to hide the
  // latency of multiply-adds. The last whole tile shares its rows with it. Nor
  // are one or two tiles whole ones, which are many and fetch little each.
  Value numTails = k.index(1);
  if (wholeTilesAreMany(tileRows)) {
    auto compare = [&](arith::CmpIPredicate how, Value a, int64_t b) -> Value {
      return arith::CmpIOp::create(k.b, k.loc, how, a, k.index(b));
    };
    auto select = [&](Value condition, Value yes, Value no) -> Value {
      return arith::SelectOp::create(k.b, k.loc, condition, yes, no);
    };
    Value few = compare(arith::CmpIPredicate::sle, numRows,
                        PanelProduct::kFewTiles * tileRows);
    Value share = arith::AndIOp::create(
        k.b, k.loc, compare(arith::CmpIPredicate::sge, rest, 1),
        compare(arith::CmpIPredicate::sle, rest,
                wide ? wholeRows - 1 : tileRows - 3));
    rest = select(share, k.add(rest, k.index(wholeRows)), rest);
    rest = select(few, numRows, rest);
    numTails = select(compare(arith::CmpIPredicate::sgt, rest, tileRows),
                      k.index(2), k.index(1));
  }
  Value whole = k.sub(numRows, rest);
  KernelBuilder::Values done = k.forLoop(
      k.index(0), whole, wholeRows, inits,
      [&](KernelBuilder &k, Value row, ValueRange carried) {
        return body(k, row, k.index(wholeRows), /*whole=*/true, carried);
      });
  if (tileRows == 1)
    return done;
  auto tail = [&](KernelBuilder &k, Value number, ValueRange carried) {
    // Two tiles: the larger half first.
    auto half = [&](Value extra) -> Value {
      return arith::DivUIOp::create(k.b, k.loc, k.add(rest, extra), numTails);
    };
    Value before = k.mul(number, half(k.sub(numTails, k.index(1))));
    Value rows = half(k.sub(k.sub(numTails, k.index(1)), number));
    return body(k, k.add(whole, before), rows, /*whole=*/false, carried);
  };
  if (getConstantIntValue(numTails))
    return tail(k, k.index(0), done);
  return k.forLoop(k.index(0), numTails, 1, done, tail);
}

Value PanelProduct::onePass(KernelBuilder &k, int64_t tileRows, Value numRows,
                            Value firstPanel, Value count, Value column,
                            Value pass, Value tile) const {
  return forRowTiles(
      k, tileRows, wide, numRows, tile,
      [&](KernelBuilder &k, Value row, Value rows, bool whole,
          ValueRange carried) {
        return KernelBuilder::Values{
            oneTile(k, rows, whole,
                    {/*rows=*/0, whole, tileRows, row, numRows, firstPanel,
                     /*i=*/Value(), count, column, pass, /*origin=*/Value()},
                    carried[0])};
      })[0];
}

/// `at` but for its number of rows and panel, which are filled in here.
Value PanelProduct::oneTile(KernelBuilder &k, Value rows, bool whole, Place at,
                            Value tile) const {
  PanelProduct ofMany = *this;
  ofMany.joined = wide ? 2 : 1;
  auto block = [&](KernelBuilder &k, int64_t rows, Value tile) {
    const PanelProduct &own = whole ? ofMany : *this;
    return k.forLoop(k.index(0), at.count, own.joined, tile,
                     [&](KernelBuilder &k, Value i, ValueRange carried) {
                       Place here = at;
                       here.rows = rows;
                       here.i = i;
                       here.column = k.add(at.column, k.mul(i, panelLanes()));
                       return KernelBuilder::Values{
                           own.onePanel(k, here, carried[0])};
                     })[0];
  };
  if (auto known = getConstantIntValue(rows))
    return block(k, *known, tile);
  // What is left gets register tiles of just its number of rows.
  int64_t most = at.tileRows > 3 ? at.tileRows : at.tileRows - 1;
  SmallVector<int64_t> cases(most);
  std::iota(cases.begin(), cases.end(), 1);
  // A buffer is the same one in all of them.
  bool buffer = isa<MemRefType>(tile.getType());
  auto choice = scf::IndexSwitchOp::create(
      k.b, k.loc, buffer ? TypeRange() : TypeRange(tile.getType()), rows, cases,
      cases.size());
  auto fill = [&](Region &region, int64_t rows) {
    OpBuilder::InsertionGuard guard(k.b);
    k.b.createBlock(&region);
    KernelBuilder in(k.b, k.loc);
    Value done = rows == 0 ? tile : block(in, rows, tile);
    scf::YieldOp::create(k.b, k.loc, buffer ? ValueRange() : ValueRange(done));
  };
  fill(choice.getDefaultRegion(), 0);
  for (auto [rows, region] : llvm::zip(cases, choice.getCaseRegions()))
    fill(region, rows);
  return buffer ? tile : choice.getResult(0);
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
    // What the last one fetches ends where the elements end.
    begin = k.add(first, k.min(share, k.sub(size, all)));
  }

  /// What turn `turn` fetches: `one` brings the line of an element.
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

PanelProduct::Outputs PanelProduct::outputsOf(KernelBuilder &k, Value panel,
                                              Value column) const {
  Outputs outputs;
  outputs.column = column;
  outputs.first = k.mul(panel, panelLanes());
  if (width % lanes() != 0)
    outputs.valid =
        k.min(k.index(lanes()), k.sub(k.index(width), outputs.first));
  return outputs;
}

SmallVector<Value> PanelProduct::placeOf(KernelBuilder &k,
                                         const Outputs &outputs,
                                         Value row) const {
  return {outputs.origin ? k.sub(row, outputs.origin) : row, outputs.column};
}

void PanelProduct::loadBias(KernelBuilder &k, Outputs &outputs) const {
  if (!bias)
    return;
  auto load = [&](Value first) {
    SmallVector<Value> at = {first};
    if (part)
      at.insert(at.begin(), part);
    return k.load(bias, at, lanes(), outputs.valid);
  };
  outputs.bias =
      load(gated ? k.add(outputs.first, k.index(width)) : outputs.first);
  if (gated)
    outputs.gateBias = load(outputs.first);
}

Value PanelProduct::result(KernelBuilder &k, const Outputs &outputs, Value gate,
                           Value sum, Value row, Value tile) const {
  auto biased = [&](Value value, Value by) -> Value {
    return by ? arith::AddFOp::create(k.b, k.loc, value, by) : value;
  };
  int64_t lanes = this->lanes();
  if (inputScale) {
    Value factor = k.splat(inputScale(k, inputRow(k, row)), lanes);
    sum = arith::MulFOp::create(k.b, k.loc, sum, factor);
    if (gated)
      gate = arith::MulFOp::create(k.b, k.loc, gate, factor);
  }
  Value value = biased(sum, outputs.bias);
  if (gated)
    value =
        emitGated(k, activation, limits, biased(gate, outputs.gateBias), value);
  else
    value = emitActivation(k, activation, value);
  if (scale)
    value = arith::MulFOp::create(k.b, k.loc, value, k.splat(*scale, lanes));
  if (residual)
    value = arith::AddFOp::create(
        k.b, k.loc, value,
        k.load(tile, placeOf(k, outputs, row), lanes, outputs.valid));
  return value;
}

Value PanelProduct::finish(KernelBuilder &k, const Outputs &outputs, Value gate,
                           Value sum, Value row, Value tile) const {
  return k.store(result(k, outputs, gate, sum, row, tile), tile,
                 placeOf(k, outputs, row), outputs.valid);
}

/// Left to itself, the register allocator keeps the gates and loads and stores
/// sums of the other product in its inner loop.
Value PanelProduct::finishFromMemory(KernelBuilder &k, const Place &at,
                                     Outputs outputs, Product product,
                                     Value tile) const {
  int64_t lanes = this->lanes(), numProducts = gated ? 2 : 1;
  Value scratch = scratchOf(k, {at.rows, numProducts * lanes});
  for (int64_t number = 0; number < numProducts; ++number)
    scratch = product(k, number, scratch);
  loadBias(k, outputs);
  return k.forLoop(
      k.index(0), k.index(at.rows), 1, tile,
      [&](KernelBuilder &k, Value i, ValueRange carried) {
        auto load = [&](int64_t number) {
          return k.load(scratch, {i, k.index(number * lanes)}, lanes);
        };
        return KernelBuilder::Values{
            finish(k, outputs, gated ? load(0) : Value(), load(numProducts - 1),
                   k.add(at.row, i), carried[0])};
      })[0];
}

Value PanelProduct::onePanel(KernelBuilder &k, const Place &at,
                             Value tile) const {
  int64_t rows = at.rows, lanes = this->lanes(), numProducts = gated ? 2 : 1;
  Value panel = k.add(at.firstPanel, at.i);
  Outputs outputs = outputsOf(k, panel, at.column);
  outputs.origin = at.origin;
  SmallVector<Element> elements;
  // Half of a tile's rows take long enough to fetch panels.
  bool half = 2 * rows * joined >= at.tileRows;
  bool elsewhere = lastRows && !at.whole;
  const auto &read = elsewhere ? lastRows->input : input;
  Value firstRow =
      elsewhere ? k.add(lastRows->first, at.row) : inputRow(k, at.row);
  for (int64_t i = 0; i < rows; ++i)
    elements.push_back(read(k, k.add(firstRow, k.index(i))));
  // The part of the sum, `size` steps from `from` on.
  auto divided = [&](int64_t steps) -> Value {
    if (!passesHere)
      return k.index(steps / passes);
    return arith::DivUIOp::create(k.b, k.loc, k.index(steps), passesHere);
  };
  Value size = divided(depth());
  Value from = at.pass ? k.mul(at.pass, size) : k.index(0);
  auto isPass = [&](Value pass) -> Value {
    return arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::eq, at.pass,
                                 pass);
  };
  auto isLast = [&] { return isPass(k.sub(numPasses(k), k.index(1))); };
  // A step of pairs or quads takes as long as four others do. Parts are whole
  // turns: see countPasses().
  int64_t stepsOfTurn = pairs || bytes ? 1 : fetchSteps;
  int64_t allTurns = depth() / stepsOfTurn;
  Value turns = divided(allTurns);
  // Elements of a panel that a turn passes.
  int64_t elementsOfTurn =
      allTurns == 0 ? 0 : depth() * typeOf(weight).getShape().back() / allTurns;
  // Lines that are written must come from memory like those that are read.
  if (rowsInMemory && allTurns > 0 && at.whole && !at.origin)
    for (int64_t i = 0; i < rows; ++i)
      k.prefetchForWriting(tile,
                           placeOf(k, outputs, k.add(at.row, k.index(i))));
  auto storedPanel = [&](int64_t number, int64_t next = 0) {
    Value own = k.add(panel, k.index(next));
    if (panels() % joined != 0)
      own = k.min(own, k.index(panels() - 1));
    return k.add(k.mul(own, numProducts), k.index(number));
  };
  // What is fetched during `number` of the products of this panel.
  using Fetching = SmallVector<std::function<void(KernelBuilder &, Value)>, 2>;
  auto fetchingFor = [&](int64_t number) {
    Fetching fetching;
    for (int64_t i = 0;
         ahead && allTurns > 0 && (ahead->few || half) && i < joined; ++i) {
      // The same panel's next part, or the first one of the next panel.
      Value area = k.mul(size, typeOf(weight).getShape().back());
      Value next = k.add(ahead->firstPanel, k.add(at.i, k.index(i)));
      Value begin = k.index(0);
      if (at.pass) {
        Value last = isLast();
        Value after = k.mul(k.add(at.pass, k.index(1)), area);
        next = arith::SelectOp::create(k.b, k.loc, last, next,
                                       k.add(panel, k.index(i)));
        begin = arith::SelectOp::create(k.b, k.loc, last, begin, after);
      }
      next = k.min(next, k.index(panels() - 1));
      Value fetched = k.add(k.mul(next, numProducts), k.index(number));
      // As many lines as one tile alone needs: among several, what is fetched
      // twice costs little. Whole tiles are many, where a line is enough (two
      // of each panel in wide ones, so that four tiles fetch all of f32),
      // unless the CPU fetches no more than what it is asked for: half of them
      // then. If it is known how many they are, a tile fetches its own.
      int64_t bits = typeOf(weight).getElementTypeBitWidth();
      int64_t lines = std::max<int64_t>(1, elementsOfTurn * bits / 512);
      if (at.whole && !ahead->few) {
        auto known = getConstantIntValue(at.numRows);
        int64_t own = known ? llvm::divideCeil(lines * rows, *known) : 1;
        int64_t least = streamBytes > 0 ? llvm::divideCeil(lines, 2) : joined;
        lines = std::max(own, least);
      }
      Fetches fetches(k, typeOf(weight).getElementType(), begin, area, at.row,
                      rows, at.numRows, turns, lines);
      fetching.push_back([=](KernelBuilder &k, Value turn) {
        fetches.emit(k, turn, [&](Value element) {
          SmallVector<Value, 3> place = {fetched, element};
          if (ahead->part)
            place.insert(place.begin(), ahead->part);
          k.prefetchForNext(weight, place);
        });
      });
    }
    auto type = typeOf(weight);
    int64_t weightBits = type.getElementTypeBitWidth();
    int64_t bytesAhead = weightBits == 16
                             ? std::max(streamBytes, narrowStreamBytes)
                             : streamBytes;
    if (fetching.empty() && bytesAhead > 0 && allTurns > 0) {
      // Few rows pass the panel as fast as memory gives it.
      Value begin = k.add(k.mul(from, type.getShape().back()),
                          k.index(bytesAhead * 8 / weightBits));
      fetching.push_back([=](KernelBuilder &k, Value turn) {
        Value at = k.add(begin, k.mul(turn, elementsOfTurn));
        for (int64_t i = 0; i < elementsOfTurn * weightBits / 8;
             i += kLineBytes) {
          SmallVector<Value, 3> place = {
              storedPanel(number), k.add(at, k.index(i * 8 / weightBits))};
          if (part)
            place.insert(place.begin(), part);
          k.prefetchForNext(weight, place);
        }
      });
    }
    if (!rowsInMemory || allTurns == 0 || !at.whole)
      return fetching;
    auto rowsType = typeOf(rowsInMemory);
    Value next = k.add(at.row, k.index(rows));
    Value last = k.sub(at.numRows, k.index(rows));
    if (!at.pass) {
      Value which = k.add(k.mul(at.i, numProducts), k.index(number * joined));
      Value width = k.index(rowsType.getDimSize(1));
      Value more = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::ult,
                                         next, at.numRows);
      next = arith::SelectOp::create(k.b, k.loc, more, next, k.index(0));
      next = k.min(next, last);
      Fetches fetches(k, rowsType.getElementType(), k.index(0),
                      k.mul(width, rows), which, joined,
                      k.mul(at.count, numProducts), turns, 1);
      // The rows of an only tile are there: fetching them would be in the way
      // of weights from memory.
      Value others = arith::CmpIOp::create(
          k.b, k.loc, arith::CmpIPredicate::ugt, at.numRows, k.index(rows));
      fetches.distance = arith::SelectOp::create(k.b, k.loc, others,
                                                 fetches.distance, k.index(0));
      fetching.push_back([=](KernelBuilder &k, Value turn) {
        fetches.emit(k, turn, [&](Value element) {
          k.prefetch(rowsInMemory, {inputRow(k, next), element});
        });
      });
      return fetching;
    }
    // A part of each: as far as a turn gets in these rows, others of the next
    // ones in turn, so that all get a line while these pass one.
    next = k.min(next, last);
    int64_t bits = rowsType.getElementTypeBitWidth();
    int64_t ofStep = rowsType.getDimSize(1) / depth();
    int64_t ofTurn = stepsOfTurn * ofStep;
    int64_t turnsOfLine = std::max<int64_t>(1, kLineBytes * 8 / bits / ofTurn);
    fetching.push_back([=](KernelBuilder &k, Value turn) {
      Value which =
          arith::RemUIOp::create(k.b, k.loc, turn, k.index(turnsOfLine));
      Value column =
          k.add(k.mul(from, ofStep), k.mul(k.sub(turn, which), ofTurn));
      for (int64_t i = 0; i < rows; i += turnsOfLine) {
        Value row = k.min(k.add(which, k.index(i)), k.index(rows - 1));
        k.prefetchFromMemory(rowsInMemory,
                             {inputRow(k, k.add(next, row)), column});
      }
    });
    return fetching;
  };
  if (bytes)
    return finishFromMemory(
        k, at, outputs,
        [&](KernelBuilder &k, int64_t number, Value scratch) {
          Fetching fetching = fetchingFor(number);
          return sumGroups(
              k, at, storedPanel(number), elements,
              [&](KernelBuilder &k, Value turn) {
                for (auto &one : fetching)
                  one(k, turn);
              },
              k.index(number * lanes), scratch);
        },
        tile);
  // `number` of the products of this panel.
  auto product = [&](int64_t number) {
    KernelBuilder::Values stored;
    for (int64_t i = 0; i < joined; ++i)
      stored.push_back(storedPanel(number, i));
    Fetching fetching = fetchingFor(number);
    auto fetch = [&](KernelBuilder &k, Value turn) {
      for (auto &one : fetching)
        one(k, turn);
    };
    KernelBuilder::Values inits(rows, k.splat(0.0, lanes));
    if (at.pass) {
      Value first = isPass(k.index(0));
      for (int64_t i = 0; i < rows; ++i) {
        Value x = k.load(tile, placeOf(k, outputs, k.add(at.row, k.index(i))),
                         lanes, outputs.valid);
        inits[i] = residual
                       ? x
                       : arith::SelectOp::create(k.b, k.loc, first, inits[i], x)
                             .getResult();
      }
    }
    if (pairs)
      return emitPairMicrokernel(
          k, rows, size, inits,
          [&](KernelBuilder &k, int64_t i, Value step) {
            return elements[i](k, k.add(from, step));
          },
          [&](KernelBuilder &k, Value step, int64_t lane) {
            if (lane == 0)
              fetch(k, step);
            Value at = k.index(2 * (lane % panelLanes()));
            return loadPairs(
                k, weight, {stored[lane / panelLanes()], k.add(from, step), at},
                pairLanes(panelLanes()));
          });
    auto steps = [&](KernelBuilder &k, Value first, Value number,
                     ValueRange sums, int64_t written = 1) {
      Value begin = k.add(first, from);
      return emitMicrokernel(
          k, rows, number, sums,
          [&](KernelBuilder &k, int64_t i, Value step) {
            return elements[i](k, k.add(begin, step));
          },
          [&](KernelBuilder &k, Value step) {
            Value row = k.add(begin, step), all;
            for (Value panel : stored) {
              SmallVector<Value> at = {panel, row, k.index(0)};
              if (part)
                at.insert(at.begin(), part);
              Value one = k.load(weight, at, panelLanes());
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
                    return steps(k, k.mul(turn, fetchSteps),
                                 k.index(fetchSteps), carried, fetchSteps);
                  });
    int64_t left = depth() % fetchSteps;
    return left == 0 ? sums
                     : steps(k, k.index(depth() - left), k.index(left), sums);
  };
  // Sums of two products of so many rows are more than there are registers.
  if (gated && 2 * rows * joined > at.tileRows)
    return finishFromMemory(
        k, at, outputs,
        [&](KernelBuilder &k, int64_t number, Value scratch) {
          for (auto [i, sum] : llvm::enumerate(product(number)))
            scratch =
                k.store(sum, scratch, {k.index(i), k.index(number * lanes)});
          return scratch;
        },
        tile);
  KernelBuilder::Values gates, sums;
  if (gated)
    gates = product(0);
  sums = product(numProducts - 1);
  auto rowAt = [&](int64_t i) { return k.add(at.row, k.index(i)); };
  if (!at.pass) {
    loadBias(k, outputs);
    for (int64_t i = 0; i < rows; ++i)
      tile = finish(k, outputs, gated ? gates[i] : Value(), sums[i], rowAt(i),
                    tile);
    return tile;
  }
  auto yield = [&](auto &&compute) {
    return [&](OpBuilder &builder, Location loc) {
      KernelBuilder inner(builder, loc);
      scf::YieldOp::create(builder, loc, compute(inner));
    };
  };
  auto finished = [&](KernelBuilder &k) {
    PanelProduct last = *this;
    last.residual = false; // the sums have it
    last.loadBias(k, outputs);
    KernelBuilder::Values values;
    for (auto [i, sum] : llvm::enumerate(sums))
      values.push_back(last.result(k, outputs, Value(), sum, rowAt(i), tile));
    return values;
  };
  auto unfinished = [&](KernelBuilder &) { return sums; };
  auto results = scf::IfOp::create(k.b, k.loc, isLast(), yield(finished),
                                   yield(unfinished));
  for (int64_t i = 0; i < rows; ++i)
    tile = k.store(results.getResult(i), tile, placeOf(k, outputs, rowAt(i)),
                   outputs.valid);
  return tile;
}

} // namespace attune

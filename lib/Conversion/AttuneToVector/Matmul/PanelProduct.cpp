//===- PanelProduct.cpp - Rows against packed weight panels -----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PanelSums.h"

#include "../Rows/Norms.h"

#include "attune/Conversion/PairProduct.h"
#include "attune/Conversion/QuadProduct.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;

namespace attune {

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
  if (bytes && bytes->hasByteRows()) {
    int64_t lanes = std::min(this->lanes(), bytes->lanes);
    return [=](KernelBuilder &k, Value place) {
      Value row = inOrder(k, place);
      return [=](KernelBuilder &k, Value step) {
        return splatQuad(k, rows, {row, k.mul(step, 4)}, lanes);
      };
    };
  }
  return [lanes = pairLanes(lanes()), pairs = pairs && !widened, rows,
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

Value PanelProduct::scratchOf(KernelBuilder &k, ArrayRef<int64_t> shape,
                              Type element) const {
  OpBuilder::InsertionGuard guard(k.b);
  if (stack)
    k.b.setInsertionPointToStart(stack);
  return k.scratch(shape, element ? element : k.b.getF32Type(),
                   /*buffer=*/stack);
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
                            Value firstPanel, Value count, Value pass,
                            Value tile) const {
  return forRowTiles(
      k, tileRows, wide, numRows, tile,
      [&](KernelBuilder &k, Value row, Value rows, bool whole,
          ValueRange carried) {
        return KernelBuilder::Values{
            oneTile(k, rows, whole,
                    {/*rows=*/0, whole, tileRows, row, numRows, firstPanel,
                     /*i=*/Value(), count, /*column=*/k.index(0), pass,
                     /*origin=*/Value()},
                    carried[0])};
      })[0];
}

/// What `body` makes of `values` with the number of rows that there are, of
/// `least` to `most`; for any other number, the values.
static KernelBuilder::Values
choose(KernelBuilder &k, Value rows, int64_t least, int64_t most,
       ValueRange values,
       function_ref<KernelBuilder::Values(KernelBuilder &, int64_t, ValueRange)>
           body) {
  SmallVector<int64_t> cases(most - least + 1);
  std::iota(cases.begin(), cases.end(), least);
  // A buffer is the same one in all of them.
  bool buffers = isa<MemRefType>(values.front().getType());
  auto choice = scf::IndexSwitchOp::create(
      k.b, k.loc, buffers ? TypeRange() : TypeRange(values), rows, cases,
      cases.size());
  auto fill = [&](Region &region, std::optional<int64_t> number) {
    OpBuilder::InsertionGuard guard(k.b);
    k.b.createBlock(&region);
    KernelBuilder in(k.b, k.loc);
    KernelBuilder::Values made(values);
    if (number)
      made = body(in, *number, values);
    scf::YieldOp::create(k.b, k.loc, buffers ? ValueRange() : ValueRange(made));
  };
  fill(choice.getDefaultRegion(), std::nullopt);
  for (auto [number, region] : llvm::zip(cases, choice.getCaseRegions()))
    fill(region, number);
  return buffers ? KernelBuilder::Values(values)
                 : KernelBuilder::Values(choice.getResults());
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
  // The last rows get register tiles of just their number.
  int64_t most = at.tileRows > 3 ? at.tileRows : at.tileRows - 1;
  // Between passes, sums lie in the tile.
  if (at.pass || most == 1)
    return choose(k, rows, 1, most, tile,
                  [&](KernelBuilder &k, int64_t rows, ValueRange tile) {
                    return KernelBuilder::Values{block(k, rows, tile[0])};
                  })[0];
  // A single row is most of what is decoded, and has no sums to spare for
  // memory.
  bool buffer = isa<MemRefType>(tile.getType());
  Value one = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::eq, rows,
                                    k.index(1));
  auto yield = [&](auto &&make) {
    return [&](OpBuilder &builder, Location loc) {
      KernelBuilder in(builder, loc);
      Value made = make(in);
      scf::YieldOp::create(builder, loc,
                           buffer ? ValueRange() : ValueRange(made));
    };
  };
  auto choice = scf::IfOp::create(k.b, k.loc, one, yield([&](KernelBuilder &k) {
                                    return block(k, 1, tile);
                                  }),
                                  yield([&](KernelBuilder &k) {
                                    return fewRows(k, rows, most, at, tile);
                                  }));
  return buffer ? tile : choice.getResult(0);
}

Value PanelProduct::fewRows(KernelBuilder &k, Value rows, int64_t most,
                            const Place &at, Value tile) const {
  return k.forLoop(
      k.index(0), at.count, 1, tile,
      [&](KernelBuilder &k, Value i, ValueRange carried) {
        Place here = at;
        here.i = i;
        here.column = k.add(at.column, k.mul(i, panelLanes()));
        Outputs outputs = outputsOf(k, k.add(at.firstPanel, i), here.column);
        outputs.origin = at.origin;
        KernelBuilder::Values scratch =
            choose(k, rows, 2, most, scratchForSums(k, most),
                   [&](KernelBuilder &k, int64_t rows, ValueRange scratch) {
                     Place place = here;
                     place.rows = rows;
                     PanelSums panel(*this, k, place, tile);
                     KernelBuilder::Values sums;
                     for (auto [number, own] : llvm::enumerate(scratch))
                       sums.push_back(panel.toMemory(number, own));
                     return sums;
                   });
        return KernelBuilder::Values{
            finishFromMemory(k, here, rows, outputs, scratch, carried[0])};
      })[0];
}

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

SmallVector<Value, 2> PanelProduct::scratchForSums(KernelBuilder &k,
                                                   int64_t rows) const {
  SmallVector<Value, 2> scratch;
  for (int64_t number = 0; number < (gated ? 2 : 1); ++number)
    scratch.push_back(scratchOf(k, {rows, lanes()}));
  return scratch;
}

/// Left to itself, the register allocator keeps the gates and loads and stores
/// sums of the other product in its inner loop.
Value PanelProduct::finishFromMemory(KernelBuilder &k, const Place &at,
                                     Value rows, Outputs outputs,
                                     ArrayRef<Value> scratch,
                                     Value tile) const {
  loadBias(k, outputs);
  return k.forLoop(k.index(0), rows, 1, tile,
                   [&](KernelBuilder &k, Value i, ValueRange carried) {
                     auto load = [&](Value sums) {
                       return k.load(sums, {i, k.index(0)}, lanes());
                     };
                     return KernelBuilder::Values{finish(
                         k, outputs, gated ? load(scratch.front()) : Value(),
                         load(scratch.back()), k.add(at.row, i), carried[0])};
                   })[0];
}

Value PanelProduct::onePanel(KernelBuilder &k, const Place &at,
                             Value tile) const {
  int64_t rows = at.rows, numProducts = gated ? 2 : 1;
  PanelSums panel(*this, k, at, tile);
  Outputs outputs = panel.getOutputs();
  // Two products of these rows have more sums than there are registers.
  if (bytes || (gated && 2 * rows * joined > at.tileRows)) {
    SmallVector<Value, 2> scratch = scratchForSums(k, rows);
    for (auto [number, sums] : llvm::enumerate(scratch))
      sums = panel.toMemory(number, sums);
    return finishFromMemory(k, at, k.index(rows), outputs, scratch, tile);
  }
  KernelBuilder::Values gates, sums;
  if (gated)
    gates = panel.sum(0);
  sums = panel.sum(numProducts - 1);
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
  auto results = scf::IfOp::create(k.b, k.loc, panel.isLast(), yield(finished),
                                   yield(unfinished));
  for (int64_t i = 0; i < rows; ++i)
    tile = k.store(results.getResult(i), tile, placeOf(k, outputs, rowAt(i)),
                   outputs.valid);
  return tile;
}

} // namespace attune

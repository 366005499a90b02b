//===- TileProduct.cpp - Rows against panels in a matrix unit ---*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// A matrix unit multiplies faster than the second-level cache gives it rows and
// panels, and far faster than what lies behind. So the sum over K is made in
// parts, as deep as a block of rows and a panel's part have room for in the
// first-level cache, and all rows pass all panels with one part before the next
// one begins. Sums wait in a scratch of the second-level cache meanwhile, where
// each block's lie one after the other.
//
// A block of rows against a panel's part is an attune.linear_into on buffers,
// which becomes loops on tiles (AttuneToAMX). What becomes of the sums is
// vector code on the scratch, the same as after any other product.

#include "PanelProduct.h"
#include "TileOperands.h"

#include "attune/Conversion/MatrixTiles.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace attune {

/// Rows, of a block or of two halves of one.
static constexpr int64_t kBlockRows = kMatrixBlock * kMatrixRows;

Value viewOf(KernelBuilder &k, Value buffer, ValueRange begins,
             ArrayRef<int64_t> sizes) {
  SmallVector<OpFoldResult> offsets = getAsOpFoldResult(begins), counts;
  counts.assign(begins.size() - sizes.size(), k.b.getIndexAttr(1));
  for (int64_t size : sizes)
    counts.push_back(k.b.getIndexAttr(size));
  SmallVector<OpFoldResult> ones(counts.size(), k.b.getIndexAttr(1));
  auto type = memref::SubViewOp::inferRankReducedResultType(
      sizes, cast<MemRefType>(buffer.getType()), offsets, counts, ones);
  return memref::SubViewOp::create(k.b, k.loc, type, buffer, offsets, counts,
                                   ones);
}

void multiplyInTiles(KernelBuilder &k, Value rows, Value panel, Value sums,
                     bool adds) {
  LinearIntoOp::create(k.b, k.loc, /*result=*/Type(), rows, panel,
                       /*bias=*/Value(), sums, Activation::Identity,
                       /*gated=*/false, adds, /*scale=*/FloatAttr());
}

/// The rows of a tile op against its panels.
class PanelProduct::MatrixTiles {
public:
  MatrixTiles(const PanelProduct &product, KernelBuilder &k, Value numRows,
              Value firstPanel, Value count, Value tile)
      : p(product), numProducts(p.gated ? 2 : 1),
        panelsAtOnce(kPanels / numProducts),
        parts(partsOf(inputsOf(p), p.bytes ? 2 * p.matrixDepth : p.matrixDepth,
                      p.bytes ? p.bytes->group : kMatrixDepth)),
        numRows(numRows), firstPanel(firstPanel), count(count), tile(tile) {
    int64_t rowBytes = p.lanes() * 4;
    int64_t blocks =
        p.matrixBytes / (rowBytes * panelsAtOnce * numProducts * kBlockRows);
    rowsApart = std::max<int64_t>(1, blocks) * kBlockRows;
    if (parts.number == 1) {
      panelsAtOnce = 1;
      rowsApart = kBlockRows;
    }
    int64_t scratchRows = numProducts * panelsAtOnce * rowsApart;
    sums = p.scratchOf(k, {scratchRows, p.lanes()});
    if (!p.bytes)
      return;
    Type number = k.b.getI32Type();
    groupSums = p.scratchOf(k, {2 * kMatrixRows, kMatrixColumns}, number);
    if (p.bytes->zeros)
      number = k.b.getF32Type();
    zeroSums =
        p.scratchOf(k, {kBlockRows, inputsOf(p) / p.bytes->group}, number);
    if (p.bytes->bits == 4)
      unpacked =
          p.scratchOf(k,
                      {panelsAtOnce * numProducts,
                       std::max(parts.depth, parts.last) / 4, 4 * p.lanes()},
                      k.b.getI8Type());
  }

  void emit(KernelBuilder &k) const {
    Value one = k.index(1), block = k.index(kBlockRows);
    Value group = k.index(panelsAtOnce), rows = k.index(rowsApart);
    Value panels = group, whole;
    // Panels of 4 bits become bytes part by part.
    if (parts.number > 1 && !unpacked) {
      whole = sumsAreWhole(k);
      auto unlessWhole = [&](Value ofWhole, Value inParts) -> Value {
        return arith::SelectOp::create(k.b, k.loc, whole, ofWhole, inParts);
      };
      panels = unlessWhole(one, panels);
      rows = unlessWhole(block, rows);
      if (parts.number > kShallow)
        group = unlessWhole(one, group);
    }
    inSteps(k, k.index(0), count, group,
            [&](KernelBuilder &k, Value begin, Value end) {
              inSteps(k, k.index(0), numRows, rows,
                      [&](KernelBuilder &k, Value row, Value last) {
                        inSteps(k, begin, end, panels,
                                [&](KernelBuilder &k, Value from, Value to) {
                                  oneArea(k, {from, k.sub(to, from), row, last},
                                          whole);
                                });
                      });
            });
  }

  /// Rows too few for a tile. A tile's rows would be read from behind them, so
  /// they are copied to where there is room for that. What comes of the rest is
  /// not used. Weights come from memory, each panel in one piece.
  void emitFew(KernelBuilder &k, Value rows) const {
    int64_t inputs = inputsOf(p);
    Value room = p.scratchOf(k, {kMatrixRows, inputs}, k.b.getBF16Type());
    auto vector = VectorType::get({kMatrixDepth}, k.b.getBF16Type());
    forEach(k, k.index(0), rows, 1, [&](KernelBuilder &k, Value row) {
      forEach(k, k.index(0), k.index(inputs), kMatrixDepth,
              [&](KernelBuilder &k, Value from) {
                if (inputs % kMatrixDepth != 0)
                  from = k.min(from, k.index(inputs - kMatrixDepth));
                Value own = vector::LoadOp::create(
                    k.b, k.loc, vector, p.rowsInMemory,
                    ValueRange{p.inputRow(k, row), from});
                vector::StoreOp::create(k.b, k.loc, own, room,
                                        ValueRange{row, from});
              });
    });
    // None if there are no such rows.
    Value none = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::eq,
                                       rows, k.index(0));
    Value panels = arith::SelectOp::create(k.b, k.loc, none, k.index(0), count);
    forEach(k, k.index(0), panels, 1, [&](KernelBuilder &k, Value i) {
      Value panel = k.add(firstPanel, i);
      for (int64_t number = 0; number < numProducts; ++number) {
        Value stored = k.add(k.mul(panel, numProducts), k.index(number));
        Value block =
            viewOf(k, sums, {k.index(number * kMatrixRows), k.index(0)},
                   {kMatrixRows, p.lanes()});
        multiplyInTiles(k, room, pairsOf(k, stored, k.index(0), inputs), block,
                        /*adds=*/false);
      }
      Outputs outputs = p.outputsOf(k, panel, k.mul(i, p.lanes()));
      p.loadBias(k, outputs);
      forEach(k, k.index(0), rows, 1, [&](KernelBuilder &k, Value row) {
        auto load = [&](int64_t number) {
          Value place = k.add(row, k.index(number * kMatrixRows));
          return k.load(sums, {place, k.index(0)}, p.lanes());
        };
        p.finish(k, outputs, p.gated ? load(0) : Value(), load(numProducts - 1),
                 row, tile);
      });
    });
  }

  /// Panels whose sums wait at a time, those of gates among them: enough work
  /// for rows that come from the third-level cache, and few enough to leave
  /// room for the sums of many rows.
  static constexpr int64_t kPanels = 8;
  /// Sums of more parts read much for each result, others write much.
  static constexpr int64_t kShallow = 4;
  /// Results of a product that go to memory.
  static constexpr int64_t kFarBytes = 32 << 20;

private:
  /// The parts of a sum over K: all but the last one have `depth` inputs.
  struct Parts {
    int64_t number, depth, last;
  };
  /// Parts of whole `unit`s.
  static Parts partsOf(int64_t inputs, int64_t depth, int64_t unit) {
    int64_t number = std::max<int64_t>(1, inputs / depth);
    int64_t each = llvm::alignTo(llvm::divideCeil(inputs, number), unit);
    number = llvm::divideCeil(inputs, each);
    int64_t last = inputs - (number - 1) * each;
    // A tile's inputs are the least that a product has.
    if (last < kMatrixDepth && number > 1)
      return {number - 1, each, last + each};
    return {number, each, last};
  }

  static int64_t inputsOf(const PanelProduct &p) {
    return (p.bytes ? p.bytes->columnsOfQuad() : 2) * p.depth();
  }

  /// Panels from the tile op's `panel`th on, and its rows [row, end).
  struct Area {
    Value panel, panels, row, end;
  };
  /// A part of the sum, whose first input is `from`.
  struct Part {
    Value from;
    int64_t depth;
    bool first;
  };
  static void forEach(KernelBuilder &k, Value begin, Value end, int64_t step,
                      function_ref<void(KernelBuilder &, Value)> body) {
    k.forLoop(begin, end, step, {},
              [&](KernelBuilder &k, Value iv, ValueRange) {
                body(k, iv);
                return KernelBuilder::Values{};
              });
  }

  /// Whether a block has a whole sum before the next one begins. Reading takes
  /// most of the time of few rows and deep sums, and memory gives more in one
  /// piece: a block passes a panel from end to end then. Writing takes most of
  /// it where many results go to memory, which is better done evenly than in
  /// the last part.
  Value sumsAreWhole(KernelBuilder &k) const {
    bool deep = parts.number > kShallow;
    int64_t rowBytes = deep ? inputsOf(p) * (p.bytes ? 1 : 2) : p.width * 4;
    return arith::CmpIOp::create(
        k.b, k.loc,
        deep ? arith::CmpIPredicate::ule : arith::CmpIPredicate::ugt, numRows,
        k.index((deep ? 2 * p.matrixBytes : kFarBytes) / rowBytes));
  }

  /// [begin, end) in steps of `step`, the last of which may be shorter.
  static void
  inSteps(KernelBuilder &k, Value begin, Value end, Value step,
          function_ref<void(KernelBuilder &, Value begin, Value end)> body) {
    Value number =
        arith::CeilDivUIOp::create(k.b, k.loc, k.sub(end, begin), step);
    forEach(k, k.index(0), number, 1, [&](KernelBuilder &k, Value i) {
      Value own = k.add(begin, k.mul(i, step));
      body(k, own, k.min(k.add(own, step), end));
    });
  }

  using Branch = function_ref<void(KernelBuilder &)>;
  static void ifElse(KernelBuilder &k, Value condition, Branch yes, Branch no) {
    auto branch = [](Branch body) {
      return [body](OpBuilder &builder, Location loc) {
        KernelBuilder inner(builder, loc);
        body(inner);
        scf::YieldOp::create(builder, loc);
      };
    };
    scf::IfOp::create(k.b, k.loc, condition, branch(yes), branch(no));
  }

  /// `condition` may be null, which is false.
  static void ifGiven(KernelBuilder &k, Value condition, Branch yes,
                      Branch no) {
    if (condition)
      ifElse(k, condition, yes, no);
    else
      no(k);
  }

  /// Results are made of a block's sums while the next block is multiplied.
  void oneArea(KernelBuilder &k, const Area &area, Value whole) const {
    int64_t last = parts.number - 1;
    if (last > 0)
      ifGiven(
          k, whole, [](KernelBuilder &) {},
          [&](KernelBuilder &k) { partsBefore(k, area, last); });
    Part rest = {k.index(last * parts.depth), parts.last, last == 0};
    unpack(k, area, rest);
    inBlocks(k, area, [&](KernelBuilder &k, Value first, Value end) {
      auto multiplyBy = [&](const Part &part) {
        return [&, part](KernelBuilder &k) {
          oneBlock(k, area, part, first, end);
        };
      };
      Part all = {k.index(0), inputsOf(p), /*first=*/true};
      ifGiven(k, whole, multiplyBy(all), multiplyBy(rest));
      finish(k, area, first, end);
    });
  }

  void partsBefore(KernelBuilder &k, const Area &area, int64_t last) const {
    auto all = [&](KernelBuilder &k, const Part &part) {
      unpack(k, area, part);
      inBlocks(k, area, [&](KernelBuilder &k, Value first, Value end) {
        oneBlock(k, area, part, first, end);
      });
    };
    all(k, {k.index(0), parts.depth, /*first=*/true});
    forEach(k, k.index(1), k.index(last), 1,
            [&](KernelBuilder &k, Value number) {
              all(k, {k.mul(number, parts.depth), parts.depth, false});
            });
  }

  static void
  inBlocks(KernelBuilder &k, const Area &area,
           function_ref<void(KernelBuilder &, Value first, Value end)> body) {
    forEach(
        k, area.row, area.end, kBlockRows, [&](KernelBuilder &k, Value first) {
          body(k, first, k.min(k.add(first, k.index(kBlockRows)), area.end));
        });
  }

  /// Rows [first, end), which are a block or fewer. If they are fewer, each
  /// half is made alone.
  void oneBlock(KernelBuilder &k, const Area &area, const Part &part,
                Value first, Value end) const {
    Value full = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::eq,
                                       k.sub(end, first), k.index(kBlockRows));
    ifElse(
        k, full,
        [&](KernelBuilder &k) {
          rowsAgainstPanels(k, area, part, kBlockRows, first, first);
        },
        [&](KernelBuilder &k) {
          forEach(k, first, end, kMatrixRows, [&](KernelBuilder &k, Value own) {
            rowsAgainstPanels(k, area, part, kMatrixRows, own,
                              beginOfHalf(k, own));
          });
        });
  }

  /// The first row of a half whose own ones begin with `own`: the last half
  /// ends with the last row. Rows that it shares with what is before it are
  /// multiplied twice and used once.
  Value beginOfHalf(KernelBuilder &k, Value own) const {
    return k.min(own, k.sub(numRows, k.index(kMatrixRows)));
  }

  /// Where the sums of a product of the area's panel `i` begin.
  Value placeOf(KernelBuilder &k, Value i, int64_t number) const {
    return k.add(k.mul(i, numProducts * rowsApart),
                 k.index(number * rowsApart));
  }

  /// `rows` rows from `row` on, of which those from `first` on are their own.
  void rowsAgainstPanels(KernelBuilder &k, const Area &area, const Part &part,
                         int64_t rows, Value first, Value row) const {
    Value place = k.sub(first, area.row);
    if (p.bytes)
      findZeroSums(k, part, rows, row);
    forEach(k, k.index(0), area.panels, 1, [&](KernelBuilder &k, Value i) {
      Value panel = k.add(k.add(firstPanel, area.panel), i);
      for (int64_t number = 0; number < numProducts; ++number) {
        Value at = k.add(placeOf(k, i, number), place);
        Value stored = k.add(k.mul(panel, numProducts), k.index(number));
        Value block = viewOf(k, sums, {at, k.index(0)}, {rows, p.lanes()});
        Value slot = k.add(k.mul(i, numProducts), k.index(number));
        if (p.bytes)
          addGroups(k, part, rows, row, stored, slot, block);
        else
          multiplyInTiles(k,
                          viewOf(k, p.rowsInMemory,
                                 {p.inputRow(k, row), part.from},
                                 {rows, part.depth}),
                          pairsOf(k, stored, part.from, part.depth), block,
                          /*adds=*/!part.first);
      }
    });
  }

  /// The inputs [from, from + depth) of a stored panel of pairs.
  Value pairsOf(KernelBuilder &k, Value stored, Value from,
                int64_t depth) const {
    Value step = arith::DivUIOp::create(k.b, k.loc, from, k.index(2));
    if (auto known = getConstantIntValue(from))
      step = k.index(*known / 2);
    SmallVector<Value> at = {stored, step, k.index(0)};
    if (p.part)
      at.insert(at.begin(), p.part);
    return viewOf(k, p.weight, at, {1, depth / 2, 2 * p.panelLanes()});
  }

  /// Rows of bytes against a panel, group by group: sums of a group come from a
  /// register of the matrix unit by way of memory, and its 16 rows of 16 lanes
  /// have what they are so far in vectors.
  void addGroups(KernelBuilder &k, const Part &part, int64_t rows, Value row,
                 Value stored, Value slot, Value block) const {
    forEach(k, k.index(0), k.index(p.lanes()), kMatrixColumns,
            [&](KernelBuilder &k, Value lane) {
              forEach(k, k.index(0), k.index(rows), kMatrixRows,
                      [&](KernelBuilder &k, Value half) {
                        addGroups(k, part, {row, half, lane, stored, slot},
                                  block);
                      });
            });
  }

  /// 16 rows by 16 lanes of a block: its first row is `row`, and panel `stored`
  /// is in `slot` of the unpacked ones.
  struct Register {
    Value row, half, lane, stored, slot;
  };
  void addGroups(KernelBuilder &k, const Part &part, const Register &of,
                 Value block) const {
    Value own =
        viewOf(k, block, {of.half, of.lane}, {kMatrixRows, kMatrixColumns});
    auto place = [&](KernelBuilder &k, int64_t i) -> SmallVector<Value, 2> {
      return {k.index(i), k.index(0)};
    };
    KernelBuilder::Values sums;
    for (int64_t i = 0; i < kMatrixRows; ++i)
      sums.push_back(part.first ? k.splat(0.0, kMatrixColumns)
                                : k.load(own, place(k, i), kMatrixColumns));
    // The matrix unit is one group ahead of the vectors.
    int64_t groups = part.depth / p.bytes->group;
    multiplyGroup(k, part, of, k.index(0));
    sums = k.forLoop(k.index(0), k.index(groups - 1), 1, sums,
                     [&](KernelBuilder &k, Value number, ValueRange sums) {
                       multiplyGroup(k, part, of, k.add(number, k.index(1)));
                       return scaleGroup(k, part, of, number, sums);
                     });
    sums = scaleGroup(k, part, of, k.index(groups - 1), sums);
    for (int64_t i = 0; i < kMatrixRows; ++i)
      k.store(sums[i], own, place(k, i));
  }

  /// Where the sums of a part's group wait.
  Value sumsOfGroup(KernelBuilder &k, Value number) const {
    Value which = arith::RemUIOp::create(k.b, k.loc, number, k.index(2));
    return viewOf(k, groupSums, {k.mul(which, kMatrixRows), k.index(0)},
                  {kMatrixRows, kMatrixColumns});
  }

  void multiplyGroup(KernelBuilder &k, const Part &part, const Register &of,
                     Value number) const {
    int64_t group = p.bytes->group;
    Value at = k.mul(number, group), from = k.add(part.from, at);
    Value input =
        viewOf(k, p.rowsInMemory, {p.inputRow(k, k.add(of.row, of.half)), from},
               {kMatrixRows, group});
    Value step =
        arith::DivUIOp::create(k.b, k.loc, unpacked ? at : from, k.index(4));
    Value panel =
        viewOf(k, unpacked ? unpacked : p.weight,
               {unpacked ? of.slot : of.stored, step, k.mul(of.lane, 4)},
               {1, group / 4, 4 * kMatrixColumns});
    multiplyInTiles(k, input, panel, sumsOfGroup(k, number), /*adds=*/false);
  }

  /// `sums` and a group times its scales, in the order of vectors' arithmetic.
  KernelBuilder::Values scaleGroup(KernelBuilder &k, const Part &part,
                                   const Register &of, Value number,
                                   ValueRange sums) const {
    int64_t lanes = kMatrixColumns, group = p.bytes->group;
    int64_t groups = inputsOf(p) / group;
    // Places of rows are constants apart: one address serves them all.
    auto flat = [&](Value rows) -> Value {
      SmallVector<ReassociationIndices> all = {{0, 1}};
      return memref::CollapseShapeOp::create(k.b, k.loc, rows, all);
    };
    Value tooMuch = flat(zeroSums), inputScales = flat(p.bytes->inputScales);
    Value which = k.add(
        arith::DivUIOp::create(k.b, k.loc, part.from, k.index(group)), number);
    Value here = k.add(k.mul(of.half, groups), which);
    Value row = p.inputRow(k, k.add(of.row, of.half));
    Value from = k.add(k.mul(row, groups), which);
    Factors factors = p.loadFactors(k, of.stored, which, of.lane, lanes);
    auto words = VectorType::get({lanes}, k.b.getI32Type());
    Value ofGroup = sumsOfGroup(k, number);
    KernelBuilder::Values next;
    for (int64_t i = 0; i < kMatrixRows; ++i) {
      Value less = k.loadScalar(tooMuch, {k.add(here, k.index(i * groups))});
      Value sum = vector::LoadOp::create(k.b, k.loc, words, ofGroup,
                                         ValueRange{k.index(i), k.index(0)});
      if (!p.bytes->zeros)
        sum = arith::AddIOp::create(
            k.b, k.loc, sum,
            vector::BroadcastOp::create(k.b, k.loc, words, less));
      sum = arith::SIToFPOp::create(k.b, k.loc, k.vectorType(lanes), sum);
      if (factors.zero)
        sum = k.fma(k.splat(less, lanes), factors.zero, sum);
      Value at = k.add(from, k.index(i * groups));
      Value by = k.splat(k.loadScalar(inputScales, {at}), lanes);
      if (factors.least)
        sum = k.fma(sum, factors.scale,
                    arith::MulFOp::create(k.b, k.loc, k.splat(less, lanes),
                                          factors.least));
      else
        by = arith::MulFOp::create(k.b, k.loc, factors.scale, by);
      next.push_back(k.fma(sum, by, sums[i]));
    }
    return next;
  }

  /// Makes bytes of the part of the area's panels, if these have 4 bits: all of
  /// its rows meet them.
  void unpack(KernelBuilder &k, const Area &area, const Part &part) const {
    if (!unpacked)
      return;
    int64_t lanes = std::min(p.lanes(), p.bytes->lanes);
    Value before = arith::DivUIOp::create(k.b, k.loc, part.from, k.index(8));
    Value panels = k.mul(area.panels, numProducts);
    Value first = k.mul(k.add(firstPanel, area.panel), numProducts);
    forEach(k, k.index(0), panels, 1, [&](KernelBuilder &k, Value slot) {
      Value panel = k.add(first, slot);
      forEach(
          k, k.index(0), k.index(part.depth / 8), 1,
          [&](KernelBuilder &k, Value step) {
            Value low = k.mul(step, 2), high = k.add(low, k.index(1));
            for (int64_t lane = 0; lane < p.lanes(); lane += lanes) {
              auto [one, next] =
                  p.loadTwoQuads(k, panel, k.add(before, step), lane, lanes);
              for (auto [quads, place] : {std::pair(one, low), {next, high}})
                vector::StoreOp::create(
                    k.b, k.loc, quads, unpacked,
                    ValueRange{slot, place, k.index(4 * lane)});
            }
          });
    });
  }

  /// What stored weights, which are no less than 0, add too much to sums of the
  /// part's groups: minus that goes to the table, for all panels. With zero
  /// points of their own it is that much for each of it.
  void findZeroSums(KernelBuilder &k, const Part &part, int64_t rows,
                    Value row) const {
    int64_t group = p.bytes->group;
    Value factor = arith::ConstantOp::create(
        k.b, k.loc, k.b.getI32IntegerAttr(int32_t(-p.bytes->zero())));
    Value first = arith::DivUIOp::create(k.b, k.loc, part.from, k.index(group));
    forEach(k, k.index(0), k.index(rows), 1, [&](KernelBuilder &k, Value i) {
      Value own = p.inputRow(k, k.add(row, i));
      forEach(
          k, k.index(0), k.index(part.depth / group), 1,
          [&](KernelBuilder &k, Value number) {
            Value which = k.add(first, number);
            Value sum = k.loadScalar(p.bytes->inputSums, {own, which});
            if (p.bytes->zeros)
              sum = arith::NegFOp::create(
                  k.b, k.loc,
                  arith::SIToFPOp::create(k.b, k.loc, k.b.getF32Type(), sum));
            else
              sum = arith::MulIOp::create(k.b, k.loc, sum, factor);
            k.storeScalar(sum, zeroSums, {i, which});
          });
    });
  }

  /// Makes results of the sums of rows [first, end), which are a block or
  /// fewer.
  void finish(KernelBuilder &k, const Area &area, Value first,
              Value end) const {
    // In the last half they lie behind those of rows that it shares.
    Value before = arith::DivUIOp::create(
        k.b, k.loc, k.sub(k.sub(end, first), k.index(1)), k.index(kMatrixRows));
    Value lastHalf = k.add(first, k.mul(before, kMatrixRows));
    Value shared = k.sub(lastHalf, beginOfHalf(k, lastHalf));
    forEach(k, k.index(0), area.panels, 1, [&](KernelBuilder &k, Value i) {
      Value number = k.add(area.panel, i);
      Outputs outputs =
          p.outputsOf(k, k.add(firstPanel, number), k.mul(number, p.lanes()));
      p.loadBias(k, outputs);
      forEach(k, first, end, 1, [&](KernelBuilder &k, Value row) {
        Value isLast = arith::CmpIOp::create(
            k.b, k.loc, arith::CmpIPredicate::uge, row, lastHalf);
        Value shift =
            arith::SelectOp::create(k.b, k.loc, isLast, shared, k.index(0));
        Value place = k.add(k.sub(row, area.row), shift);
        auto load = [&](int64_t number) {
          return k.load(sums, {k.add(placeOf(k, i, number), place), k.index(0)},
                        p.lanes());
        };
        p.finish(k, outputs, p.gated ? load(0) : Value(), load(numProducts - 1),
                 row, tile);
      });
    });
  }

  const PanelProduct &p;
  const int64_t numProducts;
  int64_t panelsAtOnce;
  const Parts parts;
  int64_t rowsApart; ///< of a panel, whose sums wait
  const Value numRows, firstPanel, count, tile;
  Value sums;      ///< [rows, R], those of a block one after the other
  Value zeroSums;  ///< of bytes: [rows of a block, groups]
  Value unpacked;  ///< of 4 bits: a part of panels, as bytes
  Value groupSums; ///< of bytes: those of two groups
};

int64_t PanelProduct::panelsPerMatrixStep() const {
  return std::max<int64_t>(1, std::min(MatrixTiles::kPanels / (gated ? 2 : 1),
                                       2 * panels() / threads));
}

bool PanelProduct::Bytes::fillMatrixTiles(int64_t inputs,
                                          int64_t panelLanes) const {
  // On Granite Rapids 96 rows of 4096 inputs take a seventh less time than by
  // vectors, 512 half of it; of 768 inputs 192 rows take a quarter more.
  constexpr int64_t kInputs = 2048;
  return inputs >= kInputs && hasByteRows() &&
         attune::fillsMatrixTiles(group, panelLanes) &&
         group % kMatrixDepth == 0;
}

bool PanelProduct::fillsMatrixTiles() const {
  if (matrixRows == 0)
    return false;
  if (bytes)
    return matrixQuads && !part &&
           bytes->fillMatrixTiles(bytes->columnsOfQuad() * depth(), lanes());
  return pairs && !widened && attune::fillsMatrixTiles(2 * depth(), lanes());
}

int64_t PanelProduct::fewestMatrixRows() const {
  if (bytes)
    return std::max(matrixRows, Bytes::kMatrixRows);
  bool haveRoom = kMatrixRows * 2 * depth() * 2 <= matrixBytes;
  return haveRoom ? matrixRows : std::max(matrixRows, kMatrixRows);
}

void PanelProduct::rowsInMatrixTiles(KernelBuilder &k, Value numRows,
                                     Value firstPanel, Value count,
                                     Value tile) const {
  auto known = getConstantIntValue(numRows);
  bool maybeFew = fewestMatrixRows() < kMatrixRows;
  if (known)
    maybeFew = *known < kMatrixRows;
  Value many = numRows, few;
  if (maybeFew && known) {
    few = numRows;
    many = k.index(0);
  } else if (maybeFew) {
    Value isFew = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::slt,
                                        numRows, k.index(kMatrixRows));
    few = arith::SelectOp::create(k.b, k.loc, isFew, numRows, k.index(0));
    many = k.sub(numRows, few);
  }
  MatrixTiles tiles(*this, k, many, firstPanel, count, tile);
  if (getConstantIntValue(many) != 0)
    tiles.emit(k);
  if (few)
    tiles.emitFew(k, few);
}

} // namespace attune

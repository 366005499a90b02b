//===- SplitExchanges.cpp - What ranks of GPUs exchange ---------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneMeshOps.h"
#include "attune/Conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <limits>

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_SPLITEXCHANGES
#include "attune/Conversion/Passes.h.inc"

namespace {
/// Numbers of hosts and of kernels.
struct Numbers {
  OpBuilder &b;
  Location loc;

  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  Value f32(float value) {
    return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value));
  }
  Value times(Value x, Value y) {
    return b.createOrFold<arith::MulIOp>(loc, x, y);
  }
  Value plus(Value x, Value y) {
    return b.createOrFold<arith::AddIOp>(loc, x, y);
  }
  Value load(Value row, Value at) {
    return memref::LoadOp::create(b, loc, row, at);
  }
};

struct SplitExchanges final : impl::SplitExchangesBase<SplitExchanges> {
  using Base::Base;

  void runOnOperation() override {
    auto countOf = [&](StringRef name) {
      return getOperation()->getAttrOfType<IntegerAttr>(name);
    };
    auto ranks = countOf("attune.ranks"), sharers = countOf("attune.sharers");
    WalkResult walked = getOperation().walk([&](Operation *op) -> WalkResult {
      if (auto reduce = dyn_cast<AllReduceOp>(op)) {
        // How many rows there are is known to the GPU alone, and NCCL wants to
        // know it from the host: it sums the zeros, too.
        reduce.getExpertsMutable().clear();
        reduce.removeBelowAttr();
        return reduce.getAccumulate() ? split(reduce) : success();
      }
      if (auto merge = dyn_cast<AllMergeOp>(op)) {
        if (!sharers)
          return merge.emitOpError("is in a module without attune.sharers"),
                 failure();
        return split(merge, sharers.getInt());
      }
      auto gather = dyn_cast<AllGatherOp>(op);
      if (!gather || isOneRow(gather))
        return success();
      if (!ranks)
        return gather.emitOpError("is in a module without attune.ranks"),
               failure();
      return split(gather, ranks.getInt());
    });
    if (walked.wasInterrupted())
      signalPassFailure();
  }

private:
  static bool isOneRow(AllGatherOp op) {
    auto type = dyn_cast<MemRefType>(op.getInput().getType());
    return type && type.getRank() == 1;
  }

  /// Whether the op has buffers whose elements lie one behind the other.
  static LogicalResult checkPlaces(Operation *op, ValueRange places) {
    for (Value place : places) {
      auto type = dyn_cast<MemRefType>(place.getType());
      if (!type || !type.getLayout().isIdentity())
        return op->emitOpError("exchanges ")
               << place.getType() << ", which is no buffer without gaps";
    }
    return success();
  }

  static SmallVector<OpFoldResult> sizesOf(OpBuilder &b, Location loc,
                                           Value buffer) {
    // Frames are planned by sizes that are known without the buffer.
    if (auto view = buffer.getDefiningOp<memref::ReinterpretCastOp>())
      return view.getMixedSizes();
    SmallVector<OpFoldResult> sizes;
    auto type = cast<MemRefType>(buffer.getType());
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      sizes.push_back(
          type.isDynamicDim(dim)
              ? OpFoldResult(b.createOrFold<memref::DimOp>(loc, buffer, dim))
              : OpFoldResult(b.getIndexAttr(type.getDimSize(dim))));
    return sizes;
  }

  /// The sum in a buffer of its own, then an addition.
  LogicalResult split(AllReduceOp op) {
    if (failed(checkPlaces(op, {op.getInput(), op.getDest()})))
      return failure();
    OpBuilder b(op);
    Location loc = op.getLoc();
    auto type = cast<MemRefType>(op.getInput().getType());
    SmallVector<Value> sizes;
    for (OpFoldResult size : sizesOf(b, loc, op.getInput()))
      if (auto value = dyn_cast<Value>(size))
        sizes.push_back(value);
    Value sum = memref::AllocOp::create(b, loc, type, sizes);
    AllReduceOp::create(b, loc, Type(), op.getInput(),
                        /*experts=*/Value(), sum, /*below=*/nullptr,
                        /*accumulate=*/false);
    linalg::AddOp::create(b, loc, ValueRange{op.getDest(), sum},
                          ValueRange(op.getDest()));
    op.erase();
    ++numSplit;
    return success();
  }

  /// All of a buffer as one row.
  static Value flatten(OpBuilder &b, Location loc, Value buffer) {
    int64_t rank = cast<MemRefType>(buffer.getType()).getRank();
    ReassociationIndices all;
    for (int64_t dim = 0; dim < rank; ++dim)
      all.push_back(dim);
    return memref::CollapseShapeOp::create(b, loc, buffer,
                                           ArrayRef<ReassociationIndices>{all});
  }

  /// What each rank has, one behind the other, and then its columns to their
  /// places.
  LogicalResult split(AllGatherOp op, int64_t ranks) {
    if (failed(checkPlaces(op, {op.getInput(), op.getDest()})))
      return failure();
    OpBuilder b(op);
    Location loc = op.getLoc();
    Numbers n{b, loc};
    Rows input = rowsOf(n, op.getInput());
    Value width = input.width, columns = op.getColumns();
    // Nothing is exchanged, and no kernel started, where there are no columns.
    Value some = b.createOrFold<arith::MinSIOp>(loc, columns, n.index(1));
    Value rows = n.times(some, input.count), each = n.times(rows, width);
    Value all = makeRow(n, n.times(each, n.index(ranks)));
    AllGatherOp::create(b, loc, Type(), flatten(b, loc, op.getInput()), each,
                        all);

    Value dest = flatten(b, loc, op.getDest());
    Value destWidth = rowsOf(n, op.getDest()).width;
    Value given = b.createOrFold<arith::MinSIOp>(
        loc, destWidth, n.times(columns, n.index(ranks)));
    forEach(n, rows, given, [&](Value at, Value column) {
      Value peer = arith::DivUIOp::create(b, loc, column, columns);
      Value own = arith::RemUIOp::create(b, loc, column, columns);
      Value from = n.plus(n.times(peer, each), n.plus(n.times(at, width), own));
      memref::StoreOp::create(b, loc, n.load(all, from), dest,
                              n.plus(n.times(at, destWidth), column));
    });
    op.erase();
    ++numSplit;
    return success();
  }

  /// Rows of each rank with their logarithms behind them, of one rank behind
  /// the other; then every rank puts them together.
  LogicalResult split(AllMergeOp op, int64_t sharers) {
    if (failed(checkPlaces(op, {op.getInput(), op.getLse(), op.getDest()})))
      return failure();
    OpBuilder b(op);
    Location loc = op.getLoc();
    Numbers n{b, loc};
    Rows given = rowsOf(n, op.getInput());
    Value rows = given.count, width = given.width;
    Value stride = n.plus(width, n.index(1)), each = n.times(rows, stride);
    Value own = makeRow(n, each);
    Value input = flatten(b, loc, op.getInput()),
          lse = flatten(b, loc, op.getLse());
    forEach(n, rows, stride, [&](Value at, Value column) {
      Value isOfRow = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                            column, width);
      auto number = scf::IfOp::create(
          b, loc, isOfRow,
          [&](OpBuilder &b, Location loc) {
            Numbers n{b, loc};
            Value of = n.load(input, n.plus(n.times(at, width), column));
            scf::YieldOp::create(b, loc, of);
          },
          [&](OpBuilder &b, Location loc) {
            scf::YieldOp::create(b, loc, Numbers{b, loc}.load(lse, at));
          });
      memref::StoreOp::create(b, loc, number.getResult(0), own,
                              n.plus(n.times(at, stride), column));
    });
    Value all = makeRow(n, n.times(each, n.index(sharers)));
    AllGatherOp::create(b, loc, Type(), own, each, all, /*of_positions=*/true);

    Value dest = flatten(b, loc, op.getDest());
    forEach(n, rows, width, [&](Value at, Value column) {
      Value first = n.times(at, stride);
      // The number that a rank has in the row's place `column`.
      auto ofPeer = [&](Numbers n, Value peer, Value column) {
        return n.load(all, n.plus(n.plus(n.times(peer, each), first), column));
      };
      Value none = n.f32(-std::numeric_limits<float>::infinity());
      Value most = forRanks(n, sharers, none,
                            [&](Numbers n, Value peer, ValueRange most) {
                              Value more = arith::MaxNumFOp::create(
                                  n.b, n.loc, most[0], ofPeer(n, peer, width));
                              return SmallVector<Value>{more};
                            })[0];
      // Where no rank has a key that is seen, nothing weighs anything.
      Value isNone =
          arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, most, none);
      Value base = arith::SelectOp::create(b, loc, isNone, n.f32(0), most);
      SmallVector<Value> sums = forRanks(
          n, sharers, {n.f32(0), n.f32(0)},
          [&](Numbers n, Value peer, ValueRange sums) {
            Value share = math::ExpOp::create(
                n.b, n.loc,
                arith::SubFOp::create(n.b, n.loc, ofPeer(n, peer, width), base)
                    .getResult());
            Value part = arith::MulFOp::create(n.b, n.loc, share,
                                               ofPeer(n, peer, column));
            Value sum = arith::AddFOp::create(n.b, n.loc, sums[0], part);
            Value total = arith::AddFOp::create(n.b, n.loc, sums[1], share);
            return SmallVector<Value>{sum, total};
          });
      Value result = arith::DivFOp::create(b, loc, sums[0], sums[1]);
      result = arith::SelectOp::create(b, loc, isNone, n.f32(0), result);
      memref::StoreOp::create(b, loc, result, dest,
                              n.plus(n.times(at, width), column));
    });
    op.erase();
    ++numSplit;
    return success();
  }

  struct Rows {
    Value count, width; ///< of each
  };
  static Rows rowsOf(Numbers &n, Value buffer) {
    SmallVector<OpFoldResult> sizes = sizesOf(n.b, n.loc, buffer);
    Value rows = n.index(1);
    for (OpFoldResult size : ArrayRef(sizes).drop_back())
      rows = n.times(rows, getValueOrCreateConstantIndexOp(n.b, n.loc, size));
    return {rows, getValueOrCreateConstantIndexOp(n.b, n.loc, sizes.back())};
  }

  static Value makeRow(Numbers &n, Value count) {
    auto type = MemRefType::get({ShapedType::kDynamic}, n.b.getF32Type());
    return memref::AllocOp::create(n.b, n.loc, type, ValueRange(count));
  }

  /// A kernel with a thread for each place; `body` is emitted inside.
  static void forEach(Numbers &n, Value rows, Value columns,
                      function_ref<void(Value row, Value column)> body) {
    OpBuilder::InsertionGuard guard(n.b);
    Value zero = n.index(0), one = n.index(1);
    auto loop = scf::ParallelOp::create(n.b, n.loc, ValueRange{zero, zero},
                                        ValueRange{rows, columns},
                                        ValueRange{one, one});
    n.b.setInsertionPointToStart(loop.getBody());
    body(loop.getInductionVars()[0], loop.getInductionVars()[1]);
  }

  /// What is left of `start` behind all ranks, in their order.
  static SmallVector<Value>
  forRanks(Numbers &n, int64_t count, ValueRange start,
           function_ref<SmallVector<Value>(Numbers, Value, ValueRange)> body) {
    auto loop = scf::ForOp::create(
        n.b, n.loc, n.index(0), n.index(count), n.index(1), start,
        [&](OpBuilder &b, Location loc, Value peer, ValueRange carried) {
          scf::YieldOp::create(b, loc, body(Numbers{b, loc}, peer, carried));
        });
    return SmallVector<Value>(loop.getResults());
  }
};
} // namespace
} // namespace attune

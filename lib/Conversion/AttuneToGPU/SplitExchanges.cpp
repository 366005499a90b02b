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
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_SPLITEXCHANGES
#include "attune/Conversion/Passes.h.inc"

namespace {
struct SplitExchanges final : impl::SplitExchangesBase<SplitExchanges> {
  using Base::Base;

  void runOnOperation() override {
    auto ranks = getOperation()->getAttrOfType<IntegerAttr>("attune.ranks");
    WalkResult walked = getOperation().walk([&](Operation *op) -> WalkResult {
      if (auto reduce = dyn_cast<AllReduceOp>(op)) {
        // How many rows there are is known to the GPU alone, and NCCL wants to
        // know it from the host: it sums the zeros, too.
        reduce.getExpertsMutable().clear();
        reduce.removeBelowAttr();
        return reduce.getAccumulate() ? split(reduce) : success();
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
    auto index = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(b, loc, value);
    };
    auto times = [&](Value x, Value y) {
      return b.createOrFold<arith::MulIOp>(loc, x, y);
    };
    SmallVector<OpFoldResult> sizes = sizesOf(b, loc, op.getInput());
    Value columns = op.getColumns();
    // Nothing is exchanged, and no kernel started, where there are no columns.
    Value some = b.createOrFold<arith::MinSIOp>(loc, columns, index(1));
    Value rows = some;
    for (OpFoldResult size : ArrayRef(sizes).drop_back())
      rows = times(rows, getValueOrCreateConstantIndexOp(b, loc, size));
    Value width = getValueOrCreateConstantIndexOp(b, loc, sizes.back());
    Value each = times(rows, width);
    auto row = MemRefType::get({ShapedType::kDynamic}, b.getF32Type());
    Value all = memref::AllocOp::create(b, loc, row,
                                        ValueRange(times(each, index(ranks))));
    AllGatherOp::create(b, loc, Type(), flatten(b, loc, op.getInput()), each,
                        all);

    Value dest = flatten(b, loc, op.getDest());
    Value destWidth = getValueOrCreateConstantIndexOp(
        b, loc, sizesOf(b, loc, op.getDest()).back());
    Value given = b.createOrFold<arith::MinSIOp>(loc, destWidth,
                                                 times(columns, index(ranks)));
    Value zero = index(0), one = index(1);
    auto loop =
        scf::ParallelOp::create(b, loc, ValueRange{zero, zero},
                                ValueRange{rows, given}, ValueRange{one, one});
    b.setInsertionPointToStart(loop.getBody());
    Value at = loop.getInductionVars()[0], column = loop.getInductionVars()[1];
    Value peer = arith::DivUIOp::create(b, loc, column, columns);
    Value own = arith::RemUIOp::create(b, loc, column, columns);
    auto add = [&](Value x, Value y) -> Value {
      return arith::AddIOp::create(b, loc, x, y);
    };
    Value from = add(times(peer, each), add(times(at, width), own));
    Value number = memref::LoadOp::create(b, loc, all, from);
    memref::StoreOp::create(b, loc, number, dest,
                            add(times(at, destWidth), column));
    op.erase();
    ++numSplit;
    return success();
  }
};
} // namespace
} // namespace attune

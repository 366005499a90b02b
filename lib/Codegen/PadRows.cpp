//===- PadRows.cpp - Rows that do not meet in a cache -----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// A matrix product of 512 x 4096 x 4096 takes a tenth less time with rows of
// 4112 elements than with rows of 4096 (AVX2, six rows to a tile; bf16 on Zen
// 4, twelve rows: an eighth): one set of the first-level cache would hold a
// line of each row besides the weights that stream through it.

#include "Attune/AttuneDialect.h"
#include "attune/Codegen/Passes.h"
#include "attune/TargetInfo/TargetDescription.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_PADROWS
#include "attune/Codegen/Passes.h.inc"

namespace {

/// The type of a view whose source gets the type `source`.
MemRefType typeOfView(memref::SubViewOp view, MemRefType source) {
  return memref::SubViewOp::inferRankReducedResultType(
      view.getType().getShape(), source, view.getMixedOffsets(),
      view.getMixedSizes(), view.getMixedStrides());
}

/// A view of a whole buffer that only counts its rows another way; null for
/// others.
memref::CollapseShapeOp asRowsOfBuffer(Operation *user) {
  auto view = dyn_cast<memref::CollapseShapeOp>(user);
  bool kept = view && view.getReassociationIndices().back().size() == 1 &&
              view.getSrc().getDefiningOp<memref::AllocOp>();
  return kept ? view : nullptr;
}

/// Whether all that use `buffer` see its rows with any stride.
bool takeAnyStride(Value buffer) {
  return llvm::all_of(buffer.getUsers(), [&](Operation *user) {
    if (auto view = dyn_cast<memref::SubViewOp>(user))
      return takeAnyStride(view);
    if (memref::CollapseShapeOp view = asRowsOfBuffer(user))
      return takeAnyStride(view);
    if (auto cast = dyn_cast<memref::CastOp>(user)) {
      SmallVector<int64_t> strides;
      int64_t offset;
      auto type = dyn_cast<MemRefType>(cast.getType());
      return type && succeeded(type.getStridesAndOffset(strides, offset)) &&
             llvm::all_of(ArrayRef(strides).drop_back(), ShapedType::isDynamic);
    }
    // One row follows the other in the scales and sums of bytes.
    if (auto product = dyn_cast<PackedProductOp>(user))
      return buffer == product.getInput() || buffer == product.getDest() ||
             buffer == product.getRest();
    return isa<memref::LoadOp, memref::StoreOp, memref::PrefetchOp,
               memref::DimOp, memref::CopyOp, vector::TransferReadOp,
               vector::TransferWriteOp, linalg::LinalgOp, OnlineStartOp,
               OnlineAttentionOp, OnlineMergeOp, OnlineFinishOp>(user);
  });
}

/// Gives views of `buffer` the strides that it has.
void passOn(Value buffer) {
  for (Operation *user : buffer.getUsers())
    if (auto view = dyn_cast<memref::SubViewOp>(user)) {
      view.getResult().setType(
          typeOfView(view, cast<MemRefType>(buffer.getType())));
      passOn(view);
    }
}

struct PadRows final : impl::PadRowsBase<PadRows> {
  using Base::Base;

  void runOnOperation() override {
    if (wayBytes < kLineBytes) {
      getOperation().emitError("way-bytes must be at least ") << kLineBytes;
      return signalPassFailure();
    }
    SmallVector<memref::AllocOp> allocs;
    getOperation().walk([&](memref::AllocOp alloc) {
      if (meetsItself(alloc.getType()) && takeAnyStride(alloc))
        allocs.push_back(alloc);
    });
    for (memref::AllocOp alloc : allocs)
      pad(alloc);
    numPadded += allocs.size();
  }

  /// Whether elements of one column are in one set of the cache.
  bool meetsItself(MemRefType type) const {
    int64_t rank = type.getRank();
    if (rank < 2 || rank > 3 || !type.getLayout().isIdentity() ||
        !type.getElementType().isIntOrFloat() || type.isDynamicDim(rank - 1))
      return false;
    ArrayRef<int64_t> rows = type.getShape().drop_back();
    int64_t bytes = type.getShape().back() * type.getElementTypeBitWidth() / 8;
    return bytes > 0 && bytes % wayBytes == 0 &&
           !llvm::all_of(rows, [](int64_t size) { return size == 1; });
  }

  static void pad(memref::AllocOp alloc) {
    MemRefType type = alloc.getType();
    OpBuilder b(alloc);
    Location loc = alloc.getLoc();
    SmallVector<int64_t> shape(type.getShape());
    // A line, which keeps rows aligned.
    shape.back() += kLineBytes * 8 / type.getElementTypeBitWidth();
    auto padded = memref::AllocOp::create(
        b, loc, MemRefType::get(shape, type.getElementType()),
        alloc.getDynamicSizes(), alloc.getAlignmentAttr());
    for (Operation *user : llvm::make_early_inc_range(alloc->getUsers()))
      if (memref::CollapseShapeOp rows = asRowsOfBuffer(user)) {
        b.setInsertionPoint(rows);
        Value all = memref::CollapseShapeOp::create(
            b, rows.getLoc(), padded, rows.getReassociationIndices());
        replace(b, rows, all);
      }
    b.setInsertionPointAfter(padded);
    replace(b, alloc, padded);
  }

  /// Puts the part of `padded` that `old` had in its place.
  static void replace(OpBuilder &b, Operation *old, Value padded) {
    int64_t columns =
        cast<MemRefType>(old->getResult(0).getType()).getShape().back();
    Location loc = old->getLoc();
    SmallVector<OpFoldResult> sizes = memref::getMixedSizes(b, loc, padded);
    sizes.back() = b.getIndexAttr(columns);
    SmallVector<OpFoldResult> zeros(sizes.size(), b.getIndexAttr(0));
    SmallVector<OpFoldResult> ones(sizes.size(), b.getIndexAttr(1));
    Value view = memref::SubViewOp::create(b, loc, padded, zeros, sizes, ones);
    old->getResult(0).replaceAllUsesWith(view);
    old->erase();
    passOn(view);
  }
};
} // namespace
} // namespace attune

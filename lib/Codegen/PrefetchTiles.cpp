//===- PrefetchTiles.cpp - What tiles fetch for those behind them ---------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// A nest of attention walks blocks of keys inside tiles of queries. The keys
// that are read next are those of the following block; after the last block,
// the first ones of the tile behind, which has the same head or the following
// one. Where keys are split into parts, the part behind comes before that.
// Threads take tiles in order, most of the time.
//
// A nest of a matrix product walks steps of panels. Many rows pass those of a
// step several times, while the cache brings the panels of the next step, as
// far as it has room for both. Few rows pass a panel so fast that the one
// behind it comes next.

#include "Attune/AttuneDialect.h"
#include "attune/Codegen/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_PREFETCHTILES
#include "attune/Codegen/Passes.h.inc"

namespace {

/// A step of attention in its nest: a parallel loop over (batch, head, tile of
/// queries), inside it a loop over blocks of keys.
struct Nest {
  scf::ForallOp tiles;
  scf::ForOp blocks;

  static std::optional<Nest> around(OnlineAttentionOp step) {
    Nest nest{step->getParentOfType<scf::ForallOp>(),
              step->getParentOfType<scf::ForOp>()};
    if (!nest.tiles || !nest.blocks || nest.tiles.getRank() < 3 ||
        !nest.tiles->isAncestor(nest.blocks))
      return std::nullopt;
    return nest;
  }

  /// The slice that cuts `heads` at the block; null for another value.
  tensor::ExtractSliceOp sliceOf(Value heads) {
    auto slice = heads.getDefiningOp<tensor::ExtractSliceOp>();
    OpFoldResult block = getAsOpFoldResult(blocks.getInductionVar());
    bool fits = slice && slice.getSourceType().getRank() == 4 &&
                slice.getType().getRank() == 4 && slice.hasUnitStride() &&
                slice.getMixedOffsets()[2] == block;
    return fits ? slice : tensor::ExtractSliceOp();
  }
};

/// The keys or values from the first that is read next to the last of its head.
Value cutNext(OpBuilder &b, Location loc, Nest nest,
              tensor::ExtractSliceOp slice) {
  auto index = [&](OpFoldResult number) {
    return getValueOrCreateConstantIndexOp(b, loc, number);
  };
  auto add = [&](Value x, Value y) -> Value {
    return b.createOrFold<arith::AddIOp>(loc, x, y);
  };
  auto sub = [&](Value x, Value y) -> Value {
    return b.createOrFold<arith::SubIOp>(loc, x, y);
  };
  auto min = [&](Value x, Value y) -> Value {
    return b.createOrFold<arith::MinSIOp>(loc, x, y);
  };
  auto isLess = [&](Value x, Value y) -> Value {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, x, y);
  };
  auto choose = [&](Value where, Value yes, Value no) -> Value {
    return arith::SelectOp::create(b, loc, where, yes, no);
  };
  auto size = [&](Value whole, int64_t dim) {
    return index(tensor::getMixedSize(b, loc, whole, dim));
  };
  Value whole = slice.getSource(), one = index(b.getIndexAttr(1));
  Value zero = index(b.getIndexAttr(0));
  SmallVector<OpFoldResult> offsets = slice.getMixedOffsets(),
                            sizes = slice.getMixedSizes();
  Value behind = add(nest.blocks.getInductionVar(), nest.blocks.getStep());
  Value more = isLess(behind, nest.blocks.getUpperBound());
  // The following part of the keys comes next.
  if (nest.tiles.getRank() == 4) {
    Value part = nest.tiles.getInductionVars()[3];
    Value parts = index(nest.tiles.getMixedUpperBound()[3]);
    more = arith::OrIOp::create(b, loc, more, isLess(add(part, one), parts));
  }
  Value tile = nest.tiles.getInductionVars()[2];
  Value endOfTiles = index(nest.tiles.getMixedUpperBound()[2]);
  Value sameHead = isLess(add(tile, one), endOfTiles);
  Value head = index(offsets[1]);
  Value following = min(add(head, one), sub(size(whole, 1), one));
  Value keys = size(whole, 2);
  Value first = choose(more, min(behind, sub(keys, one)), zero);
  offsets[1] = choose(more, head, choose(sameHead, head, following));
  offsets[2] = first;
  sizes[2] = sub(keys, first);
  return tensor::ExtractSliceOp::create(b, loc, whole, offsets, sizes,
                                        slice.getMixedStrides());
}

/// Bytes of a panel that its rows pass before anything else comes: a gate's and
/// its partner's, in f32, pairs or quads; or one part's, if it has parts.
int64_t bytesOfPanel(PackedProductOp product) {
  auto type = cast<ShapedType>(product.getWeight().getType());
  int64_t bytes = type.getDimSize(1) * product.getPanelWidth() * 4 *
                  (product.getGated() ? 2 : 1);
  // Parts whose number is chosen at run time are cut to fit.
  if (Value parts = product.getNumParts())
    bytes /= getConstantIntValue(parts).value_or(bytes);
  return bytes;
}

/// The first of the panels that come next.
Value nextPanelOf(OpBuilder &b, PackedProductOp product) {
  Location loc = product.getLoc();
  int64_t tile = product.getTile()[0] * product.getTile()[1];
  Value rows = getValueOrCreateConstantIndexOp(
      b, loc, tensor::getMixedSize(b, loc, product.getInput(), 0));
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  Value few = b.createOrFold<arith::CmpIOp>(
      loc, arith::CmpIPredicate::ule, rows,
      arith::ConstantIndexOp::create(b, loc, tile));
  Value passed =
      b.createOrFold<arith::SelectOp>(loc, few, one, product.getNumPanels());
  return b.createOrFold<arith::AddIOp>(loc, product.getFirstPanel(), passed);
}

struct PrefetchTiles final : impl::PrefetchTilesBase<PrefetchTiles> {
  using Base::Base;

  void runOnOperation() override {
    if (panelBytes < 1) {
      getOperation().emitError("panel-bytes must be positive");
      return signalPassFailure();
    }
    getOperation().walk([&](PackedProductOp product) {
      // Which matrix of a stack comes next depends on the choice of experts:
      // only who made the nest can say.
      if (!product->getParentOfType<scf::ForallOp>() || product.getMatrix() ||
          product.getNextPanel() || bytesOfPanel(product) > panelBytes)
        return;
      OpBuilder b(product);
      product.getNextPanelMutable().assign(nextPanelOf(b, product));
      ++numProducts;
    });
    getOperation().walk([&](OnlineAttentionOp step) {
      auto nest = Nest::around(step);
      if (!nest || step.getNextKey())
        return;
      auto keys = nest->sliceOf(step.getKey());
      auto values = nest->sliceOf(step.getValue());
      if (!keys || !values)
        return;
      OpBuilder b(step);
      step.getNextKeyMutable().assign(cutNext(b, step.getLoc(), *nest, keys));
      step.getNextValueMutable().assign(
          cutNext(b, step.getLoc(), *nest, values));
      ++numSteps;
    });
  }
};
} // namespace
} // namespace attune

//===- PositionsOutside.cpp - Caches that grow at one end -----------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Pages of a GPU's memory have 2 MiB. A text takes few of them if all that a
// position keeps lies side by side: then its cache grows at its end, and not in
// each head of each layer. Kernels read rows by strides, so that they need not
// know.

#include "attune/Target/PTX/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/AffineMap.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_POSITIONSOUTSIDE
#include "attune/Target/PTX/Passes.h.inc"

namespace {

/// Which dimension of a cache as it was stands at each place.
using Order = SmallVector<int64_t>;

template <typename T>
SmallVector<T> inOrder(const Order &order, ArrayRef<T> sizes) {
  SmallVector<T> placed;
  for (int64_t dim : order)
    placed.push_back(sizes[dim]);
  return placed;
}

struct PositionsOutside final : impl::PositionsOutsideBase<PositionsOutside> {
  using Base::Base;

  void runOnOperation() override {
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (func->hasAttr("attune.entry") && !func.isExternal())
        for (BlockArgument argument : func.getArguments())
          if (Order order = orderOf(func, argument); !order.empty())
            if (failed(markEntry(func, argument, order)))
              return signalPassFailure();
    // Calls add to the list.
    for (size_t i = 0; i < caches.size(); ++i) {
      auto [argument, order] = *std::next(caches.begin(), ptrdiff_t(i));
      if (failed(turn(argument, order)))
        return signalPassFailure();
    }
  }

  /// [batch, positions, layers, ...]; empty: it is no cache of positions.
  static Order orderOf(func::FuncOp func, BlockArgument argument) {
    unsigned number = argument.getArgNumber();
    auto kind = func.getArgAttrOfType<StringAttr>(number, "attune.kind");
    auto shape = func.getArgAttrOfType<ArrayAttr>(number, "attune.shape");
    if (!kind || kind.getValue() != "cache" || !shape || shape.size() < 4)
      return {};
    auto symbol = [&](int64_t dim) {
      auto name = dyn_cast<StringAttr>(shape[dim]);
      return name ? name.getValue() : StringRef();
    };
    int64_t rank = int64_t(shape.size()), positions = 2;
    while (positions < rank && !symbol(positions).starts_with("capacity"))
      ++positions;
    if (positions == rank)
      return {};
    int64_t batch = symbol(1).empty() && !symbol(0).empty() ? 0 : 1;
    Order order = {batch, positions, 1 - batch};
    for (int64_t dim = 2; dim < rank; ++dim)
      if (dim != positions)
        order.push_back(dim);
    return order;
  }

  LogicalResult markEntry(func::FuncOp func, BlockArgument argument,
                          const Order &order) {
    unsigned number = argument.getArgNumber();
    auto shape = func.getArgAttrOfType<ArrayAttr>(number, "attune.shape");
    func.setArgAttr(
        number, "attune.shape",
        ArrayAttr::get(&getContext(), inOrder(order, shape.getValue())));
    ++numCaches;
    return mark(func, argument, order);
  }

  /// Gives an argument its new type, once.
  LogicalResult mark(func::FuncOp func, BlockArgument argument,
                     const Order &order) {
    if (auto [known, isNew] = caches.insert({argument, order}); !isNew)
      return known->second == order
                 ? success()
                 : func.emitOpError("gets caches of more than one form");
    auto type = dyn_cast<MemRefType>(argument.getType());
    if (!type || !type.getLayout().isIdentity())
      return func.emitOpError("has a cache of type ") << argument.getType();
    argument.setType(
        MemRefType::get(inOrder(order, type.getShape()), type.getElementType(),
                        MemRefLayoutAttrInterface(), type.getMemorySpace()));
    func.setFunctionType(
        FunctionType::get(&getContext(), func.front().getArgumentTypes(),
                          func.getFunctionType().getResults()));
    return success();
  }

  /// Lets everything that uses a cache find its dimensions where they are.
  LogicalResult turn(BlockArgument cache, const Order &order) {
    for (OpOperand &use : llvm::make_early_inc_range(cache.getUses())) {
      Operation *user = use.getOwner();
      if (auto call = dyn_cast<func::CallOp>(user)) {
        auto callee =
            getOperation().lookupSymbol<func::FuncOp>(call.getCallee());
        if (!callee || callee.isExternal())
          return call.emitOpError("passes a cache to code from elsewhere");
        if (failed(mark(callee, callee.getArgument(use.getOperandNumber()),
                        order)))
          return failure();
      } else if (auto dim = dyn_cast<memref::DimOp>(user)) {
        std::optional<int64_t> number = dim.getConstantIndex();
        if (!number)
          return dim.emitOpError("asks for an unknown size of a cache");
        OpBuilder b(dim);
        int64_t place = llvm::find(order, *number) - order.begin();
        dim.replaceAllUsesWith(
            memref::DimOp::create(b, dim.getLoc(), cache, place).getResult());
        dim.erase();
      } else if (auto view = dyn_cast<memref::SubViewOp>(user)) {
        if (failed(turnView(view, cache, order)))
          return failure();
      } else {
        return user->emitOpError("uses a cache in a way that does not know "
                                 "where its positions lie");
      }
    }
    return success();
  }

  LogicalResult turnView(memref::SubViewOp view, Value cache,
                         const Order &order) {
    OpBuilder b(view);
    SmallVector<OpFoldResult> offsets = view.getMixedOffsets(),
                              sizes = view.getMixedSizes(),
                              strides = view.getMixedStrides();
    // Dimensions of one that the view has no more. Which of two neighbours it
    // has, if their strides are unknown, makes no difference.
    llvm::SmallBitVector dropped(unsigned(order.size()));
    ArrayRef<int64_t> left = view.getType().getShape();
    for (auto [dim, size] : llvm::enumerate(sizes)) {
      int64_t known = getConstantIntValue(size).value_or(ShapedType::kDynamic);
      if (!left.empty() && left.front() == known)
        left = left.drop_front();
      else if (known == 1)
        dropped.set(unsigned(dim));
      else
        return view.emitOpError("has sizes that its type does not have");
    }
    // The dimensions that are left, in the order of memory, and where each
    // dimension of the view is among them.
    SmallVector<int64_t> kept, shape;
    for (int64_t dim : order)
      if (!dropped.test(dim)) {
        kept.push_back(dim);
        shape.push_back(
            getConstantIntValue(sizes[dim]).value_or(ShapedType::kDynamic));
      }
    SmallVector<OpFoldResult> placed[] = {inOrder(order, ArrayRef(offsets)),
                                          inOrder(order, ArrayRef(sizes)),
                                          inOrder(order, ArrayRef(strides))};
    auto type = memref::SubViewOp::inferRankReducedResultType(
        shape, cast<MemRefType>(cache.getType()), placed[0], placed[1],
        placed[2]);
    Value part =
        memref::SubViewOp::create(b, view.getLoc(), cast<MemRefType>(type),
                                  cache, placed[0], placed[1], placed[2]);
    SmallVector<int64_t> wanted(kept);
    llvm::sort(wanted);
    SmallVector<unsigned> permutation;
    for (int64_t dim : wanted)
      permutation.push_back(unsigned(llvm::find(kept, dim) - kept.begin()));
    auto map = AffineMap::getPermutationMap(permutation, &getContext());
    if (!map.isIdentity())
      part = memref::TransposeOp::create(b, view.getLoc(), part,
                                         AffineMapAttr::get(map));
    return replace(view, part);
  }

  /// Puts a view in the place of one of other strides.
  LogicalResult replace(Operation *old, Value made) {
    for (OpOperand &use :
         llvm::make_early_inc_range(old->getResult(0).getUses())) {
      Operation *user = use.getOwner();
      OpBuilder b(user);
      if (auto view = dyn_cast<memref::SubViewOp>(user)) {
        auto type = memref::SubViewOp::inferRankReducedResultType(
            view.getType().getShape(), cast<MemRefType>(made.getType()),
            view.getMixedOffsets(), view.getMixedSizes(),
            view.getMixedStrides());
        Value part = memref::SubViewOp::create(
            b, view.getLoc(), cast<MemRefType>(type), made,
            view.getMixedOffsets(), view.getMixedSizes(),
            view.getMixedStrides());
        if (failed(replace(view, part)))
          return failure();
      } else if (auto cast = dyn_cast<memref::CastOp>(user)) {
        // Strides alone are forgotten.
        if (failed(replace(cast, made)))
          return failure();
      } else if (isa<ViewLikeOpInterface, func::CallOp, func::ReturnOp>(user) ||
                 user->hasTrait<OpTrait::IsTerminator>() ||
                 isa<LoopLikeOpInterface>(user)) {
        return user->emitOpError("uses a part of a cache in a way that does "
                                 "not know where its positions lie");
      } else {
        use.set(made);
      }
    }
    old->erase();
    return success();
  }

  llvm::MapVector<BlockArgument, Order> caches;
};
} // namespace
} // namespace attune

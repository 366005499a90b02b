//===- HandwrittenFusion.cpp - Attention in place of linalg -----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HandwrittenChain.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace attune {
namespace {

/// The labels behind each dimension of [batch, heads, rows, columns].
using Places = std::array<SmallVector<unsigned>, 4>;

Places placesOfScores(const HandwrittenChain &chain) {
  const ScoreProduct &product = chain.product;
  return {product.batch, product.heads, {product.rows}, {chain.weighing.key}};
}

class Builder {
public:
  Builder(RewriterBase &rewriter, Location loc)
      : rewriter(rewriter), loc(loc) {}

  /// `tensor` with its dimensions in the given order.
  Value ordered(const LabelledTensor &tensor, ArrayRef<unsigned> labels) {
    SmallVector<int64_t> from;
    for (unsigned label : labels)
      from.push_back(tensor.positionOf(label));
    if (llvm::equal(from, llvm::seq<int64_t>(0, from.size())))
      return tensor.value;
    SmallVector<OpFoldResult> sizes =
        tensor::getMixedSizes(rewriter, loc, tensor.value);
    SmallVector<OpFoldResult> permuted;
    for (int64_t dim : from)
      permuted.push_back(sizes[dim]);
    Value out = tensor::EmptyOp::create(rewriter, loc, permuted,
                                        tensor.getType().getElementType());
    return linalg::TransposeOp::create(rewriter, loc, tensor.value, out, from)
        ->getResult(0);
  }

  /// Dimensions of `value` merged, or put in as one, so that each of `groups`
  /// is one dimension.
  Value grouped(Value value, const Places &groups) {
    SmallVector<ReassociationIndices> merge;
    int64_t next = 0;
    for (const SmallVector<unsigned> &group : groups) {
      if (group.empty())
        continue;
      merge.emplace_back();
      for (size_t i = 0; i < group.size(); ++i)
        merge.back().push_back(next++);
    }
    if (static_cast<int64_t>(merge.size()) != next)
      value = tensor::CollapseShapeOp::create(rewriter, loc, value, merge);
    if (merge.size() == groups.size())
      return value;
    auto type = cast<RankedTensorType>(value.getType());
    SmallVector<int64_t> shape;
    for (const SmallVector<unsigned> &group : groups)
      shape.push_back(group.empty()
                          ? 1
                          : type.getDimSize(llvm::count_if(
                                ArrayRef(groups).take_front(shape.size()),
                                [](auto &g) { return !g.empty(); })));
    return tensor::ExpandShapeOp::create(
        rewriter, loc, RankedTensorType::get(shape, type.getElementType()),
        value, unitReassociation(groups));
  }

  /// [batch, heads, rows, columns] with the dimensions of `groups`, whose sizes
  /// are given by label.
  Value ungrouped(Value value, const Places &groups,
                  function_ref<int64_t(unsigned)> sizeOf) {
    auto type = cast<RankedTensorType>(value.getType());
    size_t filled = llvm::count_if(groups, [](auto &g) { return !g.empty(); });
    if (filled != groups.size()) {
      value = tensor::CollapseShapeOp::create(rewriter, loc, value,
                                              unitReassociation(groups));
    }
    SmallVector<int64_t> shape;
    SmallVector<ReassociationIndices> split;
    for (const SmallVector<unsigned> &group : groups) {
      if (group.empty())
        continue;
      split.emplace_back();
      for (unsigned label : group) {
        split.back().push_back(shape.size());
        shape.push_back(sizeOf(label));
      }
    }
    if (shape.size() == filled)
      return value;
    return tensor::ExpandShapeOp::create(
        rewriter, loc, RankedTensorType::get(shape, type.getElementType()),
        value, split);
  }

  Value asBroadcast(const ScoreTensor &tensor, const HandwrittenChain &chain);

private:
  /// Which of four dimensions belong together if those without a label are
  /// left out.
  SmallVector<ReassociationIndices> unitReassociation(const Places &groups) {
    SmallVector<ReassociationIndices> result;
    ReassociationIndices open;
    for (auto [i, group] : llvm::enumerate(groups)) {
      open.push_back(i);
      if (group.empty())
        continue;
      result.push_back(open);
      open.clear();
    }
    result.back().append(open);
    return result;
  }

  Value withElements(Value value, Type type);
  Value negated(Value mask);
  Value elementwise(Value value, Type type,
                    function_ref<Value(OpBuilder &, Location, Value)> compute);

  RewriterBase &rewriter;
  Location loc;
};

Value Builder::elementwise(
    Value value, Type type,
    function_ref<Value(OpBuilder &, Location, Value)> compute) {
  auto from = cast<RankedTensorType>(value.getType());
  Value out = tensor::EmptyOp::create(
      rewriter, loc, tensor::getMixedSizes(rewriter, loc, value), type);
  SmallVector<AffineMap> maps(2,
                              rewriter.getMultiDimIdentityMap(from.getRank()));
  SmallVector<utils::IteratorType> loops(from.getRank(),
                                         utils::IteratorType::parallel);
  return linalg::GenericOp::create(
             rewriter, loc, out.getType(), value, out, maps, loops,
             [&](OpBuilder &b, Location loc, ValueRange args) {
               linalg::YieldOp::create(b, loc, compute(b, loc, args[0]));
             })
      ->getResult(0);
}

/// The bias in f32, as attention takes it.
Value Builder::withElements(Value value, Type type) {
  if (getElementTypeOrSelf(value) == type)
    return value;
  return elementwise(value, type, [&](OpBuilder &b, Location loc, Value from) {
    return arith::ExtFOp::create(b, loc, type, from);
  });
}

Value Builder::negated(Value mask) {
  return elementwise(
      mask, rewriter.getI1Type(), [](OpBuilder &b, Location loc, Value from) {
        Value one = arith::ConstantIntOp::create(b, loc, 1, /*width=*/1);
        return arith::XOrIOp::create(b, loc, from, one);
      });
}

/// A mask or bias as [batch|1, heads|1, queries|1, keys].
Value Builder::asBroadcast(const ScoreTensor &tensor,
                           const HandwrittenChain &chain) {
  if (!tensor)
    return {};
  LabelledTensor read;
  read.value = tensor.value;
  // Dimensions of size one that are read at zero are no dimensions.
  SmallVector<ReassociationIndices> kept;
  ReassociationIndices open;
  for (auto [i, expr] : llvm::enumerate(tensor.map.getResults())) {
    open.push_back(i);
    auto dim = dyn_cast<AffineDimExpr>(expr);
    if (!dim)
      continue;
    read.labels.push_back(dim.getPosition());
    kept.push_back(std::exchange(open, {}));
  }
  kept.back().append(open);
  if (kept.size() != tensor.map.getNumResults())
    read.value =
        tensor::CollapseShapeOp::create(rewriter, loc, read.value, kept);

  Places places = placesOfScores(chain);
  SmallVector<unsigned> order;
  for (SmallVector<unsigned> &place : places) {
    llvm::erase_if(place, [&](unsigned label) { return !read.has(label); });
    llvm::append_range(order, place);
  }
  Value value = ordered(read, order);
  if (value.getType() && getElementTypeOrSelf(value).isInteger(1))
    value = tensor.hides ? negated(value) : value;
  else
    value = withElements(value, rewriter.getF32Type());
  return grouped(value, places);
}

/// Elements of the scores' types where that is possible.
AttentionOp buildAttention(HandwrittenChain &chain, RewriterBase &rewriter,
                           Builder &builder, Location loc, Places &places) {
  ScoreProduct &product = chain.product;
  Weighing &weighing = chain.weighing;
  auto take = [&](const LabelledTensor &tensor, Places groups) {
    SmallVector<unsigned> order;
    for (SmallVector<unsigned> &group : groups)
      llvm::append_range(order, group);
    return builder.grouped(builder.ordered(tensor, order), groups);
  };
  // Keys have the first of the heads' dimensions, or none.
  SmallVector<unsigned> keyHeads = product.heads;
  llvm::erase_if(keyHeads,
                 [&](unsigned label) { return !product.key.has(label); });
  Value query =
      take(product.query,
           {product.batch, product.heads, {product.rows}, {weighing.width()}});
  Value key =
      take(product.key,
           {product.batch, keyHeads, {weighing.key}, {weighing.width()}});
  Value value =
      take(product.value,
           {product.batch, keyHeads, {weighing.key}, {weighing.valueWidth()}});
  places = {
      product.batch, product.heads, {product.rows}, {weighing.valueWidth()}};

  auto sizeOf = [](Value v, int64_t dim) {
    return cast<RankedTensorType>(v.getType()).getDimSize(dim);
  };
  auto type = RankedTensorType::get(
      {sizeOf(query, 0), sizeOf(query, 1), sizeOf(query, 2), sizeOf(value, 3)},
      getElementTypeOrSelf(chain.root->getResult(0)));
  return AttentionOp::create(
      rewriter, loc, TypeRange{type}, query, key, value,
      builder.asBroadcast(chain.mask, chain),
      builder.asBroadcast(chain.bias, chain),
      /*diagonals=*/Value(), /*slopes=*/Value(), /*sinks=*/Value(),
      /*lengths=*/Value(), /*blocks=*/Value(),
      rewriter.getF32FloatAttr(chain.scale),
      CausalAlignAttr::get(rewriter.getContext(), chain.causal),
      chain.window ? rewriter.getI64IntegerAttr(*chain.window) : IntegerAttr(),
      chain.softcap ? rewriter.getF32FloatAttr(*chain.softcap) : FloatAttr(),
      DenseI64ArrayAttr());
}

} // namespace

MatchFailure checkBroadcast(const ScoreTensor &tensor, StringRef what,
                            const HandwrittenChain &chain) {
  auto refuse = [&](const Twine &reason) {
    if (!tensor)
      return MatchFailure("its " + what + " " + reason);
    return MatchFailure("its " + what + " " + reason, tensor.value.getLoc(),
                        "made here");
  };
  auto type = tensor ? dyn_cast<RankedTensorType>(tensor.value.getType())
                     : RankedTensorType();
  if (!type || !tensor.map)
    return refuse("is no tensor of its own");
  Type element = type.getElementType();
  if (what == "mask" ? !element.isInteger(1)
                     : !isa<Float32Type, Float16Type, BFloat16Type>(element))
    return refuse("is not of " + Twine(what == "mask" ? "i1" : "f32"));
  llvm::SmallDenseSet<unsigned> labels;
  for (auto [i, expr] : llvm::enumerate(tensor.map.getResults())) {
    auto constant = dyn_cast<AffineConstantExpr>(expr);
    if (constant && constant.getValue() == 0 && type.getDimSize(i) == 1)
      continue;
    auto dim = dyn_cast<AffineDimExpr>(expr);
    if (!dim || dim.getPosition() >= chain.weighing.rank ||
        !labels.insert(dim.getPosition()).second)
      return refuse("is not read by the indices of the scores");
  }
  if (!labels.contains(chain.weighing.key))
    return refuse("is the same for all keys");
  // Dimensions that attention has as one are all there or all missing.
  for (const SmallVector<unsigned> &place : placesOfScores(chain)) {
    size_t there = llvm::count_if(
        place, [&](unsigned label) { return labels.contains(label); });
    if (there != 0 && there != place.size())
      return refuse("differs among some of the dimensions that are its batch "
                    "or its heads, and not among the others");
  }
  return {};
}

AttentionOp fuseHandwritten(HandwrittenChain &chain, RewriterBase &rewriter) {
  SmallVector<Location> locs = {chain.root->getLoc()};
  for (Operation *link : chain.links)
    locs.push_back(link->getLoc());
  Location loc = FusedLoc::get(rewriter.getContext(), locs);
  Builder builder(rewriter, loc);
  Places places;
  AttentionOp fused = buildAttention(chain, rewriter, builder, loc, places);

  LabelledTensor result;
  result.value =
      builder.ungrouped(fused.getResult(), places, [&](unsigned label) {
        return label == chain.weighing.valueWidth()
                   ? chain.product.value.sizeOf(label)
                   : chain.product.query.sizeOf(label);
      });
  for (const SmallVector<unsigned> &place : places)
    llvm::append_range(result.labels, place);
  Value ordered = builder.ordered(result, chain.resultLabels);
  Type type = chain.root->getResult(0).getType();
  if (ordered.getType() != type)
    ordered = tensor::CastOp::create(rewriter, loc, type, ordered);
  rewriter.replaceOp(chain.root, ordered);
  return fused;
}

} // namespace attune

//===- HandwrittenChain.cpp - Attention written in linalg -------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HandwrittenChain.h"
#include "ScoreExpr.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

#include <cmath>

using namespace mlir;

namespace attune {
namespace {

/// Zero everywhere: what a product starts its sums from.
bool isZero(Value init) {
  if (auto fill = init.getDefiningOp<linalg::FillOp>())
    init = fill.getInputs()[0];
  return matchPattern(init, m_AnyZeroFloat());
}

std::optional<Contraction> readContraction(Operation *candidate) {
  auto op = dyn_cast_or_null<linalg::LinalgOp>(candidate);
  if (!op || !op.hasPureTensorSemantics() || op->getNumResults() != 1 ||
      op.getNumDpsInputs() != 2 || !linalg::isaContractionOpInterface(op) ||
      !isZero(op.getDpsInits()[0]))
    return std::nullopt;
  FailureOr<linalg::ContractionDimensions> dims =
      linalg::inferContractionDims(op);
  if (failed(dims) || dims->m.size() != 1 || dims->n.size() != 1 ||
      dims->k.size() != 1)
    return std::nullopt;

  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  unsigned rank = maps[2].getNumResults();
  if (rank < 2 || rank > 4 || dims->batch.size() + 2 != rank)
    return std::nullopt;
  // Each operand is [the result's batch dimensions..., row, column].
  auto isMatrix = [&](AffineMap map, unsigned row, unsigned column) {
    if (map.getNumResults() != rank ||
        map.getResult(rank - 2) != getAffineDimExpr(row, map.getContext()) ||
        map.getResult(rank - 1) != getAffineDimExpr(column, map.getContext()))
      return false;
    return map.getResults().drop_back(2) == maps[2].getResults().drop_back(2);
  };
  unsigned m = dims->m[0], n = dims->n[0], k = dims->k[0];
  if (!isMatrix(maps[2], m, n) || !isMatrix(maps[0], m, k))
    return std::nullopt;
  Contraction found;
  found.op = op;
  found.rank = rank;
  found.rightByRows = isMatrix(maps[1], n, k);
  if (!found.rightByRows && !isMatrix(maps[1], k, n))
    return std::nullopt;
  return found;
}

/// The scores that `weights` is the softmax of, or null.
const ScoreExpr *softmaxOf(const ScoreExpr *weights) {
  // e / sum e, or e * (1 / sum e)
  const ScoreExpr *power = nullptr, *sum = nullptr;
  if (weights->is(ScoreExpr::Div)) {
    power = weights->args[0];
    sum = weights->args[1];
  } else if (weights->is(ScoreExpr::Mul)) {
    power = weights->args[0];
    sum = weights->args[1];
    if (power->is(ScoreExpr::Div))
      std::swap(power, sum);
    if (!sum->is(ScoreExpr::Div) || !sum->args[0]->isNumber(1))
      return nullptr;
    sum = sum->args[1];
  } else {
    return nullptr;
  }
  if (!power->is(ScoreExpr::Exp) || !sum->is(ScoreExpr::RowSum) ||
      !same(power, sum->args[0]))
    return nullptr;
  // e = exp(x - max x), or exp(x), which is the same before rounding
  const ScoreExpr *scores = power->args[0];
  if (scores->is(ScoreExpr::Sub) && scores->args[1]->is(ScoreExpr::RowMax) &&
      same(scores->args[0], scores->args[1]->args[0]))
    return scores->args[0];
  return scores;
}

/// `map` reads the given rank's indices in order, some left out, keys not.
bool readsKeysInOrder(AffineMap map, unsigned rank) {
  int64_t last = -1;
  for (AffineExpr expr : map.getResults()) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    if (!dim || static_cast<int64_t>(dim.getPosition()) <= last)
      return false;
    last = dim.getPosition();
  }
  return last == static_cast<int64_t>(rank) - 1;
}

/// The tensor behind `expr`, whatever it was computed from, can be a mask or a
/// bias.
bool isTensorOf(const ScoreExpr *expr, bool wantMask, unsigned rank) {
  if (!expr->tensor || !expr->map || !readsKeysInOrder(expr->map, rank))
    return false;
  auto type = dyn_cast<RankedTensorType>(expr->tensor.getType());
  return type && (wantMask ? type.getElementType().isInteger(1)
                           : type.getElementType().isF32());
}

/// Some product of two matrices is in the formula.
bool holdsProduct(const ScoreExpr *expr) {
  if (expr->is(ScoreExpr::Leaf))
    return readContraction(expr->tensor.getDefiningOp()).has_value();
  return llvm::any_of(expr->args, holdsProduct);
}

/// Takes scale, bias and mask off `scores` until the product is left.
Refusal peel(const ScoreExpr *scores, unsigned rank, Location where,
             HandwrittenChain &chain) {
  auto refuse = [&](const Twine &reason) {
    return Refusal(reason, where, "weighed by the softmax of this");
  };
  bool scaled = false;
  while (!scores->is(ScoreExpr::Leaf)) {
    if (scores->is(ScoreExpr::Mul) || scores->is(ScoreExpr::Div)) {
      const ScoreExpr *rest = scores->args[0], *factor = scores->args[1];
      if (scores->is(ScoreExpr::Mul) && rest->is(ScoreExpr::Number))
        std::swap(rest, factor);
      if (!factor->is(ScoreExpr::Number))
        return refuse("its scores are scaled by a number that is no constant");
      chain.scale *=
          scores->is(ScoreExpr::Mul) ? factor->number : 1 / factor->number;
      scaled = true;
      scores = rest;
      continue;
    }
    if (scaled)
      return refuse("its scores are scaled after they are masked or biased");
    if (scores->is(ScoreExpr::Select)) {
      const ScoreExpr *mask = scores->args[0];
      if (chain.mask || !isTensorOf(mask, /*wantMask=*/true, rank) ||
          !scores->args[2]->isNumber(-INFINITY))
        return refuse("its scores are masked in a way that attention does not "
                      "know");
      chain.mask = mask->tensor;
      chain.maskMap = mask->map;
      scores = scores->args[1];
      continue;
    }
    if (!scores->is(ScoreExpr::Add))
      break;
    const ScoreExpr *rest = scores->args[0], *bias = scores->args[1];
    if (!holdsProduct(rest))
      std::swap(rest, bias);
    if (chain.bias || !isTensorOf(bias, /*wantMask=*/false, rank))
      return refuse("its scores have a bias that attention does not know");
    chain.bias = bias->tensor;
    chain.biasMap = bias->map;
    scores = rest;
  }
  std::optional<Contraction> product;
  if (scores->is(ScoreExpr::Leaf) && scores->map && scores->map.isIdentity())
    product = readContraction(scores->tensor.getDefiningOp());
  if (!product || product->rank != rank)
    return refuse("its scores are not a product of queries and keys");
  if (!cast<RankedTensorType>(product->op->getResult(0).getType())
           .getElementType()
           .isF32())
    return refuse("its scores are not in f32");
  chain.scores = *product;
  return {};
}

/// The tensor of scores that the weights come from, with the ops in between.
struct Weights {
  const ScoreExpr *scores = nullptr;
  Location where;
};

std::optional<Weights> readWeights(Value weights, ScoreReader &reader,
                                   SmallVectorImpl<Operation *> &read) {
  if (auto softmax = weights.getDefiningOp<linalg::SoftmaxOp>()) {
    int64_t rank = softmax.getInputOperandRank();
    if (static_cast<int64_t>(softmax.getDimension()) != rank - 1 ||
        !softmax.hasPureTensorSemantics())
      return std::nullopt;
    read.push_back(softmax);
    return Weights{reader.read(softmax.getInput()), softmax.getLoc()};
  }
  if (!weights.getDefiningOp())
    return std::nullopt;
  const ScoreExpr *scores = softmaxOf(reader.read(weights));
  if (!scores)
    return std::nullopt;
  return Weights{scores, weights.getLoc()};
}

/// Collects what lies between the scores and the end of the chain, users before
/// producers: ops that serve this chain alone and run as often as its end does.
/// `read` are the ops whose meaning is known.
Refusal collectLinks(HandwrittenChain &chain, ArrayRef<Operation *> read) {
  Operation *root = chain.weighing.op;
  llvm::SmallPtrSet<Operation *, 8> own(read.begin(), read.end());
  SetVector<Operation *> links;
  links.insert(chain.scores.op);
  for (unsigned i = 0; i < links.size(); ++i) {
    if (links[i]->getBlock() != root->getBlock())
      return Refusal("a part of it is computed in another block, so that one "
                     "computation may serve several turns",
                     links[i]->getLoc(), "computed here");
    for (Operation *user : links[i]->getUsers()) {
      if (user != root && !own.contains(user))
        return Refusal("a part of it has another user", user->getLoc(),
                       "used here");
      if (user != root)
        links.insert(user);
    }
  }
  chain.links = llvm::to_vector(llvm::reverse(links));
  return {};
}

//===-- Building ---------------------------------------------------------===//

/// [batch..., rows, columns] as [batch, heads, rows, columns].
Value asHeads(RewriterBase &rewriter, Location loc, Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getRank() == 4)
    return value;
  SmallVector<int64_t> shape(type.getShape());
  SmallVector<ReassociationIndices> groups;
  if (type.getRank() == 3) {
    shape.insert(shape.begin() + 1, 1);
    groups = {{0, 1}, {2}, {3}};
  } else {
    shape.insert(shape.begin(), {1, 1});
    groups = {{0, 1, 2}, {3}};
  }
  return tensor::ExpandShapeOp::create(
      rewriter, loc, RankedTensorType::get(shape, type.getElementType()), value,
      groups);
}

/// A mask or bias, read at `map` of scores of `rank`, as
/// [batch|1, heads|1, queries|1, keys].
Value asBroadcast(RewriterBase &rewriter, Location loc, Value value,
                  AffineMap map, unsigned rank) {
  if (!value)
    return value;
  auto type = cast<RankedTensorType>(value.getType());
  // Where the scores' own indices stand among [batch, heads, queries, keys].
  static constexpr int64_t kPlaces[3][4] = {
      {2, 3, 0, 0}, {0, 2, 3, 0}, {0, 1, 2, 3}};
  SmallVector<int64_t> shape(4, 1);
  SmallVector<ReassociationIndices> groups;
  int64_t next = 0;
  for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
    int64_t place = kPlaces[rank - 2][cast<AffineDimExpr>(expr).getPosition()];
    shape[place] = type.getDimSize(dim);
    groups.emplace_back();
    for (; next <= place; ++next)
      groups.back().push_back(next);
  }
  if (type.getRank() == 4)
    return value;
  return tensor::ExpandShapeOp::create(
      rewriter, loc, RankedTensorType::get(shape, type.getElementType()), value,
      groups);
}

/// Rows and columns exchanged; the transpose that made `value` is undone.
Value transposed(RewriterBase &rewriter, Location loc, Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> swap =
      llvm::to_vector(llvm::seq<int64_t>(0, type.getRank()));
  std::swap(swap[swap.size() - 1], swap[swap.size() - 2]);
  if (auto made = value.getDefiningOp<linalg::TransposeOp>())
    if (made.getPermutation() == ArrayRef<int64_t>(swap))
      return made.getInput();
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(rewriter, loc, value);
  std::swap(sizes[sizes.size() - 1], sizes[sizes.size() - 2]);
  Value out =
      tensor::EmptyOp::create(rewriter, loc, sizes, type.getElementType());
  return linalg::TransposeOp::create(rewriter, loc, value, out, swap)
      ->getResult(0);
}

} // namespace

bool looksLikeWeighing(Operation *op) {
  std::optional<Contraction> weighing = readContraction(op);
  if (!weighing)
    return false;
  ScoreReader reader(op->getContext(), weighing->rank);
  SmallVector<Operation *> links;
  return readWeights(weighing->left(), reader, links).has_value();
}

Refusal matchHandwritten(Operation *root, HandwrittenChain &chain) {
  std::optional<Contraction> weighing = readContraction(root);
  if (!weighing)
    return Refusal("it is not a product of weights and values");
  chain.weighing = *weighing;
  unsigned rank = weighing->rank;
  ScoreReader reader(root->getContext(), rank);
  SmallVector<Operation *> read;
  std::optional<Weights> weights = readWeights(weighing->left(), reader, read);
  if (!weights)
    return Refusal("its weights are not the softmax of rows of scores");
  if (Refusal no = peel(weights->scores, rank, weights->where, chain))
    return no;
  llvm::append_range(read, reader.ops());
  if (Refusal no = collectLinks(chain, read))
    return no;

  auto queries = cast<RankedTensorType>(chain.scores.left().getType());
  if (rank == 4 && queries.isDynamicDim(1))
    return Refusal("its number of heads is not static");
  Value tensors[] = {chain.scores.left(), chain.scores.right(),
                     chain.weighing.right(), root->getResult(0)};
  for (Value value : tensors) {
    Type type = getElementTypeOrSelf(value);
    if (!isa<Float32Type, Float16Type, BFloat16Type>(type))
      return Refusal("it computes with other numbers than f32, bf16 and f16");
  }
  return {};
}

AttentionOp fuseHandwritten(HandwrittenChain &chain, RewriterBase &rewriter) {
  linalg::LinalgOp root = chain.weighing.op;
  MLIRContext *context = rewriter.getContext();
  SmallVector<Location> locs = {root.getLoc()};
  for (Operation *link : chain.links)
    locs.push_back(link->getLoc());
  Location loc = FusedLoc::get(context, locs);
  unsigned rank = chain.weighing.rank;

  Value key = chain.scores.right(), value = chain.weighing.right();
  if (!chain.scores.rightByRows)
    key = transposed(rewriter, loc, key);
  if (chain.weighing.rightByRows)
    value = transposed(rewriter, loc, value);
  Value query = asHeads(rewriter, loc, chain.scores.left());
  key = asHeads(rewriter, loc, key);
  value = asHeads(rewriter, loc, value);

  auto resultType = cast<RankedTensorType>(root->getResult(0).getType());
  auto sizeOf = [](Value v, int64_t dim) {
    return cast<RankedTensorType>(v.getType()).getDimSize(dim);
  };
  auto type = RankedTensorType::get(
      {sizeOf(query, 0), sizeOf(query, 1), sizeOf(query, 2), sizeOf(value, 3)},
      resultType.getElementType());
  auto fused = AttentionOp::create(
      rewriter, loc, TypeRange{type}, query, key, value,
      asBroadcast(rewriter, loc, chain.mask, chain.maskMap, rank),
      asBroadcast(rewriter, loc, chain.bias, chain.biasMap, rank),
      /*diagonals=*/Value(), /*slopes=*/Value(), /*sinks=*/Value(),
      /*lengths=*/Value(), /*blocks=*/Value(),
      rewriter.getF32FloatAttr(chain.scale),
      CausalAlignAttr::get(context, CausalAlign::None), IntegerAttr(),
      FloatAttr(), DenseI64ArrayAttr());

  Value result = fused.getResult();
  if (rank < 4) {
    SmallVector<ReassociationIndices> groups = {{0, 1}, {2}, {3}};
    if (rank == 2)
      groups = {{0, 1, 2}, {3}};
    result = tensor::CollapseShapeOp::create(rewriter, loc, result, groups);
  }
  if (result.getType() != resultType)
    result = tensor::CastOp::create(rewriter, loc, resultType, result);
  rewriter.replaceOp(root, result);
  return fused;
}

} // namespace attune

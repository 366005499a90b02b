//===- AttentionProducts.cpp - The two products of attention ----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionProducts.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace attune {
namespace {

/// Zero everywhere: what a product starts its sums from.
bool isZero(Value init) {
  if (auto fill = init.getDefiningOp<linalg::FillOp>())
    init = fill.getInputs()[0];
  return matchPattern(init, m_AnyZeroFloat());
}

unsigned loopAt(AffineMap map, unsigned dim) {
  return cast<AffineDimExpr>(map.getResult(dim)).getPosition();
}

/// An operand of a product whose loops are labelled.
LabelledTensor labelled(linalg::LinalgOp op, OpOperand &operand,
                        ArrayRef<unsigned> loops) {
  LabelledTensor tensor;
  tensor.value = operand.get();
  AffineMap map = op.getMatchingIndexingMap(&operand);
  for (unsigned i = 0; i < map.getNumResults(); ++i)
    tensor.labels.push_back(loops[loopAt(map, i)]);
  return tensor;
}

/// Labels of loops, of which `map` reads a tensor with the given labels; the
/// one other loop has label `rest`.
std::optional<SmallVector<unsigned>>
labelLoops(AffineMap map, ArrayRef<unsigned> labels, unsigned rest) {
  if (map.getNumDims() != labels.size() + 1)
    return std::nullopt;
  SmallVector<unsigned> loops(map.getNumDims(), rest);
  for (unsigned i = 0; i < map.getNumResults(); ++i)
    loops[loopAt(map, i)] = labels[i];
  return loops;
}

//===-- Keys and values that were repeated for groups of heads -----------===//

/// A tensor whose dimension `label` repeats each entry of `source` `count`
/// times, one after another.
struct Repeat {
  LabelledTensor source;
  unsigned label = 0;
  int64_t count = 1;
  SmallVector<Operation *> ops;
};

/// Undoes transposes.
void seeThroughTransposes(LabelledTensor &tensor,
                          SmallVectorImpl<Operation *> &ops) {
  while (auto made = tensor.value.getDefiningOp<linalg::TransposeOp>()) {
    SmallVector<unsigned> labels(tensor.labels.size());
    for (auto [i, from] : llvm::enumerate(made.getPermutation()))
      labels[from] = tensor.labels[i];
    tensor = {made.getInput(), labels};
    ops.push_back(made);
  }
}

/// The one input of an op that copies it, and the map that it is read at for
/// each element of the result.
std::optional<std::pair<Value, AffineMap>> readCopy(Value value) {
  auto op = value.getDefiningOp<linalg::LinalgOp>();
  if (!op || !op.hasPureTensorSemantics() || op.getNumDpsInputs() != 1 ||
      op->getNumResults() != 1 || op.getNumReductionLoops() != 0 ||
      op.getBlock()->getTerminator()->getOperand(0) !=
          op.getBlock()->getArgument(0))
    return std::nullopt;
  OpOperand *input = op.getDpsInputOperand(0);
  AffineMap inverse =
      inversePermutation(op.getMatchingIndexingMap(op.getDpsInitOperand(0)));
  if (!inverse || !isa<RankedTensorType>(input->get().getType()))
    return std::nullopt;
  return std::pair(input->get(),
                   op.getMatchingIndexingMap(input).compose(inverse));
}

/// Repeats by a map: head h reads head `h floordiv count`.
std::optional<Repeat> readQuotientMap(const LabelledTensor &tensor) {
  auto copy = readCopy(tensor.value);
  if (!copy)
    return std::nullopt;
  Repeat repeat;
  repeat.source.value = copy->first;
  llvm::SmallBitVector seen(tensor.labels.size());
  for (AffineExpr expr : copy->second.getResults()) {
    if (auto quotient = dyn_cast<AffineBinaryOpExpr>(expr)) {
      auto count = dyn_cast<AffineConstantExpr>(quotient.getRHS());
      if (quotient.getKind() != AffineExprKind::FloorDiv || !count ||
          repeat.count != 1)
        return std::nullopt;
      repeat.count = count.getValue();
      expr = quotient.getLHS();
      if (auto dim = dyn_cast<AffineDimExpr>(expr))
        repeat.label = tensor.labels[dim.getPosition()];
    }
    auto dim = dyn_cast<AffineDimExpr>(expr);
    if (!dim || seen.test(dim.getPosition()))
      return std::nullopt;
    seen.set(dim.getPosition());
    repeat.source.labels.push_back(tensor.labels[dim.getPosition()]);
  }
  if (!seen.all() || repeat.count <= 1)
    return std::nullopt;
  repeat.ops.push_back(tensor.value.getDefiningOp());
  return repeat;
}

/// `value` without its dimension `dim` of size one, if that was only added.
Value withoutUnit(Value value, unsigned dim) {
  auto expand = value.getDefiningOp<tensor::ExpandShapeOp>();
  if (!expand || expand.getResultType().getDimSize(dim) != 1 ||
      expand.getSrcType().getRank() + 1 != expand.getResultType().getRank())
    return {};
  for (ReassociationIndices &group : expand.getReassociationIndices())
    if (group.size() == 2 && llvm::is_contained(group, int64_t(dim)))
      return expand.getSrc();
  return {};
}

/// Repeats by a new dimension after the heads, which is then merged with them.
std::optional<Repeat> readMergedCopies(const LabelledTensor &tensor) {
  auto collapse = tensor.value.getDefiningOp<tensor::CollapseShapeOp>();
  if (!collapse ||
      collapse.getSrcType().getRank() != tensor.getType().getRank() + 1)
    return std::nullopt;
  // The labels of the tensor before; the new dimension has none.
  constexpr unsigned kNew = -1;
  Repeat repeat;
  SmallVector<unsigned> wide;
  for (auto [i, group] : llvm::enumerate(collapse.getReassociationIndices())) {
    wide.push_back(tensor.labels[i]);
    if (group.size() == 1)
      continue;
    repeat.label = tensor.labels[i];
    repeat.count = collapse.getSrcType().getDimSize(group[1]);
    wide.push_back(kNew);
  }
  auto copy = readCopy(collapse.getSrc());
  if (!copy || ShapedType::isDynamic(repeat.count) || repeat.count < 1)
    return std::nullopt;
  auto [source, map] = *copy;
  SmallVector<unsigned> labels;
  std::optional<unsigned> unit;
  for (auto [i, expr] : llvm::enumerate(map.getResults())) {
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      labels.push_back(wide[dim.getPosition()]);
    else if (isa<AffineConstantExpr>(expr) && !unit)
      unit = i;
    else
      return std::nullopt;
  }
  repeat.ops = {collapse, collapse.getSrc().getDefiningOp()};
  if (unit) {
    repeat.ops.push_back(source.getDefiningOp());
    source = withoutUnit(source, *unit);
  }
  if (!source || labels.size() != tensor.labels.size() ||
      llvm::is_contained(labels, kNew))
    return std::nullopt;
  repeat.source = {source, labels};
  return repeat;
}

std::optional<Repeat> readRepeat(LabelledTensor tensor) {
  SmallVector<Operation *> transposes;
  seeThroughTransposes(tensor, transposes);
  std::optional<Repeat> repeat = readQuotientMap(tensor);
  if (!repeat)
    repeat = readMergedCopies(tensor);
  if (!repeat)
    return std::nullopt;
  transposes.append(repeat->ops);
  seeThroughTransposes(repeat->source, transposes);
  repeat->ops = transposes;
  return repeat;
}

/// Keys and values as few heads as they were before both were repeated.
/// Returns the label of the heads, if so.
std::optional<unsigned> undoRepeats(ScoreProduct &product) {
  std::optional<Repeat> keys = readRepeat(product.key);
  std::optional<Repeat> values = readRepeat(product.value);
  if (!keys || !values || keys->label != values->label ||
      keys->count != values->count)
    return std::nullopt;
  int64_t heads = product.query.sizeOf(keys->label);
  int64_t few = keys->source.sizeOf(keys->label);
  if (ShapedType::isDynamic(heads) || ShapedType::isDynamic(few) ||
      few * keys->count != heads || values->source.sizeOf(keys->label) != few)
    return std::nullopt;
  product.key = keys->source;
  product.value = values->source;
  product.repeats = keys->ops;
  product.repeats.append(values->ops);
  return keys->label;
}

//===-- What each dimension is -------------------------------------------===//

/// Deals the dimensions of the weights among batch, heads and queries.
MatchFailure assignRoles(const Weighing &weighing, ScoreProduct &product) {
  auto refuse = [&](const Twine &reason) {
    return MatchFailure(reason, product.op.getLoc(), "multiplied here");
  };
  if (product.query.has(weighing.key))
    std::swap(product.query, product.key);
  if (product.query.has(weighing.key) || !product.key.has(weighing.key))
    return refuse("its scores are not one product of queries and keys");

  SmallVector<unsigned> ofKeys, others;
  for (unsigned label = 0; label < weighing.rank; ++label) {
    if (label == weighing.key)
      continue;
    if (!product.query.has(label))
      return refuse("its queries are the same for all of a batch or all heads");
    bool inKey = product.key.has(label);
    if (inKey != product.value.has(label))
      return refuse("its keys and values are not shared by the same heads");
    (inKey ? ofKeys : others).push_back(label);
  }
  if (others.empty())
    return refuse("each of its queries has keys of its own");
  // Where keys lack the heads, too, the queries are what varies fastest.
  product.rows = others.pop_back_val();

  std::optional<unsigned> grouped = undoRepeats(product);
  if (grouped) {
    // Heads in groups are the innermost of what keys have.
    llvm::erase(ofKeys, *grouped);
    ofKeys.push_back(*grouped);
  }
  SmallVector<Operation *> transposes;
  for (LabelledTensor *tensor : {&product.query, &product.key, &product.value})
    seeThroughTransposes(*tensor, transposes);
  product.repeats.append(transposes);

  // One dimension alone, which keys have, may be a batch as well as heads.
  bool hasKeyHeads = ofKeys.size() > 1 || grouped;
  if (hasKeyHeads)
    product.heads.push_back(ofKeys.pop_back_val());
  product.batch = ofKeys;
  product.heads.append(others);

  auto isDynamic = [&](unsigned label) {
    return ShapedType::isDynamic(product.query.sizeOf(label));
  };
  if (llvm::any_of(product.heads, isDynamic))
    return refuse("its number of heads is not static");
  if (llvm::count_if(product.batch, isDynamic) > 1)
    return refuse("more than one dimension of its batch is not static");
  for (unsigned label : product.heads)
    product.queryHeads *= product.query.sizeOf(label);
  if (hasKeyHeads)
    product.keyHeads = product.key.sizeOf(product.heads.front());
  if (ShapedType::isDynamic(product.keyHeads) || product.keyHeads == 0)
    return refuse("its number of heads is not static");
  return {};
}

} // namespace

bool isProduct(Operation *candidate) {
  auto op = dyn_cast_or_null<linalg::LinalgOp>(candidate);
  return op && op.hasPureTensorSemantics() && op->getNumResults() == 1 &&
         op.getNumDpsInputs() == 2 && linalg::isaContractionOpInterface(op) &&
         op.getNumReductionLoops() == 1 && isZero(op.getDpsInits()[0]);
}

std::optional<Weighing> readWeighing(Operation *candidate, unsigned weights) {
  if (!isProduct(candidate))
    return std::nullopt;
  Weighing weighing;
  weighing.op = cast<linalg::LinalgOp>(candidate);
  OpOperand *from = weighing.op.getDpsInputOperand(weights);
  AffineMap map = weighing.op.getMatchingIndexingMap(from);
  weighing.rank = map.getNumResults();
  weighing.weights.value = from->get();
  llvm::append_range(weighing.weights.labels,
                     llvm::seq<unsigned>(0, weighing.rank));
  auto loops = labelLoops(map, weighing.weights.labels, weighing.valueWidth());
  if (weighing.rank < 2 || !loops)
    return std::nullopt;
  SmallVector<unsigned> summed;
  weighing.op.getReductionDims(summed);
  weighing.key = (*loops)[summed.front()];
  weighing.value = labelled(
      weighing.op, *weighing.op.getDpsInputOperand(1 - weights), *loops);
  weighing.result =
      labelled(weighing.op, *weighing.op.getDpsInitOperand(0), *loops);
  weighing.result.value = weighing.op->getResult(0);
  if (weighing.key == weighing.valueWidth() ||
      !weighing.value.has(weighing.key) ||
      !weighing.value.has(weighing.valueWidth()) ||
      !weighing.result.has(weighing.valueWidth()))
    return std::nullopt;
  return weighing;
}

MatchFailure readScoreProduct(Operation *candidate, AffineMap map,
                              const Weighing &weighing, ScoreProduct &product) {
  auto op = cast<linalg::LinalgOp>(candidate);
  product.op = op;
  SmallVector<unsigned> labels;
  for (AffineExpr expr : map.getResults()) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    if (!dim || dim.getPosition() >= weighing.rank ||
        llvm::is_contained(labels, dim.getPosition()))
      break;
    labels.push_back(dim.getPosition());
  }
  AffineMap out = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  if (labels.size() != weighing.rank || out.getNumResults() != weighing.rank)
    return MatchFailure("its scores are repeated before their softmax",
                        op.getLoc(), "made here");
  auto loops = labelLoops(out, labels, weighing.width());
  if (!loops)
    return MatchFailure("its scores are not one product of queries and keys",
                        op.getLoc(), "multiplied here");
  product.query = labelled(op, *op.getDpsInputOperand(0), *loops);
  product.key = labelled(op, *op.getDpsInputOperand(1), *loops);
  product.value = weighing.value;
  return assignRoles(weighing, product);
}

} // namespace attune

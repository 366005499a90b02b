//===- WeightShards.cpp - Which rank has which rows of a weight -----------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WeightShards.h"

#include <numeric>

using namespace mlir;

namespace attune {

/// Columns of a hidden layer that ranks leave together where they can: a group
/// of what is kept in few bits.
static constexpr int64_t kBlockColumns = 32;

FailureOr<WeightShards::Range>
WeightShards::hiddenColumns(Operation *layer, int64_t width) const {
  if (width < ranks)
    return layer->emitError("a feed-forward layer of width ")
           << width << " cannot be shared by " << ranks
           << " ranks, of which some would have none; --mesh=tp=N takes an "
              "N of at most as many";
  // Where parts are not equal, they at least are whole blocks of columns.
  int64_t block = width % ranks == 0 ? width / ranks : width;
  block = std::gcd(block, kBlockColumns);
  if (width / block < ranks)
    block = 1;
  return Range{0, width / block, block};
}

WeightOp WeightShards::weightOf(Value value) {
  auto get = value.getDefiningOp<WeightGetOp>();
  WeightOp weight =
      get ? symbols.lookup<WeightOp>(get.getWeight()) : WeightOp();
  if (!weight) {
    emitError(value.getLoc(), "a matrix that is computed cannot be cut among "
                              "ranks");
    return {};
  }
  if (weight.getPanelWidth() || weight.getGroup()) {
    weight.emitOpError("is in panels or in few bits already, and cannot be cut "
                       "among ranks");
    return {};
  }
  return weight;
}

SmallVector<int64_t> WeightShards::wholeShape(WeightOp weight) {
  auto known = cuts.find(weight);
  ArrayRef<int64_t> shape = known == cuts.end()
                                ? weight.getLayerType().getShape()
                                : known->second.whole.getShape();
  return SmallVector<int64_t>(shape.drop_front(weight.getParts() ? 1 : 0));
}

LogicalResult WeightShards::apply(Value value, WeightOp weight,
                                  const WeightCut &cut,
                                  ArrayRef<int64_t> shape) {
  auto known = cuts.find(weight);
  if (known != cuts.end() && !(known->second.cut == cut)) {
    InFlightDiagnostic diag = emitError(value.getLoc(), "cannot cut weight '")
                              << weight.getSymName()
                              << "' among ranks in two ways";
    diag.attachNote(weight.getLoc()) << "the weight is declared here";
    return diag;
  }
  Type element = weight.getTensorType().getElementType();
  SmallVector<int64_t> layer(shape);
  if (weight.getParts())
    layer.insert(layer.begin(), int64_t(*weight.getParts()));
  if (known == cuts.end()) {
    cuts.insert({weight, {cut, weight.getLayerType()}});
    SmallVector<int64_t> stacked(layer);
    if (weight.getStacked())
      stacked.insert(stacked.begin(), weight.getNumLayers());
    weight.setType(RankedTensorType::get(stacked, element));
    setCut(weight, cut);
  }
  value.setType(RankedTensorType::get(layer, element));
  done.insert(value);
  return success();
}

/// A description of the whole weight, without rows.
static WeightCut describe(ArrayRef<int64_t> shape, int64_t ranks) {
  WeightCut cut;
  cut.wholeRows = shape[0];
  for (int64_t size : shape.drop_front())
    cut.wholeColumns *= size;
  cut.rows.resize(ranks);
  return cut;
}

LogicalResult WeightShards::cutRows(Value value, ArrayRef<Range> ranges) {
  WeightOp weight = weightOf(value);
  if (!weight)
    return failure();
  SmallVector<int64_t> shape = wholeShape(weight);
  WeightCut cut = describe(shape, ranks);
  int64_t rows = 0;
  for (const Range &range : ranges) {
    Shares shares = {range.units, ranks / range.repeat};
    int64_t count = shares.most() * range.width;
    rows += count;
    for (int64_t rank = 0; rank < ranks; ++rank)
      cut.rows[rank].push_back(
          {range.begin + shares.first(rank / range.repeat) * range.width,
           count});
  }
  shape[0] = rows;
  return apply(value, weight, cut, shape);
}

LogicalResult WeightShards::cutPaddedRows(Value value, int64_t each) {
  WeightOp weight = weightOf(value);
  if (!weight)
    return failure();
  SmallVector<int64_t> shape = wholeShape(weight);
  WeightCut cut = describe(shape, ranks);
  for (int64_t rank = 0; rank < ranks; ++rank) {
    int64_t begin = std::min(rank * each, shape[0]);
    int64_t end = std::min(begin + each, shape[0]);
    if (end > begin)
      cut.rows[rank].push_back({begin, end - begin});
  }
  shape[0] = each + 1;
  return apply(value, weight, cut, shape);
}

LogicalResult WeightShards::cutColumns(Value value, const Range &range) {
  WeightOp weight = weightOf(value);
  if (!weight)
    return failure();
  SmallVector<int64_t> shape = wholeShape(weight);
  if (shape.size() != 2 || range.begin != 0 || range.repeat != 1 ||
      shape[1] != range.units * range.width)
    return emitError(value.getLoc(), "a matrix of ")
           << shape.back() << " columns cannot be cut in " << range.units
           << " parts of " << range.width << " columns";
  WeightCut cut = describe(shape, ranks);
  Shares shares = {range.units, ranks};
  for (int64_t rank = 0; rank < ranks; ++rank) {
    cut.rows[rank].push_back({0, shape[0]});
    cut.columns.push_back(
        {shares.first(rank) * range.width, shares.count(rank) * range.width});
  }
  shape[1] = shares.most() * range.width;
  return apply(value, weight, cut, shape);
}

LogicalResult WeightShards::cutParts(Value value) {
  WeightOp weight = weightOf(value);
  if (!weight)
    return failure();
  auto known = cuts.find(weight);
  int64_t parts = known == cuts.end() ? int64_t(weight.getNumParts())
                                      : known->second.cut.wholeRows;
  SmallVector<int64_t> part = wholeShape(weight), whole(part);
  whole.insert(whole.begin(), parts);
  WeightCut cut = describe(whole, ranks);
  cut.cutsParts = true;
  Shares shares = {parts, ranks};
  for (int64_t rank = 0; rank < ranks; ++rank)
    cut.rows[rank].push_back({shares.first(rank), shares.most()});
  weight.setParts(shares.most());
  return apply(value, weight, cut, part);
}

LogicalResult WeightShards::keepOnFirst(Value value) {
  WeightOp weight = weightOf(value);
  if (!weight)
    return failure();
  SmallVector<int64_t> shape = wholeShape(weight);
  WeightCut cut = describe(shape, ranks);
  cut.rows[0].push_back({0, shape[0]});
  return apply(value, weight, cut, shape);
}

bool WeightShards::isCutElsewhere(Value value) {
  auto get = value.getDefiningOp<WeightGetOp>();
  return get && !isCut(value) &&
         cuts.contains(symbols.lookup<WeightOp>(get.getWeight()));
}

LogicalResult WeightShards::finish() {
  WalkResult walked = module.walk([&](WeightGetOp get) -> WalkResult {
    auto weight = symbols.lookup<WeightOp>(get.getWeight());
    auto known = cuts.find(weight);
    if (known == cuts.end() || done.contains(get.getResult()) ||
        get->use_empty())
      return success();
    InFlightDiagnostic diag = get.emitError("needs the whole weight '")
                              << weight.getSymName()
                              << "', which is cut among ranks for another "
                                 "layer";
    diag.attachNote(weight.getLoc()) << "the weight is declared here";
    return failure();
  });
  return failure(walked.wasInterrupted());
}

} // namespace attune

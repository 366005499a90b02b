//===- WeightShards.cpp - Which rank has which rows of a weight -----------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WeightShards.h"

using namespace mlir;

namespace attune {

WeightOp WeightShards::weightOf(Value value, bool inParts) {
  auto get = value.getDefiningOp<WeightGetOp>();
  WeightOp weight =
      get ? symbols.lookup<WeightOp>(get.getWeight()) : WeightOp();
  if (!weight) {
    emitError(value.getLoc(), "a matrix that is computed cannot be cut among "
                              "ranks");
    return {};
  }
  if (weight.getPanelWidth() || weight.getGroup() ||
      bool(weight.getParts()) != inParts) {
    weight.emitOpError("is in panels, in few bits or in parts already, and "
                       "cannot be cut among ranks");
    return {};
  }
  return weight;
}

ArrayRef<int64_t> WeightShards::wholeShape(WeightOp weight) {
  auto known = cuts.find(weight);
  return known == cuts.end()
             ? ArrayRef<int64_t>(weight.getLayerType().getShape())
             : known->second.whole.getShape();
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
  if (known == cuts.end()) {
    cuts.insert({weight, {cut, weight.getLayerType()}});
    SmallVector<int64_t> stacked(shape);
    if (weight.getStacked())
      stacked.insert(stacked.begin(), weight.getNumLayers());
    weight.setType(RankedTensorType::get(stacked, element));
    setCut(weight, cut);
  }
  value.setType(RankedTensorType::get(shape, element));
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

LogicalResult WeightShards::cutRows(Value value, ArrayRef<Range> ranges,
                                    int64_t padding) {
  WeightOp weight = weightOf(value);
  if (!weight)
    return failure();
  SmallVector<int64_t> shape(wholeShape(weight));
  WeightCut cut = describe(shape, ranks);
  int64_t rows = padding;
  for (const Range &range : ranges)
    rows += range.count;
  for (int64_t rank = 0; rank < ranks; ++rank)
    for (const Range &range : ranges) {
      int64_t begin =
          std::min(range.begin + rank / range.repeat * range.stride, shape[0]);
      int64_t end = std::min(begin + range.count, shape[0]);
      if (end > begin)
        cut.rows[rank].push_back({begin, end - begin});
    }
  shape[0] = rows;
  return apply(value, weight, cut, shape);
}

LogicalResult WeightShards::cutColumns(Value value) {
  WeightOp weight = weightOf(value);
  if (!weight)
    return failure();
  SmallVector<int64_t> shape(wholeShape(weight));
  if (shape.size() != 2 || shape[1] % ranks != 0)
    return emitError(value.getLoc(), "a matrix of ")
           << shape.back() << " columns cannot be cut in " << ranks
           << " equal parts";
  WeightCut cut = describe(shape, ranks);
  cut.cutsColumns = true;
  for (auto &rows : cut.rows)
    rows.push_back({0, shape[0]});
  shape[1] /= ranks;
  return apply(value, weight, cut, shape);
}

LogicalResult WeightShards::cutParts(Value value) {
  WeightOp weight = weightOf(value, /*inParts=*/true);
  if (!weight)
    return failure();
  SmallVector<int64_t> shape(wholeShape(weight));
  if (shape[0] % ranks != 0)
    return emitError(value.getLoc())
           << shape[0] << " parts cannot be cut in " << ranks << " equal parts";
  WeightCut cut = describe(shape, ranks);
  cut.cutsParts = true;
  shape[0] /= ranks;
  for (int64_t rank = 0; rank < ranks; ++rank)
    cut.rows[rank].push_back({rank * shape[0], shape[0]});
  weight.setParts(shape[0]);
  return apply(value, weight, cut, shape);
}

LogicalResult WeightShards::keepOnFirst(Value value) {
  WeightOp weight = weightOf(value);
  if (!weight)
    return failure();
  SmallVector<int64_t> shape(wholeShape(weight));
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

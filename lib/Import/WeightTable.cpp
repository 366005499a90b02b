//===- WeightTable.cpp - The attune.weight symbols of a module --*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WeightTable.h"

#include "attune/Support/TensorNames.h"

using namespace mlir;
using namespace attune;

static bool namesRepeat(const spec::WeightSource &source) {
  return source.tensor.find("{i}") != std::string::npos;
}

/// `{i}` of a layer that stands alone is its only number; that of a stacked
/// weight stays, with the numbers of the repeats.
static std::string numbered(std::string name, const spec::Layer &layer,
                            bool stacked) {
  std::string number = std::to_string(layer.first);
  if (stacked)
    number = placeOfNumbers(spec::numbersOf(layer));
  for (size_t at = 0; (at = name.find("{i}", at)) != std::string::npos;
       at += number.size())
    name.replace(at, 3, number);
  return name;
}

/// Neighbouring rows of one tensor are one piece: GPT-2's q, k and v.
static void append(std::vector<spec::WeightSource> &sources,
                   const spec::WeightSource &next) {
  if (!sources.empty()) {
    spec::WeightSource &last = sources.back();
    if (last.tensor == next.tensor && last.transposed == next.transposed &&
        last.scale == next.scale && last.count == 1 && next.count == 1 &&
        last.end >= 0 && last.end == next.begin) {
      last.end = next.end;
      return;
    }
  }
  sources.push_back(next);
}

WeightOp WeightTable::declare(Location loc, StringRef symbol,
                              ArrayRef<WeightPiece> pieces, int64_t columns,
                              const spec::Layer &layer, int64_t parts) {
  std::vector<spec::WeightSource> sources;
  int64_t rows = 0;
  for (const WeightPiece &piece : pieces) {
    int64_t named = 0;
    bool known = true;
    for (const spec::WeightSource &source : piece.sources) {
      append(sources, source);
      named += (source.end - source.begin) * source.count;
      known &= source.end >= 0;
    }
    if (known && named != piece.rows) {
      diags.error(layer.location, "weight '" + symbol.str() + "' takes " +
                                      std::to_string(named) + " rows where " +
                                      std::to_string(piece.rows) +
                                      " are needed");
      return {};
    }
    rows += piece.rows;
  }

  size_t perRepeat = 0;
  for (const spec::WeightSource &source : sources)
    perRepeat += namesRepeat(source);
  bool stacked = layer.repeat > 1 && perRepeat > 0;
  if (stacked && perRepeat != sources.size()) {
    diags.error(layer.location,
                "weight '" + symbol.str() +
                    "' of a repeated layer names some tensors with {i} and "
                    "some without; either each repeat has its own or all "
                    "share one");
    return {};
  }

  MLIRContext *context = module.getContext();
  SmallVector<Attribute> attributes;
  for (const spec::WeightSource &source : sources)
    attributes.push_back(WeightSourceAttr::get(
        context, numbered(source.tensor, layer, stacked), source.transposed,
        source.begin, source.end, source.stride, source.count, source.step));
  // The factors of pieces before they are stored, where these are not 1.
  DenseF64ArrayAttr scales;
  if (llvm::any_of(sources,
                   [](const auto &source) { return source.scale != 1; }))
    scales = DenseF64ArrayAttr::get(
        context, llvm::map_to_vector(
                     sources, [](const auto &source) { return source.scale; }));
  SmallVector<int64_t> shape;
  if (stacked)
    shape.push_back(layer.repeat);
  if (parts)
    shape.push_back(parts);
  shape.push_back(rows);
  if (columns)
    shape.push_back(columns);

  // Layers that name the same tensors share one copy.
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  auto type = RankedTensorType::get(shape, storage);
  ArrayAttr from = builder.getArrayAttr(attributes);
  WeightOp &weight = bySource[{type, from, Attribute(scales)}];
  if (weight)
    return weight;
  if (last)
    builder.setInsertionPointAfter(last);
  weight = last =
      WeightOp::create(builder, loc, symbol, type, stacked, from,
                       /*panel_width=*/nullptr, /*gated=*/false,
                       parts ? builder.getI64IntegerAttr(parts) : IntegerAttr(),
                       /*gain=*/FlatSymbolRefAttr(),
                       /*gain_offset=*/llvm::APFloat(0.0f));
  if (scales)
    weight->setAttr("attune.scales", scales);
  return weight;
}

Value WeightTable::get(OpBuilder &builder, Location loc, StringRef symbol,
                       ArrayRef<WeightPiece> pieces, int64_t columns,
                       const spec::Layer &layer, Value index, int64_t parts) {
  WeightOp &weight = declared[symbol];
  if (!weight)
    weight = declare(loc, symbol, pieces, columns, layer, parts);
  if (!weight)
    return {};
  return WeightGetOp::create(builder, loc, weight.getLayerType(),
                             weight.getSymName(),
                             weight.getStacked() ? index : Value());
}

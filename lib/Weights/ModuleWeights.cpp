//===- ModuleWeights.cpp - What a module's weights are made of --*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ModuleWeights.h"

#include "Attune/AttuneCut.h"
#include "Attune/AttuneFactors.h"
#include "Attune/AttuneKept.h"
#include "Attune/AttunePanels.h"
#include "attune/Weights/WeightFile.h"

using namespace mlir;

namespace attune {

std::optional<int64_t> notedRows(WeightOp weight) {
  auto rows = weight->getAttrOfType<IntegerAttr>("attune.rows");
  return rows ? std::optional<int64_t>(rows.getInt()) : std::nullopt;
}

/// Rows that a packed weight may have fewer than its panels hold.
static int64_t maxPadding(WeightOp weight) {
  std::optional<int64_t> width = weight.getPanelWidth();
  if (!width || notedRows(weight))
    return 0;
  return (*width - 1) * (weight.getGated() ? 2 : 1);
}

std::vector<int64_t> unpackedShape(WeightOp weight) {
  ArrayRef<int64_t> shape = weight.getPartType().getShape();
  std::optional<int64_t> width = weight.getPanelWidth();
  std::vector<int64_t> result(shape.begin(), shape.end());
  if (width && !shape.empty()) {
    result = {notedRows(weight).value_or(shape[0] * *width)};
    if (shape.size() > 2)
      result.push_back(shape[1] * weight.getColumnsSideBySide());
  }
  if (weight.holdsScales() && hasScalesInLevels(weight))
    result.back() = result.back() /
                    bytesOfScales(*weight.getGroup(), weight.hasZeros()) *
                    kScaleColumns;
  else if (weight.holdsScales())
    result.back() =
        result.back() / (weight.hasZeros() ? 2 : 1) * *weight.getGroup();
  return result;
}

/// The matrix that its sources are: itself, what it is a factor or a part of,
/// or of a weight that ranks share the parts of all.
static std::vector<int64_t> sourceShape(WeightOp weight) {
  if (std::optional<Factor> factor = factorOf(weight))
    return {factor->rows, factor->columns};
  if (auto whole = weight->getAttrOfType<DenseI64ArrayAttr>("attune.order"))
    return {whole[0], whole[1]};
  std::vector<int64_t> shape = unpackedShape(weight);
  auto widen = [&](int64_t rows, int64_t columns) {
    shape[0] = rows;
    if (shape.size() > 1)
      shape = {rows, columns};
  };
  std::optional<WeightCut> cut = getCut(weight);
  if (cut && !cut->cutsParts)
    widen(cut->wholeRows, cut->wholeColumns);
  if (std::optional<KeptPart> kept = keptOf(weight))
    widen(kept->wholeRows, kept->wholeColumns);
  return shape;
}

static SourceLocation toSource(Location loc,
                               const std::shared_ptr<const SourceFile> &file) {
  SourceLocation where;
  auto place = loc->findInstanceOf<FileLineColLoc>();
  if (!place)
    return where;
  if (file && file->path == place.getFilename().getValue()) {
    where.file = file;
  } else {
    auto other = std::make_shared<SourceFile>();
    other->path = place.getFilename().str();
    where.file = other;
  }
  where.line = place.getLine();
  where.column = place.getColumn();
  return where;
}

std::vector<spec::WeightSource> sourcesOf(WeightOp weight, int64_t layer,
                                          int64_t part) {
  auto scales = weight->getAttrOfType<DenseF64ArrayAttr>("attune.scales");
  std::vector<spec::WeightSource> result;
  for (auto [i, source] :
       llvm::enumerate(weight.getSources().getAsRange<WeightSourceAttr>()))
    result.push_back(
        {substitutePart(substituteLayer(source.getTensor().str(), layer), part),
         source.getTransposed(), source.getBegin(), source.getEnd(),
         source.getStride(), source.getCount(), source.getStep(),
         scales ? scales[i] : 1});
  return result;
}

int64_t countAllParts(WeightOp weight) {
  std::optional<WeightCut> cut = getCut(weight);
  return cut && cut->cutsParts ? cut->wholeRows : weight.getNumParts();
}

static bool partsShareTensors(WeightOp weight) {
  auto sources = weight.getSources().getAsRange<WeightSourceAttr>();
  return llvm::any_of(
      sources, [](WeightSourceAttr source) { return source.getStep() != 0; });
}

void addNeeded(WeightOp weight, const std::shared_ptr<const SourceFile> &file,
               std::vector<NeededWeight> &needed) {
  for (int64_t layer = 0; layer < weight.getNumLayers(); ++layer) {
    // Parts of one tensor are wanted as that tensor, whole.
    if (partsShareTensors(weight)) {
      for (auto [i, source] : llvm::enumerate(
               weight.getSources().getAsRange<WeightSourceAttr>())) {
        NeededWeight &entry = needed.emplace_back();
        entry.name = substituteLayer(weight.getSymName().str(), layer);
        entry.shape = sourceShape(weight);
        bool columns = source.getTransposed() && entry.shape.size() > 1;
        entry.shape[columns ? 1 : 0] = source.getStep() * countAllParts(weight);
        entry.sources = {sourcesOf(weight, layer, 0)[i]};
        entry.sources[0].begin = 0;
        entry.sources[0].end = -1;
        entry.location = toSource(weight.getLoc(), file);
      }
      continue;
    }
    int64_t numParts = countAllParts(weight);
    for (int64_t part = 0; part < numParts; ++part) {
      NeededWeight &entry = needed.emplace_back();
      entry.name = substituteLayer(weight.getSymName().str(), layer);
      if (numParts > 1)
        entry.name += "." + std::to_string(part);
      entry.shape = sourceShape(weight);
      std::optional<WeightCut> cut = getCut(weight);
      bool whole =
          !factorOf(weight) && (!cut || cut->cutsParts) && !keptOf(weight);
      entry.padding = whole ? maxPadding(weight) : 0;
      entry.sources = sourcesOf(weight, layer, part);
      entry.location = toSource(weight.getLoc(), file);
    }
  }
}

std::vector<NeededWeight>
neededWeights(ModuleOp module, const std::shared_ptr<const SourceFile> &file) {
  std::vector<NeededWeight> needed;
  for (auto weight : module.getOps<WeightOp>())
    addNeeded(weight, file, needed);
  return needed;
}

bool checkWeights(ModuleOp module, const Checkpoint &checkpoint,
                  DiagnosticEngine &diags,
                  std::shared_ptr<const SourceFile> file) {
  return checkWeights(neededWeights(module, file), checkpoint, diags);
}

bool checkWeight(WeightOp weight, const Checkpoint &checkpoint,
                 DiagnosticEngine &diags) {
  std::vector<NeededWeight> needed;
  addNeeded(weight, nullptr, needed);
  return checkWeights(needed, checkpoint, diags, /*complete=*/false);
}

} // namespace attune

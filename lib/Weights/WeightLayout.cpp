//===- WeightLayout.cpp - Where each weight lies in the blob ----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Weights/WeightLayout.h"

#include "Attune/AttuneCut.h"
#include "Attune/AttunePanels.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;

namespace attune {

StoredForm formOf(WeightOp weight) {
  std::optional<int64_t> group = weight.getGroup();
  if (!group)
    return {};
  FloatType scales = weight.getScaleType();
  return {weight.getBits(),
          *group,
          weight.hasZeros(),
          hasScalesInLevels(weight) ? ScaleType::Byte
          : scales.isF16()          ? ScaleType::Half
          : scales.isF32()          ? ScaleType::Single
                                    : ScaleType::Power,
          weight.hasByteFloats(),
          weight->hasAttr("attune.ordered")};
}

/// Rounds up to the alignment; false on overflow.
static bool alignUp(int64_t &bytes, int64_t alignment = kWeightAlignment) {
  int64_t sum;
  if (llvm::AddOverflow(bytes, alignment - 1, sum))
    return false;
  bytes = sum / alignment * alignment;
  return true;
}

/// Puts what ranks have of their own behind what they share.
static bool placeRanks(ModuleOp module, WeightLayout &layout) {
  if (layout.ranks == 1)
    return true;
  bool fits = alignUp(layout.sharedBytes, kWeightPage) &&
              alignUp(layout.rankBytes, kWeightPage);
  for (auto weight : module.getOps<WeightOp>())
    if (getCut(weight))
      fits =
          fits && !llvm::AddOverflow(layout.places[weight.getSymName()].offset,
                                     layout.sharedBytes,
                                     layout.places[weight.getSymName()].offset);
  int64_t all;
  return fits && !llvm::MulOverflow(layout.rankBytes, layout.ranks, all) &&
         !llvm::AddOverflow(layout.sharedBytes, all, layout.totalBytes);
}

FailureOr<WeightLayout> layoutWeights(ModuleOp module) {
  WeightLayout layout;
  std::string described;
  llvm::raw_string_ostream description(described);
  for (auto weight : module.getOps<WeightOp>()) {
    RankedTensorType type = weight.getLayerType();
    if (!weight.getTensorType().hasStaticShape())
      return weight.emitOpError("has the dynamic type ")
             << weight.getTensorType() << " and therefore no place in a file";
    if (!type.getElementType().isIntOrFloat())
      return weight.emitOpError("has elements of type ")
             << type.getElementType() << ", which have no size";

    std::optional<WeightCut> cut = getCut(weight);
    if (cut)
      layout.ranks = std::max(layout.ranks, cut->numRanks());
    int64_t &end = cut ? layout.rankBytes : layout.sharedBytes;
    WeightPlace place;
    place.offset = end;
    place.numLayers = weight.getNumLayers();
    // i1 and other narrow integers take a byte.
    place.layerBytes = llvm::divideCeil(type.getElementTypeBitWidth(), 8);
    bool fits = true;
    for (int64_t size : type.getShape())
      fits &= !llvm::MulOverflow(place.layerBytes, size, place.layerBytes);
    place.layerStride = place.layerBytes;
    fits = fits && alignUp(place.layerStride) &&
           !llvm::MulOverflow(place.layerStride, place.numLayers,
                              place.totalBytes) &&
           !llvm::AddOverflow(end, place.totalBytes, end);
    if (!fits)
      return weight.emitOpError("of type ")
             << weight.getTensorType()
             << " makes the weights larger than any file";
    layout.places.insert({weight.getSymName(), place});
    // A copy outside the module: printing an op inside it would verify and
    // number the whole module for each weight.
    OwningOpRef<WeightOp> alone = weight.clone();
    (*alone)->print(description,
                    OpPrintingFlags().useLocalScope().assumeVerified());
    description << '\n';
  }
  layout.totalBytes = layout.sharedBytes;
  if (!placeRanks(module, layout))
    return module.emitError("the weights are larger than any file");
  layout.fingerprint = llvm::xxh3_64bits(described);
  return layout;
}

} // namespace attune

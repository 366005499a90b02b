//===- WeightLayout.cpp - Where each weight lies in the blob ----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Weights/WeightLayout.h"

#include "Attune/AttuneDialect.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;

namespace attune {

/// Rounds up to the alignment; false on overflow.
static bool alignUp(int64_t &bytes) {
  int64_t sum;
  if (llvm::AddOverflow(bytes, kWeightAlignment - 1, sum))
    return false;
  bytes = sum / kWeightAlignment * kWeightAlignment;
  return true;
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

    WeightPlace place;
    place.offset = layout.totalBytes;
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
           !llvm::AddOverflow(layout.totalBytes, place.totalBytes,
                              layout.totalBytes);
    if (!fits)
      return weight.emitOpError("of type ")
             << weight.getTensorType()
             << " makes the weights larger than any file";
    layout.places.insert({weight.getSymName(), place});
    weight->print(description, OpPrintingFlags().useLocalScope());
    description << '\n';
  }
  layout.fingerprint = llvm::xxh3_64bits(described);
  return layout;
}

} // namespace attune

//===- WeightLayout.h - Where each weight lies in the blob ------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_WEIGHTS_WEIGHTLAYOUT_H
#define ATTUNE_WEIGHTS_WEIGHTLAYOUT_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>

/// One blob holds every weight of a compiled model. The lowering (which turns
/// `attune.weight_get` into an address) and the writer of the blob both ask
/// here, so that they cannot disagree.
namespace attune {

/// Every weight, and every layer of a stacked one, starts on a cache line.
constexpr int64_t kWeightAlignment = 64;

/// The place of one `attune.weight`.
struct WeightPlace {
  int64_t offset = 0;      ///< bytes from the start of the blob
  int64_t layerBytes = 0;  ///< bytes of one layer's values
  int64_t layerStride = 0; ///< layerBytes rounded up to kWeightAlignment
  int64_t numLayers = 1;   ///< 1 if the weight is not stacked
  int64_t totalBytes = 0;  ///< numLayers * layerStride

  int64_t getLayerOffset(int64_t layer) const {
    return offset + layer * layerStride;
  }
};

/// The blob: weights in the order of their ops in the module, without holes
/// other than those of the alignment.
struct WeightLayout {
  /// By symbol name; the keys belong to the module's context.
  llvm::MapVector<llvm::StringRef, WeightPlace> places;
  int64_t totalBytes = 0;
  /// A hash of every weight's name, type, packing and sources. Blobs of equal
  /// hashes can stand for each other; two CPUs may pack a model into equally
  /// many bytes in different order.
  uint64_t fingerprint = 0;

  /// The place of `symbol`, or null.
  const WeightPlace *lookup(llvm::StringRef symbol) const {
    auto it = places.find(symbol);
    return it == places.end() ? nullptr : &it->second;
  }
};

/// Lays out every `attune.weight` directly in `module`. Depends on names, types
/// and order of these ops and on nothing else. Fails, with an error at the op,
/// on a weight whose type is dynamic or whose bytes do not fit 63 bits.
mlir::FailureOr<WeightLayout> layoutWeights(mlir::ModuleOp module);

} // namespace attune

#endif // ATTUNE_WEIGHTS_WEIGHTLAYOUT_H

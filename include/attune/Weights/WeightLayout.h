//===- WeightLayout.h - Where each weight lies in the blob ------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_WEIGHTS_WEIGHTLAYOUT_H
#define ATTUNE_WEIGHTS_WEIGHTLAYOUT_H

#include "Attune/AttuneDialect.h"
#include "attune/Weights/StoredForm.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>

/// One blob holds every weight of a compiled model. The lowering (which turns
/// `attune.weight_get` into an address) and the writer of the blob both ask
/// here, so that they cannot disagree.
namespace attune {

/// The form of a weight's numbers in groups; none of any other weight.
StoredForm formOf(WeightOp weight);

/// Every weight, and every layer of a stacked one, starts on a cache line.
constexpr int64_t kWeightAlignment = 64;
/// Files are mapped by such pages.
constexpr int64_t kWeightPage = 4096;

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
/// other than those of the alignment. If ranks share the model, the weights
/// that all of them read come first, and then, on pages of their own, each
/// rank's parts of the others. A rank maps the former and its own parts side by
/// side; places are those that it sees.
struct WeightLayout {
  /// By symbol name; the keys belong to the module's context.
  llvm::MapVector<llvm::StringRef, WeightPlace> places;
  int64_t totalBytes = 0;  ///< of the blob
  int64_t ranks = 1;       ///< that share it
  int64_t sharedBytes = 0; ///< that all of them read; all of the blob if one
  int64_t rankBytes = 0;   ///< that each of several has of its own
  /// Bytes that one process reads.
  int64_t seenBytes() const { return sharedBytes + rankBytes; }
  /// Where in the blob something of rank `rank` is.
  int64_t inBlob(int64_t offset, int64_t rank) const {
    return offset < sharedBytes ? offset : offset + rank * rankBytes;
  }
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

//===- WeightFile.h - Packed weights of a compiled model --------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_WEIGHTS_WEIGHTFILE_H
#define ATTUNE_WEIGHTS_WEIGHTFILE_H

#include "Attune/AttuneDialect.h"
#include "attune/Weights/Checkpoint.h"
#include "attune/Weights/ChosenNumbers.h"
#include "attune/Weights/WeightLayout.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

/// The blob of weights that compiled code reads: values of a checkpoint in the
/// storage type, layout and order that the module's `attune.weight` ops ask
/// for. It follows the code of an executable or shared library on a page of its
/// own, or is a file of its own; in both cases the file ends with
///
///   u64 offset of the blob, u64 size of the blob,
///   u64 fingerprint of the layout (`WeightLayout`), "ATTUNEW1"
///
/// in little-endian order.
namespace attune {

class LoraBranches;

constexpr int64_t kWeightTrailerBytes = 32;

/// Where values come from.
struct WeightValues {
  /// Null: small random values, a function of seed, weight, layer, row and
  /// column only, so that they do not depend on how a weight is packed. Gains
  /// of norms are near 1.
  const Checkpoint *checkpoint = nullptr;
  uint64_t seed = 0;
  unsigned threads = 2;
  /// The numbers of matrices in few bits; null: they are rounded to nearest.
  const ChosenNumbers *chosen = nullptr;
  /// Matrices that stay floats get the values of the numbers, too.
  bool asRounded = false;
  /// Called now and then, from the calling thread: bytes done and all bytes.
  std::function<void(uint64_t done, uint64_t total)> progress = nullptr;
};

struct WeightReport {
  uint64_t bytes = 0; ///< of the blob
  double seconds = 0;
  /// Matrices in numbers of a `kind`: how many there are (one for each layer of
  /// a stacked weight), their bytes before and after, scales included, and the
  /// relative error: root mean square lost by root mean square before.
  struct Quantized {
    std::string kind; ///< "int8", "int4", "fp8", "mxfp4"
    uint64_t matrices = 0, bytesBefore = 0, bytes = 0;
    double error = 0;
  };
  std::vector<Quantized> quantized; ///< in that order, where there are some
  /// Tensors that a checkpoint keeps in few bits: their encoding, the form in
  /// the product, and how many there are.
  struct Encoded {
    std::string name, became; ///< "Q4_0", "int4:g32"
    bool kept = false;        ///< every value is what it was
    uint64_t tensors = 0;
    uint64_t widened = 0; ///< of these, numbers with scales that became floats
  };
  std::vector<Encoded> encoded;
  /// Matrices that are kept as products of two, and for each layer what is lost
  /// by that, relative as above; before the factors are rounded.
  struct LowRank {
    std::string name;
    int64_t rows = 0, columns = 0, rank = 0;
    std::vector<double> errors;
  };
  std::vector<LowRank> lowRank;
  double megabytesPerSecond() const {
    return seconds > 0 ? double(bytes) / 1e6 / seconds : 0;
  }
};

/// `checkWeights` for the weights of a module, packed or not. `file` is the
/// text that locations point into; it serves the caret lines.
bool checkWeights(mlir::ModuleOp module, const Checkpoint &checkpoint,
                  DiagnosticEngine &diags,
                  std::shared_ptr<const SourceFile> file = nullptr);

/// The same for one weight alone.
bool checkWeight(WeightOp weight, const Checkpoint &checkpoint,
                 DiagnosticEngine &diags);

/// A key for the source of one part of one layer of a weight, packed or not:
/// weights of the same source have the same key.
std::string chosenKey(WeightOp weight, int64_t layer, int64_t part);

/// One part of one layer of a weight, row by row.
struct WeightRows {
  int64_t rows = 0, columns = 1;
  std::vector<float> values;
  /// Where they are in the whole matrix, as of ChosenMatrix.
  std::vector<int64_t> rowsOf, columnsOf;
};
/// The number of values, those of padding included.
int64_t countValues(WeightOp weight);
/// Reads the rows from tensors that `checkWeights` found.
WeightRows readRows(WeightOp weight, int64_t layer, int64_t part,
                    const Checkpoint &checkpoint);

/// Adds to a checkpoint the tensors that stacks of adapters are made of, as
/// attune-lora-branches named them.
void addLoraStacks(mlir::ModuleOp module, const LoraBranches &branches,
                   Checkpoint &checkpoint);

/// Fills `blob`, which has the `totalBytes` of `layoutWeights(module)`.
std::optional<WeightReport> packWeights(mlir::ModuleOp module,
                                        const WeightValues &values,
                                        uint8_t *blob, DiagnosticEngine &diags);

/// Fills the places of some layers in such a blob, which was filled before.
void packLayers(mlir::ModuleOp module, const WeightValues &values,
                llvm::function_ref<bool(WeightOp, int64_t layer)> wants,
                uint8_t *blob, DiagnosticEngine &diags);

/// Appends blob and trailer to the file `path`, which is created if it does not
/// exist. Memory stays at some megabytes whatever the model's size. A failure
/// is reported and leaves the file as it was.
std::optional<WeightReport> appendWeights(mlir::ModuleOp module,
                                          const WeightValues &values,
                                          const std::string &path,
                                          DiagnosticEngine &diags);

} // namespace attune

#endif // ATTUNE_WEIGHTS_WEIGHTFILE_H

//===- Patterns.h - One function per family of ops --------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_CONVERSION_ATTUNETOVECTOR_PATTERNS_H
#define ATTUNE_LIB_CONVERSION_ATTUNETOVECTOR_PATTERNS_H

#include "Attune/AttuneDialect.h"
#include "attune/Conversion/Activations.h"
#include "attune/Conversion/KernelBuilder.h"
#include "attune/Conversion/Schedule.h"
#include "attune/TargetInfo/TargetDescription.h"

#include "mlir/IR/PatternMatch.h"

namespace attune {

/// The register tile and the cache budget; the pass's options.
struct VectorLowering {
  int64_t lanes = 16;
  int64_t rows = 1;
  int64_t panelBytes = 0;
  /// Bytes of a tile's results that wait in the first-level cache.
  int64_t tileBytes = 0;
  /// Rows this many bytes apart share a set of the cache; 0: it does not
  /// matter.
  int64_t wayBytes = 0;
  /// Whole tiles of products have half of the rows and two panels.
  bool wideTiles = false;
  /// Steps of a sum from one line that is fetched for later to the next.
  int64_t fetchSteps = 1;
  /// How far ahead few rows fetch weights; 0: the CPU does it for them.
  int64_t streamBytes = 0;
  /// The same for weights of at most 16 bits, if that is more.
  int64_t narrowStreamBytes = 0;
  /// The third level of cache is hardly faster than memory.
  bool farLevel3 = false;
  /// Threads that work is cut for.
  int64_t threads = 1;
  /// Work that a block of threads does better together stays one op.
  bool cooperative = false;
  /// Fewest rows for a matrix unit; 0: there is none.
  int64_t matrixRows = 0;
  /// Inputs of a part of its sums, and bytes of sums that wait for the next
  /// part.
  int64_t matrixDepth = 256, matrixBytes = 512 << 10;
  /// It multiplies bytes, too.
  bool matrixQuads = false;
  /// Lanes of a register of i32 or f32, and how bytes are multiplied in these.
  int64_t integerLanes = 8;
  /// bf16 is multiplied in pairs.
  bool pairProducts = true;
  ByteProducts byteProducts = ByteProducts::Any;

  /// The lowering of one product: its schedule's numbers replace the target's.
  VectorLowering scheduledFor(mlir::Operation *op) const {
    VectorLowering own = *this;
    own.rows = scheduled(op, kTileRows, rows);
    own.wideTiles = wideTiles && !op->hasAttr(kTileRows);
    own.panelBytes = scheduled(op, kPanelBytes, panelBytes);
    return own;
  }
};

void populateActivationPatterns(mlir::RewritePatternSet &,
                                const VectorLowering &);
void populateAttentionWeightsPatterns(mlir::RewritePatternSet &,
                                      const VectorLowering &);
void populateLinearPatterns(mlir::RewritePatternSet &, const VectorLowering &);
void populateLossPatterns(mlir::RewritePatternSet &, const VectorLowering &);
void populateModulatePatterns(mlir::RewritePatternSet &,
                              const VectorLowering &);
void populateNormPatterns(mlir::RewritePatternSet &, const VectorLowering &);
void populateDeltaRulePatterns(mlir::RewritePatternSet &,
                               const VectorLowering &);
void populateGeneralizedDeltaRulePatterns(mlir::RewritePatternSet &,
                                          const VectorLowering &);
void populateEmbeddingPatterns(mlir::RewritePatternSet &,
                               const VectorLowering &);
void populateExpertPatterns(mlir::RewritePatternSet &, const VectorLowering &);
/// The same ops for blocks of threads that compute together.
void populateGroupedProductPatterns(mlir::RewritePatternSet &,
                                    const VectorLowering &);
void populateRouterPatterns(mlir::RewritePatternSet &, const VectorLowering &);
/// The same for the lanes of a warp, where they are enough.
void populateRouterWarpPatterns(mlir::RewritePatternSet &);
void populateQuantizationPatterns(mlir::RewritePatternSet &,
                                  const VectorLowering &);
void populateRecurrentPatterns(mlir::RewritePatternSet &,
                               const VectorLowering &);
void populateHeadPatterns(mlir::RewritePatternSet &, const VectorLowering &);
void populateLinearAttentionPatterns(mlir::RewritePatternSet &,
                                     const VectorLowering &);
void populateStateSpacePatterns(mlir::RewritePatternSet &,
                                const VectorLowering &);
void populateRelativeBiasPatterns(mlir::RewritePatternSet &);
void populateTokenPatterns(mlir::RewritePatternSet &, const VectorLowering &);
void populateTopKPatterns(mlir::RewritePatternSet &, const VectorLowering &);

/// A [.., D] tensor as rows [M, D] (rank 2 or 3).
mlir::Value asRows(KernelBuilder &k, mlir::Value x);
/// Rows as a tensor of type `type`, whose leading sizes are those of `like`.
mlir::Value fromRows(KernelBuilder &k, mlir::Value rows, mlir::Type type,
                     mlir::Value like);
/// The number of rows of a [.., D] tensor.
mlir::Value countRows(KernelBuilder &k, mlir::Value x);

/// An uninitialised [M, D] tensor for the rows of `like`.
mlir::Value emptyRows(KernelBuilder &k, mlir::Value like, int64_t width,
                      mlir::Type element);

/// A parallel loop over the rows of dest [M, D]: `compute` gets the row's
/// number and its [1, D] tile, and returns the tile written.
mlir::Value
forallRows(KernelBuilder &k, mlir::Value dest,
           llvm::function_ref<mlir::Value(KernelBuilder &, mlir::Value row,
                                          mlir::Value tile)>
               compute);

/// A parallel loop over the elements of dest [M, D], each of which depends on
/// its own column of what is read: row by row, or, for many threads, vector by
/// vector. `compute` writes lanes at `at` of the tile from column `column` of
/// row `row` on; `valid` as in forColumns.
mlir::Value forallVectors(
    KernelBuilder &k, mlir::Value dest, const VectorLowering &lowering,
    llvm::function_ref<mlir::Value(KernelBuilder &, mlir::Value row,
                                   mlir::Value column, mlir::Value valid,
                                   mlir::Value tile, mlir::ValueRange at)>
        compute);

/// Threads of a warp.
constexpr int64_t kWarp = 32;
/// Reduces what the lanes of a warp hold, one or more numbers, such that all
/// end with the same result: by halves, always in the same order.
KernelBuilder::Values acrossWarp(
    KernelBuilder &k, mlir::ValueRange mine,
    llvm::function_ref<KernelBuilder::Values(KernelBuilder &, mlir::ValueRange,
                                             mlir::ValueRange others)>
        fold);
mlir::Value sumOfWarp(KernelBuilder &k, mlir::Value sum);

/// A token of a head: where it stands in its tensor, which row of the tile that
/// is written is its own, and the column that the tile begins with.
struct HeadRow {
  mlir::Value batch, head, token, line, first;
};

/// A parallel loop over batch and heads of `dest` [B, H, T, D], over tokens too
/// if `everyToken`, and then over stretches of `each` columns: `row` gets a
/// token and a [1, 1, T or 1, each] tile, and returns the tile with the token's
/// row written.
mlir::Value forallHeadRows(
    KernelBuilder &k, mlir::Value dest, mlir::Value tokens, bool everyToken,
    int64_t each,
    llvm::function_ref<mlir::Value(KernelBuilder &, const HeadRow &row,
                                   mlir::Value tile)>
        row);

/// Lanes of a row from column `column` on, of which `valid` exist, if fewer.
using LoadColumns = llvm::function_ref<mlir::Value(
    KernelBuilder &, mlir::Value column, int64_t lanes, mlir::Value valid)>;

/// Walks a row of static width in vectors: `body(k, column, valid, carried)`;
/// `valid` is null for whole vectors and the number of lanes for the last one.
KernelBuilder::Values forColumns(
    KernelBuilder &k, int64_t width, int64_t lanes, mlir::ValueRange inits,
    llvm::function_ref<
        KernelBuilder::Values(KernelBuilder &, mlir::Value column,
                              mlir::Value valid, mlir::ValueRange carried)>
        body);

/// The tokens [M, D] of a mixture: what their `active` slots gave, added up in
/// the order in which the router named them, so that threads cannot change a
/// bit; and what `dest` holds, if `residual`. `part` loads lanes of what slot
/// `slot` of a token gave.
mlir::Value
sumSlots(KernelBuilder &k, mlir::Value dest, const VectorLowering &lowering,
         int64_t active, bool residual,
         llvm::function_ref<mlir::Value(KernelBuilder &, mlir::Value token,
                                        mlir::Value slot, mlir::Value column,
                                        mlir::Value valid)>
             part);

} // namespace attune

#endif // ATTUNE_LIB_CONVERSION_ATTUNETOVECTOR_PATTERNS_H

//===- BlockBuilder.h - Kernels of cooperating threads ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_CONVERSION_ATTUNETOGPU_BLOCKBUILDER_H
#define ATTUNE_LIB_CONVERSION_ATTUNETOGPU_BLOCKBUILDER_H

#include "Attune/AttuneGroupOps.h"
#include "attune/Conversion/Activations.h"
#include "attune/Conversion/KernelBuilder.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

#include <optional>

namespace attune {

/// KernelBuilder for code on buffers that the threads of a block run together.
class BlockBuilder : public KernelBuilder {
public:
  using KernelBuilder::KernelBuilder;
  explicit BlockBuilder(const KernelBuilder &k) : KernelBuilder(k.b, k.loc) {}

  // Numbers that are not negative.
  mlir::Value div(mlir::Value lhs, int64_t rhs);
  mlir::Value div(mlir::Value lhs, mlir::Value rhs);
  mlir::Value rem(mlir::Value lhs, int64_t rhs);
  mlir::Value rem(mlir::Value lhs, mlir::Value rhs);
  mlir::Value bitAnd(mlir::Value lhs, int64_t rhs);
  mlir::Value bitXor(mlir::Value lhs, mlir::Value rhs);
  mlir::Value shiftRight(mlir::Value lhs, int64_t bits);
  mlir::Value max(mlir::Value lhs, mlir::Value rhs);
  mlir::Value less(mlir::Value lhs, mlir::Value rhs);
  mlir::Value both(mlir::Value lhs, mlir::Value rhs);
  mlir::Value select(mlir::Value condition, mlir::Value yes, mlir::Value no);

  // Memory.
  mlir::Value sizeOf(mlir::Value buffer, int64_t dim);
  /// `lanes` elements, as they are stored; their address is a multiple of
  /// `align` bytes.
  mlir::Value loadAt(mlir::Value buffer, mlir::ValueRange indices,
                     int64_t lanes, int64_t align);
  /// The same widened to f32.
  mlir::Value loadWide(mlir::Value buffer, mlir::ValueRange indices,
                       int64_t lanes, int64_t align);
  /// A vector of floats as f32.
  mlir::Value widen(mlir::Value vector);
  /// One element, widened to f32 if it is a float.
  mlir::Value loadNumber(mlir::Value buffer, mlir::ValueRange indices);
  /// A vector of f32, narrowed to the buffer's type.
  void storeAt(mlir::Value vector, mlir::Value buffer, mlir::ValueRange indices,
               int64_t align);

  /// `body` where the condition holds.
  void when(mlir::Value condition,
            llvm::function_ref<void(BlockBuilder &)> body);
  void barrier();
};

/// A number that is not negative, in arithmetic of attune/Analysis that unit
/// tests do with integers.
class Computed {
public:
  Computed(BlockBuilder &b, mlir::Value value) : b(&b), value(value) {}
  operator mlir::Value() const { return value; }

  Computed operator+(Computed y) const { return {*b, b->add(value, y)}; }
  Computed operator+(int64_t y) const {
    return {*b, b->add(value, b->index(y))};
  }
  Computed operator*(int64_t y) const { return {*b, b->mul(value, y)}; }
  Computed operator/(int64_t y) const { return {*b, b->div(value, y)}; }
  Computed operator%(int64_t y) const { return {*b, b->rem(value, y)}; }
  Computed operator&(int64_t y) const { return {*b, b->bitAnd(value, y)}; }
  Computed operator>>(int64_t y) const { return {*b, b->shiftRight(value, y)}; }
  Computed operator^(Computed y) const { return {*b, b->bitXor(value, y)}; }

private:
  BlockBuilder *b;
  mlir::Value value;
};

/// `yes` if `number` is below `bound`, else `no`; the host decides.
void chooseBelow(BlockBuilder &b, mlir::Value number, int64_t bound,
                 llvm::function_ref<void(BlockBuilder &)> yes,
                 llvm::function_ref<void(BlockBuilder &)> no);

/// A launch under construction: later ops are built inside.
struct BlockLaunch {
  /// `dynamicBytes` of shared memory come beside what shared() makes.
  BlockLaunch(KernelBuilder &k, mlir::Value blocks, int64_t threads,
              int64_t dynamicBytes = 0);
  /// An array in shared memory.
  mlir::Value shared(int64_t elements, mlir::Type type);

  mlir::gpu::LaunchOp op;
  mlir::Value block, thread;
};

/// The tile of block `block`, of `rows` by `columns` tiles. Blocks of a few
/// rows work on the same columns at one time, so that what they read stays in
/// the second-level cache.
struct TilePlace {
  TilePlace(BlockBuilder &b, mlir::Value block, mlir::Value rows,
            int64_t columns);
  mlir::Value row, column;
};

/// The number of bytes that the address of every row's start is a multiple of,
/// as far as the buffer's type tells; its memory starts at a multiple of 64.
int64_t alignmentOfRows(mlir::Value buffer);

/// The depth of a product in parts, which blocks of their own take. Part p has
/// the sums of row r in row p * rows + r of `sums`, as panels lie.
struct DepthParts {
  mlir::Value count, sums;
};

/// The rows that up to `few` rows are the norm of; without rows: they are no
/// norm.
struct NormOfFew {
  mlir::Value rows, gamma, beta; ///< null: there is none
  double eps = 0, offset = 0;
  bool centred = false;
  int64_t few = 0;
};

/// Shared memory of a product of few rows: sums of warps, and what the rows'
/// norms come from, or null.
struct FewRowsMemory {
  mlir::Value sums, statistics;
};

/// Products of rows with panels, on buffers.
class LinearKernel {
public:
  /// Makes what all kernels of the op share, on the host.
  LinearKernel(KernelBuilder &k, LinearIntoOp op);
  LinearKernel(KernelBuilder &k, QuantizedLinearIntoOp op);
  LinearKernel(KernelBuilder &k, NormedLinearIntoOp op);
  LinearKernel(KernelBuilder &k, GroupedLinearIntoOp op);

  /// Rows of the result that one block computes, and the matrix that they take;
  /// there may be none.
  struct Group {
    mlir::Value first, end;
    mlir::Value part; ///< null for a single matrix
  };
  /// How many groups there are of at most `height` rows, and one of them. A
  /// task has as many as its rows might need.
  mlir::Value countGroups(KernelBuilder &k, int64_t height);
  Group groupAt(BlockBuilder &b, mlir::Value number, int64_t height);
  /// The row of the input that a row of the result comes from.
  mlir::Value sourceOf(BlockBuilder &b, mlir::Value row);
  /// Where a panel is in the weights, with `behind` after its number.
  mlir::SmallVector<mlir::Value> panelAt(const Group &group, mlir::Value panel,
                                         mlir::ValueRange behind);

  /// Each block takes one panel, and `rows` rows at a time, whose norm it makes
  /// if they are `normed`.
  void emitForFewRows(KernelBuilder &k, int64_t rows, bool normed = false);
  /// Whether tensor cores can take it.
  bool fitsTensorCores();
  /// Stages of the ring of such a tile.
  int64_t stagesOf(const struct ProductTile &tile);
  void emitTiles(KernelBuilder &k, const struct ProductTile &tile);
  struct GroupProduct groupProduct();
  /// Whether warpgroups can.
  bool fitsWarpgroups();
  /// With `parts` it leaves its sums there, and what is behind them to
  /// emitSumOfParts.
  void emitWarpgroupTiles(KernelBuilder &k, const struct WarpgroupTile &tile,
                          const DepthParts *parts = nullptr);
  void emitSumOfParts(KernelBuilder &k, const DepthParts &parts);

  int64_t width();  ///< output channels
  int64_t depth();  ///< of the sums
  int64_t side();   ///< columns of a row of a panel
  int64_t lanes();  ///< channels of a panel
  int64_t panels(); ///< those of gate and up apart
  int64_t matrices();
  int64_t parts() { return gated ? 2 : 1; }
  class QuantizedNumbers numbers(); ///< of weights in few bits
  /// Everything behind the sums with matrix `part`, for some channels of a row;
  /// `up` is null unless gated. Stores the result.
  void finish(BlockBuilder &b, mlir::Value part, mlir::Value sum,
              mlir::Value up, mlir::Value row, mlir::Value column);

  /// Stores what a warp has of 16 rows from `row` on: of `panels` panels the
  /// fragments of sums, whose pairs `pairOf` gives by panel and half.
  void storeSums(BlockBuilder &b, const Group &group, mlir::Value lane,
                 mlir::Value row, mlir::Value firstPanel, int64_t panels,
                 llvm::function_ref<mlir::Value(BlockBuilder &, int64_t panel,
                                                int64_t half)>
                     pairOf);

  // Null or unset: there is none.
  mlir::Value input, weight, dest; ///< batches lie one below the other
  mlir::Value bias;                ///< a row for each of several matrices
  mlir::Value scales; ///< of weights in few bits, with zero points or without
  int64_t bits = 0, group = 0; ///< of these, and columns that share a scale
  bool zeros = false;
  mlir::Value tasks, from;
  bool someElsewhere = false; ///< rows of other ranks' experts are of no task
  mlir::Value numRows, numBatches; ///< rows of a batch, if there are batches
  Activation activation = Activation::Identity;
  bool gated = false, residual = false;
  NormOfFew norm;
  GateLimits limits;
  bool tf32 = false; ///< tensor cores may round f32 to it
  int64_t multiprocessors = 0;
  bool dependent = false; ///< starts before what it reads is written
  std::optional<double> scale;

private:
  /// The row of tasks at a place of their order. The threads of a block look
  /// for its matrix together, which may be none: -1.
  Group rowOfTasks(BlockBuilder &b, struct BlockLaunch &launch,
                   mlir::Value place);
  void emitFewRows(BlockBuilder &b, mlir::Value thread, int64_t threads,
                   const FewRowsMemory &shared, mlir::Value panel,
                   const Group &group, int64_t rows);
};

/// The order of a mixture's work.
void emitExpertTasks(KernelBuilder &k, ExpertTasksIntoOp op);

} // namespace attune

#endif // ATTUNE_LIB_CONVERSION_ATTUNETOGPU_BLOCKBUILDER_H

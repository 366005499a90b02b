//===- KernelBuilder.h - Short names for emitting loops and vectors ---*- C++
//-*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_CONVERSION_KERNELBUILDER_H
#define ATTUNE_CONVERSION_KERNELBUILDER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Builders.h"

namespace attune {

/// Emits the loops and vector ops of kernels on tensors, at one location. Thin
/// on purpose: every method makes one or two ops of upstream dialects, and what
/// it makes bufferizes without copies (see lib/Conversion/README.md).
///
/// Tile ops that become vectors after bufferization hand buffers to the same
/// methods: wherever one takes a tensor it takes a buffer. The result of a
/// write is then the buffer itself, and loops do not carry it.
class KernelBuilder {
public:
  using Values = llvm::SmallVector<mlir::Value>;

  KernelBuilder(mlir::OpBuilder &builder, mlir::Location loc)
      : b(builder), loc(loc) {}

  // Numbers.
  mlir::Value index(int64_t value);
  mlir::Value f32(double value);
  mlir::Value add(mlir::Value lhs, mlir::Value rhs);
  mlir::Value sub(mlir::Value lhs, mlir::Value rhs);
  mlir::Value mul(mlir::Value lhs, mlir::Value rhs);
  mlir::Value mul(mlir::Value lhs, int64_t rhs) { return mul(lhs, index(rhs)); }
  mlir::Value min(mlir::Value lhs, mlir::Value rhs);
  mlir::Value ceilDiv(mlir::Value lhs, int64_t rhs);
  /// The size of a tensor's dimension, constant if static.
  mlir::Value dim(mlir::Value tensor, int64_t dim);

  // Vectors of f32.
  mlir::VectorType vectorType(int64_t lanes);
  /// `value` in every lane: a constant, or a scalar broadcast.
  mlir::Value splat(double value, int64_t lanes);
  mlir::Value splat(mlir::Value scalar, int64_t lanes);
  /// `lanes` consecutive elements along the last dimension, widened to f32.
  /// `valid`, if given, is how many of them exist (0 to lanes); the rest read
  /// as `pad`. Without it all must exist.
  mlir::Value load(mlir::Value tensor, mlir::ValueRange indices, int64_t lanes,
                   mlir::Value valid = {}, double pad = 0.0);
  /// One element, widened to f32.
  mlir::Value loadScalar(mlir::Value tensor, mlir::ValueRange indices);
  /// The tensor with `vector` written at `indices` (narrowed to its element
  /// type); only the first `valid` lanes if given.
  mlir::Value store(mlir::Value vector, mlir::Value tensor,
                    mlir::ValueRange indices, mlir::Value valid = {});
  /// The same with one number, of the element type.
  mlir::Value storeScalar(mlir::Value number, mlir::Value tensor,
                          mlir::ValueRange indices);
  /// Memory of static size that belongs to the kernel: a tensor, or a buffer on
  /// the stack.
  mlir::Value scratch(llvm::ArrayRef<int64_t> shape, mlir::Type element,
                      bool buffer);
  /// Brings the line of an element to the first-level cache. The last index may
  /// go on beyond its row, to what lies behind it in memory: elements of the
  /// next rows, wherever these begin.
  void prefetch(mlir::Value tensor, mlir::ValueRange indices);
  /// The same to the second-level cache, for data from memory: most often that
  /// one waits for more lines at a time (on Zen 4 about 41 instead of 27), and
  /// a core gets as much more of memory's speed. Zen 5 gets less: see
  /// TargetDescription::getNearBytes.
  void prefetchFromMemory(mlir::Value tensor, mlir::ValueRange indices);
  /// Brings it to the second-level cache, since the next iteration of the
  /// parallel loop (attune.successor) reads it. The last index counts through
  /// all dimensions that are left.
  void prefetchForNext(mlir::Value tensor, mlir::ValueRange indices);
  /// Brings the line of an element to the cache to be written.
  void prefetchForWriting(mlir::Value tensor, mlir::ValueRange indices);
  mlir::Value fma(mlir::Value lhs, mlir::Value rhs, mlir::Value acc);

  // Loops. Bodies get a builder positioned inside, the induction variable and
  // the carried values, and return the values for the next iteration.
  using Body = llvm::function_ref<Values(KernelBuilder &, mlir::Value iv,
                                         mlir::ValueRange carried)>;
  Values forLoop(mlir::Value begin, mlir::Value end, int64_t step,
                 mlir::ValueRange inits, Body body);

  /// One tile of a parallel loop's destination.
  struct Tile {
    Values offsets;                              ///< one per dimension
    llvm::SmallVector<mlir::OpFoldResult> sizes; ///< one per dimension
  };
  /// A parallel loop over `counts` that computes disjoint tiles of `dest`:
  /// `place` says which tile an iteration owns, `compute` gets that tile (a
  /// tensor of dest's rank, or of `tileType` if given, to write into) and
  /// returns it written. Gives dest with all tiles written.
  mlir::Value forallTiles(
      llvm::ArrayRef<mlir::OpFoldResult> counts, mlir::Value dest,
      llvm::function_ref<Tile(KernelBuilder &, mlir::ValueRange ivs)> place,
      llvm::function_ref<mlir::Value(KernelBuilder &, mlir::ValueRange ivs,
                                     mlir::Value tile)>
          compute);
  /// The same with several destinations: an iteration owns one tile of each of
  /// them.
  Values
  forallTiles(llvm::ArrayRef<mlir::OpFoldResult> counts, mlir::ValueRange dests,
              llvm::function_ref<llvm::SmallVector<Tile>(KernelBuilder &,
                                                         mlir::ValueRange ivs)>
                  place,
              llvm::function_ref<Values(KernelBuilder &, mlir::ValueRange ivs,
                                        mlir::ValueRange tiles)>
                  compute);

  mlir::OpBuilder &b;
  mlir::Location loc;
};

/// The inner kernel of every matrix product: `rows` accumulators of R lanes,
/// `acc[i] += a(i, k) * b(k)` for k in [0, depth), kept in registers as carried
/// values of the loop over k. `loadA` gives a scalar, which is broadcast;
/// `loadB` a vector. `inits` are the starting accumulators. The loop is
/// unrolled `written` times, which divides a known depth.
KernelBuilder::Values emitMicrokernel(
    KernelBuilder &k, int64_t rows, mlir::Value depth, mlir::ValueRange inits,
    llvm::function_ref<mlir::Value(KernelBuilder &, int64_t row, mlir::Value k)>
        loadA,
    llvm::function_ref<mlir::Value(KernelBuilder &, mlir::Value k)> loadB,
    int64_t written = 1);

/// Vectors in parts of `each` lanes, those of the first one first; and put
/// together again, `parts` to each.
KernelBuilder::Values splitLanes(KernelBuilder &k, mlir::ValueRange vectors,
                                 int64_t each);
KernelBuilder::Values joinLanes(KernelBuilder &k, mlir::ValueRange split,
                                int64_t parts);

/// Adds the product of each row of A and each part of B to the sum of that row
/// and part, sums[row * parts + part]. The smaller of A and B is loaded first
/// and kept; each load after that is used and let go.
void addOuterProduct(int64_t rows, int64_t parts,
                     llvm::function_ref<mlir::Value(int64_t row)> loadA,
                     llvm::function_ref<mlir::Value(int64_t part)> loadB,
                     llvm::function_ref<mlir::Value(
                         mlir::Value sum, mlir::Value a, mlir::Value b)>
                         add,
                     KernelBuilder::Values &sums);

/// emitMicrokernel where registers are what counts, or where instructions add
/// up products of neighbours along the depth. Accumulators of more than `each`
/// lanes are split, `loadA` returns the broadcast A operand of `each` lanes,
/// `loadB` the B vector starting at `lane`, and `add` a sum plus the products
/// of both.
KernelBuilder::Values emitSplitMicrokernel(
    KernelBuilder &k, int64_t rows, int64_t each, mlir::Value steps,
    mlir::ValueRange inits,
    llvm::function_ref<mlir::Value(KernelBuilder &, int64_t row,
                                   mlir::Value step)>
        loadA,
    llvm::function_ref<mlir::Value(KernelBuilder &, mlir::Value step,
                                   int64_t lane)>
        loadB,
    llvm::function_ref<mlir::Value(KernelBuilder &, mlir::Value sums,
                                   mlir::Value a, mlir::Value b)>
        add,
    int64_t written = 1);

} // namespace attune

#endif // ATTUNE_CONVERSION_KERNELBUILDER_H

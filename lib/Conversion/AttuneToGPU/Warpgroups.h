//===- Warpgroups.h - Kernels that copy and multiply apart ------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_CONVERSION_ATTUNETOGPU_WARPGROUPS_H
#define ATTUNE_LIB_CONVERSION_ATTUNETOGPU_WARPGROUPS_H

#include "TensorCores.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace attune {

mlir::Value i32(BlockBuilder &b, int64_t value);
mlir::Value toI32(BlockBuilder &b, mlir::Value number);
mlir::Value toI64(BlockBuilder &b, mlir::Value number);

/// The address of shared memory whose size the launch says, as a number, which
/// is a multiple of kTileAlignment.
mlir::Value dynamicShared(BlockBuilder &b);
mlir::Value pointerTo(BlockBuilder &b, mlir::Value address,
                      mlir::NVVM::NVVMMemorySpace space);

// A matrix in shared memory as wgmma reads it: rows of 128 bytes, swizzled.

/// Where chunk `chunk` of 16 bytes lies of row `row`, if the matrix starts at
/// `start`.
mlir::Value chunkAt(BlockBuilder &b, mlir::Value start, mlir::Value row,
                    mlir::Value chunk);
void storeChunk(BlockBuilder &b, mlir::Value chunk, mlir::Value at);
/// Makes this thread's writes to shared memory visible to wgmma.
void showToProducts(BlockBuilder &b);

//===----------------------------------------------------------------------===//
// Tensor maps
//===----------------------------------------------------------------------===//

/// A matrix that is copied by boxes, or one for each head of each batch.
/// Distances are in bytes.
struct MappedMatrix {
  mlir::Value address;
  int64_t elementBytes, columns;
  mlir::Value rows, stride;
  mlir::Value heads, headStride, batches, batchStride; ///< null: one matrix
};
struct MappedBox {
  int64_t columns, rows;
  bool swizzle; ///< rows have 128 bytes
};
/// Where the device has the map. On the host.
mlir::Value tensorMap(BlockBuilder &b, const MappedMatrix &matrix,
                      const MappedBox &box);

/// Lets this thread read a map that the host wrote; gives its pointer.
mlir::Value acquireMap(BlockBuilder &b, mlir::Value map);
/// Starts a copy of the box at `at`, whose bytes `barrier` counts.
void copyBox(BlockBuilder &b, mlir::Value to, mlir::Value map,
             mlir::ValueRange at, mlir::Value barrier);

//===----------------------------------------------------------------------===//
// Stages
//===----------------------------------------------------------------------===//

/// Stages of shared memory that some threads fill and warps read, each with two
/// mbarriers: `full` counts the threads and the bytes that have come, `empty`
/// the warps that are done.
class StageRing {
public:
  StageRing() = default;
  StageRing(mlir::Value barriers, int64_t stages)
      : barriers(barriers), stages(stages) {}
  static constexpr int64_t kBytesOfStage = 16;

  /// `writers` arrive before a stage is full (the one that expects bytes
  /// counts), and `warps` before it is empty. Both are i32.
  void init(BlockBuilder &b, mlir::Value writers, mlir::Value warps);
  mlir::Value stageOf(BlockBuilder &b, mlir::Value step);
  mlir::Value full(BlockBuilder &b, mlir::Value stage);
  /// Waits until the stage can be filled; its number.
  mlir::Value awaitEmpty(BlockBuilder &b, mlir::Value step);
  /// Arrives and says how many bytes tensor maps will bring; the barrier that
  /// counts them.
  mlir::Value expect(BlockBuilder &b, mlir::Value step, int64_t bytes);
  /// Arrives: what this thread wrote is there.
  void tell(BlockBuilder &b, mlir::Value step);
  void awaitFull(BlockBuilder &b, mlir::Value step);
  /// One of the warp's lanes says so.
  void giveBack(BlockBuilder &b, mlir::Value lane, mlir::Value step);

private:
  mlir::Value empty(BlockBuilder &b, mlir::Value stage);
  mlir::Value parityOf(BlockBuilder &b, mlir::Value step);

  mlir::Value barriers;
  int64_t stages = 0;
};

/// Moves registers from warpgroups that copy to others.
void setRegisters(BlockBuilder &b, uint32_t count, bool more);

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// The descriptor of a matrix at this address; `rest` is what else it says.
mlir::Value descriptor(BlockBuilder &b, mlir::Value address, uint64_t rest);

/// Sums of 64 rows by `columns`, as one thread has them: element
/// 4 n + 2 half + i is that of mma.sync's fragment of columns 8 n to 8 n + 7.
mlir::LLVM::LLVMStructType sumsOf(BlockBuilder &b, int64_t columns);
mlir::Value zeroSums(BlockBuilder &b, int64_t columns);
/// Sums that a first product will be, which adds to nothing.
mlir::Value unsetSums(BlockBuilder &b, int64_t columns);

/// sums + a b, or the product alone, of matrices of 16 bits in shared memory.
/// Rows of A run along the depth, and so do columns of B unless `transpose`.
mlir::Value multiplyShared(BlockBuilder &b, mlir::Value sums, mlir::Value a,
                           mlir::Value panel, mlir::Type type, bool add,
                           bool transpose);
/// The same of pairs of A in four registers. `add` is an i32: not 0, or 0 for
/// the product alone.
mlir::Value multiplyHeld(BlockBuilder &b, mlir::Value sums,
                         mlir::ArrayRef<mlir::Value> a, mlir::Value panel,
                         mlir::Type type, mlir::Value add, bool transpose);
/// Orders writes to these sums before the products that use them: moving them
/// to other registers in between would break the order.
mlir::Value fenceSums(BlockBuilder &b, mlir::Value sums);
/// Waits until all but the last `groups` products are done. These sums are of
/// one of them: nothing may read them before.
mlir::Value awaitSums(BlockBuilder &b, int64_t groups, mlir::Value sums);

} // namespace attune

#endif // ATTUNE_LIB_CONVERSION_ATTUNETOGPU_WARPGROUPS_H

//===- KernelWeights.h - Weights that a task will read ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_TARGET_PTX_KERNELWEIGHTS_H
#define ATTUNE_LIB_TARGET_PTX_KERNELWEIGHTS_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/DenseSet.h"

#include <optional>

namespace attune {

/// The loads of a kernel that others may do for it, long before. The kernel
/// does them before it waits for the one before, from memory that nobody
/// writes, at addresses that follow from its arguments, its block and its
/// thread. Each thread has the same number of them, in the same order.
class KernelWeights {
public:
  /// What a copy has.
  static constexpr int64_t kUnit = 16;

  /// None if there are no such loads.
  static std::optional<KernelWeights> find(mlir::gpu::GPUFuncOp kernel);

  /// How many units a thread reads.
  int64_t units() const { return total; }

  /// Makes, for what `mapping` says of arguments, the operations that addresses
  /// need, and calls `copy` for each unit: with a memref, indices of the unit's
  /// first element, how many elements it has, and the unit's number.
  using Copy = llvm::function_ref<void(mlir::OpBuilder &, mlir::Value,
                                       mlir::ValueRange, int64_t, mlir::Value)>;
  void copy(mlir::OpBuilder &b, mlir::IRMapping &mapping, Copy copy) const;

  /// Takes clones of the loads out of a body that `mapping` was filled by, with
  /// what `load` makes for each unit: a vector of this type, of this number.
  using Load = llvm::function_ref<mlir::Value(mlir::OpBuilder &,
                                              mlir::VectorType, mlir::Value)>;
  void replace(mlir::IRMapping &mapping, Load load) const;

private:
  struct Read {
    mutable mlir::vector::LoadOp op;
    mlir::scf::ForOp loop; ///< null: it is in none
    int64_t first;         ///< its first unit, in a loop that of the first turn
    int64_t perTurn;       ///< units of the loop's turns
    int64_t units() const;
    mlir::VectorType unitType() const;
    int64_t elements() const { return unitType().getNumElements(); }
  };
  /// The number of a read's unit, in a loop of this induction variable.
  static mlir::Value numberOf(mlir::OpBuilder &b, const Read &read,
                              int64_t unit, mlir::Value turn);
  /// The turn of a cloned loop that has this induction variable.
  static mlir::Value turnOf(mlir::OpBuilder &b, mlir::scf::ForOp loop,
                            const mlir::IRMapping &mapping,
                            mlir::Value induction);
  void add(mlir::Operation &op, mlir::scf::ForOp loop,
           const llvm::DenseSet<mlir::Value> &roots);
  bool need(mlir::Value value, mlir::scf::ForOp loop);

  mutable mlir::gpu::GPUFuncOp kernel;
  llvm::SmallVector<Read> reads;
  llvm::DenseSet<mlir::Operation *> needed;
  int64_t total = 0;
};

} // namespace attune

#endif // ATTUNE_LIB_TARGET_PTX_KERNELWEIGHTS_H

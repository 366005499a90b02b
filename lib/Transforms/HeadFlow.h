//===- HeadFlow.h - Where the heads of attention go -------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_TRANSFORMS_HEADFLOW_H
#define ATTUNE_LIB_TRANSFORMS_HEADFLOW_H

#include "Attune/AttuneDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SetVector.h"

namespace attune {

/// The values that a block argument stands for: what callers give, or of a loop
/// the value that it begins with, the one that a turn gives and the result.
/// There are none for an argument of an entry. Fails for other arguments.
mlir::FailureOr<llvm::SmallVector<mlir::Value>>
valuesOfArgument(mlir::ModuleOp module, mlir::BlockArgument argument);

/// Follows heads from the projection that makes them to the one that merges
/// them, and through caches, loops and calls; what has heads gets fewer of
/// them. Who derives from this says how many, and changes the projections.
class HeadFlow {
protected:
  /// `verb` completes messages: "'op' cannot be ...".
  HeadFlow(mlir::ModuleOp module, llvm::StringRef verb)
      : module(module), verb(verb) {}
  virtual ~HeadFlow() = default;

  /// The dimension of heads: of [B, H, T, D], of caches [L, B, H, C, D], of
  /// channels [B, T, H * D], and of a row's state [B, H, T].
  static int64_t headDim(mlir::RankedTensorType type);

  /// The type that a value with heads gets, or null after an error. `kind` is
  /// whatever the heads of one value have in common.
  virtual mlir::RankedTensorType shareOf(mlir::Value value, unsigned kind) = 0;
  /// The kind of the keys and values that go with queries; nothing: they stay.
  virtual std::optional<unsigned> keysOf(unsigned queries) = 0;
  /// The kind of the queries that go with keys.
  virtual unsigned queriesOf(unsigned keys) = 0;
  /// A cache that an entry takes or gives has other heads now.
  virtual mlir::LogicalResult markCaches(mlir::func::FuncOp entry,
                                         llvm::StringRef name, unsigned kind);

  /// Whether more than projections and attention may have other heads: what
  /// heads gave may be multiplied by gates, of which a projection then gives
  /// fewer, or come from the memories of a delta rule; a head may have channels
  /// put together, and a matrix of its own; a projection may be a sum of
  /// several products.
  virtual bool cutsAround() const { return false; }

  /// Notes that `value` has other heads now.
  mlir::LogicalResult mark(mlir::Value value, unsigned kind);
  /// Goes on from all values that were marked.
  mlir::LogicalResult follow();
  /// Callers allocate caches by their entry's attributes.
  void updateCaches();
  /// Gives functions the types of their arguments and results.
  void updateFunctions();
  mlir::LogicalResult refuse(mlir::Operation *op);
  /// The norm over all heads of what a projection computes, if there is one and
  /// it may be cut: what reads the projection is that alone.
  RMSNormOp normOf(LinearOp linear);
  /// The splits into heads of what a projection computes, in the order of its
  /// columns. Each column has to be in one of them; who calls checks the end.
  mlir::FailureOr<llvm::SmallVector<SplitHeadsOp>> splitsOf(LinearOp linear);

  mlir::ModuleOp module;
  llvm::DenseMap<mlir::Value, unsigned> marked;
  /// The number of heads before.
  llvm::DenseMap<mlir::Value, int64_t> wholeHeads;
  llvm::SetVector<mlir::Operation *> projections, outputs, gates, perHead,
      headMatrices;

private:
  /// The values that entries hand on under a name have other heads now.
  mlir::LogicalResult markHandedOn(llvm::StringRef name, unsigned kind);
  mlir::LogicalResult followUse(mlir::OpOperand &use);
  mlir::LogicalResult followSource(mlir::Value value);
  mlir::LogicalResult followArgument(mlir::BlockArgument argument);
  mlir::LogicalResult markKeys(mlir::Value value, unsigned queries);

  llvm::StringRef verb;
  llvm::SmallVector<mlir::Value> work;
};

} // namespace attune

#endif // ATTUNE_LIB_TRANSFORMS_HEADFLOW_H

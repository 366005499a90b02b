//===- ScoreExpr.h - Linalg ops read as formulas ----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_TRANSFORMS_SCOREEXPR_H
#define ATTUNE_LIB_TRANSFORMS_SCOREEXPR_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/AffineMap.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/FoldingSet.h"
#include "llvm/ADT/SetVector.h"

#include <deque>

namespace attune {

/// The formula of one score. It does not depend on how the work is cut into
/// linalg ops, named or generic. Changes of float types are not part of it. One
/// reader makes each formula once: equal formulas are equal pointers.
struct ScoreExpr : llvm::FoldingSetNode {
  enum Kind {
    Leaf,    // an element of a tensor, or a scalar from elsewhere
    Number,  // a constant float
    Index,   // an integer, linear in the loops
    Compare, // of two integers
    And,
    Or,
    Not,
    Select,
    Exp,
    Exp2,
    Tanh,
    Add,
    Sub,
    Mul,
    Div,
    RowMax,  // the greatest over all keys
    RowSum,  // the sum over all keys
    Softmax, // over all keys
    Other,   // what `op` makes of the arguments
  };
  Kind kind = Leaf;
  mlir::Value tensor;     // Leaf: read ...
  mlir::AffineMap map;    // ... at these indices (null for a scalar)
  double number = 0;      // Number
  mlir::AffineExpr index; // Index; symbols are the reader's
  mlir::arith::CmpIPredicate predicate = mlir::arith::CmpIPredicate::eq;
  mlir::Operation *op = nullptr; // Other
  llvm::SmallVector<const ScoreExpr *, 3> args;

  bool is(Kind k) const { return kind == k; }
  bool isNumber(double value) const {
    return kind == Number && number == value;
  }
  void Profile(llvm::FoldingSetNodeID &id) const;
};

/// `factor` times `expr`.
struct ScaledExpr {
  const ScoreExpr *expr;
  double factor;
};

/// Takes constant factors off.
ScaledExpr stripFactors(const ScoreExpr *expr);

/// Reads formulas over a space of indices, one of which runs over the keys;
/// remembers which ops it read.
class ScoreReader {
public:
  ScoreReader(mlir::MLIRContext *context, unsigned numDims, unsigned keyDim)
      : context(context), numDims(numDims), keyDim(keyDim) {}

  /// The formula of an element of `tensor`, read at `map` of the space.
  const ScoreExpr *read(mlir::Value tensor, mlir::AffineMap map);

  const ScoreExpr *number(double value);
  const ScoreExpr *make(ScoreExpr::Kind kind,
                        llvm::ArrayRef<const ScoreExpr *> args);

  /// A tensor whose elements `expr` describes, and where it is read; null if
  /// there is none.
  std::pair<mlir::Value, mlir::AffineMap>
  tensorOf(const ScoreExpr *expr) const {
    return stored.lookup(expr);
  }

  /// The ops behind the formulas read so far, without those that only make
  /// constants.
  llvm::ArrayRef<mlir::Operation *> ops() const {
    return visited.getArrayRef();
  }

  /// The integers from outside that index formulas name as symbols.
  llvm::ArrayRef<mlir::Value> symbols() const { return symbolValues; }

  unsigned getNumDims() const { return numDims; }

private:
  const ScoreExpr *readMade(mlir::Value tensor, mlir::AffineMap map);
  const ScoreExpr *readElementwise(mlir::linalg::LinalgOp op,
                                   mlir::AffineMap map);
  const ScoreExpr *readReduction(mlir::linalg::LinalgOp op,
                                 mlir::AffineMap map);
  const ScoreExpr *readReshape(mlir::Operation *op, mlir::AffineMap map);
  const ScoreExpr *readSoftmax(mlir::linalg::SoftmaxOp op, mlir::AffineMap map);
  const ScoreExpr *readScalar(mlir::Value scalar, mlir::linalg::LinalgOp op,
                              mlir::AffineMap loops);
  const ScoreExpr *readOutside(mlir::Value scalar);

  const ScoreExpr *combine(mlir::Operation *op,
                           llvm::ArrayRef<const ScoreExpr *> args);
  const ScoreExpr *combineIntegers(mlir::Operation *op,
                                   llvm::ArrayRef<const ScoreExpr *> args);
  const ScoreExpr *fold(ScoreExpr::Kind kind,
                        llvm::ArrayRef<const ScoreExpr *> args);

  const ScoreExpr *unique(const ScoreExpr &expr);
  const ScoreExpr *leaf(mlir::Value tensor, mlir::AffineMap map);
  const ScoreExpr *index(mlir::AffineExpr value);
  const ScoreExpr *other(mlir::Operation *op,
                         llvm::ArrayRef<const ScoreExpr *> args);

  mlir::MLIRContext *context;
  unsigned numDims, keyDim;
  unsigned depth = 0;
  // A deque: formulas point at each other.
  std::deque<ScoreExpr> pool;
  llvm::FoldingSet<ScoreExpr> interned;
  llvm::DenseMap<std::pair<mlir::Value, mlir::AffineMap>, const ScoreExpr *>
      known;
  llvm::DenseMap<const ScoreExpr *, std::pair<mlir::Value, mlir::AffineMap>>
      stored;
  llvm::SetVector<mlir::Operation *> visited;
  llvm::SmallVector<mlir::Value> symbolValues;
};

} // namespace attune

#endif // ATTUNE_LIB_TRANSFORMS_SCOREEXPR_H

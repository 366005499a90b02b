//===- ScoreExpr.h - Linalg ops read as formulas ----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_TRANSFORMS_SCOREEXPR_H
#define ATTUNE_LIB_TRANSFORMS_SCOREEXPR_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/AffineMap.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"

#include <deque>

namespace attune {

/// What one score [batch..., query, key] is computed from. However the work is
/// cut into linalg ops, named or generic, the formula is the same.
struct ScoreExpr {
  enum Kind { Leaf, Number, Exp, Add, Sub, Mul, Div, Select, RowMax, RowSum };
  Kind kind = Leaf;
  mlir::Value tensor;  // Leaf: read ...
  mlir::AffineMap map; // ... at these indices (null for a scalar)
  double number = 0;   // Number
  llvm::SmallVector<const ScoreExpr *, 3> args;

  bool is(Kind k) const { return kind == k; }
  bool isNumber(double value) const {
    return kind == Number && number == value;
  }
};

/// The same formula over the same tensors?
bool same(const ScoreExpr *a, const ScoreExpr *b);

/// Reads formulas of scores of one rank; remembers which ops it read.
class ScoreReader {
public:
  ScoreReader(mlir::MLIRContext *context, unsigned rank)
      : context(context), rank(rank) {}

  /// The formula of a tensor of scores.
  const ScoreExpr *read(mlir::Value tensor) {
    return read(tensor, mlir::AffineMap::getMultiDimIdentityMap(rank, context));
  }

  /// The ops behind the formulas read so far, without those that only make
  /// constants.
  llvm::ArrayRef<mlir::Operation *> ops() const {
    return visited.getArrayRef();
  }

private:
  const ScoreExpr *read(mlir::Value tensor, mlir::AffineMap map);
  const ScoreExpr *readMade(mlir::Value tensor, mlir::AffineMap map);
  const ScoreExpr *readElementwise(mlir::linalg::LinalgOp op,
                                   mlir::AffineMap map);
  const ScoreExpr *readReduction(mlir::linalg::LinalgOp op,
                                 mlir::AffineMap map);
  const ScoreExpr *readScalar(mlir::Value scalar, mlir::linalg::LinalgOp op,
                              mlir::AffineMap loops);

  const ScoreExpr *leaf(mlir::Value tensor, mlir::AffineMap map);
  const ScoreExpr *number(double value);
  const ScoreExpr *make(ScoreExpr::Kind kind,
                        llvm::ArrayRef<const ScoreExpr *> args);

  mlir::MLIRContext *context;
  unsigned rank;
  // A deque: formulas point at each other.
  std::deque<ScoreExpr> pool;
  llvm::DenseMap<std::pair<mlir::Value, mlir::AffineMap>, const ScoreExpr *>
      known;
  llvm::SetVector<mlir::Operation *> visited;
};

} // namespace attune

#endif // ATTUNE_LIB_TRANSFORMS_SCOREEXPR_H

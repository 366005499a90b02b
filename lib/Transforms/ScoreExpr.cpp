//===- ScoreExpr.cpp - Linalg ops read as formulas --------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScoreExpr.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;

namespace attune {

bool same(const ScoreExpr *a, const ScoreExpr *b) {
  if (a == b)
    return true;
  if (a->kind != b->kind || a->number != b->number ||
      a->args.size() != b->args.size())
    return false;
  if (a->is(ScoreExpr::Leaf))
    return a->tensor == b->tensor && a->map == b->map;
  for (auto [left, right] : llvm::zip(a->args, b->args))
    if (!same(left, right))
      return false;
  return true;
}

const ScoreExpr *ScoreReader::leaf(Value tensor, AffineMap map) {
  ScoreExpr expr;
  expr.tensor = tensor;
  expr.map = map;
  pool.push_back(expr);
  return &pool.back();
}

const ScoreExpr *ScoreReader::number(double value) {
  ScoreExpr expr;
  expr.kind = ScoreExpr::Number;
  expr.number = value;
  pool.push_back(expr);
  return &pool.back();
}

const ScoreExpr *ScoreReader::make(ScoreExpr::Kind kind,
                                   ArrayRef<const ScoreExpr *> args) {
  ScoreExpr expr;
  expr.kind = kind;
  expr.args.assign(args.begin(), args.end());
  pool.push_back(expr);
  return &pool.back();
}

/// What an arithmetic op means in a formula, on scalars or whole tensors.
static std::optional<ScoreExpr::Kind> kindOf(Operation *op) {
  return llvm::TypeSwitch<Operation *, std::optional<ScoreExpr::Kind>>(op)
      .Case<arith::AddFOp>([](auto) { return ScoreExpr::Add; })
      .Case<arith::SubFOp>([](auto) { return ScoreExpr::Sub; })
      .Case<arith::MulFOp>([](auto) { return ScoreExpr::Mul; })
      .Case<arith::DivFOp>([](auto) { return ScoreExpr::Div; })
      .Case<arith::SelectOp>([](auto) { return ScoreExpr::Select; })
      .Case<math::ExpOp>([](auto) { return ScoreExpr::Exp; })
      .Default([](Operation *) { return std::nullopt; });
}

/// A float constant, or a tensor that is one everywhere.
static std::optional<double> constantOf(Value value) {
  FloatAttr scalar;
  if (matchPattern(value, m_Constant(&scalar)))
    return scalar.getValueAsDouble();
  DenseFPElementsAttr all;
  if (matchPattern(value, m_Constant(&all)) && all.isSplat())
    return all.getSplatValue<FloatAttr>().getValueAsDouble();
  return std::nullopt;
}

const ScoreExpr *ScoreReader::read(Value tensor, AffineMap map) {
  auto [it, fresh] = known.try_emplace({tensor, map}, nullptr);
  if (!fresh)
    return it->second;
  const ScoreExpr *expr = readMade(tensor, map);
  if (!expr->tensor) {
    ScoreExpr stored = *expr;
    stored.tensor = tensor;
    stored.map = map;
    pool.push_back(stored);
    expr = &pool.back();
  }
  return known[{tensor, map}] = expr;
}

const ScoreExpr *ScoreReader::readMade(Value tensor, AffineMap map) {
  if (std::optional<double> value = constantOf(tensor))
    return number(*value);
  Operation *def = tensor.getDefiningOp();
  if (!def)
    return leaf(tensor, map);
  if (auto fill = dyn_cast<linalg::FillOp>(def)) {
    if (std::optional<double> value = constantOf(fill.getInputs()[0]))
      return number(*value);
    return leaf(tensor, map);
  }
  if (std::optional<ScoreExpr::Kind> kind = kindOf(def)) {
    visited.insert(def);
    SmallVector<const ScoreExpr *> args;
    for (Value operand : def->getOperands())
      args.push_back(isa<ShapedType>(operand.getType())
                         ? read(operand, map)
                         : leaf(operand, AffineMap()));
    return make(*kind, args);
  }
  auto op = dyn_cast<linalg::LinalgOp>(def);
  if (!op || !op.hasPureTensorSemantics() || op->getNumResults() != 1)
    return leaf(tensor, map);
  const ScoreExpr *expr = op.getNumReductionLoops() == 0
                              ? readElementwise(op, map)
                              : readReduction(op, map);
  return expr ? expr : leaf(tensor, map);
}

const ScoreExpr *ScoreReader::readElementwise(linalg::LinalgOp op,
                                              AffineMap map) {
  if (op.hasIndexSemantics())
    return nullptr;
  AffineMap out = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  AffineMap inverse = inversePermutation(out);
  if (!inverse)
    return nullptr;
  visited.insert(op);
  Value result = op.getBlock()->getTerminator()->getOperand(0);
  return readScalar(result, op, inverse.compose(map));
}

/// A reduction of the keys: `map` does not depend on them, the op's one
/// reduction loop runs over them.
const ScoreExpr *ScoreReader::readReduction(linalg::LinalgOp op,
                                            AffineMap map) {
  AffineExpr keys = getAffineDimExpr(rank - 1, context);
  if (op.getNumReductionLoops() != 1 || op.hasIndexSemantics() ||
      map.isFunctionOfDim(rank - 1))
    return nullptr;

  // The formula: combine(out, f(ins)).
  Value yielded = op.getBlock()->getTerminator()->getOperand(0);
  Operation *combine = yielded.getDefiningOp();
  bool max = isa_and_nonnull<arith::MaximumFOp, arith::MaxNumFOp>(combine);
  if (!max && !isa_and_nonnull<arith::AddFOp>(combine))
    return nullptr;
  BlockArgument state = op.getRegionOutputArgs()[0];
  Value folded = combine->getOperand(0) == state ? combine->getOperand(1)
                                                 : combine->getOperand(0);
  if (combine->getOperand(0) != state && combine->getOperand(1) != state)
    return nullptr;
  const ScoreExpr *start = read(op.getDpsInits()[0], map);
  bool neutral = start->is(ScoreExpr::Number) &&
                 (max ? start->number <= -std::numeric_limits<float>::max()
                      : start->number == 0);
  if (!neutral)
    return nullptr;

  AffineMap out = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  SmallVector<AffineExpr> loops(op.getNumLoops(), keys);
  for (auto [result, at] : llvm::zip(out.getResults(), map.getResults()))
    if (auto dim = dyn_cast<AffineDimExpr>(result))
      loops[dim.getPosition()] = at;
  visited.insert(op);
  return make(max ? ScoreExpr::RowMax : ScoreExpr::RowSum,
              readScalar(folded, op, AffineMap::get(rank, 0, loops, context)));
}

/// `scalar` in the body of `op`, whose loops stand at `loops` of the scores.
const ScoreExpr *ScoreReader::readScalar(Value scalar, linalg::LinalgOp op,
                                         AffineMap loops) {
  if (auto arg = dyn_cast<BlockArgument>(scalar);
      arg && arg.getOwner() == op.getBlock()) {
    OpOperand &operand = op->getOpOperand(arg.getArgNumber());
    if (!isa<RankedTensorType>(operand.get().getType())) {
      if (std::optional<double> value = constantOf(operand.get()))
        return number(*value);
      return leaf(operand.get(), AffineMap());
    }
    return read(operand.get(),
                op.getMatchingIndexingMap(&operand).compose(loops));
  }
  if (std::optional<double> value = constantOf(scalar))
    return number(*value);
  Operation *def = scalar.getDefiningOp();
  if (!def || def->getBlock() != op.getBlock())
    return leaf(scalar, AffineMap());
  std::optional<ScoreExpr::Kind> kind = kindOf(def);
  if (!kind)
    return leaf(scalar, AffineMap());
  SmallVector<const ScoreExpr *> args;
  for (Value operand : def->getOperands())
    args.push_back(readScalar(operand, op, loops));
  return make(*kind, args);
}

} // namespace attune

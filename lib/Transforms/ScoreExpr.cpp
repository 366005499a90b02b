//===- ScoreExpr.cpp - Linalg ops read as formulas --------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScoreExpr.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace attune {

/// Limit of a formula's depth: a deeper one is not fused, and the compiler's
/// stack does not overflow.
static constexpr unsigned kMaxDepth = 400;
/// Largest constant in index formulas, so that no sum overflows, in i32 either.
static constexpr int64_t kMaxInteger = int64_t(1) << 28;

void ScoreExpr::Profile(llvm::FoldingSetNodeID &id) const {
  id.AddInteger(kind);
  id.AddPointer(tensor.getAsOpaquePointer());
  id.AddPointer(map.getAsOpaquePointer());
  id.AddInteger(llvm::bit_cast<uint64_t>(number));
  id.AddPointer(index.getAsOpaquePointer());
  id.AddInteger(static_cast<unsigned>(predicate));
  id.AddPointer(op);
  for (const ScoreExpr *arg : args)
    id.AddPointer(arg);
}

ScaledExpr stripFactors(const ScoreExpr *expr) {
  double factor = 1;
  while (expr->is(ScoreExpr::Mul) || expr->is(ScoreExpr::Div)) {
    const ScoreExpr *rest = expr->args[0], *number = expr->args[1];
    if (expr->is(ScoreExpr::Mul) && rest->is(ScoreExpr::Number))
      std::swap(rest, number);
    if (!number->is(ScoreExpr::Number))
      break;
    factor = expr->is(ScoreExpr::Mul) ? factor * number->number
                                      : factor / number->number;
    expr = rest;
  }
  return {expr, factor};
}

//===-- Making formulas --------------------------------------------------===//

const ScoreExpr *ScoreReader::unique(const ScoreExpr &expr) {
  llvm::FoldingSetNodeID id;
  expr.Profile(id);
  void *place = nullptr;
  if (ScoreExpr *found = interned.FindNodeOrInsertPos(id, place))
    return found;
  pool.push_back(expr);
  interned.InsertNode(&pool.back(), place);
  return &pool.back();
}

const ScoreExpr *ScoreReader::leaf(Value tensor, AffineMap map) {
  ScoreExpr expr;
  expr.tensor = tensor;
  expr.map = map;
  return unique(expr);
}

const ScoreExpr *ScoreReader::number(double value) {
  ScoreExpr expr;
  expr.kind = ScoreExpr::Number;
  expr.number = value;
  return unique(expr);
}

const ScoreExpr *ScoreReader::index(AffineExpr value) {
  ScoreExpr expr;
  expr.kind = ScoreExpr::Index;
  expr.index = value;
  return unique(expr);
}

const ScoreExpr *ScoreReader::other(Operation *op,
                                    ArrayRef<const ScoreExpr *> args) {
  ScoreExpr expr;
  expr.kind = ScoreExpr::Other;
  expr.op = op;
  expr.args.assign(args.begin(), args.end());
  return unique(expr);
}

/// Arithmetic on constants, also in the branches of a select.
const ScoreExpr *ScoreReader::fold(ScoreExpr::Kind kind,
                                   ArrayRef<const ScoreExpr *> args) {
  bool arithmetic = kind == ScoreExpr::Add || kind == ScoreExpr::Sub ||
                    kind == ScoreExpr::Mul || kind == ScoreExpr::Div;
  if (!arithmetic)
    return nullptr;
  const ScoreExpr *a = args[0], *b = args[1];
  if (a->is(ScoreExpr::Number) && b->is(ScoreExpr::Number)) {
    double x = a->number, y = b->number;
    return number(kind == ScoreExpr::Add   ? x + y
                  : kind == ScoreExpr::Sub ? x - y
                  : kind == ScoreExpr::Mul ? x * y
                                           : x / y);
  }
  auto isChoice = [](const ScoreExpr *expr) {
    return expr->is(ScoreExpr::Select) &&
           expr->args[1]->is(ScoreExpr::Number) &&
           expr->args[2]->is(ScoreExpr::Number);
  };
  if (isChoice(a) && b->is(ScoreExpr::Number))
    return make(ScoreExpr::Select, {a->args[0], make(kind, {a->args[1], b}),
                                    make(kind, {a->args[2], b})});
  if (a->is(ScoreExpr::Number) && isChoice(b))
    return make(ScoreExpr::Select, {b->args[0], make(kind, {a, b->args[1]}),
                                    make(kind, {a, b->args[2]})});
  return nullptr;
}

const ScoreExpr *ScoreReader::make(ScoreExpr::Kind kind,
                                   ArrayRef<const ScoreExpr *> args) {
  if (const ScoreExpr *folded = fold(kind, args))
    return folded;
  ScoreExpr expr;
  expr.kind = kind;
  expr.args.assign(args.begin(), args.end());
  return unique(expr);
}

/// Integers of loops and sizes; comparisons of them; what is made of truths.
const ScoreExpr *
ScoreReader::combineIntegers(Operation *op, ArrayRef<const ScoreExpr *> args) {
  auto indices = [&] {
    return llvm::all_of(
        args, [](const ScoreExpr *arg) { return arg->is(ScoreExpr::Index); });
  };
  Type type = op->getResult(0).getType();
  Type element = getElementTypeOrSelf(type);
  if (element.isInteger(1)) {
    if (auto compare = dyn_cast<arith::CmpIOp>(op); compare && indices()) {
      ScoreExpr expr;
      expr.kind = ScoreExpr::Compare;
      expr.predicate = compare.getPredicate();
      expr.args.assign(args.begin(), args.end());
      return unique(expr);
    }
    auto isTrue = [](const ScoreExpr *arg) {
      return arg->is(ScoreExpr::Index) && isa<AffineConstantExpr>(arg->index) &&
             cast<AffineConstantExpr>(arg->index).getValue() != 0;
    };
    if (isa<arith::XOrIOp>(op) && (isTrue(args[0]) || isTrue(args[1])))
      return make(ScoreExpr::Not, isTrue(args[0]) ? args[1] : args[0]);
    if (isa<arith::AndIOp>(op))
      return make(ScoreExpr::And, args);
    if (isa<arith::OrIOp>(op))
      return make(ScoreExpr::Or, args);
    return nullptr;
  }
  // A narrow integer wraps around where lengths may be.
  if (!indices() ||
      (!element.isIndex() && element.getIntOrFloatBitWidth() < 32))
    return nullptr;
  if (isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtSIOp,
          arith::TruncIOp>(op))
    return args[0];
  if (isa<arith::AddIOp>(op))
    return index(args[0]->index + args[1]->index);
  if (isa<arith::SubIOp>(op))
    return index(args[0]->index - args[1]->index);
  if (isa<arith::MulIOp>(op) && llvm::any_of(args, [](const ScoreExpr *arg) {
        return isa<AffineConstantExpr>(arg->index);
      }))
    return index(args[0]->index * args[1]->index);
  return nullptr;
}

/// The formula of an op, on scalars or whole tensors.
const ScoreExpr *ScoreReader::combine(Operation *op,
                                      ArrayRef<const ScoreExpr *> args) {
  const ScoreExpr *expr =
      llvm::TypeSwitch<Operation *, const ScoreExpr *>(op)
          .Case<arith::AddFOp>([&](auto) { return make(ScoreExpr::Add, args); })
          .Case<arith::SubFOp>([&](auto) { return make(ScoreExpr::Sub, args); })
          .Case<arith::MulFOp>([&](auto) { return make(ScoreExpr::Mul, args); })
          .Case<arith::DivFOp>([&](auto) { return make(ScoreExpr::Div, args); })
          .Case<arith::SelectOp>(
              [&](auto) { return make(ScoreExpr::Select, args); })
          .Case<math::ExpOp>([&](auto) { return make(ScoreExpr::Exp, args); })
          .Case<math::Exp2Op>([&](auto) { return make(ScoreExpr::Exp2, args); })
          .Case<math::TanhOp>([&](auto) { return make(ScoreExpr::Tanh, args); })
          .Case<arith::NegFOp>(
              [&](auto) { return make(ScoreExpr::Mul, {args[0], number(-1)}); })
          .Case<math::FmaOp>([&](auto) {
            return make(ScoreExpr::Add,
                        {make(ScoreExpr::Mul, {args[0], args[1]}), args[2]});
          })
          .Case<arith::ExtFOp, arith::TruncFOp>([&](auto) { return args[0]; })
          .Case<arith::UIToFPOp, arith::SIToFPOp>(
              [&](Operation *cast) -> const ScoreExpr * {
                Type from = getElementTypeOrSelf(cast->getOperand(0).getType());
                if (!from.isInteger(1))
                  return nullptr;
                double one = isa<arith::UIToFPOp>(cast) ? 1 : -1;
                return make(ScoreExpr::Select,
                            {args[0], number(one), number(0)});
              })
          .Default([](Operation *) { return nullptr; });
  if (!expr && getElementTypeOrSelf(op->getResult(0)).isIntOrIndex())
    expr = combineIntegers(op, args);
  return expr ? expr : other(op, args);
}

//===-- Reading tensors --------------------------------------------------===//

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

/// An integer constant that index formulas may hold.
static std::optional<int64_t> integerOf(Value value) {
  APInt integer;
  if (!matchPattern(value, m_ConstantInt(&integer)) ||
      integer.getSignificantBits() > 64 ||
      std::abs(integer.getSExtValue() / 2) > kMaxInteger / 2)
    return std::nullopt;
  return integer.getSExtValue();
}

const ScoreExpr *ScoreReader::read(Value tensor, AffineMap map) {
  if (const ScoreExpr *found = known.lookup({tensor, map}))
    return found;
  const ScoreExpr *expr = leaf(tensor, map);
  if (depth < kMaxDepth) {
    ++depth;
    expr = readMade(tensor, map);
    --depth;
  }
  stored.try_emplace(expr, tensor, map);
  known[{tensor, map}] = expr;
  return expr;
}

const ScoreExpr *ScoreReader::readMade(Value tensor, AffineMap map) {
  if (std::optional<double> value = constantOf(tensor))
    return number(*value);
  if (std::optional<int64_t> value = integerOf(tensor))
    return index(getAffineConstantExpr(*value, context));
  Operation *def = tensor.getDefiningOp();
  if (!def)
    return leaf(tensor, map);
  if (auto fill = dyn_cast<linalg::FillOp>(def))
    return readOutside(fill.getInputs()[0]);
  if (auto softmax = dyn_cast<linalg::SoftmaxOp>(def)) {
    const ScoreExpr *expr = readSoftmax(softmax, map);
    return expr ? expr : leaf(tensor, map);
  }
  if (OpTrait::hasElementwiseMappableTraits(def) && def->getNumResults() == 1) {
    visited.insert(def);
    SmallVector<const ScoreExpr *> args;
    for (Value operand : def->getOperands())
      args.push_back(isa<ShapedType>(operand.getType()) ? read(operand, map)
                                                        : readOutside(operand));
    return combine(def, args);
  }
  if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(def)) {
    const ScoreExpr *expr = readReshape(def, map);
    return expr ? expr : leaf(tensor, map);
  }
  auto op = dyn_cast<linalg::LinalgOp>(def);
  if (!op || !op.hasPureTensorSemantics() || op->getNumResults() != 1)
    return leaf(tensor, map);
  const ScoreExpr *expr = op.getNumReductionLoops() == 0
                              ? readElementwise(op, map)
                              : readReduction(op, map);
  return expr ? expr : leaf(tensor, map);
}

/// Each group of dimensions of one side is one dimension of the other: its
/// index counts them off, the last one fastest.
const ScoreExpr *ScoreReader::readReshape(Operation *op, AffineMap map) {
  bool expands = isa<tensor::ExpandShapeOp>(op);
  Value source = op->getOperand(0);
  auto wide = cast<RankedTensorType>(expands ? op->getResult(0).getType()
                                             : source.getType());
  SmallVector<ReassociationIndices> groups =
      expands ? cast<tensor::ExpandShapeOp>(op).getReassociationIndices()
              : cast<tensor::CollapseShapeOp>(op).getReassociationIndices();
  SmallVector<AffineExpr> indices;
  AffineExpr zero = getAffineConstantExpr(0, context);
  for (auto [i, group] : llvm::enumerate(groups)) {
    // The dimensions that are more than one index.
    SmallVector<int64_t> dims;
    for (int64_t dim : group)
      if (wide.getDimSize(dim) != 1)
        dims.push_back(dim);
    int64_t stride = 1;
    AffineExpr sum = zero;
    SmallVector<AffineExpr> parts(group.size(), zero);
    for (int64_t dim : llvm::reverse(dims)) {
      bool outermost = dim == dims.front();
      int64_t size = wide.getDimSize(dim);
      if (!outermost && (ShapedType::isDynamic(size) || size == 0 ||
                         stride > kMaxInteger / size))
        return nullptr;
      if (expands) {
        sum = sum + map.getResult(dim) * stride;
      } else {
        AffineExpr part = map.getResult(i).floorDiv(stride);
        parts[dim - group.front()] = outermost ? part : part % size;
      }
      stride = outermost ? stride : stride * size;
    }
    if (expands)
      indices.push_back(simplifyAffineExpr(sum, numDims, 0));
    else
      indices.append(parts);
  }
  visited.insert(op);
  return read(source, AffineMap::get(numDims, 0, indices, context));
}

const ScoreExpr *ScoreReader::readSoftmax(linalg::SoftmaxOp op, AffineMap map) {
  int64_t along = op.getDimension();
  if (!op.hasPureTensorSemantics() ||
      map.getResult(along) != getAffineDimExpr(keyDim, context))
    return nullptr;
  for (auto [i, expr] : llvm::enumerate(map.getResults()))
    if (static_cast<int64_t>(i) != along && expr.isFunctionOfDim(keyDim))
      return nullptr;
  visited.insert(op);
  return make(ScoreExpr::Softmax, read(op.getInput(), map));
}

const ScoreExpr *ScoreReader::readElementwise(linalg::LinalgOp op,
                                              AffineMap map) {
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
  AffineExpr keys = getAffineDimExpr(keyDim, context);
  if (op.getNumReductionLoops() != 1 || op.hasIndexSemantics() ||
      map.isFunctionOfDim(keyDim) || linalg::isaContractionOpInterface(op))
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
  auto type = dyn_cast<FloatType>(state.getType());
  if (!type)
    return nullptr;
  double least =
      -APFloat::getLargest(type.getFloatSemantics()).convertToDouble();
  bool neutral = start->is(ScoreExpr::Number) &&
                 (max ? start->number <= least : start->number == 0);
  if (!neutral)
    return nullptr;

  AffineMap out = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  SmallVector<AffineExpr> loops(op.getNumLoops(), keys);
  for (auto [result, at] : llvm::zip(out.getResults(), map.getResults())) {
    // The keys may stay as a dimension of size one.
    if (auto dim = dyn_cast<AffineDimExpr>(result))
      loops[dim.getPosition()] = at;
    else if (!isa<AffineConstantExpr>(result))
      return nullptr;
  }
  const ScoreExpr *arg =
      readScalar(folded, op, AffineMap::get(numDims, 0, loops, context));
  visited.insert(op);
  return make(max ? ScoreExpr::RowMax : ScoreExpr::RowSum, arg);
}

//===-- Reading scalars --------------------------------------------------===//

/// A scalar that is the same for all elements.
const ScoreExpr *ScoreReader::readOutside(Value scalar) {
  if (std::optional<double> value = constantOf(scalar))
    return number(*value);
  if (std::optional<int64_t> value = integerOf(scalar))
    return index(getAffineConstantExpr(*value, context));
  if (!scalar.getType().isIntOrIndex() || scalar.getType().isInteger(1))
    return leaf(scalar, AffineMap());
  auto *place = llvm::find(symbolValues, scalar);
  unsigned symbol = place - symbolValues.begin();
  if (place == symbolValues.end())
    symbolValues.push_back(scalar);
  return index(getAffineSymbolExpr(symbol, context));
}

/// `scalar` in the body of `op`, whose loops stand at `loops` of the space.
const ScoreExpr *ScoreReader::readScalar(Value scalar, linalg::LinalgOp op,
                                         AffineMap loops) {
  if (auto arg = dyn_cast<BlockArgument>(scalar);
      arg && arg.getOwner() == op.getBlock()) {
    OpOperand &operand = op->getOpOperand(arg.getArgNumber());
    if (!isa<RankedTensorType>(operand.get().getType()))
      return readOutside(operand.get());
    return read(operand.get(),
                op.getMatchingIndexingMap(&operand).compose(loops));
  }
  Operation *def = scalar.getDefiningOp();
  if (!def || def->getBlock() != op.getBlock())
    return readOutside(scalar);
  if (std::optional<double> value = constantOf(scalar))
    return number(*value);
  if (std::optional<int64_t> value = integerOf(scalar))
    return index(getAffineConstantExpr(*value, context));
  if (auto loop = dyn_cast<linalg::IndexOp>(def))
    return index(loops.getResult(loop.getDim()));
  if (const ScoreExpr *found = known.lookup({scalar, loops}))
    return found;
  if (def->getNumResults() != 1 || depth >= kMaxDepth)
    return leaf(scalar, AffineMap());
  ++depth;
  SmallVector<const ScoreExpr *> args;
  for (Value operand : def->getOperands())
    args.push_back(readScalar(operand, op, loops));
  --depth;
  return known[{scalar, loops}] = combine(def, args);
}

} // namespace attune

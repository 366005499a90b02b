//===- Structured.cpp - linalg ----------------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Machine.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include <cmath>

using namespace attune;
using namespace attune::validation;
using namespace mlir;

/// The sizes of the loops, from the operands that name them.
static bool findSizes(Step &step, linalg::LinalgOp op, Shape &sizes) {
  sizes.assign(op.getNumLoops(), -1);
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<ShapedType>(operand.get().getType()))
      continue;
    const Datum &value = step.in[operand.getOperandNumber()];
    const Shape &shape = isa<MemRefType>(operand.get().getType())
                             ? value.view().shape
                             : value.array().shape;
    AffineMap map = op.getMatchingIndexingMap(&operand);
    for (auto [size, expr] : llvm::zip(shape, map.getResults()))
      if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
        int64_t &known = sizes[dim.getPosition()];
        if (known != -1 && known != size)
          return step.machine.illegal(
              step, "sizes of operands differ: " + llvm::Twine(known) +
                        " and " + llvm::Twine(size));
        known = size;
      }
  }
  return !llvm::is_contained(sizes, -1) ||
         step.machine.illegal(step, "has a loop that no operand sizes");
}

static bool runStructured(Step &step) {
  auto op = cast<linalg::LinalgOp>(step.op);
  Shape sizes;
  if (!findSizes(step, op, sizes))
    return false;
  llvm::SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  size_t numInputs = op.getNumDpsInputs();
  for (size_t i = numInputs; i < step.in.size(); ++i)
    if (isa<TensorType>(op->getOperand(i).getType()))
      step.in[i].ownArray();
  Block &body = *op.getBlock();
  bool empty = llvm::is_contained(sizes, 0);
  Shape index(sizes.size(), 0);
  step.machine.linalgIndices.push_back(index);
  while (!empty) {
    step.machine.linalgIndices.back() = index;
    llvm::SmallVector<Datum, 4> args, results;
    llvm::SmallVector<Shape, 4> places;
    for (size_t i = 0; i < step.in.size(); ++i) {
      auto shaped = dyn_cast<ShapedType>(op->getOperand(i).getType());
      places.push_back(shaped ? Shape(maps[i].compose(index)) : Shape());
      if (!shaped) {
        args.push_back(step.in[i]);
      } else if (isa<MemRefType>(shaped)) {
        uint8_t *place = addressOf(step.in[i].view(), shaped.getElementType(),
                                   places.back());
        if (!place)
          return step.machine.outOfBounds(step, "reads outside of a buffer");
        args.push_back(loadScalar(shaped.getElementType(), place));
      } else {
        const Array &array = step.in[i].array();
        for (size_t d = 0; d < array.shape.size(); ++d)
          if (places.back()[d] < 0 || places.back()[d] >= array.shape[d])
            return step.machine.outOfBounds(step, "reads outside of a tensor");
        args.push_back(array.data[flatten(places.back(), array.shape)]);
      }
    }
    if (!step.machine.runBlock(body, args, results))
      return false;
    for (size_t r = 0; r < results.size(); ++r) {
      size_t i = numInputs + r;
      auto shaped = dyn_cast<ShapedType>(op->getOperand(i).getType());
      if (isa<MemRefType>(shaped)) {
        storeScalar(
            shaped.getElementType(),
            addressOf(step.in[i].view(), shaped.getElementType(), places[i]),
            results[r].scalar);
      } else {
        Array &array = step.in[i].array();
        array.data[flatten(places[i], array.shape)] = results[r].scalar;
      }
    }
    if (!advance(index, sizes))
      break;
  }
  step.machine.linalgIndices.pop_back();
  for (size_t i = numInputs; i < step.in.size(); ++i)
    if (isa<TensorType>(op->getOperand(i).getType()))
      step.give(step.in[i]);
  return true;
}

/// A row that is -inf all along is NaN, as in the op's decomposition.
static bool runSoftmax(Step &step) {
  auto op = cast<linalg::SoftmaxOp>(step.op);
  if (!op.hasPureTensorSemantics())
    return step.machine.illegal(step, "is a softmax of memory");
  Datum result = step.in[0];
  result.ownArray();
  Array &array = result.array();
  int64_t along = op.getDimension(), inner = 1;
  for (size_t d = along + 1; d < array.shape.size(); ++d)
    inner *= array.shape[d];
  int64_t count = array.shape[along], size = array.data.size();
  if (!step.machine.spend(step, 2 * size))
    return false;
  Type type = step.elementOf(op->getResult(0));
  for (int64_t row = 0; count && row < size / count; ++row) {
    Scalar *first = &array.data[row / inner * inner * count + row % inner];
    double most = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t i = 0; i < count; ++i)
      most = std::isnan(first[i * inner].f)
                 ? first[i * inner].f
                 : std::max(most, first[i * inner].f);
    for (int64_t i = 0; i < count; ++i)
      sum += first[i * inner].f = std::exp(first[i * inner].f - most);
    for (int64_t i = 0; i < count; ++i)
      first[i * inner].f = roundTo(type, first[i * inner].f / sum);
  }
  step.give(std::move(result));
  return true;
}

static bool runIndex(Step &step) {
  step.give(whole(step.machine.linalgIndices
                      .back()[cast<linalg::IndexOp>(step.op).getDim()]));
  return true;
}

/// affine.apply, affine.min and affine.max.
static bool runAffine(Step &step) {
  auto map = step.op->getAttrOfType<AffineMapAttr>("map");
  llvm::SmallVector<Attribute> operands;
  Builder b(step.op->getContext());
  for (const Datum &operand : step.in)
    operands.push_back(b.getI64IntegerAttr(operand.integer()));
  llvm::SmallVector<Attribute> values;
  if (!map || failed(map.getValue().constantFold(operands, values)))
    return step.machine.illegal(step, "divides by zero");
  int64_t result = cast<IntegerAttr>(values.front()).getInt();
  bool least = step.op->getName().getStringRef() == "affine.min";
  for (Attribute value : values) {
    int64_t number = cast<IntegerAttr>(value).getInt();
    result = least ? std::min(result, number) : std::max(result, number);
  }
  step.give(whole(result));
  return true;
}

void validation::addLinalg(Handlers &handlers) {
  for (const char *name :
       {"generic", "fill",         "copy",        "transpose", "broadcast",
        "matmul",  "batch_matmul", "matvec",      "vecmat",    "dot",
        "map",     "reduce",       "elementwise", "contract",  "add",
        "sub",     "mul",          "div",         "exp",       "max",
        "select",  "tanh",         "negf"})
    handlers[("linalg." + llvm::Twine(name)).str()] = runStructured;
  handlers["linalg.index"] = runIndex;
  handlers["linalg.softmax"] = runSoftmax;
  for (const char *name : {"affine.apply", "affine.min", "affine.max"})
    handlers[name] = runAffine;
}

//===- Tensors.cpp - tensor and bufferization -------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Slices.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace attune;
using namespace attune::validation;
using namespace mlir;

//===----------------------------------------------------------------------===//
// Slices
//===----------------------------------------------------------------------===//

/// Calls `visit` with the place in the whole array of each element of a slice.
template <typename Visit>
static bool overSlice(Step &step, const Shape &whole, const Slice &slice,
                      Visit visit) {
  if (volume(slice.sizes) == 0)
    return true;
  for (size_t d = 0; d < whole.size(); ++d) {
    int64_t last = slice.offsets[d] + (slice.sizes[d] - 1) * slice.strides[d];
    if (slice.offsets[d] < 0 || slice.sizes[d] < 0 || last >= whole[d])
      return step.machine.outOfBounds(
          step, "takes elements " + llvm::Twine(slice.offsets[d]) + " to " +
                    llvm::Twine(last) + " of dimension " + llvm::Twine(d) +
                    ", which has " + llvm::Twine(whole[d]));
  }
  Shape index(whole.size(), 0), place(whole.size());
  do {
    for (size_t d = 0; d < whole.size(); ++d)
      place[d] = slice.offsets[d] + index[d] * slice.strides[d];
    visit(flatten(place, whole));
  } while (advance(index, slice.sizes));
  return step.machine.spend(step, volume(slice.sizes) / 8);
}

bool validation::extractSlice(Step &step, const Array &from, Array &to,
                              const Slice &slice) {
  size_t i = 0;
  return overSlice(step, from.shape, slice,
                   [&](int64_t at) { to.data[i++] = from.data[at]; });
}

bool validation::insertSlice(Step &step, const Array &from, Array &to,
                             const Slice &slice) {
  if (int64_t(from.data.size()) != volume(slice.sizes))
    return step.machine.illegal(step, "inserts another size than it says");
  size_t i = 0;
  return overSlice(step, to.shape, slice,
                   [&](int64_t at) { to.data[at] = from.data[i++]; });
}

/// The shape of a type whose open sizes are the last of `sizes`.
static Shape shapeOf(Type type, llvm::ArrayRef<Datum> sizes) {
  size_t at = 0;
  return mixed(cast<ShapedType>(type).getShape(), sizes, at);
}

static bool runExtractSlice(Step &step) {
  auto op = cast<tensor::ExtractSliceOp>(step.op);
  Slice slice = readSlice(op, step.in.drop_front());
  llvm::SmallBitVector dropped = op.getDroppedDims();
  Shape shape;
  for (size_t d = 0; d < slice.sizes.size(); ++d)
    if (!dropped.test(d))
      shape.push_back(slice.sizes[d]);
  if (volume(shape) < 0)
    return step.machine.outOfBounds(step, "has a negative size");
  Datum result = makeArray(shape, whole(0));
  if (!extractSlice(step, step.in[0].array(), result.array(), slice))
    return false;
  step.give(result);
  return true;
}

static bool runInsertSlice(Step &step) {
  auto op = cast<tensor::InsertSliceOp>(step.op);
  Slice slice = readSlice(op, step.in.drop_front(2));
  Array &dest = step.in[1].ownArray();
  if (!insertSlice(step, step.in[0].array(), dest, slice))
    return false;
  step.give(step.in[1]);
  return true;
}

//===----------------------------------------------------------------------===//
// The rest
//===----------------------------------------------------------------------===//

static bool runEmpty(Step &step) {
  Shape shape = shapeOf(step.op->getResult(0).getType(), step.in);
  for (int64_t size : shape)
    if (size < 0)
      return step.machine.outOfBounds(step, "has a negative size");
  step.give(makeArray(shape, poison(step.elementOf(step.op->getResult(0)))));
  return step.machine.spend(step, volume(shape) / 8);
}

static bool runAllocTensor(Step &step) {
  auto op = cast<bufferization::AllocTensorOp>(step.op);
  if (op.getCopy()) {
    step.give(step.in[op.getDynamicSizes().size()]);
    return true;
  }
  return runEmpty(step);
}

static bool runDim(Step &step) {
  const Shape &shape = step.in[0].array().shape;
  int64_t d = step.in[1].integer();
  if (d < 0 || d >= int64_t(shape.size()))
    return step.machine.illegal(step, "has no such dimension");
  step.give(whole(shape[d]));
  return true;
}

static bool placeOf(Step &step, const Shape &shape, llvm::ArrayRef<Datum> in,
                    int64_t &at) {
  at = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    int64_t i = in[d].integer();
    if (i < 0 || i >= shape[d])
      return step.machine.outOfBounds(
          step, "index " + llvm::Twine(i) + " of dimension " + llvm::Twine(d) +
                    ", which has " + llvm::Twine(shape[d]));
    at = at * shape[d] + i;
  }
  return true;
}

static bool runExtract(Step &step) {
  const Array &array = step.in[0].array();
  int64_t at;
  if (!placeOf(step, array.shape, step.in.drop_front(), at))
    return false;
  step.give(array.data[at]);
  return true;
}

static bool runInsert(Step &step) {
  Array &array = step.in[1].ownArray();
  int64_t at;
  if (!placeOf(step, array.shape, step.in.drop_front(2), at))
    return false;
  array.data[at] = step.in[0].scalar;
  step.give(step.in[1]);
  return true;
}

static bool reshape(Step &step, const Shape &shape) {
  if (volume(shape) != int64_t(step.in[0].array().data.size()))
    return step.machine.illegal(step, "changes the number of elements");
  step.in[0].ownArray().shape = shape;
  step.give(step.in[0]);
  return true;
}

static bool runExpand(Step &step) {
  auto op = cast<tensor::ExpandShapeOp>(step.op);
  size_t at = 0;
  return reshape(step,
                 mixed(op.getStaticOutputShape(), step.in.drop_front(), at));
}

static bool runCollapse(Step &step) {
  auto op = cast<tensor::CollapseShapeOp>(step.op);
  Shape shape;
  for (const auto &group : op.getReassociationIndices()) {
    shape.push_back(1);
    for (int64_t d : group)
      shape.back() *= step.in[0].array().shape[d];
  }
  return reshape(step, shape);
}

static bool runCast(Step &step) {
  auto type = dyn_cast<RankedTensorType>(step.op->getResult(0).getType());
  if (type)
    for (auto [size, wanted] :
         llvm::zip(step.in[0].array().shape, type.getShape()))
      if (!ShapedType::isDynamic(wanted) && size != wanted)
        return step.machine.illegal(step, "casts to a size that it has not");
  step.give(step.in[0]);
  return true;
}

static bool runFromElements(Step &step) {
  Datum result =
      makeArray(shapeOf(step.op->getResult(0).getType(), {}), whole(0));
  for (auto [i, element] : llvm::enumerate(step.in))
    result.array().data[i] = element.scalar;
  step.give(result);
  return true;
}

static bool runSplat(Step &step) {
  step.give(
      makeArray(shapeOf(step.op->getResult(0).getType(), step.in.drop_front()),
                step.in[0].scalar));
  return true;
}

static bool runGenerate(Step &step) {
  auto op = cast<tensor::GenerateOp>(step.op);
  Datum result = makeArray(shapeOf(op.getType(), step.in), whole(0));
  Array &array = result.array();
  if (array.data.empty()) {
    step.give(result);
    return true;
  }
  Shape index(array.shape.size(), 0);
  size_t i = 0;
  do {
    llvm::SmallVector<Datum> args, value;
    for (int64_t d : index)
      args.push_back(whole(d));
    if (!step.machine.runBlock(op.getBody().front(), args, value))
      return false;
    array.data[i++] = value[0].scalar;
  } while (advance(index, array.shape));
  step.give(result);
  return true;
}

static bool runConcat(Step &step) {
  auto op = cast<tensor::ConcatOp>(step.op);
  uint64_t d = op.getDim();
  Shape shape = step.in[0].array().shape;
  shape[d] = 0;
  for (const Datum &part : step.in)
    shape[d] += part.array().shape[d];
  Datum result = makeArray(shape, whole(0));
  Slice slice{Shape(shape.size(), 0), shape, Shape(shape.size(), 1)};
  for (const Datum &part : step.in) {
    slice.sizes = part.array().shape;
    if (!insertSlice(step, part.array(), result.array(), slice))
      return false;
    slice.offsets[d] += slice.sizes[d];
  }
  step.give(result);
  return true;
}

static bool runMaterialize(Step &step) {
  auto op = cast<bufferization::MaterializeInDestinationOp>(step.op);
  if (isa<TensorType>(op.getDest().getType())) {
    step.give(step.in[0]);
    return true;
  }
  const Array &array = step.in[0].array();
  writeView(step.in[1].view(), step.elementOf(op.getDest()), array);
  return step.machine.spend(step, int64_t(array.data.size()) / 8);
}

static bool runToTensor(Step &step) {
  const View &view = step.in[0].view();
  step.give(readView(view, step.elementOf(step.op->getOperand(0))));
  return step.machine.spend(step, volume(view.shape) / 8);
}

static bool runToBuffer(Step &step) {
  Type element = step.elementOf(step.op->getOperand(0));
  Datum result = allocate(element, step.in[0].array().shape);
  writeView(result.view(), element, step.in[0].array());
  step.give(result);
  return step.machine.spend(step, volume(step.in[0].array().shape) / 8);
}

static bool runNothing(Step &step) { return true; }

void validation::addTensor(Handlers &handlers) {
  handlers["tensor.empty"] = runEmpty;
  handlers["tensor.dim"] = runDim;
  handlers["tensor.extract"] = runExtract;
  handlers["tensor.insert"] = runInsert;
  handlers["tensor.extract_slice"] = runExtractSlice;
  handlers["tensor.insert_slice"] = runInsertSlice;
  handlers["tensor.expand_shape"] = runExpand;
  handlers["tensor.collapse_shape"] = runCollapse;
  handlers["tensor.cast"] = runCast;
  handlers["tensor.from_elements"] = runFromElements;
  handlers["tensor.splat"] = runSplat;
  handlers["tensor.generate"] = runGenerate;
  handlers["tensor.concat"] = runConcat;
  handlers["bufferization.alloc_tensor"] = runAllocTensor;
  handlers["bufferization.dealloc_tensor"] = runNothing;
  handlers["bufferization.materialize_in_destination"] = runMaterialize;
  handlers["bufferization.to_tensor"] = runToTensor;
  handlers["bufferization.to_buffer"] = runToBuffer;
}

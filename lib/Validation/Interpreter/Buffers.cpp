//===- Buffers.cpp - memref -------------------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Arithmetic.h"
#include "Slices.h"

#include "Attune/AttuneDialect.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace attune;
using namespace attune::validation;
using namespace mlir;

static MemRefType resultType(Step &step) {
  return cast<MemRefType>(step.op->getResult(0).getType());
}

static bool runAlloc(Step &step) {
  MemRefType type = resultType(step);
  size_t at = 0;
  Shape shape = mixed(type.getShape(), step.in, at);
  for (int64_t size : shape)
    if (size < 0)
      return step.machine.outOfBounds(step, "has a negative size");
  step.give(allocate(type.getElementType(), shape));
  return step.machine.spend(step, volume(shape) / 8);
}

static bool runNothing(Step &step) { return true; }

static Shape indexFrom(llvm::ArrayRef<Datum> in) {
  Shape index;
  for (const Datum &i : in)
    index.push_back(i.integer());
  return index;
}

static bool runLoad(Step &step) {
  Type element = step.elementOf(step.op->getOperand(0));
  uint8_t *place =
      addressOf(step.in[0].view(), element, indexFrom(step.in.drop_front()));
  if (!place)
    return step.machine.outOfBounds(step, "reads outside of a buffer");
  step.give(loadScalar(element, place));
  return true;
}

static bool runStore(Step &step) {
  Type element = step.elementOf(step.op->getOperand(1));
  uint8_t *place =
      addressOf(step.in[1].view(), element, indexFrom(step.in.drop_front(2)));
  if (!place)
    return step.machine.outOfBounds(step, "writes outside of a buffer");
  storeScalar(element, place, step.in[0].scalar);
  return true;
}

static bool runDim(Step &step) {
  const Shape &shape = step.in[0].view().shape;
  int64_t d = step.in[1].integer();
  if (d < 0 || d >= int64_t(shape.size()))
    return step.machine.illegal(step, "has no such dimension");
  step.give(whole(shape[d]));
  return true;
}

static View *copyOf(Step &step) { return new View(step.in[0].view()); }

static bool runSubView(Step &step) {
  auto op = cast<memref::SubViewOp>(step.op);
  Slice slice = readSlice(op, step.in.drop_front());
  Datum result(copyOf(step));
  View &view = result.view();
  llvm::SmallBitVector dropped = op.getDroppedDims();
  Shape shape, strides;
  for (size_t d = 0; d < slice.sizes.size(); ++d) {
    if (slice.sizes[d] > 0 &&
        (slice.offsets[d] < 0 ||
         slice.offsets[d] + (slice.sizes[d] - 1) * slice.strides[d] >=
             view.shape[d]))
      return step.machine.outOfBounds(step, "is no part of its source");
    view.offset += slice.offsets[d] * view.strides[d];
    if (dropped.test(d))
      continue;
    shape.push_back(slice.sizes[d]);
    strides.push_back(slice.strides[d] * view.strides[d]);
  }
  view.shape = shape;
  view.strides = strides;
  step.give(result);
  return true;
}

static void setContiguous(View &view) {
  view.strides.assign(view.shape.size(), 1);
  for (size_t d = view.shape.size(); d-- > 1;)
    view.strides[d - 1] = view.strides[d] * view.shape[d];
}

static bool runView(Step &step) {
  MemRefType type = resultType(step);
  Datum result(copyOf(step));
  View &view = result.view();
  view.base += view.offset + step.in[1].integer();
  view.offset = 0;
  size_t at = 0;
  view.shape = mixed(type.getShape(), step.in.drop_front(2), at);
  setContiguous(view);
  step.give(result);
  return true;
}

static bool runWeightView(Step &step) {
  auto op = cast<WeightViewOp>(step.op);
  Datum result(copyOf(step));
  View &view = result.view();
  view.base += view.offset + int64_t(op.getOffset());
  if (op.getLayer())
    view.base += step.in[1].integer() * int64_t(*op.getStride());
  view.offset = 0;
  view.shape = Shape(cast<MemRefType>(op.getType()).getShape());
  setContiguous(view);
  step.give(result);
  return true;
}

static bool runReinterpret(Step &step) {
  auto op = cast<memref::ReinterpretCastOp>(step.op);
  Slice slice = readSlice(op, step.in.drop_front());
  Datum result(copyOf(step));
  View &view = result.view();
  view.offset = slice.offsets[0];
  view.shape = slice.sizes;
  view.strides = slice.strides;
  step.give(result);
  return true;
}

static bool runCast(Step &step) {
  step.give(step.in[0]);
  return true;
}

static bool runExpand(Step &step) {
  auto op = cast<memref::ExpandShapeOp>(step.op);
  Datum result(copyOf(step));
  View &view = result.view();
  size_t at = 0;
  Shape old = view.strides;
  view.shape = mixed(op.getStaticOutputShape(), step.in.drop_front(), at);
  view.strides.assign(view.shape.size(), 1);
  for (auto [source, group] : llvm::enumerate(op.getReassociationIndices())) {
    int64_t stride = old[source];
    for (int64_t d : llvm::reverse(group)) {
      view.strides[d] = stride;
      stride *= view.shape[d];
    }
  }
  step.give(result);
  return true;
}

static bool runCollapse(Step &step) {
  auto op = cast<memref::CollapseShapeOp>(step.op);
  Datum result(copyOf(step));
  View &view = result.view();
  Shape shape, strides;
  for (const auto &group : op.getReassociationIndices()) {
    shape.push_back(1);
    strides.push_back(1);
    for (int64_t d : group) {
      // The innermost that is more than one element decides.
      if (view.shape[d] != 1 || d == group.front())
        strides.back() = view.strides[d];
      shape.back() *= view.shape[d];
    }
  }
  view.shape = shape;
  view.strides = strides;
  step.give(result);
  return true;
}

static bool runCopy(Step &step) {
  Type element = step.elementOf(step.op->getOperand(0));
  Datum values = readView(step.in[0].view(), element);
  if (values.array().shape != step.in[1].view().shape)
    return step.machine.outOfBounds(step, "copies to another size");
  writeView(step.in[1].view(), element, values.array());
  return step.machine.spend(step, int64_t(values.array().data.size()) / 8);
}

static bool runGetGlobal(Step &step) {
  auto op = cast<memref::GetGlobalOp>(step.op);
  Datum &known = step.machine.globals[op.getName()];
  if (!known.box) {
    auto global =
        step.machine.getModule().lookupSymbol<memref::GlobalOp>(op.getName());
    if (!global)
      return step.machine.illegal(step, "names no global");
    known = allocate(global.getType().getElementType(),
                     Shape(global.getType().getShape()));
    auto value = dyn_cast_or_null<ElementsAttr>(global.getInitialValueAttr());
    Datum constant;
    if (value) {
      if (!makeConstant(step, value, constant))
        return false;
      writeView(known.view(), global.getType().getElementType(),
                constant.array());
    }
  }
  step.give(known);
  return true;
}

/// Runs extract_strided_metadata and extract_aligned_pointer_as_index.
static bool runMetadata(Step &step) {
  Datum base(copyOf(step));
  View &view = base.view();
  const View &from = step.in[0].view();
  view.offset = 0;
  view.shape.clear();
  view.strides.clear();
  step.give(base);
  step.give(whole(from.offset));
  for (int64_t size : from.shape)
    step.give(whole(size));
  for (int64_t stride : from.strides)
    step.give(whole(stride));
  return true;
}

static bool runPointer(Step &step) {
  const View &view = step.in[0].view();
  if (view.memory)
    step.machine.expose(view.memory.get());
  step.give(whole(reinterpret_cast<int64_t>(view.base)));
  return true;
}

void validation::addMemRef(Handlers &handlers) {
  struct {
    const char *name;
    Handler handler;
  } ops[] = {{"alloc", runAlloc},
             {"alloca", runAlloc},
             {"dealloc", runNothing},
             {"prefetch", runNothing},
             {"load", runLoad},
             {"store", runStore},
             {"dim", runDim},
             {"subview", runSubView},
             {"view", runView},
             {"reinterpret_cast", runReinterpret},
             {"cast", runCast},
             {"memory_space_cast", runCast},
             {"assume_alignment", runCast},
             {"expand_shape", runExpand},
             {"collapse_shape", runCollapse},
             {"copy", runCopy},
             {"get_global", runGetGlobal},
             {"extract_strided_metadata", runMetadata},
             {"extract_aligned_pointer_as_index", runPointer}};
  for (auto [name, handler] : ops)
    handlers[("memref." + llvm::Twine(name)).str()] = handler;
  handlers["attune.weight_view"] = runWeightView;
}

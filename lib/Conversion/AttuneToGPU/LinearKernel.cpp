//===- LinearKernel.cpp - Products, whatever the number of rows --*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "QuantizedNumbers.h"
#include "TensorCores.h"

#include "Attune/AttunePanels.h"
#include "attune/Conversion/Activations.h"
#include "attune/TargetInfo/GpuTiles.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace attune {

/// Threads that look for a task's matrix; of a product there may be more.
constexpr int64_t kThreads = 128;

LinearKernel::LinearKernel(KernelBuilder &k, LinearIntoOp op)
    : input(op.getInput()), weight(op.getWeight()), dest(op.getDest()),
      bias(op.getBias()), activation(op.getActivation()), gated(op.getGated()),
      residual(op.getResidual()) {
  if (op.getScale())
    scale = op.getScale()->convertToDouble();
  numRows = BlockBuilder(k).sizeOf(dest, 0);
}

LinearKernel::LinearKernel(KernelBuilder &k, QuantizedLinearIntoOp op)
    : input(op.getInput()), weight(op.getWeight()), dest(op.getDest()),
      bias(op.getBias()), scales(op.getWeightScales()), bits(op.getBits()),
      group(op.getGroup()), zeros(op.getZeros()),
      activation(op.getActivation()), gated(op.getGated()),
      residual(op.getResidual()) {
  if (op.getScale())
    scale = op.getScale()->convertToDouble();
  numRows = BlockBuilder(k).sizeOf(dest, 0);
}

LinearKernel::LinearKernel(KernelBuilder &k, NormedLinearIntoOp op)
    : input(op.getInput()), weight(op.getWeight()), dest(op.getDest()),
      bias(op.getBias()), scales(op.getScales()), bits(op.getBits()),
      group(op.getGroup()), zeros(op.getZeros()),
      activation(op.getActivation()), gated(op.getGated()),
      residual(op.getResidual()) {
  norm = {op.getOf(),
          op.getGamma(),
          op.getBeta(),
          op.getEps().convertToDouble(),
          op.getOffset().convertToDouble(),
          op.getCentred(),
          static_cast<int64_t>(op.getFew())};
  if (op.getScale())
    scale = op.getScale()->convertToDouble();
  numRows = BlockBuilder(k).sizeOf(dest, 0);
}

LinearKernel::LinearKernel(KernelBuilder &k, GroupedLinearIntoOp op)
    : input(op.getInput()), weight(op.getWeight()), dest(op.getDest()),
      bias(op.getBias()), scales(op.getScales()), bits(op.getBits()),
      group(op.getGroup()), zeros(op.getZeros()), tasks(op.getTasks()),
      from(op.getFrom()), activation(op.getActivation()), gated(op.getGated()),
      limits(GateLimits::of(op)) {
  BlockBuilder b(k);
  if (tasks) {
    numRows = b.sizeOf(dest, 0);
    someElsewhere = op->getParentOfType<ModuleOp>()->hasAttr("attune.ranks");
    return;
  }
  numBatches = b.sizeOf(dest, 0);
  numRows = b.sizeOf(dest, 1);
  SmallVector<ReassociationIndices> groups = {{0, 1}, {2}};
  input = memref::CollapseShapeOp::create(k.b, k.loc, input, groups);
  dest = memref::CollapseShapeOp::create(k.b, k.loc, dest, groups);
}

static ArrayRef<int64_t> panelsOf(Value weight) {
  return cast<MemRefType>(weight.getType()).getShape().take_back(3);
}
int64_t LinearKernel::width() {
  return cast<MemRefType>(dest.getType()).getDimSize(1);
}
int64_t LinearKernel::side() { return bits ? 32 / bits : 1; }
int64_t LinearKernel::lanes() { return panelsOf(weight)[2] / (bits ? 4 : 1); }
int64_t LinearKernel::depth() { return panelsOf(weight)[1] * side(); }
int64_t LinearKernel::panels() { return panelsOf(weight)[0] / parts(); }
int64_t LinearKernel::matrices() {
  auto shape = cast<MemRefType>(weight.getType()).getShape();
  return shape.size() == 4 ? shape[0] : 1;
}

QuantizedNumbers LinearKernel::numbers() {
  bool floats =
      scales && (areScalesOfFloats(cast<ShapedType>(scales.getType())) ||
                 holdsByteFloats(cast<ShapedType>(weight.getType())));
  return {bits, floats, zeros};
}

Value LinearKernel::countGroups(KernelBuilder &k, int64_t height) {
  BlockBuilder b(k);
  if (tasks)
    return b.mul(b.sizeOf(tasks, 0), kTaskRows / height);
  Value groups = b.ceilDiv(numRows, height);
  return numBatches ? b.mul(numBatches, groups) : groups;
}

TilePlace::TilePlace(BlockBuilder &b, Value block, Value rows,
                     int64_t columns) {
  constexpr int64_t kRowsOfBlocks = 8;
  Value inGroup = b.index(kRowsOfBlocks * columns);
  Value first = b.mul(b.div(block, inGroup), kRowsOfBlocks);
  Value height = b.min(b.sub(rows, first), b.index(kRowsOfBlocks));
  Value within = b.rem(block, inGroup);
  row = b.add(first, b.rem(within, height));
  column = b.div(within, height);
}

/// A number of a task: its matrix, first row or number of rows.
static Value fieldOf(BlockBuilder &b, Value tasks, Value task, int64_t field) {
  Value word = memref::LoadOp::create(b.b, b.loc, tasks,
                                      ValueRange{task, b.index(field)});
  return arith::IndexCastOp::create(b.b, b.loc, b.b.getIndexType(), word);
}

LinearKernel::Group LinearKernel::groupAt(BlockBuilder &b, Value number,
                                          int64_t height) {
  if (tasks) {
    Value task = b.div(number, kTaskRows / height),
          before = b.mul(b.rem(number, kTaskRows / height), height);
    Value first = fieldOf(b, tasks, task, 1);
    Value end = b.add(first, fieldOf(b, tasks, task, 2));
    first = b.add(first, before);
    return {first, b.min(end, b.add(first, b.index(height))),
            fieldOf(b, tasks, task, 0)};
  }
  if (!numBatches)
    return {b.mul(number, height), numRows, Value()};
  Value groups = b.ceilDiv(numRows, height);
  Value batch = b.div(number, groups), start = b.mul(batch, numRows);
  return {b.add(start, b.mul(b.rem(number, groups), height)),
          b.add(start, numRows), b.rem(batch, matrices())};
}

LinearKernel::Group LinearKernel::rowOfTasks(BlockBuilder &b,
                                             BlockLaunch &launch, Value place) {
  Type i64 = b.b.getI64Type();
  Value found = launch.shared(1, i64), end = b.add(place, b.index(1));
  if (someElsewhere) {
    Value none = arith::ConstantIntOp::create(b.b, b.loc, -1, 64);
    memref::StoreOp::create(b.b, b.loc, none, found, ValueRange{b.index(0)});
    b.barrier();
  }
  b.forLoop(launch.thread, b.sizeOf(tasks, 0), kThreads, {},
            [&](KernelBuilder &k, Value task, ValueRange) {
              BlockBuilder b(k);
              Value first = fieldOf(b, tasks, task, 1);
              Value behind = b.add(first, fieldOf(b, tasks, task, 2));
              Value here = b.both(b.less(first, end), b.less(place, behind));
              b.when(here, [&](BlockBuilder &b) {
                Value part = arith::IndexCastOp::create(
                    b.b, b.loc, i64, fieldOf(b, tasks, task, 0));
                memref::StoreOp::create(b.b, b.loc, part, found,
                                        ValueRange{b.index(0)});
              });
              return KernelBuilder::Values();
            });
  b.barrier();
  Value part =
      memref::LoadOp::create(b.b, b.loc, found, ValueRange{b.index(0)});
  return {place, end,
          arith::IndexCastOp::create(b.b, b.loc, b.b.getIndexType(), part)};
}

Value LinearKernel::sourceOf(BlockBuilder &b, Value row) {
  if (!from)
    return row;
  Value source = memref::LoadOp::create(b.b, b.loc, from, ValueRange{row});
  return arith::IndexCastOp::create(b.b, b.loc, b.b.getIndexType(), source);
}

SmallVector<Value> LinearKernel::panelAt(const Group &group, Value panel,
                                         ValueRange behind) {
  SmallVector<Value> at;
  if (group.part)
    at.push_back(group.part);
  at.push_back(panel);
  llvm::append_range(at, behind);
  return at;
}

void LinearKernel::finish(BlockBuilder &b, Value part, Value sum, Value up,
                          Value row, Value column) {
  int64_t lanes = cast<VectorType>(sum.getType()).getDimSize(0);
  auto bytes = [&](Value buffer) {
    return lanes * cast<MemRefType>(buffer.getType()).getElementTypeBitWidth() /
           8;
  };
  auto addBias = [&](Value value, Value first) -> Value {
    if (!bias)
      return value;
    // The second half of an odd number of entries is aligned to one.
    int64_t align = width() % lanes == 0 ? bytes(bias) : bytes(bias) / lanes;
    SmallVector<Value> at = {first};
    if (part)
      at.insert(at.begin(), part);
    return arith::AddFOp::create(b.b, b.loc, value,
                                 b.loadWide(bias, at, lanes, align));
  };
  Value y = addBias(sum, column);
  y = up ? emitGated(b, activation, limits, y,
                     addBias(up, b.add(column, b.index(width()))))
         : emitActivation(b, activation, y);
  if (scale)
    y = arith::MulFOp::create(b.b, b.loc, y, b.splat(*scale, lanes));
  int64_t align = std::min(
      bytes(dest), std::max(alignmentOfRows(dest), bytes(dest) / lanes));
  if (residual)
    y = arith::AddFOp::create(b.b, b.loc, y,
                              b.loadWide(dest, {row, column}, lanes, align));
  b.storeAt(y, dest, {row, column}, align);
}

void LinearKernel::emitForFewRows(KernelBuilder &outer, int64_t rows,
                                  bool normed) {
  OpBuilder::InsertionGuard guard(outer.b);
  BlockBuilder b(outer);
  int64_t lanes = this->lanes(), sums = parts() * rows;
  // With one row at a time most tasks have none: each has blocks of its own.
  bool alone = tasks && rows == 1;
  int64_t height = tasks ? kTaskRows : rows;
  Value groups = alone ? numRows : countGroups(b, height);
  int64_t threads =
      tasks ? kThreads
            : threadsOfPanel(panels(), depth() / side(), multiprocessors);
  BlockLaunch launch(b, b.mul(b.index(panels()), groups), threads);
  FewRowsMemory shared;
  shared.sums = launch.shared(threads / 32 * sums * lanes, b.b.getF32Type());
  if (normed)
    shared.statistics = launch.shared(
        threads / 32 * rows * (norm.centred ? 2 : 1), b.b.getF32Type());
  Value panel = b.rem(launch.block, panels());
  Value number = b.div(launch.block, panels());
  Group group =
      alone ? rowOfTasks(b, launch, number) : groupAt(b, number, height);
  if (alone && someElsewhere)
    return b.when(b.less(b.index(-1), group.part), [&](BlockBuilder &b) {
      emitFewRows(b, launch.thread, threads, shared, panel, group, rows);
    });
  if (!tasks || alone)
    return emitFewRows(b, launch.thread, threads, shared, panel, group, rows);
  // A task may have more rows; by then the weights are in a cache.
  b.forLoop(group.first, group.end, rows, {},
            [&](KernelBuilder &k, Value first, ValueRange) {
              BlockBuilder b(k);
              Group some = group;
              some.first = first;
              emitFewRows(b, launch.thread, threads, shared, panel, some, rows);
              b.barrier();
              return KernelBuilder::Values();
            });
}

} // namespace attune

//===- KernelWeights.cpp - Weights that a task will read ------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelWeights.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace attune {

/// The argument that an address begins with, through views and descriptors;
/// null if there is another origin.
static Value rootOf(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (op->getNumOperands() == 0)
      return {};
    // A descriptor is made field by field; its last pointer is the one that is
    // used.
    if (auto insert = dyn_cast<LLVM::InsertValueOp>(op)) {
      bool isPointer = isa<LLVM::LLVMPointerType>(insert.getValue().getType());
      value = isPointer ? insert.getValue() : insert.getContainer();
      continue;
    }
    if (!isa<LLVM::AddrSpaceCastOp, UnrealizedConversionCastOp>(op) &&
        !isa<MemRefType>(value.getType()))
      return {};
    value = op->getOperand(0);
  }
  return isa<LLVM::LLVMPointerType>(value.getType()) ? value : Value();
}

int64_t KernelWeights::Read::units() const {
  VectorType type = op.getVectorType();
  return type.getNumElements() * type.getElementTypeBitWidth() / 8 / kUnit;
}

VectorType KernelWeights::Read::unitType() const {
  VectorType type = op.getVectorType();
  return VectorType::get({type.getNumElements() / units()},
                         type.getElementType());
}

/// Marks what computes a value; false if it depends on more than arguments and
/// places. In a loop its induction variable is one.
bool KernelWeights::need(Value value, scf::ForOp loop) {
  Operation *op = value.getDefiningOp();
  if (!op) {
    auto argument = cast<BlockArgument>(value);
    return argument.getOwner() == &kernel.getBody().front() ||
           (loop && value == loop.getInductionVar());
  }
  if (needed.contains(op))
    return true;
  bool isPlace =
      isa<gpu::ThreadIdOp, gpu::BlockIdOp, gpu::GridDimOp, gpu::BlockDimOp>(op);
  if (op->getNumRegions() || (!isPlace && !isPure(op)) ||
      !llvm::all_of(op->getOperands(),
                    [&](Value operand) { return need(operand, loop); }))
    return false;
  needed.insert(op);
  return true;
}

void KernelWeights::add(Operation &op, scf::ForOp loop,
                        const llvm::DenseSet<Value> &roots) {
  auto load = dyn_cast<vector::LoadOp>(op);
  if (!load || !roots.contains(rootOf(load.getBase())))
    return;
  VectorType type = load.getVectorType();
  int64_t bits = type.getNumElements() * type.getElementTypeBitWidth();
  if (type.getRank() != 1 || bits % (8 * kUnit) ||
      !llvm::all_of(load->getOperands(),
                    [&](Value operand) { return need(operand, loop); }))
    return;
  reads.push_back({load, loop, total, 0});
  total += reads.back().units();
}

std::optional<KernelWeights> KernelWeights::find(gpu::GPUFuncOp kernel) {
  KernelWeights found;
  found.kernel = kernel;
  Block &body = kernel.getBody().front();
  auto waits = body.getOps<NVVM::GriddepcontrolOp>();
  if (waits.empty())
    return std::nullopt;
  llvm::DenseSet<Value> roots;
  for (auto load : body.getOps<vector::LoadOp>())
    if (load->isBeforeInBlock(*waits.begin()))
      roots.insert(rootOf(load.getBase()));
  roots.erase(Value());
  for (Operation &op : body) {
    auto loop = dyn_cast<scf::ForOp>(op);
    if (!loop) {
      found.add(op, nullptr, roots);
      continue;
    }
    std::optional<APInt> turns = loop.getStaticTripCount();
    bool known = turns && found.need(loop.getLowerBound(), nullptr) &&
                 found.need(loop.getUpperBound(), nullptr) &&
                 found.need(loop.getStep(), nullptr);
    if (!known)
      continue;
    int64_t first = found.total;
    size_t before = found.reads.size();
    for (Operation &inside : *loop.getBody())
      found.add(inside, loop, roots);
    int64_t perTurn = found.total - first;
    for (Read &read : MutableArrayRef(found.reads).drop_front(before))
      read.perTurn = perTurn;
    found.total = first + perTurn * turns->getSExtValue();
  }
  if (found.total == 0)
    return std::nullopt;
  return found;
}

Value KernelWeights::numberOf(OpBuilder &b, const Read &read, int64_t unit,
                              Value turn) {
  Location loc = read.op.getLoc();
  Value number = arith::ConstantIndexOp::create(b, loc, read.first + unit);
  if (!turn)
    return number;
  Value perTurn = arith::ConstantIndexOp::create(b, loc, read.perTurn);
  return arith::AddIOp::create(b, loc, number,
                               arith::MulIOp::create(b, loc, turn, perTurn));
}

Value KernelWeights::turnOf(OpBuilder &b, scf::ForOp loop,
                            const IRMapping &mapping, Value induction) {
  Location loc = loop.getLoc();
  Value since = arith::SubIOp::create(b, loc, induction,
                                      mapping.lookup(loop.getLowerBound()));
  return arith::DivUIOp::create(b, loc, since, mapping.lookup(loop.getStep()));
}

void KernelWeights::copy(OpBuilder &b, IRMapping &mapping, Copy copy) const {
  const Read *next = reads.begin();
  auto goThrough = [&](Block &block, Value turn, auto &&again) -> void {
    for (Operation &op : block) {
      if (needed.contains(&op)) {
        b.clone(op, mapping);
        continue;
      }
      if (next == reads.end())
        return;
      if (next->op == &op) {
        SmallVector<Value> at;
        for (Value index : next->op.getIndices())
          at.push_back(mapping.lookup(index));
        Value last = at.back();
        for (int64_t unit = 0; unit < next->units(); ++unit) {
          Value by = arith::ConstantIndexOp::create(b, op.getLoc(),
                                                    unit * next->elements());
          at.back() = arith::AddIOp::create(b, op.getLoc(), last, by);
          copy(b, mapping.lookup(next->op.getBase()), at, next->elements(),
               numberOf(b, *next, unit, turn));
        }
        ++next;
        continue;
      }
      auto loop = dyn_cast<scf::ForOp>(op);
      if (!loop || next->loop != loop)
        continue;
      auto made = scf::ForOp::create(
          b, op.getLoc(), mapping.lookup(loop.getLowerBound()),
          mapping.lookup(loop.getUpperBound()), mapping.lookup(loop.getStep()));
      OpBuilder::InsertionGuard keep(b);
      b.setInsertionPointToStart(made.getBody());
      mapping.map(loop.getInductionVar(), made.getInductionVar());
      again(*loop.getBody(), turnOf(b, loop, mapping, made.getInductionVar()),
            again);
    }
  };
  goThrough(kernel.getBody().front(), Value(), goThrough);
}

void KernelWeights::replace(IRMapping &mapping, Load load) const {
  for (const Read &read : reads) {
    Value old = mapping.lookup(read.op.getResult());
    OpBuilder b(old.getDefiningOp());
    scf::ForOp loop = read.loop;
    Value turn;
    if (loop)
      turn = turnOf(b, loop, mapping, mapping.lookup(loop.getInductionVar()));
    Value all;
    SmallVector<int64_t> places;
    for (int64_t unit = 0; unit < read.units(); ++unit) {
      Value one = load(b, read.unitType(), numberOf(b, read, unit, turn));
      int64_t had = static_cast<int64_t>(places.size());
      for (int64_t i = 0; i < read.elements(); ++i)
        places.push_back(had + i);
      all = all ? vector::ShuffleOp::create(b, old.getLoc(), all, one, places)
                      .getResult()
                : one;
    }
    old.replaceAllUsesWith(all);
    old.getDefiningOp()->erase();
  }
}

} // namespace attune

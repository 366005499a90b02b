//===- WeightRing.cpp - Weights of tasks to come --------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WeightRing.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;

namespace attune {

using arith::CmpIPredicate;

void WeightRing::make(StepMaker m) {
  OpBuilder &b = m.b;
  for (Value *number : {&instruction, &group, &head, &tail, &wrapped, &count}) {
    *number = m.scratch();
    m.set(*number, 0);
  }
  // The size of an array that a launch reserves is not known; here it is.
  auto shared =
      gpu::AddressSpaceAttr::get(b.getContext(), gpu::AddressSpace::Workgroup);
  Value all = gpu::DynamicSharedMemoryOp::create(
      b, m.loc,
      MemRefType::get({ShapedType::kDynamic}, b.getI8Type(),
                      MemRefLayoutAttrInterface(), shared));
  Value number = memref::ExtractAlignedPointerAsIndexOp::create(b, m.loc, all);
  auto pointer = LLVM::LLVMPointerType::get(b.getContext(), 3);
  auto i64 = b.getI64Type();
  number = arith::IndexCastOp::create(b, m.loc, i64, number);
  Value address = LLVM::IntToPtrOp::create(b, m.loc, pointer, number);
  auto array = LLVM::LLVMArrayType::get(i64, 1);
  Value descriptor = LLVM::PoisonOp::create(
      b, m.loc,
      LLVM::LLVMStructType::getLiteral(b.getContext(),
                                       {pointer, pointer, i64, array, array}));
  auto put = [&](Value value, ArrayRef<int64_t> at) {
    descriptor = LLVM::InsertValueOp::create(b, m.loc, descriptor, value, at);
  };
  auto constant = [&](int64_t value) -> Value {
    return LLVM::ConstantOp::create(b, m.loc, i64, value);
  };
  put(address, {0});
  put(address, {1});
  put(constant(0), {2});
  put(constant(bytes()), {3, 0});
  put(constant(1), {4, 0});
  auto type = MemRefType::get({bytes()}, b.getI8Type(),
                              MemRefLayoutAttrInterface(), space);
  memory = UnrealizedConversionCastOp::create(b, m.loc, type, descriptor)
               .getResult(0);
}

Value WeightRing::place(StepMaker m, Value thread, Value start, Value unit,
                        VectorType type) {
  Value byte = m.add(m.mul(m.add(m.toIndex(start), unit), unitBytes()),
                     m.mul(thread, KernelWeights::kUnit));
  auto there = MemRefType::get(type.getShape(), type.getElementType(),
                               MemRefLayoutAttrInterface(), space);
  return memref::ViewOp::create(m.b, m.loc, there, memory, byte, ValueRange());
}

/// Where the units of a task go that come behind others.
Value WeightRing::startBehind(StepMaker m, Value before, Value ofTask) {
  Value fits = m.is(CmpIPredicate::ule, m.add(before, ofTask), m.word(units));
  return arith::SelectOp::create(m.b, m.loc, fits, before, m.word(0));
}

void WeightRing::copyAhead(StepMaker m, const StepList &list, Value number,
                           Value ofInstruction, CopyTask copy) {
  Value now = m.toWord(number), nowGroup = m.toWord(ofInstruction);
  // Whatever lies between has no weights, or has been computed without looking
  // further.
  Value at = m.get(instruction);
  Value isBehind =
      m.either(m.less(at, now), m.both(m.is(CmpIPredicate::eq, at, now),
                                       m.less(m.get(group), nowGroup)));
  m.when(isBehind, [&] {
    m.set(instruction, now);
    m.set(group, nowGroup);
  });
  m.when(m.is(CmpIPredicate::eq, m.get(count), m.word(0)), [&] {
    for (Value number : {head, tail, wrapped})
      m.set(number, 0);
  });
  scf::WhileOp::create(
      m.b, m.loc, TypeRange(), ValueRange(),
      [&](OpBuilder &b, Location loc, ValueRange) {
        StepMaker m{b, loc};
        Value isThere = m.less(m.get(instruction), m.toWord(list.size));
        auto step = scf::IfOp::create(b, loc, TypeRange(b.getI1Type()), isThere,
                                      /*withElseRegion=*/true);
        auto fill = [&](Block *block, llvm::function_ref<Value()> body) {
          OpBuilder::InsertionGuard keep(b);
          b.setInsertionPointToStart(block);
          Value result = body();
          scf::YieldOp::create(b, loc, result);
        };
        fill(step.thenBlock(), [&] { return copyNext(m, list, copy); });
        fill(step.elseBlock(), [&] { return m.truth(false); });
        scf::ConditionOp::create(b, loc, step.getResult(0), ValueRange());
      },
      [](OpBuilder &b, Location loc, ValueRange) {
        scf::YieldOp::create(b, loc);
      });
}

/// Starts copies for the next group, or goes to the next instruction; whether
/// there may be more to do.
Value WeightRing::copyNext(StepMaker m, const StepList &list, CopyTask copy) {
  Value at = m.get(instruction), ofInstruction = m.get(group);
  std::array<Value, 8> fields = list.read(m, m.toIndex(at));
  Value ofTask = m.toWord(m.div(fields[0], 1 << kNumberBits));
  Value isThere = m.both(m.less(ofInstruction, m.toWord(fields[1])),
                         m.is(CmpIPredicate::ne, ofTask, m.word(0)));
  Value stops = m.is(CmpIPredicate::eq, ofTask, m.word(kStop));
  // What has not been read lies from the tail to the head, and if that is
  // behind it from the tail to the end and up to the head.
  Value first = m.get(head);
  Value start = startBehind(m, first, ofTask), end = m.add(start, ofTask);
  Value wraps = m.less(start, first);
  Value isWrapped = m.is(CmpIPredicate::ne, m.get(wrapped), m.word(0));
  Value isFree = m.either(m.no(m.either(isWrapped, wraps)),
                          m.both(m.is(CmpIPredicate::ule, end, m.get(tail)),
                                 m.no(m.both(isWrapped, wraps))));
  Value under = m.get(count);
  Value hasRoom =
      m.both(isFree, m.both(m.no(stops), m.less(under, m.word(kMostAhead))));
  Value copies = m.both(isThere, hasRoom);
  m.when(m.no(isThere), [&] {
    Value next = m.add(at, m.word(1));
    m.set(instruction, next);
    m.when(m.less(next, m.toWord(list.size)), [&] {
      std::array<Value, 8> fields = list.read(m, m.toIndex(next));
      m.set(group, m.toWord(list.firstGroup(m, fields[2])));
    });
  });
  m.when(copies, [&] {
    copy(m, fields, m.toIndex(ofInstruction), start);
    NVVM::CpAsyncCommitGroupOp::create(m.b, m.loc);
    m.set(head, end);
    m.set(group, m.add(ofInstruction, m.toWord(list.blocks)));
    m.set(count, m.add(under, m.word(1)));
    m.when(wraps, [&] { m.set(wrapped, 1); });
  });
  return m.either(m.no(isThere), copies);
}

std::pair<Value, Value> WeightRing::take(StepMaker m, int64_t ofTask) {
  Value last = m.get(tail);
  Value start = startBehind(m, last, m.word(ofTask));
  m.when(m.less(start, last), [&] { m.set(wrapped, 0); });
  m.set(tail, m.add(start, m.word(ofTask)));
  Value younger = arith::SubIOp::create(m.b, m.loc, m.get(count), m.word(1));
  m.set(count, younger);
  return {start, younger};
}

void WeightRing::wait(StepMaker m, Value younger) {
  SmallVector<int64_t> cases;
  for (int64_t i = 1; i < kMostAhead; ++i)
    cases.push_back(i);
  auto wait = [&](int64_t groups) {
    NVVM::CpAsyncWaitGroupOp::create(m.b, m.loc, static_cast<uint32_t>(groups));
  };
  m.choose(
      m.toIndex(younger), cases, [&](size_t i) { wait(cases[i]); },
      [&] { wait(0); });
}

} // namespace attune

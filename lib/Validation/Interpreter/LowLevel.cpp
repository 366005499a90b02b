//===- LowLevel.cpp - LLVM's dialect ----------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Arithmetic.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace attune;
using namespace attune::validation;
using namespace mlir;

static uint8_t *pointerOf(const Datum &datum) {
  return reinterpret_cast<uint8_t *>(datum.integer());
}
static Datum pointerTo(uint8_t *place) {
  return Datum(whole(reinterpret_cast<int64_t>(place)));
}

//===----------------------------------------------------------------------===//
// Aggregates
//===----------------------------------------------------------------------===//

/// A value of a type with nothing in it yet.
static Datum makeEmpty(Type type) {
  if (auto vector = dyn_cast<VectorType>(type))
    return makeArray(vector.getShape(), poison(vector.getElementType()));
  auto *aggregate = new Aggregate;
  Datum result(aggregate);
  if (auto record = dyn_cast<LLVM::LLVMStructType>(type))
    for (Type field : record.getBody())
      aggregate->items.push_back(makeEmpty(field));
  else if (auto array = dyn_cast<LLVM::LLVMArrayType>(type))
    for (unsigned i = 0; i < array.getNumElements(); ++i)
      aggregate->items.push_back(makeEmpty(array.getElementType()));
  else
    return Datum(poison(type));
  return result;
}

static Aggregate &itemsOf(const Datum &datum) {
  return static_cast<Aggregate &>(*datum.box);
}

static bool runEmpty(Step &step) {
  step.give(makeEmpty(step.op->getResult(0).getType()));
  return true;
}

static bool runInsertValue(Step &step) {
  auto op = cast<LLVM::InsertValueOp>(step.op);
  Datum result = step.in[0];
  Datum *place = &result;
  for (int64_t i : op.getPosition()) {
    place->box = new Aggregate(itemsOf(*place));
    place = &itemsOf(*place).items[i];
  }
  *place = step.in[1];
  step.give(result);
  return true;
}

static bool runExtractValue(Step &step) {
  Datum value = step.in[0];
  for (int64_t i : cast<LLVM::ExtractValueOp>(step.op).getPosition())
    value = Datum(itemsOf(value).items[i]);
  step.give(value);
  return true;
}

static bool runConstant(Step &step) {
  auto op = cast<LLVM::ConstantOp>(step.op);
  Datum constant;
  if (!makeConstant(step, op.getValue(), constant))
    return false;
  if (auto type = dyn_cast<VectorType>(op.getType()); type && !constant.box)
    constant = makeArray(type.getShape(), constant.scalar);
  step.give(constant);
  return true;
}

//===----------------------------------------------------------------------===//
// Casts between the levels
//===----------------------------------------------------------------------===//

/// A memref's descriptor as a view, and back.
static bool runCast(Step &step) {
  if (step.in.size() != 1 || step.op->getNumResults() != 1)
    return step.machine.fail(step.op, Failure::Unsupported,
                             "a cast of several values");
  Type from = step.op->getOperand(0).getType();
  Type to = step.op->getResult(0).getType();
  if (auto type = dyn_cast<MemRefType>(to);
      type && isa<LLVM::LLVMStructType>(from)) {
    const std::vector<Datum> &fields = itemsOf(step.in[0]).items;
    auto *view = new View;
    view->base = pointerOf(fields[1]);
    view->memory = step.machine.owner(view->base, 0);
    view->offset = fields[2].integer();
    for (int64_t d = 0; d < type.getRank(); ++d) {
      view->shape.push_back(itemsOf(fields[3]).items[d].integer());
      view->strides.push_back(itemsOf(fields[4]).items[d].integer());
    }
    step.give(Datum(view));
    return true;
  }
  if (isa<MemRefType>(from) && isa<LLVM::LLVMStructType>(to)) {
    const View &view = step.in[0].view();
    if (view.memory)
      step.machine.expose(view.memory.get());
    Datum result = makeEmpty(to);
    std::vector<Datum> &fields = itemsOf(result).items;
    fields[0] = fields[1] = pointerTo(view.base);
    fields[2] = whole(view.offset);
    for (size_t d = 0; d < view.shape.size(); ++d) {
      itemsOf(fields[3]).items[d] = whole(view.shape[d]);
      itemsOf(fields[4]).items[d] = whole(view.strides[d]);
    }
    step.give(result);
    return true;
  }
  step.give(step.in[0]);
  return true;
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

static bool runCall(Step &step) {
  auto op = cast<LLVM::CallOp>(step.op);
  Machine &machine = step.machine;
  llvm::StringRef name = op.getCallee().value_or("");
  auto func = dyn_cast_or_null<FunctionOpInterface>(
      machine.getModule().lookupSymbol(name));
  if (func && !func.isExternal())
    return machine.call(func, step.in, step.out);
  if (name == "attune_rt_barrier") {
    machine.claimed = 0;
    return true;
  }
  if (name == "attune_rt_claim") {
    int64_t total = step.in[0].integer();
    step.give(whole(machine.claimed < total ? machine.claimed++ : total));
    return true;
  }
  if (name == "attune_rt_thread" || name == "attune_rt_num_threads") {
    step.give(whole(name == "attune_rt_thread" ? 0 : 1));
    return true;
  }
  if (name == "attune_rt_frame_push") {
    int64_t bytes = step.in[0].integer();
    if (bytes < 0 || bytes > (int64_t(1) << 32))
      return machine.outOfBounds(step,
                                 "asks for " + llvm::Twine(bytes) + " bytes");
    machine.frames.emplace_back(new Memory(bytes));
    step.give(machine.expose(machine.frames.back().get()));
    return machine.spend(step, bytes / 64);
  }
  if (name == "attune_rt_frame_pop") {
    if (!machine.frames.empty())
      machine.frames.pop_back();
    return true;
  }
  if (std::optional<bool> done = callMesh(step, name))
    return *done;
  return machine.fail(step.op, Failure::Unsupported,
                      "calls '" + name + "', which has no body");
}

void validation::addLLVM(Handlers &handlers) {
  handlers["llvm.mlir.constant"] = runConstant;
  handlers["llvm.mlir.poison"] = runEmpty;
  handlers["llvm.mlir.undef"] = runEmpty;
  handlers["llvm.insertvalue"] = runInsertValue;
  handlers["llvm.extractvalue"] = runExtractValue;
  handlers["llvm.call"] = runCall;
  handlers["builtin.unrealized_conversion_cast"] = runCast;
}

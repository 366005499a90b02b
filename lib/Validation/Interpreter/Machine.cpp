//===- Machine.cpp - Runs functions op by op --------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Machine.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace attune;
using namespace attune::validation;
using namespace mlir;

namespace {
struct Instruction {
  Operation *op;
  Handler handler; ///< null: the machine does not know the op
  llvm::SmallVector<unsigned, 4> in;
  llvm::SmallVector<bool, 4> last; ///< nobody needs the operand after this op
  llvm::SmallVector<unsigned, 2> out;
};
} // namespace

struct Machine::Code {
  llvm::SmallVector<unsigned, 4> arguments;
  std::vector<Instruction> instructions;
};

static const Handlers &allHandlers() {
  static const Handlers handlers = [] {
    Handlers all;
    for (auto add : {addControl, addArith, addMath, addTensor, addLinalg,
                     addVector, addMemRef, addLLVM, addPointers, addAttention,
                     addLinear, addNorms, addExperts, addTokens, addRecurrent,
                     addPairProducts, addMatrixTiles, addMesh})
      add(all);
    return all;
  }();
  return handlers;
}

Machine::Machine(ModuleOp module, WeightCache *cache)
    : module(module), cache(cache) {}
Machine::~Machine() = default;

bool Machine::fail(Operation *op, Failure why, const llvm::Twine &text) {
  if (failure == Failure::None) {
    failure = why;
    message = text.str();
    culprit = op;
  }
  return false;
}

void Machine::reset(int64_t work) {
  failure = Failure::None;
  message.clear();
  culprit = nullptr;
  budget = work;
  depth = 0;
  linalgIndices.clear();
  frames.clear();
  globals.clear();
  exposed.clear();
}

Datum Machine::expose(Memory *memory) {
  const uint8_t *base = memory->bytes.data();
  exposed[base] = memory;
  return Datum(whole(reinterpret_cast<int64_t>(base)));
}

Memory *Machine::owner(const uint8_t *place, int64_t count) const {
  auto after = exposed.upper_bound(place);
  if (after == exposed.begin())
    return nullptr;
  Memory *memory = std::prev(after)->second.get();
  const uint8_t *end = memory->bytes.data() + memory->bytes.size();
  return place + count <= end ? memory : nullptr;
}

bool Machine::spend(Operation *op, int64_t work) {
  budget -= work;
  return budget >= 0 || fail(op, Failure::Budget, tooLong);
}

unsigned Machine::slotOf(Value value) {
  auto [it, isNew] = slots.try_emplace(value, values.size());
  if (isNew)
    values.emplace_back();
  return it->second;
}

Machine::Code &Machine::compile(Block &block) {
  std::unique_ptr<Code> &code = codes[&block];
  if (code)
    return *code;
  code = std::make_unique<Code>();
  for (BlockArgument argument : block.getArguments())
    code->arguments.push_back(slotOf(argument));
  for (Operation &op : block) {
    // An unused op needs no value, and passes need not keep it.
    if (isOpTriviallyDead(&op))
      continue;
    Instruction instruction;
    instruction.op = &op;
    auto known = allHandlers().find(op.getName().getStringRef());
    instruction.handler =
        known == allHandlers().end() ? nullptr : known->second;
    for (Value operand : op.getOperands()) {
      instruction.in.push_back(slotOf(operand));
      instruction.last.push_back(operand.hasOneUse() &&
                                 operand.getParentBlock() == &block);
    }
    for (Value result : op.getResults())
      instruction.out.push_back(slotOf(result));
    code->instructions.push_back(std::move(instruction));
  }
  return *code;
}

bool Machine::runBlock(Block &block, llvm::MutableArrayRef<Datum> args,
                       llvm::SmallVectorImpl<Datum> &results) {
  Code &code = compile(block);
  for (size_t i = 0; i < code.arguments.size() && i < args.size(); ++i)
    values[code.arguments[i]] = std::move(args[i]);
  llvm::SmallVector<Datum, 8> in;
  llvm::SmallVector<Datum, 4> out;
  for (const Instruction &instruction : code.instructions) {
    if (--budget < 0)
      return fail(instruction.op, Failure::Budget, tooLong);
    in.clear();
    for (size_t i = 0; i < instruction.in.size(); ++i) {
      Datum &value = values[instruction.in[i]];
      if (instruction.last[i])
        in.push_back(std::move(value));
      else
        in.push_back(value);
    }
    if (!instruction.handler) {
      if (!instruction.op->hasTrait<OpTrait::IsTerminator>())
        return fail(instruction.op, Failure::Unsupported,
                    "'" + instruction.op->getName().getStringRef() +
                        "' is no op that validation knows");
      results.assign(std::make_move_iterator(in.begin()),
                     std::make_move_iterator(in.end()));
      return true;
    }
    out.clear();
    Step step{*this, instruction.op, in, out};
    if (!instruction.handler(step))
      return fail(instruction.op, Failure::Illegal, "has no value");
    if (instruction.op->hasTrait<OpTrait::IsTerminator>()) {
      results.assign(std::make_move_iterator(out.begin()),
                     std::make_move_iterator(out.end()));
      return true;
    }
    if (out.size() != instruction.out.size())
      return fail(instruction.op, Failure::Unsupported,
                  "'" + instruction.op->getName().getStringRef() +
                      "' is used in a way that validation does not know");
    if (onResult)
      onResult(onResultState, instruction.op, out);
    for (size_t i = 0; i < out.size(); ++i)
      values[instruction.out[i]] = std::move(out[i]);
  }
  results.clear();
  return true;
}

bool Machine::runRegion(Region &region, llvm::MutableArrayRef<Datum> args,
                        llvm::SmallVectorImpl<Datum> &results) {
  Block *block = &region.front();
  llvm::SmallVector<Datum, 8> passed(std::make_move_iterator(args.begin()),
                                     std::make_move_iterator(args.end()));
  while (true) {
    nextBlock = nullptr;
    if (!runBlock(*block, passed, results))
      return false;
    if (!nextBlock)
      return true;
    block = nextBlock;
    passed.assign(std::make_move_iterator(results.begin()),
                  std::make_move_iterator(results.end()));
  }
}

bool Machine::call(FunctionOpInterface func, llvm::MutableArrayRef<Datum> args,
                   llvm::SmallVectorImpl<Datum> &results) {
  if (++depth > 64)
    return fail(func, Failure::Unsupported, "recursion");
  Region *body = func.getCallableRegion();
  bool ok = body ? runRegion(*body, args, results)
                 : fail(func, Failure::Unsupported, "has no body");
  --depth;
  return ok;
}

//===- Pointers.cpp - Memory and branches of LLVM's dialect -----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Pointers.h"
#include "Arithmetic.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace attune;
using namespace attune::validation;
using namespace mlir;

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

static int64_t sizeOf(Type type) {
  if (auto vector = dyn_cast<VectorType>(type))
    return vector.getNumElements() * bytesOf(vector.getElementType());
  if (auto array = dyn_cast<LLVM::LLVMArrayType>(type))
    return int64_t(array.getNumElements()) * sizeOf(array.getElementType());
  if (auto record = dyn_cast<LLVM::LLVMStructType>(type)) {
    int64_t bytes = 0;
    for (Type field : record.getBody()) {
      int64_t size = std::max<int64_t>(sizeOf(field), 1);
      bytes = llvm::alignTo(bytes, std::min<int64_t>(size, 8)) + size;
    }
    return llvm::alignTo(bytes, 8);
  }
  return bytesOf(type);
}

uint8_t *validation::bytesAt(Step &step, const Datum &pointer, int64_t count) {
  auto *place = reinterpret_cast<uint8_t *>(pointer.integer());
  if (step.machine.owner(place, count))
    return place;
  step.machine.outOfBounds(step, "touches memory outside of a buffer");
  return nullptr;
}

static bool isSimple(Type type) {
  return type.isIntOrIndexOrFloat() ||
         isa<VectorType, LLVM::LLVMPointerType>(type);
}

static bool unsupported(Step &step, const llvm::Twine &what) {
  return step.machine.fail(step.op, Failure::Unsupported, what);
}

static bool runLoad(Step &step) {
  Type type = step.op->getResult(0).getType();
  if (!isSimple(type))
    return unsupported(step, "a load of an aggregate");
  uint8_t *place = bytesAt(step, step.in[0], sizeOf(type));
  if (!place)
    return false;
  auto vector = dyn_cast<VectorType>(type);
  if (!vector) {
    step.give(loadScalar(type, place));
    return true;
  }
  Type element = vector.getElementType();
  Datum result = makeArray(vector.getShape(), whole(0));
  for (Scalar &value : result.array().data) {
    value = loadScalar(element, place);
    place += bytesOf(element);
  }
  step.give(result);
  return true;
}

static bool runStore(Step &step) {
  Type type = step.op->getOperand(0).getType();
  if (!isSimple(type))
    return unsupported(step, "a store of an aggregate");
  uint8_t *place = bytesAt(step, step.in[1], sizeOf(type));
  if (!place)
    return false;
  auto vector = dyn_cast<VectorType>(type);
  if (!vector) {
    storeScalar(type, place, step.in[0].scalar);
    return true;
  }
  Type element = vector.getElementType();
  for (Scalar value : step.in[0].array().data) {
    storeScalar(element, place, value);
    place += bytesOf(element);
  }
  return true;
}

/// (pointer, mask, otherwise)
static bool runMaskedLoad(Step &step) {
  auto vector = cast<VectorType>(step.op->getResult(0).getType());
  Type element = vector.getElementType();
  Datum result = step.in.size() > 2
                     ? step.in[2]
                     : makeArray(vector.getShape(), poison(element));
  const Array &mask = step.in[1].array();
  Array &out = result.ownArray();
  for (size_t i = 0; i < out.data.size(); ++i) {
    if (!mask.data[i].i)
      continue;
    Datum at(whole(step.in[0].integer() + int64_t(i) * bytesOf(element)));
    uint8_t *place = bytesAt(step, at, bytesOf(element));
    if (!place)
      return false;
    out.data[i] = loadScalar(element, place);
  }
  step.give(result);
  return true;
}

/// (value, pointer, mask)
static bool runMaskedStore(Step &step) {
  Type element = step.elementOf(step.op->getOperand(0));
  const Array &from = step.in[0].array(), &mask = step.in[2].array();
  for (size_t i = 0; i < from.data.size(); ++i) {
    if (!mask.data[i].i)
      continue;
    Datum at(whole(step.in[1].integer() + int64_t(i) * bytesOf(element)));
    uint8_t *place = bytesAt(step, at, bytesOf(element));
    if (!place)
      return false;
    storeScalar(element, place, from.data[i]);
  }
  return true;
}

static bool runAlloca(Step &step) {
  auto op = cast<LLVM::AllocaOp>(step.op);
  int64_t bytes = step.in[0].integer() * sizeOf(op.getElemType());
  if (bytes < 0 || bytes > (int64_t(1) << 32))
    return step.machine.outOfBounds(step, "has an impossible size");
  step.give(step.machine.expose(new Memory(bytes)));
  return true;
}

static bool runGetElementPointer(Step &step) {
  auto op = cast<LLVM::GEPOp>(step.op);
  int64_t at = step.in[0].integer();
  size_t next = 1;
  Type type = op.getElemType();
  bool first = true;
  for (int32_t raw : op.getRawConstantIndices()) {
    int64_t index = raw == LLVM::GEPOp::kDynamicIndex
                        ? step.in[next++].integer()
                        : int64_t(raw);
    if (!first) {
      if (isa<LLVM::LLVMStructType>(type))
        return unsupported(step, "an address inside a struct");
      if (auto array = dyn_cast<LLVM::LLVMArrayType>(type))
        type = array.getElementType();
      else if (auto vector = dyn_cast<VectorType>(type))
        type = vector.getElementType();
    }
    at += index * sizeOf(type);
    first = false;
  }
  step.give(whole(at));
  return true;
}

static bool runAddressOf(Step &step) {
  auto op = cast<LLVM::AddressOfOp>(step.op);
  Datum &known = step.machine.globals[op.getGlobalName()];
  if (!known.scalar.i) {
    auto global = step.machine.getModule().lookupSymbol<LLVM::GlobalOp>(
        op.getGlobalName());
    auto value =
        global ? dyn_cast_or_null<DenseElementsAttr>(global.getValueOrNull())
               : DenseElementsAttr();
    if (!value)
      return unsupported(step, "a global that is not an array of numbers");
    Datum constant;
    if (!makeConstant(step, value, constant))
      return false;
    Type element = value.getElementType();
    auto *memory =
        new Memory(int64_t(constant.array().data.size()) * bytesOf(element));
    known = step.machine.expose(memory);
    uint8_t *place = memory->bytes.data();
    for (Scalar number : constant.array().data) {
      storeScalar(element, place, number);
      place += bytesOf(element);
    }
  }
  step.give(Datum(known.scalar));
  return true;
}

static bool runPass(Step &step) {
  step.give(step.in[0]);
  return true;
}
static bool runNothing(Step &) { return true; }
static bool runZero(Step &step) {
  Type type = step.op->getResult(0).getType();
  if (auto vector = dyn_cast<VectorType>(type))
    step.give(makeArray(vector.getShape(), whole(0)));
  else
    step.give(whole(0));
  return isSimple(type) || unsupported(step, "a zero of an aggregate");
}

//===----------------------------------------------------------------------===//
// Branches
//===----------------------------------------------------------------------===//

//===----------------------------------------------------------------------===//
// Vectors and comparisons
//===----------------------------------------------------------------------===//

static bool runICmp(Step &step) {
  // The predicates are arith's, number by number.
  auto predicate =
      arith::CmpIPredicate(cast<LLVM::ICmpOp>(step.op).getPredicate());
  Type type = step.elementOf(step.op->getOperand(0));
  return elementwise(step, [&](const Scalar *in) {
    return whole(compareIntegers(predicate, type, in[0].i, in[1].i));
  });
}

static bool runFCmp(Step &step) {
  auto predicate =
      arith::CmpFPredicate(cast<LLVM::FCmpOp>(step.op).getPredicate());
  return elementwise(step, [&](const Scalar *in) {
    return whole(compareFloats(predicate, in[0].f, in[1].f));
  });
}

static bool runInsertElement(Step &step) {
  Array &to = step.in[0].ownArray();
  int64_t at = step.in[2].integer();
  if (at < 0 || at >= int64_t(to.data.size()))
    return step.machine.outOfBounds(step, "has no such element");
  to.data[at] = step.in[1].scalar;
  step.give(step.in[0]);
  return true;
}

static bool runExtractElement(Step &step) {
  const Array &from = step.in[0].array();
  int64_t at = step.in[1].integer();
  if (at < 0 || at >= int64_t(from.data.size()))
    return step.machine.outOfBounds(step, "has no such element");
  step.give(from.data[at]);
  return true;
}

static bool runShuffle(Step &step) {
  auto op = cast<LLVM::ShuffleVectorOp>(step.op);
  const Array &a = step.in[0].array(), &b = step.in[1].array();
  int64_t count = int64_t(a.data.size());
  llvm::ArrayRef<int32_t> mask = op.getMask();
  Datum result =
      makeArray({int64_t(mask.size())}, poison(step.elementOf(op.getResult())));
  for (auto [i, from] : llvm::enumerate(mask))
    if (from >= 0)
      result.array().data[i] =
          from < count ? a.data[from] : b.data[from - count];
  step.give(result);
  return true;
}

/// (start, vector), in order.
static bool runSum(Step &step) {
  Type type = step.op->getResult(0).getType();
  double sum = step.in[0].scalar.f;
  for (Scalar value : step.in[1].array().data)
    sum = roundTo(type, sum + value.f);
  step.give(real(sum));
  return true;
}

template <typename Combine> static bool reduce(Step &step, Combine combine) {
  const std::vector<Scalar> &values = step.in[0].array().data;
  Scalar result = values.front();
  for (Scalar value : llvm::ArrayRef(values).drop_front())
    result = combine(result, value);
  step.give(result);
  return true;
}

static bool runReduceMax(Step &step) {
  return reduce(step,
                [](Scalar a, Scalar b) { return real(maximum(a.f, b.f)); });
}
static bool runReduceMin(Step &step) {
  return reduce(step,
                [](Scalar a, Scalar b) { return real(minimum(a.f, b.f)); });
}
static bool runReduceAdd(Step &step) {
  Type type = step.op->getResult(0).getType();
  return reduce(
      step, [&](Scalar a, Scalar b) { return whole(wrapTo(type, a.i + b.i)); });
}
static bool runReduceSignedMax(Step &step) {
  return reduce(step,
                [](Scalar a, Scalar b) { return whole(std::max(a.i, b.i)); });
}
static bool runReduceOr(Step &step) {
  return reduce(step, [](Scalar a, Scalar b) { return whole(a.i | b.i); });
}
static bool runReduceAnd(Step &step) {
  return reduce(step, [](Scalar a, Scalar b) { return whole(a.i & b.i); });
}

void validation::addPointers(Handlers &handlers) {
  struct {
    const char *name;
    Handler handler;
  } ops[] = {{"load", runLoad},
             {"store", runStore},
             {"intr.masked.load", runMaskedLoad},
             {"intr.masked.store", runMaskedStore},
             {"alloca", runAlloca},
             {"getelementptr", runGetElementPointer},
             {"mlir.addressof", runAddressOf},
             {"mlir.zero", runZero},
             {"ptrtoint", runPass},
             {"inttoptr", runPass},
             {"freeze", runPass},
             {"bitcast", bitcast},
             {"intr.prefetch", runNothing},
             {"intr.assume", runNothing},
             {"intr.lifetime.start", runNothing},
             {"intr.lifetime.end", runNothing},
             {"icmp", runICmp},
             {"fcmp", runFCmp},
             {"insertelement", runInsertElement},
             {"extractelement", runExtractElement},
             {"shufflevector", runShuffle},
             {"intr.vector.reduce.fadd", runSum},
             {"intr.vector.reduce.add", runReduceAdd},
             {"intr.vector.reduce.smax", runReduceSignedMax},
             {"intr.vector.reduce.or", runReduceOr},
             {"intr.vector.reduce.and", runReduceAnd},
             {"intr.vector.reduce.fmaximum", runReduceMax},
             {"intr.vector.reduce.fmax", runReduceMax},
             {"intr.vector.reduce.fminimum", runReduceMin},
             {"intr.vector.reduce.fmin", runReduceMin}};
  for (auto [name, handler] : ops)
    handlers[("llvm." + llvm::Twine(name)).str()] = handler;
}

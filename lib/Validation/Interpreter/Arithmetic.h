//===- Arithmetic.h - Scalars, and arrays element by element ----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_VALIDATION_INTERPRETER_ARITHMETIC_H
#define ATTUNE_LIB_VALIDATION_INTERPRETER_ARITHMETIC_H

#include "Machine.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace attune::validation {

/// Gives `f` of the operands, of each of their elements if they have some.
template <typename F> bool elementwise(Step &step, F f) {
  Scalar in[4];
  const Array *arrays[4] = {};
  Array *shape = nullptr;
  for (size_t i = 0; i < step.in.size(); ++i) {
    in[i] = step.in[i].scalar;
    if (step.in[i].box)
      arrays[i] = shape = &step.in[i].array();
  }
  if (!shape) {
    step.give(f(in));
    return true;
  }
  for (const Array *array : llvm::ArrayRef(arrays, step.in.size()))
    if (array && array->shape != shape->shape)
      return step.machine.illegal(step, "has operands of different sizes");
  Datum result = makeArray(shape->shape, whole(0));
  Array &out = result.array();
  for (size_t e = 0; e < out.data.size(); ++e) {
    for (size_t i = 0; i < step.in.size(); ++i)
      if (arrays[i])
        in[i] = arrays[i]->data[e];
    out.data[e] = f(in);
  }
  step.give(result);
  return step.machine.spend(step, int64_t(out.data.size()) / 8);
}

double maximum(double a, double b);
double minimum(double a, double b);
bool compareFloats(mlir::arith::CmpFPredicate predicate, double a, double b);
bool compareIntegers(mlir::arith::CmpIPredicate predicate, mlir::Type type,
                     int64_t a, int64_t b);
bool makeConstant(Step &step, mlir::Attribute attribute, Datum &constant);

bool runFma(Step &step);
bool runSelect(Step &step);
bool roundFloat(Step &step);
bool signedToFloat(Step &step);
bool unsignedToFloat(Step &step);
bool floatToInteger(Step &step);
bool signExtend(Step &step);
bool zeroExtend(Step &step);
bool bitcast(Step &step);

} // namespace attune::validation

#endif // ATTUNE_LIB_VALIDATION_INTERPRETER_ARITHMETIC_H

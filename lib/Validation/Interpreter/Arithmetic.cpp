//===- Arithmetic.cpp - arith and math --------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Arithmetic.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>
#include <limits>

using namespace attune;
using namespace attune::validation;
using namespace mlir;

//===----------------------------------------------------------------------===//
// Floats
//===----------------------------------------------------------------------===//

double validation::maximum(double a, double b) {
  if (std::isnan(a) || std::isnan(b))
    return std::numeric_limits<double>::quiet_NaN();
  return std::max(a, b);
}
double validation::minimum(double a, double b) { return -maximum(-a, -b); }

static double add(double a, double b) { return a + b; }
static double sub(double a, double b) { return a - b; }
static double mul(double a, double b) { return a * b; }
static double div(double a, double b) { return a / b; }
static double rem(double a, double b) { return std::fmod(a, b); }
static double maxnum(double a, double b) { return std::fmax(a, b); }
static double minnum(double a, double b) { return std::fmin(a, b); }
static double neg(double a) { return -a; }
static double rsqrt(double a) { return 1 / std::sqrt(a); }
static double power(double a, double b) { return std::pow(a, b); }

template <double (*f)(double)> static bool unary(Step &step) {
  Type type = step.elementOf(step.op->getResult(0));
  return elementwise(
      step, [&](const Scalar *in) { return real(roundTo(type, f(in[0].f))); });
}

template <double (*f)(double, double)> static bool binary(Step &step) {
  Type type = step.elementOf(step.op->getResult(0));
  return elementwise(step, [&](const Scalar *in) {
    return real(roundTo(type, f(in[0].f, in[1].f)));
  });
}

bool validation::runFma(Step &step) {
  Type type = step.elementOf(step.op->getResult(0));
  return elementwise(step, [&](const Scalar *in) {
    return real(roundTo(type, std::fma(in[0].f, in[1].f, in[2].f)));
  });
}

bool validation::compareFloats(arith::CmpFPredicate predicate, double a,
                               double b) {
  using P = arith::CmpFPredicate;
  bool unordered = std::isnan(a) || std::isnan(b);
  switch (predicate) {
  case P::AlwaysFalse:
    return false;
  case P::OEQ:
    return !unordered && a == b;
  case P::OGT:
    return !unordered && a > b;
  case P::OGE:
    return !unordered && a >= b;
  case P::OLT:
    return !unordered && a < b;
  case P::OLE:
    return !unordered && a <= b;
  case P::ONE:
    return !unordered && a != b;
  case P::ORD:
    return !unordered;
  case P::UEQ:
    return unordered || a == b;
  case P::UGT:
    return unordered || a > b;
  case P::UGE:
    return unordered || a >= b;
  case P::ULT:
    return unordered || a < b;
  case P::ULE:
    return unordered || a <= b;
  case P::UNE:
    return unordered || a != b;
  case P::UNO:
    return unordered;
  case P::AlwaysTrue:
    return true;
  }
  return false;
}

static bool runCmpF(Step &step) {
  auto predicate = cast<arith::CmpFOp>(step.op).getPredicate();
  return elementwise(step, [&](const Scalar *in) {
    return whole(compareFloats(predicate, in[0].f, in[1].f));
  });
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

bool validation::compareIntegers(arith::CmpIPredicate predicate, Type type,
                                 int64_t a, int64_t b) {
  using P = arith::CmpIPredicate;
  // i1 is 0 or 1 here, but 1 is -1 to a signed comparison.
  if (bitsOf(type) == 1)
    a = -a, b = -b;
  uint64_t ua = unsignedOf(type, a), ub = unsignedOf(type, b);
  switch (predicate) {
  case P::eq:
    return a == b;
  case P::ne:
    return a != b;
  case P::slt:
    return a < b;
  case P::sle:
    return a <= b;
  case P::sgt:
    return a > b;
  case P::sge:
    return a >= b;
  case P::ult:
    return ua < ub;
  case P::ule:
    return ua <= ub;
  case P::ugt:
    return ua > ub;
  case P::uge:
    return ua >= ub;
  }
  return false;
}

static bool runCmpI(Step &step) {
  auto predicate = cast<arith::CmpIOp>(step.op).getPredicate();
  Type type = step.elementOf(step.op->getOperand(0));
  return elementwise(step, [&](const Scalar *in) {
    return whole(compareIntegers(predicate, type, in[0].i, in[1].i));
  });
}

/// The result of an integer op; `bad` is set where it is not defined.
using IntegerRule = int64_t (*)(Type, int64_t, int64_t, bool &bad);

template <IntegerRule f> static bool integers(Step &step) {
  Type type = step.elementOf(step.op->getResult(0));
  bool bad = false;
  bool ok = elementwise(step, [&](const Scalar *in) {
    return whole(wrapTo(type, f(type, in[0].i, in[1].i, bad)));
  });
  return ok && (!bad || step.machine.illegal(step, "divides by zero or shifts "
                                                   "too far"));
}

static int64_t addI(Type, int64_t a, int64_t b, bool &) {
  return int64_t(uint64_t(a) + uint64_t(b));
}
static int64_t subI(Type, int64_t a, int64_t b, bool &) {
  return int64_t(uint64_t(a) - uint64_t(b));
}
static int64_t mulI(Type, int64_t a, int64_t b, bool &) {
  return int64_t(uint64_t(a) * uint64_t(b));
}
static int64_t divS(Type, int64_t a, int64_t b, bool &bad) {
  return (bad |= b == 0) ? 0 : b == -1 ? int64_t(-uint64_t(a)) : a / b;
}
static int64_t remS(Type, int64_t a, int64_t b, bool &bad) {
  return (bad |= b == 0) ? 0 : b == -1 ? 0 : a % b;
}
static int64_t divU(Type t, int64_t a, int64_t b, bool &bad) {
  return (bad |= b == 0) ? 0 : int64_t(unsignedOf(t, a) / unsignedOf(t, b));
}
static int64_t remU(Type t, int64_t a, int64_t b, bool &bad) {
  return (bad |= b == 0) ? 0 : int64_t(unsignedOf(t, a) % unsignedOf(t, b));
}
static int64_t ceilS(Type t, int64_t a, int64_t b, bool &bad) {
  int64_t q = divS(t, a, b, bad);
  return bad || a % b == 0 || (a < 0) != (b < 0) ? q : q + 1;
}
static int64_t floorS(Type t, int64_t a, int64_t b, bool &bad) {
  int64_t q = divS(t, a, b, bad);
  return bad || a % b == 0 || (a < 0) == (b < 0) ? q : q - 1;
}
static int64_t ceilU(Type t, int64_t a, int64_t b, bool &bad) {
  int64_t q = divU(t, a, b, bad);
  return bad || unsignedOf(t, a) % unsignedOf(t, b) == 0 ? q : q + 1;
}
static int64_t maxS(Type, int64_t a, int64_t b, bool &) {
  return std::max(a, b);
}
static int64_t minS(Type, int64_t a, int64_t b, bool &) {
  return std::min(a, b);
}
static int64_t maxU(Type t, int64_t a, int64_t b, bool &) {
  return unsignedOf(t, a) > unsignedOf(t, b) ? a : b;
}
static int64_t minU(Type t, int64_t a, int64_t b, bool &) {
  return unsignedOf(t, a) < unsignedOf(t, b) ? a : b;
}
static int64_t andI(Type, int64_t a, int64_t b, bool &) { return a & b; }
static int64_t orI(Type, int64_t a, int64_t b, bool &) { return a | b; }
static int64_t xorI(Type, int64_t a, int64_t b, bool &) { return a ^ b; }
static int64_t shl(Type t, int64_t a, int64_t b, bool &bad) {
  bad |= unsignedOf(t, b) >= bitsOf(t);
  return bad ? 0 : int64_t(uint64_t(a) << b);
}
static int64_t shrS(Type t, int64_t a, int64_t b, bool &bad) {
  bad |= unsignedOf(t, b) >= bitsOf(t);
  return bad ? 0 : a >> b;
}
static int64_t shrU(Type t, int64_t a, int64_t b, bool &bad) {
  bad |= unsignedOf(t, b) >= bitsOf(t);
  return bad ? 0 : int64_t(unsignedOf(t, a) >> b);
}

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

bool validation::roundFloat(Step &step) {
  Type type = step.elementOf(step.op->getResult(0));
  return elementwise(
      step, [&](const Scalar *in) { return real(roundTo(type, in[0].f)); });
}
bool validation::signedToFloat(Step &step) {
  Type from = step.elementOf(step.op->getOperand(0));
  Type type = step.elementOf(step.op->getResult(0));
  return elementwise(step, [&](const Scalar *in) {
    return real(roundTo(type, double(bitsOf(from) == 1 ? -in[0].i : in[0].i)));
  });
}
bool validation::unsignedToFloat(Step &step) {
  Type from = step.elementOf(step.op->getOperand(0));
  Type type = step.elementOf(step.op->getResult(0));
  return elementwise(step, [&](const Scalar *in) {
    return real(roundTo(type, double(unsignedOf(from, in[0].i))));
  });
}
bool validation::floatToInteger(Step &step) {
  Type type = step.elementOf(step.op->getResult(0));
  // A number that does not fit is poison, which a select may drop: any number
  // will do.
  return elementwise(step, [&](const Scalar *in) {
    bool fits = std::fabs(in[0].f) < 9.2e18;
    return whole(wrapTo(type, fits ? int64_t(in[0].f)
                                   : std::numeric_limits<int64_t>::min()));
  });
}
bool validation::signExtend(Step &step) {
  Type from = step.elementOf(step.op->getOperand(0));
  Type type = step.elementOf(step.op->getResult(0));
  return elementwise(step, [&](const Scalar *in) {
    return whole(wrapTo(type, bitsOf(from) == 1 ? -in[0].i : in[0].i));
  });
}
bool validation::zeroExtend(Step &step) {
  Type from = step.elementOf(step.op->getOperand(0));
  return elementwise(step, [&](const Scalar *in) {
    return whole(int64_t(unsignedOf(from, in[0].i)));
  });
}
/// The same bytes as elements of another width.
static bool recut(Step &step, Type from, Type to) {
  auto type = dyn_cast<ShapedType>(step.op->getResult(0).getType());
  if (!type || !type.hasStaticShape() || bitsOf(from) % 8 || bitsOf(to) % 8)
    return step.machine.fail(step.op, Failure::Unsupported,
                             "a bitcast to another width");
  const Array &in = step.in[0].array();
  Datum result = makeArray(type.getShape(), real(0));
  Array &out = result.array();
  std::vector<uint8_t> bytes(in.data.size() * bytesOf(from));
  for (size_t i = 0; i < in.data.size(); ++i)
    storeScalar(from, &bytes[i * bytesOf(from)], in.data[i]);
  for (size_t i = 0; i < out.data.size(); ++i)
    out.data[i] = loadScalar(to, &bytes[i * bytesOf(to)]);
  step.give(result);
  return true;
}

bool validation::bitcast(Step &step) {
  Type from = step.elementOf(step.op->getOperand(0));
  Type to = step.elementOf(step.op->getResult(0));
  if (bitsOf(from) != bitsOf(to))
    return recut(step, from, to);
  return elementwise(step, [&](const Scalar *in) {
    uint8_t bytes[8] = {};
    storeScalar(from, bytes, in[0]);
    return loadScalar(to, bytes);
  });
}

//===----------------------------------------------------------------------===//
// Constants, selection
//===----------------------------------------------------------------------===//

static Scalar scalarOf(Attribute attribute) {
  if (auto number = dyn_cast<FloatAttr>(attribute))
    return real(number.getValueAsDouble());
  auto number = cast<IntegerAttr>(attribute);
  return whole(wrapTo(number.getType(), number.getValue().getSExtValue()));
}

bool validation::makeConstant(Step &step, Attribute attribute,
                              Datum &constant) {
  if (isa<FloatAttr, IntegerAttr>(attribute)) {
    constant = scalarOf(attribute);
    return true;
  }
  auto elements = dyn_cast<DenseElementsAttr>(attribute);
  if (!elements)
    return step.machine.fail(step.op, Failure::Unsupported,
                             "a constant that validation cannot read");
  constant = makeArray(elements.getType().getShape(), whole(0));
  Array &array = constant.array();
  if (elements.isSplat()) {
    std::fill(array.data.begin(), array.data.end(),
              scalarOf(elements.getSplatValue<Attribute>()));
  } else {
    size_t i = 0;
    for (Attribute value : elements.getValues<Attribute>())
      array.data[i++] = scalarOf(value);
  }
  return true;
}

static bool runConstant(Step &step) {
  Datum constant;
  if (!makeConstant(step, cast<arith::ConstantOp>(step.op).getValue(),
                    constant))
    return false;
  step.give(constant);
  return true;
}

bool validation::runSelect(Step &step) {
  Type type = step.op->getOperand(0).getType();
  if (!isa<ShapedType>(type)) {
    step.give(step.in[step.in[0].integer() ? 1 : 2]);
    return true;
  }
  return elementwise(step,
                     [](const Scalar *in) { return in[0].i ? in[1] : in[2]; });
}

static bool pass(Step &step) {
  Type type = step.elementOf(step.op->getResult(0));
  return elementwise(
      step, [&](const Scalar *in) { return whole(wrapTo(type, in[0].i)); });
}

static bool runPoison(Step &step) {
  Type type = step.op->getResult(0).getType();
  if (auto shaped = dyn_cast<ShapedType>(type))
    step.give(makeArray(shaped.getShape(), poison(shaped.getElementType())));
  else
    step.give(poison(type));
  return true;
}

void validation::addArith(Handlers &handlers) {
  struct {
    const char *name;
    Handler handler;
  } ops[] = {{"addf", binary<add>},
             {"subf", binary<sub>},
             {"mulf", binary<mul>},
             {"divf", binary<div>},
             {"remf", binary<rem>},
             {"negf", unary<neg>},
             {"maximumf", binary<maximum>},
             {"minimumf", binary<minimum>},
             {"maxnumf", binary<maxnum>},
             {"minnumf", binary<minnum>},
             {"cmpf", runCmpF},
             {"cmpi", runCmpI},
             {"addi", integers<addI>},
             {"subi", integers<subI>},
             {"muli", integers<mulI>},
             {"divsi", integers<divS>},
             {"remsi", integers<remS>},
             {"divui", integers<divU>},
             {"remui", integers<remU>},
             {"ceildivsi", integers<ceilS>},
             {"floordivsi", integers<floorS>},
             {"ceildivui", integers<ceilU>},
             {"maxsi", integers<maxS>},
             {"minsi", integers<minS>},
             {"maxui", integers<maxU>},
             {"minui", integers<minU>},
             {"andi", integers<andI>},
             {"ori", integers<orI>},
             {"xori", integers<xorI>},
             {"shli", integers<shl>},
             {"shrsi", integers<shrS>},
             {"shrui", integers<shrU>},
             {"extf", roundFloat},
             {"truncf", roundFloat},
             {"sitofp", signedToFloat},
             {"uitofp", unsignedToFloat},
             {"fptosi", floatToInteger},
             {"fptoui", floatToInteger},
             {"extsi", signExtend},
             {"extui", zeroExtend},
             {"trunci", pass},
             {"index_cast", signExtend},
             {"index_castui", zeroExtend},
             {"bitcast", bitcast},
             {"select", runSelect},
             {"constant", runConstant}};
  for (auto [name, handler] : ops)
    handlers[("arith." + llvm::Twine(name)).str()] = handler;
  struct {
    const char *name;
    Handler handler;
  } indices[] = {{"add", integers<addI>},  {"sub", integers<subI>},
                 {"mul", integers<mulI>},  {"divs", integers<divS>},
                 {"divu", integers<divU>}, {"rems", integers<remS>},
                 {"remu", integers<remU>}, {"maxs", integers<maxS>},
                 {"mins", integers<minS>}, {"casts", pass},
                 {"castu", zeroExtend}};
  for (auto [name, handler] : indices)
    handlers[("index." + llvm::Twine(name)).str()] = handler;
  handlers["ub.poison"] = runPoison;

  // The same of LLVM's dialect, where flags say only what may be assumed.
  struct {
    const char *name;
    Handler handler;
  } llvmOps[] = {{"fadd", binary<add>},
                 {"fsub", binary<sub>},
                 {"fmul", binary<mul>},
                 {"fdiv", binary<div>},
                 {"frem", binary<rem>},
                 {"fneg", unary<neg>},
                 {"add", integers<addI>},
                 {"sub", integers<subI>},
                 {"mul", integers<mulI>},
                 {"sdiv", integers<divS>},
                 {"srem", integers<remS>},
                 {"udiv", integers<divU>},
                 {"urem", integers<remU>},
                 {"and", integers<andI>},
                 {"or", integers<orI>},
                 {"xor", integers<xorI>},
                 {"shl", integers<shl>},
                 {"ashr", integers<shrS>},
                 {"lshr", integers<shrU>},
                 {"intr.smax", integers<maxS>},
                 {"intr.smin", integers<minS>},
                 {"intr.umax", integers<maxU>},
                 {"intr.umin", integers<minU>},
                 {"intr.maximum", binary<maximum>},
                 {"intr.minimum", binary<minimum>},
                 {"intr.maxnum", binary<maxnum>},
                 {"intr.minnum", binary<minnum>},
                 {"intr.fma", runFma},
                 {"intr.fmuladd", runFma},
                 {"intr.sqrt", unary<std::sqrt>},
                 {"intr.fabs", unary<std::fabs>},
                 {"intr.exp", unary<std::exp>},
                 {"intr.exp2", unary<std::exp2>},
                 {"intr.log", unary<std::log>},
                 {"intr.log2", unary<std::log2>},
                 {"intr.sin", unary<std::sin>},
                 {"intr.cos", unary<std::cos>},
                 {"intr.tanh", unary<std::tanh>},
                 {"intr.pow", binary<power>},
                 {"intr.copysign", binary<std::copysign>},
                 {"intr.floor", unary<std::floor>},
                 {"intr.ceil", unary<std::ceil>},
                 {"intr.trunc", unary<std::trunc>},
                 {"intr.roundeven", unary<std::nearbyint>},
                 {"intr.rint", unary<std::nearbyint>},
                 {"fpext", roundFloat},
                 {"fptrunc", roundFloat},
                 {"sitofp", signedToFloat},
                 {"uitofp", unsignedToFloat},
                 {"fptosi", floatToInteger},
                 {"fptoui", floatToInteger},
                 {"sext", signExtend},
                 {"zext", zeroExtend},
                 {"trunc", pass},
                 {"select", runSelect}};
  for (auto [name, handler] : llvmOps)
    handlers[("llvm." + llvm::Twine(name)).str()] = handler;
}

void validation::addMath(Handlers &handlers) {
  struct {
    const char *name;
    Handler handler;
  } ops[] = {{"exp", unary<std::exp>},
             {"exp2", unary<std::exp2>},
             {"expm1", unary<std::expm1>},
             {"log", unary<std::log>},
             {"log2", unary<std::log2>},
             {"log1p", unary<std::log1p>},
             {"sqrt", unary<std::sqrt>},
             {"rsqrt", unary<rsqrt>},
             {"sin", unary<std::sin>},
             {"cos", unary<std::cos>},
             {"tanh", unary<std::tanh>},
             {"erf", unary<std::erf>},
             {"absf", unary<std::fabs>},
             {"floor", unary<std::floor>},
             {"ceil", unary<std::ceil>},
             {"trunc", unary<std::trunc>},
             {"round", unary<std::round>},
             {"powf", binary<power>},
             {"atan2", binary<std::atan2>},
             {"copysign", binary<std::copysign>},
             {"roundeven", unary<std::nearbyint>},
             {"fma", runFma}};
  for (auto [name, handler] : ops)
    handlers[("math." + llvm::Twine(name)).str()] = handler;
}

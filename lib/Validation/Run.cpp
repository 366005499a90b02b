//===- Run.cpp - One function on one input ----------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Run.h"

#include "Interpreter/Pointers.h"

#include "Attune/AttuneDialect.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <cstdio>

using namespace attune;
using namespace attune::validation;
using namespace mlir;

static StringRef attributeOf(DictionaryAttr attributes, StringRef name) {
  auto text = attributes ? attributes.getAs<StringAttr>(name) : StringAttr();
  return text ? text.getValue() : StringRef();
}

static StringRef argument(FunctionOpInterface func, unsigned i,
                          StringRef name) {
  return attributeOf(func.getArgAttrDict(i), name);
}

Signature::Signature(FunctionOpInterface func)
    : numArguments(func.getNumArguments()),
      resultTypes(func.getResultTypes().begin(), func.getResultTypes().end()) {
  for (unsigned i = 0; i < func.getNumResults(); ++i) {
    StringRef name = attributeOf(func.getResultAttrDict(i), "attune.name");
    batches.push_back(
        findBatch(func.getResultAttrDict(i), func.getResultTypes()[i]));
    results.push_back(name.empty() ? ("result " + Twine(i)).str() : name.str());
  }
  for (unsigned i = 0; i < numArguments; ++i)
    if (isa<MemRefType>(func.getArgumentTypes()[i]))
      written.push_back({i, ("argument " + Twine(i)).str()});
}

void Signature::findRoles(FunctionOpInterface func) const {
  // Names go before the code becomes LLVM's; the arguments stay in order.
  auto known = std::move(roles);
  roles.clear();
  for (auto [i, type] : llvm::enumerate(func.getArgumentTypes())) {
    StringRef name = argument(func, i, "attune.name");
    if (!func.getAllArgAttrs() && known.size() == func.getNumArguments())
      name = known[i].name;
    roles.push_back({type, name.str()});
  }
  auto bytes =
      roles.empty() ? MemRefType() : dyn_cast<MemRefType>(roles.front().type);
  first = roles.size() > numArguments && bytes && bytes.getRank() == 1 &&
          bytes.getElementType().isInteger(8);
}

/// The result of an earlier run that an argument is for: the one of its name,
/// or of its place if it has none.
static const Output *findResult(const Outputs *outputs, StringRef name,
                                size_t number) {
  if (!outputs)
    return nullptr;
  for (const Output &output : *outputs)
    if (output.name == name && output.value.box)
      return &output;
  bool known =
      name.empty() && number < outputs->size() && (*outputs)[number].value.box;
  return known ? &(*outputs)[number] : nullptr;
}

/// Whether an array can be a value of the type.
static bool fits(Type type, const Array &array) {
  auto shaped = cast<ShapedType>(type);
  if (shaped.getRank() != int64_t(array.shape.size()))
    return false;
  for (auto [size, wanted] : llvm::zip(array.shape, shaped.getShape()))
    if (!ShapedType::isDynamic(wanted) && size != wanted)
      return false;
  return true;
}

/// The array as a tensor or in a buffer of its own.
static std::optional<Datum> bind(Type type, const Datum &value) {
  if (!value.box)
    return value;
  if (!isa<TensorType, MemRefType>(type) || !fits(type, value.array()))
    return std::nullopt;
  if (isa<TensorType>(type))
    return value;
  Type element = getElementTypeOrSelf(type);
  Datum buffer = allocate(element, value.array().shape);
  writeView(buffer.view(), element, value.array());
  return buffer;
}

static Datum read(Type type, const Datum &value) {
  return isa<MemRefType>(type)
             ? readView(value.view(), getElementTypeOrSelf(type))
             : value;
}

std::optional<Outputs> validation::run(Machine &machine,
                                       FunctionOpInterface func,
                                       const Signature &signature,
                                       llvm::ArrayRef<Argument> args,
                                       const Outputs *like) {
  auto unknown = [&](const Twine &why) {
    machine.fail(func, Failure::Unsupported, why);
    return std::nullopt;
  };
  // The weights come first, then what was there, then results.
  bool lowered = isa<LLVM::LLVMFuncOp>(func);
  if (!lowered)
    signature.findRoles(func);
  const std::vector<Signature::Role> &roles = signature.roles;
  unsigned first = signature.first;
  if (roles.size() < first + args.size())
    return unknown("takes fewer arguments than before");
  std::vector<Datum> bound;
  for (size_t i = 0; i < roles.size(); ++i) {
    std::optional<Datum> value;
    if (i < first) {
      value = machine.getWeightBytes();
      if (!value->box)
        return unknown("has weights that have no place");
    } else if (i < first + args.size()) {
      value = bind(roles[i].type, args[i - first].value);
    } else if (const Output *model =
                   findResult(like, roles[i].name, i - first - args.size())) {
      value = bind(roles[i].type, makeArray(model->value.array().shape,
                                            poison(model->element)));
    }
    if (!value)
      return unknown("takes other arguments than before");
    bound.push_back(std::move(*value));
  }

  std::vector<Datum> passed = bound;
  if (lowered) {
    passed.clear();
    for (auto [role, value] : llvm::zip(roles, bound))
      if (isa<MemRefType>(role.type))
        appendDescriptor(machine, value.view(), passed);
      else
        passed.push_back(value);
    if (passed.size() != func.getNumArguments())
      return unknown("takes other arguments than before");
  }
  llvm::SmallVector<Datum> results;
  if (!machine.call(func, passed, results))
    return std::nullopt;

  Outputs outputs;
  auto add = [&](StringRef name, Type type, const Datum &value) {
    outputs.push_back(
        {name.str(), getElementTypeOrSelf(type), read(type, value)});
  };
  // Results that are left are those that are no memory, if some are gone.
  size_t left = results.size();
  bool all = left == signature.results.size();
  unsigned next = 0;
  for (size_t r = 0; r < signature.results.size(); ++r) {
    Type type = signature.resultTypes[r];
    bool memory = isa<ShapedType>(type);
    if (lowered && left == 1 && !memory && results[0].box)
      return unknown("returns several numbers");
    if (lowered && memory && all)
      return unknown("returns memory");
    if (all || (!memory && next < left)) {
      add(signature.results[r], lowered ? type : func.getResultTypes()[next],
          results[next]);
      ++next;
      continue;
    }
    // A cache stays in its argument, other results have one of their own.
    size_t place = roles.size();
    for (size_t i = roles.size(); i-- > first;)
      if (roles[i].name == signature.results[r] &&
          isa<MemRefType>(roles[i].type))
        place = i;
    if (place == roles.size())
      place = first + args.size() + r;
    if (place >= roles.size())
      return unknown("has lost '" + signature.results[r] + "'");
    add(signature.results[r], roles[place].type, bound[place]);
  }
  for (auto [output, batch] : llvm::zip(outputs, signature.batches))
    output.batch = batch;
  for (auto [number, name] : signature.written)
    add(name, roles[first + number].type, bound[first + number]);
  return outputs;
}

//===----------------------------------------------------------------------===//
// Comparing
//===----------------------------------------------------------------------===//

static std::vector<Scalar> elementsOf(const Datum &value) {
  return value.box ? value.array().data : std::vector<Scalar>{value.scalar};
}
static Shape shapeOf(const Datum &value) {
  return value.box ? value.array().shape : Shape();
}

std::string Mismatch::text() const {
  std::string place;
  for (int64_t i : index)
    place += (place.empty() ? "" : ", ") + std::to_string(i);
  auto number = [&](double value) {
    char text[40];
    std::snprintf(text, sizeof text, "%.9g", value);
    return std::string(text);
  };
  std::string result = "'" + name + "'";
  if (!index.empty())
    result += " [" + place + "]";
  return result + " was " + number(before) + " and is " + number(after) +
         (isa<FloatType>(element)
              ? llvm::formatv(" (allowed: {0:e1})", allowed).str()
              : "");
}

std::optional<Mismatch> validation::compare(const Outputs &before,
                                            const Outputs &after,
                                            const Case &check,
                                            Tolerance tolerance,
                                            const Outputs *moved) {
  std::optional<Mismatch> worst;
  double worstBy = 0;
  for (size_t o = 0; o < before.size(); ++o) {
    auto want = elementsOf(before[o].value);
    const Output *other = o < after.size() ? &after[o] : nullptr;
    auto got = other ? elementsOf(other->value) : std::vector<Scalar>();
    Shape shape = shapeOf(before[o].value);
    bool isFloat = isa<FloatType>(before[o].element);
    // Below its least normal number a type has no relative precision.
    double normal =
        isFloat ? APFloat::getSmallestNormalized(
                      cast<FloatType>(before[o].element).getFloatSemantics())
                      .convertToDouble()
                : 0;
    if (got.size() != want.size()) {
      Mismatch mismatch{before[o].name + "' has another size: '" +
                            before[o].name,
                        {},
                        double(want.size()),
                        double(got.size()),
                        0,
                        {}};
      mismatch.element = before[o].element;
      return mismatch;
    }
    double largest = 0;
    for (Scalar value : want)
      if (isFloat && std::isfinite(value.f))
        largest = std::max(largest, std::fabs(value.f));
    auto shifted =
        moved ? elementsOf((*moved)[o].value) : std::vector<Scalar>();
    size_t row = shape.empty() ? 1 : std::max<int64_t>(shape.back(), 1);
    // Other sequences of the batch must not notice the last one.
    int batch = before[o].batch;
    int64_t below = 1;
    for (size_t d = batch + 1; d < shape.size(); ++d)
      below *= shape[d];
    double spread = 0;
    for (size_t i = 0; i < want.size(); ++i) {
      if (i % row == 0) {
        spread = 0;
        for (size_t j = i;
             isFloat && moved && j < std::min(i + row, want.size()); ++j) {
          double by = std::fabs(shifted[j].f - want[j].f);
          spread = std::isnan(by) ? INFINITY : std::max(spread, by);
        }
      }
      if (check.numbers == Numbers::NotANumber &&
          (batch < 0 || int64_t(i) / below % shape[batch] == shape[batch] - 1))
        continue;
      double by, allowed = 0;
      if (isFloat) {
        double a = want[i].f, b = got[i].f;
        // Where the answer is not a number there is nothing to keep.
        if (a == b || std::isnan(a))
          continue;
        allowed = tolerance.atol * largest +
                  tolerance.rtol * std::max(std::fabs(a), normal) + 8 * spread +
                  1e-37;
        by = std::fabs(a - b);
        if (by <= allowed)
          continue;
        by = std::isnan(by) ? INFINITY : by / std::max(allowed, 1e-300);
      } else {
        if (want[i].i == got[i].i || (moved && shifted[i].i != want[i].i))
          continue;
        by = INFINITY;
      }
      if (worst && by <= worstBy)
        continue;
      worstBy = by;
      worst.emplace();
      worst->name = before[o].name;
      worst->element = before[o].element;
      worst->index.assign(shape.size(), 0);
      int64_t rest = int64_t(i);
      for (size_t d = shape.size(); d-- > 0;) {
        worst->index[d] = rest % shape[d];
        rest /= shape[d];
      }
      worst->before = isFloat ? want[i].f : double(want[i].i);
      worst->after = isFloat ? got[i].f : double(got[i].i);
      worst->allowed = allowed;
    }
  }
  return worst;
}

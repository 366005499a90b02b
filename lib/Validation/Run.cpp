//===- Run.cpp - One function on one input ----------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Run.h"

#include "Attune/AttuneDialect.h"

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
    results.push_back(name.empty() ? ("result " + Twine(i)).str() : name.str());
  }
  for (unsigned i = 0; i < numArguments; ++i)
    if (isa<MemRefType>(func.getArgumentTypes()[i]))
      written.push_back({i, ("argument " + Twine(i)).str()});
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
  auto types = func.getArgumentTypes();
  // The weights come first, then what was there, then results.
  std::vector<Datum> bound;
  unsigned first = 0;
  auto bytes = types.empty() ? MemRefType() : dyn_cast<MemRefType>(types[0]);
  if (types.size() > args.size() && bytes && bytes.getRank() == 1 &&
      bytes.getElementType().isInteger(8) &&
      !machine.getModule().getOps<WeightOp>().empty()) {
    bound.push_back(machine.getWeightBytes());
    first = 1;
  }
  if (types.size() < first + args.size())
    return unknown("takes fewer arguments than before");
  for (size_t i = 0; i < args.size(); ++i) {
    std::optional<Datum> value = bind(types[first + i], args[i].value);
    if (!value)
      return unknown("takes other arguments than before");
    bound.push_back(std::move(*value));
  }
  for (size_t i = bound.size(); i < types.size(); ++i) {
    StringRef name = argument(func, i, "attune.name");
    const Output *model = nullptr;
    for (size_t o = 0; like && o < like->size(); ++o)
      if ((*like)[o].name == name)
        model = &(*like)[o];
    // Results without names come in their order.
    size_t number = i - first - args.size();
    if (!model && like && name.empty() && number < like->size())
      model = &(*like)[number];
    if (!model || !model->value.box)
      return unknown("takes an argument that is no result of before");
    auto value = bind(types[i], makeArray(model->value.array().shape,
                                          poison(model->element)));
    if (!value)
      return unknown("takes other results than before");
    bound.push_back(std::move(*value));
  }

  std::vector<Datum> passed = bound;
  llvm::SmallVector<Datum> results;
  if (!machine.call(func, passed, results))
    return std::nullopt;

  Outputs outputs;
  auto add = [&](StringRef name, Type type, const Datum &value) {
    outputs.push_back(
        {name.str(), getElementTypeOrSelf(type), read(type, value)});
  };
  // Results that are left are those that are no memory, if some are gone.
  bool all = func.getNumResults() == signature.results.size();
  unsigned next = 0;
  for (size_t r = 0; r < signature.results.size(); ++r) {
    bool memory = isa<ShapedType>(signature.resultTypes[r]);
    if (all || (!memory && next < func.getNumResults())) {
      add(signature.results[r], func.getResultTypes()[next], results[next]);
      ++next;
      continue;
    }
    // A cache stays in its argument, other results have one of their own.
    size_t place = types.size();
    for (size_t i = types.size(); i-- > first;)
      if (argument(func, i, "attune.name") == signature.results[r] &&
          isa<MemRefType>(types[i]))
        place = std::min(place, i);
    if (place == types.size() && types.size() > first + args.size() + r)
      place = first + args.size() + r;
    if (place >= types.size())
      return unknown("has lost '" + signature.results[r] + "'");
    add(signature.results[r], types[place], bound[place]);
  }
  for (auto [number, name] : signature.written)
    add(name, types[first + number], bound[first + number]);
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
    bool batched = check.numbers == Numbers::NotANumber && shape.size() > 1 &&
                   shape[0] == check.batch && check.batch > 1;
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
      double by, allowed = 0;
      if (isFloat) {
        double a = want[i].f, b = got[i].f;
        // Where the answer is not a number there is nothing to keep.
        if (a == b || std::isnan(a))
          continue;
        if (check.numbers == Numbers::NotANumber &&
            (!batched || i >= want.size() / 2))
          continue;
        allowed = tolerance.atol * largest + tolerance.rtol * std::fabs(a) +
                  8 * spread + 1e-37;
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

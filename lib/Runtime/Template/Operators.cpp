//===- Operators.cpp - Arithmetic, order, members -------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Interpreter.h"
#include "Text.h"

#include <algorithm>
#include <cmath>

namespace attune::runtime::jinja {

bool Interpreter::wantDefined(const Value &value) {
  return !value.isUndefined() || fail(value.as<UndefinedObject>().message());
}

bool Interpreter::hashable(const Value &value) {
  if (value.is(Kind::Tuple)) {
    for (const Value &item : value.list().items)
      if (!item.is(Kind::Tuple) && !hashable(item))
        return false;
    return true;
  }
  bool good = !value.is(Kind::List) && !value.isDict();
  return good ||
         fail(std::string("unhashable type: '") + value.typeName() + "'");
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

static const char *spelling(NodeKind kind) {
  switch (kind) {
  case NodeKind::Add:
    return "+";
  case NodeKind::Sub:
    return "-";
  case NodeKind::Mul:
    return "*";
  case NodeKind::Div:
    return "/";
  case NodeKind::FloorDiv:
    return "//";
  case NodeKind::Mod:
    return "%";
  default:
    return "** or pow()";
  }
}

/// False if the result does not fit.
static bool integerArithmetic(NodeKind kind, int64_t a, int64_t b,
                              int64_t &out) {
  switch (kind) {
  case NodeKind::Add:
    return !__builtin_add_overflow(a, b, &out);
  case NodeKind::Sub:
    return !__builtin_sub_overflow(a, b, &out);
  case NodeKind::Mul:
    return !__builtin_mul_overflow(a, b, &out);
  case NodeKind::FloorDiv:
  case NodeKind::Mod: {
    if (b == -1) { // the only overflow, and no remainder
      out = 0;
      return kind == NodeKind::Mod || !__builtin_sub_overflow(out, a, &out);
    }
    int64_t quotient = a / b, rest = a % b;
    if (rest != 0 && (rest < 0) != (b < 0)) {
      --quotient;
      rest += b;
    }
    out = kind == NodeKind::Mod ? rest : quotient;
    return true;
  }
  default: {
    out = 1;
    for (int64_t base = a; b > 0; b >>= 1) {
      if ((b & 1) && __builtin_mul_overflow(out, base, &out))
        return false;
      if (b > 1 && __builtin_mul_overflow(base, base, &base))
        return false;
    }
    return true;
  }
  }
}

static double realArithmetic(NodeKind kind, double a, double b) {
  switch (kind) {
  case NodeKind::Add:
    return a + b;
  case NodeKind::Sub:
    return a - b;
  case NodeKind::Mul:
    return a * b;
  case NodeKind::Div:
    return a / b;
  case NodeKind::FloorDiv:
  case NodeKind::Mod: {
    double rest = std::fmod(a, b);
    if (rest != 0 && (rest < 0) != (b < 0))
      rest += b;
    else if (rest == 0)
      rest = std::copysign(0.0, b);
    if (kind == NodeKind::Mod)
      return rest;
    double quotient = (a - rest) / b, whole = std::floor(quotient);
    return quotient - whole > 0.5 ? whole + 1 : whole;
  }
  default:
    return std::pow(a, b);
  }
}

static void appendEscaped(Interpreter::Builder &out, const Value &value) {
  if (value.isMarkup())
    out.add(value.text());
  else
    escapeHtml(out, value.text());
}

bool Interpreter::arithmetic(NodeKind kind, const Value &a, const Value &b,
                             Value &out) {
  if (a.isString() && kind == NodeKind::Mod)
    return formatPercent(a.text(), b, out);
  if (!wantDefined(a) || !wantDefined(b))
    return false;
  if (a.isNumber() && b.isNumber()) {
    bool divides = kind == NodeKind::Div || kind == NodeKind::FloorDiv ||
                   kind == NodeKind::Mod;
    if ((divides && b.real() == 0) ||
        (kind == NodeKind::Pow && a.real() == 0 && b.real() < 0))
      return fail("division by zero");
    if (a.isInteger() && b.isInteger() && kind != NodeKind::Div &&
        !(kind == NodeKind::Pow && b.integer() < 0)) {
      int64_t result;
      if (!integerArithmetic(kind, a.integer(), b.integer(), result))
        return fail("a whole number beyond 64 bits");
      out = Value::integer(result);
      return true;
    }
    double result = realArithmetic(kind, a.real(), b.real());
    if (std::isnan(result) && kind == NodeKind::Pow && !std::isnan(a.real()))
      return fail("a power that is a complex number");
    out = Value::real(result);
    return true;
  }
  if (kind == NodeKind::Add) {
    if (a.isString() && b.isString()) {
      Builder text(*this);
      bool markup = a.isMarkup() || b.isMarkup();
      if (markup) {
        appendEscaped(text, a);
        appendEscaped(text, b);
      } else {
        text.add(a.text()).add(b.text());
      }
      out = text.take();
      out.as<StringObject>().isMarkup = markup;
      return step(0);
    }
    if (a.kind() == b.kind() && (a.is(Kind::List) || a.is(Kind::Tuple))) {
      Value list = newList(a.kind());
      for (const Value *part : {&a, &b})
        for (const Value &item : part->list().items)
          if (!append(list, item))
            return false;
      out = list;
      return true;
    }
    if (a.isString() || b.isString()) {
      const Value &other = a.isString() ? b : a;
      return fail(a.isString() ? std::string("can only concatenate str (not "
                                             "\"") +
                                     other.typeName() + "\") to str"
                               : std::string("unsupported operand type(s) for "
                                             "+: '") +
                                     other.typeName() + "' and 'str'");
    }
  }
  const Value &sequence = a.isInteger() ? b : a, &times = a.isInteger() ? a : b;
  if (kind == NodeKind::Mul && times.isInteger() && sequence.isString()) {
    Builder text(*this);
    for (int64_t i = 0; i < times.integer() && !sequence.text().empty(); ++i) {
      text.add(sequence.text());
      if (!step())
        return false;
    }
    out = text.take();
    return step(0);
  }
  if (kind == NodeKind::Mul && times.isInteger() &&
      (sequence.is(Kind::List) || sequence.is(Kind::Tuple))) {
    Value list = newList(sequence.kind());
    for (int64_t i = 0; i < times.integer() && truth(sequence); ++i)
      for (const Value &item : sequence.list().items)
        if (!append(list, item) || !step())
          return false;
    out = list;
    return true;
  }
  return fail(std::string("unsupported operand type(s) for ") + spelling(kind) +
              ": '" + a.typeName() + "' and '" + b.typeName() + "'");
}

//===----------------------------------------------------------------------===//
// Comparisons
//===----------------------------------------------------------------------===//

static bool equalNumbers(const Value &a, const Value &b) {
  if (a.isInteger() && b.isInteger())
    return a.integer() == b.integer();
  if (a.is(Kind::Float) && b.is(Kind::Float))
    return a.real() == b.real();
  // A double is compared with an integer exactly.
  double real = a.is(Kind::Float) ? a.real() : b.real();
  int64_t integer = a.is(Kind::Float) ? b.integer() : a.integer();
  return real >= -0x1p63 && real < 0x1p63 &&
         static_cast<int64_t>(real) == integer &&
         static_cast<double>(static_cast<int64_t>(real)) == real;
}

/// Lists that hold themselves many times over would take for ever: every
/// value that is looked at is a step.
bool Interpreter::equal(const Value &a, const Value &b, unsigned level) {
  if (!step(a.isString() ? a.text().size() / 64 : 1))
    return false;
  if (a.isNumber() && b.isNumber())
    return equalNumbers(a, b);
  if (a.kind() != b.kind() || level > 64)
    return false;
  switch (a.kind()) {
  case Kind::Undefined:
  case Kind::None:
    return true;
  case Kind::String:
    return a.text() == b.text();
  case Kind::List:
  case Kind::Tuple: {
    const std::vector<Value> &x = a.list().items, &y = b.list().items;
    if (a.object() == b.object())
      return true;
    if (x.size() != y.size())
      return false;
    for (size_t i = 0; i < x.size(); ++i)
      if (!equal(x[i], y[i], level + 1))
        return false;
    return true;
  }
  case Kind::Dict: {
    const DictObject &x = a.dict(), &y = b.dict();
    if (&x == &y)
      return true;
    if (x.keys.size() != y.keys.size())
      return false;
    for (size_t i = 0; i < x.keys.size(); ++i) {
      size_t j = 0;
      while (j < y.keys.size() && !equal(x.keys[i], y.keys[j], level + 1))
        ++j;
      if (j == y.keys.size() || !equal(x.values[i], y.values[j], level + 1))
        return false;
    }
    return true;
  }
  case Kind::Range: {
    const auto &x = a.as<RangeObject>(), &y = b.as<RangeObject>();
    int64_t size = x.size();
    return size == y.size() && (size == 0 || (x.start == y.start &&
                                              (size == 1 || x.step == y.step)));
  }
  default:
    return a.object() == b.object();
  }
}

bool Interpreter::order(const Value &a, const Value &b, const char *op,
                        int &out) {
  if (!wantDefined(a) || !wantDefined(b))
    return false;
  if (a.isNumber() && b.isNumber()) {
    if (a.isInteger() && b.isInteger())
      out = a.integer() < b.integer() ? -1 : a.integer() > b.integer();
    else
      out = a.real() < b.real() ? -1 : a.real() > b.real();
    return true;
  }
  if (a.isString() && b.isString()) {
    // The order of UTF-8's bytes is that of code points.
    int sign = a.text().compare(b.text());
    out = sign < 0 ? -1 : sign > 0;
    return step(std::min(a.text().size(), b.text().size()) / 64);
  }
  if (a.kind() == b.kind() && (a.is(Kind::List) || a.is(Kind::Tuple))) {
    const std::vector<Value> &x = a.list().items, &y = b.list().items;
    if (depth >= mostLevels)
      return fail("lists that are nested too deeply to compare");
    for (size_t i = 0; i < x.size() && i < y.size(); ++i) {
      if (!step())
        return false;
      if (equal(x[i], y[i]))
        continue;
      ++depth;
      bool good = order(x[i], y[i], op, out);
      --depth;
      return good;
    }
    out = x.size() < y.size() ? -1 : x.size() > y.size();
    return true;
  }
  return fail(std::string("'") + op + "' not supported between instances of '" +
              a.typeName() + "' and '" + b.typeName() + "'");
}

bool Interpreter::contains(const Value &container, const Value &item,
                           bool &out) {
  out = false;
  switch (container.kind()) {
  case Kind::Undefined:
    return true;
  case Kind::String: {
    if (!item.isString())
      return (!item.isUndefined() || wantDefined(item)) &&
             fail(std::string("'in <string>' requires string as left operand, "
                              "not ") +
                  item.typeName());
    out = container.text().find(item.text()) != std::string_view::npos;
    return step(container.text().size() / 16);
  }
  case Kind::Dict:
    if (!hashable(item))
      return false;
    out = dictFind(container, item) != nullptr;
    return true;
  default: {
    std::vector<Value> items;
    if (!container.hasItems() && !container.is(Kind::Range))
      return fail(std::string("argument of type '") + container.typeName() +
                  "' is not iterable");
    if (!itemsOf(container, items))
      return false;
    for (const Value &value : items)
      if (equal(value, item)) {
        out = true;
        break;
      }
    return step(items.size());
  }
  }
}

bool Interpreter::compare(CompareOp op, const Value &a, const Value &b,
                          bool &out) {
  int sign;
  bool isNan = (a.is(Kind::Float) && std::isnan(a.real())) ||
               (b.is(Kind::Float) && std::isnan(b.real()));
  switch (op) {
  case CompareOp::Equal:
  case CompareOp::NotEqual:
    out = equal(a, b) == (op == CompareOp::Equal);
    return step(a.isString() ? a.text().size() / 64 : 1);
  case CompareOp::In:
  case CompareOp::NotIn:
    if (!contains(b, a, out))
      return false;
    out = out == (op == CompareOp::In);
    return true;
  case CompareOp::Less:
    if (!order(a, b, "<", sign))
      return false;
    out = sign < 0 && !isNan;
    return true;
  case CompareOp::LessEqual:
    if (!order(a, b, "<=", sign))
      return false;
    out = sign <= 0 && !isNan;
    return true;
  case CompareOp::Greater:
    if (!order(a, b, ">", sign))
      return false;
    out = sign > 0 && !isNan;
    return true;
  case CompareOp::GreaterEqual:
    if (!order(a, b, ">=", sign))
      return false;
    out = sign >= 0 && !isNan;
    return true;
  }
  return false;
}

//===----------------------------------------------------------------------===//
// Members
//===----------------------------------------------------------------------===//

static std::string ownerName(const Value &object) {
  if (object.isNone())
    return "None";
  return object.typeName();
}

bool Interpreter::getAttribute(const Value &object, std::string_view name,
                               Value &out) {
  if (!wantDefined(object))
    return false;
  bool changesIt = false;
  if (!name.empty() && name[0] == '_') {
    if (object.isDict())
      if (const Value *found = dictFind(object, name)) {
        out = *found;
        return true;
      }
    out = newUndefined("access to attribute '" + std::string(name) + "' of '" +
                       object.typeName() + "' object is unsafe.");
    return step(0);
  }
  if (hasMethod(object, name, changesIt)) {
    out = changesIt ? newUndefined("access to attribute '" + std::string(name) +
                                   "' of '" + object.typeName() +
                                   "' object is unsafe.")
                    : newMethod(object, name);
    return step(0);
  }
  if (object.isDict() || object.is(Kind::Namespace)) {
    if (const Value *found = dictFind(object, name)) {
      out = *found;
      return true;
    }
  }
  if (loopMember(object, name, out))
    return step(0);
  out = newUndefined(name, ownerName(object));
  return step(0);
}

bool Interpreter::getItem(const Value &object, const Value &index, Value &out) {
  if (!wantDefined(object))
    return false;
  if (object.isDict()) {
    if (index.isUndefined() || index.is(Kind::List) || index.isDict()) {
      // A value that cannot be a key is not in the dict.
      out = newUndefined("dict object has no such element");
      return step(0);
    }
    if (const Value *found = dictFind(object, index)) {
      out = *found;
      return true;
    }
  } else if (index.isInteger() &&
             (object.isString() || object.is(Kind::List) ||
              object.is(Kind::Tuple) || object.is(Kind::Range))) {
    int64_t size, at = index.integer();
    if (!lengthOf(object, size))
      return false;
    at += at < 0 ? size : 0;
    if (at >= 0 && at < size) {
      if (object.isString()) {
        std::string_view text = object.text();
        size_t begin = characterOffset(text, at);
        size_t end = begin + characterOffset(text.substr(begin), 1);
        out = newString(std::string(text.substr(begin, end - begin)));
        return step(text.size() / 16);
      }
      if (object.is(Kind::Range)) {
        const auto &range = object.as<RangeObject>();
        out = Value::integer(range.start + at * range.step);
        return true;
      }
      out = object.list().items[static_cast<size_t>(at)];
      return true;
    }
  }
  if (index.isString()) {
    if (!object.isDict())
      return getAttribute(object, index.text(), out);
    // obj['items'] is the method if there is no such key.
    bool changesIt = false;
    if (hasMethod(object, index.text(), changesIt))
      return getAttribute(object, index.text(), out);
    out = newUndefined(index.text(), ownerName(object));
    return step(0);
  }
  Builder text(*this);
  text.add(ownerName(object)).add(" object has no element ");
  if (!appendRepr(text, index))
    return false;
  out = newUndefined(std::move(text.out));
  return step(0);
}

bool Interpreter::slice(const Value &object, const Value parts[3], Value &out) {
  if (!wantDefined(object))
    return false;
  bool isText = object.isString();
  if (!isText && !object.is(Kind::List) && !object.is(Kind::Tuple) &&
      !object.is(Kind::Range)) {
    out =
        newUndefined(std::string(object.typeName()) + " object has no slices");
    return step(0);
  }
  for (int i = 0; i < 3; ++i)
    if (!parts[i].isNone() && !parts[i].isInteger())
      return (!parts[i].isUndefined() || wantDefined(parts[i])) &&
             fail("slice indices must be integers or None");
  int64_t step_ = parts[2].isNone() ? 1 : parts[2].integer();
  if (step_ == 0)
    return fail("slice step cannot be zero");
  int64_t size;
  if (!lengthOf(object, size))
    return false;
  int64_t low = step_ > 0 ? 0 : -1, high = step_ > 0 ? size : size - 1;
  auto clamp = [&](const Value &part, int64_t none) {
    if (part.isNone())
      return none;
    int64_t at = part.integer();
    if (at < 0)
      at = at < -size ? low : at + size;
    return std::max(low, std::min(at, high));
  };
  int64_t start = clamp(parts[0], step_ > 0 ? 0 : size - 1);
  int64_t stop = clamp(parts[1], step_ > 0 ? size : -1);
  if (isText && step_ == 1) {
    std::string_view text = object.text();
    size_t begin = characterOffset(text, start);
    size_t length =
        start < stop ? characterOffset(text.substr(begin), stop - start) : 0;
    out = newString(std::string(text.substr(begin, length)));
    return step(text.size() / 16);
  }
  std::vector<Value> items;
  if (!itemsOf(object, items))
    return false;
  Value list = newList(object.is(Kind::Tuple) ? Kind::Tuple : Kind::List);
  Builder text(*this);
  for (int64_t at = start; step_ > 0 ? at < stop : at > stop;) {
    const Value &item = items[static_cast<size_t>(at)];
    if (isText)
      text.add(item.text());
    else if (!append(list, item))
      return false;
    if (__builtin_add_overflow(at, step_, &at))
      break;
  }
  out = isText ? text.take() : list;
  return step(0);
}

bool Interpreter::lengthOf(const Value &value, int64_t &out) {
  switch (value.kind()) {
  case Kind::Undefined:
    out = 0;
    return true;
  case Kind::String:
    out = countCharacters(value.text());
    return step(value.text().size() / 16);
  case Kind::List:
  case Kind::Tuple:
  case Kind::View:
    out = static_cast<int64_t>(value.list().items.size());
    return true;
  case Kind::Dict:
    out = static_cast<int64_t>(value.dict().keys.size());
    return true;
  case Kind::Range:
    out = value.as<RangeObject>().size();
    return true;
  case Kind::Loop:
    out = static_cast<int64_t>(value.as<LoopObject>().items.size());
    return true;
  default:
    return fail(std::string("object of type '") + value.typeName() +
                "' has no len()");
  }
}

bool Interpreter::itemsOf(const Value &value, std::vector<Value> &out) {
  switch (value.kind()) {
  case Kind::Undefined:
    return true;
  case Kind::String: {
    std::string_view text = value.text();
    while (!text.empty()) {
      size_t n = characterOffset(text, 1);
      out.push_back(newString(std::string(text.substr(0, n))));
      if (!step())
        return false;
      text.remove_prefix(n);
    }
    return true;
  }
  case Kind::List:
  case Kind::Tuple:
  case Kind::View:
    out = value.list().items;
    break;
  case Kind::Generator:
    if (!value.list().spent)
      out = std::move(value.list().items);
    value.list().spent = true;
    value.list().items.clear();
    break;
  case Kind::Dict:
    out = value.dict().keys;
    break;
  case Kind::Range: {
    const auto &range = value.as<RangeObject>();
    int64_t size = range.size();
    for (int64_t i = 0; i < size; ++i)
      out.push_back(Value::integer(range.start + i * range.step));
    break;
  }
  default:
    return fail(std::string("'") + value.typeName() +
                "' object is not iterable");
  }
  return charge(out.size() * sizeof(Value)) && step(out.size() / 4);
}

} // namespace attune::runtime::jinja

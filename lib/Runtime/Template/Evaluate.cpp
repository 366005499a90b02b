//===- Evaluate.cpp - Expressions -----------------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Interpreter.h"

namespace attune::runtime::jinja {

bool Interpreter::evaluate(const Node &node, Scope *scope, Value &out) {
  if (depth >= mostLevels) {
    place(node);
    return fail("nested deeper than " + std::to_string(mostLevels) +
                " levels: does a macro call itself without end?");
  }
  ++depth;
  bool good = step() && evaluateNode(node, scope, out);
  --depth;
  if (!good)
    place(node);
  return good;
}

bool Interpreter::evaluateNode(const Node &node, Scope *scope, Value &out) {
  switch (node.kind) {
  case NodeKind::None:
    out = Value();
    return true;
  case NodeKind::Bool:
    out = Value::boolean(node.flag);
    return true;
  case NodeKind::Int:
    out = Value::integer(node.integer);
    return true;
  case NodeKind::Float:
    out = Value::real(node.real);
    return true;
  case NodeKind::String:
    out = newString(node.text);
    return step(0);
  case NodeKind::Name:
    return evaluateName(node, scope, out);
  case NodeKind::List:
  case NodeKind::Tuple:
    return evaluateList(node, scope, out);
  case NodeKind::Dict:
    return evaluateDict(node, scope, out);
  case NodeKind::Conditional:
    return evaluateConditional(node, scope, out);
  case NodeKind::Or:
  case NodeKind::And:
    if (!evaluate(*node.operands[0], scope, out))
      return false;
    if (truth(out) == (node.kind == NodeKind::Or))
      return true;
    return evaluate(*node.operands[1], scope, out);
  case NodeKind::Not:
  case NodeKind::Neg:
  case NodeKind::Pos:
    return evaluateUnary(node, scope, out);
  case NodeKind::Compare:
    return evaluateCompare(node, scope, out);
  case NodeKind::Add:
  case NodeKind::Sub:
  case NodeKind::Mul:
  case NodeKind::Div:
  case NodeKind::FloorDiv:
  case NodeKind::Mod:
  case NodeKind::Pow:
    return evaluateBinary(node, scope, out);
  case NodeKind::Concat:
    return evaluateConcat(node, scope, out);
  case NodeKind::Attribute: {
    Value object;
    return evaluate(*node.operands[0], scope, object) &&
           getAttribute(object, node.text, out);
  }
  case NodeKind::Item:
    return evaluateItem(node, scope, out);
  case NodeKind::Call:
    return evaluateCall(node, scope, out);
  case NodeKind::Filter:
    return evaluateFilter(node, nullptr, scope, out);
  case NodeKind::Test:
    return evaluateTest(node, scope, out);
  case NodeKind::Slice:
    return fail("a slice that selects nothing");
  default:
    return fail("not an expression");
  }
}

bool Interpreter::evaluateName(const Node &node, Scope *scope, Value &out) {
  for (Scope *at = scope; at; at = at->parent)
    if (const Value *found = at->find(node.text)) {
      out = *found;
      return true;
    }
  out = newUndefined(node.text, "");
  return step(0);
}

bool Interpreter::evaluateList(const Node &node, Scope *scope, Value &out) {
  Value list = newList(node.kind == NodeKind::List ? Kind::List : Kind::Tuple);
  for (const NodePtr &operand : node.operands) {
    Value item;
    if (!evaluate(*operand, scope, item) || !append(list, item))
      return false;
  }
  out = list;
  return true;
}

bool Interpreter::evaluateDict(const Node &node, Scope *scope, Value &out) {
  Value dict = newDict();
  for (size_t i = 0; i + 1 < node.operands.size(); i += 2) {
    Value key, value;
    if (!evaluate(*node.operands[i], scope, key) ||
        !evaluate(*node.operands[i + 1], scope, value) ||
        !dictSet(dict, key, value))
      return false;
  }
  out = dict;
  return true;
}

bool Interpreter::evaluateConditional(const Node &node, Scope *scope,
                                      Value &out) {
  Value test;
  if (!evaluate(*node.operands[0], scope, test))
    return false;
  if (truth(test))
    return evaluate(*node.operands[1], scope, out);
  if (node.operands[2])
    return evaluate(*node.operands[2], scope, out);
  out = newUndefined("the inline if-expression evaluated to false and no else "
                     "section was defined");
  return step(0);
}

bool Interpreter::evaluateUnary(const Node &node, Scope *scope, Value &out) {
  Value operand;
  if (!evaluate(*node.operands[0], scope, operand))
    return false;
  if (node.kind == NodeKind::Not) {
    out = Value::boolean(!truth(operand));
    return true;
  }
  bool negative = node.kind == NodeKind::Neg;
  if (!wantDefined(operand))
    return false;
  if (!operand.isNumber())
    return fail(std::string("bad operand type for unary ") +
                (negative ? "-" : "+") + ": '" + operand.typeName() + "'");
  if (operand.is(Kind::Float)) {
    out = Value::real(negative ? -operand.real() : operand.real());
    return true;
  }
  int64_t value = operand.integer();
  if (negative && __builtin_sub_overflow(int64_t(0), value, &value))
    return fail("a whole number beyond 64 bits");
  out = Value::integer(value);
  return true;
}

bool Interpreter::evaluateBinary(const Node &node, Scope *scope, Value &out) {
  Value a, b;
  return evaluate(*node.operands[0], scope, a) &&
         evaluate(*node.operands[1], scope, b) &&
         arithmetic(node.kind, a, b, out);
}

/// a < b < c compares neighbours; what comes after a false one is not looked
/// at.
bool Interpreter::evaluateCompare(const Node &node, Scope *scope, Value &out) {
  Value left;
  if (!evaluate(*node.operands[0], scope, left))
    return false;
  bool result = true;
  for (size_t i = 0; i < node.operators.size() && result; ++i) {
    Value right;
    if (!evaluate(*node.operands[i + 1], scope, right) ||
        !compare(node.operators[i], left, right, result))
      return false;
    left = right;
  }
  out = Value::boolean(result);
  return true;
}

bool Interpreter::evaluateConcat(const Node &node, Scope *scope, Value &out) {
  Builder text(*this);
  for (const NodePtr &operand : node.operands) {
    Value part;
    if (!evaluate(*operand, scope, part) || !appendText(text, part))
      return false;
  }
  out = text.take();
  return step(0);
}

bool Interpreter::evaluateItem(const Node &node, Scope *scope, Value &out) {
  Value object;
  if (!evaluate(*node.operands[0], scope, object))
    return false;
  const Node &index = *node.operands[1];
  if (index.kind == NodeKind::Slice) {
    Value parts[3];
    for (int i = 0; i < 3; ++i)
      if (index.operands[i] && !evaluate(*index.operands[i], scope, parts[i]))
        return false;
    return slice(object, parts, out);
  }
  Value value;
  return evaluate(index, scope, value) && getItem(object, value, out);
}

bool Interpreter::evaluateArguments(const Node &node, Scope *scope,
                                    Arguments &args) {
  for (size_t i = 1; i < node.operands.size(); ++i) {
    args.positional.emplace_back();
    if (!evaluate(*node.operands[i], scope, args.positional.back()))
      return false;
  }
  for (const NamedNode &named : node.named) {
    args.named.emplace_back(named.name, Value());
    if (!evaluate(*named.value, scope, args.named.back().second))
      return false;
  }
  if (node.spread) {
    Value list;
    std::vector<Value> items;
    if (!evaluate(*node.spread, scope, list) || !itemsOf(list, items) ||
        !charge(items.size() * sizeof(Value)))
      return false;
    args.positional.insert(args.positional.end(), items.begin(), items.end());
  }
  if (node.spreadNamed) {
    Value dict;
    if (!evaluate(*node.spreadNamed, scope, dict))
      return false;
    if (!dict.isDict())
      return fail(std::string("argument after ** must be a mapping, not ") +
                  dict.typeName());
    for (size_t i = 0; i < dict.dict().keys.size(); ++i) {
      if (!dict.dict().keys[i].isString())
        return fail("keywords must be strings");
      args.named.emplace_back(dict.dict().keys[i].text(),
                              dict.dict().values[i]);
    }
    return charge(dict.dict().keys.size() * 32);
  }
  return true;
}

bool Interpreter::evaluateCall(const Node &node, Scope *scope, Value &out) {
  Value callee;
  Arguments args;
  return evaluate(*node.operands[0], scope, callee) &&
         evaluateArguments(node, scope, args) && call(callee, args, out);
}

/// `input` is what a block holds; it goes into the innermost filter of a
/// chain.
bool Interpreter::evaluateFilter(const Node &node, const Value *input,
                                 Scope *scope, Value &out) {
  Value value;
  Arguments args;
  const Node *inner = node.operands[0].get();
  if (!inner && input)
    value = *input;
  else if (inner && input && inner->kind == NodeKind::Filter) {
    if (!evaluateFilter(*inner, input, scope, value))
      return false;
  } else if (!inner || !evaluate(*inner, scope, value)) {
    return false;
  }
  if (evaluateArguments(node, scope, args) &&
      applyFilter(node.text, value, args, out))
    return true;
  place(node);
  return false;
}

bool Interpreter::evaluateTest(const Node &node, Scope *scope, Value &out) {
  Value value;
  Arguments args;
  bool result;
  if (!evaluate(*node.operands[0], scope, value) ||
      !evaluateArguments(node, scope, args) ||
      !applyTest(node.text, value, args, result))
    return false;
  out = Value::boolean(result);
  return true;
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

bool Interpreter::call(const Value &callee, const Arguments &args, Value &out) {
  switch (callee.kind()) {
  case Kind::Undefined:
    return fail(callee.as<UndefinedObject>().message());
  case Kind::Macro: {
    if (depth >= mostLevels - 10)
      return fail("a macro that calls itself without end");
    return callMacro(callee.as<MacroObject>(), args, out);
  }
  case Kind::Loop:
    return callLoop(callee, args, out);
  case Kind::Method: {
    auto &method = callee.as<MethodObject>();
    return method.self.isNone()
               ? callGlobal(method.name, args, out)
               : callMethod(method.self, method.name, args, out);
  }
  case Kind::Joiner: {
    auto &joiner = callee.as<JoinerObject>();
    out = joiner.used ? joiner.separator : newString("");
    joiner.used = true;
    return step(0);
  }
  default:
    return fail(std::string("'") + callee.typeName() +
                "' object is not callable");
  }
}

bool Interpreter::bind(std::string_view what, const Arguments &args,
                       std::initializer_list<std::string_view> names,
                       size_t required, Value *values, bool *given) {
  std::string name(what);
  for (size_t i = 0; i < names.size(); ++i)
    given[i] = false;
  if (args.positional.size() > names.size())
    return fail(name + " takes at most " + std::to_string(names.size()) +
                " argument(s), but is given " +
                std::to_string(args.positional.size()));
  for (size_t i = 0; i < args.positional.size(); ++i) {
    values[i] = args.positional[i];
    given[i] = true;
  }
  for (const auto &[key, value] : args.named) {
    size_t i = 0;
    while (i < names.size() && names.begin()[i] != key)
      ++i;
    if (i == names.size())
      return fail(name + " has no argument '" + std::string(key) + "'");
    if (given[i])
      return fail(name + " got multiple values for argument '" +
                  std::string(key) + "'");
    values[i] = value;
    given[i] = true;
  }
  for (size_t i = 0; i < required; ++i)
    if (!given[i])
      return fail(name + " needs the argument '" +
                  std::string(names.begin()[i]) + "'");
  return true;
}

bool Interpreter::wantText(const Value &value, std::string_view what,
                           std::string_view &out) {
  if (!value.isString())
    return (!value.isUndefined() || wantDefined(value)) &&
           fail(std::string(what) + " takes a string, not " + value.typeName());
  out = value.text();
  return true;
}

bool Interpreter::wantInteger(const Value &value, std::string_view what,
                              int64_t &out) {
  if (!value.isInteger())
    return (!value.isUndefined() || wantDefined(value)) &&
           fail(std::string(what) + " takes a whole number, not " +
                value.typeName());
  out = value.integer();
  return true;
}

} // namespace attune::runtime::jinja

//===- Tests.cpp - What may stand behind "is" -----------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Parser.h"
#include "Text.h"

#include <algorithm>
#include <iterator>

namespace attune::runtime::jinja {

static constexpr std::string_view testNames[] = {
    "!=",          "<",         "<=",      "==",          ">",        ">=",
    "boolean",     "callable",  "defined", "divisibleby", "eq",       "equalto",
    "escaped",     "even",      "false",   "filter",      "float",    "ge",
    "greaterthan", "gt",        "in",      "integer",     "iterable", "le",
    "lessthan",    "lower",     "lt",      "mapping",     "ne",       "none",
    "number",      "odd",       "sameas",  "sequence",    "string",   "test",
    "true",        "undefined", "upper"};

bool isTest(std::string_view name) {
  return std::find(std::begin(testNames), std::end(testNames), name) !=
         std::end(testNames);
}

static bool isIterable(const Value &value) {
  return value.isUndefined() || value.isString() || value.hasItems() ||
         value.is(Kind::Range) || value.isDict() || value.is(Kind::Loop);
}

/// What has a length and members by index, as Jinja asks.
static bool isSequence(const Value &value) {
  return value.isUndefined() || value.isString() || value.is(Kind::List) ||
         value.is(Kind::Tuple) || value.is(Kind::Range) || value.isDict();
}

static bool isCallable(const Value &value) {
  return value.is(Kind::Macro) || value.is(Kind::Method) ||
         value.is(Kind::Loop) || value.is(Kind::Joiner) || value.isUndefined();
}

/// The comparison that a test's name stands for.
static bool findComparison(std::string_view name, CompareOp &op) {
  static const struct {
    std::string_view name;
    CompareOp op;
  } comparisons[] = {
      {"==", CompareOp::Equal},
      {"eq", CompareOp::Equal},
      {"equalto", CompareOp::Equal},
      {"!=", CompareOp::NotEqual},
      {"ne", CompareOp::NotEqual},
      {"<", CompareOp::Less},
      {"lt", CompareOp::Less},
      {"lessthan", CompareOp::Less},
      {"<=", CompareOp::LessEqual},
      {"le", CompareOp::LessEqual},
      {">", CompareOp::Greater},
      {"gt", CompareOp::Greater},
      {"greaterthan", CompareOp::Greater},
      {">=", CompareOp::GreaterEqual},
      {"ge", CompareOp::GreaterEqual},
      {"in", CompareOp::In},
  };
  for (const auto &comparison : comparisons)
    if (comparison.name == name) {
      op = comparison.op;
      return true;
    }
  return false;
}

bool Interpreter::applyTest(std::string_view name, const Value &input,
                            const Arguments &args, bool &out) {
  std::string what = "the test '" + std::string(name) + "'";
  CompareOp op = CompareOp::Equal;
  Value argument;
  bool given;
  bool takesOne =
      findComparison(name, op) || name == "divisibleby" || name == "sameas";
  if (takesOne) {
    if (!bind(what, args, {"other"}, 1, &argument, &given))
      return false;
    if (name == "divisibleby") {
      Value rest;
      if (!arithmetic(NodeKind::Mod, input, argument, rest))
        return false;
      out = equal(rest, Value::integer(0));
      return true;
    }
    if (name == "sameas") {
      out = input.kind() == argument.kind() &&
            (input.isNumber() || input.isNone() || input.isString()
                 ? equal(input, argument)
                 : input.object() == argument.object());
      return true;
    }
    return compare(op, input, argument, out);
  }
  if (!args.positional.empty() || !args.named.empty())
    return fail(what + " takes no arguments");
  if (name == "defined" || name == "undefined")
    out = input.isUndefined() == (name == "undefined");
  else if (name == "none")
    out = input.isNone();
  else if (name == "string")
    out = input.isString();
  else if (name == "mapping")
    out = input.isDict();
  else if (name == "boolean")
    out = input.is(Kind::Bool);
  else if (name == "true")
    out = input.is(Kind::Bool) && input.boolean();
  else if (name == "false")
    out = input.is(Kind::Bool) && !input.boolean();
  else if (name == "integer")
    out = input.is(Kind::Int);
  else if (name == "float")
    out = input.is(Kind::Float);
  else if (name == "number")
    out = input.isNumber();
  else if (name == "iterable")
    out = isIterable(input);
  else if (name == "sequence")
    out = isSequence(input);
  else if (name == "callable")
    out = isCallable(input);
  else if (name == "escaped")
    out = input.isMarkup();
  else if (name == "filter")
    out = input.isString() && isFilter(input.text());
  else if (name == "test")
    out = input.isString() && isTest(input.text());
  else if (name == "even" || name == "odd") {
    Value rest;
    if (!arithmetic(NodeKind::Mod, input, Value::integer(2), rest))
      return false;
    out = equal(rest, Value::integer(name == "odd"));
  } else {
    // lower, upper
    Value text;
    if (!toText(input, text))
      return false;
    Value result;
    if (!callMethod(text, name == "lower" ? "islower" : "isupper", Arguments(),
                    result))
      return false;
    out = truth(result);
  }
  return true;
}

} // namespace attune::runtime::jinja

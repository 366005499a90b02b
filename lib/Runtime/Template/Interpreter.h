//===- Interpreter.h - Running a template -----------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_TEMPLATE_INTERPRETER_H
#define ATTUNE_LIB_RUNTIME_TEMPLATE_INTERPRETER_H

#include "Ast.h"
#include "Value.h"

#include "attune/Runtime/ChatTemplate.h"

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace attune::runtime::jinja {

struct JsonStyle;

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string_view, Value>> named;
};

/// Levels of expressions, bodies and macros at once; a level takes some
/// kilobytes of stack at most.
inline constexpr unsigned mostLevels = 1000;

/// Everything fails by returning false with the problem filled in.
class Interpreter {
public:
  Interpreter(const TemplateLimits &limits, TemplateProblem &problem)
      : limits(limits), problem(problem) {}

  bool run(const Node &root, const JsonValue &variables, std::string &out);

  /// A text that grows within the limits: once one is exceeded it stays as it
  /// is, and the next step fails.
  class Builder {
  public:
    explicit Builder(Interpreter &in) : in(in) {}
    Builder &add(std::string_view text) {
      if (in.charge(text.size()))
        out.append(text.data(), text.size());
      return *this;
    }
    Value take() { return in.newString(std::move(out), /*charged=*/true); }
    std::string out;

  private:
    Interpreter &in;
  };

  // Limits.
  bool fail(const std::string &message);
  bool step(uint64_t count = 1);
  /// Counts memory that a value takes.
  bool charge(uint64_t bytes);

  // Values.
  Value newString(std::string text, bool charged = false);
  Value newList(Kind kind = Kind::List);
  Value newDict();
  Value newUndefined(std::string_view name, std::string_view owner);
  Value newUndefined(std::string hint);
  Value newMethod(Value self, std::string_view name);
  bool append(const Value &list, Value item);
  bool dictSet(const Value &dict, Value key, Value value);
  /// The value of a key, or null.
  const Value *dictFind(const Value &dict, const Value &key);
  const Value *dictFind(const Value &dict, std::string_view key);
  bool fromJson(const JsonValue &json, Value &out);

  // As Python does it (PythonText.cpp).
  /// str(value), which need not be a new text.
  bool toText(const Value &value, Value &out);
  bool appendText(Builder &out, const Value &value);
  bool appendRepr(Builder &out, const Value &value, unsigned depth = 0);
  bool formatPercent(std::string_view format, const Value &values, Value &out);
  bool formatBraces(std::string_view format, const Arguments &args, Value &out);

  // Operators.cpp
  bool arithmetic(NodeKind kind, const Value &a, const Value &b, Value &out);
  /// Python's `==`, which looks no deeper than 64 levels.
  bool equal(const Value &a, const Value &b, unsigned level = 0);
  bool compare(CompareOp op, const Value &a, const Value &b, bool &out);
  /// -1, 0 or 1; fails if Python has no order between the two.
  bool order(const Value &a, const Value &b, const char *op, int &out);
  bool contains(const Value &container, const Value &item, bool &out);
  bool getAttribute(const Value &object, std::string_view name, Value &out);
  bool getItem(const Value &object, const Value &index, Value &out);
  bool slice(const Value &object, const Value parts[3], Value &out);
  bool lengthOf(const Value &value, int64_t &out);
  /// All items of something that can be gone through.
  bool itemsOf(const Value &value, std::vector<Value> &out);
  bool wantDefined(const Value &value);
  bool hashable(const Value &value);

  // Calls.
  bool call(const Value &callee, const Arguments &args, Value &out);
  bool callMethod(const Value &self, std::string_view name,
                  const Arguments &args, Value &out);
  bool callGlobal(std::string_view name, const Arguments &args, Value &out);
  bool applyFilter(std::string_view name, const Value &input,
                   const Arguments &args, Value &out);
  bool applyTest(std::string_view name, const Value &input,
                 const Arguments &args, bool &out);
  /// Puts arguments into the places of `names`, in order or by name. The first
  /// `required` must be there; `given[i]` says which are.
  bool bind(std::string_view what, const Arguments &args,
            std::initializer_list<std::string_view> names, size_t required,
            Value *values, bool *given);
  bool wantText(const Value &value, std::string_view what,
                std::string_view &out);
  bool wantInteger(const Value &value, std::string_view what, int64_t &out);

  bool toJson(Builder &out, const Value &value, const JsonStyle &style,
              unsigned depth);

  static bool hasMethod(const Value &value, std::string_view name,
                        bool &changesIt);

private:
  enum class Flow : uint8_t { Next, Break, Continue, Failed };

  Flow execute(const Nodes &body, Scope *scope, Builder &out);
  Flow executeNode(const Node &node, Scope *scope, Builder &out);
  bool executeOutput(const Node &node, Scope *scope, Builder &out);
  Flow executeIf(const Node &node, Scope *scope, Builder &out);
  bool executeFor(const Node &node, Scope *scope, Builder &out);
  bool runLoop(const Node &node, Scope *scope, const Value &iterable,
               int64_t depth, Builder &out);
  bool executeWith(const Node &node, Scope *scope, Builder &out);
  bool executeSetBlock(const Node &node, Scope *scope);
  bool executeFilterBlock(const Node &node, Scope *scope, Builder &out);
  bool executeCallBlock(const Node &node, Scope *scope, Builder &out);
  bool executeScope(const Nodes &body, Scope *scope, Builder &out);
  bool assign(const Node &target, const Value &value, Scope *scope,
              Scope *lookup);

  bool evaluate(const Node &node, Scope *scope, Value &out);
  bool evaluateNode(const Node &node, Scope *scope, Value &out);
  bool evaluateName(const Node &node, Scope *scope, Value &out);
  bool evaluateList(const Node &node, Scope *scope, Value &out);
  bool evaluateDict(const Node &node, Scope *scope, Value &out);
  bool evaluateBinary(const Node &node, Scope *scope, Value &out);
  bool evaluateUnary(const Node &node, Scope *scope, Value &out);
  bool evaluateCompare(const Node &node, Scope *scope, Value &out);
  bool evaluateConcat(const Node &node, Scope *scope, Value &out);
  bool evaluateItem(const Node &node, Scope *scope, Value &out);
  bool evaluateConditional(const Node &node, Scope *scope, Value &out);
  bool evaluateCall(const Node &node, Scope *scope, Value &out);
  bool evaluateFilter(const Node &node, const Value *input, Scope *scope,
                      Value &out);
  bool evaluateTest(const Node &node, Scope *scope, Value &out);
  bool evaluateArguments(const Node &node, Scope *scope, Arguments &args);
  bool callMacro(const MacroObject &macro, const Arguments &args, Value &out);
  bool callLoop(const Value &loop, const Arguments &args, Value &out);
  bool loopMember(const Value &value, std::string_view name, Value &out);
  bool callLoopMethod(const Value &self, std::string_view name,
                      const Arguments &args, Value &out);
  bool stringMethod(const Value &self, std::string_view name,
                    const Arguments &args, Value &out);
  bool dictMethod(const Value &self, std::string_view name,
                  const Arguments &args, Value &out);
  bool listMethod(const Value &self, std::string_view name,
                  const Arguments &args, Value &out);
  void place(const Node &node);

  const TemplateLimits &limits;
  TemplateProblem &problem;
  Heap heap;
  Scope *globals = nullptr;
  uint64_t steps = 0, memory = 0;
  unsigned depth = 0;
};

} // namespace attune::runtime::jinja

#endif // ATTUNE_LIB_RUNTIME_TEMPLATE_INTERPRETER_H

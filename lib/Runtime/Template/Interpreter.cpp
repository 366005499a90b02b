//===- Interpreter.cpp - Statements and the values they use ---------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Interpreter.h"

namespace attune::runtime::jinja {

//===----------------------------------------------------------------------===//
// Limits
//===----------------------------------------------------------------------===//

bool Interpreter::fail(const std::string &message) {
  if (problem.message.empty())
    problem.message = message;
  return false;
}

/// The place of a problem is that of the innermost node that has it.
void Interpreter::place(const Node &node) {
  if (problem.line)
    return;
  problem.line = node.line;
  problem.column = node.column;
}

bool Interpreter::step(uint64_t count) {
  steps += count;
  if (steps > limits.steps)
    return fail("the template takes more than " + std::to_string(limits.steps) +
                " steps");
  return problem.message.empty();
}

bool Interpreter::charge(uint64_t bytes) {
  memory += bytes;
  if (memory > limits.memory)
    return fail("the template needs more than " +
                std::to_string(limits.memory >> 20) + " MiB of memory");
  return step(bytes / 64);
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Value Interpreter::newString(std::string text, bool charged) {
  charge(sizeof(StringObject) + 16 + (charged ? 0 : text.size()));
  auto *object = heap.make<StringObject>();
  object->text = std::move(text);
  return Value(Kind::String, object);
}

Value Interpreter::newList(Kind kind) {
  charge(sizeof(ListObject) + 16);
  return Value(kind, heap.make<ListObject>());
}

Value Interpreter::newDict() {
  charge(sizeof(DictObject) + 16);
  return Value(Kind::Dict, heap.make<DictObject>());
}

Value Interpreter::newUndefined(std::string_view name, std::string_view owner) {
  charge(sizeof(UndefinedObject) + 16 + name.size());
  auto *object = heap.make<UndefinedObject>();
  object->name = name;
  object->owner = owner;
  return Value(Kind::Undefined, object);
}

Value Interpreter::newUndefined(std::string hint) {
  charge(sizeof(UndefinedObject) + 16 + hint.size());
  auto *object = heap.make<UndefinedObject>();
  object->hint = std::move(hint);
  return Value(Kind::Undefined, object);
}

Value Interpreter::newMethod(Value self, std::string_view name) {
  charge(sizeof(MethodObject) + 16);
  auto *object = heap.make<MethodObject>();
  object->self = self;
  object->name = name;
  return Value(Kind::Method, object);
}

bool Interpreter::append(const Value &list, Value item) {
  if (!charge(sizeof(Value) * 2))
    return false;
  list.list().items.push_back(item);
  return true;
}

const Value *Interpreter::dictFind(const Value &dict, const Value &key) {
  DictObject &object = dict.as<DictObject>();
  step(object.keys.size() / 8);
  for (size_t i = 0; i < object.keys.size(); ++i)
    if (equal(object.keys[i], key))
      return &object.values[i];
  return nullptr;
}

const Value *Interpreter::dictFind(const Value &dict, std::string_view key) {
  DictObject &object = dict.as<DictObject>();
  step(object.keys.size() / 8);
  for (size_t i = 0; i < object.keys.size(); ++i)
    if (object.keys[i].isString() && object.keys[i].text() == key)
      return &object.values[i];
  return nullptr;
}

bool Interpreter::dictSet(const Value &dict, Value key, Value value) {
  if (!hashable(key) || !charge(sizeof(Value) * 4))
    return false;
  if (const Value *known = dictFind(dict, key)) {
    *const_cast<Value *>(known) = value;
    return true;
  }
  dict.as<DictObject>().keys.push_back(key);
  dict.as<DictObject>().values.push_back(value);
  return true;
}

/// JSON has checked its own depth; keys are unique there.
bool Interpreter::fromJson(const JsonValue &json, Value &out) {
  switch (json.kind) {
  case JsonValue::Kind::Null:
    out = Value();
    return true;
  case JsonValue::Kind::Bool:
    out = Value::boolean(json.boolean);
    return true;
  case JsonValue::Kind::Int:
    out = Value::integer(json.integer);
    return true;
  case JsonValue::Kind::Real:
    out = Value::real(json.real);
    return true;
  case JsonValue::Kind::String:
    out = newString(json.string);
    return step();
  case JsonValue::Kind::Array:
    out = newList();
    for (const JsonValue &item : json.items) {
      Value value;
      if (!fromJson(item, value) || !append(out, value))
        return false;
    }
    return true;
  case JsonValue::Kind::Object:
    out = newDict();
    for (size_t i = 0; i < json.items.size(); ++i) {
      Value value;
      if (!fromJson(json.items[i], value) || !charge(sizeof(Value) * 4))
        return false;
      out.dict().keys.push_back(newString(json.keys[i]));
      out.dict().values.push_back(value);
    }
    return true;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

bool Interpreter::run(const Node &root, const JsonValue &variables,
                      std::string &out) {
  globals = heap.make<Scope>();
  static const std::string_view functions[] = {
      "range",        "dict",   "namespace", "raise_exception",
      "strftime_now", "cycler", "joiner"};
  for (std::string_view name : functions)
    globals->set(name, newMethod(Value(), name));
  for (size_t i = 0; i < variables.items.size(); ++i) {
    Value value;
    if (!fromJson(variables.items[i], value))
      return false;
    globals->set(variables.keys[i], value);
  }
  auto *scope = heap.make<Scope>();
  scope->parent = globals;
  Builder builder(*this);
  if (execute(root.body, scope, builder) == Flow::Failed || !step(0))
    return false;
  out = std::move(builder.out);
  return true;
}

Interpreter::Flow Interpreter::execute(const Nodes &body, Scope *scope,
                                       Builder &out) {
  for (const NodePtr &node : body) {
    Flow flow = executeNode(*node, scope, out);
    if (flow == Flow::Failed)
      place(*node);
    if (flow != Flow::Next)
      return flow;
  }
  return Flow::Next;
}

Interpreter::Flow Interpreter::executeNode(const Node &node, Scope *scope,
                                           Builder &out) {
  if (depth >= mostLevels) {
    fail("nested deeper than " + std::to_string(mostLevels) +
         " levels: does a macro call itself without end?");
    return Flow::Failed;
  }
  ++depth;
  Flow flow = Flow::Next;
  bool good = step();
  if (good) {
    switch (node.kind) {
    case NodeKind::Data:
      out.add(node.text);
      break;
    case NodeKind::Output:
      good = executeOutput(node, scope, out);
      break;
    case NodeKind::For:
      good = executeFor(node, scope, out);
      break;
    case NodeKind::If:
      flow = executeIf(node, scope, out);
      break;
    case NodeKind::Set: {
      Value value;
      good = evaluate(*node.operands[1], scope, value) &&
             assign(*node.operands[0], value, scope, scope);
      break;
    }
    case NodeKind::SetBlock:
      good = executeSetBlock(node, scope);
      break;
    case NodeKind::With:
      good = executeWith(node, scope, out);
      break;
    case NodeKind::Macro: {
      auto *macro = heap.make<MacroObject>();
      macro->node = &node;
      macro->scope = scope;
      good = charge(sizeof(MacroObject) + 16);
      scope->set(node.text, Value(Kind::Macro, macro));
      break;
    }
    case NodeKind::CallBlock:
      good = executeCallBlock(node, scope, out);
      break;
    case NodeKind::FilterBlock:
      good = executeFilterBlock(node, scope, out);
      break;
    case NodeKind::Scope:
      good = executeScope(node.body, scope, out);
      break;
    case NodeKind::Block:
      flow = execute(node.body, scope, out);
      break;
    case NodeKind::Break:
      flow = Flow::Break;
      break;
    case NodeKind::Continue:
      flow = Flow::Continue;
      break;
    default:
      good = fail("not a statement");
    }
  }
  if (good && out.out.size() > limits.output)
    good = fail("the template writes more than " +
                std::to_string(limits.output >> 20) + " MiB");
  --depth;
  return good ? flow : Flow::Failed;
}

bool Interpreter::executeOutput(const Node &node, Scope *scope, Builder &out) {
  for (const NodePtr &operand : node.operands) {
    Value value;
    if (!evaluate(*operand, scope, value) || !appendText(out, value))
      return false;
  }
  return true;
}

Interpreter::Flow Interpreter::executeIf(const Node &node, Scope *scope,
                                         Builder &out) {
  for (size_t i = 0; i < node.operands.size(); ++i) {
    Value test;
    if (!evaluate(*node.operands[i], scope, test))
      return Flow::Failed;
    if (truth(test))
      return execute(node.body[i]->body, scope, out);
  }
  return execute(node.orElse, scope, out);
}

bool Interpreter::executeScope(const Nodes &body, Scope *scope, Builder &out) {
  auto *inner = heap.make<Scope>();
  inner->parent = scope;
  return charge(sizeof(Scope) + 16) &&
         execute(body, inner, out) != Flow::Failed;
}

bool Interpreter::executeFor(const Node &node, Scope *scope, Builder &out) {
  Value iterable;
  return evaluate(*node.operands[1], scope, iterable) &&
         runLoop(node, scope, iterable, /*depth=*/0, out);
}

bool Interpreter::runLoop(const Node &node, Scope *scope, const Value &iterable,
                          int64_t loopDepth, Builder &out) {
  std::vector<Value> items;
  if (!itemsOf(iterable, items) || !charge(items.size() * sizeof(Value)))
    return false;
  auto *loop = heap.make<LoopObject>();
  loop->depth = loopDepth;
  loop->scope = scope;
  loop->node = node.flag ? &node : nullptr;
  if (const Node *test = node.operands[2].get()) {
    for (const Value &item : items) {
      auto *inner = heap.make<Scope>();
      inner->parent = scope;
      Value keep;
      if (!charge(sizeof(Scope) + 16) ||
          !assign(*node.operands[0], item, inner, inner) ||
          !evaluate(*test, inner, keep))
        return false;
      if (truth(keep))
        loop->items.push_back(item);
    }
  } else {
    loop->items = std::move(items);
  }
  for (size_t i = 0; i < loop->items.size(); ++i) {
    loop->index = static_cast<int64_t>(i);
    auto *inner = heap.make<Scope>();
    inner->parent = scope;
    inner->set("loop", Value(Kind::Loop, loop));
    if (!charge(sizeof(Scope) + 128) ||
        !assign(*node.operands[0], loop->items[i], inner, inner))
      return false;
    Flow flow = execute(node.body, inner, out);
    if (flow == Flow::Failed)
      return false;
    if (flow == Flow::Break)
      break;
  }
  return !loop->items.empty() || executeScope(node.orElse, scope, out);
}

/// `lookup` is where the namespace of an attribute is sought.
bool Interpreter::assign(const Node &target, const Value &value, Scope *scope,
                         Scope *lookup) {
  if (target.kind == NodeKind::Name) {
    scope->set(target.text, value);
    return charge(32);
  }
  if (target.kind == NodeKind::NamespaceRef) {
    Value space;
    Node name(NodeKind::Name, target.line, target.column);
    name.text = target.text;
    if (!evaluateName(name, lookup, space))
      return false;
    if (!space.is(Kind::Namespace)) {
      place(target);
      return fail("cannot assign attribute on non-namespace object '" +
                  target.text + "'");
    }
    return dictSet(space, newString(target.attribute), value);
  }
  std::vector<Value> items;
  if (!itemsOf(value, items))
    return false;
  size_t want = target.operands.size();
  if (items.size() != want) {
    place(target);
    return fail(items.size() > want ? "too many values to unpack (expected " +
                                          std::to_string(want) + ")"
                                    : "not enough values to unpack (expected " +
                                          std::to_string(want) + ", got " +
                                          std::to_string(items.size()) + ")");
  }
  for (size_t i = 0; i < want; ++i)
    if (!assign(*target.operands[i], items[i], scope, lookup))
      return false;
  return true;
}

/// Values see the scope outside, not each other.
bool Interpreter::executeWith(const Node &node, Scope *scope, Builder &out) {
  auto *inner = heap.make<Scope>();
  inner->parent = scope;
  for (size_t i = 0; i + 1 < node.operands.size(); i += 2) {
    Value value;
    if (!evaluate(*node.operands[i + 1], scope, value) ||
        !assign(*node.operands[i], value, inner, scope))
      return false;
  }
  return charge(sizeof(Scope) + 16) &&
         execute(node.body, inner, out) != Flow::Failed;
}

bool Interpreter::executeSetBlock(const Node &node, Scope *scope) {
  Builder text(*this);
  if (!executeScope(node.body, scope, text))
    return false;
  Value value = text.take();
  if (const Node *filters = node.operands[1].get())
    if (!evaluateFilter(*filters, &value, scope, value))
      return false;
  return assign(*node.operands[0], value, scope, scope);
}

bool Interpreter::executeFilterBlock(const Node &node, Scope *scope,
                                     Builder &out) {
  Builder text(*this);
  if (!executeScope(node.body, scope, text))
    return false;
  Value value = text.take();
  return evaluateFilter(*node.operands[0], &value, scope, value) &&
         appendText(out, value);
}

bool Interpreter::executeCallBlock(const Node &node, Scope *scope,
                                   Builder &out) {
  auto *caller = heap.make<MacroObject>();
  caller->node = &node;
  caller->scope = scope;
  const Node &call = *node.call;
  Value callee, result;
  Arguments args;
  if (!charge(sizeof(MacroObject) + 16) ||
      !evaluate(*call.operands[0], scope, callee) ||
      !evaluateArguments(call, scope, args))
    return false;
  args.named.emplace_back("caller", Value(Kind::Macro, caller));
  if (!this->call(callee, args, result)) {
    place(call);
    return false;
  }
  return appendText(out, result);
}

/// What runs in a macro sees where the macro was defined, not where it is
/// called.
bool Interpreter::callMacro(const MacroObject &macro, const Arguments &args,
                            Value &out) {
  const Node &node = *macro.node;
  auto *scope = heap.make<Scope>();
  scope->parent = macro.scope;
  if (!charge(sizeof(Scope) + 128))
    return false;
  std::string name = "macro '" + node.text + "'";
  Value rest = newList(Kind::Tuple), named = newDict();
  Value caller = newUndefined("No caller defined");
  for (size_t i = 0; i < args.positional.size(); ++i) {
    if (i < node.named.size())
      scope->set(node.named[i].name, args.positional[i]);
    else if (!append(rest, args.positional[i]))
      return false;
  }
  for (const auto &[key, value] : args.named) {
    bool known = false;
    for (const NamedNode &parameter : node.named)
      if (parameter.name == key) {
        if (scope->find(key))
          return fail(name + " got multiple values for argument '" +
                      std::string(key) + "'");
        scope->set(key, value);
        known = true;
      }
    if (!known && key == "caller" && (node.integer & usesCaller))
      caller = value;
    else if (!known && !dictSet(named, newString(std::string(key)), value))
      return false;
  }
  if (!(node.integer & usesVarargs) && !rest.list().items.empty())
    return fail(name + " takes not more than " +
                std::to_string(node.named.size()) + " argument(s)");
  if (!(node.integer & usesKwargs) && !named.dict().keys.empty())
    return fail(name + " takes no keyword argument '" +
                std::string(named.dict().keys[0].text()) + "'");
  scope->set("varargs", rest);
  scope->set("kwargs", named);
  scope->set("caller", caller);
  for (const NamedNode &parameter : node.named) {
    if (scope->find(parameter.name))
      continue;
    Value value;
    if (!parameter.value)
      value =
          newUndefined("parameter '" + parameter.name + "' was not provided");
    else if (!evaluate(*parameter.value, scope, value))
      return false;
    scope->set(parameter.name, value);
  }
  Builder text(*this);
  if (execute(node.body, scope, text) == Flow::Failed)
    return false;
  out = text.take();
  return step();
}

bool Interpreter::callLoop(const Value &value, const Arguments &args,
                           Value &out) {
  const auto &loop = value.as<LoopObject>();
  if (!loop.node)
    return fail("the loop must have the 'recursive' marker to be called "
                "recursively");
  if (args.positional.size() != 1 || !args.named.empty())
    return fail("a recursive loop is called with one iterable");
  Builder text(*this);
  if (!runLoop(*loop.node, loop.scope, args.positional[0], loop.depth + 1,
               text))
    return false;
  out = text.take();
  return true;
}

} // namespace attune::runtime::jinja

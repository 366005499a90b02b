//===- Ast.h - The syntax tree of a template --------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_TEMPLATE_AST_H
#define ATTUNE_LIB_RUNTIME_TEMPLATE_AST_H

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace attune::runtime::jinja {

struct Node;
using NodePtr = std::unique_ptr<Node>;
using Nodes = std::vector<NodePtr>;

enum class NodeKind : uint8_t {
  // Statements.
  Block,     ///< body
  Data,      ///< text
  Output,    ///< operands
  For,       ///< operands: target, iterable, test or null; body, orElse
  If,        ///< operands: a test per branch; body: a Block per branch; orElse
  Set,       ///< operands: target, value
  SetBlock,  ///< operands: target, filter chain or null; body
  With,      ///< operands: target, value, target, value ...; body
  Macro,     ///< text: name; operands: parameters; named: defaults; body
  CallBlock, ///< as Macro; call
  FilterBlock, ///< operands: filter chain; body
  Scope,       ///< body
  Break,
  Continue,
  // Expressions.
  None,
  Bool,         ///< flag
  Int,          ///< integer
  Float,        ///< real
  String,       ///< text
  Name,         ///< text
  NamespaceRef, ///< text: namespace, attribute
  List,
  Tuple,
  Dict,        ///< operands: key, value, key, value ...
  Conditional, ///< operands: test, then, else or null
  Or,
  And,
  Not,
  Compare, ///< operands; operators
  Add,
  Sub,
  Mul,
  Div,
  FloorDiv,
  Mod,
  Pow,
  Neg,
  Pos,
  Concat,
  Attribute, ///< operands: object; text
  Item,      ///< operands: object, index
  Slice,     ///< operands: start, stop, step, any of them null
  Call,      ///< operands: callee, arguments ...; named; spread
  Filter,    ///< text; operands: input or null, arguments ...; named; spread
  Test,      ///< as Filter
};

enum class CompareOp : uint8_t {
  Equal,
  NotEqual,
  Less,
  LessEqual,
  Greater,
  GreaterEqual,
  In,
  NotIn
};

/// What a macro's body reads, in Node::integer: it takes the rest of the
/// arguments only then.
enum MacroUse : int64_t { usesVarargs = 1, usesKwargs = 2, usesCaller = 4 };

struct NamedNode {
  std::string name;
  NodePtr value; ///< null: a parameter without default
};

struct Node {
  NodeKind kind;
  bool flag = false; ///< Bool's value; For: recursive
  uint16_t depth = 1;
  unsigned line = 0, column = 0;
  int64_t integer = 0;
  double real = 0;
  std::string text, attribute;
  Nodes operands;
  Nodes body, orElse;
  std::vector<NamedNode> named; ///< keyword arguments, or parameters
  NodePtr spread, spreadNamed;  ///< of calls: *a and **b
  NodePtr call;
  std::vector<CompareOp> operators;

  Node(NodeKind kind, unsigned line, unsigned column)
      : kind(kind), line(line), column(column) {}
};

} // namespace attune::runtime::jinja

#endif // ATTUNE_LIB_RUNTIME_TEMPLATE_AST_H

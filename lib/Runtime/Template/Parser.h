//===- Parser.h - From tokens to a syntax tree ------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_TEMPLATE_PARSER_H
#define ATTUNE_LIB_RUNTIME_TEMPLATE_PARSER_H

#include "Ast.h"
#include "Lexer.h"

#include <initializer_list>
#include <string_view>
#include <vector>

namespace attune::runtime::jinja {

/// Reads the grammar of Jinja 3.1 by recursive descent. Every function returns
/// null, or false, once a problem was found.
class Parser {
public:
  Parser(std::string_view source, TemplateProblem &problem)
      : source(source), problem(problem) {}

  /// The whole template, a Block.
  NodePtr parse();

private:
  using Words = std::initializer_list<std::string_view>;

  // Tokens.
  const Token &current() const { return tokens[at]; }
  const Token &next() const {
    return tokens[at + 1 < tokens.size() ? at + 1 : at];
  }
  void advance() {
    if (at + 1 < tokens.size())
      ++at;
  }
  bool skipOperator(std::string_view op);
  bool skipName(std::string_view name);
  bool expectOperator(std::string_view op);
  bool expectName(std::string_view name);
  std::string describe(const Token &token) const;
  bool fail(const Token &token, const std::string &message);
  NodePtr failNode(const Token &token, const std::string &message);
  NodePtr make(NodeKind kind, const Token &token) const;
  /// Sets the node's depth from its children's; null if it is too deep.
  NodePtr finish(NodePtr node);
  /// Bounds the recursion of the parser itself.
  struct Nesting {
    explicit Nesting(Parser &parser) : parser(parser) { ++parser.nesting; }
    ~Nesting() { --parser.nesting; }
    Parser &parser;
  };
  bool checkNesting();

  // Statements (ParseStatements.cpp).
  bool parseBody(Words ends, Nodes &body);
  bool parseUntil(Words ends, Nodes &body);
  bool endTag();
  NodePtr parseStatement();
  NodePtr parseFor();
  NodePtr parseIf();
  NodePtr parseSet();
  NodePtr parseWith();
  NodePtr parseMacro();
  NodePtr parseCallBlock();
  NodePtr parseFilterBlock();
  NodePtr parseScope(std::string_view end);
  NodePtr parseBlock();
  NodePtr parsePrint();
  NodePtr parseLoopControl();
  NodePtr parseUnknown();
  bool parseSignature(Node &node);
  bool parseMacroBody(Node &node, std::string_view end);
  NodePtr parseTarget(bool withNamespace, std::string_view end);
  bool checkTarget(const Node &node, const Token &token);

  // Expressions (ParseExpressions.cpp).
  NodePtr parseTuple(bool withConditional = true, std::string_view end = {},
                     bool inParentheses = false);
  bool isTupleEnd(std::string_view end) const;
  NodePtr parseExpression(bool withConditional = true);
  NodePtr parseConditional();
  NodePtr parseOr();
  NodePtr parseAnd();
  NodePtr parseNot();
  NodePtr parseCompare();
  NodePtr parseSum();
  NodePtr parseConcat();
  NodePtr parseProduct();
  NodePtr parsePower();
  NodePtr parseUnary(bool withFilter = true);
  NodePtr parsePrimary();
  NodePtr parseList();
  NodePtr parseDict();
  NodePtr parsePostfix(NodePtr node);
  NodePtr parseFilterExpression(NodePtr node);
  NodePtr parseSubscript(NodePtr node);
  NodePtr parseSubscribed();
  NodePtr parseCall(NodePtr callee);
  bool parseArguments(Node &call);
  NodePtr parseFilters(NodePtr input, bool startInline = false);
  NodePtr parseTest(NodePtr input);
  NodePtr binary(NodeKind kind, const Token &token, NodePtr left,
                 NodePtr right);

  std::string_view source;
  TemplateProblem &problem;
  std::vector<Token> tokens;
  size_t at = 0;
  unsigned nesting = 0;
  int64_t macroUse = 0;
  unsigned loops = 0; ///< around the statement, within its macro
  /// Tags that are open, innermost last, for messages.
  std::vector<std::string> openTags;
};

/// Whether there is a filter or test of this name.
bool isFilter(std::string_view name);
bool isTest(std::string_view name);

} // namespace attune::runtime::jinja

#endif // ATTUNE_LIB_RUNTIME_TEMPLATE_PARSER_H

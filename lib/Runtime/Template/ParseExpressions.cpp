//===- ParseExpressions.cpp - Expressions of a template -------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Parser.h"

namespace attune::runtime::jinja {

NodePtr Parser::binary(NodeKind kind, const Token &token, NodePtr left,
                       NodePtr right) {
  if (!left || !right)
    return nullptr;
  NodePtr node = make(kind, token);
  node->operands.push_back(std::move(left));
  node->operands.push_back(std::move(right));
  return finish(std::move(node));
}

bool Parser::isTupleEnd(std::string_view end) const {
  const Token &token = current();
  return token.kind == TokenKind::VariableEnd ||
         token.kind == TokenKind::BlockEnd || token.is(")") ||
         (!end.empty() && token.isName(end));
}

/// Expressions with commas between make a tuple, one alone is itself.
NodePtr Parser::parseTuple(bool withConditional, std::string_view end,
                           bool inParentheses) {
  const Token &first = current();
  NodePtr tuple = make(NodeKind::Tuple, first);
  bool isTuple = false;
  for (;;) {
    if (!tuple->operands.empty() && !expectOperator(","))
      return nullptr;
    if (isTupleEnd(end))
      break;
    NodePtr item = parseExpression(withConditional);
    if (!item)
      return nullptr;
    tuple->operands.push_back(std::move(item));
    if (!current().is(","))
      break;
    isTuple = true;
  }
  if (!isTuple) {
    if (!tuple->operands.empty())
      return std::move(tuple->operands[0]);
    if (!inParentheses)
      return failNode(current(),
                      "expected an expression, found " + describe(current()));
  }
  return finish(std::move(tuple));
}

NodePtr Parser::parseExpression(bool withConditional) {
  Nesting nested(*this);
  if (!checkNesting())
    return nullptr;
  return withConditional ? parseConditional() : parseOr();
}

NodePtr Parser::parseConditional() {
  NodePtr node = parseOr();
  while (node && current().isName("if")) {
    NodePtr conditional = make(NodeKind::Conditional, current());
    advance();
    NodePtr test = parseOr();
    if (!test)
      return nullptr;
    NodePtr otherwise;
    if (skipName("else")) {
      Nesting nested(*this);
      if (!checkNesting() || !(otherwise = parseConditional()))
        return nullptr;
    }
    conditional->operands.push_back(std::move(test));
    conditional->operands.push_back(std::move(node));
    conditional->operands.push_back(std::move(otherwise));
    node = finish(std::move(conditional));
  }
  return node;
}

NodePtr Parser::parseOr() {
  NodePtr left = parseAnd();
  while (left && current().isName("or")) {
    const Token &token = current();
    advance();
    left = binary(NodeKind::Or, token, std::move(left), parseAnd());
  }
  return left;
}

NodePtr Parser::parseAnd() {
  NodePtr left = parseNot();
  while (left && current().isName("and")) {
    const Token &token = current();
    advance();
    left = binary(NodeKind::And, token, std::move(left), parseNot());
  }
  return left;
}

NodePtr Parser::parseNot() {
  if (!current().isName("not"))
    return parseCompare();
  Nesting nested(*this);
  NodePtr node = make(NodeKind::Not, current());
  advance();
  NodePtr operand = checkNesting() ? parseNot() : nullptr;
  if (!operand)
    return nullptr;
  node->operands.push_back(std::move(operand));
  return finish(std::move(node));
}

NodePtr Parser::parseCompare() {
  NodePtr first = parseSum();
  if (!first)
    return nullptr;
  NodePtr node = make(NodeKind::Compare, current());
  node->operands.push_back(std::move(first));
  static const struct {
    std::string_view spelling;
    CompareOp op;
  } comparisons[] = {
      {"==", CompareOp::Equal},     {"!=", CompareOp::NotEqual},
      {"<=", CompareOp::LessEqual}, {">=", CompareOp::GreaterEqual},
      {"<", CompareOp::Less},       {">", CompareOp::Greater},
  };
  for (;;) {
    bool found = false;
    CompareOp op = CompareOp::Equal;
    for (const auto &comparison : comparisons)
      if (!found && skipOperator(comparison.spelling)) {
        op = comparison.op;
        found = true;
      }
    if (!found && skipName("in")) {
      op = CompareOp::In;
    } else if (!found && current().isName("not") && next().isName("in")) {
      advance();
      advance();
      op = CompareOp::NotIn;
    } else if (!found) {
      break;
    }
    NodePtr operand = parseSum();
    if (!operand)
      return nullptr;
    node->operands.push_back(std::move(operand));
    node->operators.push_back(op);
  }
  if (node->operators.empty())
    return std::move(node->operands[0]);
  return finish(std::move(node));
}

NodePtr Parser::parseSum() {
  NodePtr left = parseConcat();
  while (left && (current().is("+") || current().is("-"))) {
    const Token &token = current();
    advance();
    left = binary(token.text == "+" ? NodeKind::Add : NodeKind::Sub, token,
                  std::move(left), parseConcat());
  }
  return left;
}

NodePtr Parser::parseConcat() {
  NodePtr first = parseProduct();
  if (!first || !current().is("~"))
    return first;
  NodePtr node = make(NodeKind::Concat, current());
  node->operands.push_back(std::move(first));
  while (skipOperator("~")) {
    NodePtr part = parseProduct();
    if (!part)
      return nullptr;
    node->operands.push_back(std::move(part));
  }
  return finish(std::move(node));
}

NodePtr Parser::parseProduct() {
  NodePtr left = parsePower();
  while (left) {
    const Token &token = current();
    NodeKind kind = token.is("*")    ? NodeKind::Mul
                    : token.is("/")  ? NodeKind::Div
                    : token.is("//") ? NodeKind::FloorDiv
                    : token.is("%")  ? NodeKind::Mod
                                     : NodeKind::None;
    if (kind == NodeKind::None)
      break;
    advance();
    left = binary(kind, token, std::move(left), parsePower());
  }
  return left;
}

/// Unlike Python's, Jinja's power binds to the left.
NodePtr Parser::parsePower() {
  NodePtr left = parseUnary();
  while (left && current().is("**")) {
    const Token &token = current();
    advance();
    left = binary(NodeKind::Pow, token, std::move(left), parseUnary());
  }
  return left;
}

NodePtr Parser::parseUnary(bool withFilter) {
  Nesting nested(*this);
  if (!checkNesting())
    return nullptr;
  NodePtr node;
  if (current().is("-") || current().is("+")) {
    const Token &token = current();
    node = make(token.is("-") ? NodeKind::Neg : NodeKind::Pos, token);
    advance();
    NodePtr operand = parseUnary(/*withFilter=*/false);
    if (!operand)
      return nullptr;
    node->operands.push_back(std::move(operand));
    node = finish(std::move(node));
  } else {
    node = parsePrimary();
  }
  node = parsePostfix(std::move(node));
  return withFilter ? parseFilterExpression(std::move(node)) : std::move(node);
}

NodePtr Parser::parsePrimary() {
  const Token &token = current();
  NodePtr node;
  switch (token.kind) {
  case TokenKind::Name:
    if (token.text == "true" || token.text == "True" || token.text == "false" ||
        token.text == "False") {
      node = make(NodeKind::Bool, token);
      node->flag = token.text[0] == 't' || token.text[0] == 'T';
    } else if (token.text == "none" || token.text == "None") {
      node = make(NodeKind::None, token);
    } else {
      node = make(NodeKind::Name, token);
      node->text = token.text;
      if (token.text == "varargs")
        macroUse |= usesVarargs;
      else if (token.text == "kwargs")
        macroUse |= usesKwargs;
      else if (token.text == "caller")
        macroUse |= usesCaller;
    }
    advance();
    return node;
  case TokenKind::String:
    node = make(NodeKind::String, token);
    for (; current().kind == TokenKind::String; advance())
      node->text += current().text;
    return node;
  case TokenKind::Int:
    node = make(NodeKind::Int, token);
    node->integer = token.integer;
    advance();
    return node;
  case TokenKind::Float:
    node = make(NodeKind::Float, token);
    node->real = token.real;
    advance();
    return node;
  default:
    break;
  }
  if (skipOperator("(")) {
    node = parseTuple(/*withConditional=*/true, {}, /*inParentheses=*/true);
    return node && expectOperator(")") ? std::move(node) : nullptr;
  }
  if (token.is("["))
    return parseList();
  if (token.is("{"))
    return parseDict();
  return failNode(token, "expected an expression, found " + describe(token));
}

NodePtr Parser::parseList() {
  NodePtr node = make(NodeKind::List, current());
  advance();
  while (!current().is("]")) {
    if (!node->operands.empty() && !expectOperator(","))
      return nullptr;
    if (current().is("]"))
      break;
    NodePtr item = parseExpression();
    if (!item)
      return nullptr;
    node->operands.push_back(std::move(item));
  }
  advance();
  return finish(std::move(node));
}

NodePtr Parser::parseDict() {
  NodePtr node = make(NodeKind::Dict, current());
  advance();
  while (!current().is("}")) {
    if (!node->operands.empty() && !expectOperator(","))
      return nullptr;
    if (current().is("}"))
      break;
    NodePtr key = parseExpression();
    if (!key || !expectOperator(":"))
      return nullptr;
    NodePtr value = parseExpression();
    if (!value)
      return nullptr;
    node->operands.push_back(std::move(key));
    node->operands.push_back(std::move(value));
  }
  advance();
  return finish(std::move(node));
}

NodePtr Parser::parsePostfix(NodePtr node) {
  while (node) {
    if (current().is(".") || current().is("["))
      node = parseSubscript(std::move(node));
    else if (current().is("("))
      node = parseCall(std::move(node));
    else
      break;
  }
  return node;
}

NodePtr Parser::parseFilterExpression(NodePtr node) {
  while (node) {
    if (current().is("|"))
      node = parseFilters(std::move(node));
    else if (current().isName("is"))
      node = parseTest(std::move(node));
    else if (current().is("("))
      node = parseCall(std::move(node));
    else
      break;
  }
  return node;
}

NodePtr Parser::parseSubscript(NodePtr object) {
  const Token &token = current();
  advance();
  if (token.is(".")) {
    const Token &name = current();
    advance();
    if (name.kind == TokenKind::Name) {
      NodePtr node = make(NodeKind::Attribute, token);
      node->text = name.text;
      node->operands.push_back(std::move(object));
      return finish(std::move(node));
    }
    if (name.kind != TokenKind::Int)
      return failNode(name, "expected a name or a number behind '.', found " +
                                describe(name));
    NodePtr index = make(NodeKind::Int, name);
    index->integer = name.integer;
    return binary(NodeKind::Item, token, std::move(object), std::move(index));
  }
  NodePtr tuple = make(NodeKind::Tuple, token);
  while (!current().is("]")) {
    if (!tuple->operands.empty() && !expectOperator(","))
      return nullptr;
    NodePtr index = parseSubscribed();
    if (!index)
      return nullptr;
    tuple->operands.push_back(std::move(index));
  }
  advance();
  NodePtr index = tuple->operands.size() == 1 ? std::move(tuple->operands[0])
                                              : finish(std::move(tuple));
  return binary(NodeKind::Item, token, std::move(object), std::move(index));
}

/// An index, or a slice such as 1:, ::-1.
NodePtr Parser::parseSubscribed() {
  const Token &token = current();
  NodePtr parts[3];
  if (!current().is(":")) {
    parts[0] = parseExpression();
    if (!parts[0])
      return nullptr;
    if (!current().is(":"))
      return std::move(parts[0]);
  }
  for (unsigned part = 1; part < 3 && skipOperator(":"); ++part)
    if (!current().is(":") && !current().is("]") && !current().is(",")) {
      parts[part] = parseExpression();
      if (!parts[part])
        return nullptr;
    }
  NodePtr slice = make(NodeKind::Slice, token);
  for (NodePtr &part : parts)
    slice->operands.push_back(std::move(part));
  return finish(std::move(slice));
}

NodePtr Parser::parseCall(NodePtr callee) {
  NodePtr node = make(NodeKind::Call, current());
  // The place of a call is that of what is called.
  node->line = callee->line;
  node->column = callee->column;
  node->operands.push_back(std::move(callee));
  return parseArguments(*node) ? finish(std::move(node)) : nullptr;
}

/// "(a, b, c=d, *e, **f)"
bool Parser::parseArguments(Node &call) {
  advance();
  bool comma = false;
  while (!current().is(")")) {
    if (comma) {
      if (!expectOperator(","))
        return false;
      if (current().is(")"))
        break;
    }
    comma = true;
    const Token &token = current();
    bool positionalOnly = !call.named.empty() || call.spread;
    NodePtr *place = nullptr;
    if (skipOperator("*")) {
      place = &call.spread;
    } else if (skipOperator("**")) {
      place = &call.spreadNamed;
    } else if (token.kind == TokenKind::Name && next().is("=")) {
      advance();
      advance();
      for (const NamedNode &named : call.named)
        if (named.name == token.text)
          return fail(token, "argument '" + token.text + "' is given twice");
      call.named.push_back({token.text, nullptr});
      place = &call.named.back().value;
    } else {
      if (positionalOnly || call.spreadNamed)
        return fail(token, "a positional argument behind a named one");
      call.operands.emplace_back();
      place = &call.operands.back();
    }
    if (*place || (call.spreadNamed && place != &call.spreadNamed))
      return fail(token, "arguments in an order that calls do not have");
    *place = parseExpression();
    if (!*place)
      return false;
  }
  advance();
  return true;
}

NodePtr Parser::parseFilters(NodePtr input, bool startInline) {
  while (startInline || current().is("|")) {
    if (!startInline)
      advance();
    startInline = false;
    const Token &token = current();
    if (token.kind != TokenKind::Name)
      return failNode(token,
                      "expected a filter's name, found " + describe(token));
    NodePtr node = make(NodeKind::Filter, token);
    node->text = token.text;
    advance();
    while (skipOperator(".")) {
      node->text += "." + current().text;
      if (current().kind != TokenKind::Name)
        return failNode(current(), "expected a filter's name");
      advance();
    }
    if (node->text == "random")
      return failNode(token, "the filter 'random' is not supported: a template "
                             "gives the same text each time");
    if (!isFilter(node->text))
      return failNode(token, "there is no filter '" + node->text + "'");
    node->operands.push_back(std::move(input));
    if (current().is("(") && !parseArguments(*node))
      return nullptr;
    input = finish(std::move(node));
    if (!input)
      return nullptr;
  }
  return input;
}

NodePtr Parser::parseTest(NodePtr input) {
  const Token &start = current();
  advance();
  bool negated = skipName("not");
  const Token &token = current();
  if (token.kind != TokenKind::Name)
    return failNode(token, "expected a test's name behind 'is', found " +
                               describe(token));
  NodePtr node = make(NodeKind::Test, token);
  node->text = token.text;
  advance();
  if (!isTest(node->text))
    return failNode(token, "there is no test '" + node->text + "'");
  node->operands.push_back(std::move(input));
  const Token &after = current();
  bool isArgument =
      after.kind == TokenKind::Name || after.kind == TokenKind::String ||
      after.kind == TokenKind::Int || after.kind == TokenKind::Float ||
      after.is("[") || after.is("{");
  if (after.isName("else") || after.isName("or") || after.isName("and"))
    isArgument = false;
  if (after.is("(")) {
    if (!parseArguments(*node))
      return nullptr;
  } else if (isArgument) {
    if (after.isName("is"))
      return failNode(after, "tests cannot be chained with 'is'");
    NodePtr argument = parsePostfix(parsePrimary());
    if (!argument)
      return nullptr;
    node->operands.push_back(std::move(argument));
  }
  node = finish(std::move(node));
  if (!negated || !node)
    return node;
  NodePtr inverse = make(NodeKind::Not, start);
  inverse->operands.push_back(std::move(node));
  return finish(std::move(inverse));
}

} // namespace attune::runtime::jinja

//===- ParseStatements.cpp - Statements of a template ---------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Parser.h"

#include <algorithm>
#include <utility>

namespace attune::runtime::jinja {

/// Nesting of parentheses and blocks, and height of an expression's tree: both
/// bound the stack. Published templates stay below 30.
static constexpr unsigned mostNesting = 150, mostDepth = 500;

//===----------------------------------------------------------------------===//
// Tokens
//===----------------------------------------------------------------------===//

bool Parser::skipOperator(std::string_view op) {
  if (!current().is(op))
    return false;
  advance();
  return true;
}

bool Parser::skipName(std::string_view name) {
  if (!current().isName(name))
    return false;
  advance();
  return true;
}

bool Parser::expectOperator(std::string_view op) {
  return skipOperator(op) ||
         fail(current(), "expected '" + std::string(op) + "', found " +
                             describe(current()));
}

bool Parser::expectName(std::string_view name) {
  return skipName(name) ||
         fail(current(), "expected '" + std::string(name) + "', found " +
                             describe(current()));
}

std::string Parser::describe(const Token &token) const {
  switch (token.kind) {
  case TokenKind::Data:
    return "text";
  case TokenKind::BlockBegin:
    return "'{%'";
  case TokenKind::BlockEnd:
    return "'%}'";
  case TokenKind::VariableBegin:
    return "'{{'";
  case TokenKind::VariableEnd:
    return "'}}'";
  case TokenKind::String:
    return "a string";
  case TokenKind::Int:
  case TokenKind::Float:
    return "a number";
  case TokenKind::End:
    return "the end of the template";
  default:
    return "'" + token.text + "'";
  }
}

bool Parser::fail(const Token &token, const std::string &message) {
  if (problem.message.empty()) {
    problem.message = message;
    setPosition(source, token.offset, problem);
  }
  return false;
}

NodePtr Parser::failNode(const Token &token, const std::string &message) {
  fail(token, message);
  return nullptr;
}

NodePtr Parser::make(NodeKind kind, const Token &token) const {
  return NodePtr(new Node(kind, token.line, token.column));
}

bool Parser::checkNesting() {
  return nesting <= mostNesting ||
         fail(current(),
              "nested deeper than " + std::to_string(mostNesting) + " levels");
}

NodePtr Parser::finish(NodePtr node) {
  unsigned depth = 0;
  auto consider = [&](const NodePtr &child) {
    if (child)
      depth = std::max<unsigned>(depth, child->depth);
  };
  for (const Nodes *nodes : {&node->operands, &node->body, &node->orElse})
    for (const NodePtr &child : *nodes)
      consider(child);
  for (const NamedNode &named : node->named)
    consider(named.value);
  consider(node->spread);
  consider(node->spreadNamed);
  consider(node->call);
  node->depth = static_cast<uint16_t>(depth + 1);
  if (depth < mostDepth)
    return node;
  if (problem.message.empty()) {
    problem.message =
        "an expression of more than " + std::to_string(mostDepth) + " levels";
    problem.line = node->line;
    problem.column = node->column;
  }
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Bodies
//===----------------------------------------------------------------------===//

NodePtr Parser::parse() {
  if (!tokenize(source, tokens, problem))
    return nullptr;
  NodePtr root = make(NodeKind::Block, tokens.front());
  if (!parseUntil({}, root->body))
    return nullptr;
  return finish(std::move(root));
}

bool Parser::endTag() {
  if (current().kind != TokenKind::BlockEnd)
    return fail(current(), "expected '%}', found " + describe(current()));
  advance();
  return true;
}

/// The rest of a tag and what follows it, up to one of the tags `ends`, whose
/// name is the current token then.
bool Parser::parseBody(Words ends, Nodes &body) {
  skipOperator(":");
  return endTag() && parseUntil(ends, body);
}

bool Parser::parseUntil(Words ends, Nodes &body) {
  Nesting nested(*this);
  if (!checkNesting())
    return false;
  for (;;) {
    const Token &token = current();
    NodePtr node;
    switch (token.kind) {
    case TokenKind::End:
      if (ends.size() == 0)
        return true;
      return fail(token, "the template ends within '" + openTags.back() +
                             "'; expected '{% " +
                             std::string(*(ends.end() - 1)) + " %}'");
    case TokenKind::Data:
      node = make(NodeKind::Data, token);
      node->text = token.text;
      advance();
      break;
    case TokenKind::VariableBegin:
      node = make(NodeKind::Output, token);
      advance();
      node->operands.push_back(parseTuple());
      if (!node->operands.back())
        return false;
      if (current().kind != TokenKind::VariableEnd)
        return fail(current(), "expected '}}', found " + describe(current()));
      advance();
      node = finish(std::move(node));
      break;
    default:
      advance(); // "{%"
      for (std::string_view end : ends)
        if (current().isName(end))
          return true;
      node = parseStatement();
      if (node && !endTag())
        return false;
      break;
    }
    if (!node)
      return false;
    body.push_back(std::move(node));
  }
}

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

NodePtr Parser::parseStatement() {
  const Token &token = current();
  if (token.kind != TokenKind::Name)
    return failNode(token, "expected a tag's name, found " + describe(token));
  openTags.push_back(token.text);
  NodePtr node;
  const std::string &tag = token.text;
  if (tag == "for")
    node = parseFor();
  else if (tag == "if")
    node = parseIf();
  else if (tag == "set")
    node = parseSet();
  else if (tag == "with")
    node = parseWith();
  else if (tag == "macro")
    node = parseMacro();
  else if (tag == "call")
    node = parseCallBlock();
  else if (tag == "filter")
    node = parseFilterBlock();
  else if (tag == "generation")
    node = parseScope("endgeneration");
  else if (tag == "block")
    node = parseBlock();
  else if (tag == "print")
    node = parsePrint();
  else if (tag == "break" || tag == "continue")
    node = parseLoopControl();
  else
    node = parseUnknown();
  openTags.pop_back();
  return node;
}

NodePtr Parser::parseUnknown() {
  const Token &token = current();
  const std::string &tag = token.text;
  if (tag == "include" || tag == "import" || tag == "extends" || tag == "from")
    return failNode(token, "a chat template stands alone: '" + tag +
                               "' would read another file");
  if (tag == "autoescape")
    return failNode(token, "'autoescape' is not for chat templates, whose "
                           "text is never escaped");
  if (tag == "do")
    return failNode(token, "unknown tag 'do': transformers does not load this "
                           "extension either; use '{% set _ = ... %}'");
  std::string around = openTags.size() > 1
                           ? "; the innermost open tag is '" +
                                 openTags[openTags.size() - 2] + "'"
                           : "";
  return failNode(token, "unknown tag '" + tag + "'" + around);
}

bool Parser::checkTarget(const Node &node, const Token &token) {
  if (node.kind == NodeKind::Name || node.kind == NodeKind::NamespaceRef)
    return true;
  if (node.kind != NodeKind::Tuple)
    return fail(token, "expected a name to assign to");
  for (const NodePtr &item : node.operands)
    if (!checkTarget(*item, token))
      return false;
  return true;
}

/// What is assigned to: a name, names with commas between, or an attribute of
/// a namespace.
NodePtr Parser::parseTarget(bool withNamespace, std::string_view end) {
  const Token &first = current();
  NodePtr tuple = make(NodeKind::Tuple, first);
  bool isTuple = false;
  for (;;) {
    if (!tuple->operands.empty() && !expectOperator(","))
      return nullptr;
    if (isTupleEnd(end))
      break;
    const Token &token = current();
    NodePtr item;
    if (skipOperator("(")) {
      Nesting nested(*this);
      item = checkNesting() ? parseTarget(false, {}) : nullptr;
      if (!item || !expectOperator(")"))
        return nullptr;
    } else if (withNamespace && token.kind == TokenKind::Name &&
               next().is(".")) {
      item = make(NodeKind::NamespaceRef, token);
      item->text = token.text;
      advance();
      advance();
      if (current().kind != TokenKind::Name)
        return failNode(current(), "expected an attribute's name, found " +
                                       describe(current()));
      item->attribute = current().text;
      advance();
    } else {
      item = parsePrimary();
    }
    if (!item || !checkTarget(*item, token))
      return nullptr;
    tuple->operands.push_back(std::move(item));
    if (!current().is(","))
      break;
    isTuple = true;
  }
  if (!isTuple && tuple->operands.empty())
    return failNode(current(), "expected a name to assign to, found " +
                                   describe(current()));
  if (!isTuple)
    return std::move(tuple->operands[0]);
  return finish(std::move(tuple));
}

NodePtr Parser::parseFor() {
  NodePtr node = make(NodeKind::For, current());
  advance();
  NodePtr target = parseTarget(/*withNamespace=*/false, "in");
  if (!target || !expectName("in"))
    return nullptr;
  NodePtr iterable = parseTuple(/*withConditional=*/false, "recursive");
  if (!iterable)
    return nullptr;
  NodePtr test;
  if (skipName("if") && !(test = parseExpression()))
    return nullptr;
  node->flag = skipName("recursive");
  node->operands.push_back(std::move(target));
  node->operands.push_back(std::move(iterable));
  node->operands.push_back(std::move(test));
  ++loops;
  bool good = parseBody({"else", "endfor"}, node->body);
  --loops;
  if (!good)
    return nullptr;
  if (skipName("else") && !parseBody({"endfor"}, node->orElse))
    return nullptr;
  advance(); // endfor
  return finish(std::move(node));
}

NodePtr Parser::parseIf() {
  NodePtr node = make(NodeKind::If, current());
  do {
    advance(); // if, elif
    NodePtr test = parseTuple(/*withConditional=*/false);
    if (!test)
      return nullptr;
    NodePtr branch = make(NodeKind::Block, current());
    if (!parseBody({"elif", "else", "endif"}, branch->body))
      return nullptr;
    branch = finish(std::move(branch));
    if (!branch)
      return nullptr;
    node->operands.push_back(std::move(test));
    node->body.push_back(std::move(branch));
  } while (current().isName("elif"));
  if (skipName("else") && !parseBody({"endif"}, node->orElse))
    return nullptr;
  advance(); // endif
  return finish(std::move(node));
}

NodePtr Parser::parseSet() {
  const Token &token = current();
  advance();
  NodePtr target = parseTarget(/*withNamespace=*/true, {});
  if (!target)
    return nullptr;
  if (current().is("=")) {
    advance();
    return binary(NodeKind::Set, token, std::move(target), parseTuple());
  }
  NodePtr node = make(NodeKind::SetBlock, token);
  NodePtr filters;
  if (current().is("|") && !(filters = parseFilters(nullptr)))
    return nullptr;
  node->operands.push_back(std::move(target));
  node->operands.push_back(std::move(filters));
  if (!parseBody({"endset"}, node->body))
    return nullptr;
  advance();
  return finish(std::move(node));
}

NodePtr Parser::parseWith() {
  NodePtr node = make(NodeKind::With, current());
  advance();
  while (current().kind != TokenKind::BlockEnd) {
    if (!node->operands.empty() && !expectOperator(","))
      return nullptr;
    const Token &token = current();
    NodePtr target = parsePrimary();
    if (!target || !checkTarget(*target, token) || !expectOperator("="))
      return nullptr;
    NodePtr value = parseExpression();
    if (!value)
      return nullptr;
    node->operands.push_back(std::move(target));
    node->operands.push_back(std::move(value));
  }
  if (!parseBody({"endwith"}, node->body))
    return nullptr;
  advance();
  return finish(std::move(node));
}

/// "(a, b=1)" of a macro or a call block.
bool Parser::parseSignature(Node &node) {
  if (!expectOperator("("))
    return false;
  bool hasDefaults = false;
  while (!current().is(")")) {
    if (!node.named.empty() && !expectOperator(","))
      return false;
    const Token &token = current();
    if (token.kind != TokenKind::Name)
      return fail(token,
                  "expected a parameter's name, found " + describe(token));
    for (const NamedNode &parameter : node.named)
      if (parameter.name == token.text)
        return fail(token, "parameter '" + token.text + "' is named twice");
    advance();
    NodePtr value;
    if (skipOperator("=")) {
      hasDefaults = true;
      if (!(value = parseExpression()))
        return false;
    } else if (hasDefaults) {
      return fail(token, "a parameter without default behind one with a "
                         "default");
    }
    node.named.push_back({token.text, std::move(value)});
  }
  advance();
  return true;
}

NodePtr Parser::parseMacro() {
  NodePtr node = make(NodeKind::Macro, current());
  advance();
  if (current().kind != TokenKind::Name)
    return failNode(current(),
                    "expected the macro's name, found " + describe(current()));
  node->text = current().text;
  advance();
  if (!parseSignature(*node) || !parseMacroBody(*node, "endmacro"))
    return nullptr;
  return finish(std::move(node));
}

bool Parser::parseMacroBody(Node &node, std::string_view end) {
  unsigned outerLoops = std::exchange(loops, 0);
  int64_t outerUse = std::exchange(macroUse, 0);
  bool good = parseBody({end}, node.body);
  loops = outerLoops;
  node.integer = std::exchange(macroUse, outerUse);
  advance();
  return good;
}

NodePtr Parser::parseCallBlock() {
  NodePtr node = make(NodeKind::CallBlock, current());
  node->text = "caller";
  advance();
  if (current().is("(") && !parseSignature(*node))
    return nullptr;
  const Token &token = current();
  node->call = parseExpression();
  if (!node->call)
    return nullptr;
  if (node->call->kind != NodeKind::Call)
    return failNode(token, "expected a call of a macro");
  if (!parseMacroBody(*node, "endcall"))
    return nullptr;
  return finish(std::move(node));
}

NodePtr Parser::parseFilterBlock() {
  NodePtr node = make(NodeKind::FilterBlock, current());
  advance();
  NodePtr filters = parseFilters(nullptr, /*startInline=*/true);
  if (!filters)
    return nullptr;
  node->operands.push_back(std::move(filters));
  if (!parseBody({"endfilter"}, node->body))
    return nullptr;
  advance();
  return finish(std::move(node));
}

/// {% generation %} marks what the model says, for training; it prints its
/// body.
NodePtr Parser::parseScope(std::string_view end) {
  NodePtr node = make(NodeKind::Scope, current());
  advance();
  unsigned outer = std::exchange(loops, 0);
  bool good = parseBody({end}, node->body);
  loops = outer;
  if (!good)
    return nullptr;
  advance();
  return finish(std::move(node));
}

/// A named block prints its body where it stands: nothing extends a template.
NodePtr Parser::parseBlock() {
  const Token &tag = current();
  advance();
  const Token &name = current();
  if (name.kind != TokenKind::Name)
    return failNode(name, "expected the block's name, found " + describe(name));
  advance();
  skipName("scoped");
  NodePtr node = make(NodeKind::Scope, tag);
  unsigned outer = std::exchange(loops, 0);
  bool good = parseBody({"endblock"}, node->body);
  loops = outer;
  if (!good)
    return nullptr;
  advance();
  skipName(name.text);
  return finish(std::move(node));
}

NodePtr Parser::parsePrint() {
  NodePtr node = make(NodeKind::Output, current());
  advance();
  while (current().kind != TokenKind::BlockEnd) {
    if (!node->operands.empty() && !expectOperator(","))
      return nullptr;
    NodePtr value = parseExpression();
    if (!value)
      return nullptr;
    node->operands.push_back(std::move(value));
  }
  return finish(std::move(node));
}

NodePtr Parser::parseLoopControl() {
  const Token &token = current();
  if (!loops)
    return failNode(token, "'" + token.text + "' outside of a loop");
  advance();
  return make(token.text == "break" ? NodeKind::Break : NodeKind::Continue,
              token);
}

} // namespace attune::runtime::jinja

//===- ChatTemplate.cpp - Templates that lay out a conversation -----------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Runtime/ChatTemplate.h"

#include "Interpreter.h"
#include "Parser.h"

#include "attune/Runtime/Utf8.h"

#include <algorithm>

namespace attune::runtime {

/// Published templates have up to 30 thousand bytes.
static constexpr size_t mostBytes = size_t(1) << 20;

ChatTemplate::ChatTemplate() = default;
ChatTemplate::~ChatTemplate() = default;

std::unique_ptr<ChatTemplate> ChatTemplate::parse(std::string_view source,
                                                  TemplateProblem &problem) {
  problem = TemplateProblem();
  if (source.size() > mostBytes) {
    problem.message = "a template of " + std::to_string(source.size()) +
                      " bytes; the limit is " + std::to_string(mostBytes);
    return nullptr;
  }
  std::unique_ptr<ChatTemplate> result(new ChatTemplate());
  result->source = jinja::normalizeLines(source);
  if (sanitizeUtf8(result->source) != result->source) {
    problem.message = "the template is not UTF-8";
    return nullptr;
  }
  result->root = jinja::Parser(result->source, problem).parse();
  return result->root ? std::move(result) : nullptr;
}

bool ChatTemplate::render(const JsonValue &variables, std::string &out,
                          TemplateProblem &problem,
                          const TemplateLimits &limits) const {
  problem = TemplateProblem();
  return jinja::Interpreter(limits, problem).run(*root, variables, out);
}

static bool mentionsName(const jinja::Node &node, std::string_view name) {
  if (node.kind == jinja::NodeKind::Name && node.text == name)
    return true;
  auto in = [&](const jinja::NodePtr &child) {
    return child && mentionsName(*child, name);
  };
  for (const jinja::Nodes *nodes : {&node.operands, &node.body, &node.orElse})
    if (std::any_of(nodes->begin(), nodes->end(), in))
      return true;
  for (const jinja::NamedNode &named : node.named)
    if (in(named.value))
      return true;
  return in(node.spread) || in(node.spreadNamed) || in(node.call);
}

bool ChatTemplate::mentions(std::string_view variable) const {
  return mentionsName(*root, variable);
}

std::string ChatTemplate::describe(std::string_view source,
                                   const TemplateProblem &problem) {
  if (!problem.line)
    return problem.message;
  std::string text = jinja::normalizeLines(source);
  std::string_view rest = text;
  for (unsigned line = 1; line < problem.line; ++line) {
    size_t end = rest.find('\n');
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  std::string_view line = rest.substr(0, rest.find('\n'));
  // Templates in JSON often are one line of thousands of characters.
  size_t column = std::min<size_t>(problem.column, line.size() + 1);
  size_t begin = column > 60 ? column - 60 : 0;
  while (begin < line.size() && (line[begin] & 0xC0) == 0x80)
    ++begin;
  std::string shown(
      line.substr(begin, completeUtf8Prefix(line.substr(begin, 100))));
  size_t before = std::min(column - 1 - begin, shown.size());
  auto indent =
      static_cast<size_t>(jinja::countCharacters(shown.substr(0, before)));
  std::replace(shown.begin(), shown.end(), '\t', ' ');
  return std::to_string(problem.line) + ":" + std::to_string(problem.column) +
         ": " + problem.message + "\n  " + shown + "\n  " +
         std::string(indent, ' ') + "^";
}

std::string ChatTemplate::describe(const TemplateProblem &problem) const {
  return describe(source, problem);
}

} // namespace attune::runtime

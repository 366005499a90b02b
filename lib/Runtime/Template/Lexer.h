//===- Lexer.h - Tokens of a template ---------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_TEMPLATE_LEXER_H
#define ATTUNE_LIB_RUNTIME_TEMPLATE_LEXER_H

#include "attune/Runtime/ChatTemplate.h"

#include <string>
#include <string_view>
#include <vector>

namespace attune::runtime::jinja {

enum class TokenKind : uint8_t {
  Data,
  BlockBegin,
  BlockEnd,
  VariableBegin,
  VariableEnd,
  Name,
  String,
  Int,
  Float,
  Operator,
  End
};

struct Token {
  TokenKind kind = TokenKind::End;
  size_t offset = 0; ///< into the source
  unsigned line = 1, column = 1;
  std::string text; ///< the value of a string, the operator's spelling
  int64_t integer = 0;
  double real = 0;

  bool is(std::string_view op) const {
    return kind == TokenKind::Operator && text == op;
  }
  bool isName(std::string_view name) const {
    return kind == TokenKind::Name && text == name;
  }
};

/// "\r\n" and "\r" become "\n", and one line end at the end is dropped.
std::string normalizeLines(std::string_view source);

void setPosition(std::string_view source, size_t offset,
                 TemplateProblem &problem);

/// Cuts a normalized source into tokens, the last one End.
bool tokenize(std::string_view source, std::vector<Token> &tokens,
              TemplateProblem &problem);

/// Length in bytes of the white space, as Python's str.isspace has it, that
/// `text` starts with; 0 if it starts with none.
unsigned spaceAt(std::string_view text);
std::string_view trimLeft(std::string_view text);
std::string_view trimRight(std::string_view text);

} // namespace attune::runtime::jinja

#endif // ATTUNE_LIB_RUNTIME_TEMPLATE_LEXER_H

//===- GrammarText.h - Grammars as people write them ------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_GRAMMAR_GRAMMARTEXT_H
#define ATTUNE_LIB_RUNTIME_GRAMMAR_GRAMMARTEXT_H

#include "Grammar.h"

#include <string>
#include <string_view>

namespace attune::runtime {

/// Reads rules as llama.cpp's GBNF has them; the text begins with `root`:
///
///     root ::= greeting (", " greeting)* # a comment
///     greeting ::= "hello" | [A-Z] [a-z]{2,5}
///
/// `problem` says what is wrong in which line.
bool parseGrammarText(std::string_view text, Grammar &grammar,
                      std::string &problem);

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_GRAMMAR_GRAMMARTEXT_H

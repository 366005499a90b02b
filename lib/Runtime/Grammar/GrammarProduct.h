//===- GrammarProduct.h - Texts that several grammars have ------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_GRAMMAR_GRAMMARPRODUCT_H
#define ATTUNE_LIB_RUNTIME_GRAMMAR_GRAMMARPRODUCT_H

#include "Grammar.h"

namespace attune::runtime {

enum class ProductResult { Done, NoText, TooLarge };

/// Adds to `rule` the texts that all of `parts` have, which must be regular, as
/// patterns are, and whose number of characters is from `least` to `most` (-1:
/// any). A character is one of a string of JSON as appendPattern() writes it:
/// UTF-8, or a backslash and a letter. Every beginning of a text can be
/// finished. What was looked at on the way is taken from `budget`, and the
/// product takes a quarter at most of the room that is left in the grammar.
ProductResult addProduct(Grammar &grammar, Grammar::Rule rule,
                         std::vector<Grammar> parts, int64_t least,
                         int64_t most, size_t &budget);

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_GRAMMAR_GRAMMARPRODUCT_H

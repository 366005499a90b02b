//===- SchemaGrammar.h - JSON schemas as grammars ---------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A schema becomes a grammar of JSON texts that are valid by it. Every text of
// the grammar is valid, and where JSON leaves a choice that says nothing the
// grammar may make it: members stand in the order of the schema, and an object
// that names its members has no others. A keyword that restricts values and is
// not understood is an error, since texts could be invalid. So is a `oneOf`
// whose schemas may have a value in common.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_GRAMMAR_SCHEMAGRAMMAR_H
#define ATTUNE_LIB_RUNTIME_GRAMMAR_SCHEMAGRAMMAR_H

#include "Grammar.h"

#include "attune/Runtime/Json.h"

#include <string>

namespace attune::runtime {

/// `problem` says what is wrong where in the schema, as a JSON pointer. Of a
/// schema that is not wrong it says what excludes itself, if anything does:
/// where the grammar has no text, that is why. `note` says what is not checked.
bool buildSchemaGrammar(const JsonValue &schema, Grammar &grammar,
                        std::string &problem, std::string &note);

/// Any object of JSON.
void buildObjectGrammar(Grammar &grammar);

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_GRAMMAR_SCHEMAGRAMMAR_H

//===- SchemaKeywords.h - What keywords of a schema do ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_GRAMMAR_SCHEMAKEYWORDS_H
#define ATTUNE_LIB_RUNTIME_GRAMMAR_SCHEMAKEYWORDS_H

#include "attune/Runtime/Json.h"

#include <string_view>

namespace attune::runtime {

enum class KeywordUse {
  Read,    ///< it says something of values, and is understood
  Nothing, ///< it says nothing of values, as it is or with this value
  Unknown,
};
KeywordUse useOfKeyword(const JsonValue &schema, std::string_view keyword,
                        const JsonValue &value);

/// The keywords of a tuple's first items and of all others: drafts before
/// 2020-12 wrote the first ones as `items`.
struct TupleKeys {
  const char *firsts, *rest;
};
TupleKeys tupleKeys(const JsonValue &schema);
/// Whether a schema writes its first items both ways.
bool hasTwoTuples(const JsonValue &schema);

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_GRAMMAR_SCHEMAKEYWORDS_H

//===- SchemaKeywords.h - What keywords of a schema do ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_GRAMMAR_SCHEMAKEYWORDS_H
#define ATTUNE_LIB_RUNTIME_GRAMMAR_SCHEMAKEYWORDS_H

#include "attune/Runtime/Json.h"

#include <string>

namespace attune::runtime {

enum class KeywordUse {
  Read,    ///< it says something of values, and is understood
  Nothing, ///< it says nothing of values, as it is or with this value
  Unknown,
};
KeywordUse useOfKeyword(const JsonValue &schema, const std::string &keyword,
                        const JsonValue &value);

/// What {"$ref": reference} stands for: "#/$defs/name", with the escapes of
/// JSON pointers. Null: nothing, for the reason `why`.
const JsonValue *findByReference(const JsonValue &root,
                                 const JsonValue &reference, std::string &why);

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_GRAMMAR_SCHEMAKEYWORDS_H

//===- SchemaMerge.h - Several schemas as one -------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_GRAMMAR_SCHEMAMERGE_H
#define ATTUNE_LIB_RUNTIME_GRAMMAR_SCHEMAMERGE_H

#include "attune/Runtime/Json.h"

#include <string>

namespace attune::runtime {

enum class MergeResult : uint8_t {
  Good,
  Nothing, ///< no value is valid by both
  Refused, ///< one schema cannot say it
};

/// Makes `to` say what both schemas say, which have neither `allOf` nor `$ref`,
/// nor keywords that say nothing, and write tuples as `prefixItems`.
/// If that cannot be, `keyword` is the one that both have.
MergeResult mergeSchema(JsonValue &to, const JsonValue &from,
                        std::string &keyword);

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_GRAMMAR_SCHEMAMERGE_H

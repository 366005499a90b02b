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

/// Makes `to` say what both schemas say. False: they name `keyword` both, in a
/// way that no keyword can say at once.
bool mergeSchema(JsonValue &to, const JsonValue &from, std::string &keyword);

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_GRAMMAR_SCHEMAMERGE_H

//===- SchemaFormats.h - Formats of strings as patterns ---------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_GRAMMAR_SCHEMAFORMATS_H
#define ATTUNE_LIB_RUNTIME_GRAMMAR_SCHEMAFORMATS_H

#include <string>
#include <string_view>

namespace attune::runtime {

/// A pattern of texts that have a format of JSON Schema: valid ones alone, but
/// not all. Empty: the format is not known, and restricts nothing.
std::string patternOfFormat(std::string_view format);

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_GRAMMAR_SCHEMAFORMATS_H

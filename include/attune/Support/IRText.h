//===- IRText.h - Guards before MLIR's parser -------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_SUPPORT_IRTEXT_H
#define ATTUNE_SUPPORT_IRTEXT_H

#include <cstddef>
#include <string_view>

namespace attune {

/// The largest depth of brackets in brackets. MLIR's parser, verifier and
/// printer call themselves for each level; a model's IR has about 20.
constexpr unsigned kMaxIRDepth = 256;

/// The place of the first bracket of MLIR text that stands deeper than
/// kMaxIRDepth in others (or of as long a run of minus signs, which are levels
/// of an affine expression); npos if there is none. Strings and comments do
/// not count.
size_t findTooDeep(std::string_view text);

/// Whether `text` is MLIR bytecode.
bool isBytecode(std::string_view text);

} // namespace attune

#endif // ATTUNE_SUPPORT_IRTEXT_H

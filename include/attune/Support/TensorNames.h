//===- TensorNames.h - Names of tensors with a place for numbers *- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_SUPPORT_TENSORNAMES_H
#define ATTUNE_SUPPORT_TENSORNAMES_H

#include <cstdint>
#include <string>

namespace attune {

/// `{i}` in a tensor's name stands for the number of a layer, `{i+5}` for that
/// number plus five.
std::string substituteLayer(std::string name, int64_t layer);
/// `name` with the number of an expert (or other part) in place of `{e}`.
std::string substitutePart(std::string name, int64_t part);

} // namespace attune

#endif // ATTUNE_SUPPORT_TENSORNAMES_H

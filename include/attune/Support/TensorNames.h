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
#include <string_view>
#include <vector>

namespace attune {

/// `{i}` in a tensor's name stands for the number of a layer, `{i+5}` for that
/// number plus five, `{i=0,2-4}` for the number in that place of the list 0, 2,
/// 3, 4.
std::string substituteLayer(std::string name, int64_t layer);
/// The simplest of the forms for some numbers, one at least.
std::string placeOfNumbers(const std::vector<int64_t> &numbers);
/// `name` with the number of an expert (or other part) in place of `{e}`.
std::string substitutePart(std::string name, int64_t part);
/// Whether `name` ends with `end` and is more than that; `base` is what is
/// left.
bool cutEnd(const std::string &name, std::string_view end, std::string &base);

} // namespace attune

#endif // ATTUNE_SUPPORT_TENSORNAMES_H

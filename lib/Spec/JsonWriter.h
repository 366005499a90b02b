//===- JsonWriter.h - JSON laid out for readers -----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_SPEC_JSONWRITER_H
#define ATTUNE_LIB_SPEC_JSONWRITER_H

#include <nlohmann/json.hpp>
#include <string>

namespace attune::spec {

using Json = nlohmann::ordered_json;

/// Writes a value on one line if it fits, else with two spaces of indentation.
/// Broken UTF-8 is replaced. Ends with a newline.
std::string writeJson(const Json &value);

} // namespace attune::spec

#endif // ATTUNE_LIB_SPEC_JSONWRITER_H

//===- Inspect.h - Statistics for products ----------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_DRIVER_VERBS_INSPECT_H
#define ATTUNE_LIB_DRIVER_VERBS_INSPECT_H

#include "../Options/Options.h"
#include "../Report/Report.h"

#include "attune/Runtime/CompiledModel.h"
#include "attune/Spec/Spec.h"

#include <map>
#include <optional>
#include <string>

namespace attune::driver {

/// The sizes asked for; nothing, and an error, if the model lacks one of them.
std::optional<std::map<std::string, int64_t>>
chooseDims(const Options &options, const spec::Model &model, Report &report);

/// Whether the file is one that a compiler or a linker has made.
bool isBinary(const std::string &path);

/// The metadata of a product, which is read and not run: a binary may come from
/// anywhere. Nothing, and an error, if it is none of Attune's.
std::optional<runtime::ModelInfo> readProduct(const std::string &path,
                                              Report &report);

struct ModelSource;
/// What the model loses and saves by the heads that are pruned, in a line.
std::string describePruned(const ModelSource &source,
                           const std::map<std::string, int64_t> &dims);

} // namespace attune::driver

#endif // ATTUNE_LIB_DRIVER_VERBS_INSPECT_H

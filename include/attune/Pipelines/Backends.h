//===- Backends.h - The machines there are ----------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_PIPELINES_BACKENDS_H
#define ATTUNE_PIPELINES_BACKENDS_H

#include "attune/Target/Backend.h"

#include <memory>

namespace attune {

/// Adds one: what plugins call as they are loaded. False if the name is taken.
bool registerBackend(std::unique_ptr<Backend> backend);

/// Null if there is none of this name.
const Backend *findBackend(llvm::StringRef name);

/// The CPU, NVIDIA GPUs, then those of plugins.
std::vector<const Backend *> listBackends();

} // namespace attune

#endif // ATTUNE_PIPELINES_BACKENDS_H

//===- PoolingFiles.h - How sentence-transformers pool ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_DRIVER_POOLINGFILES_H
#define ATTUNE_LIB_DRIVER_POOLINGFILES_H

#include "attune/Support/Diagnostics.h"
#include "attune/Target/CPU/CPUBackend.h"

namespace attune::driver {

/// Reads modules.json and 1_Pooling/config.json of a folder made by
/// sentence-transformers, if they are there. A setting that `embed` does not
/// have is a warning; a file that cannot be read is an error.
bool readPooling(const std::string &folder, ProductInfo &info,
                 DiagnosticEngine &diags);

} // namespace attune::driver

#endif // ATTUNE_LIB_DRIVER_POOLINGFILES_H

//===- PictureFiles.h - Files about a model's pictures ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_DRIVER_PICTUREFILES_H
#define ATTUNE_LIB_DRIVER_PICTUREFILES_H

#include "ModelSource.h"

namespace attune::driver {

/// How pictures become the input of a model that sees them, and how its
/// processor writes them in a text, as the files beside config.json say it.
bool readPreparation(ModelSource &source, DiagnosticEngine &diags);

} // namespace attune::driver

#endif // ATTUNE_LIB_DRIVER_PICTUREFILES_H

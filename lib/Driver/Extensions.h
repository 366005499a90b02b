//===- Extensions.h - Passes that others bring ------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_DRIVER_EXTENSIONS_H
#define ATTUNE_LIB_DRIVER_EXTENSIONS_H

#include "Options.h"
#include "Report.h"

#include "attune/Pipelines/Pipelines.h"

namespace attune::driver {

/// Loads the plugins that were asked for and puts their passes where they are
/// to run. False, once reported, if one cannot be had.
bool loadExtensions(const Options &options, PipelineOptions &pipeline,
                    Report &report);

} // namespace attune::driver

#endif // ATTUNE_LIB_DRIVER_EXTENSIONS_H

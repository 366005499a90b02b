//===- Extensions.h - Plugins of the compiler -------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_DRIVER_OPTIONS_EXTENSIONS_H
#define ATTUNE_LIB_DRIVER_OPTIONS_EXTENSIONS_H

#include "../Modules.h"
#include "../Report/Report.h"
#include "Options.h"

#include "attune/Pipelines/Pipelines.h"

namespace attune::driver {

/// Loads the plugins that were asked for. From then on their registrations are
/// available: passes, kinds of layers, architectures of Hugging Face, backends.
/// False, once reported, if one cannot be had.
bool loadPlugins(const Options &options, Report &report);

/// Adds the dialects that loaded plugins bring.
void registerPluginDialects(mlir::DialectRegistry &registry);

/// Puts the passes that were asked for where they are to run, and the sequences
/// of a schedule. What is not possible has been reported.
ExitCode addInsertions(const Options &options, Modules &modules,
                       PipelineOptions &pipeline, Report &report);

} // namespace attune::driver

#endif // ATTUNE_LIB_DRIVER_OPTIONS_EXTENSIONS_H

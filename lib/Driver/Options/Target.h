//===- Target.h - Which machine, and what is made for it --------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_DRIVER_OPTIONS_TARGET_H
#define ATTUNE_LIB_DRIVER_OPTIONS_TARGET_H

#include "../Report/Report.h"
#include "Options.h"

namespace attune::driver {

/// Finds the backend, its machine and its product that --target, --cpu, --gpu,
/// --emit and OUT's suffix mean; plugins must be loaded by then. A product that
/// only another backend makes chooses that one. False, once reported, if
/// something is not known.
bool chooseTarget(Options &options, Report &report);

/// Why what is asked for cannot be cut among ranks, up to what to do instead:
/// "is for CPUs; for --target=cuda "; empty if it can.
std::string findMeshProblem(const Options &options, const MeshAxes &axes);

} // namespace attune::driver

#endif // ATTUNE_LIB_DRIVER_OPTIONS_TARGET_H

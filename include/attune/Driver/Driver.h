//===- Driver.h - The attune command line -----------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_DRIVER_DRIVER_H
#define ATTUNE_DRIVER_DRIVER_H

namespace attune {

/// Runs `attune VERB ...` and returns the program's exit code. Results go to
/// stdout or the file asked for, everything else to stderr.
int runDriver(int argc, char **argv);

} // namespace attune

#endif // ATTUNE_DRIVER_DRIVER_H

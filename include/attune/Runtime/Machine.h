//===- Machine.h - What a model needs of the machine ------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_RUNTIME_MACHINE_H
#define ATTUNE_RUNTIME_MACHINE_H

#include "attune/Runtime/Error.h"

#include <string>
#include <vector>

namespace attune::runtime {

/// Whether the CPU has all of `needs`, flags as `cpuinfo` lists them; true
/// where there is no such list. For AMX it asks the kernel, which lends the
/// tiles to a process that asks before its first use of them.
bool checkMachine(const std::vector<std::string> &needs, Error &error,
                  const char *cpuinfo = "/proc/cpuinfo");

/// Asks for AMX tiles alone; 0 or what errno says.
int requestTiles();

} // namespace attune::runtime

#endif // ATTUNE_RUNTIME_MACHINE_H

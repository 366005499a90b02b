//===- Machine.h - CPU features that a model needs --------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_RUNTIME_MACHINE_H
#define ATTUNE_RUNTIME_MACHINE_H

#include "attune/Runtime/Error.h"
#include "attune/Runtime/Metadata.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace attune::runtime {

/// The registers that one leaf of CPUID returns.
struct CpuRegisters {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

/// The way to ask a CPU: by CPUID, which answers zeros for a leaf that it does
/// not have, and by XGETBV of register 0, which tells whose registers the
/// kernel saves. Unlike /proc/cpuinfo both are there in any sandbox.
struct CpuReader {
  CpuRegisters (*cpuid)(uint32_t leaf, uint32_t subleaf);
  uint64_t (*xcr0)();
};

/// The CPU that this runs on; null where there is no CPUID.
const CpuReader *thisCpu();

/// Whether the CPU has all of `needs`, features by the names that `flags` of
/// /proc/cpuinfo gives them; true where nobody can be asked. For AMX it asks
/// the kernel, which lends the tiles to a process that asks before its first
/// use of them.
bool checkMachine(const std::vector<std::string> &needs, Error &error,
                  const CpuReader *cpu = thisCpu());

/// The last of `variants` that this CPU has all of, or the one that `forced`
/// names. Nothing if that is none of them, or if the CPU lacks something.
std::optional<size_t> chooseVariant(const std::vector<CpuVariantInfo> &variants,
                                    const char *forced, Error &error,
                                    const CpuReader *cpu = thisCpu());
/// The environment variable that forces one, for tests and comparisons.
inline constexpr char kForcedCpu[] = "ATTUNE_CPU";

/// Asks for AMX tiles alone; 0 or what errno says.
int requestTiles();

} // namespace attune::runtime

#endif // ATTUNE_RUNTIME_MACHINE_H

//===- MachineProbe.h - Peak rates of this machine --------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_TARGET_CPU_MACHINEPROBE_H
#define ATTUNE_TARGET_CPU_MACHINEPROBE_H

#include "llvm/Support/Error.h"

#include <memory>
#include <optional>
#include <string>

namespace attune {

/// Rates of all threads together; what the CPU has no instruction for is
/// absent. A multiply-add counts as two operations.
struct MachinePeak {
  double f32Gflops = 0;             ///< fused multiply-add
  std::optional<double> bf16Gflops; ///< vdpbf16ps; tdpbf16ps if there is AMX
  std::optional<double> int8Gops;   ///< vpdpbusd
  double readGBs = 0;               ///< reads of memory that no cache holds

  /// The better of both: other work on the machine only ever slows a probe.
  void raise(const MachinePeak &other);
};

/// The type of the factors; sums are f32, or i32 of bytes.
enum class Factors { F32, Bf16, Int8 };

/// Loops that do nothing but one kind of work, compiled for this machine. The
/// figures of a benchmark are shares of what they reach in the same minute.
class MachineProbe {
public:
  static llvm::Expected<MachineProbe> create(unsigned threads);
  ~MachineProbe();
  MachineProbe(MachineProbe &&);

  /// About half a second. Compute runs on registers alone, `threads` at once;
  /// reads stream 256 MiB, each thread its own part.
  MachinePeak measure();

  /// Gigabytes a second that one pass over the 256 MiB reads.
  double measureReads();

  /// Gigaflops of multiply-adds within some milliseconds: what stands beside
  /// one run. Where the CPU has no instruction for such factors, of f32.
  double measureProducts(Factors factors);

private:
  struct Impl;
  explicit MachineProbe(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

/// LLVM IR of `float name(i64 n, ptr operands)`, which multiplies the same AMX
/// tiles `products` times in each of n >> kTileProbeShift iterations.
inline constexpr int kTileProbeShift = 5;
std::string emitTileProbe(const char *name, int products, bool bytes);
/// The declarations that these functions of a module share.
std::string declareTiles();

} // namespace attune

#endif // ATTUNE_TARGET_CPU_MACHINEPROBE_H

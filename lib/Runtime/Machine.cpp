//===- Machine.cpp - CPU features that a model needs ----------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Runtime/Machine.h"

#include <cerrno>
#include <cstring>
#include <sys/syscall.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace attune::runtime {

#if defined(__x86_64__)
static CpuRegisters readCpuid(uint32_t leaf, uint32_t subleaf) {
  CpuRegisters r;
  if (!__get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx))
    return {};
  return r;
}

static uint64_t readXcr0() {
  uint32_t low, high;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t(high) << 32 | low;
}

const CpuReader *thisCpu() {
  static constexpr CpuReader reader = {readCpuid, readXcr0};
  return &reader;
}
#else
const CpuReader *thisCpu() { return nullptr; }
#endif

namespace {
/// Where CPUID tells of a feature, and the state that the kernel must save for
/// programs to use its registers (bits of XCR0).
struct Feature {
  const char *name; ///< as `flags` of /proc/cpuinfo has it
  uint32_t leaf, subleaf;
  uint32_t CpuRegisters::*word;
  unsigned bit;
  uint64_t state;
};
} // namespace

// Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume
// 2A, CPUID, and volume 1, chapter 13 (XCR0).
constexpr uint64_t kYmm = 0x6, kZmm = 0xe6, kTiles = 0x60000;
static constexpr Feature features[] = {
    {"fma", 1, 0, &CpuRegisters::ecx, 12, kYmm},
    {"movbe", 1, 0, &CpuRegisters::ecx, 22, 0},
    {"f16c", 1, 0, &CpuRegisters::ecx, 29, kYmm},
    {"bmi1", 7, 0, &CpuRegisters::ebx, 3, 0},
    {"avx2", 7, 0, &CpuRegisters::ebx, 5, kYmm},
    {"bmi2", 7, 0, &CpuRegisters::ebx, 8, 0},
    {"avx512f", 7, 0, &CpuRegisters::ebx, 16, kZmm},
    {"avx512dq", 7, 0, &CpuRegisters::ebx, 17, kZmm},
    {"avx512cd", 7, 0, &CpuRegisters::ebx, 28, kZmm},
    {"avx512bw", 7, 0, &CpuRegisters::ebx, 30, kZmm},
    {"avx512vl", 7, 0, &CpuRegisters::ebx, 31, kZmm},
    {"avx512_vbmi", 7, 0, &CpuRegisters::ecx, 1, kZmm},
    {"avx512_vnni", 7, 0, &CpuRegisters::ecx, 11, kZmm},
    {"amx_bf16", 7, 0, &CpuRegisters::edx, 22, kTiles},
    {"avx512_fp16", 7, 0, &CpuRegisters::edx, 23, kZmm},
    {"amx_tile", 7, 0, &CpuRegisters::edx, 24, kTiles},
    {"amx_int8", 7, 0, &CpuRegisters::edx, 25, kTiles},
    {"avx_vnni", 7, 1, &CpuRegisters::eax, 4, kYmm},
    {"avx512_bf16", 7, 1, &CpuRegisters::eax, 5, kZmm},
};

static bool hasFeature(const CpuReader &cpu, const std::string &name) {
  for (const Feature &feature : features) {
    if (name != feature.name)
      continue;
    if (!(cpu.cpuid(feature.leaf, feature.subleaf).*feature.word >>
              feature.bit &
          1))
      return false;
    if (!feature.state)
      return true;
    // XGETBV is there where the kernel has switched XSAVE on.
    constexpr unsigned osxsave = 27;
    return (cpu.cpuid(1, 0).ecx >> osxsave & 1) &&
           (cpu.xcr0() & feature.state) == feature.state;
  }
  return false;
}

int requestTiles() {
#if defined(__linux__) && defined(__x86_64__)
  constexpr long kRequestPermission = 0x1023; // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;              // XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0 ? 0
                                                                     : errno;
#else
  return ENOTSUP;
#endif
}

bool checkMachine(const std::vector<std::string> &needs, Error &error,
                  const CpuReader *cpu) {
  if (needs.empty())
    return true;
  bool tiles = false;
  std::string missing;
  for (const std::string &need : needs) {
    tiles |= need == "amx_tile";
    if (cpu && !hasFeature(*cpu, need))
      missing += (missing.empty() ? "" : ", ") + need;
  }
  if (!missing.empty())
    return error.badInput("the model is compiled for another CPU: this one "
                          "lacks " +
                          missing + " (--cpu of attune compile chooses)");
  if (!tiles)
    return true;
  if (int problem = requestTiles())
    return error.badInput("the model needs AMX, which the kernel does not lend "
                          "to this process: " +
                          std::string(std::strerror(problem)));
  return true;
}

std::optional<size_t> chooseVariant(const std::vector<CpuVariantInfo> &variants,
                                    const char *forced, Error &error,
                                    const CpuReader *cpu) {
  if (forced && !*forced)
    forced = nullptr;
  std::string names;
  for (size_t i = variants.size(); i-- > 0;) {
    const CpuVariantInfo &variant = variants[i];
    names = variant.cpu + (names.empty() ? "" : ", ") + names;
    if (forced && variant.cpu != forced)
      continue;
    // The model needs what the least of its variants needs.
    if (checkMachine(variant.needs, error, cpu))
      return i;
    if (forced || i == 0)
      return std::nullopt;
    error = {};
  }
  error.badInput(std::string(kForcedCpu) + "=" + (forced ? forced : "") +
                 " names no code of this model; it has " + names);
  return std::nullopt;
}

} // namespace attune::runtime

//===- TargetDescription.cpp - Properties of CPUs for code generation -----===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/TargetInfo/TargetDescription.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/bit.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/AArch64TargetParser.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"
#include "llvm/TargetParser/X86TargetParser.h"

#include <algorithm>
#include <fstream>

namespace attune {

int64_t TargetDescription::getKeyBlock() const {
  if (!gpu.empty())
    return getTileColumns(); // a tile is one thread's, and so is its scratch
  int64_t keys = level1Bytes / 4 / (getTileRows() * 4);
  return std::max<int64_t>(keys / getTileColumns() * getTileColumns(), 64);
}

int64_t TargetDescription::getFetchSteps() const {
  // A row of the tile is two registers wide.
  int64_t cycles = std::max<int64_t>(getTileRows() * 2 / fmaPorts, 1);
  // LLVM fully unrolls a loop of fewer steps, and then runs out of registers:
  // half the speed.
  int64_t steps = std::max<int64_t>(lineCycles / cycles, 4);
  return llvm::bit_floor(uint64_t(steps));
}

int64_t TargetDescription::getCrowdedWayBytes() const {
  // First-level caches of other architectures have larger ways than a page, and
  // how many is not known here. A matrix unit reads more rows at a time.
  constexpr int64_t kRoomy = 12;
  if (gpu.empty() && llvm::Triple(triple).isX86() && !tilesPairs() &&
      std::max(getTileRows(), kRoomy) <= level1Bytes / getWayBytes())
    return 0;
  return getRowSpacing();
}

static std::unique_ptr<llvm::MCSubtargetInfo>
subtarget(const llvm::Triple &triple, llvm::StringRef cpu,
          llvm::StringRef features) {
  std::string error;
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return nullptr;
  return std::unique_ptr<llvm::MCSubtargetInfo>(
      target->createMCSubtargetInfo(triple, cpu, features));
}

void initializeTargets() {
  static bool done = [] {
    llvm::InitializeAllTargetInfos();
    llvm::InitializeAllTargets();
    llvm::InitializeAllTargetMCs();
    llvm::InitializeAllAsmPrinters();
    llvm::InitializeAllAsmParsers();
    return true;
  }();
  (void)done;
}

/// The size of a data cache of this machine, or 0.
static int64_t hostCacheBytes(int level) {
  for (int index = 0; index < 8; ++index) {
    std::string folder =
        "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index);
    std::string type, size;
    int found = 0;
    std::ifstream(folder + "/level") >> found;
    std::ifstream(folder + "/type") >> type;
    std::ifstream(folder + "/size") >> size;
    if (found == level && type != "Instruction" && !size.empty())
      return std::strtoll(size.c_str(), nullptr, 10) *
             (size.back() == 'M' ? 1 << 20 : 1 << 10);
  }
  return 0;
}

namespace {
/// First- and second-level caches of a core, in KiB, and multiply-adds of its
/// widest registers in a cycle.
struct Core {
  llvm::StringLiteral cpu;
  int64_t level1, level2, fmas;
  enum Kind { Plain, Mesh, Zen3, Zen5 } kind = Plain; ///< see describeCore
};
} // namespace

/// From the makers' manuals; the smallest size of a core that comes with
/// several. Other CPUs have the defaults of TargetDescription.
static constexpr Core kCores[] = {
    {"haswell", 32, 256, 2},
    {"broadwell", 32, 256, 2},
    {"skylake", 32, 256, 2},
    {"skylake-avx512", 32, 1024, 2},
    {"cascadelake", 32, 1024, 2},
    {"cooperlake", 32, 1024, 2},
    {"icelake-client", 48, 512, 1},
    {"icelake-server", 48, 1280, 2},
    {"tigerlake", 48, 1280, 1},
    {"alderlake", 48, 1280, 2},
    {"raptorlake", 48, 2048, 2},
    {"sapphirerapids", 48, 2048, 2, Core::Mesh},
    {"emeraldrapids", 48, 2048, 2, Core::Mesh},
    {"graniterapids", 48, 2048, 2, Core::Mesh},
    {"znver1", 32, 512, 1},
    {"znver2", 32, 512, 2},
    {"znver3", 32, 512, 2, Core::Zen3},
    {"znver4", 32, 1024, 1},
    {"znver5", 48, 1024, 2, Core::Zen5},
    {"neoverse-n1", 64, 512, 2},
    {"neoverse-n2", 64, 512, 2},
    {"neoverse-v1", 64, 1024, 4},
    {"neoverse-v2", 64, 1024, 4},
};

/// Measured on Zen 3: one row of 16 bits reads 12 to 13 GB/s a thread, or 15 if
/// it asks for what lies so far ahead, and one of 4 or 8 bits a tenth more of
/// what memory gives; f32 reads 14 as it is, 13 if it asks.
static constexpr int64_t kZen3StreamBytes = 1024;

/// Describes the core by the CPU's name. The host's caches are those that it
/// reports; a virtual machine may report none.
static void describeCore(TargetDescription &target, bool host) {
  for (const Core &core : kCores)
    if (core.cpu == target.cpu) {
      target.fmaPorts = core.fmas;
      target.level1Bytes = core.level1 << 10;
      target.level2Bytes = core.level2 << 10;
      if (core.kind == Core::Mesh) { // Intel's servers with AMX
        // Measured on Granite Rapids: a thread reads 12 GB/s, or 19 if it asks
        // for lines a page ahead; vdpbf16ps starts every other cycle.
        target.streamBytes = 4096;
        target.slowPairs = true;
        target.farLevel3 = true;
      }
      if (core.kind == Core::Zen3)
        target.narrowStreamBytes = kZen3StreamBytes;
      // Measured there: a core drops fetches that come faster than lines do,
      // and gets more of memory if they go to the first-level cache.
      target.fetchesNear = core.kind == Core::Zen5;
    }
  // Zen 3 was measured, and stands for CPUs that have no more than AVX2.
  if (target.cpu == "x86-64-v3")
    target.narrowStreamBytes = kZen3StreamBytes;
  if (!host)
    return;
  if (int64_t bytes = hostCacheBytes(1))
    target.level1Bytes = bytes;
  if (int64_t bytes = hostCacheBytes(2))
    target.level2Bytes = bytes;
}

/// Reads off LLVM what the CPU `target` has: false if no architecture of these
/// knows it.
static bool describeInstructions(TargetDescription &target) {
  // A name of another architecture compiles for it: the first triple whose
  // target knows the name wins.
  llvm::Triple host(llvm::sys::getDefaultTargetTriple());
  for (llvm::StringRef name :
       {host.getTriple().c_str(), "x86_64-unknown-linux-gnu",
        "aarch64-unknown-linux-gnu"}) {
    llvm::Triple triple(name);
    auto info = subtarget(triple, "", "");
    if (!info || !info->isCPUStringValid(target.cpu))
      continue;
    target.triple = triple.getTriple();
    info = subtarget(triple, target.cpu, target.features);
    if (triple.isX86()) {
      // The features that the sizes below are chosen by, and those that come
      // with them.
      for (auto [feature, linuxName] :
           {std::pair("+avx2", "avx2"), std::pair("+fma", "fma"),
            std::pair("+avx512f", "avx512f"),
            std::pair("+avx512vl", "avx512vl"),
            std::pair("+avx512bf16", "avx512_bf16")})
        if (info->checkFeatures(feature))
          target.needs.push_back(linuxName);
      if (info->checkFeatures("+avx512f")) {
        target.vectorBits = 512;
        target.vectorRegisters = 32;
        target.bf16Pairs = info->checkFeatures("+avx512bf16");
        target.bf16Tiles = info->checkFeatures("+amx-tile,+amx-bf16");
        target.byteTiles = target.bf16Tiles && info->checkFeatures("+amx-int8");
      } else if (info->checkFeatures("+avx2,+fma")) {
        target.vectorBits = 256;
      } else {
        target.vectorBits = 128;
      }
      bool wide = target.vectorBits == 512;
      if (target.vectorBits > 128 &&
          info->checkFeatures(wide ? "+avx512vnni" : "+avxvnni")) {
        target.byteProducts = ByteProducts::Quads;
        target.needs.push_back(wide ? "avx512_vnni" : "avx_vnni");
      } else if (!wide || info->checkFeatures("+avx512bw")) {
        target.byteProducts = ByteProducts::Words;
      }
    } else {
      target.vectorBits = 128;
      target.vectorRegisters = 32;
    }
    return true;
  }
  return false;
}

std::optional<TargetDescription> describeTarget(const std::string &cpu) {
  initializeTargets();
  TargetDescription target;
  bool native = cpu.empty() || cpu == "native";
  target.cpu = native ? llvm::sys::getHostCPUName().str() : cpu;
  if (native) {
    // The CPU's name may promise more than a virtual machine lets through.
    for (auto &feature : llvm::sys::getHostCPUFeatures())
      target.features += (target.features.empty() ? "" : ",") +
                         std::string(feature.second ? "+" : "-") +
                         feature.first().str();
  }
  // A virtual machine may tell another name than that of its processor.
  if (native && llvm::sys::getHostCPUFeatures().lookup("amx-tile") &&
      llvm::none_of(kCores, [&](const Core &core) {
        return core.kind == Core::Mesh && core.cpu == target.cpu;
      }))
    target.cpu = "sapphirerapids";
  describeCore(target, native);
  if (!describeInstructions(target))
    return std::nullopt;
  return target;
}

std::vector<CpuVariant> describeVariants() {
  initializeTargets();
  struct Level {
    const char *name, *cpu, *features;
    const char *core; ///< whose sizes it is made for; empty: the defaults
    std::vector<std::string> needs; ///< beside those that sizes depend on
  };
  const std::vector<std::string> third = {"bmi1", "bmi2", "f16c", "movbe"};
  std::vector<std::string> fourth = third;
  fourth.insert(fourth.end(), {"avx512bw", "avx512cd", "avx512dq"});
  std::vector<std::string> tiles = fourth;
  tiles.insert(tiles.end(), {"amx_bf16", "amx_tile"});
  // The last two are what --cpu=znver4 and newer and --cpu=sapphirerapids and
  // newer have of instructions that kernels are written in, and no more.
  const Level levels[] = {
      {"x86-64-v3", "x86-64-v3", "", "", third},
      {"x86-64-v4", "x86-64-v4", "", "", fourth},
      {"avx512-bf16", "x86-64-v4", "+avx512vnni,+avx512bf16", "znver5", fourth},
      {"amx-bf16", "x86-64-v4", "+avx512vnni,+avx512bf16,+amx-tile,+amx-bf16",
       "sapphirerapids", tiles}};
  std::vector<CpuVariant> variants;
  int64_t columns = 0;
  for (const Level &level : levels) {
    TargetDescription machine;
    machine.cpu = level.core;
    describeCore(machine, /*host=*/false);
    machine.cpu = level.cpu;
    machine.features = level.features;
    if (!describeInstructions(machine))
      return {};
    machine.needs.insert(machine.needs.end(), level.needs.begin(),
                         level.needs.end());
    columns = std::max(columns, machine.getTileColumns());
    variants.push_back({level.name, std::move(machine)});
  }
  for (CpuVariant &variant : variants) {
    variant.machine.tileRegisters = columns / variant.machine.getLanes();
    variant.machine.sharesWeights = variant.machine.sharesPairs = true;
  }
  return variants;
}

namespace {
/// The oldest PTX version that has all of a chip's instructions: older drivers
/// read it too. lib/Runtime/Cuda/CudaDevice.cpp names the chips to users.
struct Gpu {
  const char *chip, *ptx;
};
constexpr Gpu gpus[] = {{"sm_80", "+ptx70"},  {"sm_86", "+ptx71"},
                        {"sm_87", "+ptx74"},  {"sm_89", "+ptx78"},
                        {"sm_90", "+ptx78"},  {"sm_90a", "+ptx83"},
                        {"sm_100", "+ptx86"}, {"sm_100a", "+ptx86"},
                        {"sm_120", "+ptx87"}, {"sm_120a", "+ptx87"}};
} // namespace

bool addGpu(TargetDescription &target, const std::string &chip) {
  if (ptxFeature(chip).empty())
    return false;
  target.gpu = chip;
  return true;
}

bool TargetDescription::hasTensorCores() const {
  return !ptxFeature(gpu).empty();
}

std::string ptxFeature(const std::string &chip) {
  for (const Gpu &gpu : gpus)
    if (chip == gpu.chip)
      return gpu.ptx;
  return "";
}

std::vector<std::string> listGpus() {
  std::vector<std::string> names;
  for (const Gpu &gpu : gpus)
    names.push_back(gpu.chip);
  return names;
}

std::vector<std::string> listTargets() {
  llvm::SmallVector<llvm::StringRef> known;
  llvm::X86::fillValidCPUArchList(known, /*Only64Bit=*/true);
  llvm::AArch64::fillValidCPUArchList(known);
  std::vector<std::string> names = {"native"};
  names.insert(names.end(), known.begin(), known.end());
  return names;
}

} // namespace attune

//===- TargetDescription.h - Properties of target machines ----------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_TARGETINFO_TARGETDESCRIPTION_H
#define ATTUNE_TARGETINFO_TARGETDESCRIPTION_H

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace attune {

/// The size of a cache line on all CPUs that code is made for. Padded rows,
/// slots of frames and prefetches are counted in it.
inline constexpr int64_t kLineBytes = 64;

/// The instructions that multiply bytes and sum the products in i32.
enum class ByteProducts {
  Any,   ///< number by number, as any CPU can
  Words, ///< two products of 16 bits at once (pmaddwd)
  Quads, ///< four of unsigned by signed bytes at once (VNNI's vpdpbusd)
};

/// A CPU, or a GPU with the CPU that launches its kernels, as far as tile sizes
/// depend on it, and the tile sizes that follow.
struct TargetDescription {
  std::string triple;       ///< e.g. x86_64-unknown-linux-gnu
  std::string cpu;          ///< LLVM's name, e.g. x86-64-v3, znver3
  std::string features;     ///< LLVM's feature string; empty: the CPU's own
  int64_t vectorBits = 256; ///< of one register
  int64_t vectorRegisters = 16;
  /// The registers that a row of a product's tile takes, and a row of a panel
  /// of weights with it.
  int64_t tileRegisters = 2;
  /// The CPU adds products of pairs of bf16 to f32 (AVX512-BF16).
  bool bf16Pairs = false;
  /// A product of pairs takes as long as four multiply-adds, not as one.
  bool slowPairs = false;
  /// Weights are laid out as other CPUs want them, too: see describeVariants.
  bool sharesWeights = false;
  bool sharesPairs = false; ///< with bf16 in pairs
  /// It multiplies whole tiles of bf16, 16 rows at once (AMX).
  bool bf16Tiles = false;
  bool byteTiles = false; ///< and of bytes, if of bf16
  ByteProducts byteProducts = ByteProducts::Any;
  int64_t level1Bytes = 32 << 10;
  int64_t level2Bytes = 512 << 10;
  /// Multiply-adds of whole registers that start in a cycle.
  int64_t fmaPorts = 2;
  /// Cycles from asking memory for a line until it is there, and from one line
  /// to the next for a core that asks early: 100 ns and 10 GB/s at 4 GHz.
  int64_t memoryCycles = 400, lineCycles = 25;
  /// A loop that reads memory once asks for what lies so far ahead; 0: the core
  /// does, as fast as memory gives it.
  int64_t streamBytes = 0;
  /// The same for numbers of 16 bits and fewer, if that is more: what widens
  /// them leaves a core less room to run ahead.
  int64_t narrowStreamBytes = 0;
  /// Prefetches to the first-level cache arrive sooner than those to the
  /// second: see getNearBytes.
  bool fetchesNear = false;
  /// The third level of cache takes as long as memory, nearly: what is read
  /// again and again should lie in the second.
  bool farLevel3 = false;
  /// Threads that work is cut for. How many there will be is known when a
  /// program runs, and no result may depend on it.
  int64_t threads = 16;
  /// The chip that runs the kernels, e.g. sm_90a; empty: the CPU does.
  std::string gpu;
  /// Tensor cores may round numbers of f32 to tf32.
  bool tf32 = false;
  /// A decoder's step is also made as one kernel.
  bool persistentKernel = false;
  /// Features that the CPU must have for any code made for it, as Linux calls
  /// them (/proc/cpuinfo). Tiles are not among them: few models take them.
  std::vector<std::string> needs;

  /// f32 lanes of a register.
  int64_t getLanes() const { return vectorBits / 32; }
  /// Register tile of a matrix product: two registers wide, and as many rows in
  /// sixes as leave room for the two vectors of B and a broadcast of A. With 14
  /// rows of 32 registers, rows and weights from memory were more streams than
  /// Zen 5 fetches ahead, and took twice the time of 12. Wider tiles have one
  /// vector of B at a time.
  /// On a GPU it is one thread's, whose registers are few.
  int64_t getTileColumns() const {
    return gpu.empty() ? tileRegisters * getLanes() : 8;
  }
  int64_t getTileRows() const {
    if (!gpu.empty())
      return 4;
    return tileRegisters == 2 ? (vectorRegisters - 3) / 2 / 6 * 6
                              : (vectorRegisters - 1) / tileRegisters;
  }
  /// Whether kernels multiply pairs of bf16 as they are rather than widened.
  bool multipliesPairs() const { return bf16Pairs && gpu.empty(); }
  /// Whether weights of bf16 lie in pairs.
  bool keepsPairs() const { return multipliesPairs() || sharesPairs; }
  /// Whether they multiply by powers of two in one step (AVX-512).
  bool scalesPowers() const { return gpu.empty() && getLanes() == 16; }
  /// Whether they multiply 16 bits on tensor cores, as NVIDIA's chips do from
  /// sm_80 on.
  bool hasTensorCores() const;
  /// Whether they multiply bf16 as it is one way or the other.
  bool multipliesBf16() const { return multipliesPairs() || hasTensorCores(); }
  /// Fewest rows that multiply weights in the registers of a matrix unit; 0:
  /// there is none. Weights come from memory no faster than vectors multiply
  /// them by fewer rows; six take a fifth less time in half-empty registers.
  int64_t getMatrixRows() const { return bf16Tiles && gpu.empty() ? 6 : 0; }
  /// Whether it takes weights of bf16.
  bool tilesPairs() const { return getMatrixRows() > 0 && multipliesPairs(); }
  /// Inputs of a part of a sum in a matrix unit: 32 rows and a panel of as many
  /// columns, in bf16, take a third of the first-level cache each. The last
  /// third is left for data that passes by.
  int64_t getMatrixDepth() const { return level1Bytes / 3 / (32 * 2); }
  /// Bytes of its sums that wait for the next part: a quarter of the
  /// second-level cache, which rows and panels pass through. No more than the
  /// stack of any thread has.
  int64_t getMatrixBytes() const {
    return std::min<int64_t>(level2Bytes / 4, 512 << 10);
  }
  /// Whether each tile has a thread of its own: those of a GPU are many.
  bool tilesInParallel() const { return !gpu.empty(); }
  /// Results of a tile that wait in the first-level cache, beside incoming
  /// data, for ops that take whole heads of them.
  int64_t getTileBytes() const { return level1Bytes / 2; }
  /// Values of attention that stay in the first-level cache while few rows read
  /// them in turn, beside as many prefetched ones.
  int64_t getValueBytes() const { return level1Bytes / 4; }
  /// Steps of a sum, each of one element of all rows of a register tile, from
  /// one line that is fetched for later to the next: about as long as memory
  /// takes for it. A power of two, which divides most depths.
  int64_t getFetchSteps() const;
  /// Bytes that are requested before the first of them arrives from memory.
  int64_t getFetchBytes() const {
    return memoryCycles / lineCycles * kLineBytes;
  }
  /// Keys and values of attention that are fetched from memory to the
  /// first-level cache and stay there, beside scores and other data, until few
  /// rows read them; 0: they are fetched to the second-level cache.
  int64_t getNearBytes() const { return fetchesNear ? level1Bytes * 2 / 3 : 0; }
  /// Multiply-adds that are written out rather than put in a loop, whose last
  /// branch is mispredicted: twice of what pass in the 16 cycles of that.
  int64_t getUnrolled() const { return 2 * 16 * fmaPorts; }
  /// One way of the first-level cache: places that are so far apart share a
  /// set. A cache that looks up while the address is translated has ways of a
  /// page, as those of x86 and ARM do. 0 on a GPU, whose rows are staged.
  int64_t getWayBytes() const { return gpu.empty() ? 4096 : 0; }
  /// The same where a set may have too few places for a tile's rows and the
  /// weights that pass: a product copies rows that share one. 0: it reads them
  /// where they are. On Zen 5 (12 places for 12 rows, or for 6 of AVX2) a copy
  /// took 1 to 4% of a product's time. On Zen 3 (8 places for 6 rows) it saves
  /// 5 to 7%.
  int64_t getCrowdedWayBytes() const;
  /// Rows of a buffer get space between them if they are a multiple of this
  /// many bytes apart. A matrix unit reads 32 rows at a time, eight lines of
  /// each: at half a way they are too many for their sets, too.
  int64_t getRowSpacing() const {
    return tilesPairs() ? getWayBytes() / 2 : getWayBytes();
  }
  /// Whether a product's tiles of many rows have half of the rows and twice the
  /// columns: half of the rows fit into a cache set where all do not, and a
  /// step of the sum takes fewer loads, but two registers more. Weights come
  /// from the second-level cache twice as often, which one multiply-add in a
  /// cycle leaves time for (Zen 4: 0 to 6% less time, 13% where the copies
  /// would be slow).
  bool hasWideTiles() const {
    return getCrowdedWayBytes() != 0 && fmaPorts == 1 &&
           vectorRegisters >= 32 && !tilesPairs();
  }
  /// Weights that may stay in the second-level cache while rows stream past.
  /// On a GPU there are more threads than panels.
  int64_t getPanelBytes() const {
    return gpu.empty() ? level2Bytes / (farLevel3 ? 4 : 2) : 1;
  }
  /// Attention: rows of queries of a tile, which each thread takes some of, and
  /// the bytes that rows and their sums may take where tiles are many. A tile
  /// packs all keys: with 192 rows that is a tenth of its time, with 512 a
  /// thirtieth. The bytes are what 512 rows of 128 channels need in tiles of
  /// 12: few enough for the stack of any thread. They need not fit a cache,
  /// since a step passes through them once.
  int64_t getQueryBlock() const { return gpu.empty() ? 192 : getTileRows(); }
  int64_t getQueryBytes() const { return gpu.empty() ? 516 << 10 : 0; }
  /// Keys at a time: as many as scores of a register tile fit a quarter of the
  /// first-level cache, and as packed keys and values fit one of the second.
  /// The more, the less often sums are rescaled.
  int64_t getKeyBlock() const;
  int64_t getKeyBytes() const { return gpu.empty() ? level2Bytes / 4 : 0; }
  /// Keys and values of a part of the keys that has a thread for itself, at
  /// least: less is not worth the merging.
  int64_t getPartBytes() const { return level2Bytes / 4; }
};

/// Describes a CPU by the name given to --cpu: "native", an x86-64 level, any
/// name LLVM knows ("znver4", "neoverse-n1"). Nothing if LLVM does not know it.
/// A name has the same sizes on every machine; "native" has this machine's.
std::optional<TargetDescription> describeTarget(const std::string &cpu);

/// One of the codes that a product for several CPUs has side by side.
struct CpuVariant {
  std::string name;
  TargetDescription machine;
};

/// The variants of --cpu=multi, each for CPUs that have more than those before.
/// They read the same weights: panels are as wide as the widest registers want
/// them, bf16 lies in pairs if some multiply it so, and gains of norms are in
/// matrices for all or for none.
std::vector<CpuVariant> describeVariants();

/// Adds a GPU by the name given to --gpu ("sm_80", "sm_90a"). False if Attune
/// makes no code for it.
bool addGpu(TargetDescription &target, const std::string &chip);

/// Registers LLVM's targets, once.
void initializeTargets();

/// The PTX version that knows the chip, as LLVM spells the feature: "+ptx80".
std::string ptxFeature(const std::string &chip);

/// Names that addGpu knows, for messages.
std::vector<std::string> listGpus();

/// Names that describeTarget knows for the same architecture, for messages.
std::vector<std::string> listTargets();

} // namespace attune

#endif // ATTUNE_TARGETINFO_TARGETDESCRIPTION_H

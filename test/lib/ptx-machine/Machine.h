//===- Machine.h - PTX on a CPU, for tests ----------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads the text that a product carries and runs its kernels, thread by thread,
// as the PTX manual defines them. What a GPU would answer with an error is one
// here: an address that was not allocated, or one that its access is not
// aligned to. Threads of a block take turns at barriers and at instructions of
// whole warps.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_TEST_PTXMACHINE_MACHINE_H
#define ATTUNE_TEST_PTXMACHINE_MACHINE_H

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace ptx {

enum class Type : uint8_t {
  Pred,
  B8,
  B16,
  B32,
  B64,
  U8,
  U16,
  U32,
  U64,
  S8,
  S16,
  S32,
  S64,
  F16,
  BF16,
  F32,
  F64,
  F16x2,
  BF16x2,
  F32x2,
  TF32,
  None
};
unsigned bytesOf(Type type);

enum class Space : uint8_t { Generic, Global, Local, Shared, Param };

/// What a warp does together; its lanes wait for each other in front of it.
enum class Together : uint8_t { No, Block, Warp };

struct Thread;
struct Instruction {
  void (*run)(Thread &, const Instruction &) = nullptr;
  /// Of a warp: all its lanes stand here.
  void (*runWarp)(Thread *const *lanes, const Instruction &) = nullptr;
  int32_t guard = -1; ///< register of the predicate
  bool unless = false;
  Together together = Together::No;
  Space space = Space::Generic;
  Type type = Type::None;
  uint8_t flags = 0;
  std::vector<int32_t> d;     ///< destination registers
  std::vector<int32_t> s;     ///< source registers
  int64_t offset = 0;         ///< of an address
  int64_t from = 0;           ///< of the second address, if there are two
  int64_t third = 0;          ///< of the third one
  bool waits = false;         ///< may wait for what another thread does
  bool arrives = false;       ///< at a barrier without waiting there
  bool product = false;       ///< wgmma.mma_async
  bool stores = false;        ///< to an address: st, red, atom
  bool atomic = false;        ///< others may do so at the same time
  int32_t target = -1;        ///< of a branch
  std::vector<int32_t> table; ///< of an indexed branch
  unsigned line = 0;
};

struct Kernel {
  std::string name;
  std::vector<unsigned> paramOffsets;
  std::vector<unsigned> paramBytes;
  unsigned paramsSize = 0, localBytes = 0, sharedBytes = 0, maxThreads = 0;
  bool collective = false; ///< has instructions that wait for other threads
  bool dynamic = false;    ///< uses shared memory whose size a launch says
  bool warpgroups = false; ///< has wgmma
  bool dependent = false;  ///< waits for the kernel before (griddepcontrol)
  std::vector<Instruction> code;
  /// Every operand is a register; constants are registers with a first value.
  std::vector<uint64_t> registers;
  int32_t special[16];
  int32_t localBase = -1;
};

/// Where shared memory begins whose size a launch says: all that is declared
/// lies before.
constexpr unsigned kDynamicShared = 48 << 10;

/// What cuTensorMapEncodeTiled makes here: matrices in one or two further
/// dimensions, which may have the size 1, and a part of one, in elements; only
/// a driver knows what is in the 128 bytes of a GPU's.
struct alignas(64) TensorMap {
  static constexpr uint64_t kMagic = 0x6d7074656e736f72;
  uint64_t magic, address, size[4], stride[3];
  uint32_t box[2], elementBytes, swizzled, rank;
  uint8_t rest[36];
};
static_assert(sizeof(TensorMap) == 128, "a CUtensorMap has 128 bytes");

/// Memory that kernels may touch.
struct Allocation {
  uint64_t begin, end;
};
class Memory {
public:
  /// `joins`: an access may go on in the next one of its kind.
  void add(uint64_t begin, uint64_t bytes, bool joins = false) {
    live[begin] = begin + bytes;
    if (joins)
      pages.insert(begin);
  }
  bool remove(uint64_t begin) {
    lastBegin = 1;
    lastEnd = 0;
    written.erase(begin);
    pages.erase(begin);
    return live.erase(begin) != 0;
  }
  /// A kernel writes at an address that is held.
  void write(uint64_t address) const { written.insert(beginOf(address)); }
  /// Whether one has written to the same allocation.
  bool isWritten(uint64_t address) const {
    return written.count(beginOf(address)) != 0;
  }
  bool holds(uint64_t address, uint64_t bytes) const;
  bool knows(uint64_t begin) const { return live.count(begin) != 0; }
  uint64_t sizeOf(uint64_t begin) const { return live.at(begin) - begin; }

private:
  uint64_t beginOf(uint64_t address) const {
    return std::prev(live.upper_bound(address))->first;
  }
  std::map<uint64_t, uint64_t> live;
  std::set<uint64_t> pages; ///< that join
  mutable std::set<uint64_t> written;
  mutable uint64_t lastBegin = 1, lastEnd = 0;
};

struct Module {
  std::string target; ///< "sm_80"
  std::string version;
  std::map<std::string, std::unique_ptr<Kernel>> kernels;
  std::vector<std::unique_ptr<uint64_t[]>> storage; ///< of globals
  ~Module();
  Memory *memory = nullptr;
  std::vector<uint64_t> globals;
};

/// Null and a message if the text is not understood.
std::unique_ptr<Module> parse(const std::string &text, Memory &memory,
                              std::string &error);

struct Launch {
  unsigned grid[3], block[3];
  unsigned sharedBytes = 0;
  bool together = false; ///< all blocks at once, which may wait for each other
  std::vector<uint8_t> params;
};

/// False and a message if a kernel did what it must not.
bool run(const Kernel &kernel, const Launch &launch, const Memory &memory,
         std::string &error);

//===----------------------------------------------------------------------===//
// Inside
//===----------------------------------------------------------------------===//

/// Yields: has looked for something that has not happened yet.
enum class State : uint8_t { Ready, Yields, AtBlock, AtWarp, Done };

/// Who wrote two bytes of shared memory, and what that thread had done by then.
struct Written {
  enum Way : uint8_t { Store, Copy, Init }; ///< cp.async, mbarrier.init

  uint64_t block = 0; ///< before this one the number is of no interest
  uint32_t thread, releases, proxyFences, copies;
  Way way;
};

class Races;

struct Block {
  const Kernel *kernel;
  const Memory *memory;
  Races *races = nullptr; ///< of blocks that run together
  const uint8_t *params;
  std::vector<uint8_t> shared;
  uint64_t number = 0;
  std::vector<Written> written; ///< by two bytes; empty: nobody waits
  const struct Thread *threads = nullptr;
  unsigned arrived[16] = {}; ///< threads that did not wait at a barrier
  std::string error;
};

/// What a thread has told others, and what it has waited for.
struct Order {
  uint32_t number = 0;      ///< of the thread
  uint32_t barriers = 0;    ///< that it passed or arrived at
  uint32_t releases = 0;    ///< the same, and mbarriers
  uint32_t proxyFences = 0; ///< fence.proxy.async
  uint32_t copies = 0;      ///< groups of cp.async
  /// Of each group that was waited for: releases and fences until then.
  std::vector<std::pair<uint32_t, uint32_t>> waited;
  // wgmma: fences, groups, and how many of these were waited for. Of each
  // register the fences until another instruction used it, and the groups that
  // write and read it, all counted from one.
  uint32_t fences = 0, products = 0, done = 0;
  std::vector<uint32_t> used, sums, held;
};

struct Thread {
  uint64_t *r = nullptr;
  uint32_t pc = 0, lookedAt = 0;
  State state = State::Ready;
  Block *block = nullptr;
  uint8_t *local = nullptr;
  bool waited = false; ///< for the kernel before
  Order order;
  uint32_t lookedAtCounter = 0; ///< where, and what was there
  uint64_t counter = 0;

  void fail(const std::string &what) {
    if (block->error.empty())
      block->error = what;
    state = State::Done;
  }
};

/// Chooses what runs an instruction; false if it is not known. `parts` is the
/// mnemonic cut at its dots.
bool choose(Instruction &instruction, const std::vector<std::string> &parts);

/// The bytes at an address, or null after a failure.
uint8_t *reach(Thread &thread, const Instruction &instruction, uint64_t address,
               unsigned bytes);

// Order.cpp: what has to happen between writing and reading.

/// What the thread writes to shared memory, if `place` is there.
void write(Thread &thread, const uint8_t *place, unsigned bytes,
           Written::Way way);
/// It passes a barrier, or arrives at one.
void passBarrier(Order &order);
/// A tensor map brings it, whose barrier says when.
void bring(Block &block, const uint8_t *place, unsigned bytes);
/// Fails if that may not be there yet; `async`: for wgmma.
void read(Thread &thread, const Instruction &instruction, const uint8_t *place,
          unsigned bytes, bool async = false);
/// Fails if the instruction uses registers that a wgmma still does.
void useRegisters(Thread &thread, const Instruction &instruction);
/// The same of a wgmma, whose registers others may not have used since a fence.
void startProduct(Thread &thread, const Instruction &instruction);
/// One that puts others in order; false if it is none.
bool chooseOrder(Instruction &instruction,
                 const std::vector<std::string> &parts);

// Races.cpp: what has to happen between writing and reading device memory.

/// What is known of it while blocks run together. Each thread has a time, which
/// goes on when it tells others what it has done, and knows of each other
/// thread up to which time it has been told.
class Races {
public:
  Races(size_t blocks, unsigned threads);
  /// Fails if another thread did the same or the contrary there, and has not
  /// told, directly or by way of others.
  void use(Thread &thread, const Instruction &instruction, uint64_t address,
           unsigned bytes);
  /// Threads that are at one barrier.
  void meet(const std::vector<Thread *> &threads);
  void release(const Thread &thread, uint64_t address);
  void acquire(const Thread &thread, uint64_t address);

private:
  using Times = std::vector<uint32_t>;
  struct Use {
    uint32_t thread, time; ///< 0: none
  };
  struct Place {
    Use write, read;
    std::vector<Use> reads; ///< others
  };
  size_t numberOf(const Thread &thread) const;
  bool knows(size_t thread, const Use &use) const;
  void learn(size_t thread, const std::shared_ptr<const Times> &told);

  unsigned threadsOfBlock;
  std::vector<uint32_t> now;                             ///< of each thread
  std::vector<std::shared_ptr<const Times>> known;       ///< to each
  std::map<uint64_t, std::shared_ptr<const Times>> told; ///< at an address
  std::map<uint64_t, std::vector<Place>> pages;
};

/// What threads of other blocks may do at the same time: ld.acquire, atom, red.
bool chooseAtomic(Instruction &instruction,
                  const std::vector<std::string> &parts);

/// An instruction of a whole warp, or asynchronous.
bool chooseTogether(Instruction &instruction,
                    const std::vector<std::string> &parts);

/// One of sm_90's: mbarrier, tensor maps, wgmma.
bool chooseAsync(Instruction &instruction,
                 const std::vector<std::string> &parts);

/// A register's low bytes as a value.
template <typename T> T get(const Thread &t, int32_t slot) {
  T value;
  std::memcpy(&value, &t.r[slot], sizeof(T));
  return value;
}
template <typename T> void set(Thread &t, int32_t slot, T value) {
  t.r[slot] = 0;
  std::memcpy(&t.r[slot], &value, sizeof(T));
}

inline bool isSigned(Type type) {
  return type == Type::S8 || type == Type::S16 || type == Type::S32 ||
         type == Type::S64;
}

Type typeNamed(const std::string &name);
bool isSmall(Type type); ///< f16, bf16 and pairs of them
bool has(const std::vector<std::string> &parts, const char *word);
/// Arithmetic on small floats; cvt.
bool chooseSmall(Instruction &instruction, const std::string &op);
bool chooseConversion(Instruction &instruction,
                      const std::vector<std::string> &parts);

/// A register of a float type.
double asDouble(const Thread &t, int32_t slot, Type type);

float halfToFloat(uint16_t bits);
uint16_t floatToHalf(float value);
inline float bfloatToFloat(uint16_t bits) {
  uint32_t wide = uint32_t(bits) << 16;
  float value;
  __builtin_memcpy(&value, &wide, 4);
  return value;
}
uint16_t floatToBFloat(float value);

} // namespace ptx

#endif // ATTUNE_TEST_PTXMACHINE_MACHINE_H

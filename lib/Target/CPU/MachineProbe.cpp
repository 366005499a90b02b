//===- MachineProbe.cpp - Peak rates of this machine ------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Target/CPU/MachineProbe.h"

#include "attune/Runtime/Machine.h"

#include "llvm/AsmParser/Parser.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/TargetParser/Host.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <thread>
#include <vector>

namespace attune {

namespace {
constexpr size_t kMemory = size_t(256) << 20;

/// Chains of an instruction that starts from its own last result. Twelve hide
/// the latency of two FMA units (4 cycles each) and leave some of 16 registers
/// for the operands; two units that take pairs of bf16 (6 cycles each) need
/// more, and CPUs that have them have 32.
constexpr int countChains(unsigned lanes) { return lanes < 16 ? 12 : 24; }

/// A loop of `n` iterations; `(n, operands)` gives a value that keeps the work
/// alive.
using ComputeLoop = float (*)(int64_t, const void *);
/// Reads `bytes` (a multiple of 4096) from an aligned address.
using ReadLoop = int64_t (*)(const void *, int64_t);

/// One instruction to time: its name, types and how it is called.
struct Instruction {
  const char *name;
  unsigned lanes; ///< of the accumulator
  const char *accumulator, *operand, *call;
  double operations; ///< of one instruction

  int chains() const { return countChains(lanes); }
};

struct Timed {
  Instruction instruction;
  ComputeLoop loop = nullptr;
};
} // namespace

/// Loop with an accumulator for each chain in LLVM IR. The operands come from
/// memory, so nothing is known of them and nothing folds.
static std::string emitCompute(const Instruction &i) {
  std::string acc = llvm::formatv("<{0} x {1}>", i.lanes, i.accumulator);
  std::string text = llvm::formatv("declare {0} @{1}({0}, {2}, {2})\n", acc,
                                   i.call, i.operand);
  // llvm.fma takes its addend last.
  bool fma = llvm::StringRef(i.call).starts_with("llvm.fma");
  text += llvm::formatv(R"(
define float @{0}(i64 %n, ptr %operands) {
entry:
  %a = load {1}, ptr %operands, align 1
  %b = load {1}, ptr %operands, align 1
  %zero = load {2}, ptr %operands, align 1
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %next, %loop ]
)",
                        i.name, i.operand, acc)
              .str();
  for (int c = 0; c < i.chains(); ++c)
    text += llvm::formatv("  %x{0} = phi {1} [ %zero, %entry ], [ %y{0}, "
                          "%loop ]\n",
                          c, acc)
                .str();
  for (int c = 0; c < i.chains(); ++c)
    text += (fma ? llvm::formatv("  %y{0} = call {1} @{2}({3} %a, {3} %b, {1} "
                                 "%x{0})\n",
                                 c, acc, i.call, i.operand)
                       .str()
                 : llvm::formatv("  %y{0} = call {1} @{2}({1} %x{0}, {3} %a, "
                                 "{3} %b)\n",
                                 c, acc, i.call, i.operand)
                       .str());
  text += "  %next = add i64 %k, 1\n  %more = icmp ult i64 %next, %n\n"
          "  br i1 %more, label %loop, label %done\ndone:\n";
  bool isInteger = llvm::StringRef(i.accumulator) == "i32";
  std::string sum = "%y0";
  for (int c = 1; c < i.chains(); ++c) {
    text += llvm::formatv("  %s{0} = {1} {2} {3}, %y{0}\n", c,
                          isInteger ? "add" : "fadd", acc, sum)
                .str();
    sum = llvm::formatv("%s{0}", c).str();
  }
  text += llvm::formatv("  %lane = extractelement {0} {1}, i64 0\n", acc, sum);
  text += isInteger ? "  %result = sitofp i32 %lane to float\n"
                      "  ret float %result\n}\n"
                    : "  ret float %lane\n}\n";
  return text;
}

/// Eight vectors of 64 bytes in flight, a page's worth an iteration, so that
/// neither the xors nor the loop hold the loads up.
static std::string emitRead() {
  std::string text = R"(
define i64 @attune_probe_read(ptr %p, i64 %bytes) {
entry:
  br label %loop
loop:
  %at = phi i64 [ 0, %entry ], [ %next, %loop ]
)";
  for (int c = 0; c < 8; ++c)
    text += llvm::formatv("  %x{0} = phi <8 x i64> [ zeroinitializer, %entry "
                          "], [ %y{0}, %loop ]\n",
                          c)
                .str();
  for (int c = 0; c < 8; ++c)
    text += llvm::formatv("  %o{0} = add i64 %at, {1}\n"
                          "  %p{0} = getelementptr i8, ptr %p, i64 %o{0}\n"
                          "  %v{0} = load <8 x i64>, ptr %p{0}, align 64\n"
                          "  %y{0} = xor <8 x i64> %x{0}, %v{0}\n",
                          c, c * 64)
                .str();
  text += "  %next = add i64 %at, 512\n  %more = icmp ult i64 %next, %bytes\n"
          "  br i1 %more, label %loop, label %done\ndone:\n";
  std::string sum = "%y0";
  for (int c = 1; c < 8; ++c) {
    text += llvm::formatv("  %s{0} = xor <8 x i64> {1}, %y{0}\n", c, sum).str();
    sum = llvm::formatv("%s{0}", c).str();
  }
  return text + llvm::formatv("  %lane = extractelement <8 x i64> {0}, i64 0\n"
                              "  ret i64 %lane\n}\n",
                              sum)
                    .str();
}

struct MachineProbe::Impl {
  unsigned threads = 1;
  std::unique_ptr<llvm::orc::LLJIT> jit;
  Timed fma, bf16, int8;
  ReadLoop read = nullptr;
  std::unique_ptr<uint8_t, decltype(&std::free)> memory{nullptr, &std::free};

  /// Seconds from the moment all threads are there until the last is done.
  template <typename Work> double timeAll(Work work) {
    std::atomic<unsigned> ready{0};
    std::vector<double> seconds(threads);
    auto body = [&](unsigned thread) {
      ++ready;
      while (ready < threads)
        ;
      auto start = std::chrono::steady_clock::now();
      work(thread);
      seconds[thread] = std::chrono::duration<double>(
                            std::chrono::steady_clock::now() - start)
                            .count();
    };
    std::vector<std::thread> others;
    for (unsigned i = 1; i < threads; ++i)
      others.emplace_back(body, i);
    body(0);
    for (std::thread &other : others)
      other.join();
    return *std::max_element(seconds.begin(), seconds.end());
  }

  double compute(const Timed &timed, int64_t instructions) {
    int64_t turns = instructions / timed.instruction.chains();
    instructions = turns * timed.instruction.chains();
    alignas(64) static const uint8_t zeros[64] = {};
    std::vector<float> kept(threads);
    double seconds = timeAll(
        [&](unsigned thread) { kept[thread] = timed.loop(turns, zeros); });
    return double(threads) * instructions * timed.instruction.operations /
           seconds / 1e9;
  }

  /// The best of a short and a long run.
  double best(const Timed &timed) {
    return std::max(compute(timed, 12'000'000), compute(timed, 120'000'000));
  }

  double readAll(int rounds) {
    // Whole pages for each thread.
    int64_t share = int64_t(kMemory / threads) & ~int64_t(4095);
    std::vector<int64_t> kept(threads);
    double best = 0;
    for (int round = 0; round < rounds; ++round) {
      double seconds = timeAll([&](unsigned thread) {
        kept[thread] = read(memory.get() + thread * share, share);
      });
      best = std::max(best, double(share) * threads / seconds / 1e9);
    }
    return best;
  }
};

MachineProbe::MachineProbe(std::unique_ptr<Impl> impl)
    : impl(std::move(impl)) {}
MachineProbe::~MachineProbe() = default;
MachineProbe::MachineProbe(MachineProbe &&) = default;

llvm::Expected<MachineProbe> MachineProbe::create(unsigned threads) {
  using namespace llvm::orc;
  auto impl = std::make_unique<Impl>();
  impl->threads = std::max(threads, 1u);
  llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  bool wide = features.lookup("avx512f");
  impl->fma.instruction =
      wide ? Instruction{"attune_probe_f32", 16, "float", "<16 x float>",
                         "llvm.fma.v16f32",  32}
           : Instruction{"attune_probe_f32", 8, "float", "<8 x float>",
                         "llvm.fma.v8f32",   16};
  impl->bf16.instruction = {"attune_probe_bf16",
                            16,
                            "float",
                            "<32 x bfloat>",
                            "llvm.x86.avx512bf16.dpbf16ps.512",
                            64};
  impl->int8.instruction = {"attune_probe_int8",
                            16,
                            "i32",
                            "<64 x i8>",
                            "llvm.x86.avx512.vpdpbusd.512",
                            128};
  bool hasBf16 = features.lookup("avx512bf16");
  // The kernel lends tiles to those who ask.
  bool hasTiles = features.lookup("amx-tile") && features.lookup("amx-bf16") &&
                  runtime::requestTiles() == 0;
  if (hasTiles) {
    impl->bf16.instruction.name = "attune_probe_tiles";
    impl->bf16.instruction.operations = (2 * 16 * 16 * 32) >> kTileProbeShift;
  }
  bool hasInt8 = features.lookup("avx512vnni");
  bool hasByteTiles = hasTiles && hasInt8 && features.lookup("amx-int8");
  if (hasByteTiles) {
    impl->int8.instruction.name = "attune_probe_byte_tiles";
    impl->int8.instruction.operations = (2 * 16 * 16 * 64) >> kTileProbeShift;
  }

  auto builder = JITTargetMachineBuilder::detectHost();
  if (!builder)
    return builder.takeError();
  llvm::Expected<std::unique_ptr<LLJIT>> jit =
      LLJITBuilder().setJITTargetMachineBuilder(std::move(*builder)).create();
  if (!jit)
    return jit.takeError();
  impl->jit = std::move(*jit);

  std::string text = emitCompute(impl->fma.instruction) + emitRead();
  if (hasTiles)
    text += declareTiles() + emitTileProbe(impl->bf16.instruction.name,
                                           impl->bf16.instruction.chains(),
                                           /*bytes=*/false);
  else if (hasBf16)
    text += emitCompute(impl->bf16.instruction);
  if (hasByteTiles)
    text += emitTileProbe(impl->int8.instruction.name,
                          impl->int8.instruction.chains(), /*bytes=*/true);
  else if (hasInt8)
    text += emitCompute(impl->int8.instruction);
  auto context = std::make_unique<llvm::LLVMContext>();
  llvm::SMDiagnostic problem;
  std::unique_ptr<llvm::Module> module =
      llvm::parseAssemblyString(text, problem, *context);
  if (!module)
    return llvm::createStringError("probe: " + problem.getMessage());
  module->setDataLayout(impl->jit->getDataLayout());
  if (llvm::Error error = impl->jit->addIRModule(
          ThreadSafeModule(std::move(module), std::move(context))))
    return std::move(error);

  auto find = [&](const char *name, auto &function) -> llvm::Error {
    llvm::Expected<ExecutorAddr> address = impl->jit->lookup(name);
    if (!address)
      return address.takeError();
    function = address->toPtr<std::decay_t<decltype(function)>>();
    return llvm::Error::success();
  };
  if (llvm::Error error = find(impl->fma.instruction.name, impl->fma.loop))
    return std::move(error);
  if (llvm::Error error = find("attune_probe_read", impl->read))
    return std::move(error);
  if (hasBf16 || hasTiles)
    if (llvm::Error error = find(impl->bf16.instruction.name, impl->bf16.loop))
      return std::move(error);
  if (hasInt8)
    if (llvm::Error error = find(impl->int8.instruction.name, impl->int8.loop))
      return std::move(error);

  constexpr size_t kLargePage = size_t(2) << 20; // as weights have them
  impl->memory.reset(
      static_cast<uint8_t *>(std::aligned_alloc(kLargePage, kMemory)));
  if (!impl->memory)
    return llvm::createStringError("no memory to read from");
  madvise(impl->memory.get(), kMemory, MADV_HUGEPAGE);
  // Pages that were never written are all one page of zeros.
  std::memset(impl->memory.get(), 1, kMemory);
  return MachineProbe(std::move(impl));
}

MachinePeak MachineProbe::measure() {
  MachinePeak peak;
  peak.f32Gflops = impl->best(impl->fma);
  if (impl->bf16.loop)
    peak.bf16Gflops = impl->best(impl->bf16);
  if (impl->int8.loop)
    peak.int8Gops = impl->best(impl->int8);
  peak.readGBs = impl->readAll(3);
  return peak;
}

double MachineProbe::measureReads() { return impl->readAll(1); }

double MachineProbe::measureProducts(Factors factors) {
  Timed &own = factors == Factors::Int8   ? impl->int8
               : factors == Factors::Bf16 ? impl->bf16
                                          : impl->fma;
  return impl->compute(own.loop ? own : impl->fma, 24'000'000);
}

void MachinePeak::raise(const MachinePeak &other) {
  auto raiseOptional = [](std::optional<double> &mine,
                          const std::optional<double> &theirs) {
    if (theirs)
      mine = std::max(mine.value_or(0), *theirs);
  };
  f32Gflops = std::max(f32Gflops, other.f32Gflops);
  raiseOptional(bf16Gflops, other.bf16Gflops);
  raiseOptional(int8Gops, other.int8Gops);
  readGBs = std::max(readGBs, other.readGBs);
}

} // namespace attune

//===- KernelReport.cpp - GPU resources of kernels --------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Target/PTX/PTXBackend.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace attune {

/// The number in front of `unit` in a line, or 0.
static int64_t numberBefore(StringRef line, StringRef unit) {
  size_t at = line.find(unit);
  if (at == StringRef::npos)
    return 0;
  StringRef digits = line.take_front(at).rtrim();
  size_t start = digits.find_last_not_of("0123456789");
  digits = digits.drop_front(start == StringRef::npos ? 0 : start + 1);
  int64_t number = 0;
  digits.getAsInteger(10, number);
  return number;
}

std::vector<KernelUse> readKernelUse(StringRef report) {
  std::vector<KernelUse> kernels;
  while (!report.empty()) {
    auto [line, rest] = report.split('\n');
    report = rest;
    if (line.contains("Compiling entry function")) {
      KernelUse kernel;
      kernel.name = line.split('\'').second.split('\'').first.str();
      kernels.push_back(kernel);
    } else if (!kernels.empty()) {
      KernelUse &kernel = kernels.back();
      kernel.stackBytes += numberBefore(line, "bytes stack frame");
      kernel.spilledBytes += numberBefore(line, "bytes spill stores") +
                             numberBefore(line, "bytes spill loads");
      kernel.registers += numberBefore(line, "registers");
      kernel.sharedBytes += numberBefore(line, "bytes smem");
    }
  }
  llvm::sort(kernels, [](const KernelUse &a, const KernelUse &b) {
    return a.name < b.name;
  });
  return kernels;
}

namespace {
/// The resources of a multiprocessor (CUDA programming guide, compute
/// capabilities).
struct Multiprocessor {
  int64_t warps, blocks, sharedBytes;
};
} // namespace

static Multiprocessor describe(StringRef chip) {
  int number = 0;
  chip.drop_front(3).take_while(llvm::isDigit).getAsInteger(10, number);
  switch (number) {
  case 80:
  case 87:
    return {64, 32, 164 << 10};
  case 86:
    return {48, 16, 100 << 10};
  case 89:
    return {48, 24, 100 << 10};
  case 120:
    return {48, 24, 100 << 10};
  default:
    return {64, 32, 228 << 10};
  }
}

int64_t sharedBytesOfMultiprocessor(StringRef chip) {
  return describe(chip).sharedBytes;
}

int64_t occupancyPercent(const KernelUse &kernel, int64_t threads,
                         StringRef chip) {
  constexpr int64_t registers = 64 << 10;
  Multiprocessor sm = describe(chip);
  int64_t warps = llvm::divideCeil(threads, 32);
  // Registers are given to warps in units of 256, shared memory to blocks in
  // units of 128 bytes with 1 KiB for the system.
  int64_t perWarp =
      llvm::alignTo(std::max<int64_t>(kernel.registers, 1) * 32, 256);
  int64_t shared = llvm::alignTo(kernel.sharedBytes + 1024, 128);
  int64_t blocks =
      std::min({sm.blocks, sm.warps / warps, registers / perWarp / warps,
                sm.sharedBytes / shared});
  return 100 * blocks * warps / sm.warps;
}

/// Threads of a block of every kernel, from `.maxntid x, y, z`.
static int64_t threadsOf(StringRef ptx, StringRef kernel) {
  size_t at = ptx.find((".entry " + kernel + "(").str());
  StringRef text = ptx.drop_front(std::min(at, ptx.size()));
  text = text.take_front(text.find('{')).split(".maxntid").second;
  int64_t threads = 1;
  for (int i = 0; i < 3; ++i) {
    int64_t size = 1;
    text = text.ltrim(" ,\t");
    StringRef digits = text.take_while(llvm::isDigit);
    digits.getAsInteger(10, size);
    text = text.drop_front(digits.size());
    threads *= size;
  }
  return threads;
}

void addKernelReport(ModuleOp module, const std::vector<KernelUse> &kernels) {
  auto text = module->getAttrOfType<StringAttr>("attune.metadata");
  if (!text)
    return;
  llvm::Expected<llvm::json::Value> metadata =
      llvm::json::parse(text.getValue());
  if (!metadata || !metadata->getAsObject()) {
    llvm::consumeError(metadata.takeError());
    return;
  }
  DeviceCode code = getDeviceCode(module);
  llvm::json::Array rows;
  for (KernelUse kernel : kernels) {
    kernel.sharedBytes += code.dynamicShared.lookup(kernel.name);
    int64_t threads = threadsOf(code.ptx, kernel.name);
    rows.push_back(llvm::json::Object{
        {"kernel", kernel.name},
        {"threads", threads},
        {"registers", kernel.registers},
        {"shared_bytes", kernel.sharedBytes},
        {"stack_bytes", kernel.stackBytes},
        {"spilled_bytes", kernel.spilledBytes},
        {"occupancy_percent", occupancyPercent(kernel, threads, code.chip)}});
  }
  llvm::json::Object &root = *metadata->getAsObject();
  if (!root.getObject("inspect"))
    root["inspect"] = llvm::json::Object{};
  llvm::json::Object &inspect = *root.getObject("inspect");
  inspect["gpu"] = code.chip;
  inspect["kernels"] = std::move(rows);
  std::string updated;
  llvm::raw_string_ostream(updated) << *metadata;
  module->setAttr("attune.metadata",
                  StringAttr::get(module.getContext(), updated));
}

} // namespace attune

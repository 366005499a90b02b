//===- TileProbe.cpp - A loop that multiplies AMX tiles ---------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Target/CPU/MachineProbe.h"

#include "llvm/Support/FormatVariadic.h"

namespace attune {

// Six tiles of sums beside the two that are multiplied are all registers. Every
// row of those two is the same 64 bytes. A product takes as long as some 32
// instructions on vectors, so there are as many iterations fewer.
std::string declareTiles() {
  return R"(
declare x86_amx @llvm.x86.tilezero.internal(i16, i16)
declare x86_amx @llvm.x86.tileloadd64.internal(i16, i16, ptr, i64)
declare void @llvm.x86.tilestored64.internal(i16, i16, ptr, i64, x86_amx)
)";
}

std::string emitTileProbe(const char *name, int products, bool bytes) {
  constexpr int kSums = 6;
  const char *instruction = bytes ? "tdpbsud" : "tdpbf16ps";
  std::string text = llvm::formatv(R"(
declare x86_amx @llvm.x86.{2}.internal(i16, i16, i16, x86_amx, x86_amx, x86_amx)
define float @{0}(i64 %n, ptr %operands) {{
entry:
  %kept = alloca [1024 x i8], align 64
  %turns = lshr i64 %n, {1}
  %a = call x86_amx @llvm.x86.tileloadd64.internal(i16 16, i16 64, ptr %operands, i64 0)
  %b = call x86_amx @llvm.x86.tileloadd64.internal(i16 16, i16 64, ptr %operands, i64 0)
)",
                                   name, kTileProbeShift, instruction);
  for (int c = 0; c < kSums; ++c)
    text += llvm::formatv("  %zero{0} = call x86_amx "
                          "@llvm.x86.tilezero.internal(i16 16, i16 64)\n",
                          c);
  text += "  br label %loop\nloop:\n"
          "  %k = phi i64 [ 0, %entry ], [ %next, %loop ]\n";
  // The newest value of each sum.
  std::string newest[kSums];
  for (int c = 0; c < kSums; ++c) {
    newest[c] = llvm::formatv("%x{0}", c);
    int last = products - 1 - (products - 1 - c) % kSums;
    text += llvm::formatv("  %x{0} = phi x86_amx [ %zero{0}, %entry ], "
                          "[ %y{1}, %loop ]\n",
                          c, last);
  }
  for (int p = 0; p < products; ++p) {
    std::string &sum = newest[p % kSums];
    text += llvm::formatv("  %y{0} = call x86_amx "
                          "@llvm.x86.{2}.internal(i16 16, i16 64, i16 "
                          "64, x86_amx {1}, x86_amx %a, x86_amx %b)\n",
                          p, sum, instruction);
    sum = llvm::formatv("%y{0}", p);
  }
  text += "  %next = add i64 %k, 1\n  %more = icmp ult i64 %next, %turns\n"
          "  br i1 %more, label %loop, label %done\ndone:\n";
  for (const std::string &sum : newest)
    text += llvm::formatv("  call void @llvm.x86.tilestored64.internal(i16 16, "
                          "i16 64, ptr %kept, i64 64, x86_amx {0})\n",
                          sum);
  return text + "  %result = load float, ptr %kept\n  ret float %result\n}\n";
}

} // namespace attune

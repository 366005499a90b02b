//===- MachineTest.cpp - What a model needs of the machine ----------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Runtime/Machine.h"

#include <cstring>
#include <gtest/gtest.h>

using namespace attune::runtime;

/// A CPU with AVX2, FMA and VNNI in 256 bits, and with AVX-512 whose registers
/// the kernel does not save.
static CpuRegisters cpuid(uint32_t leaf, uint32_t subleaf) {
  CpuRegisters r;
  if (leaf == 1)
    r.ecx = 1u << 12 | 1u << 27;
  if (leaf == 7 && subleaf == 0)
    r.ebx = 1u << 5 | 1u << 16;
  if (leaf == 7 && subleaf == 1)
    r.eax = 1u << 4;
  return r;
}
static uint64_t savesYmm() { return 0x7; }
static const CpuReader narrow = {cpuid, savesYmm};

static CpuRegisters withoutXsave(uint32_t leaf, uint32_t subleaf) {
  CpuRegisters r = cpuid(leaf, subleaf);
  if (leaf == 1)
    r.ecx &= ~(1u << 27);
  return r;
}

TEST(Machine, NamesWhatIsMissing) {
  Error error;
  EXPECT_TRUE(checkMachine({"avx2", "fma", "avx_vnni"}, error, &narrow));
  EXPECT_FALSE(
      checkMachine({"avx2", "avx512f", "fma", "bmi2", "fma9"}, error, &narrow));
  EXPECT_EQ(error.code, ExitBadInput);
  EXPECT_EQ(error.message,
            "the model is compiled for another CPU: this one lacks avx512f, "
            "bmi2, fma9 (--cpu of attune compile chooses)");
}

TEST(Machine, DoesNotAskForRegistersThatAreNotSaved) {
  CpuReader old = {withoutXsave, [] {
                     ADD_FAILURE() << "XGETBV is not there";
                     return uint64_t(0);
                   }};
  Error error;
  EXPECT_FALSE(checkMachine({"avx2"}, error, &old));
}

TEST(Machine, TrustsTheModelWhereNobodyTells) {
  Error error;
  EXPECT_TRUE(checkMachine({"avx999"}, error, nullptr));
  EXPECT_TRUE(checkMachine({}, error));
}

TEST(Machine, AsksForTiles) {
  Error error;
  int problem = requestTiles();
  bool lent = checkMachine({"amx_tile"}, error, nullptr);
  EXPECT_EQ(lent, problem == 0);
  if (problem != 0)
    EXPECT_EQ(error.message,
              std::string("the model needs AMX, which the kernel does not lend "
                          "to this process: ") +
                  std::strerror(problem));
}

TEST(Machine, ChoosesTheBestCode) {
  const std::vector<CpuVariantInfo> variants = {
      {"old", {"avx2"}}, {"mid", {"avx2", "avx_vnni"}}, {"new", {"avx512f"}}};
  Error error;
  EXPECT_EQ(chooseVariant(variants, nullptr, error, &narrow), 1u);
  EXPECT_EQ(error.message, "");
  EXPECT_EQ(chooseVariant(variants, "old", error, &narrow), 0u);
  EXPECT_FALSE(chooseVariant(variants, "new", error, &narrow));
  EXPECT_EQ(error.message,
            "the model is compiled for another CPU: this one lacks avx512f "
            "(--cpu of attune compile chooses)");
  EXPECT_FALSE(chooseVariant(variants, "newest", error, &narrow));
  EXPECT_EQ(error.message, "ATTUNE_CPU=newest names no code of this model; it "
                           "has old, mid, new");
  // Nothing runs here: what the least of them needs is said.
  EXPECT_FALSE(chooseVariant({{"old", {"fma9"}}, {"new", {"avx512f"}}}, nullptr,
                             error, &narrow));
  EXPECT_EQ(error.message,
            "the model is compiled for another CPU: this one lacks fma9 "
            "(--cpu of attune compile chooses)");
}

//===- MachineTest.cpp - What a model needs of the machine ----------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Runtime/Machine.h"

#include <cstring>
#include <fstream>
#include <gtest/gtest.h>

using namespace attune::runtime;

/// A file like /proc/cpuinfo of a CPU with these flags.
static std::string cpuWith(const std::string &flags) {
  std::string path = testing::TempDir() + "attune-cpuinfo";
  std::ofstream(path) << "processor\t: 0\nvendor_id\t: Genuine\nflags\t\t: "
                      << flags << "\nbugs\t\t: fma9\n\nprocessor\t: 1\n";
  return path;
}

TEST(Machine, NamesWhatIsMissing) {
  std::string path = cpuWith("fpu sse4_2 avx2 fma avx512_bf16_like");
  Error error;
  EXPECT_TRUE(checkMachine({"avx2", "fma"}, error, path.c_str()));
  EXPECT_TRUE(checkMachine({"fpu"}, error, path.c_str()));
  EXPECT_FALSE(checkMachine({"avx2", "avx512f", "fma", "avx512_bf16", "fma9"},
                            error, path.c_str()));
  EXPECT_EQ(error.code, ExitBadInput);
  EXPECT_EQ(error.message,
            "the model is compiled for another CPU: this one lacks avx512f, "
            "avx512_bf16, fma9 (--cpu of attune compile chooses)");
}

TEST(Machine, TrustsTheModelWhereNobodyTells) {
  Error error;
  EXPECT_TRUE(checkMachine({"avx999"}, error, "/nowhere/cpuinfo"));
  EXPECT_TRUE(checkMachine({}, error));
}

TEST(Machine, AsksForTiles) {
  std::string path = cpuWith("amx_bf16 amx_tile");
  Error error;
  int problem = requestTiles();
  bool lent = checkMachine({"amx_bf16", "amx_tile"}, error, path.c_str());
  EXPECT_EQ(lent, problem == 0);
  if (problem != 0)
    EXPECT_EQ(error.message,
              std::string("the model needs AMX, which the kernel does not lend "
                          "to this process: ") +
                  std::strerror(problem));
}

//===- TileProbeTest.cpp - The loop that probes AMX -----------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Target/CPU/MachineProbe.h"
#include "attune/TargetInfo/TargetDescription.h"

#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Target/TargetMachine.h"

#include <gtest/gtest.h>

/// Assembly for a CPU with AMX, which need not be this one.
static std::string compile(const std::string &text) {
  auto described = attune::describeTarget("sapphirerapids");
  llvm::LLVMContext context;
  llvm::SMDiagnostic problem;
  auto module = llvm::parseAssemblyString(text, problem, context);
  std::string error;
  llvm::Triple triple(described->triple);
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!module || !target)
    return problem.getMessage().str() + error;
  std::unique_ptr<llvm::TargetMachine> machine(target->createTargetMachine(
      triple, described->cpu, "", llvm::TargetOptions(), std::nullopt));
  module->setDataLayout(machine->createDataLayout());
  llvm::SmallString<0> assembly;
  llvm::raw_svector_ostream out(assembly);
  llvm::legacy::PassManager passes;
  machine->addPassesToEmitFile(passes, out, nullptr,
                               llvm::CodeGenFileType::AssemblyFile);
  passes.run(*module);
  return assembly.str().str();
}

static size_t count(llvm::StringRef text, llvm::StringRef what) {
  return text.count(what);
}

TEST(TileProbe, KeepsItsTilesInRegisters) {
  for (bool bytes : {false, true}) {
    std::string assembly = compile(attune::declareTiles() +
                                   attune::emitTileProbe("probe", 12, bytes));
    EXPECT_EQ(count(assembly, bytes ? "\ttdpbsud\t" : "\ttdpbf16ps\t"), 12u)
        << assembly;
    EXPECT_EQ(count(assembly, "\ttilezero\t"), 6u) << assembly;
    EXPECT_EQ(count(assembly, "\ttileloadd\t"), 2u) << assembly;
    // Nothing but the results.
    EXPECT_EQ(count(assembly, "\ttilestored\t"), 6u) << assembly;
  }
}

//===- RunTool.cpp - Linkers and assemblers -------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Target/RunTool.h"

#include "attune/Runtime/TemporaryFiles.h"

#include "llvm/Support/Program.h"

#include <optional>

namespace attune {

int runTool(llvm::StringRef program, llvm::ArrayRef<llvm::StringRef> arguments,
            llvm::StringRef messages) {
  std::optional<llvm::StringRef> redirects[] = {llvm::StringRef(), messages,
                                                messages};
  bool failed = false;
  // Detached, it leads a process group with all that it starts: a C compiler's
  // driver starts the linker.
  llvm::sys::ProcessInfo process = llvm::sys::ExecuteNoWait(
      program, arguments, /*Env=*/std::nullopt, redirects, /*MemoryLimit=*/0,
      /*ErrMsg=*/nullptr, &failed, /*AffinityMask=*/nullptr,
      /*DetachProcess=*/true);
  if (failed)
    return -1;
  runtime::TemporaryTool watched(process.Pid);
  return llvm::sys::Wait(process, /*SecondsToWait=*/std::nullopt).ReturnCode;
}

} // namespace attune

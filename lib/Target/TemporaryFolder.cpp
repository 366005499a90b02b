//===- TemporaryFolder.cpp - Where tools read and write -------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Target/TemporaryFolder.h"

#include "llvm/Support/FileSystem.h"

namespace attune {

TemporaryFolder::TemporaryFolder(llvm::StringRef name) {
  runtime::SignalsWait wait;
  problem = llvm::sys::fs::createUniqueDirectory(name, path);
  if (!problem)
    watched.watch(getPath());
}

TemporaryFolder::~TemporaryFolder() {
  if (!problem)
    llvm::sys::fs::remove_directories(path);
}

} // namespace attune

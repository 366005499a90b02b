//===- TemporaryFolder.cpp - Where tools read and write -------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Target/TemporaryFolder.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

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

std::error_code TemporaryFolder::write(llvm::StringRef name,
                                       llvm::StringRef content) const {
  std::error_code failed;
  llvm::raw_fd_ostream out(file(name), failed, llvm::sys::fs::OF_None);
  if (failed)
    return failed;
  out << content;
  out.close();
  failed = out.error();
  out.clear_error(); // else the stream ends the program
  return failed;
}

} // namespace attune

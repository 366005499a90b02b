//===- TemporaryFolder.h - Where tools read and write -----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_TARGET_TEMPORARYFOLDER_H
#define ATTUNE_TARGET_TEMPORARYFOLDER_H

#include "attune/Runtime/TemporaryFiles.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringRef.h"

#include <string>
#include <system_error>

namespace attune {

/// A new folder for one run of a tool, removed with all that is in it: by the
/// destructor, or by a signal that ends the program.
class TemporaryFolder {
public:
  /// \p name: what the folder's name begins with.
  explicit TemporaryFolder(llvm::StringRef name);
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;
  ~TemporaryFolder();

  /// Why there is no folder, if there is none.
  std::error_code error() const { return problem; }
  std::string getPath() const { return path.str().str(); }
  /// The path of a file in it.
  std::string file(llvm::StringRef name) const {
    return (path + "/" + name).str();
  }
  /// Makes a file in it; why not, if that fails.
  std::error_code write(llvm::StringRef name, llvm::StringRef content) const;

private:
  llvm::SmallString<128> path;
  std::error_code problem;
  runtime::TemporaryFile watched;
};

} // namespace attune

#endif // ATTUNE_TARGET_TEMPORARYFOLDER_H

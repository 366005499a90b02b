//===- OutputFile.h - Results that appear whole or not at all ---*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_DRIVER_OUTPUTFILE_H
#define ATTUNE_LIB_DRIVER_OUTPUTFILE_H

#include "Options/Options.h"

#include "llvm/ADT/StringRef.h"

#include <memory>
#include <string>
#include <vector>

namespace attune::driver {

/// The files that one command writes. Each is written under a temporary name in
/// the folder it belongs to; commit() gives all of them their names. Whatever
/// was not committed is removed, also on an interrupt.
class OutputFiles {
public:
  explicit OutputFiles(DiagnosticEngine &diags) : diags(diags) {}
  ~OutputFiles();

  /// Reserves `path` and returns the name to write to meanwhile; reports and
  /// returns nothing if that is not possible. An executable file is one that
  /// may be run. "-" is stdout: the text is kept and printed by commit(). A
  /// link stays, and what it leads to is written.
  std::string *reserve(const std::string &path, bool executable = false);
  /// Reserves `path` and writes `text` there.
  bool write(const std::string &path, llvm::StringRef text);
  bool commit();

private:
  struct File {
    std::string path, temporary;
    bool executable = false;
    bool inPlace = false; ///< a device or a pipe: not replaced but written to
  };
  void fail(const std::string &path, const std::string &problem);

  DiagnosticEngine &diags;
  std::vector<std::unique_ptr<File>> files;
  std::string standardOutput;
};

/// Whether no file that the command line asks to write is one that it asks to
/// read; reports the first that is.
bool keepsInputs(const Options &options, DiagnosticEngine &diags);

/// Creates a folder and those above it.
bool makeFolder(const std::string &path, DiagnosticEngine &diags);

} // namespace attune::driver

#endif // ATTUNE_LIB_DRIVER_OUTPUTFILE_H

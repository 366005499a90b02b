//===- CodeCache.h - Code of earlier compilations ---------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_DRIVER_CODECACHE_H
#define ATTUNE_LIB_DRIVER_CODECACHE_H

#include "Options/Options.h"
#include "Report/Report.h"

#include "attune/Target/Backend.h"

#include "llvm/Support/BLAKE3.h"

namespace attune::driver {

/// The result of a compilation before anything is linked or packed.
struct CachedCode {
  std::string metadata;             ///< as describeProduct writes it
  std::vector<std::string> entries; ///< by name
  ProductBytes object;

  std::string write() const;
  static std::optional<CachedCode> read(llvm::StringRef content);
};

/// All that the code depends on, as a number.
class CodeKey {
public:
  /// Begins with this program.
  CodeKey();
  void add(llvm::StringRef part);
  /// As a part of a file's name.
  std::string finish();

private:
  llvm::BLAKE3 hash;
};

/// The folder of `--cache`: a file for each key, with the code of a whole model
/// or the object of a kernel that models may share. Other processes and threads
/// may use it at the same time: a file appears whole under its name. A damaged
/// file counts as missing.
class CodeCache {
public:
  /// Nothing if no folder was asked for.
  static std::optional<CodeCache> open(const Options &options, Report &report);

  std::optional<std::string> find(const std::string &key) const;
  /// A folder that cannot be written is warned of once.
  void add(const std::string &key, llvm::StringRef content);
  /// Removes the least recently used files if all together are too large.
  void prune() const;

private:
  CodeCache(std::string folder, uint64_t limit, Report &report)
      : folder(std::move(folder)), limit(limit), report(&report) {}
  std::string getPath(const std::string &key) const;
  void warn(const std::string &problem);

  std::string folder;
  uint64_t limit; ///< in bytes
  Report *report;
};

} // namespace attune::driver

#endif // ATTUNE_LIB_DRIVER_CODECACHE_H

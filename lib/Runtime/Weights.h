//===- Weights.h - The weights of a compiled model --------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_WEIGHTS_H
#define ATTUNE_LIB_RUNTIME_WEIGHTS_H

#include "attune/Runtime/Error.h"

#include <cstdint>
#include <string>

namespace attune::runtime {

/// The packed weights, mapped from a file or lent by the caller.
class WeightsBlob {
public:
  WeightsBlob() = default;
  WeightsBlob(const WeightsBlob &) = delete;
  WeightsBlob &operator=(const WeightsBlob &) = delete;
  ~WeightsBlob();

  /// Uses memory that outlives this object.
  void borrow(const void *data, uint64_t size) {
    bytes = static_cast<const uint8_t *>(data);
    numBytes = size;
  }
  /// Maps the blob that the trailer at the end of `path` points to. `absent` is
  /// set when the file is readable and simply carries no blob.
  bool map(const std::string &path, bool &absent, Error &error);
  /// Finds and maps the blob of the model whose code or data `symbol` is part
  /// of: at the end of its executable or library, else in `<that
  /// file>.weights`.
  bool locate(const void *symbol, Error &error);

  /// Keeps of a blob for several ranks what one of them reads, as if it stood
  /// side by side: the first `shared` bytes, and the rank's part of the rest,
  /// of which each has `each` bytes.
  bool keepRank(uint64_t rank, uint64_t shared, uint64_t each, Error &error);

  /// The number of the rank whose weights these are, which stands behind them;
  /// `size` bytes are left.
  uint64_t takeRank(uint64_t size);

  /// Copies what was mapped to memory of this process, in large pages where
  /// the system has them, and unmaps the file. A step reads all weights, and
  /// the kernel rarely keeps files in large pages.
  bool read(Error &error);

  const uint8_t *data() const { return bytes; }
  uint64_t size() const { return numBytes; }
  /// The file that was mapped; empty for borrowed memory.
  const std::string &file() const { return path; }
  /// The fingerprint of the layout of what was mapped, in 16 digits; empty if
  /// the file does not tell, which a blob made by hand need not.
  const std::string &layout() const { return fingerprint; }

private:
  const uint8_t *bytes = nullptr;
  uint64_t numBytes = 0;
  std::string path, fingerprint;
  void *mapping = nullptr;
  uint64_t mappingBytes = 0;
  uint64_t fileOffset = 0; ///< of the blob
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_WEIGHTS_H

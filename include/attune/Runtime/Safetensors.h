//===- Safetensors.h - Tensors in files, by mapping -------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A file is 8 bytes of header length (little endian), a JSON header, and the
// tensors' bytes. Reading maps the file and copies nothing; every number in the
// header is checked before it is believed. Writing reserves the whole file
// under a temporary name, hands out its mapped bytes, and renames at the end,
// so that the file appears complete or not at all.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_RUNTIME_SAFETENSORS_H
#define ATTUNE_RUNTIME_SAFETENSORS_H

#include "attune/Runtime/DType.h"
#include "attune/Runtime/TemporaryFiles.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace attune::runtime {

/// A whole file mapped read-only.
class MappedFile {
public:
  MappedFile() = default;
  MappedFile(MappedFile &&other) { swap(other); }
  MappedFile &operator=(MappedFile &&other) {
    swap(other);
    return *this;
  }
  ~MappedFile();

  bool open(const std::string &path, std::string &error);
  const uint8_t *data() const { return bytes; }
  uint64_t size() const { return numBytes; }
  /// Gives back the memory of `count` bytes from `first` on, if they are of
  /// this file; who reads them again reads the file again.
  void release(const uint8_t *first, uint64_t count) const;

private:
  void swap(MappedFile &other) {
    std::swap(bytes, other.bytes);
    std::swap(numBytes, other.numBytes);
  }
  const uint8_t *bytes = nullptr;
  uint64_t numBytes = 0;
};

/// The header entry of one tensor.
struct TensorInfo {
  std::string name;
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  uint64_t offset = 0; ///< of the first byte, from the start of the file
  uint64_t bytes = 0;
  /// The mapped bytes; null in a writer. Aligned to nothing in particular.
  const uint8_t *data = nullptr;
};

/// A safetensors file, open for as long as this object lives.
class SafetensorsFile {
public:
  /// Maps and checks the file. On failure `error` starts with the path.
  bool open(const std::string &path, std::string &error);

  /// In the order of their bytes in the file.
  const std::vector<TensorInfo> &tensors() const { return infos; }
  const TensorInfo *find(std::string_view name) const;
  const std::string &path() const { return filePath; }
  /// As MappedFile.
  void release(const uint8_t *first, uint64_t count) const {
    file.release(first, count);
  }
  /// The "__metadata__" pairs.
  const std::vector<std::pair<std::string, std::string>> &metadata() const {
    return pairs;
  }

private:
  bool parse(std::string &error);
  std::string filePath;
  MappedFile file;
  std::vector<TensorInfo> infos;
  std::vector<uint32_t> byName; ///< indices of `infos`, sorted by name
  std::vector<std::pair<std::string, std::string>> pairs;
};

/// A tensor about to be written.
struct TensorDecl {
  std::string name;
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
};

/// Writes a safetensors file through a mapping. Without a successful commit()
/// nothing is left under the final name.
class SafetensorsWriter {
public:
  SafetensorsWriter() = default;
  SafetensorsWriter(const SafetensorsWriter &) = delete;
  SafetensorsWriter &operator=(const SafetensorsWriter &) = delete;
  ~SafetensorsWriter() { abandon(); }

  /// Reserves the file. Tensors of wide elements are placed first, so that each
  /// is aligned to its element; the first byte of data is 64-byte aligned.
  bool
  create(const std::string &path, std::vector<TensorDecl> tensors,
         std::string &error,
         const std::vector<std::pair<std::string, std::string>> &metadata = {});
  /// The zeroed bytes of the i-th tensor given to create().
  uint8_t *data(size_t i) { return map + offsets[i]; }
  uint64_t bytes(size_t i) const { return sizes[i]; }
  bool commit(std::string &error);
  void abandon();

private:
  std::string finalPath, tempPath;
  TemporaryFile temporary;
  bool toStream = false; ///< the path is a pipe or device: written at commit
  uint8_t *map = nullptr;
  uint64_t mapBytes = 0;
  std::vector<uint64_t> offsets, sizes;
};

} // namespace attune::runtime

#endif // ATTUNE_RUNTIME_SAFETENSORS_H

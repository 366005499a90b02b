//===- CudaPages.h - Addresses without memory -------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The driver's virtual memory: ranges of addresses are reserved, and pages of
// the device's memory mapped to them later. What is written into graphs stays
// good. Nothing that runs may use a page that is unmapped.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_CUDA_CUDAPAGES_H
#define ATTUNE_LIB_RUNTIME_CUDA_CUDAPAGES_H

#include "../Generation/CachePages.h"
#include "CudaDevice.h"

#include <memory>

namespace attune::runtime {

class CudaPages final : public PageSource {
public:
  /// Null without an error: the driver or the device cannot do this.
  static std::unique_ptr<CudaPages> create(CudaDevice &device, Error &error);
  /// Frees what was reserved; pages are unmapped by then.
  ~CudaPages() override;

  /// Addresses, a multiple of a page's size of them. They count as memory of
  /// the device.
  bool reserve(uint64_t bytes, uint8_t *&address, Error &error);
  /// Bytes of the device that nobody uses, and all.
  void countMemory(uint64_t &free, uint64_t &total) const;

  uint64_t pageBytes() const override { return granularity; }
  bool make(uint64_t &page, Error &error) override;
  void drop(uint64_t page) override;
  bool map(uint8_t *place, uint64_t page, Error &error) override;
  bool open(uint8_t *place, size_t count, Error &error) override;
  bool unmap(uint8_t *place, Error &error) override;
  bool copy(uint8_t *to, const uint8_t *from, uint64_t bytes,
            Error &error) override;
  uint8_t *window() override { return filled; }

private:
  explicit CudaPages(CudaDevice &device) : device(device) {}

  CudaDevice &device;
  uint64_t granularity = 0;
  uint8_t *filled = nullptr;
  struct Range {
    uint8_t *address;
    uint64_t bytes;
  };
  std::vector<Range> ranges;
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_CUDA_CUDAPAGES_H

//===- CudaPages.cpp - Addresses without memory ---------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaPages.h"

namespace attune::runtime {

namespace {
// Numbers of the driver's interface.
constexpr int attributeVirtualMemory = 102;
constexpr int leastGranularity = 0;

CudaPageKind kindOn(CudaOrdinal ordinal) {
  CudaPageKind kind = {};
  kind.type = 1; // pinned
  kind.location = {/*device*/ 1, ordinal};
  return kind;
}
CudaAddress addressOf(const uint8_t *place) {
  return reinterpret_cast<CudaAddress>(place);
}
} // namespace

std::unique_ptr<CudaPages> CudaPages::create(CudaDevice &device, Error &error) {
  CudaDriver &driver = device.driver;
  int can = 0;
  if (!driver.canMap() ||
      driver.deviceGetAttribute(&can, attributeVirtualMemory, device.ordinal) !=
          0 ||
      !can)
    return nullptr;
  driver.contextSetCurrent(device.context);
  std::unique_ptr<CudaPages> pages(new CudaPages(device));
  CudaPageKind kind = kindOn(device.ordinal);
  size_t bytes = 0;
  if (device.failed(driver.pageGranularity(&bytes, &kind, leastGranularity),
                    "asking for the size of its pages", error))
    return nullptr;
  pages->granularity = bytes;
  if (bytes == 0 || !pages->reserve(bytes, pages->filled, error))
    return nullptr;
  return pages;
}

CudaPages::~CudaPages() {
  device.driver.contextSetCurrent(device.context);
  device.driver.streamSynchronize(device.stream);
  for (const Range &range : ranges) {
    device.driver.addressFree(addressOf(range.address), range.bytes);
    device.forget(range.address);
  }
}

bool CudaPages::reserve(uint64_t bytes, uint8_t *&address, Error &error) {
  device.driver.contextSetCurrent(device.context);
  CudaAddress base = 0;
  if (device.failed(device.driver.addressReserve(&base, bytes, 0, 0, 0),
                    "reserving addresses", error))
    return false;
  address = reinterpret_cast<uint8_t *>(base);
  ranges.push_back({address, bytes});
  device.allocated.push_back({base, bytes});
  return true;
}

void CudaPages::countMemory(uint64_t &free, uint64_t &total) const {
  size_t freeBytes = 0, allBytes = 0;
  device.driver.contextSetCurrent(device.context);
  device.driver.memGetInfo(&freeBytes, &allBytes);
  free = freeBytes;
  total = allBytes;
}

bool CudaPages::make(uint64_t &page, Error &error) {
  device.driver.contextSetCurrent(device.context);
  CudaPageKind kind = kindOn(device.ordinal);
  unsigned long long made = 0;
  CudaResult result = device.driver.pageCreate(&made, granularity, &kind, 0);
  if (result == CudaOutOfMemory ||
      device.failed(result, "making a page of memory", error))
    return false;
  page = made;
  return true;
}

void CudaPages::drop(uint64_t page) { device.driver.pageRelease(page); }

bool CudaPages::map(uint8_t *place, uint64_t page, Error &error) {
  device.driver.contextSetCurrent(device.context);
  return !device.failed(
      device.driver.pageMap(addressOf(place), granularity, 0, page, 0),
      "mapping a page of memory", error);
}

bool CudaPages::open(uint8_t *place, size_t count, Error &error) {
  device.driver.contextSetCurrent(device.context);
  CudaPageAccess access = {{/*device*/ 1, device.ordinal},
                           /*reading and writing*/ 3};
  return !device.failed(device.driver.pageSetAccess(
                            addressOf(place), count * granularity, &access, 1),
                        "letting kernels use pages of memory", error);
}

bool CudaPages::unmap(uint8_t *place, Error &error) {
  device.driver.contextSetCurrent(device.context);
  return !device.failed(device.driver.streamSynchronize(device.stream),
                        "running the model", error) &&
         !device.failed(device.driver.pageUnmap(addressOf(place), granularity),
                        "unmapping a page of memory", error);
}

bool CudaPages::copy(uint8_t *to, const uint8_t *from, uint64_t bytes,
                     Error &error) {
  return device.copy(to, from, bytes, error);
}

} // namespace attune::runtime

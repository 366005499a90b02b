//===- FakePages.cpp - Addresses and pages of the fake driver -------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The driver's virtual memory by the host's: a page is a file in memory, which
// can be mapped at several addresses. What the driver's manual forbids is an
// error: pages of another size, a place that is taken or not reserved, a page
// that is released twice, a range that is freed while something is mapped
// there.
//
//   FAKE_CUDA_PAGE   bytes of a page (2 MiB); 0: the device has no such pages
//
//===----------------------------------------------------------------------===//

#include "FakeCuda.h"

#include <cstring>
#include <map>
#include <sys/mman.h>
#include <unistd.h>

using namespace fake;

namespace {

/// CUmemLocation, CUmemAllocationProp and CUmemAccessDesc
struct Location {
  int type, id;
};
struct Properties {
  int type, handles;
  Location location;
  void *metadata;
  unsigned char flags[8];
};
struct Access {
  Location location;
  int flags;
};

struct Page {
  int file;
  bool isReleased = false;
  unsigned places = 0;
};
struct Mapping {
  uint64_t page;
  bool isAccessible = false;
};

std::map<Address, size_t> ranges;
std::map<uint64_t, Page> pages; ///< by their handles
std::map<Address, Mapping> mapped;
uint64_t nextPage = 1;

uint64_t pageBytes() { return setting("FAKE_CUDA_PAGE", uint64_t(2) << 20); }

bool isReserved(Address address, size_t bytes) {
  auto range = ranges.upper_bound(address);
  if (range == ranges.begin())
    return false;
  --range;
  return address + bytes <= range->first + range->second;
}

bool fits(const Properties &kind) {
  return kind.type == 1 && kind.handles == 0 && kind.location.type == 1;
}

/// A page that has neither a handle nor a place is no more.
void forgetUnused(uint64_t handle) {
  const Page &page = pages.at(handle);
  if (!page.isReleased || page.places > 0)
    return;
  close(page.file);
  pages.erase(handle);
  device().used -= pageBytes();
}

} // namespace

extern "C" {

Result cuMemGetAllocationGranularity(size_t *bytes, const Properties *kind,
                                     int) {
  *bytes = pageBytes();
  return fits(*kind) ? Success : InvalidValue;
}

Result cuMemAddressReserve(Address *address, size_t bytes, size_t, Address,
                           unsigned long long) {
  if (bytes == 0 || bytes % pageBytes() != 0)
    return InvalidValue;
  // As much again, to begin at a multiple of a page.
  size_t all = bytes + pageBytes();
  void *place = mmap(nullptr, all, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place == MAP_FAILED)
    return OutOfMemory;
  auto start = reinterpret_cast<Address>(place);
  Address begin = (start + pageBytes() - 1) / pageBytes() * pageBytes();
  if (begin > start)
    munmap(place, begin - start);
  if (start + all > begin + bytes)
    munmap(reinterpret_cast<void *>(begin + bytes),
           start + all - begin - bytes);
  ranges[ *address = begin] = bytes;
  log("reserve " + std::to_string(bytes));
  return Success;
}

Result cuMemAddressFree(Address address, size_t bytes) {
  auto range = ranges.find(address);
  auto inside = mapped.lower_bound(address);
  if (range == ranges.end() || range->second != bytes ||
      (inside != mapped.end() && inside->first < address + bytes))
    return InvalidValue;
  munmap(reinterpret_cast<void *>(address), bytes);
  ranges.erase(range);
  return Success;
}

Result cuMemCreate(unsigned long long *handle, size_t bytes,
                   const Properties *kind, unsigned long long flags) {
  if (bytes != pageBytes() || !fits(*kind) || flags != 0)
    return InvalidValue;
  if (!hasFree(bytes))
    return OutOfMemory;
  int file = memfd_create("page", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, off_t(bytes)) != 0)
    return OutOfMemory;
  void *place =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (place == MAP_FAILED)
    return OutOfMemory;
  std::memset(place, 0xff, bytes);
  munmap(place, bytes);
  Page page;
  page.file = file;
  pages[ *handle = nextPage++] = page;
  device().used += bytes;
  log("page, " + std::to_string(pages.size()) + " there");
  return Success;
}

Result cuMemRelease(unsigned long long handle) {
  auto page = pages.find(handle);
  if (page == pages.end() || page->second.isReleased)
    return InvalidValue;
  page->second.isReleased = true;
  forgetUnused(handle);
  log("page given back, " + std::to_string(pages.size()) + " there");
  return Success;
}

Result cuMemMap(Address address, size_t bytes, size_t offset,
                unsigned long long handle, unsigned long long flags) {
  auto page = pages.find(handle);
  if (bytes != pageBytes() || address % bytes != 0 || offset != 0 ||
      flags != 0 || page == pages.end() || page->second.isReleased ||
      !isReserved(address, bytes) || mapped.count(address))
    return InvalidValue;
  if (mmap(reinterpret_cast<void *>(address), bytes, PROT_NONE,
           MAP_SHARED | MAP_FIXED, page->second.file, 0) == MAP_FAILED)
    return OutOfMemory;
  ++page->second.places;
  mapped[address] = {handle};
  return Success;
}

Result cuMemSetAccess(Address address, size_t bytes, const Access *access,
                      size_t count) {
  uint64_t page = pageBytes();
  if (bytes == 0 || bytes % page != 0 || count != 1 ||
      access->location.type != 1 || access->flags != 3)
    return InvalidValue;
  for (Address at = address; at < address + bytes; at += page)
    if (auto place = mapped.find(at);
        place == mapped.end() || place->second.isAccessible)
      return InvalidValue;
  mprotect(reinterpret_cast<void *>(address), bytes, PROT_READ | PROT_WRITE);
  for (Address at = address; at < address + bytes; at += page) {
    mapped[at].isAccessible = true;
    device().memory.add(at, page, /*joins=*/true);
  }
  log("access to " + std::to_string(bytes / page) + " pages");
  return Success;
}

Result cuMemUnmap(Address address, size_t bytes) {
  auto place = mapped.find(address);
  if (bytes != pageBytes() || place == mapped.end())
    return InvalidValue;
  mmap(reinterpret_cast<void *>(address), bytes, PROT_NONE,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  if (place->second.isAccessible)
    device().memory.remove(address);
  uint64_t handle = place->second.page;
  mapped.erase(place);
  --pages.at(handle).places;
  forgetUnused(handle);
  return Success;
}

} // extern "C"

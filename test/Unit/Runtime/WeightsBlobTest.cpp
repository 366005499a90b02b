//===- WeightsBlobTest.cpp - Weights that are mapped from a file ----------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Weights.h"

#include <cstdio>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

using namespace attune::runtime;

namespace {
std::string littleEndian(uint64_t value) {
  std::string bytes;
  for (int i = 0; i < 8; ++i, value >>= 8)
    bytes += static_cast<char>(value & 255);
  return bytes;
}

/// KiB of the mapping around `address` that are in this process's page tables.
long residentAt(const void *address) {
  std::FILE *maps = std::fopen("/proc/self/smaps", "r");
  if (!maps)
    return -1;
  char line[512];
  long resident = -1;
  bool inside = false;
  auto wanted = reinterpret_cast<uintptr_t>(address);
  while (resident < 0 && std::fgets(line, sizeof line, maps)) {
    uintptr_t begin, end;
    if (std::sscanf(line, "%zx-%zx ", &begin, &end) == 2)
      inside = begin <= wanted && wanted < end;
    else if (inside)
      std::sscanf(line, "Rss: %ld kB", &resident);
  }
  std::fclose(maps);
  return resident;
}

/// A file of weights, whose bytes count from 0 to 250.
struct WeightFile {
  std::string path = testing::TempDir() + "weights-blob";
  explicit WeightFile(uint64_t size) {
    std::FILE *file = std::fopen(path.c_str(), "wb");
    std::vector<char> weights(size);
    for (uint64_t i = 0; i < size; ++i)
      weights[i] = static_cast<char>(i % 251);
    std::string trailer =
        littleEndian(0) + littleEndian(size) + littleEndian(0) + "ATTUNEW1";
    EXPECT_TRUE(file);
    EXPECT_EQ(std::fwrite(weights.data(), 1, size, file), size);
    EXPECT_EQ(std::fwrite(trailer.data(), 1, trailer.size(), file), 32u);
    std::fclose(file);
  }
  ~WeightFile() { std::remove(path.c_str()); }
};
} // namespace

// Kernels prefetch weights, and a prefetch of a page that is not in the page
// tables waits for them in vain, each time.
TEST(WeightsBlob, HasThePagesThatAreInMemory) {
#ifdef MADV_POPULATE_READ
  constexpr uint64_t size = 20 << 20; // more than one question to the kernel
  WeightFile file(size);
  {
    WeightsBlob blob;
    Error error;
    bool absent;
    ASSERT_TRUE(blob.map(file.path, absent, error)) << error.message;
    ASSERT_EQ(blob.size(), size);
    long resident = residentAt(blob.data());
    void *page =
        mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool can = madvise(page, 4096, MADV_POPULATE_READ) == 0;
    munmap(page, 4096);
    if (resident >= 0 && can)
      EXPECT_EQ(resident, static_cast<long>(size >> 10));
  }
#else
  GTEST_SKIP() << "no MADV_POPULATE_READ";
#endif
}

TEST(WeightsBlob, IsReadIntoMemory) {
  constexpr uint64_t size = (5 << 20) + 77;
  WeightsBlob blob;
  Error error;
  {
    WeightFile file(size);
    bool absent;
    ASSERT_TRUE(blob.map(file.path, absent, error)) << error.message;
    const uint8_t *mapped = blob.data();
    ASSERT_TRUE(blob.read(error)) << error.message;
    EXPECT_NE(blob.data(), mapped);
    // What happens to the file is of no consequence now.
    ASSERT_EQ(truncate(file.path.c_str(), 0), 0);
  }
  ASSERT_EQ(blob.size(), size);
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < size; ++i)
    wrong += blob.data()[i] != i % 251;
  EXPECT_EQ(wrong, 0u);
  if (long resident = residentAt(blob.data()); resident >= 0)
    EXPECT_GE(resident, static_cast<long>(size >> 10));
}

// Memory that the caller lends stays where it is.
TEST(WeightsBlob, LeavesBorrowedMemory) {
  uint8_t lent[64] = {};
  WeightsBlob blob;
  Error error;
  blob.borrow(lent, sizeof lent);
  EXPECT_TRUE(blob.read(error));
  EXPECT_EQ(blob.data(), lent);
}

//===- Weights.cpp - The weights of a compiled model ----------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Weights.h"

#include "attune/Runtime/ThreadTeam.h"
#include "attune/Runtime/WeightSection.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace attune::runtime {

static constexpr uint64_t trailerBytes = 32, alignment = 64;
static constexpr char trailerMagic[] = "ATTUNEW1";

static uint64_t littleEndian(const uint8_t *bytes) {
  uint64_t value = 0;
  for (int i = 7; i >= 0; --i)
    value = value << 8 | bytes[i];
  return value;
}

/// Maps the pages of a file's mapping that are in memory already; the others
/// come when they are read. Kernels prefetch weights, and a prefetch waits for
/// the page tables but never enters a page into them: on Zen 1 a first prompt
/// took 2.4 times as long as the second one. Of files that are not this user's
/// the kernel does not tell what is there.
static void mapPagesInMemory(int fd, void *start, uint64_t size) {
  struct stat info;
  if (geteuid() != 0 && (fstat(fd, &info) != 0 || info.st_uid != geteuid()))
    return;
#ifndef MADV_POPULATE_READ // Linux 5.14
#define MADV_POPULATE_READ 22
#endif
  unsigned char inMemory[4096];
  uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  auto *bytes = static_cast<uint8_t *>(start);
  for (uint64_t at = 0; at < size; at += sizeof inMemory * page) {
    uint64_t part = std::min<uint64_t>(size - at, sizeof inMemory * page);
    uint64_t pages = (part + page - 1) / page;
    if (mincore(bytes + at, part, inMemory) != 0)
      return;
    for (uint64_t i = 0, end; i < pages; i = end + 1) {
      for (end = i; end < pages && inMemory[end] & 1;)
        ++end;
      if (end > i && madvise(bytes + at + i * page, (end - i) * page,
                             MADV_POPULATE_READ) != 0)
        return;
    }
  }
}

WeightsBlob::~WeightsBlob() {
  if (mapping)
    munmap(mapping, mappingBytes);
}

bool WeightsBlob::map(const std::string &path, bool &absent, Error &error) {
  absent = false;
  auto fail = [&](int fd, const std::string &what) {
    if (fd >= 0)
      close(fd);
    return error.badInput(path + ": " + what);
  };
  // A pipe without a writer would block; what is no plain file is refused
  // below.
  int fd = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0)
    return fail(fd, std::string("cannot open: ") + std::strerror(errno));
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
    return fail(fd, "is not a plain file");
  uint64_t fileBytes = static_cast<uint64_t>(info.st_size);
  uint8_t trailer[trailerBytes];
  auto readTrailer = [&](uint64_t end) {
    return end >= trailerBytes &&
           pread(fd, trailer, trailerBytes,
                 static_cast<off_t>(end - trailerBytes)) ==
               static_cast<ssize_t>(trailerBytes) &&
           std::memcmp(trailer + 24, trailerMagic, 8) == 0;
  };
  uint64_t offset, size, room;
  WeightSection section = {};
  if (readTrailer(fileBytes)) {
    offset = littleEndian(trailer);
    room = fileBytes - trailerBytes;
  } else if (findWeightSection(fd, fileBytes, section) &&
             readTrailer(section.offset + section.size)) {
    // Something like `strip` has moved the section: the trailer tells the
    // size still, and the section the place.
    offset = section.offset;
    room = section.offset + section.size - trailerBytes;
  } else if (section.offset > fileBytes ||
             section.size > fileBytes - section.offset) {
    return fail(fd, "is cut short: it has " + std::to_string(fileBytes) +
                        " of " + std::to_string(section.offset + section.size) +
                        " bytes; copy it again");
  } else {
    absent = true;
    return fail(fd, "carries no weights of a compiled model");
  }
  size = littleEndian(trailer + 8);
  if (offset > room || size > room - offset)
    return fail(fd, "the weights are cut short");
  // Code reads whole vectors from what the compiler laid on cache lines.
  if (offset % alignment != 0)
    return fail(fd, "the weights begin at byte " + std::to_string(offset) +
                        ", which is no multiple of " +
                        std::to_string(alignment));
  // Mappings start on pages, whose size only the running machine knows.
  uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  uint64_t start = offset / page * page;
  if (size) {
    mappingBytes = offset - start + size;
    mapping = mmap(nullptr, mappingBytes, PROT_READ, MAP_PRIVATE, fd,
                   static_cast<off_t>(start));
    if (mapping == MAP_FAILED) {
      mapping = nullptr;
      return fail(fd, std::string("cannot map: ") + std::strerror(errno));
    }
    // Where files can be in large pages, fewer are looked up on the way.
    madvise(mapping, mappingBytes, MADV_HUGEPAGE);
    mapPagesInMemory(fd, mapping, mappingBytes);
    bytes = static_cast<const uint8_t *>(mapping) + (offset - start);
  }
  numBytes = size;
  fileOffset = offset;
  this->path = path;
  if (uint64_t told = littleEndian(trailer + 16)) {
    char digits[17];
    std::snprintf(digits, sizeof digits, "%016llx",
                  static_cast<unsigned long long>(told));
    fingerprint = digits;
  }
  close(fd);
  return true;
}

uint64_t WeightsBlob::takeRank(uint64_t size) {
  numBytes = size;
  return littleEndian(bytes + size);
}

bool WeightsBlob::keepRank(uint64_t rank, uint64_t shared, uint64_t each,
                           Error &error) {
  struct Part {
    uint64_t from, to, size;
  } parts[] = {{fileOffset, 0, shared},
               {fileOffset + shared + rank * each, shared, each}};
  auto fail = [&](int fd, const char *what) {
    if (fd >= 0)
      close(fd);
    return error.badInput(path + ": " + what + ": " + std::strerror(errno));
  };
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return fail(fd, "cannot open");
  uint64_t size = shared + each;
  void *range = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED)
    return fail(fd, "cannot map");
  munmap(mapping, mappingBytes);
  mapping = range;
  mappingBytes = size;
  auto *place = static_cast<uint8_t *>(range);
  uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  for (const Part &part : parts) {
    if (!part.size)
      continue;
    // Where something has moved the blob off the pages, or pages are larger
    // than it was laid out for, it is read.
    if (part.from % page == 0 && part.to % page == 0) {
      if (mmap(place + part.to, part.size, PROT_READ, MAP_PRIVATE | MAP_FIXED,
               fd, static_cast<off_t>(part.from)) == MAP_FAILED)
        return fail(fd, "cannot map");
      continue;
    }
    for (uint64_t done = 0; done < part.size;) {
      ssize_t got = pread(fd, place + part.to + done, part.size - done,
                          static_cast<off_t>(part.from + done));
      if (got < 0 && errno == EINTR)
        continue;
      if (got <= 0)
        return fail(fd, "cannot read");
      done += static_cast<uint64_t>(got);
    }
  }
  madvise(range, size, MADV_HUGEPAGE);
  mapPagesInMemory(fd, range, size);
  close(fd);
  bytes = place;
  numBytes = size;
  return true;
}

bool WeightsBlob::read(Error &error) {
  if (!mapping)
    return true; // none, or memory of the caller's
  auto fail = [&](const std::string &why) {
    return error.set(ExitResourceLimit,
                     path + ": its " + std::to_string(numBytes) +
                         " bytes of weights are not read into memory: " + why +
                         "; without --no-mmap the file is mapped");
  };
  uint64_t most = physicalMemory();
  if (numBytes > most)
    return fail("the machine has " + std::to_string(most));
  constexpr uint64_t largePage = 2 << 20;
  uint64_t size = (numBytes + largePage - 1) / largePage * largePage;
  // The kernel lays such mappings on large pages from 6.7 on; before, what is
  // left over at the ends is in small ones.
  void *range = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (range == MAP_FAILED)
    return fail(std::strerror(errno));
  madvise(range, size, MADV_HUGEPAGE);
  std::memcpy(range, bytes, numBytes);
  mprotect(range, size, PROT_READ);
  munmap(mapping, mappingBytes);
  mapping = range;
  mappingBytes = size;
  bytes = static_cast<const uint8_t *>(range);
  return true;
}

/// The same by the loader's account, which needs no /proc: libraries under the
/// name they were opened by, the program under the one it was started by.
static std::string imageByLoader(const void *address) {
  struct Search {
    uintptr_t wanted;
    bool found = false;
    std::string name;
  } search = {reinterpret_cast<uintptr_t>(address)};
  dl_iterate_phdr(
      [](dl_phdr_info *info, size_t, void *context) {
        Search &search = *static_cast<Search *>(context);
        for (int i = 0; i < info->dlpi_phnum && !search.found; ++i) {
          const auto &segment = info->dlpi_phdr[i];
          uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
          search.found = segment.p_type == PT_LOAD && search.wanted >= begin &&
                         search.wanted - begin < segment.p_memsz;
        }
        if (search.found)
          search.name = info->dlpi_name;
        return search.found ? 1 : 0;
      },
      &search);
  if (search.found && search.name.empty())
    if (auto *name = reinterpret_cast<const char *>(getauxval(AT_EXECFN)))
      search.name = name;
  return search.name;
}

/// The file that the loader mapped at `address`, by the kernel's account: it
/// knows executables and libraries alike, and whatever name they were run by.
static std::string imageOf(const void *address) {
  FILE *maps = std::fopen("/proc/self/maps", "re");
  if (!maps)
    return imageByLoader(address);
  unsigned long long wanted = reinterpret_cast<uintptr_t>(address);
  std::string image;
  char *line = nullptr;
  size_t capacity = 0;
  ssize_t length;
  while (image.empty() && (length = getline(&line, &capacity, maps)) > 0) {
    unsigned long long begin, end;
    if (std::sscanf(line, "%llx-%llx", &begin, &end) != 2 || wanted < begin ||
        wanted >= end)
      continue;
    if (line[length - 1] == '\n')
      line[length - 1] = '\0';
    if (const char *path = std::strchr(line, '/'))
      image = path;
    // The kernel writes a line's end in a name as \012, and nothing else so.
    std::string undone = image;
    for (size_t at; (at = undone.find("\\012")) != std::string::npos;)
      undone.replace(at, 4, "\n");
    if (access(image.c_str(), F_OK) != 0 && access(undone.c_str(), F_OK) == 0)
      image = undone;
    break;
  }
  std::free(line);
  std::fclose(maps);
  return image;
}

bool WeightsBlob::locate(const void *symbol, Error &error) {
  std::string image = imageOf(symbol);
  if (image.empty())
    return error.badInput("cannot find the file that the model was loaded "
                          "from; name its weights explicitly");
  bool absent;
  if (map(image, absent, error))
    return true;
  if (!absent)
    return false;
  std::string beside = image + ".weights";
  if (access(beside.c_str(), F_OK) == 0)
    return map(beside, absent, error);
  return error.badInput("the model's weights are neither in " + image +
                        " nor in " + beside + "; name their file explicitly");
}

} // namespace attune::runtime

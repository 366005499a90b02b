//===- SafetensorsWriter.cpp - Writing tensors, whole or not at all -------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Runtime/Json.h"
#include "attune/Runtime/Safetensors.h"
#include "attune/Runtime/WholeFile.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <numeric>
#include <sys/mman.h>
#include <unistd.h>

namespace attune::runtime {

bool SafetensorsWriter::create(
    const std::string &path, std::vector<TensorDecl> tensors,
    std::string &error,
    const std::vector<std::pair<std::string, std::string>> &metadata) {
  abandon();
  auto fail = [&](const std::string &what) {
    error = path + ": " + what;
    abandon();
    return false;
  };
  // The order in the file: wide elements first, otherwise as given.
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    unsigned wideA = dtypeBytes(tensors[a].dtype),
             wideB = dtypeBytes(tensors[b].dtype);
    return wideA != wideB ? wideA > wideB : a < b;
  });
  offsets.assign(tensors.size(), 0);
  sizes.assign(tensors.size(), 0);
  std::string header = "{";
  if (!metadata.empty()) {
    header += "\"__metadata__\":{";
    for (size_t i = 0; i < metadata.size(); ++i) {
      header += i ? "," : "";
      appendJsonString(header, metadata[i].first);
      header += ':';
      appendJsonString(header, metadata[i].second);
    }
    header += '}';
  }
  uint64_t end = 0;
  for (size_t i : order) {
    const TensorDecl &decl = tensors[i];
    if (!byteSize(decl.shape, dtypeBytes(decl.dtype), sizes[i]) ||
        __builtin_add_overflow(end, sizes[i], &end) ||
        end > uint64_t(INT64_MAX) / 2)
      return fail("tensor '" + decl.name + "' of shape " +
                  formatShape(decl.shape) + " is too large");
    offsets[i] = end - sizes[i];
    if (header.size() > 1)
      header += ',';
    appendJsonString(header, decl.name);
    header += ":{\"dtype\":\"";
    header += dtypeName(decl.dtype);
    header += "\",\"shape\":[";
    for (size_t d = 0; d < decl.shape.size(); ++d)
      header += (d ? "," : "") + std::to_string(decl.shape[d]);
    header += "],\"data_offsets\":[" + std::to_string(offsets[i]) + "," +
              std::to_string(end) + "]}";
  }
  header += '}';
  header.append((64 - (8 + header.size()) % 64) % 64, ' ');
  uint64_t dataStart = 8 + header.size();
  for (uint64_t &offset : offsets)
    offset += dataStart;
  mapBytes = dataStart + end;

  OutputPlace place;
  std::string problem;
  if (!findOutputPlace(path, place, problem))
    return fail("cannot create: " + problem);
  if (place.isFolder)
    return fail("cannot write: it is a folder");
  finalPath = place.path;
  toStream = place.isStream;
  int fd = -1, flags = MAP_PRIVATE | MAP_ANONYMOUS;
  if (!toStream) {
    flags = MAP_SHARED;
    fd = createBeside(finalPath, tempPath);
    if (fd < 0) {
      std::string reason = std::strerror(errno);
      tempPath.clear();
      return fail("cannot create: " + reason);
    }
    temporary.watch(tempPath);
    // Reserved now, because a mapped write to a full disk kills the process.
    int failure = posix_fallocate(fd, 0, static_cast<off_t>(mapBytes));
    if (failure == EOPNOTSUPP || failure == EINVAL)
      failure = ftruncate(fd, static_cast<off_t>(mapBytes)) ? errno : 0;
    if (failure) {
      close(fd);
      return fail("cannot reserve " + std::to_string(mapBytes) +
                  " bytes: " + std::strerror(failure));
    }
  }
  void *mapped = mmap(nullptr, mapBytes, PROT_READ | PROT_WRITE, flags, fd, 0);
  int reason = errno;
  if (fd >= 0)
    close(fd);
  if (mapped == MAP_FAILED)
    return fail("cannot map " + std::to_string(mapBytes) +
                " bytes: " + std::strerror(reason));
  map = static_cast<uint8_t *>(mapped);
  for (int i = 0; i < 8; ++i)
    map[i] = static_cast<uint8_t>(uint64_t(header.size()) >> (8 * i));
  std::memcpy(map + 8, header.data(), header.size());
  return true;
}

bool SafetensorsWriter::commit(std::string &error) {
  if (!map) {
    error = finalPath + ": nothing to write";
    return false;
  }
  auto fail = [&](const std::string &what) {
    error = finalPath + ": " + what + ": " + std::strerror(errno);
    abandon();
    return false;
  };
  if (toStream) {
    int fd = ::open(finalPath.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0)
      return fail("cannot open");
    for (uint64_t done = 0; done < mapBytes;) {
      ssize_t n =
          write(fd, map + done, std::min<uint64_t>(mapBytes - done, 1u << 30));
      if (n < 0 && errno == EINTR)
        continue;
      if (n <= 0) {
        int reason = errno;
        close(fd);
        errno = reason;
        return fail("cannot write");
      }
      done += static_cast<uint64_t>(n);
    }
    close(fd);
    abandon();
    return true;
  }
  munmap(map, mapBytes);
  map = nullptr;
  if (rename(tempPath.c_str(), finalPath.c_str()) != 0)
    return fail("cannot rename the finished file");
  temporary.forget();
  tempPath.clear();
  return true;
}

void SafetensorsWriter::abandon() {
  if (map)
    munmap(map, mapBytes);
  map = nullptr;
  if (!tempPath.empty())
    unlink(tempPath.c_str());
  temporary.forget();
  tempPath.clear();
  toStream = false;
}

} // namespace attune::runtime

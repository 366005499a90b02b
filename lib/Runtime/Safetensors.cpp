//===- Safetensors.cpp - Reading tensors by mapping -----------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Runtime/Safetensors.h"
#include "attune/Runtime/Json.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <numeric>
#include <sys/mman.h>
#include <sys/stat.h>
#include <tuple>
#include <unistd.h>

namespace attune::runtime {

//===----------------------------------------------------------------------===//
// MappedFile
//===----------------------------------------------------------------------===//

MappedFile::~MappedFile() {
  if (bytes)
    munmap(const_cast<uint8_t *>(bytes), numBytes);
}

void MappedFile::release(const uint8_t *first, uint64_t count) const {
  if (!bytes || first < bytes || first >= bytes + numBytes)
    return;
  auto page = uint64_t(sysconf(_SC_PAGESIZE)), start = uint64_t(first - bytes);
  uint64_t end = std::min(start + count, numBytes);
  start = start / page * page;
  // A mapping that is only read has nothing to lose.
  madvise(const_cast<uint8_t *>(bytes) + start, end - start, MADV_DONTNEED);
}

static bool isDanglingLink(const std::string &path) {
  struct stat info;
  return lstat(path.c_str(), &info) == 0 && S_ISLNK(info.st_mode);
}

bool MappedFile::open(const std::string &path, std::string &error) {
  auto fail = [&](const std::string &what) {
    error = path + ": " + what;
    return false;
  };
  // A pipe without a writer would block; what is no plain file is refused
  // below.
  int fd = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0)
    return fail(errno == ENOENT && isDanglingLink(path)
                    ? "is a link to a file that is not there"
                    : std::string("cannot open: ") + std::strerror(errno));
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    close(fd);
    return fail(S_ISDIR(info.st_mode) ? "is a folder" : "is not a plain file");
  }
  uint64_t size = static_cast<uint64_t>(info.st_size);
  void *map = nullptr;
  if (size)
    map = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  int reason = errno;
  close(fd);
  if (map == MAP_FAILED)
    return fail(std::string("cannot map: ") + std::strerror(reason));
  MappedFile opened;
  opened.bytes = static_cast<const uint8_t *>(map);
  opened.numBytes = size;
  swap(opened);
  return true;
}

//===----------------------------------------------------------------------===//
// SafetensorsFile
//===----------------------------------------------------------------------===//

static constexpr uint64_t maxHeaderBytes = 100000000;
static constexpr size_t maxRank = 32;

static std::string quoted(std::string_view name) {
  if (name.size() > 200)
    return "'" + std::string(name.substr(0, 200)) + "...'";
  return "'" + std::string(name) + "'";
}

/// Fills dtype, shape, offset (from the start of the data) and bytes.
static bool parseTensor(const JsonValue &entry, uint64_t dataBytes,
                        TensorInfo &info, std::string &error) {
  auto fail = [&](const std::string &what) {
    error = "tensor " + quoted(info.name) + ": " + what;
    return false;
  };
  if (!entry.isObject())
    return fail(std::string("expected an object, found ") + entry.kindName());
  for (const std::string &key : entry.keys)
    if (key != "dtype" && key != "shape" && key != "data_offsets")
      return fail("unknown field " + quoted(key));
  const JsonValue *dtype = entry.find("dtype"), *shape = entry.find("shape"),
                  *range = entry.find("data_offsets");
  if (!dtype || !dtype->isString())
    return fail("no 'dtype' string");
  if (!parseDType(dtype->string, info.dtype) ||
      dtype->string != dtypeName(info.dtype))
    return fail("unknown dtype " + quoted(dtype->string));
  if (!shape || !shape->isArray())
    return fail("no 'shape' array");
  if (shape->items.size() > maxRank)
    return fail("has " + std::to_string(shape->items.size()) +
                " dimensions, more than " + std::to_string(maxRank));
  for (const JsonValue &size : shape->items) {
    if (!size.isInt() || size.integer < 0)
      return fail("a size in 'shape' is not a natural number");
    info.shape.push_back(size.integer);
  }
  if (!range || !range->isArray() || range->items.size() != 2 ||
      !range->items[0].isInt() || !range->items[1].isInt() ||
      range->items[0].integer < 0 ||
      range->items[1].integer < range->items[0].integer)
    return fail("'data_offsets' is not a pair of ascending natural numbers");
  uint64_t begin = range->items[0].integer, end = range->items[1].integer;
  if (end > dataBytes)
    return fail("'data_offsets' end at byte " + std::to_string(end) +
                ", but the file has " + std::to_string(dataBytes) +
                " bytes of data; it may be cut short");
  uint64_t expected;
  if (!byteSize(info.shape, dtypeBytes(info.dtype), expected))
    return fail("shape " + formatShape(info.shape) + " is too large");
  if (expected != end - begin)
    return fail("shape " + formatShape(info.shape) + " of " +
                dtypeName(info.dtype) + " takes " + std::to_string(expected) +
                " bytes, but 'data_offsets' span " +
                std::to_string(end - begin));
  info.offset = begin;
  info.bytes = expected;
  return true;
}

bool SafetensorsFile::parse(std::string &error) {
  if (file.size() < 8) {
    error = "not a safetensors file: it has fewer than 8 bytes";
    return false;
  }
  std::string_view start(reinterpret_cast<const char *>(file.data()),
                         std::min<uint64_t>(file.size(), 64));
  if (start.rfind("version https://git-lfs.github.com/spec/", 0) == 0) {
    error = "is a pointer of Git LFS, not the file itself; run 'git lfs pull' "
            "in its folder";
    return false;
  }
  uint64_t headerBytes = 0;
  for (int i = 7; i >= 0; --i)
    headerBytes = headerBytes << 8 | file.data()[i];
  if (headerBytes > maxHeaderBytes || headerBytes > file.size() - 8) {
    error = "not a safetensors file, or cut short: it announces a header of " +
            std::to_string(headerBytes) + " bytes and has " +
            std::to_string(file.size()) + " bytes in all";
    return false;
  }
  std::string_view header(reinterpret_cast<const char *>(file.data()) + 8,
                          headerBytes);
  if (header.empty() || header.front() != '{') {
    error = "not a safetensors file: the header does not start with '{'";
    return false;
  }
  JsonLimits limits;
  limits.maxDepth = 4;
  JsonValue root;
  std::string reason;
  if (!parseJson(header, root, reason, limits)) {
    error = "the header is not valid JSON: " + reason;
    return false;
  }
  uint64_t dataStart = 8 + headerBytes, dataBytes = file.size() - dataStart;
  for (size_t i = 0; i < root.keys.size(); ++i) {
    if (root.keys[i] == "__metadata__") {
      const JsonValue &meta = root.items[i];
      if (!meta.isObject()) {
        error = "'__metadata__' is not an object";
        return false;
      }
      for (size_t m = 0; m < meta.keys.size(); ++m) {
        if (!meta.items[m].isString()) {
          error = "'__metadata__' holds something other than strings";
          return false;
        }
        pairs.emplace_back(meta.keys[m], meta.items[m].string);
      }
      continue;
    }
    TensorInfo info;
    info.name = root.keys[i];
    if (!parseTensor(root.items[i], dataBytes, info, error))
      return false;
    infos.push_back(std::move(info));
  }
  std::sort(infos.begin(), infos.end(),
            [](const TensorInfo &a, const TensorInfo &b) {
              return std::tie(a.offset, a.bytes, a.name) <
                     std::tie(b.offset, b.bytes, b.name);
            });
  uint64_t end = 0;
  for (size_t i = 0; i < infos.size(); ++i) {
    if (infos[i].offset < end) {
      error = "tensors " + quoted(infos[i - 1].name) + " and " +
              quoted(infos[i].name) + " overlap";
      return false;
    }
    if (infos[i].offset > end) {
      error = "bytes " + std::to_string(end) + " to " +
              std::to_string(infos[i].offset) + " of the data, before tensor " +
              quoted(infos[i].name) + ", belong to no tensor";
      return false;
    }
    end = infos[i].offset + infos[i].bytes;
    infos[i].offset += dataStart;
    infos[i].data = file.data() + infos[i].offset;
  }
  if (end != dataBytes) {
    error = "the last " + std::to_string(dataBytes - end) +
            " bytes belong to no tensor";
    return false;
  }
  byName.resize(infos.size());
  std::iota(byName.begin(), byName.end(), 0u);
  std::sort(byName.begin(), byName.end(), [this](uint32_t a, uint32_t b) {
    return infos[a].name < infos[b].name;
  });
  return true;
}

bool SafetensorsFile::open(const std::string &path, std::string &error) {
  filePath = path;
  infos.clear();
  byName.clear();
  pairs.clear();
  if (!file.open(path, error))
    return false;
  std::string reason;
  if (parse(reason))
    return true;
  infos.clear();
  error = path + ": " + reason;
  return false;
}

const TensorInfo *SafetensorsFile::find(std::string_view name) const {
  auto it = std::lower_bound(
      byName.begin(), byName.end(), name,
      [this](uint32_t i, std::string_view n) { return infos[i].name < n; });
  if (it == byName.end() || infos[*it].name != name)
    return nullptr;
  return &infos[*it];
}

} // namespace attune::runtime

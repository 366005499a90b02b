//===- WholeFile.cpp - Files that appear whole or not at all --------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Runtime/WholeFile.h"

#include "attune/Runtime/DType.h"
#include "attune/Runtime/TemporaryFiles.h"

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace attune::runtime {

static bool isOfTheSystem(const std::string &path) {
  return path.compare(0, 5, "/dev/") == 0 || path.compare(0, 6, "/proc/") == 0;
}

bool findOutputPlace(const std::string &path, OutputPlace &place,
                     std::string &reason) {
  place = {};
  place.path = path;
  constexpr unsigned most = 40; // links, as many as the kernel follows
  for (unsigned i = 0; !isOfTheSystem(place.path); ++i) {
    char target[PATH_MAX];
    ssize_t length = readlink(place.path.c_str(), target, sizeof target);
    if (length < 0)
      break;
    if (i == most) {
      reason = std::strerror(ELOOP);
      return false;
    }
    std::string next(target, static_cast<size_t>(length));
    size_t slash = place.path.rfind('/');
    if (next[0] != '/' && slash != std::string::npos)
      next = place.path.substr(0, slash + 1) + next;
    place.path = next;
  }
  struct stat info;
  place.exists = stat(place.path.c_str(), &info) == 0;
  place.isFolder = place.exists && S_ISDIR(info.st_mode);
  place.isStream = isOfTheSystem(place.path) ||
                   (place.exists && !place.isFolder && !S_ISREG(info.st_mode));
  return true;
}

bool isSameFile(const std::string &one, const std::string &other) {
  struct stat a, b;
  return stat(one.c_str(), &a) == 0 && stat(other.c_str(), &b) == 0 &&
         S_ISREG(a.st_mode) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

bool keepsInput(const std::string &input, const std::string &output,
                Error &error) {
  return !isSameFile(input, output) ||
         error.badInput(output + ": is read by this command and would be "
                                 "replaced by its result; name another file");
}

bool readWholeFile(const std::string &path, size_t most, std::string &text,
                   Error &error) {
  FILE *file = std::fopen(path.c_str(), "rb");
  if (!file)
    return error.badInput(path + ": " + std::strerror(errno));
  text.clear();
  char buffer[65536];
  while (size_t count = std::fread(buffer, 1, sizeof(buffer), file)) {
    text.append(buffer, count);
    if (text.size() > most)
      break;
  }
  bool broken = std::ferror(file) != 0;
  std::fclose(file);
  if (broken)
    return error.badInput(path + ": cannot be read");
  return text.size() <= most || error.badInput(path + ": has more than " +
                                               std::to_string(most) + " bytes");
}

bool writeWholeFile(const std::string &path, std::string_view head,
                    std::string_view body, Error &error) {
  OutputPlace place;
  std::string reason;
  if (!findOutputPlace(path, place, reason))
    return error.badInput(path + ": cannot write: " + reason);
  std::string temporary;
  TemporaryFile watched;
  int fd;
  if (place.isStream) {
    fd = open(place.path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
              0666);
  } else {
    SignalsWait wait;
    fd = createBeside(place.path, temporary);
    if (fd >= 0)
      watched.watch(temporary);
  }
  FILE *file = fd >= 0 ? fdopen(fd, "wb") : nullptr;
  bool good = file &&
              std::fwrite(head.data(), 1, head.size(), file) == head.size() &&
              std::fwrite(body.data(), 1, body.size(), file) == body.size();
  if (file)
    good = std::fclose(file) == 0 && good;
  if (good && (place.isStream ||
               std::rename(temporary.c_str(), place.path.c_str()) == 0))
    return true;
  reason = std::strerror(errno);
  if (fd >= 0 && !place.isStream)
    unlink(temporary.c_str());
  return error.badInput(path + ": cannot write: " + reason);
}

/// As NumPy spells a type: byte order, kind and bytes.
static const char *descrOf(DType dtype) {
  switch (dtype) {
  case DType::F64:
    return "<f8";
  case DType::F32:
  case DType::BF16:
  case DType::F8E4M3:
  case DType::F8E5M2:
    return "<f4"; // what is narrower than f16 is widened
  case DType::F16:
    return "<f2";
  case DType::I64:
    return "<i8";
  case DType::U64:
    return "<u8";
  case DType::I32:
    return "<i4";
  case DType::U32:
    return "<u4";
  case DType::I16:
    return "<i2";
  case DType::U16:
    return "<u2";
  case DType::I8:
    return "|i1";
  case DType::U8:
    return "|u1";
  case DType::Bool:
    return "|b1";
  }
  return "";
}

bool writeNpy(const std::string &path, const TensorDecl &tensor,
              const void *data, Error &error) {
  bool widen = tensor.dtype == DType::BF16 || tensor.dtype == DType::F8E4M3 ||
               tensor.dtype == DType::F8E5M2;
  uint64_t count = 0, bytes = 0;
  if (!byteSize(tensor.shape, 1, count) ||
      !byteSize(tensor.shape, widen ? 4 : dtypeBytes(tensor.dtype), bytes))
    return error.badInput(path + ": tensor '" + tensor.name + "' of shape " +
                          formatShape(tensor.shape) + " is too large");
  std::vector<float> wide(widen ? count : 0);
  if (widen)
    convertElements(tensor.dtype, data, DType::F32, wide.data(), count);

  std::string text = std::string("{'descr': '") + descrOf(tensor.dtype) +
                     "', 'fortran_order': False, 'shape': (";
  for (int64_t size : tensor.shape)
    text += std::to_string(size) + ",";
  text += "), }";
  // The data starts at a multiple of 64 bytes; a newline ends the header.
  constexpr size_t preamble = 10;
  text.append((64 - (preamble + text.size() + 1) % 64) % 64, ' ');
  text += '\n';
  std::string head("\x93NUMPY\x01\x00", 8);
  head += static_cast<char>(text.size() & 255);
  head += static_cast<char>(text.size() >> 8);
  const void *body = widen ? wide.data() : data;
  return writeWholeFile(path, head + text,
                        {static_cast<const char *>(body), bytes}, error);
}

} // namespace attune::runtime

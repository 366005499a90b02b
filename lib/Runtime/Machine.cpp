//===- Machine.cpp - What a model needs of the machine --------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Runtime/Machine.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <sys/syscall.h>
#include <unistd.h>

namespace attune::runtime {

/// The flags of the first CPU, with a space before and behind each; empty if
/// there are none.
static std::string readFlags(const char *cpuinfo) {
  FILE *file = std::fopen(cpuinfo, "re");
  if (!file)
    return "";
  std::string flags;
  char *line = nullptr;
  size_t capacity = 0;
  ssize_t length;
  while (flags.empty() && (length = getline(&line, &capacity, file)) > 0) {
    std::string_view text(line, static_cast<size_t>(length));
    size_t colon = text.find(':');
    if (text.substr(0, 5) != "flags" || colon == std::string_view::npos)
      continue;
    text.remove_prefix(colon + 1);
    if (!text.empty() && text.back() == '\n')
      text.remove_suffix(1);
    flags = std::string(text) + ' ';
  }
  std::free(line);
  std::fclose(file);
  return flags;
}

int requestTiles() {
#if defined(__linux__) && defined(__x86_64__)
  constexpr long kRequestPermission = 0x1023; // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;              // XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0 ? 0
                                                                     : errno;
#else
  return ENOTSUP;
#endif
}

bool checkMachine(const std::vector<std::string> &needs, Error &error,
                  const char *cpuinfo) {
  if (needs.empty())
    return true;
  bool tiles = false;
  std::string flags = readFlags(cpuinfo), missing;
  for (const std::string &need : needs) {
    tiles |= need == "amx_tile";
    if (!flags.empty() && flags.find(" " + need + " ") == std::string::npos)
      missing += (missing.empty() ? "" : ", ") + need;
  }
  if (!missing.empty())
    return error.badInput("the model is compiled for another CPU: this one "
                          "lacks " +
                          missing + " (--cpu of attune compile chooses)");
  if (!tiles)
    return true;
  if (int problem = requestTiles())
    return error.badInput("the model needs AMX, which the kernel does not lend "
                          "to this process: " +
                          std::string(std::strerror(problem)));
  return true;
}

} // namespace attune::runtime

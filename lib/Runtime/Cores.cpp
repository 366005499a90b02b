//===- Cores.cpp - How many threads a process may keep busy ---------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Cores.h"

#include "attune/Runtime/ThreadTeam.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include <sched.h>
#include <unistd.h>

namespace attune::runtime {

/// The first line of a small file, without its end; nothing if there is none.
static std::string readLine(const std::string &path) {
  char line[256] = "";
  if (FILE *file = std::fopen(path.c_str(), "re")) {
    if (!std::fgets(line, sizeof(line), file))
      line[0] = '\0';
    std::fclose(file);
  }
  return std::string(line, std::strcspn(line, "\n"));
}

/// The cores of one group's files; 0: it has no limit.
static unsigned coresOfGroup(const std::string &folder, bool isFirstVersion) {
  long long quota = -1, period = 0;
  if (isFirstVersion) {
    std::sscanf(readLine(folder + "/cpu.cfs_quota_us").c_str(), "%lld", &quota);
    std::sscanf(readLine(folder + "/cpu.cfs_period_us").c_str(), "%lld",
                &period);
  } else { // "200000 100000", or "max 100000"
    std::sscanf(readLine(folder + "/cpu.max").c_str(), "%lld %lld", &quota,
                &period);
  }
  if (quota <= 0 || period <= 0)
    return 0;
  return static_cast<unsigned>(
      std::min(quota / period + (quota % period != 0), 1LL << 16));
}

unsigned coresOfQuota(const char *groups, const char *mount) {
  FILE *file = std::fopen(groups, "re");
  if (!file)
    return 0;
  unsigned least = 0;
  char line[4096];
  // Lines are "0::/group", of version 1 "4:cpu,cpuacct:/group".
  while (std::fgets(line, sizeof(line), file)) {
    line[std::strcspn(line, "\n")] = '\0';
    char *names = std::strchr(line, ':');
    char *path = names ? std::strchr(names + 1, ':') : nullptr;
    if (!path)
      continue;
    *path++ = '\0';
    std::string controllers = names + 1;
    std::vector<std::string> folders = {mount};
    bool isFirstVersion = !controllers.empty();
    if (isFirstVersion) {
      if (("," + controllers + ",").find(",cpu,") == std::string::npos)
        continue;
      // The folder may name the same controllers in another order, or this one
      // alone.
      folders.clear();
      for (const std::string &name :
           {controllers, std::string("cpu"), std::string("cpu,cpuacct"),
            std::string("cpuacct,cpu")})
        folders.push_back(std::string(mount) + "/" + name);
    }
    // In a container the path may be one of the machine outside, while its
    // own group lies at the top.
    for (std::string group = path;;) {
      for (const std::string &folder : folders) {
        unsigned own = coresOfGroup(folder + group, isFirstVersion);
        if (own && (!least || own < least))
          least = own;
      }
      size_t above = group.rfind('/');
      if (above == std::string::npos)
        break;
      group.resize(above);
    }
  }
  std::fclose(file);
  return least;
}

unsigned availableCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int count = 0;
  if (sched_getaffinity(0, sizeof(set), &set) == 0)
    count = CPU_COUNT(&set);
  if (count <= 0)
    count = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  auto cores = static_cast<unsigned>(std::max(count, 1));
  unsigned quota = coresOfQuota("/proc/self/cgroup", "/sys/fs/cgroup");
  return quota ? std::min(cores, quota) : cores;
}

} // namespace attune::runtime

//===- Cores.h - What a container may use of a machine ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_CORES_H
#define ATTUNE_LIB_RUNTIME_CORES_H

namespace attune::runtime {

/// The cores' worth of time that control groups leave a process, rounded up: a
/// container that was started with --cpus=2 sees all cores of its machine but
/// gets the time of two. 0: there is no limit.
/// `groups` is /proc/self/cgroup, `mount` the folder of the groups' files, of
/// version 2 (cpu.max) or 1 (cpu.cfs_quota_us). A group's limit holds for those
/// below it, too.
unsigned coresOfQuota(const char *groups, const char *mount);

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_CORES_H

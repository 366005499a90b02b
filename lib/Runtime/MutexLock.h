//===- MutexLock.h - A mutex, held for a scope ------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_MUTEXLOCK_H
#define ATTUNE_LIB_RUNTIME_MUTEXLOCK_H

#include <pthread.h>

namespace attune::runtime {

/// Holds a mutex while it lives.
class MutexLock {
public:
  explicit MutexLock(pthread_mutex_t &mutex) : mutex(mutex) {
    pthread_mutex_lock(&mutex);
  }
  ~MutexLock() { pthread_mutex_unlock(&mutex); }
  MutexLock(const MutexLock &) = delete;
  MutexLock &operator=(const MutexLock &) = delete;

private:
  pthread_mutex_t &mutex;
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_MUTEXLOCK_H

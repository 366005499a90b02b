//===- Backends.cpp - The machines there are --------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Pipelines/Backends.h"

#include "attune/Target/CPU/CPUBackend.h"
#include "attune/Target/PTX/PTXBackend.h"

namespace attune {

static std::vector<std::unique_ptr<Backend>> &registry() {
  static std::vector<std::unique_ptr<Backend>> backends = [] {
    std::vector<std::unique_ptr<Backend>> known;
    known.push_back(std::make_unique<CPUBackend>());
    known.push_back(std::make_unique<PTXBackend>());
    return known;
  }();
  return backends;
}

bool registerBackend(std::unique_ptr<Backend> backend) {
  if (findBackend(backend->getName()))
    return false;
  registry().push_back(std::move(backend));
  return true;
}

const Backend *findBackend(llvm::StringRef name) {
  for (const auto &backend : registry())
    if (backend->getName() == name)
      return backend.get();
  return nullptr;
}

std::vector<const Backend *> listBackends() {
  std::vector<const Backend *> backends;
  for (const auto &backend : registry())
    backends.push_back(backend.get());
  return backends;
}

} // namespace attune

//===- Print.h - Parts of a model as JSON -----------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_SPEC_PRINT_H
#define ATTUNE_LIB_SPEC_PRINT_H

#include "JsonWriter.h"

#include "attune/Spec/Spec.h"

#include <vector>

namespace attune::spec {

Json print(const std::vector<Layer> &layers);

} // namespace attune::spec

#endif // ATTUNE_LIB_SPEC_PRINT_H

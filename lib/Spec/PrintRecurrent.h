//===- PrintRecurrent.h - Recurrences and scans as JSON ---------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_SPEC_PRINTRECURRENT_H
#define ATTUNE_LIB_SPEC_PRINTRECURRENT_H

#include "JsonWriter.h"
#include "attune/Spec/RecurrentLayers.h"

namespace attune::spec {

Json print(const Recurrent &recurrent);
Json print(const Scan &scan);

} // namespace attune::spec

#endif // ATTUNE_LIB_SPEC_PRINTRECURRENT_H

//===- PrintVision.h - Layers that make and pick tokens as JSON -*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_SPEC_PRINTVISION_H
#define ATTUNE_LIB_SPEC_PRINTVISION_H

#include "JsonWriter.h"

#include "attune/Spec/Spec.h"

namespace attune::spec {

/// Flags are printed where they are set.
inline void flag(Json &json, const char *key, bool set) {
  if (set)
    json[key] = true;
}

Json print(const Pool &pool);
Json print(const ClassTokens &tokens);
Json print(const Slice &slice);
Json print(const Concat &concat);
Json print(const InstanceNorm &norm);
Json print(const Conv &conv);
Json print(const Add &add);
Json print(const Insert &insert);
Json print(const Merge &merge);
Json print(const Similarity &similarity);

} // namespace attune::spec

#endif // ATTUNE_LIB_SPEC_PRINTVISION_H

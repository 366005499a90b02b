//===- Rings.h - Caches of attention with a window --------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A query with a window of W sees W keys, its own among them. So the cache of
// such a layer holds W and some more positions, the slack, instead of the whole
// context; when it is full, what is not needed any more gives way. The slack is
// what a sequence can go back without being computed again, and it makes the
// moves rare.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_SPEC_RINGS_H
#define ATTUNE_SPEC_RINGS_H

#include "attune/Spec/Spec.h"

namespace attune::spec {

/// The window of an attention whose cache holds that and the slack; 0: it holds
/// every position.
int64_t ringOf(const Model &model, const Attention &attention);

/// Why an attention with a window nevertheless caches every position; null if
/// it does not, or has none, or if no context is longer.
const char *whyNoRing(const Attention &attention);

/// The rings of a layer's repeats in order, 0 for those without: one number for
/// each block of a cycle, else one.
std::vector<int64_t> ringsOf(const Model &model, const Layer &layer);

} // namespace attune::spec

#endif // ATTUNE_SPEC_RINGS_H

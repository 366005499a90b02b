//===- Defaults.h - Defaults of a description -------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_SPEC_DEFAULTS_H
#define ATTUNE_LIB_SPEC_DEFAULTS_H

#include "attune/Spec/Spec.h"

namespace attune::spec {

/// The input that a stream starts from if it does not say: the one called
/// "input", else the only one of the kind it needs, else none. Floats are
/// [batch, tokens, width] or, for a convolution, an `image`; if there are none,
/// for a convolution also [batch, samples].
std::string defaultInput(const Model &model, bool needsIds, bool image);

} // namespace attune::spec

#endif // ATTUNE_LIB_SPEC_DEFAULTS_H

//===- Norm.h - Normalisation -----------------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_SPEC_NORM_H
#define ATTUNE_SPEC_NORM_H

#include "attune/Support/Diagnostics.h"

namespace attune::spec {

enum class NormKind { LayerNorm, RMSNorm };
/// Roles: "weight" and, for layer_norm with `bias`, "bias".
struct Norm {
  NormKind kind = NormKind::LayerNorm;
  double eps = 1e-5;
  bool scale = true; ///< has gamma
  bool bias = true;  ///< has beta (layer_norm only)
  double offset = 0; ///< 1 for the (1 + gamma) form
  SourceLocation location;
};

} // namespace attune::spec

#endif // ATTUNE_SPEC_NORM_H

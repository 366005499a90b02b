//===- Alternating.h - Streams of several copies ----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Alternating updates (AltUp, Baykal et al. 2023), as Gemma 3n has them: the
// stream is several copies of its channels next to each other; a block computes
// one copy and predicts the others.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_SPEC_ALTERNATING_H
#define ATTUNE_SPEC_ALTERNATING_H

#include "attune/Spec/Activation.h"
#include "attune/Spec/Norm.h"

#include <cstdint>
#include <optional>

namespace attune::spec {

/// A block computes with `copies` of D channels. With m(x) = tanh(norm(x) R):
/// copy o becomes x_o + sum over i of (m(x_a) P)[o * copies + i] x_i; from copy
/// a of these the sublayers make y; to copy o is added (y - x_a) (1 +
/// (m(y) C)[o]); and to all but the first copy norm(act(s x_a G) * e) U), where
/// e are the block's own channels of the layer_inputs. Roles, each behind
/// "alternating.": "norm.*", "router.weight" R [copies, D], "predict.weight" P
/// [copies^2, copies], "correct.weight" C [copies, copies], with `scaled`
/// "scale" s [D], and with `inputs` "gate.weight" G [inputs, D], "up.weight" U
/// [D, inputs] and "up_norm.*".
struct Alternating {
  int64_t copies = 2;
  int64_t active = 0; ///< the copy a that is computed
  int64_t inputs = 0; ///< channels of each block's own inputs; 0: none
  Activation activation = Activation::GeluTanh; ///< of the gate
  bool scaled = true;
  /// Clips C's weights to [-clip, clip].
  std::optional<double> clip;
  SourceLocation location;
};

/// A second embedding of the ids, for `blocks` blocks `width` channels each,
/// which these read: (norm(scale * x W, block by block) + table_scale *
/// table[id]) / sqrt(2). The stream is left as it is. Roles "weight" [vocab,
/// blocks*width], "projection.weight" W [blocks*width, D], "norm.*" [width].
struct LayerInputs {
  int64_t vocab = 0, width = 0, blocks = 1;
  double scale = 1, tableScale = 1;
  Norm norm;
};

/// From x to x and copies x W_i, for i from 1, each as large as x: its root
/// mean square is that of x, with that of x W_i bounded below by sqrt(eps).
/// Roles "<i>.weight" W_i [D, D].
struct Spread {
  int64_t copies = 2;
  double eps = 1e-5;
};
/// The mean of the first copy and of the others x_i W_i, each as large as the
/// first. Roles "<i>.weight" W_i [D, D].
struct Unite {
  int64_t copies = 2;
  double eps = 1e-5;
};

} // namespace attune::spec

#endif // ATTUNE_SPEC_ALTERNATING_H

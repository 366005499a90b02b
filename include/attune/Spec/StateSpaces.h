//===- StateSpaces.h - States that run over the tokens ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_SPEC_STATESPACES_H
#define ATTUNE_SPEC_STATESPACES_H

#include "attune/Spec/Activation.h"
#include "attune/Spec/Norm.h"

#include <cstdint>
#include <optional>

namespace attune::spec {

/// The selective state space of Mamba (Gu and Dao 2023) on `inner` channels.
/// Roles, with the names of its checkpoints: "in_proj.weight" [2*inner, D],
/// "conv1d.weight" [inner, kernel], "conv1d.bias", "x_proj.weight"
/// [rank + 2*states, inner], "dt_proj.weight" [inner, rank], "dt_proj.bias",
/// "A_log" [inner, states], "D" [inner], "out_proj.weight" [D, inner]; "bias"
/// of in_proj and out_proj if asked for.
///
/// With `heads` it is Mamba-2 (Dao and Gu 2024): one step, decay and skip for
/// each head, B and C for each group of heads, all made of the input and, but
/// for the steps, convolved. Roles "in_proj.weight" [2*inner + 2*groups*states,
/// D] (the gate, then what the convolution reads: x, B, C), "dt_proj.weight"
/// [heads, D], "dt_proj.bias", "conv1d.*" [inner + 2*groups*states, kernel],
/// "A_log" and "D" [heads], "norm.weight" [inner], "out_proj.weight".
struct Mamba {
  int64_t inner = 0; ///< default twice D
  int64_t states = 16;
  int64_t kernel = 4;
  int64_t rank = 0; ///< of the step sizes; default D / 16, rounded up
  bool bias = false;
  bool convBias = true;
  /// Jamba: the step sizes' input, B and C are normed; roles "dt_norm.*",
  /// "b_norm.*", "c_norm.*".
  std::optional<Norm> norm;
  int64_t heads = 0;  ///< 0: the first form
  int64_t groups = 1; ///< of heads
  /// With heads: norms the gated result in `outNormParts` parts of channels.
  std::optional<Norm> outNorm;
  int64_t outNormParts = 1;
  SourceLocation location;
};
/// The channels that a state space's convolution reads.
inline int64_t numConvolved(const Mamba &mamba) {
  return mamba.inner +
         (mamba.heads ? 2 * mamba.groups * mamba.states : int64_t(0));
}

/// A short convolution between two gates (LFM2): with B, C and x the thirds of
/// a projection, C * conv(B * x), projected. Roles "in_proj.weight" [3*D, D],
/// "conv.weight" [D, kernel], "out_proj.weight" [D, D] and, with `bias`,
/// ".bias" of each.
struct ShortConv {
  int64_t kernel = 3;
  bool bias = false;
  SourceLocation location;
};

/// The gated delta rule (Yang et al. 2024), whose keys and queries are divided
/// by their norms: a projection to queries, keys and values, convolved over the
/// tokens and activated by silu; a memory for each of `heads`, which share
/// `keyHeads` queries and keys; each head's result normed, times silu of the
/// gate, and projected. Roles, with C = 2*key_heads*key_dim + V and
/// V = heads*value_dim: "in_proj.weight" [C, D], "conv1d.weight" [C, kernel],
/// "gate.weight" [V, D], "step.weight" [heads, D], "step.bias", "beta.weight"
/// [heads, D], "A_log" [heads], "norm.*" [value_dim], "out_proj.weight" [D, V].
/// Where the step or the gate goes through a rank, "step_down.weight" or
/// "gate_down.weight" [rank, D] stands before it.
struct DeltaRule {
  int64_t heads = 1, keyHeads = 1;
  int64_t keyDim = 0, valueDim = 0;
  int64_t kernel = 4;
  double eps = 1e-6; ///< of the norms that keys and queries are divided by
  /// Each channel of a key has a step of its own (Kimi Linear): "step.*" have
  /// heads*key_dim rows.
  bool channelSteps = false;
  int64_t stepRank = 0, gateRank = 0; ///< 0: one matrix
  Activation gateActivation = Activation::Silu;
  Norm norm;
  SourceLocation location;
};
/// The channels that its convolution reads.
inline int64_t numConvolved(const DeltaRule &rule) {
  return 2 * rule.keyHeads * rule.keyDim + rule.heads * rule.valueDim;
}
/// The steps of a token.
inline int64_t numSteps(const DeltaRule &rule) {
  return rule.heads * (rule.channelSteps ? rule.keyDim : 1);
}

/// The time mixing of RWKV-7 (Peng et al. 2025), in place of attention. What it
/// reads of each token is mixed with the token before, x + (before - x) * m,
/// with numbers m of each channel for the receptance r, decay w, key k, value
/// v, rate a and gate g: roles "x_r" to "x_g" [D]. With a LoRA, U act(L x) +
/// bias, for each of w (tanh), a, v and g (sigmoid, no bias), and for each of
/// `heads` heads:
///
///   keep = exp(-exp(-1/2) sigmoid(w)),  a = sigmoid(a),  n = k_k k / |k_k k|
///   key  = k (1 + (a - 1) k_a),  v = v + (v of the first layer - v)
///   sigmoid(..) H    = diag(keep) H - (n a) (n^T H) + key v^T y    = (norm(r^T
///   H) + (sum r key r_k) v) g, projected
///
/// Roles: "r.weight" and "k.weight" [heads*key_dim, D], "v.weight"
/// [heads*value_dim, D], "w_down.weight", "a_down.weight", "v_down.weight" and
/// "g_down.weight" [rank, D], "w", "a", "v_mix" and "g" ".weight" [.., rank],
/// ".bias" of the first three, "k_k", "k_a" and "r_k" [heads*key_dim],
/// "norm.*" [heads*value_dim], "o.weight" [D, heads*value_dim].
struct TimeMix {
  int64_t heads = 1;
  int64_t keyDim = 0, valueDim = 0;
  int64_t decayRank = 0, rateRank = 0, gateRank = 0;
  /// 0: the values of this layer are those that later layers mix theirs with.
  int64_t valueRank = 0;
  /// Keys that are removed are divided by sqrt(sum of squares + eps).
  double eps = 1e-12;
  Norm norm; ///< of each head's result
  SourceLocation location;
};

} // namespace attune::spec

#endif // ATTUNE_SPEC_STATESPACES_H

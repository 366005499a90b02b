//===- Latent.h - Latent attention ------------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_SPEC_LATENT_H
#define ATTUNE_SPEC_LATENT_H

#include "attune/Spec/Norm.h"

#include <cstdint>
#include <optional>

namespace attune::spec {

/// Which keys a query of latent attention sees (DeepSeek-V3.2): of those that
/// are not hidden the `top` with the largest sum, over `heads` small heads j,
/// of w_j relu(q_j k) / sqrt(heads * headDim). Equal ones go by position. The
/// first channels of q and k turn, as many and as far as those of the
/// attention; k is normalised before, and is cached. Roles, each behind
/// "index.": "q.weight" [heads*headDim, queryRank], made of the compressed
/// queries; "k.weight" [headDim, D], "k_norm.*" [headDim]; "shares.weight" w
/// [heads, D].
struct KeyIndex {
  int64_t heads = 0;
  int64_t headDim = 0;
  int64_t top = 0;
  bool interleaved = false; ///< pairs of neighbours turn
  Norm norm;
  SourceLocation location;
};

/// Latent attention (DeepSeek-V2): keys and values are made of one compressed
/// row per token, which is all that a cache keeps. Queries and keys are
/// `nopeDim` channels without positions, then `rope->channels` with (without
/// `rope` as many as head_dim leaves, which do not turn); those of the keys are
/// shared by all heads. Roles: "q.weight" [heads*head_dim, D] or,
/// with `queryRank`, "q_a.weight" [queryRank, D], "q_norm.weight" and
/// "q_b.weight" [heads*head_dim, queryRank]; "kv_a.weight" [rank + rope, D],
/// "kv_norm.weight" [rank], "kv_b.weight" [heads*(nope + value_dim), rank],
/// head by head; "q_a.bias" and "kv_a.bias" with the attention's bias, which
/// has none for what leaves a compressed space or passes it by.
struct Latent {
  int64_t rank = 0;      ///< of keys and values
  int64_t queryRank = 0; ///< 0: queries are not compressed
  int64_t nopeDim = 0;   ///< head_dim less the turned channels
  Norm norm;             ///< of the compressed rows
  std::optional<KeyIndex> index;
  SourceLocation location;
};

} // namespace attune::spec

#endif // ATTUNE_SPEC_LATENT_H

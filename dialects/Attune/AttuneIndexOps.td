//===- AttuneIndexOps.td - Keys that an index chooses ------*- tablegen -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_INDEX_OPS_TD
#define ATTUNE_INDEX_OPS_TD

include "AttuneTypes.td"

// [batch, queries, keys]
def Attune_KeyScores : RankedTensorOf<[F32], [HasAnyRankOfPred<[3]>],
                                      "[batch, queries, keys] f32 tensor">;

def Attune_IndexScoresOp : Attune_Op<"index_scores", [Pure, Attune_Reify]> {
  let summary = "One score for each query and key, of many small heads";
  let description = [{
    `I[b,m,n] = sum_h W[b,m,h] * max(scale * sum_d Q[b,h,m,d] K[b,0,n,d], 0)`,
    summed in f32. All heads have the same keys. A key in bytes is what they say
    times its scale. With `reach` the scores of keys from there on, which none of
    these queries sees, are 0.

    Rounds once, at the end.
    Source: DeepSeek-V3.2 (2025), the lightning indexer.

    Verifier rules (tests: `invalid-index.mlir`, one case per label):
    - I1: batch sizes agree.
    - I2: query and key have equal width, and keys one head.
    - I3: shares has the queries and heads of query.
    - I4: the result is [B, M, N].

    ```mlir
    %i = attune.index_scores %q, %k shares %w scale 1.250000e-01
       : tensor<1x8x4x64xf32>, tensor<1x1x6x64xf32>, tensor<1x4x8xf32> -> tensor<1x4x6xf32>
    ```
    ```mlir
    %i = attune.index_scores %q, %k shares %w scale 1.250000e-01 reach %n
       : tensor<1x8x4x64xf32>, tensor<1x1x6x64xf32>, tensor<1x4x8xf32> -> tensor<1x4x6xf32>
    ```
  }];
  let arguments = (ins Attune_Heads:$query, Attune_CachedHeads:$key,
                       Attune_Tokens:$shares, Optional<Index>:$reach,
                       F32Attr:$scale);
  let results = (outs Attune_KeyScores:$result);
  let assemblyFormat = [{
    $query `,` $key `shares` $shares `scale` $scale (`reach` $reach^)? attr-dict
    `:` type($query) `,` type($key) `,` type($shares) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Attune_ChooseKeysOp : Attune_Op<"choose_keys",
    [Pure, Attune_Reify, AttrSizedOperandSegments]> {
  let summary = "The keys that have the best scores, in their order";
  let description = [{
    A query sees key n unless `mask` is false there, n is `lengths[b]` or more,
    or there is a `past` and n > past + m: the query's own key is number past + m.
    Among the keys seen, u comes before v if `c[u] > c[v]`, or `c[u] = c[v]` and
    u < v, where `c` is the score, or infinity if it is no number. The two zeros
    are equal.

    ```
    counts[b,m]    = top, or how many keys the query sees if they are fewer
    places[b,m,i]  = number i, in increasing order, of the first counts[b,m] keys
                     before all others; 0 for i from counts[b,m] on
    ```

    A size of mask that is 1 in the type is broadcast. Nothing is computed and
    nothing rounds.
    Source: DeepSeek-V3.2 (2025), which leaves the order of equal scores open.

    Verifier rules (tests: `invalid-index.mlir`, one case per label):
    - K1: top is positive.
    - K2: mask is [B|1, 1, M|1, N], lengths is [B].
    - K3: places is [B, M, top], counts is [B, M].

    ```mlir
    %places, %counts = attune.choose_keys %scores top 2 past %p
       : tensor<1x4x6xf32> -> tensor<1x4x2xi64>, tensor<1x4xi64>
    ```
    ```mlir
    %places, %counts = attune.choose_keys %scores top 2 mask %m : tensor<1x1x1x6xi1>
       lengths %n : tensor<1xi64> : tensor<1x4x6xf32> -> tensor<1x4x2xi64>, tensor<1x4xi64>
    ```
  }];
  let arguments = (ins Attune_KeyScores:$scores,
                       Optional<Attune_ScoreMask>:$mask,
                       Optional<Attune_Lengths>:$lengths,
                       Optional<Index>:$past, I64Attr:$top);
  let results = (outs
    RankedTensorOf<[I64], [HasAnyRankOfPred<[3]>],
                   "[batch, queries, top] i64 tensor">:$places,
    RankedTensorOf<[I64], [HasAnyRankOfPred<[2]>],
                   "[batch, queries] i64 tensor">:$counts);
  let assemblyFormat = [{
    $scores `top` $top (`past` $past^)? (`mask` $mask^ `:` type($mask))?
    (`lengths` $lengths^ `:` type($lengths))? attr-dict
    `:` type($scores) `->` type($places) `,` type($counts)
  }];
  let hasVerifier = 1;
}

#endif // ATTUNE_INDEX_OPS_TD

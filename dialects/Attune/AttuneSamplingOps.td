//===- AttuneSamplingOps.td - The choice of the next token -*- tablegen -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_SAMPLING_OPS_TD
#define ATTUNE_SAMPLING_OPS_TD

include "AttuneTypes.td"

def Attune_TopKOp : Attune_Op<"top_k", [Pure, Attune_Reify]> {
  let summary = "The largest numbers of each row, and where they are";
  let description = [{
    For each row `x` of `logits`, with `c[v] = x[v]`, or infinity where `x[v]` is
    not a number:

    ```
    ids[r]    = the number v with exactly r others in front of it, where u is
                in front of v if c[u] > c[v], or c[u] = c[v] and u < v
    values[r] = x[ids[r]]                              for r from 0 to count - 1
    ```

    So what is wrong with a row stands first: who sees one value sees whether
    there is a NaN or an infinity, and the first of them. The two zeros are
    equal. `count` is from 0 to the row's width V, which who calls the op checks
    (the runtime does).

    Nothing is computed and nothing rounds: values widen exactly to f32.
    Source: torch.topk, whose order of equal values is left open.

    Verifier rules (tests: `invalid-sampling.mlir`, one case per label):
    - T1: ids and values have as many rows as logits.
    - T2: ids and values have as many columns as `count` says, where it is a
      constant; else their number is not known.
    - T3: a constant count is from 0 to V.

    ```mlir
    %ids, %values = attune.top_k %logits count %k
       : tensor<?x50257xf32> -> tensor<?x?xi64>, tensor<?x?xf32>
    ```
  }];
  let arguments = (ins
    RankedTensorOf<[F32, F16, BF16], [HasAnyRankOfPred<[2]>],
                   "[rows, width] tensor">:$logits,
    Index:$count);
  let results = (outs
    RankedTensorOf<[I64], [HasAnyRankOfPred<[2]>],
                   "[rows, count] i64 tensor">:$ids,
    RankedTensorOf<[F32], [HasAnyRankOfPred<[2]>],
                   "[rows, count] f32 tensor">:$values);
  let assemblyFormat = [{
    $logits `count` $count attr-dict
    `:` type($logits) `->` type($ids) `,` type($values)
  }];
  let hasVerifier = 1;
}

#endif // ATTUNE_SAMPLING_OPS_TD

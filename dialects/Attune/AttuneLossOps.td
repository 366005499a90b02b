//===- AttuneLossOps.td - How wrong predictions are ----------*- tablegen -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LOSS_OPS_TD
#define ATTUNE_LOSS_OPS_TD

include "AttuneTypes.td"

def Attune_CrossEntropyOp : Attune_Op<"cross_entropy", [Pure]> {
  let summary = "Mean of -log softmax(logits)[target] over all targets";
  let description = [{
    Over the rows `X[r]` of logits whose target `t[r]` is not `ignore`:

    ```
    L = mean_r (log(sum_v exp(X[r,v])) - X[r,t[r]])
    ```

    The exponentials are taken around the row's maximum and summed in f32, the
    rows' terms in f64, in order: the bits do not depend on the number of
    threads. NaN if no target counts. Every other target must be from 0 to
    V - 1, which who calls the op checks (the runtime does, of inputs).

    Rounds once, to f32.
    Source: torch.nn.CrossEntropyLoss with its mean and ignore_index.

    Verifier rules (tests: `invalid-loss.mlir`, one case per label):
    - E1: targets have the leading sizes of the logits.

    ```mlir
    %l = attune.cross_entropy %x, %t ignore -100
       : tensor<?x?x512xf32>, tensor<?x?xi64> -> tensor<f32>
    ```
  }];
  let arguments = (ins Attune_Activations:$logits,
                       RankedTensorOf<[I64]>:$targets, I64Attr:$ignore);
  let results = (outs 0DTensorOf<[F32]>:$result);
  let assemblyFormat = [{
    $logits `,` $targets `ignore` $ignore attr-dict
    `:` type($logits) `,` type($targets) `->` type($result)
  }];
  let hasVerifier = 1;
}

#endif // ATTUNE_LOSS_OPS_TD

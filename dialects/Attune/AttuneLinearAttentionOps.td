//===- AttuneLinearAttentionOps.td - Attention by sums --------*- tablegen -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LINEAR_ATTENTION_OPS_TD
#define ATTUNE_LINEAR_ATTENTION_OPS_TD

include "AttuneTypes.td"

def Attune_LinearAttentionOp : Attune_Op<"linear_attention",
    [Pure, Attune_Reify, AttrSizedOperandSegments]> {
  let summary = "Attention whose weights are products of features";
  let description = [{
    Katharopoulos et al. (2020). With `f` the feature map, and query head h
    reading key/value head h*Hkv/Hq:

    ```
    S[n] = S[n-1] + f(K[n])^T V[n]     z[n] = z[n-1] + f(K[n])
    Y[m] = f(Q[m]) S / (f(Q[m]) z + eps)
    ```

    where S and z are those of the last key or, if `causal`, of key m; without
    `normalised eps` nothing is divided by. A denominator of 0 gives zeros, so a
    row with no visible key yields zeros. Keys whose `mask` is false count
    nothing. All sums are f32. Time and memory grow with M + N, not M * N.

    The sums start from `state`, [S | z], if given, else from 0; `new_state` is
    an optional second result, [S | z] after the last key. So a sequence may be
    taken in any pieces: the op of one token is the running form, that of all
    tokens the parallel one.

    Every operation rounds to f32; the result rounds once, at the
    end.
    Source: Katharopoulos et al. (2020), equations 9 to 12.

    Verifier rules (tests: `invalid-linear-attention.mlir`, one case per label):
    - L1: batch sizes agree.
    - L2: Hq is a multiple of Hkv; key and value have as many heads.
    - L3: key and value have equal length; query and key equal width.
    - L4: causal needs as many queries as keys.
    - L5: the mask is [B|1, 1, 1, N].
    - L6: eps is not negative.
    - L7: the result is [B, Hq, M, Dv].
    - L8: states are [B, Hkv, D, Dv + 1].

    ```mlir
    %y, %s = attune.linear_attention %q, %k, %v <elu_plus_one> causal
       normalised 1.000000e-06 state %s0 : tensor<1x2x64x65xf32>
       : tensor<1x8x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x64xf32>
       -> tensor<1x8x4x64xf32> state tensor<1x2x64x65xf32>
    ```
  }];
  let arguments = (ins Attune_Heads:$query, Attune_Heads:$key,
                       Attune_Heads:$value, Optional<Attune_ScoreMask>:$mask,
                       Optional<Attune_KeySums>:$state,
                       Attune_FeatureMapAttr:$feature_map, UnitAttr:$causal,
                       OptionalAttr<F32Attr>:$eps);
  let results = (outs Attune_Heads:$result,
                      Optional<Attune_KeySums>:$new_state);
  let assemblyFormat = [{
    $query `,` $key `,` $value $feature_map (`causal` $causal^)?
    (`normalised` $eps^)? (`mask` $mask^ `:` type($mask))?
    (`state` $state^ `:` type($state))? attr-dict
    `:` type($query) `,` type($key) `,` type($value) `->` type($result)
    (`state` type($new_state)^)?
  }];
  let hasVerifier = 1;
}

#endif // ATTUNE_LINEAR_ATTENTION_OPS_TD

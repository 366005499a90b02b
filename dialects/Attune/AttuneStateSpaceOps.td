//===- AttuneStateSpaceOps.td - Selective state spaces -------*- tablegen -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_STATE_SPACE_OPS_TD
#define ATTUNE_STATE_SPACE_OPS_TD

include "AttuneTypes.td"

// Numbers of each channel.
def Attune_PerChannel : RankedTensorOf<[F32, F16, BF16],
    [HasAnyRankOfPred<[2]>], "[channels, count] tensor">;
// Numbers of each channel, or one of each head.
def Attune_Decays : RankedTensorOf<[F32, F16, BF16],
    [HasAnyRankOfPred<[1, 2]>], "[channels, states] or [heads] tensor">;

def Attune_CausalConvOp : Attune_Op<"causal_conv",
    [Pure, Attune_Reify, AttrSizedOperandSegments,
     AllTypesMatch<["input", "result"]>]> {
  let summary = "Each channel convolved over the tokens up to its own";
  let description = [{
    `Y[b,t,c] = act(bias[c] + sum_k W[c,k] X[b, t-K+1+k, c])`, in f32, rounded
    once. Tokens before the first are zeros, and so are those where `keep` is
    false: what stands there is not read, and what is given there is zero.

    Source: Gu and Dao (2023), and their package causal-conv1d.

    Verifier rules (tests: `invalid-state-space.mlir`, one case per label):
    - V1: W has X's channels, and so has the bias.
    - V2: keep is [batch, tokens] of X.

    ```mlir
    %y = attune.causal_conv %x, %w bias %b : tensor<64xf32> activation <silu>
       : tensor<?x?x64xf32>, tensor<64x4xf32>
    ```
  }];
  let arguments = (ins Attune_Tokens:$input, Attune_PerChannel:$weight,
                       Optional<Attune_Channel>:$bias,
                       Optional<Attune_KeepSteps>:$keep,
                       DefaultValuedAttr<Attune_ActivationAttr,
                                         "Activation::Identity">:$activation);
  let results = (outs Attune_Tokens:$result);
  let assemblyFormat = [{
    $input `,` $weight (`bias` $bias^ `:` type($bias))?
    (`keep` $keep^ `:` type($keep))? `activation` $activation attr-dict
    `:` type($input) `,` type($weight)
  }];
  let hasVerifier = 1;
}

def Attune_SelectiveScanOp : Attune_Op<"selective_scan",
    [Pure, Attune_Reify, AttrSizedOperandSegments]> {
  let summary = "A state space whose step sizes depend on the input (Mamba)";
  let description = [{
    For each sequence b and channel c a state H of S numbers runs over the
    tokens. With `dt = softplus(step[b,t,c])` and `A = -exp(a_log[c])`:

    ```
    H(t) = exp(dt A) H(t-1) + dt B[b,t] X[b,t,c]      S numbers
    Y[b,t,c] = sum_s C[b,t,s] H(t)[s] + skip[c] X[b,t,c]
    ```

    and with a gate Z, Y times `silu(Z[b,t,c])`. H(-1) is `state` or zeros.
    Arithmetic and states are f32. Gives Y, then the last H as
    `[batch, S, channels]`: a scan may go on where another ended. The states of
    the tokens between are nowhere: memory is that of the operands.

    With one decay for each of N heads (Mamba-2), `a_log` is [N], a head is as
    many neighbouring channels as N goes into them, and the channels of a head
    share its step, decay and skip: `step` is [batch, tokens, N], `skip` [N].
    The heads may be divided further into G groups of neighbours, each with its
    own B and C: these are [batch, tokens, G * S], group by group.

    `step` is meant before its softplus, `a_log` as checkpoints have it, so that
    no third tensor of their size is made on the way.

    Every operation rounds to f32.
    Source: Gu and Dao (2023), algorithm 2; heads and groups: Dao and Gu (2024).

    Verifier rules (tests: `invalid-state-space.mlir`, one case per label):
    - V3: gate and Y have X's sizes; step has them, too, but for one channel a
      head where there are heads.
    - V4: B and C have X's batch and tokens and the states of a_log, or those of
      the last state, once for each group.
    - V5: a_log and skip have X's channels, or both the heads.
    - V6: states are [batch, S, channels].
    - V7: heads divide the channels, and groups the heads.

    ```mlir
    %y, %last = attune.selective_scan %x step %d, a_log %a, b %b, c %c, skip %s
       : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<64x16xf32>, tensor<?x?x16xf32>,
         tensor<?x?x16xf32>, tensor<64xf32> -> tensor<?x?x64xf32>, tensor<?x16x64xf32>
    ```
  }];
  let arguments = (ins Attune_Steps:$input, Attune_Steps:$step,
                       Attune_Decays:$a_log, Attune_Steps:$b,
                       Attune_Steps:$c, Attune_Channel:$skip,
                       Optional<Attune_Steps>:$gate,
                       Optional<Attune_Steps>:$state);
  let results = (outs Attune_Steps:$result, Attune_Steps:$last);
  let assemblyFormat = [{
    $input `step` $step `,` `a_log` $a_log `,` `b` $b `,` `c` $c `,`
    `skip` $skip (`gate` $gate^ `:` type($gate))?
    (`state` $state^ `:` type($state))? attr-dict `:` type($input) `,`
    type($step) `,` type($a_log) `,` type($b) `,` type($c) `,` type($skip)
    `->` type($result) `,` type($last)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Whether channels of a head share a step, a decay and a skip.
    bool hasHeads() { return getALog().getType().getRank() == 1; }
  }];
}

def Attune_DeltaRuleOp : Attune_Op<"delta_rule",
    [Pure, Attune_Reify, AllTypesMatch<["query", "key"]>]> {
  let summary = "A memory that forgets and corrects itself (gated delta rule)";
  let description = [{
    Each of N value heads has a memory H of S x D numbers, which runs over the
    tokens. Heads are neighbouring channels; each of the key heads, whose q and
    k are S wide, serves as many value heads in a row. For a sequence b, with
    `keep = exp(-exp(a_log[n]) * softplus(step[b,t,n]))`:

    ```
    M    = keep H(t-1)                              what is left of it
    d    = sigmoid(beta[b,t,n]) * (V[t] - k[t]^T M)   what k should have given
    H(t) = M + k[t] d^T
    Y[t] = scale * q[t]^T H(t)
    ```

    With `normalised eps` q and k are first divided by
    `sqrt(sum of their squares + eps)`. H(-1) is `state` or zeros. Gives Y, then
    the last H as `[batch, S, N * D]`: a sequence may be taken in any pieces.

    `step` and `beta` are meant before their softplus and sigmoid, `a_log` as
    checkpoints have it.

    `step` may have a number for each of the S channels of a head, too: row s of
    its memory is then left with `exp(-exp(a_log[n]) * softplus(step[b,t,n,s]))`.

    Every operation rounds to f32.
    Source: Yang, Kautz and Hatamizadeh (2024), equation 10, with the norms of
    the package flash-linear-attention; steps of channels: Kimi Team (2025),
    "Kimi Linear", equation 1.

    Verifier rules (tests: `invalid-delta-rule.mlir`, one case per label):
    - D1: all have V's batch and tokens; Y has V's channels.
    - D2: q and k are equally wide; beta has a number for each head of a_log, and
      step one for each head or for each row of its memory.
    - D3: heads divide V's channels.
    - D4: q is some heads of as many channels as the last state has rows, and
      these heads divide the others.
    - D5: states are [batch, S, V's channels].
    - D6: eps is not negative.

    ```mlir
    %y, %last = attune.delta_rule %q, %k, %v step %d, a_log %a, beta %b scale 0.25
       normalised 1.000000e-06
       : tensor<?x?x32xf32>, tensor<?x?x64xf32>, tensor<?x?x4xf32>, tensor<4xf32>
       -> tensor<?x?x64xf32>, tensor<?x16x64xf32>
    %z, %end = attune.delta_rule %q, %k, %v step %e, a_log %a, beta %b scale 0.25
       : tensor<?x?x32xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<4xf32>
       beta tensor<?x?x4xf32> -> tensor<?x?x64xf32>, tensor<?x16x64xf32>
    ```
  }];
  let arguments = (ins Attune_Steps:$query, Attune_Steps:$key,
                       Attune_Steps:$value, Attune_Steps:$step,
                       Attune_Channel:$a_log, Attune_Steps:$beta,
                       Optional<Attune_Steps>:$state, F32Attr:$scale,
                       OptionalAttr<F32Attr>:$eps);
  let results = (outs Attune_Steps:$result, Attune_Steps:$last);
  let assemblyFormat = [{
    $query `,` $key `,` $value `step` $step `,` `a_log` $a_log `,` `beta` $beta
    `scale` $scale (`normalised` $eps^)? (`state` $state^ `:` type($state))?
    attr-dict `:` type($query) `,` type($value) `,` type($step) `,`
    type($a_log) custom<BetaType>(type($beta), ref(type($step))) `->`
    type($result) `,` type($last)
  }];
  let hasVerifier = 1;
}

def Attune_GeneralizedDeltaRuleOp : Attune_Op<"generalized_delta_rule",
    [Pure, Attune_Reify,
     AllTypesMatch<["query", "key", "decay", "remove", "replace"]>,
     AllTypesMatch<["value", "result", "own"]>]> {
  let summary = "A memory that replaces what one key gives by another (RWKV-7)";
  let description = [{
    Each of N heads has a memory H of S x D numbers, which runs over the tokens.
    Heads are neighbouring channels: S of q, k, decay, remove, replace and
    bonus, and D of V. For a sequence b and a head n:

    ```
    d      = remove[t]^T H(t-1)                      D numbers
    H(t)   = diag(exp(decay[t])) H(t-1) + replace[t] d^T + k[t] V[t]^T
    Y[t]   = q[t]^T H(t)
    own[t] = (sum_s bonus[n,s] q[t,s] k[t,s]) V[t]   of the token alone
    ```

    H(-1) is `state` or zeros. Gives Y, the last H as `[batch, S, N * D]`, and
    `own`, which models add to Y behind its norm. With remove = -k and replace =
    beta k this is the delta rule.

    Every operation rounds to f32.
    Source: Peng et al. (2025), "RWKV-7 Goose", equations 15 to 17 and 21.

    Verifier rules (tests: `invalid-generalized-delta-rule.mlir`, one case per
    label):
    - G1: q has V's batch and tokens.
    - G2: bonus has a number for each of q's channels.
    - G3: q is some heads of as many channels as the last state has rows, and
      these heads divide V's channels.
    - G4: states are [batch, S, V's channels].

    ```mlir
    %y, %last, %own = attune.generalized_delta_rule %q, %k, %v decay %w,
       remove %a, replace %b, bonus %u
       : tensor<?x?x64xf32>, tensor<?x?x32xf32>, tensor<64xf32> -> tensor<?x16x32xf32>
    ```
  }];
  let arguments = (ins Attune_Steps:$query, Attune_Steps:$key,
                       Attune_Steps:$value, Attune_Steps:$decay,
                       Attune_Steps:$remove, Attune_Steps:$replace,
                       Attune_Channel:$bonus, Optional<Attune_Steps>:$state);
  let results = (outs Attune_Steps:$result, Attune_Steps:$last,
                      Attune_Steps:$own);
  let assemblyFormat = [{
    $query `,` $key `,` $value `decay` $decay `,` `remove` $remove `,`
    `replace` $replace `,` `bonus` $bonus (`state` $state^ `:` type($state))?
    attr-dict `:` type($query) `,` type($value) `,` type($bonus) `->`
    type($last)
  }];
  let hasVerifier = 1;
}

#endif // ATTUNE_STATE_SPACE_OPS_TD

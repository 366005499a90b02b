//===- AttuneMoEOps.td - Stacks of matrices, used in part ----*- tablegen -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_MOE_OPS_TD
#define ATTUNE_MOE_OPS_TD

include "AttuneTypes.td"

// Which experts a token goes to, and how much each counts.
def Attune_Choice : RankedTensorOf<[I64], [HasRankGreaterOrEqualPred<1>],
                                   "[..., active experts] i64 tensor">;
def Attune_Shares : RankedTensorOf<[F32], [HasRankGreaterOrEqualPred<1>],
                                   "[..., active experts] f32 tensor">;

def Attune_RouterOp : Attune_Op<"router", [Pure, Attune_Reify]> {
  let summary = "The experts of each token and their weights";
  let description = [{
    From one logit per expert, for each token:

    ```
    s = softmax(logits) | logits | sigmoid(logits)       by `scoring`
    c = s + bias                                         what is chosen by
    c[e] = -inf for experts e of all but the active_groups best groups
    experts = the A largest of c, best first; equal ones by number
    w = s[experts]          (top_softmax: softmax of these A)
    w = w / (sum w + eps)   with `renormalise`
    w = w * scale
    ```

    With `sparse_mixer` s are the logits, and the weight of the expert of rank a
    is its share of a softmax over experts that are near it:

    ```
    w[a] = 1 / sum of exp(s[j] - s[experts[a]])
    ```

    over all j that are not among `experts[0]` to `experts[a - 1]` and for which
    `s[experts[a]] - s[j] <= 2 eps max(|s[j]|, s[experts[a]])`.

    Groups are equal runs of experts; a group is as good as the best `c` in it,
    or the sum of its best two. An expert of another group is never chosen, as in
    transformers 5 and in servers; before, transformers counted it as 0, which
    differs where a bias makes scores of the best groups negative. All in f32. If no logit is a number the experts are
    still valid numbers.

    Every operation rounds to f32.
    Source: Shazeer et al. (2017); groups and biases: DeepSeek-V3 (2024);
    sparse_mixer: Liu et al. (2024), "GRIN: GRadient-INformed MoE".

    Verifier rules (tests: `invalid-moe.mlir`, one case per label):
    - R1: experts and weights are [..., A] for logits [..., E], 1 <= A <= E.
    - R2: bias has E entries.
    - R3: groups divide E, and active_groups is 1 to groups.
    - R4: A experts fit into the active groups.
    - R5: groups need softmax or sigmoid scores, and top_two groups of two.
    - R6: sparse_mixer has neither a bias nor `renormalise`.

    ```mlir
    %experts, %weights = attune.router %logits scoring <softmax> renormalise
       : tensor<?x?x8xf32> -> tensor<?x?x2xi64>, tensor<?x?x2xf32>
    ```
    ```mlir
    %e, %w = attune.router %logits bias %b : tensor<256xf32> scoring <sigmoid>
       groups 8 active_groups 4 group_score <top_two> renormalise
       : tensor<?x?x256xf32> -> tensor<?x?x8xi64>, tensor<?x?x8xf32>
    ```
    ```mlir
    %near, %parts = attune.router %logits scoring <sparse_mixer> eps 0.01
       : tensor<?x?x16xf32> -> tensor<?x?x2xi64>, tensor<?x?x2xf32>
    ```
  }];
  let arguments = (ins Attune_Activations:$logits,
                       Optional<Attune_Channel>:$bias,
                       Attune_RouterScoringAttr:$scoring,
                       DefaultValuedAttr<I64Attr, "1">:$groups,
                       DefaultValuedAttr<I64Attr, "1">:$active_groups,
                       DefaultValuedAttr<Attune_GroupScoreAttr,
                                         "GroupScore::Max">:$group_score,
                       UnitAttr:$renormalise,
                       DefaultValuedAttr<F32Attr, "0.0f">:$eps,
                       DefaultValuedAttr<F32Attr, "1.0f">:$scale);
  let results = (outs Attune_Choice:$experts, Attune_Shares:$weights);
  let assemblyFormat = [{
    $logits (`bias` $bias^ `:` type($bias))? `scoring` $scoring
    (`groups` $groups^)? (`active_groups` $active_groups^)?
    (`group_score` $group_score^)? (`renormalise` $renormalise^)?
    (`eps` $eps^)? (`scale` $scale^)? attr-dict
    `:` type($logits) `->` type($experts) `,` type($weights)
  }];
  let hasVerifier = 1;
}

// The biases of a stack of matrices.
def Attune_Biases : RankedTensorOf<[F32, F16, BF16], [HasAnyRankOfPred<[2]>],
                                   "[experts, rows] float tensor">;

def Attune_MoEOp : Attune_Op<"moe", [Pure, Attune_Reify,
                                     AttrSizedOperandSegments]> {
  let summary = "Mixture of experts: each token goes through its own few";
  let description = [{
    With `f_e` the feed-forward layer whose matrices are number `e` of the
    stacks, `act(x up_e^T) down_e^T` or, `gated`, as in `attune.gated_ffn` with
    the rows of gate and up below each other:

    `Y[t] = residual[t] + sum_a weights[t, a] * f_experts[t, a](X[t])`

    Row `e` of `up_bias` and of `down_bias` is added to the products with matrix
    `e`. With `limit` c and `up_offset` o a gated layer multiplies
    `act(min(gate, c))` by `max(min(up, c), -c) + o`; without `limit` nothing is
    cut off.

    The hidden layer stays in f32, but where bf16 is multiplied by bf16 (on a
    GPU, and with panels in pairs) it is that as well; the sum runs over `a` in order and rounds once,
    at the end. Work and weights read are those of the experts that are named;
    `experts[t, a]` of E or more (another rank's) add nothing, on a CPU alone.

    Source: Shazeer et al. (2017); Fedus et al. (2022); limits, offset and
    biases: OpenAI (2025), "gpt-oss-120b & gpt-oss-20b Model Card".

    Verifier rules (tests: `invalid-moe.mlir`, one case per label):
    - M1: up is [E, H, D] (gated: [E, 2H, D]) and down [E, Dout, H], or panels,
      both in pairs or neither.
    - M2: experts and weights are both [..., A], with the input's tokens.
    - M3: residual has the result's type.
    - M4: up and down have equally many experts.
    - M5: up_bias is [E, H] (gated: [E, 2H]) and down_bias [E, Dout].
    - M6: limit, which is positive, and up_offset belong to a gated layer.

    ```mlir
    %y = attune.moe %x, %experts, %weights, %gate_up, %down gated
         activation <silu>
       : tensor<?x?x64xf32>, tensor<?x?x2xi64>, tensor<?x?x2xf32>,
         tensor<8x96x64xf32>, tensor<8x64x48xf32> -> tensor<?x?x64xf32>
    ```
    ```mlir
    %y = attune.moe %x, %experts, %weights, %gate_up, %down
         up_bias %b : tensor<8x96xf32> down_bias %c : tensor<8x64xf32> gated
         activation <quick_gelu> limit 7.0 up_offset 1.0
       : tensor<?x?x64xf32>, tensor<?x?x2xi64>, tensor<?x?x2xf32>,
         tensor<8x96x64xf32>, tensor<8x64x48xf32> -> tensor<?x?x64xf32>
    ```
  }];
  let arguments = (ins Attune_Activations:$input, Attune_Choice:$experts,
                       Attune_Shares:$weights, Attune_Matrices:$up,
                       Attune_Matrices:$down, Optional<Attune_Biases>:$up_bias,
                       Optional<Attune_Biases>:$down_bias,
                       Optional<Attune_Activations>:$residual,
                       UnitAttr:$gated, Attune_ActivationAttr:$activation,
                       OptionalAttr<F32Attr>:$limit,
                       DefaultValuedAttr<F32Attr, "0.0f">:$up_offset);
  let results = (outs Attune_Activations:$result);
  let assemblyFormat = [{
    $input `,` $experts `,` $weights `,` $up `,` $down
    (`up_bias` $up_bias^ `:` type($up_bias))?
    (`down_bias` $down_bias^ `:` type($down_bias))?
    (`residual` $residual^ `:` type($residual))? (`gated` $gated^)?
    `activation` $activation (`limit` $limit^)? (`up_offset` $up_offset^)?
    attr-dict
    `:` type($input) `,` type($experts) `,` type($weights) `,` type($up) `,`
    type($down) `->` type($result)
  }];
  let hasVerifier = 1;
  let useCustomPropertiesEncoding = 1; // to read older modules
}

// The quantized part of a stack, as `attune.quantized_linear` has a matrix.
def Attune_ByteMatrices : RankedTensorOf<[I8, I<4>, F8E4M3FN],
    [HasAnyRankOfPred<[3, 4]>],
    "stack of [out, in] matrices of bytes or 4 bits, or packed panels of them">;

def Attune_QuantizedMoEOp : Attune_Op<"quantized_moe", [Pure, Attune_Reify,
                                     AttrSizedOperandSegments]> {
  let summary = "attune.moe on bytes: sums of a group are exact";
  let description = [{
    `attune.moe` with the products of `attune.quantized_linear`: the input is
    rows as `attune.quantize_rows` gives them, and so is the hidden layer, by the
    groups of down: with `q(h)` these bytes times their scales,

    `f_e(x) = q(act(x up_e^T)) down_e^T`, or `gated` as in `attune.moe`, which
    says what biases, limit and up_offset do, too.

    `hidden` is the width of the hidden layer, which panels do not tell. Each
    matrix of a stack may be in panels like one of `attune.quantized_linear`, and
    its scales then are. `up_zeros` and `down_zeros` say of a stack what `zeros`
    says there. Without scales of the input both products are of numbers as they
    are, and `q(h) = h`.

    Rounds the hidden layer to bytes, and once behind the sum, at the end.
    Source: Frantar and Alistarh (2023), "QMoE", whose experts are of fewer bits;
    dynamic bytes as in Yao et al. (2022), "ZeroQuant".

    Verifier rules (tests: `invalid-moe.mlir`, one case per label):
    - Q1: up is [E, hidden, D] (gated: [E, 2 hidden, D]) and down [E, Dout,
      hidden], or panels.
    - Q2: scales have the rows of their matrices; those of up are as many as the
      input's, those of down make whole groups of the hidden layer.
    - Q3: experts and weights are both [..., A]; they, input, its scales and its
      sums have the result's tokens.
    - Q4: residual has the result's type.
    - Q5: all four stacks have equally many experts.
    - Q6: biases, limit and up_offset are as `attune.moe` has them.
    - Q7: L7, L8 and L9 of `attune.quantized_linear` for both stacks.

    ```mlir
    %y = attune.quantized_moe %q scales %s sums %n, %experts, %weights,
         %gate_up scales %t, %down scales %u hidden 64 gated activation <silu>
       : (tensor<?x?x64xi8>, tensor<?x?x2xf32>, tensor<?x?x2xi32>),
         tensor<?x?x2xi64>, tensor<?x?x2xf32>,
         (tensor<8x128x64xi8>, tensor<8x128x2xf32>),
         (tensor<8x64x64xi8>, tensor<8x64x2xf32>) -> tensor<?x?x64xf32>
    ```
  }];
  let arguments = (ins Attune_BytesOrNumbers:$input,
                       Optional<Attune_GroupScales>:$input_scales,
                       Optional<Attune_GroupSums>:$input_sums,
                       Attune_Choice:$experts,
                       Attune_Shares:$weights, Attune_ByteMatrices:$up,
                       Attune_ScaleMatrices:$up_scales,
                       Attune_ByteMatrices:$down,
                       Attune_ScaleMatrices:$down_scales,
                       Optional<Attune_Biases>:$up_bias,
                       Optional<Attune_Biases>:$down_bias,
                       Optional<Attune_Activations>:$residual, I64Attr:$hidden,
                       UnitAttr:$gated, Attune_ActivationAttr:$activation,
                       OptionalAttr<F32Attr>:$limit,
                       DefaultValuedAttr<F32Attr, "0.0f">:$up_offset,
                       UnitAttr:$up_zeros, UnitAttr:$down_zeros);
  let results = (outs Attune_Activations:$result);
  let assemblyFormat = [{
    $input (`scales` $input_scales^ `sums` $input_sums)? `,` $experts `,`
    $weights `,` $up `scales` $up_scales (`up_zeros` $up_zeros^)? `,`
    $down `scales` $down_scales (`down_zeros` $down_zeros^)?
    (`up_bias` $up_bias^ `:` type($up_bias))?
    (`down_bias` $down_bias^ `:` type($down_bias))?
    (`residual` $residual^ `:` type($residual))? `hidden` $hidden
    (`gated` $gated^)? `activation` $activation (`limit` $limit^)?
    (`up_offset` $up_offset^)? attr-dict
    `:` `(` type($input) (`,` type($input_scales)^ `,` type($input_sums))? `)`
    `,` type($experts) `,` type($weights) `,` `(` type($up) `,` type($up_scales) `)`
    `,` `(` type($down) `,` type($down_scales) `)` `->` type($result)
  }];
  let hasVerifier = 1;
  let useCustomPropertiesEncoding = 1; // to read older modules
  let extraClassDeclaration = [{
    /// Bits of the numbers of up and of down.
    int64_t getUpBits();
    int64_t getDownBits();
    /// Neighbours in the input, and in the hidden layer, that share a scale.
    int64_t getInputGroup();
    int64_t getHiddenGroup();
  }];
}

def Attune_HeadLinearOp : Attune_Op<"head_linear", [Pure, Attune_Reify]> {
  let summary = "A linear layer of its own for every head";
  let description = [{
    `Y[b, h, t, n] = sum_k X[b, h, t, k] W[h, n, k]`, summed in f32. Latent
    attention moves queries into the space of its cache and results out of it
    this way.

    Rounds once, at the end.
    Source: DeepSeek-V2 (2024), section 2.1.

    Verifier rules (tests: `invalid-moe.mlir`, one case per label):
    - H1: W is [H, N, K] for X [B, H, T, K] and Y [B, H, T, N], or panels.
    - H2: batch and tokens of X and Y agree.

    ```mlir
    %y = attune.head_linear %x, %w
       : tensor<?x4x?x12xf32>, tensor<4x24x12xf32> -> tensor<?x4x?x24xf32>
    ```
  }];
  let arguments = (ins Attune_Heads:$input, Attune_Matrices:$weight);
  let results = (outs Attune_Heads:$result);
  let assemblyFormat = [{
    $input `,` $weight attr-dict `:` type($input) `,` type($weight) `->`
    type($result)
  }];
  let hasVerifier = 1;
}

#endif // ATTUNE_MOE_OPS_TD

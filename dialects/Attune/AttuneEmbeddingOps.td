//===- AttuneEmbeddingOps.td - Embeddings and positions ------*- tablegen -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_EMBEDDING_OPS_TD
#define ATTUNE_EMBEDDING_OPS_TD

include "AttuneTypes.td"

def Attune_EmbeddingOp : Attune_Op<"embedding", [Pure, Attune_Reify]> {
  let summary = "Rows of a table, picked by id";
  let description = [{
    `Y[b,t,:] = scale * table[ids[b,t] + offset, :] (+ addend[b,t,:])`. Serves
    token embeddings and learned positions alike. Ids outside the table are the
    caller's error: the runtime checks its inputs before it enters.

    The table may be [V, D] or packed panels (a tied head): [V/R, D, R], or
    [V/R, D/2, 2R] in pairs.

    In f32. Rounds once, at the end.
    Source: Vaswani et al. (2017), section 3.4; learned positions: Gehring et al.
    (2017).

    Verifier rules (tests: `invalid-embedding.mlir`, one case per label):
    - E1: the result is [B, T, D].
    - E2: addend has its type.

    ```mlir
    %x = attune.embedding %ids, %wte
       : tensor<?x?xi64>, tensor<50257x768xf32> -> tensor<?x?x768xf32>
    %y = attune.embedding %pos, %wpe add %x : tensor<?x?x768xf32>
       : tensor<?x?xi64>, tensor<1024x768xf32> -> tensor<?x?x768xf32>
    ```
  }];
  let arguments = (ins Attune_Ids:$ids, Attune_Matrix:$table,
                       Optional<Attune_Tokens>:$addend,
                       DefaultValuedAttr<F32Attr, "1.0f">:$scale,
                       DefaultValuedAttr<I64Attr, "0">:$offset);
  let results = (outs Attune_Tokens:$result);
  let assemblyFormat = [{
    $ids `,` $table (`add` $addend^ `:` type($addend))? (`scale` $scale^)?
    (`offset` $offset^)? attr-dict
    `:` type($ids) `,` type($table) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Attune_SinusoidalOp : Attune_Op<"sinusoidal", [Pure, Attune_Reify]> {
  let summary = "Sines and cosines of positions";
  let description = [{
    `[sin(w_k t), cos(w_k t)]` laid out by `convention` (see the enum), added to
    `addend` if given. `base` is 10000 in every published model.

    Angles, sines and the sum are f32. Rounds once, at the end.
    Source: Vaswani et al. (2017), section 3.5.

    Verifier rules (tests: `invalid-embedding.mlir`, one case per label):
    - E1: the result is [B, T, D] with D even.
    - E2: addend has its type.
    - E3: base > 0.

    ```mlir
    %y = attune.sinusoidal %pos convention <interleaved>
       : tensor<?x?xi64> -> tensor<?x?x512xf32>
    ```
  }];
  let arguments = (ins Attune_Ids:$positions, Optional<Attune_Tokens>:$addend,
                       Attune_SinusoidAttr:$convention,
                       DefaultValuedAttr<F64Attr, "10000.0">:$base);
  let results = (outs Attune_Tokens:$result);
  let assemblyFormat = [{
    $positions (`add` $addend^ `:` type($addend))? `convention` $convention
    (`base` $base^)? attr-dict `:` type($positions) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Attune_RotaryTableOp : Attune_Op<"rotary_table",
    [Pure, Attune_Reify]> {
  let summary = "Cosines and sines of rotary angles";
  let description = [{
    Su et al. (2021). `cos[b,t,i] = factor * cos(p[b,t] * w_i)`, sin alike, with
    `w` the inverse frequencies, one per turned pair of channels; every static
    scaling (linear, llama3, YaRN) is in `w` and `factor` already.

    `dynamic = [max_length, scaling, R]` is dynamic NTK scaling: let
    `n = max(1 + max p, max_length)` and
    `s = (scaling * n / max_length - scaling + 1)`; then pair i turns by
    `w_i * s^(-2 i / (R - 2))` (R = 2 * number of pairs).

    `growth = [beta, length, shift]` multiplies what position p turns by
    `1 + beta * log(1 + floor((p + shift) / length))`: queries whose scores grow
    with their place (Nakanishi 2025), as Llama 4 and Ministral 3 have them.
    Frequencies of 0 leave a turn that does nothing else.

    `long w' from n0` is LongRoPE (Ding et al. 2024): with n as above, but
    without `max_length`, w' takes the place of w if n > n0.

    Angles are f32 products; the cosines and sines round to
    f32.
    Source: Su et al. (2021); YaRN: Peng et al. (2023); LongRoPE: Ding et al.
    (2024); growth: Nakanishi (2025).

    Verifier rules (tests: `invalid-embedding.mlir`, one case per label):
    - R1: results are [B, T, pairs].
    - R2: factor and frequencies are finite and there is at least one.
    - R3: dynamic is [max_length >= 1, scaling > 0, 2 * pairs].
    - R4: long frequencies are as many as the others, come with `from`, and not
      with dynamic scaling.
    - R5: growth is [beta finite, length > 0, shift >= 0].

    ```mlir
    %cos, %sin = attune.rotary_table %pos frequencies [1.000000e+00, 1.000000e-02]
       : tensor<?x?xi64> -> tensor<?x?x2xf32>, tensor<?x?x2xf32>
    ```
  }];
  let arguments = (ins Attune_Ids:$positions, DenseF64ArrayAttr:$frequencies,
                       DefaultValuedAttr<F64Attr, "1.0">:$factor,
                       OptionalAttr<DenseF64ArrayAttr>:$dynamic,
                       OptionalAttr<DenseF64ArrayAttr>:$long_frequencies,
                       OptionalAttr<I64Attr>:$long_from,
                       OptionalAttr<DenseF64ArrayAttr>:$growth);
  let results = (outs RankedTensorOf<[F32], [HasAnyRankOfPred<[3]>]>:$cos,
                      RankedTensorOf<[F32], [HasAnyRankOfPred<[3]>]>:$sin);
  let assemblyFormat = [{
    $positions `frequencies` custom<ExactDoubles>($frequencies)
    (`factor` $factor^)? (`dynamic` custom<ExactDoubles>($dynamic)^)?
    (`long` custom<ExactDoubles>($long_frequencies)^)? (`from` $long_from^)?
    (`growth` custom<ExactDoubles>($growth)^)? attr-dict
    `:` type($positions) `->` type($cos) `,` type($sin)
  }];
  let hasVerifier = 1;
  let useCustomPropertiesEncoding = 1; // to read older modules
}

def Attune_RotaryOp : Attune_Op<"rotary",
    [Pure, Attune_Reify, AllTypesMatch<["cos", "sin"]>]> {
  let summary = "Turn pairs of channels by position";
  let description = [{
    With R = 2 * the tables' pairs, for pair i = (a, b) of the first R channels:
    `y_a = x_a cos_i - x_b sin_i`, `y_b = x_b cos_i + x_a sin_i`. Pair i is
    (i, i + R/2) or (2i, 2i + 1) by `pairing`. Channels from R on pass through.

    In f32. Rounds once, at the end, to the result's type.
    Source: Su et al. (2021).

    Verifier rules (tests: `invalid-embedding.mlir`, one case per label):
    - R1: tables are [B, T, R/2] with R <= Dh.
    - R2: the result has the input's shape.

    ```mlir
    %r = attune.rotary %q, %cos, %sin pairing <half>
       : tensor<?x4x?x32xf32>, tensor<?x?x16xf32>
    ```
  }];
  let arguments = (ins RankedTensorOf<[F32, F16, BF16], [HasAnyRankOfPred<[4]>],
                         "[batch, heads, tokens, width] tensor">:$input,
                       RankedTensorOf<[F32], [HasAnyRankOfPred<[3]>]>:$cos,
                       RankedTensorOf<[F32], [HasAnyRankOfPred<[3]>]>:$sin,
                       Attune_PairingAttr:$pairing);
  let results = (outs RankedTensorOf<[F32, F16, BF16], [HasAnyRankOfPred<[4]>],
                        "[batch, heads, tokens, width] tensor">:$result);
  let assemblyFormat = [{
    $input `,` $cos `,` $sin `pairing` $pairing attr-dict
    `:` type($input) `,` type($cos)
    `` custom<ResultLike>(type($result), ref(type($input)))
  }];
  let hasVerifier = 1;
}

#endif // ATTUNE_EMBEDDING_OPS_TD

//===- AttuneAttentionOps.td - The attention ladder ----------*- tablegen -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_ATTENTION_OPS_TD
#define ATTUNE_ATTENTION_OPS_TD

include "AttuneTypes.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"

def Attune_SimilarityOp : Attune_Op<"similarity", [Pure, Attune_Reify]> {
  let summary = "Scaled dot products of queries and keys";
  let description = [{
    `E[b,h,m,n] = scale * sum_d Q[b,h,m,d] K[b,h*Hkv/Hq,n,d]`, summed in f32.
    A key in bytes is what they say times its scale.

    Rounds once, at the end.
    Source: Vaswani et al. (2017), equation 1; shared key/value heads: Ainslie
    et al. (2023).

    Verifier rules (tests: `invalid-ladder.mlir`, one case per label):
    - S1: batch sizes agree.
    - S2: Hq is a multiple of Hkv.
    - S3: query and key have equal width.
    - S4: the result is [B, Hq, M, N].

    ```mlir
    %e = attune.similarity %q, %k scale 1.250000e-01
       : tensor<1x8x4x64xf32>, tensor<1x2x6x64xf32> -> tensor<1x8x4x6xf32>
    ```
  }];
  let arguments = (ins Attune_Heads:$query, Attune_CachedHeads:$key,
                       F32Attr:$scale);
  let results = (outs Attune_Scores:$result);
  let assemblyFormat = [{
    $query `,` $key `scale` $scale attr-dict
    `:` type($query) `,` type($key) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Attune_MaskScoresOp : Attune_Op<"mask_scores",
    [Pure, Attune_Reify, AttrSizedOperandSegments,
     AllTypesMatch<["scores", "result"]>]> {
  let summary = "Soft-cap scores, add biases, hide what may not be seen";
  let description = [{
    In this order: `E = c tanh(E/c)` with `softcap = c`; `E += bias`;
    `E += diagonals[h, n - m + M - 1]`, a bias that is the same all along each
    diagonal, in M + N - 1 numbers a head instead of M * N;
    `E += slope[h] * (n - (m + N - M))` (ALiBi, Press et al. 2022); and
    `E[m,n] = -inf` wherever `mask` is false, n is `lengths[b]` or more, the
    block (m / p, n / q) of `blocks` of [p, q] is false, `causal` hides key n
    from query m, or n is `window` or more keys before m's own (so the window
    counts the query itself; m stands at key position `m + N - M`, or at `m` if
    the causal alignment is top_left). A window alone hides no later key; with
    the alignment symmetric those are hidden that are `window` or more keys
    behind m's own, and no others.
    Lengths hide keys and move none: N is the same for all of the batch. But
    with the causal alignment `lengths` the last query of each sequence stands
    at its last key. For slopes, causality and window N becomes L = lengths[b]
    (without diagonals it may be any number: other keys are elsewhere), and the
    diagonal of a score has the number n - m + M - 1 + N - L, so that a column
    is one distance for all sequences. So one step decodes sequences of unequal
    length, each as bottom_right does alone.

    A size of mask, bias or blocks that is 1 in the type is broadcast (of
    blocks: batch and heads); a dynamic one is that of the scores.

    In f32, step after step. Rounds once, at the end.
    Source: Vaswani et al. (2017), section 3.2.3, for the causal mask; Beltagy
    et al. (2020) for windows, Press et al. (2022) for slopes, Gemma 2 (2024) for the
    soft cap.

    Verifier rules (tests: `invalid-ladder.mlir`, one case per label):
    - M1: mask, bias and slopes broadcast to the scores.
    - M2: window > 0 and softcap > 0 where given.
    - M3: diagonals is [H, M + N - 1].
    - M4: lengths is [B].
    - M5: blocks is [B|1, H|1, ceil(M / p), ceil(N / q)], and has two sizes
      [p, q], which are positive.
    - M6: the causal alignment `lengths` needs lengths, symmetric a window.

    ```mlir
    %f = attune.mask_scores %e causal <bottom_right> window 64
       : tensor<1x8x4x6xf32>
    ```
    ```mlir
    %f = attune.mask_scores %e causal <symmetric> window 64
       : tensor<1x8x4x6xf32>
    ```
    ```mlir
    %g = attune.mask_scores %e lengths %n : tensor<1xi64>
       blocks %b of [2, 2] : tensor<1x1x2x3xi1> : tensor<1x8x4x6xf32>
    ```
  }];
  let arguments = !con((ins Attune_Scores:$scores), Attune_ScoreTensors,
      (ins Optional<Attune_Lengths>:$lengths,
           Optional<Attune_BlockMask>:$blocks),
      Attune_ScoreAttributes,
      (ins OptionalAttr<DenseI64ArrayAttr>:$block_sizes));
  let results = (outs Attune_Scores:$result);
  let assemblyFormat = !strconcat(
      "$scores", Attune_MaskSyntax, Attune_BlocksSyntax, Attune_BiasSyntax,
      Attune_ScoreAttributesSyntax, "attr-dict `:` type($scores)");
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Attune_SoftmaxOp : Attune_Op<"softmax",
    [Pure, Attune_Reify, AllTypesMatch<["scores", "result"]>]> {
  let summary = "Softmax over keys; a row of -inf gives zeros";
  let description = [{
    `A[m,n] = exp(E[m,n] - max_n E[m,n]) / (sum_n exp(...) + sink)`, where
    `sink = exp(sinks[h] - max)` if given, else 0; with sinks the maximum
    includes `sinks[h]`.

    In f32. Rounds once, at the end.
    Source: Vaswani et al. (2017), equation 1; sinks: Xiao et al. (2024).

    Verifier rules (tests: `invalid-ladder.mlir`, one case per label):
    - T1: sinks is [H].

    ```mlir
    %a = attune.softmax %e : tensor<1x8x4x6xf32>
    ```
  }];
  let arguments = (ins Attune_Scores:$scores, Optional<Attune_PerHead>:$sinks);
  let results = (outs Attune_Scores:$result);
  let assemblyFormat = [{
    $scores (`sinks` $sinks^ `:` type($sinks))? attr-dict `:` type($scores)
  }];
  let hasVerifier = 1;
}

def Attune_LogSumExpOp : Attune_Op<"log_sum_exp", [Pure, Attune_Reify]> {
  let summary = "Logarithm of the sum of exponentials over keys";
  let description = [{
    `L[m] = log(sum_n exp(E[m,n]) + sink)`, where `sink = exp(sinks[h])` if
    given, else 0; computed around the maximum, so it does not overflow. A row
    of -inf without a sink gives -inf. `exp(E - L)` is the softmax.

    In f32. Rounds once, at the end.
    Source: Dao (2023), where the backward pass needs it.

    Verifier rules (tests: `invalid-ladder.mlir`, one case per label):
    - X1: the result is [B, H, M].
    - X2: sinks is [H].

    ```mlir
    %l = attune.log_sum_exp %e : tensor<1x8x4x6xf32> -> tensor<1x8x4xf32>
    ```
  }];
  let arguments = (ins Attune_Scores:$scores, Optional<Attune_PerHead>:$sinks);
  let results = (outs Attune_RowState:$result);
  let assemblyFormat = [{
    $scores (`sinks` $sinks^ `:` type($sinks))? attr-dict
    `:` type($scores) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Attune_WeightedSumOp : Attune_Op<"weighted_sum", [Pure, Attune_Reify]> {
  let summary = "Values averaged with attention weights";
  let description = [{
    `Y[b,h,m,d] = sum_n A[b,h,m,n] V[b,h*Hkv/Hq,n,d]`, summed in f32 and
    rounded once. A value in bytes is what they say times its scale.

    Source: Vaswani et al. (2017), equation 1.

    Verifier rules (tests: `invalid-ladder.mlir`, one case per label):
    - Y1: batch sizes agree.
    - Y2: Hq is a multiple of Hkv.
    - Y3: scores and values have the same number of keys.
    - Y4: the result is [B, Hq, M, Dv].

    ```mlir
    %y = attune.weighted_sum %a, %v
       : tensor<1x8x4x6xf32>, tensor<1x2x6x64xf32> -> tensor<1x8x4x64xf32>
    ```
  }];
  let arguments = (ins Attune_Scores:$probs, Attune_CachedHeads:$value);
  let results = (outs Attune_Heads:$result);
  let assemblyFormat = [{
    $probs `,` $value attr-dict
    `:` type($probs) `,` type($value) `->` type($result)
  }];
  let hasVerifier = 1;
}


def Attune_AttentionOp : Attune_Op<"attention",
    [Pure, Attune_Reify, AttrSizedOperandSegments]> {
  let summary = "Scaled dot-product attention with every variant in one op";
  let description = [{
    The chain `weighted_sum(softmax(mask_scores(similarity(Q, K))), V)` in one
    op, with the meaning of each link. A row with no visible key yields zeros.
    `lse[b,h,m] = log sum_n exp E[m,n]` (-inf for such a row; with sinks the sum
    includes `exp(sinks[h])`, so that `exp(E - lse)` are the weights) is an
    optional second result. Rounds once, at the end.

    Source: Vaswani et al. (2017), equation 1; Dao et al. (2022) for how it is
    computed.

    Verifier rules (tests: `invalid-attention.mlir`, one case per label):
    - A1: batch sizes agree.
    - A2: Hq is a multiple of Hkv; key and value have as many heads.
    - A3: key and value have equal length; query and key equal width.
    - A4: mask and bias broadcast to [B, Hq, M, N]; slopes and sinks are [Hq].
    - A5: window > 0 and softcap > 0 where given.
    - A6: the result is [B, Hq, M, Dv], lse is [B, Hq, M].
    - A7: diagonals is [Hq, M + N - 1].
    - A8: lengths is [B].
    - A9: blocks is [B|1, Hq|1, ceil(M / p), ceil(N / q)], and has two sizes
      [p, q], which are positive.
    - A10: the causal alignment `lengths` needs lengths, symmetric a window.

    The loops that this op becomes stop at a sequence's length, and step over
    blocks that are false. They step by divisors of the block sizes: sizes
    below 32 or so, and odd ones, skip no less but run slower.

    ```mlir
    %r = attune.attention %q, %k, %v scale 1.250000e-01 causal <bottom_right>
       : tensor<1x8x4x64xf32>, tensor<1x2x6x64xf32>, tensor<1x2x6x64xf32>
       -> tensor<1x8x4x64xf32>
    ```
    ```mlir
    %s = attune.attention %q, %k, %v scale 1.250000e-01
       lengths %n : tensor<1xi64> blocks %b of [2, 2] : tensor<1x1x2x3xi1>
       : tensor<1x8x4x64xf32>, tensor<1x2x6x64xf32>, tensor<1x2x6x64xf32>
       -> tensor<1x8x4x64xf32>
    ```
  }];
  let arguments = !con(
      (ins Attune_Heads:$query, Attune_CachedHeads:$key,
           Attune_CachedHeads:$value),
      Attune_ScoreTensors,
      (ins Optional<Attune_PerHead>:$sinks, Optional<Attune_Lengths>:$lengths,
           Optional<Attune_BlockMask>:$blocks, F32Attr:$scale),
      Attune_ScoreAttributes,
      (ins OptionalAttr<DenseI64ArrayAttr>:$block_sizes));
  let results = (outs Attune_Heads:$result, Optional<Attune_RowState>:$lse);
  let assemblyFormat = !strconcat(
      "$query `,` $key `,` $value `scale` $scale", Attune_MaskSyntax,
      Attune_BlocksSyntax, Attune_BiasSyntax,
      "(`sinks` $sinks^ `:` type($sinks))?", Attune_ScoreAttributesSyntax, [{
    attr-dict
    `:` type($query) `,` type($key) `,` type($value) `->` type($result)
    (`lse` type($lse)^)?
  }]);
  let hasVerifier = 1;
  let hasCanonicalizeMethod = 1;
}

def Attune_AttentionWeightsOp : Attune_Op<"attention_weights",
    [Pure, Attune_Reify, AttrSizedOperandSegments, DestinationStyleOpInterface,
     AllTypesMatch<["dest", "result"]>]> {
  let summary = "Weights of some heads, from the log-sum-exp of attention";
  let description = [{
    `A[b,j,m,n] = exp(E[b,h,m,n] - lse[b,h,m])` with `h = from_head + j` and E
    the scores that `attention` makes of the same operands; zeros where lse is
    -inf. As many heads as `dest` has, which is written over: nothing else of
    the size of the scores is ever stored. If `when` is false, `dest` stays as
    it is, so that a block that is one function for many layers gives the
    weights of the layers asked for.

    In f32. Rounds once, at the end.
    Source: Vaswani et al. (2017), equation 1; recomputed as Dao (2023) does.

    Verifier rules (tests: `invalid-weights.mlir`, one case per label):
    - W1: batch sizes agree.
    - W2: Hq is a multiple of Hkv.
    - W3: query and key have equal width.
    - W4: mask and bias broadcast to [B, Hq, M, N]; slopes are [Hq].
    - W5: window > 0 and softcap > 0 where given.
    - W6: lse is [B, Hq, M].
    - W7: diagonals is [Hq, M + N - 1].
    - W8: dest is [B, H, M, N], and there are heads from_head to from_head + H.

    ```mlir
    %a = attune.attention_weights %q, %k, %lse scale 1.250000e-01
       causal <bottom_right> from_head 2 into %dest when %asked
       : tensor<1x8x4x64xf32>, tensor<1x2x6x64xf32>, tensor<1x8x4xf32>
       -> tensor<1x3x4x6xf32>
    ```
  }];
  let arguments = !con(
      (ins Attune_Heads:$query, Attune_Heads:$key, Attune_RowState:$lse,
           Attune_Scores:$dest),
      Attune_ScoreTensors, (ins Optional<I1>:$when, F32Attr:$scale),
      Attune_ScoreAttributes,
      (ins DefaultValuedAttr<I64Attr, "0">:$from_head));
  let results = (outs Attune_Scores:$result);
  let assemblyFormat = !strconcat(
      "$query `,` $key `,` $lse `scale` $scale", Attune_MaskSyntax,
      Attune_BiasSyntax, Attune_ScoreAttributesSyntax, [{
    (`from_head` $from_head^)? `into` $dest (`when` $when^)? attr-dict
    `:` type($query) `,` type($key) `,` type($lse) `->` type($dest)
  }]);
  let hasVerifier = 1;
  let hasCanonicalizeMethod = 1;
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() {
      return getDestMutable();
    }
  }];
}

def Attune_RelativeBiasOp : Attune_Op<"relative_bias", [Pure, Attune_Reify]> {
  let summary = "Learned biases of distances between tokens, in buckets";
  let description = [{
    Raffel et al. (2020), T5: `diagonals[h, j] = table[bucket(j - N + 1), h]`
    for M `queries` that are the last of N `keys`, which is what the operand
    `diagonals` of attention takes. With `d` keys from the query back to the
    key (`d < 0` ahead), S buckets and `e = S / 2`:

    ```
    bucket(d) = d                                              for d < e
                min(S - 1, e + (S - e) log(d/e) / log(max_distance/e))  beyond
    ```

    the last in f32 and rounded towards zero. Keys ahead count as d = 0, unless
    `bidirectional`: then S is half the number of buckets, and keys ahead have
    the second half for their distance.

    Source: Raffel et al. (2020), in the form of Hugging Face's T5.

    Verifier rules (tests: `invalid-relative-bias.mlir`, one case per label):
    - B1: the table is [buckets, H] with two buckets or more, four if
      bidirectional; the result is [H, M + N - 1].
    - B2: max_distance is more than e.

    ```mlir
    %d = attune.relative_bias %table queries %m keys %n max_distance 128
       bidirectional : tensor<32x8xf32> -> tensor<8x?xf32>
    ```
  }];
  let arguments = (ins RankedTensorOf<[F32, F16, BF16], [HasAnyRankOfPred<[2]>],
                         "[buckets, heads] table">:$table,
                       Index:$queries, Index:$keys, I64Attr:$max_distance,
                       UnitAttr:$bidirectional);
  let results = (outs Attune_Diagonals:$result);
  let assemblyFormat = [{
    $table `queries` $queries `keys` $keys `max_distance` $max_distance
    (`bidirectional` $bidirectional^)? attr-dict
    `:` type($table) `->` type($result)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Buckets of one direction.
    int64_t getBuckets();
    /// The bucket of each distance from 0 to max_distance, within its
    /// direction; greater distances have the last one's.
    ::llvm::SmallVector<int32_t> computeBuckets();
  }];
}

def Attune_SplitHeadsOp : Attune_Op<"split_heads", [Pure, Attune_Reify]> {
  let summary = "Columns of a projection as heads";
  let description = [{
    `Y[b,h,t,d] = X[b,t, offset + h*Dh + d]`: [B, T, W] to [B, H, T, Dh].

    Nothing is computed: only a result of fewer bits rounds.
    Source: Vaswani et al. (2017), section 3.2.2.

    Verifier rules (tests: `invalid-heads.mlir`, one case per label):
    - H1: offset + H*Dh <= W and offset >= 0.
    - H2: H and Dh are static.
    - H3: batch and length agree.

    ```mlir
    %k = attune.split_heads %qkv at 768
       : tensor<?x?x2304xf32> -> tensor<?x12x?x64xf32>
    ```
  }];
  let arguments = (ins RankedTensorOf<[F32, F16, BF16], [HasAnyRankOfPred<[3]>],
                         "[batch, tokens, width] tensor">:$input,
                       DefaultValuedAttr<I64Attr, "0">:$offset);
  let results = (outs Attune_Heads:$result);
  let assemblyFormat = [{
    $input (`at` $offset^)? attr-dict `:` type($input) `->` type($result)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Attune_MergeHeadsOp : Attune_Op<"merge_heads", [Pure, Attune_Reify]> {
  let summary = "Concatenate the heads of each token";
  let description = [{
    `Y[b,t,h*Dh + d] = X[b,h,t,d]`: [B, H, T, Dh] to [B, T, H*Dh].

    Nothing is computed, so nothing rounds.
    Source: Vaswani et al. (2017), section 3.2.2.

    Verifier rules (tests: `invalid-heads.mlir`, one case per label):
    - J1: the shapes say so, and the element types agree.

    ```mlir
    %y = attune.merge_heads %x : tensor<?x12x?x64xf32> -> tensor<?x?x768xf32>
    ```
  }];
  let arguments = (ins Attune_Heads:$input);
  let results = (outs RankedTensorOf<[F32, F16, BF16], [HasAnyRankOfPred<[3]>],
                        "[batch, tokens, width] tensor">:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

#endif // ATTUNE_ATTENTION_OPS_TD

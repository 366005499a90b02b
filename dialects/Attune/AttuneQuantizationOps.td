//===- AttuneQuantizationOps.td - Products of 8 and 4 bits ----*- tablegen -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_QUANTIZATION_OPS_TD
#define ATTUNE_QUANTIZATION_OPS_TD

include "AttuneTypes.td"

// The quantized part of an `attune.weight`: W + 128 as a byte, W + 8 in 4 bits
// or W as a float of 8 bits, in groups that share a scale.
def Attune_ByteMatrix : RankedTensorOf<[I8, I<4>, F8E4M3FN],
    [HasAnyRankOfPred<[2, 3]>],
    "[out, in] matrix of bytes or 4 bits, or packed panels of them">;

def Attune_QuantizeRowsOp : Attune_Op<"quantize_rows", [Pure, Attune_Reify]> {
  let summary = "Rows as bytes, each group of neighbours with a scale";
  let description = [{
    For each quantization group g of `group` neighbours in a row, with m the
    largest magnitude among them: `scales[g] = m / 127`;
    `values = round(X * (127 / m))` as signed bytes, to nearest and ties to even,
    all 0 where m is 0; and `sums[g]`, the sum of these values, for products with
    unsigned bytes as weights. A group with an infinity or NaN has a scale that is
    none, so results that use it are NaN.

    Scales and quotients in f32. Rounds once, to bytes.
    Source: dynamic quantization by group, Yao et al. (2022), "ZeroQuant".

    Verifier rules (tests: `invalid-quantization.mlir`, one case per label):
    - R1: results have the input's leading sizes, the values its width.
    - R2: scales and sums are one for each group.
    - R3: a group has 4, 8, 12, ..., 65536 neighbours, and a row whole groups.

    ```mlir
    %q, %s, %n = attune.quantize_rows %x group 128 : tensor<?x?x768xf32>
       -> tensor<?x?x768xi8>, tensor<?x?x6xf32>, tensor<?x?x6xi32>
    ```
  }];
  let arguments = (ins Attune_Activations:$input, I64Attr:$group);
  let results = (outs Attune_ByteRows:$values, Attune_GroupScales:$scales,
                      Attune_GroupSums:$sums);
  let assemblyFormat = [{
    $input `group` $group attr-dict `:` type($input)
    `->` type($values) `,` type($scales) `,` type($sums)
  }];
  let hasVerifier = 1;
}

def Attune_QuantizedLinearOp : Attune_Op<"quantized_linear",
    [Pure, Attune_Reify, AttrSizedOperandSegments]> {
  let summary = "attune.linear on bytes: sums of a group are exact";
  let description = [{
    `Z[..., n] = sum_g s[..., g] t[n, g] sum_{k in g} X[..., k] (W[n, k] - z)
    + bias[n]`, X and s as `attune.quantize_rows` gives them, W a weight of
    unsigned numbers in groups and t its scales: bytes, where z is 128, or 4
    bits, where it is 8. The inner sums are exact; the outer one is in f32, in
    the order of groups. Then Z goes through the epilogue of `attune.linear`:
    activation, `gated`, scale and residual.

    With `zeros` each group has a zero point of its own, and scales are pairs:
    `t[n, g]` is entry 2g of a row of them and `z[n, g]`, any number, entry 2g + 1.

    Numbers of 4 bits with scales of f8E8M0FNU are floats, e2m1: `W - z` is 0, 0.5,
    1, 1.5, 2, 3, 4 or 6 for W below 8, and minus these from there on. Those of
    f8E4M3FN are floats of 8 bits, and z is 0. Such floats multiply numbers.

    Scales of i8 are in two levels. Of each 256 columns they have a signed byte
    b[n, g] for each group, with `zeros` that of a minimum c[n, g] behind it, and then
    the lower and the upper byte of an f16 d[n], with `zeros` those of e[n], too:
    `t[n, g] = d[n] b[n, g]` in f32, and `t[n, g] (W - z)` is `t[n, g] W - e[n] c[n, g]`
    with `zeros`. Bytes hold numbers of 6 bits then, of which z is 32.

    Without scales of the input X is numbers, and s is 1: all sums are in f32 then,
    in the order of columns within a group.

    W may be in packed panels (see `attune.weight`): [panels, K/4, 4R] of bytes,
    [panels, K/8, 4R] of bytes that hold two numbers each; and t in panels
    [panels, K/group, R], or pairs in [panels, 2 K/group, R].

    Rounds once behind the sum, at the end.
    Source: Dettmers et al. (2022), "LLM.int8()", without its outliers: groups
    keep these apart. Groups of 4 bits: Dettmers and Zettlemoyer (2023), "The case
    for 4-bit precision". Floats of 4 bits: Rouhani et al. (2023), "Microscaling data
    formats for deep learning".

    Verifier rules (tests: `invalid-quantization.mlir`, one case per label):
    - L1: input width is W's K.
    - L2: result width is W's N (half of it if gated).
    - L3: bias has W's N entries.
    - L4: residual has the result's type.
    - L5: leading sizes of input, its scales and sums, and result agree.
    - L6: input and weight have equally many scales (two for one with `zeros`),
      and sums are as many.
    - L7: bytes come with scales and sums, numbers with neither; the weight's
      groups are whole ones.
      Scales in two levels are those of whole blocks of 256 columns.
    - L8: scales of f8E8M0FNU are those of 4 bits without `zeros`.
    - L9: floats of 8 bits have scales of f32 without `zeros`, and an input of
      numbers.

    ```mlir
    %y = attune.quantized_linear %q scales %s sums %n, %w scales %t
       : (tensor<?x?x768xi8>, tensor<?x?x6xf32>, tensor<?x?x6xi32>),
         (tensor<3072x768xi8>, tensor<3072x6xf32>) -> tensor<?x?x3072xf32>
    ```
    ```mlir
    %y = attune.quantized_linear %x, %w scales %t zeros : (tensor<?x?x768xf32>),
         (tensor<3072x768xi4>, tensor<3072x12xf16>) -> tensor<?x?x3072xf32>
    ```
    ```mlir
    %y = attune.quantized_linear %x, %w scales %t : (tensor<?x?x768xf32>),
         (tensor<3072x768xf8E4M3FN>, tensor<3072x6xf32>) -> tensor<?x?x3072xf32>
    ```
  }];
  let arguments = (ins Attune_BytesOrNumbers:$input,
                       Optional<Attune_GroupScales>:$input_scales,
                       Optional<Attune_GroupSums>:$input_sums,
                       Attune_ByteMatrix:$weight,
                       Attune_ScaleMatrix:$weight_scales,
                       Optional<Attune_Channel>:$bias,
                       Optional<Attune_Activations>:$residual,
                       DefaultValuedAttr<Attune_ActivationAttr,
                                         "Activation::Identity">:$activation,
                       UnitAttr:$gated, OptionalAttr<F32Attr>:$scale,
                       UnitAttr:$zeros);
  let results = (outs Attune_Activations:$result);
  let assemblyFormat = [{
    $input (`scales` $input_scales^ `sums` $input_sums)? `,`
    $weight `scales` $weight_scales (`zeros` $zeros^)?
    (`bias` $bias^ `:` type($bias))?
    (`residual` $residual^ `:` type($residual))? (`activation` $activation^)?
    (`gated` $gated^)? (`scale` $scale^)? attr-dict
    `:` `(` type($input) (`,` type($input_scales)^ `,` type($input_sums))? `)`
    `,` `(` type($weight) `,` type($weight_scales) `)` `->` type($result)
  }];
  let hasVerifier = 1;
  let useCustomPropertiesEncoding = 1; // to read older modules
  let extraClassDeclaration = [{
    /// Neighbours that share a scale.
    int64_t getGroup();
  }];
}

def Attune_QuantizedEmbeddingOp : Attune_Op<"quantized_embedding",
    [Pure, Attune_Reify]> {
  let summary = "attune.embedding from a table of bytes";
  let description = [{
    `Y[b,t,d] = scale * t[i, d / group] * (table[i, d] - z) (+ addend[b,t,d])`
    with `i = ids[b,t] + offset`, z and `zeros` as in `attune.quantized_linear`: a
    table that a head of the model multiplies by, too, and that is stored once, or
    one that a checkpoint has in few bits. Table and scales may be in panels as
    those of `attune.quantized_linear`.

    In f32. Rounds once, at the end.
    Source: tied embeddings, Press and Wolf (2017).

    Verifier rules (tests: `invalid-quantization.mlir`, one case per label):
    - E1: the result is [B, T, D], D the table's width.
    - E2: addend has its type.
    - E3: whole groups make a row of the table, with scales as L8 and L9 of
      `attune.quantized_linear` say.

    ```mlir
    %x = attune.quantized_embedding %ids, %wte scales %t : tensor<?x?xi64>,
         (tensor<50257x768xi8>, tensor<50257x6xf32>) -> tensor<?x?x768xf32>
    ```
  }];
  let arguments = (ins Attune_Ids:$ids, Attune_ByteMatrix:$table,
                       Attune_ScaleMatrix:$scales,
                       Optional<Attune_Tokens>:$addend,
                       DefaultValuedAttr<F32Attr, "1.0f">:$scale,
                       DefaultValuedAttr<I64Attr, "0">:$offset,
                       UnitAttr:$zeros);
  let results = (outs Attune_Tokens:$result);
  let assemblyFormat = [{
    $ids `,` $table `scales` $scales (`zeros` $zeros^)?
    (`add` $addend^ `:` type($addend))?
    (`scale` $scale^)? (`offset` $offset^)? attr-dict
    `:` type($ids) `,` `(` type($table) `,` type($scales) `)`
    `->` type($result)
  }];
  let hasVerifier = 1;
  let useCustomPropertiesEncoding = 1; // to read older modules
  let extraClassDeclaration = [{
    /// Neighbours that share a scale.
    int64_t getGroup();
  }];
}

#endif // ATTUNE_QUANTIZATION_OPS_TD

//===- AttuneNormOps.td - Normalisation ----------------------*- tablegen -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_NORM_OPS_TD
#define ATTUNE_NORM_OPS_TD

include "AttuneTypes.td"

def Attune_LayerNormOp : Attune_Op<"layer_norm",
    [Pure, Attune_Reify, AttrSizedOperandSegments]> {
  let summary = "Layer normalisation over the last dimension";
  let description = [{
    Ba, Kiros and Hinton (2016). `mu = mean x`, `var = mean (x - mu)^2` (two
    passes, f32), `y = (x - mu) / sqrt(var + eps) * (offset + gamma) + beta`;
    without gamma the factor is 1, without beta nothing is added. `offset` is 0,
    or 1 for the form of Nemotron. `eps` in f32. Heads [B, H, T, Dh] may have a
    gamma and beta each: [H, Dh].

    In f32. Rounds once, at the end, to the result's type.
    Source: Ba, Kiros and Hinton (2016).

    Verifier rules (tests: `invalid-norm.mlir`, one case per label):
    - N1: gamma and beta have the input's last dimension, or heads and last.
    - N2: eps >= 0.
    - N3: the result has the input's shape.

    ```mlir
    %y = attune.layer_norm %x gamma %g : tensor<768xf32>
       beta %b : tensor<768xf32> eps 1.000000e-05 : tensor<?x?x768xf32>
    ```
  }];
  let arguments = (ins Attune_Activations:$input,
                       Optional<Attune_HeadChannel>:$gamma,
                       Optional<Attune_HeadChannel>:$beta, F32Attr:$eps,
                       DefaultValuedAttr<F32Attr, "0.0f">:$offset);
  let results = (outs Attune_Activations:$result);
  let assemblyFormat = [{
    $input (`gamma` $gamma^ `:` type($gamma))? (`beta` $beta^ `:` type($beta))?
    `eps` $eps (`offset` $offset^)? attr-dict `:` type($input)
    `` custom<ResultLike>(type($result), ref(type($input)))
  }];
  let hasVerifier = 1;
  let useCustomPropertiesEncoding = 1; // to read older modules
}

def Attune_RMSNormOp : Attune_Op<"rms_norm", [Pure, Attune_Reify]> {
  let summary = "Root-mean-square normalisation over the last dimension";
  let description = [{
    Zhang and Sennrich (2019). `y = x / sqrt(mean x^2 + eps) * (offset + gamma)`
    with statistics in f32; `offset` is 0, or 1 for the Gemma form. Without
    gamma the factor is 1. Heads [B, H, T, Dh] may have a gamma each: [H, Dh].

    Rounds once, at the end, to the result's type.
    Source: Zhang and Sennrich (2019).

    Verifier rules (tests: `invalid-norm.mlir`, one case per label):
    - N1: gamma has the input's last dimension, or heads and last.
    - N2: eps >= 0.
    - N3: the result has the input's shape.

    ```mlir
    %y = attune.rms_norm %x gamma %g : tensor<768xf32> eps 1.000000e-05
       : tensor<?x?x768xf32> -> tensor<?x?x768xbf16>
    ```
  }];
  let arguments = (ins Attune_Activations:$input,
                       Optional<Attune_HeadChannel>:$gamma, F32Attr:$eps,
                       DefaultValuedAttr<F32Attr, "0.0f">:$offset);
  let results = (outs Attune_Activations:$result);
  let assemblyFormat = [{
    $input (`gamma` $gamma^ `:` type($gamma))? `eps` $eps (`offset` $offset^)?
    attr-dict `:` type($input)
    `` custom<ResultLike>(type($result), ref(type($input)))
  }];
  let hasVerifier = 1;
}

def Attune_ModulateOp : Attune_Op<"modulate",
    [Pure, Attune_Reify, AllTypesMatch<["input", "result"]>]> {
  let summary = "Scale and shift channels by what a condition says";
  let description = [{
    Adaptive norms and gates (Peebles and Xie 2023): every token of a sequence is
    scaled and shifted by columns of one row,
    `Y[b,t,d] = R[b,t,d] + X[b,t,d] * (offset + C[b, scale + d]) + C[b, shift + d]`
    where the residual R and the shift are 0 if not given. `offset` 1 is the form
    that follows a norm, 0 that of a gate. Rounds once.

    Source: Peebles and Xie (2023).

    Verifier rules (tests: `invalid-norm.mlir`, one case per label):
    - D1: input is [B, T, D], and the condition has a row for each of B.
    - D2: columns scale to scale + D and shift to shift + D exist.
    - D3: the residual has the type of the result.

    ```mlir
    %y = attune.modulate %x by %c scale 64 shift 0 offset 1.000000e+00
       : tensor<?x?x64xf32>, tensor<?x384xf32>
    ```
  }];
  let arguments = (ins Attune_Tokens:$input,
                       RankedTensorOf<[F32, F16, BF16], [HasAnyRankOfPred<[2]>],
                         "[batch, columns] tensor">:$condition,
                       Optional<Attune_Tokens>:$residual, I64Attr:$scale,
                       OptionalAttr<I64Attr>:$shift,
                       DefaultValuedAttr<F32Attr, "0.0f">:$offset);
  let results = (outs Attune_Tokens:$result);
  let assemblyFormat = [{
    $input `by` $condition `scale` $scale (`shift` $shift^)?
    (`offset` $offset^)? (`residual` $residual^ `:` type($residual))? attr-dict
    `:` type($input) `,` type($condition)
  }];
  let hasVerifier = 1;
}

#endif // ATTUNE_NORM_OPS_TD

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
    [Pure, Attune_Reify, AttrSizedOperandSegments,
     AllTypesMatch<["input", "result"]>]> {
  let summary = "Layer normalisation over the last dimension";
  let description = [{
    Ba, Kiros and Hinton (2016). `mu = mean x`, `var = mean (x - mu)^2` (two
    passes, f32), `y = (x - mu) / sqrt(var + eps) * gamma + beta`; gamma
    defaults to 1, beta to 0. `eps` in f32. Heads [B, H, T, Dh] may have a gamma
    and beta each: [H, Dh].

    Verifier rules (tests: `invalid-norm.mlir`, one case per label):
    - N1: gamma and beta have the input's last dimension, or heads and last.
    - N2: eps >= 0.

    ```mlir
    %y = attune.layer_norm %x gamma %g : tensor<768xf32>
       beta %b : tensor<768xf32> eps 1.000000e-05 : tensor<?x?x768xf32>
    ```
  }];
  let arguments = (ins Attune_Activations:$input,
                       Optional<Attune_HeadChannel>:$gamma,
                       Optional<Attune_HeadChannel>:$beta, F32Attr:$eps);
  let results = (outs Attune_Activations:$result);
  let assemblyFormat = [{
    $input (`gamma` $gamma^ `:` type($gamma))? (`beta` $beta^ `:` type($beta))?
    `eps` $eps attr-dict `:` type($input)
  }];
  let hasVerifier = 1;
}

def Attune_RMSNormOp : Attune_Op<"rms_norm",
    [Pure, Attune_Reify, AllTypesMatch<["input", "result"]>]> {
  let summary = "Root-mean-square normalisation over the last dimension";
  let description = [{
    Zhang and Sennrich (2019). `y = x / sqrt(mean x^2 + eps) * (offset + gamma)`
    with statistics in f32; `offset` is 0, or 1 for the Gemma form. Without
    gamma the factor is 1. Heads [B, H, T, Dh] may have a gamma each: [H, Dh].

    Verifier rules (tests: `invalid-norm.mlir`, one case per label):
    - N1: gamma has the input's last dimension, or heads and last.
    - N2: eps >= 0.

    ```mlir
    %y = attune.rms_norm %x gamma %g : tensor<768xf32> eps 1.000000e-05
       : tensor<?x?x768xf32>
    ```
  }];
  let arguments = (ins Attune_Activations:$input,
                       Optional<Attune_HeadChannel>:$gamma, F32Attr:$eps,
                       DefaultValuedAttr<F32Attr, "0.0f">:$offset);
  let results = (outs Attune_Activations:$result);
  let assemblyFormat = [{
    $input (`gamma` $gamma^ `:` type($gamma))? `eps` $eps (`offset` $offset^)?
    attr-dict `:` type($input)
  }];
  let hasVerifier = 1;
}

#endif // ATTUNE_NORM_OPS_TD

//===- AttuneFFNOps.td - Linear and feed-forward layers ------*- tablegen -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_FFN_OPS_TD
#define ATTUNE_FFN_OPS_TD

include "AttuneTypes.td"

def Attune_LinearOp : Attune_Op<"linear",
    [Pure, Attune_Reify, AttrSizedOperandSegments]> {
  let summary = "y = act(x W^T + b), gated or added to a residual if asked";
  let description = [{
    `Z[..., n] = sum_k X[..., k] W[n, k] + bias[n]`, summed in f32.
    Without `gated`: `Y = act(Z)`. With `gated` W has 2N rows and
    `Y[..., n] = act(Z[..., n]) * Z[..., N + n]`. Then `Y *= scale` if given and
    `Y += residual` if given. Rounds once, at the end.

    With `rms_eps` rows are divided by their root mean square first, which their
    sums are just as well: `Z = r * sum_k X[..., k] W[n, k] + bias[n]` with
    `r = 1 / sqrt(mean_k X[..., k]^2 + rms_eps)`.

    W may be in packed panels (see `attune.weight`): rank 3 with `panels`. For a
    bf16 W they may hold pairs (VNNI-2), [panels, K/2, 2R]; X is bf16 then, too.

    Source: Vaswani et al. (2017), section 3.3; gated: Dauphin et al. (2017);
    rms_eps: Zhang and Sennrich (2019).

    Verifier rules (tests: `invalid-ffn.mlir`, one case per label):
    - L1: input width is W's K.
    - L2: result width is W's N (half of it if gated).
    - L3: bias has W's N entries.
    - L4: residual has the result's type.
    - L5: leading dimensions of input and result agree.
    - L6: a weight in pairs multiplies an input of bf16 or f32.
    - L7: rms_eps >= 0.

    ```mlir
    %y = attune.linear %x, %w bias %b : tensor<2304xf32>
       : tensor<?x?x768xf32>, tensor<2304x768xf32> -> tensor<?x?x2304xf32>
    ```
  }];
  let arguments = (ins Attune_Activations:$input, Attune_Matrix:$weight,
                       Optional<Attune_Channel>:$bias,
                       Optional<Attune_Activations>:$residual,
                       DefaultValuedAttr<Attune_ActivationAttr,
                                         "Activation::Identity">:$activation,
                       UnitAttr:$gated, OptionalAttr<F32Attr>:$scale,
                       OptionalAttr<F32Attr>:$rms_eps);
  let results = (outs Attune_Activations:$result);
  let assemblyFormat = [{
    $input `,` $weight (`bias` $bias^ `:` type($bias))?
    (`residual` $residual^ `:` type($residual))? (`activation` $activation^)?
    (`gated` $gated^)? (`scale` $scale^)? (`rms_eps` $rms_eps^)? attr-dict
    `:` type($input) `,` type($weight) `->` type($result)
  }];
  // Builders without a folded RMS norm.
  let builders = [
    OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$input,
                   "::mlir::Value":$weight, "::mlir::Value":$bias,
                   "::mlir::Value":$residual, "ActivationAttr":$activation,
                   "::mlir::UnitAttr":$gated, "::mlir::FloatAttr":$scale), [{
      build($_builder, $_state, result, input, weight, bias, residual,
            activation, gated, scale, /*rms_eps=*/::mlir::FloatAttr());
    }]>,
    OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$input,
                   "::mlir::Value":$weight, "::mlir::Value":$bias,
                   "::mlir::Value":$residual, "Activation":$activation,
                   "bool":$gated, "::mlir::FloatAttr":$scale), [{
      build($_builder, $_state, result, input, weight, bias, residual,
            activation, gated, scale, /*rms_eps=*/::mlir::FloatAttr());
    }]>];
  let hasVerifier = 1;
  let hasCanonicalizeMethod = 1;
  let useCustomPropertiesEncoding = 1; // to read older modules
}

def Attune_FFNOp : Attune_Op<"ffn",
    [Pure, Attune_Reify, AttrSizedOperandSegments]> {
  let summary = "Feed-forward layer: act(x W1^T + b1) W2^T + b2";
  let description = [{
    Vaswani et al. (2017). The hidden layer stays in f32. `Y += residual` if
    given.

    Rounds once, at the end.
    Source: Vaswani et al. (2017), section 3.3.

    Verifier rules (tests: `invalid-ffn.mlir`, one case per label):
    - F1: W1 is [H, D], W2 is [Dout, H], or panels of these.
    - F2: biases fit.
    - F3: residual has the result's type.

    ```mlir
    %y = attune.ffn %x, %w1, %w2 activation <gelu>
       : tensor<?x?x768xf32>, tensor<3072x768xf32>, tensor<768x3072xf32>
       -> tensor<?x?x768xf32>
    ```
  }];
  let arguments = (ins Attune_Activations:$input, Attune_Matrix:$up,
                       Attune_Matrix:$down,
                       Optional<Attune_Channel>:$up_bias,
                       Optional<Attune_Channel>:$down_bias,
                       Optional<Attune_Activations>:$residual,
                       Attune_ActivationAttr:$activation);
  let results = (outs Attune_Activations:$result);
  let assemblyFormat = [{
    $input `,` $up `,` $down (`up_bias` $up_bias^ `:` type($up_bias))?
    (`down_bias` $down_bias^ `:` type($down_bias))?
    (`residual` $residual^ `:` type($residual))? `activation` $activation
    attr-dict `:` type($input) `,` type($up) `,` type($down)
    `->` type($result)
  }];
  let hasVerifier = 1;
}

def Attune_GatedFFNOp : Attune_Op<"gated_ffn",
    [Pure, Attune_Reify, AttrSizedOperandSegments]> {
  let summary = "Gated feed-forward layer: (act(x Wg^T) * x Wu^T) Wd^T";
  let description = [{
    Shazeer (2020): SwiGLU, GEGLU, ReGLU by activation. `gate_up` holds the H
    rows of the gate, then the H rows of the up projection: one matmul.

    The hidden layer stays in f32. Rounds once, at the end.
    Source: Shazeer (2020).

    Verifier rules (tests: `invalid-ffn.mlir`, one case per label):
    - F1: gate_up is [2H, D], down is [Dout, H], or panels of these.
    - F2: biases fit.
    - F3: residual has the result's type.

    ```mlir
    %y = attune.gated_ffn %x, %wgu, %wd activation <silu>
       : tensor<?x?x128xf32>, tensor<576x128xf32>, tensor<128x288xf32>
       -> tensor<?x?x128xf32>
    ```
  }];
  let arguments = (ins Attune_Activations:$input, Attune_Matrix:$gate_up,
                       Attune_Matrix:$down,
                       Optional<Attune_Channel>:$gate_up_bias,
                       Optional<Attune_Channel>:$down_bias,
                       Optional<Attune_Activations>:$residual,
                       Attune_ActivationAttr:$activation);
  let results = (outs Attune_Activations:$result);
  let assemblyFormat = [{
    $input `,` $gate_up `,` $down
    (`gate_up_bias` $gate_up_bias^ `:` type($gate_up_bias))?
    (`down_bias` $down_bias^ `:` type($down_bias))?
    (`residual` $residual^ `:` type($residual))? `activation` $activation
    attr-dict `:` type($input) `,` type($gate_up) `,` type($down)
    `->` type($result)
  }];
  let hasVerifier = 1;
}

def Attune_ActivationOp : Attune_Op<"activation",
    [Pure, Attune_Reify, AllTypesMatch<["input", "result"]>]> {
  let summary = "An activation function of every element";
  let description = [{
    `Y = act(X)`, in f32 and rounded once. Between matmuls the function belongs
    to the linear op before it; this one stands where there is none.

    Source: Hendrycks and Gimpel (2016) for gelu, Ramachandran et al. (2017)
    for silu, So et al. (2021) for squared relu; the rest as in torch.nn.

    ```mlir
    %y = attune.activation %x function <gelu> : tensor<?x?x64xf32>
    ```
  }];
  let arguments = (ins Attune_Activations:$input, Attune_ActivationAttr:$function);
  let results = (outs Attune_Activations:$result);
  let assemblyFormat = [{
    $input `function` $function attr-dict `:` type($input)
  }];
  let hasFolder = 1;
}

#endif // ATTUNE_FFN_OPS_TD

//===- AttuneTokenOps.td - Making and picking tokens ---------*- tablegen -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_TOKEN_OPS_TD
#define ATTUNE_TOKEN_OPS_TD

include "AttuneTypes.td"

// [batch, width]
def Attune_Vectors : RankedTensorOf<[F32, F16, BF16], [HasAnyRankOfPred<[2]>],
                                    "[batch, width] tensor">;

def Attune_PatchesOp : Attune_Op<"patches", [Pure, Attune_Reify]> {
  let summary = "What a convolution's kernel sees at each of its places";
  let description = [{
    For an input [B, C, L...] of one or two spatial dimensions, or with
    `channels_last` [B, L..., C]: the result's row p is the place that is p-th
    in row-major order of `(L + 2 padding - kernel) / stride + 1` places per
    dimension, its columns are `C x kernel...`, the order of PyTorch's
    convolution weights. Elements outside of the input are zero. With
    `attune.linear` after it this is a convolution whose places are tokens.

    Nothing is computed, so nothing rounds.
    Source: Dosovitskiy et al. (2021); the columns of torch.nn.Unfold.

    Verifier rules (tests: `invalid-token.mlir`, one case per label):
    - P1: kernel, stride and padding have one number per spatial dimension;
      kernels and strides are 1 or more, paddings 0 or more and less than the
      kernel.
    - P2: the result is [B, places, C * kernel], where these are known.
    - P3: the input is no smaller than the kernel.

    ```mlir
    %p = attune.patches %image kernel [16, 16] stride [16, 16] padding [0, 0]
       : tensor<?x3x?x?xf32> -> tensor<?x?x768xf32>
    ```
  }];
  let arguments = (ins RankedTensorOf<[F32], [HasAnyRankOfPred<[3, 4]>],
                         "[batch, channels, ...] tensor">:$input,
                       DenseI64ArrayAttr:$kernel, DenseI64ArrayAttr:$stride,
                       DenseI64ArrayAttr:$padding, UnitAttr:$channels_last);
  let results = (outs RankedTensorOf<[F32], [HasAnyRankOfPred<[3]>],
                        "[batch, tokens, width] tensor">:$result);
  let assemblyFormat = [{
    $input `kernel` $kernel `stride` $stride `padding` $padding
    (`channels_last` $channels_last^)? attr-dict
    `:` type($input) `->` type($result)
  }];
  let extraClassDeclaration = [{
    /// The input's dimension of channels, and its first spatial one.
    int64_t getChannelDim() {
      return getChannelsLast() ? int64_t(getKernel().size()) + 1 : 1;
    }
    int64_t getFirstPlaceDim() { return getChannelsLast() ? 1 : 2; }
  }];
  let hasVerifier = 1;
}

def Attune_PrependTokensOp : Attune_Op<"prepend_tokens",
    [Pure, Attune_Reify]> {
  let summary = "The same tokens before those of each sequence";
  let description = [{
    `Y[b,t,:] = tokens[t,:]` for t < n, `Y[b,n+t,:] = X[b,t,:]`: class tokens.

    Nothing is computed; rounds where the result's type is
    narrower.
    Source: Devlin et al. (2019); Dosovitskiy et al. (2021).

    Verifier rules (tests: `invalid-token.mlir`, one case per label):
    - T1: tokens are [n, D] and the input [B, T, D].
    - T2: the result is [B, n + T, D].

    ```mlir
    %y = attune.prepend_tokens %cls, %x
       : tensor<1x768xf32>, tensor<?x?x768xf32> -> tensor<?x?x768xf32>
    ```
  }];
  let arguments = (ins RankedTensorOf<[F32, F16, BF16],
                         [HasAnyRankOfPred<[2]>], "[n, width] tensor">:$tokens,
                       Attune_Tokens:$input);
  let results = (outs Attune_Tokens:$result);
  let assemblyFormat = [{
    $tokens `,` $input attr-dict
    `:` type($tokens) `,` type($input) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Attune_TokenPositionsOp : Attune_Op<"token_positions",
    [Pure, Attune_Reify]> {
  let summary = "The numbers of tokens";
  let description = [{
    `p[b,t] = t` for the tokens of the operand, [B, T] ids or [B, T, D]
    activations. With `pad`: `p[b,t] = 0` where `ids[b,t] = pad`, else the
    number of ids up to t that are not `pad` (RoBERTa).

    Whole numbers: nothing rounds.
    Source: Liu et al. (2019), as Hugging Face numbers their tokens.

    Verifier rules (tests: `invalid-token.mlir`, one case per label):
    - T1: the result is [B, T].
    - T2: pad needs ids.

    ```mlir
    %p = attune.token_positions %ids pad 1 : tensor<?x?xi64> -> tensor<?x?xi64>
    ```
  }];
  let arguments = (ins RankedTensorOf<[F32, F16, BF16, I64],
                         [HasAnyRankOfPred<[2, 3]>],
                         "[batch, tokens, ...] tensor">:$input,
                       OptionalAttr<I64Attr>:$pad);
  let results = (outs Attune_Ids:$result);
  let assemblyFormat = [{
    $input (`pad` $pad^)? attr-dict `:` type($input) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Attune_FindTokenOp : Attune_Op<"find_token", [Pure, Attune_Reify]> {
  let summary = "Where an id stands in each sequence";
  let description = [{
    `i[b]` is the smallest t with `ids[b,t] = id`, with `last` the largest, 0 if
    there is none. Without
    `id`: the smallest t where `ids[b,t]` is largest (CLIP's older checkpoints,
    whose end token has the largest id).

    Whole numbers: nothing rounds.
    Source: Radford et al. (2021).

    Verifier rules (tests: `invalid-token.mlir`, one case per label):
    - T1: the result is [B].
    - T2: only an id has a last place.

    ```mlir
    %i = attune.find_token %ids id 49407 : tensor<?x?xi64> -> tensor<?xi64>
    ```
  }];
  let arguments = (ins Attune_Ids:$ids, OptionalAttr<I64Attr>:$id,
                       UnitAttr:$last);
  let results = (outs RankedTensorOf<[I64], [HasAnyRankOfPred<[1]>],
                                     "[batch] i64 tensor">:$result);
  let assemblyFormat = [{
    $ids (`id` $id^)? (`last` $last^)? attr-dict `:` type($ids) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Attune_PoolOp : Attune_Op<"pool",
    [Pure, Attune_Reify, AttrSizedOperandSegments]> {
  let summary = "One vector for each sequence";
  let description = [{
    Over the tokens that `mask` [B, 1, 1, T] shows, or all without one:
    `<mean>`, summed in f32 and divided by their number; `<max>`; `<last>`.
    `<token>` is token number `index`, or that of `at[b]`. A sequence that shows
    no token gives zeros.

    Rounds once, at the end.
    Source: Devlin et al. (2019) for the first token, Reimers and Gurevych
    (2019) for mean and maximum.

    Verifier rules (tests: `invalid-token.mlir`, one case per label):
    - T1: the result is [B, D].
    - T2: mask is [B, 1, 1, T] and not for `<token>`.
    - T3: at is [B]; it and index are for `<token>` only, and not both.
    - T4: index is from 0 to T - 1, where that is known.

    ```mlir
    %y = attune.pool <mean> %x mask %m : tensor<?x1x1x?xi1>
       : tensor<?x?x768xf32> -> tensor<?x768xf32>
    ```
  }];
  let arguments = (ins Attune_PoolKindAttr:$kind, Attune_Tokens:$input,
                       Optional<Attune_ScoreMask>:$mask,
                       Optional<RankedTensorOf<[I64], [HasAnyRankOfPred<[1]>],
                                               "[batch] i64 tensor">>:$at,
                       DefaultValuedAttr<I64Attr, "0">:$index);
  let results = (outs Attune_Vectors:$result);
  let assemblyFormat = [{
    $kind $input (`mask` $mask^ `:` type($mask))? (`at` $at^ `:` type($at))?
    (`index` $index^)? attr-dict `:` type($input) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Attune_BatchNormOp : Attune_Op<"batch_norm",
    [Pure, Attune_Reify, AllTypesMatch<["input", "result"]>,
     AllTypesMatch<["gamma", "beta", "mean", "variance"]>]> {
  let summary = "Normalisation by the statistics of training";
  let description = [{
    Ioffe and Szegedy (2015), at inference: with the scale
    `s[c] = gamma[c] / sqrt(variance[c] + eps)`,
    `Y[...,c] = (X[...,c] - mean[c]) * s[c] + beta[c]`.

    In f32, the scale too. Rounds once, at the end.
    Source: Ioffe and Szegedy (2015).

    Verifier rules (tests: `invalid-token.mlir`, one case per label):
    - N1: gamma, beta, mean and variance have one number per channel.
    - N2: eps is not negative.

    ```mlir
    %y = attune.batch_norm %x, %g, %b, %m, %v eps 1.000000e-05
       : tensor<?x?x64xf32>, tensor<64xf32>
    ```
  }];
  let arguments = (ins Attune_Activations:$input, Attune_Channel:$gamma,
                       Attune_Channel:$beta, Attune_Channel:$mean,
                       Attune_Channel:$variance, F32Attr:$eps);
  let results = (outs Attune_Activations:$result);
  let assemblyFormat = [{
    $input `,` $gamma `,` $beta `,` $mean `,` $variance `eps` $eps attr-dict
    `:` type($input) `,` type($gamma)
  }];
  let hasVerifier = 1;
}

#endif // ATTUNE_TOKEN_OPS_TD

//===- AttuneAttrs.td - Enumerations and attributes ----------*- tablegen -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_ATTRS_TD
#define ATTUNE_ATTRS_TD

include "AttuneDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

class Attune_Enum<string name, string summary, list<I32EnumCase> cases>
    : I32Enum<name, summary, cases> {
  let cppNamespace = "::attune";
}

def Attune_Activation : Attune_Enum<"Activation",
    "pointwise function of a feed-forward layer", [
      I32EnumCase<"Identity", 0, "identity">,
      I32EnumCase<"Relu", 1, "relu">,
      I32EnumCase<"GeluErf", 2, "gelu">,            // x/2 (1 + erf(x/sqrt 2))
      I32EnumCase<"GeluTanh", 3, "gelu_tanh">,      // tanh approximation
      I32EnumCase<"QuickGelu", 4, "quick_gelu">,    // x sigmoid(1.702 x)
      I32EnumCase<"Silu", 5, "silu">,               // x sigmoid(x)
      I32EnumCase<"ReluSquared", 6, "relu_squared">,
      I32EnumCase<"Sigmoid", 7, "sigmoid">,
      I32EnumCase<"Tanh", 8, "tanh">,
      I32EnumCase<"Softplus", 9, "softplus">,       // log(1 + exp(x))
      I32EnumCase<"Mish", 10, "mish">,              // x tanh(softplus(x))
      I32EnumCase<"Elu", 11, "elu">,                // exp(x) - 1 below 0
      I32EnumCase<"LeakyRelu", 12, "leaky_relu">,   // 0.01 x below 0
      I32EnumCase<"HardSwish", 13, "hardswish">,    // x clamp(x + 3, 0, 6) / 6
    ]>;
def Attune_ActivationAttr : EnumAttr<Attune_Dialect, Attune_Activation,
                                     "activation"> {
  let assemblyFormat = "`<` $value `>`";
}

def Attune_Cell : Attune_Enum<"CellKind",
    "what a recurrent layer does with its gates at each step", [
      I32EnumCase<"Rnn", 0, "rnn">,          // tanh
      I32EnumCase<"RnnRelu", 1, "rnn_relu">,
      I32EnumCase<"Gru", 2, "gru">,          // gates r, z, n
      I32EnumCase<"Lstm", 3, "lstm">,        // gates i, f, g, o
    ]>;
def Attune_CellAttr : EnumAttr<Attune_Dialect, Attune_Cell, "cell"> {
  let assemblyFormat = "`<` $value `>`";
}

def Attune_CausalAlign : Attune_Enum<"CausalAlign",
    "which corner of the score matrix the causal diagonal touches", [
      I32EnumCase<"None", 0, "none">,
      I32EnumCase<"BottomRight", 1, "bottom_right">, // n <= m + N - M is seen
      I32EnumCase<"TopLeft", 2, "top_left">,         // n <= m is seen
      I32EnumCase<"Lengths", 3, "lengths">, // n <= m + lengths[b] - M is seen
      // No diagonal: n < m + N - M + window is seen, a window to both sides.
      I32EnumCase<"Symmetric", 4, "symmetric">,
    ]>;
def Attune_CausalAlignAttr : EnumAttr<Attune_Dialect, Attune_CausalAlign,
                                      "causal"> {
  let assemblyFormat = "`<` $value `>`";
}

def Attune_FeatureMap : Attune_Enum<"FeatureMap",
    "what linear attention does to queries and keys instead of a softmax", [
      I32EnumCase<"EluPlusOne", 0, "elu_plus_one">, // exp(x), x + 1 for x > 0
      I32EnumCase<"Relu", 1, "relu">,
      I32EnumCase<"Identity", 2, "identity">,
    ]>;
def Attune_FeatureMapAttr : EnumAttr<Attune_Dialect, Attune_FeatureMap,
                                     "feature_map"> {
  let assemblyFormat = "`<` $value `>`";
}

def Attune_Pairing : Attune_Enum<"RotaryPairing",
    "which two channels a rotary embedding turns together", [
      I32EnumCase<"Half", 0, "half">,               // (i, i + R/2)
      I32EnumCase<"Interleaved", 1, "interleaved">, // (2i, 2i + 1)
    ]>;
def Attune_PairingAttr : EnumAttr<Attune_Dialect, Attune_Pairing, "pairing"> {
  let assemblyFormat = "`<` $value `>`";
}

def Attune_Sinusoid : Attune_Enum<"Sinusoid",
    "layout of the sines and cosines of a sinusoidal position table", [
      // w_k = 10000^(-2k/D); channel 2k is sin(w_k t), 2k+1 is cos(w_k t).
      I32EnumCase<"Interleaved", 0, "interleaved">,
      // sin block, then cos block, same w_k (Marian).
      I32EnumCase<"Blocks", 1, "blocks">,
      // sin block, then cos block, w_k = 10000^(-k/(D/2 - 1)) (tensor2tensor).
      I32EnumCase<"Tensor2Tensor", 2, "tensor2tensor">,
    ]>;
def Attune_SinusoidAttr : EnumAttr<Attune_Dialect, Attune_Sinusoid,
                                   "sinusoid"> {
  let assemblyFormat = "`<` $value `>`";
}

def Attune_RouterScoring : Attune_Enum<"RouterScoring",
    "how a router's logits become the weights of experts", [
      I32EnumCase<"Softmax", 0, "softmax">,         // over all experts
      I32EnumCase<"TopSoftmax", 1, "top_softmax">,  // over the chosen ones
      I32EnumCase<"Sigmoid", 2, "sigmoid">,         // each expert on its own
      // each chosen one over those near it that were not chosen before
      I32EnumCase<"SparseMixer", 3, "sparse_mixer">,
    ]>;
def Attune_RouterScoringAttr : EnumAttr<Attune_Dialect, Attune_RouterScoring,
                                        "scoring"> {
  let assemblyFormat = "`<` $value `>`";
}

def Attune_GroupScore : Attune_Enum<"GroupScore",
    "what a group of experts is judged by", [
      I32EnumCase<"Max", 0, "max">,         // its best expert
      I32EnumCase<"TopTwo", 1, "top_two">,  // the sum of its best two
    ]>;
def Attune_GroupScoreAttr : EnumAttr<Attune_Dialect, Attune_GroupScore,
                                     "group_score"> {
  let assemblyFormat = "`<` $value `>`";
}

def Attune_PoolKind : Attune_Enum<"PoolKind",
    "how one vector is made of the tokens of a sequence", [
      I32EnumCase<"Token", 0, "token">, // the one with a given number
      I32EnumCase<"Last", 1, "last">,   // the last that is visible
      I32EnumCase<"Mean", 2, "mean">,   // of the visible ones
      I32EnumCase<"Max", 3, "max">,
    ]>;
def Attune_PoolKindAttr : EnumAttr<Attune_Dialect, Attune_PoolKind, "pool"> {
  let assemblyFormat = "`<` $value `>`";
}

def Attune_WeightSourceAttr : AttrDef<Attune_Dialect, "WeightSource"> {
  let mnemonic = "source";
  let summary = "a piece of a weight: rows of one checkpoint tensor";
  let description = [{
    Names a tensor of the checkpoint. `{i}` in the name stands for the layer
    number of a stacked weight. `transposed` says that the file holds
    [in, out] (GPT-2's Conv1D) where the op wants [out, in]; it applies before
    rows are cut. Rows `begin` to `end` (of the tensor as the op wants it) are
    taken; `end = -1` means all. With `count` that many ranges are taken, each
    `stride` rows after the last: heads of one kind out of a tensor that holds
    several kinds side by side.

    In a weight with parts, `{e}` in the name stands for the number of the part:
    each has a tensor of its own. Or all share one tensor, and part `p` begins
    `p * step` further along the first dimension that the file has (rows, or the
    columns of a transposed one).

    ```mlir
    #attune.source<"h.{i}.attn.c_attn.weight", transposed, rows = 0 to 768>
    ```
    ```mlir
    #attune.source<"kv_b", rows = 12 to 28, step = 28>
    ```
  }];
  let parameters = (ins StringRefParameter<>:$tensor,
                        DefaultValuedParameter<"bool", "false">:$transposed,
                        DefaultValuedParameter<"int64_t", "0">:$begin,
                        DefaultValuedParameter<"int64_t", "-1">:$end,
                        DefaultValuedParameter<"int64_t", "0">:$stride,
                        DefaultValuedParameter<"int64_t", "1">:$count,
                        DefaultValuedParameter<"int64_t", "0">:$step);
  let hasCustomAssemblyFormat = 1;
}
def Attune_WeightSourceArrayAttr
    : TypedArrayAttrBase<Attune_WeightSourceAttr, "pieces of a weight">;

#endif // ATTUNE_ATTRS_TD

//===- AttuneRecurrentOps.td - Recurrent layers --------------*- tablegen -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_RECURRENT_OPS_TD
#define ATTUNE_RECURRENT_OPS_TD

include "AttuneTypes.td"

// [batch, width]: what a recurrence carries from step to step.
def Attune_State : RankedTensorOf<[F32], [HasAnyRankOfPred<[2]>],
                                  "[batch, width] f32 tensor">;
// True where a token counts.
def Attune_Keep : RankedTensorOf<[I1], [HasAnyRankOfPred<[1]>],
                                 "[batch] i1 tensor">;

def Attune_RecurrentCellOp : Attune_Op<"recurrent_cell",
    [Pure, Attune_Reify, AttrSizedOperandSegments]> {
  let summary = "One step of a recurrence, after its matrix products";
  let description = [{
    With X the gates made of the step's input and U those made of the state H
    (each a matrix product plus bias, `[batch, G*W]`, gate after gate):

    | cell | G | new state |
    |---|---|---|
    | `rnn` | 1 | `H' = tanh(X + U)` |
    | `rnn_relu` | 1 | `H' = max(X + U, 0)` |
    | `gru` | 3 | `r, z = sigmoid(X + U)`, `n = tanh(X + r U)`, `H' = (1 - z) n + z H` |
    | `lstm` | 4 | `i, f, o = sigmoid(X + U)`, `g = tanh(X + U)`, `C' = f C + i g`, `H' = o tanh(C')` |

    The gates stand in the order r, z, n and i, f, g, o (PyTorch's). The two
    biases of a gru are not one: r multiplies the bias in U. Where `keep` is
    false the row keeps its state. Arithmetic and states are f32.

    Every operation rounds to f32.
    Source: Elman (1990), Hochreiter and Schmidhuber (1997), Cho et al. (2014),
    in the form of torch.nn's cells.

    Verifier rules (tests: `invalid-recurrent.mlir`, one case per label):
    - R1: both kinds of gates are G times as wide as the state.
    - R2: an lstm, and nothing else, has a cell state; it is as wide as H.
    - R3: batch sizes agree.
    - R4: the results have the types of the states.

    ```mlir
    %g = attune.recurrent_cell <gru> %x, %u state %h : tensor<?x8xf32>
       : tensor<?x24xf32>, tensor<?x24xf32> -> tensor<?x8xf32>
    ```
  }];
  let arguments = (ins Attune_CellAttr:$kind, Attune_State:$input_gates,
                       Attune_State:$hidden_gates, Attune_State:$hidden,
                       Optional<Attune_State>:$cell,
                       Optional<Attune_Keep>:$keep);
  let results = (outs Variadic<Attune_State>:$next);
  let assemblyFormat = [{
    $kind $input_gates `,` $hidden_gates `state` $hidden `:` type($hidden)
    (`cell` $cell^ `:` type($cell))? (`keep` $keep^ `:` type($keep))? attr-dict
    `:` type($input_gates) `,` type($hidden_gates) `->` type($next)
  }];
  let hasVerifier = 1;
}

def Attune_RecurrentOp : Attune_Op<"recurrent",
    [Pure, Attune_Reify, AttrSizedOperandSegments]> {
  let summary = "A recurrence over the tokens of each sequence";
  let description = [{
    `H(t) = cell(X(t), H(t-1) W^T + bias, H(t-1))` with the cell of
    `attune.recurrent_cell`; X, `[batch, tokens, G*W]`, are the gates made of
    the inputs of all tokens at once. H(-1) is `state`, or zeros; so for the
    cell state of an lstm. With `reverse` the last token comes first.

    Where `keep` is false the state passes by and the sequence is zero: tokens
    after the end of a row do not count, and a reverse recurrence starts at
    each row's own last token (PyTorch's packed sequences).

    Gives H of every token, then the last H and, of an lstm, the last C.

    Products are summed in f32; every operation rounds to f32.
    Source: torch.nn.RNN, GRU and LSTM.

    Verifier rules (tests: `invalid-recurrent.mlir`, one case per label):
    - R5: W is [G*W, W] or panels of it, and the gates are as wide as W is high.
    - R6: the bias has W's rows.
    - R7: an lstm, and nothing else, has a cell state; states are as wide as W.
    - R8: batch sizes and numbers of tokens agree.

    ```mlir
    %seq, %last = attune.recurrent <gru> %gates, %w bias %b : tensor<24xf32> reverse
       : tensor<?x?x24xf32>, tensor<24x8xf32> -> tensor<?x?x8xf32>, tensor<?x8xf32>
    ```
  }];
  let arguments = (ins Attune_CellAttr:$kind, Attune_Steps:$gates,
                       Attune_Matrix:$weight, Optional<Attune_Channel>:$bias,
                       Optional<Attune_State>:$state,
                       Optional<Attune_State>:$cell,
                       Optional<Attune_KeepSteps>:$keep, UnitAttr:$reverse);
  let results = (outs Attune_Steps:$sequence, Variadic<Attune_State>:$last);
  let assemblyFormat = [{
    $kind $gates `,` $weight (`bias` $bias^ `:` type($bias))?
    (`state` $state^ `:` type($state))? (`cell` $cell^ `:` type($cell))?
    (`keep` $keep^ `:` type($keep))? (`reverse` $reverse^)? attr-dict
    `:` type($gates) `,` type($weight) `->` type($sequence) `,` type($last)
  }];
  let hasVerifier = 1;
}

def Attune_AdditiveSimilarityOp : Attune_Op<"additive_similarity",
    [Pure, Attune_Reify]> {
  let summary = "Scores of additive attention";
  let description = [{
    `E[b,h,m,n] = sum_a v[0,a] act(Q[b,h,m,a] + K[b,h,n,a])`, summed in f32
    (Bahdanau et al. 2015, with tanh). Queries and keys are projected before. A
    constant added to all scores would change no weight, so there is no bias.

    It stands where `attune.similarity` does and the rest of the ladder is the
    same, but no fused op folds it in: it costs A activations per score where
    dot products cost A multiply-adds, so memory traffic is not what counts.

    Rounds once, at the end.
    Source: Bahdanau et al. (2015), appendix A.1.2.

    Verifier rules (tests: `invalid-recurrent.mlir`, one case per label):
    - D1: batch sizes and heads agree.
    - D2: queries, keys and v have equal width.
    - D3: the result is [B, H, M, N].

    ```mlir
    %e = attune.additive_similarity %q, %k, %v activation <tanh>
       : tensor<?x1x1x28xf32>, tensor<?x1x?x28xf32>, tensor<1x28xf32> -> tensor<?x1x1x?xf32>
    ```
  }];
  let arguments = (ins Attune_Heads:$query, Attune_Heads:$key,
                       Attune_Matrix:$vector,
                       DefaultValuedAttr<Attune_ActivationAttr,
                                         "Activation::Tanh">:$activation);
  let results = (outs Attune_Scores:$result);
  let assemblyFormat = [{
    $query `,` $key `,` $vector `activation` $activation attr-dict
    `:` type($query) `,` type($key) `,` type($vector) `->` type($result)
  }];
  let hasVerifier = 1;
}

#endif // ATTUNE_RECURRENT_OPS_TD

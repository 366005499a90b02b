//===- AttuneTypes.td - Tensors that the ops take ----------*- tablegen -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_TYPES_TD
#define ATTUNE_TYPES_TD

include "AttuneAttrs.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

// [batch, heads, tokens, width]
def Attune_Heads : RankedTensorOf<[F32, F16, BF16], [HasAnyRankOfPred<[4]>],
                                  "[batch, heads, tokens, width] tensor">;
// The same, or as a cache in bytes has them: i8 or f8E4M3FN, and behind the
// numbers of each row the four bytes of an f32 that they are multiplied by. See
// AttuneCachedRows.h.
def Attune_CachedHeads : RankedTensorOf<[F32, F16, BF16, I8, F8E4M3FN],
    [HasAnyRankOfPred<[4]>], "[batch, heads, tokens, width] tensor, or with "
    "width + 4 bytes">;
// [batch, heads, queries, keys]
def Attune_Scores : RankedTensorOf<[F32], [HasAnyRankOfPred<[4]>],
                                   "[batch, heads, queries, keys] f32 tensor">;
// Each of batch, heads and queries may be 1 and is then broadcast.
def Attune_ScoreMask : RankedTensorOf<[I1], [HasAnyRankOfPred<[4]>],
    "[batch|1, heads|1, queries|1, keys] i1 tensor">;
def Attune_ScoreBias : RankedTensorOf<[F32], [HasAnyRankOfPred<[4]>],
    "[batch|1, heads|1, queries|1, keys] f32 tensor">;
// Which blocks of scores are computed; batch and heads may be 1.
def Attune_BlockMask : RankedTensorOf<[I1], [HasAnyRankOfPred<[4]>],
    "[batch|1, heads|1, blocks of queries, blocks of keys] i1 tensor">;
// The number of keys of each sequence in the batch.
def Attune_Lengths : RankedTensorOf<[I64], [HasAnyRankOfPred<[1]>],
                                    "[batch] i64 tensor">;
// One number per query head and diagonal of the scores, from the first key of
// the last query to the last key of the first.
def Attune_Diagonals : RankedTensorOf<[F32], [HasAnyRankOfPred<[2]>],
                                      "[heads, queries + keys - 1] f32 tensor">;
// One number per query head.
def Attune_PerHead : RankedTensorOf<[F32], [HasAnyRankOfPred<[1]>],
                                    "[heads] f32 tensor">;
def Attune_RowState : RankedTensorOf<[F32], [HasAnyRankOfPred<[3]>],
                                     "[batch, heads, queries] f32 tensor">;

// Sums over keys: of products of a key's feature and a value's channel, and, in
// the last column, of the features alone.
def Attune_KeySums : RankedTensorOf<[F32], [HasAnyRankOfPred<[4]>],
    "[batch, kv heads, features, value width + 1] f32 tensor">;

// Anything with tokens in its last dimension.
def Attune_Activations : RankedTensorOf<[F32, F16, BF16],
    [HasRankGreaterOrEqualPred<1>], "[..., width] tensor">;
def Attune_Channel : RankedTensorOf<[F32, F16, BF16], [HasAnyRankOfPred<[1]>],
                                    "[width] tensor">;
// [width], or [heads, width]
def Attune_HeadChannel : RankedTensorOf<[F32, F16, BF16],
    [HasAnyRankOfPred<[1, 2]>], "[width] or [heads, width] tensor">;

// [N, K] rows are outputs (torch.nn.Linear), or packed panels [N/R, K, R].
def Attune_Matrix : RankedTensorOf<[F32, F16, BF16], [HasAnyRankOfPred<[2, 3]>],
                                   "[out, in] matrix or packed panels">;

// A stack of matrices (see the parts of attune.weight), plain or in panels.
def Attune_Matrices : RankedTensorOf<[F32, F16, BF16],
    [HasAnyRankOfPred<[3, 4]>], "stack of [out, in] matrices or packed panels">;

// Scales of numbers of few bits, and zero points, for each group of a row.
def Attune_ScaleMatrix : RankedTensorOf<[F32, F16, F8E8M0FNU, I8],
    [HasAnyRankOfPred<[2, 3]>], "[out, groups] scales or packed panels">;
def Attune_ScaleMatrices : RankedTensorOf<[F32, F16, F8E8M0FNU, I8],
    [HasAnyRankOfPred<[3, 4]>], "stack of [out, groups] scales or packed panels">;

// Rows as `attune.quantize_rows` gives them.
def Attune_ByteRows : RankedTensorOf<[I8], [HasRankGreaterOrEqualPred<1>],
                                     "[..., width] tensor of bytes">;
def Attune_BytesOrNumbers : RankedTensorOf<[I8, F32, F16, BF16],
    [HasRankGreaterOrEqualPred<1>], "[..., width] tensor of bytes or numbers">;
def Attune_GroupScales : RankedTensorOf<[F32], [HasRankGreaterOrEqualPred<1>],
                                        "[..., groups] tensor">;
def Attune_GroupSums : RankedTensorOf<[I32], [HasRankGreaterOrEqualPred<1>],
                                      "[..., groups] i32 tensor">;

// [batch, tokens]
def Attune_Ids : RankedTensorOf<[I64], [HasAnyRankOfPred<[2]>],
                                "[batch, tokens] i64 tensor">;
def Attune_Tokens : RankedTensorOf<[F32, F16, BF16], [HasAnyRankOfPred<[3]>],
                                   "[batch, tokens, width] tensor">;
// Operands and results of a recurrence over tokens.
def Attune_Steps : RankedTensorOf<[F32], [HasAnyRankOfPred<[3]>],
                                  "[batch, tokens, width] f32 tensor">;
// True where a token counts.
def Attune_KeepSteps : RankedTensorOf<[I1], [HasAnyRankOfPred<[2]>],
                                      "[batch, tokens] i1 tensor">;

// [layers, batch, kv heads, capacity, width], of rows as Attune_CachedHeads
// says.
def Attune_Cache : RankedTensorOf<[F32, F16, BF16, I8, F8E4M3FN],
    [HasAnyRankOfPred<[5]>],
    "[layers, batch, heads, capacity, width] tensor, or with width + 4 bytes">;

// Ops whose result sizes follow from operands, so tensor.dim resolves.
def Attune_Reify : DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface,
                                             ["reifyResultShapes"]>;

// Operands that change scores, on every op that makes them: see AttuneScores.h,
// which has the formulas, and `mask_scores`.
class Attune_ScoreOperands<Type mask, Type bias, Type diagonals, Type perHead> {
  dag operands = (ins Optional<mask>:$mask, Optional<bias>:$bias,
                      Optional<diagonals>:$diagonals,
                      Optional<perHead>:$slopes);
}
defvar Attune_ScoreTensors =
    Attune_ScoreOperands<Attune_ScoreMask, Attune_ScoreBias, Attune_Diagonals,
                         Attune_PerHead>.operands;
defvar Attune_ScoreAttributes = (ins
    DefaultValuedAttr<Attune_CausalAlignAttr, "CausalAlign::None">:$causal,
    OptionalAttr<I64Attr>:$window, OptionalAttr<F32Attr>:$softcap);

// The same in the text of an op.
defvar Attune_MaskSyntax = "(`mask` $mask^ `:` type($mask))?";
defvar Attune_BlocksSyntax = [{
  (`lengths` $lengths^ `:` type($lengths))?
  (`blocks` $blocks^ `of` $block_sizes `:` type($blocks))?
}];
defvar Attune_BiasSyntax = [{
  (`bias` $bias^ `:` type($bias))?
  (`diagonals` $diagonals^ `:` type($diagonals))?
  (`slopes` $slopes^ `:` type($slopes))?
}];
defvar Attune_ScoreAttributesSyntax =
    "(`causal` $causal^)? (`window` $window^)? (`softcap` $softcap^)?";

#endif // ATTUNE_TYPES_TD

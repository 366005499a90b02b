//===- AttuneTileOps.td - Arithmetic of one tile -------------*- tablegen -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_TILE_OPS_TD
#define ATTUNE_TILE_OPS_TD

include "AttuneTypes.td"
include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

// The work of one tile. Loops of upstream dialects visit the tiles; operands
// say what is fetched meanwhile. The ops take tensors, and give one for each
// destination, or buffers, and give none: they stay whole when tensors become
// memory, so that the loops around them can be read, and turn into vector code
// after that.
class Attune_TileOp<string mnemonic, list<Trait> traits = []>
    : Attune_Op<mnemonic, !listconcat(
    [DestinationStyleOpInterface,
     Attune_Reify,
     DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
     DeclareOpInterfaceMethods<BufferizableOpInterface,
       ["bufferizesToMemoryRead", "bufferizesToMemoryWrite",
        "getAliasingValues", "bufferize"]>], traits)> {
  let hasVerifier = 1;
  // Each says by readsDest whether it goes on from what its destinations have.
  let extraClassDefinition = [{
    ::mlir::MutableOperandRange $cppClass::getDpsInitsMutable() {
      return destsOf(*this);
    }
    ::llvm::LogicalResult $cppClass::reifyResultShapes(
        ::mlir::OpBuilder &builder,
        ::mlir::ReifiedRankedShapedTypeDims &shapes) {
      return reifyDests(*this, builder, shapes);
    }
    void $cppClass::getEffects(
        ::llvm::SmallVectorImpl<::mlir::MemoryEffects::EffectInstance>
            &effects) {
      effectsOf(*this, readsDest(), effects);
    }
    bool $cppClass::bufferizesToMemoryRead(
        ::mlir::OpOperand &operand,
        const ::mlir::bufferization::AnalysisState &) {
      return readsDest() || !isDpsInit(&operand);
    }
    bool $cppClass::bufferizesToMemoryWrite(
        ::mlir::OpOperand &operand,
        const ::mlir::bufferization::AnalysisState &) {
      return isDpsInit(&operand);
    }
    ::mlir::bufferization::AliasingValueList $cppClass::getAliasingValues(
        ::mlir::OpOperand &operand,
        const ::mlir::bufferization::AnalysisState &) {
      return destinationOf(*this, operand);
    }
    ::llvm::LogicalResult $cppClass::bufferize(
        ::mlir::RewriterBase &rewriter,
        const ::mlir::bufferization::BufferizationOptions &options,
        ::mlir::bufferization::BufferizationState &state) {
      return bufferizeInto(*this, rewriter, options, state);
    }
  }];
}

// The tensors of AttuneTypes.td, or the buffers that they become.
class Attune_TilePlaces<list<Type> elements, list<int> ranks,
                        string description>
    : AnyTypeOf<[RankedTensorOf<elements, [HasAnyRankOfPred<ranks>]>,
                 MemRefRankOf<elements, ranks>],
                description # " tensor or buffer", "::mlir::ShapedType">;
class Attune_TilePlace<list<Type> elements, int rank, string description>
    : Attune_TilePlaces<elements, [rank], description>;
def Attune_TileHeads : Attune_TilePlace<[F32, F16, BF16], 4,
    "[batch, heads, tokens, width]">;
def Attune_TileCachedHeads : Attune_TilePlace<[F32, F16, BF16, I8, F8E4M3FN],
    4, "[batch, heads, tokens, width], or with width + 4 bytes">;
def Attune_TileRows : Attune_TilePlace<[F32], 3, "[batch, heads, queries] f32">;
def Attune_TileMask : Attune_TilePlace<[I1], 4,
    "[batch|1, heads|1, queries|1, keys] i1">;
def Attune_TileBias : Attune_TilePlace<[F32], 4,
    "[batch|1, heads|1, queries|1, keys] f32">;
def Attune_TileDiagonals : Attune_TilePlace<[F32], 2,
    "[heads, queries + keys - 1] f32">;
def Attune_TilePerHead : Attune_TilePlace<[F32], 1, "[heads] f32">;

def Attune_OnlineStartOp : Attune_TileOp<"online_start"> {
  let summary = "The state of online softmax before any key";
  let description = [{
    `m = -inf`, `l = 0`, `acc = 0`: what `online_attention` starts from. Writes
    all of its destinations and reads none.
    Nothing is computed.

    Source: Milakov and Gimelshein (2018).

    Verifier rules (tests: `invalid-online.mlir`, one case per label):
    - T1: all operands are tensors and there is a result for each destination, or
      all are buffers and there is none.
    - B1: maximum and sum are [B, H, M] of an f32 accumulator.

    ```mlir
    %s:3 = attune.online_start outs(%acc, %max, %sum : tensor<1x8x4x64xf32>,
                                    tensor<1x8x4xf32>, tensor<1x8x4xf32>)
       -> tensor<1x8x4x64xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>
    ```
  }];
  let arguments = (ins Attune_TileHeads:$acc, Attune_TileRows:$max,
                       Attune_TileRows:$sum);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    `outs` `(` $acc `,` $max `,` $sum `:` type($acc) `,` type($max) `,`
    type($sum) `)` attr-dict (`->` type($results)^)?
  }];
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable();
    bool readsDest() { return false; }
    unsigned getFirstDest() { return 0; }
  }];
}

def Attune_OnlineAttentionOp : Attune_TileOp<"online_attention",
    [AttrSizedOperandSegments]> {
  let summary = "One step of online softmax over a block of keys";
  let description = [{
    Milakov and Gimelshein (2018); Dao et al. (2022). Takes the running maximum
    `m`, sum `l` and accumulator `acc` of the keys seen so far and folds in the
    given keys. Start from `online_start`; the order of blocks does not matter.
    With E the masked scores of this block:

    ```
    m'   = max(m, max_n E[n])          p[n] = exp(E[n] - m'), 0 while m' = -inf
    r    = exp(m - m'), 1 while m' = -inf
    l'   = r l + sum_n p[n]            acc' = r acc + sum_n p[n] V[n]
    ```

    `query_offset` and `key_offset` are the positions of the first row and
    column of this block in the whole score matrix of `num_queries` x
    `num_keys`, which is what `causal`, `window`, diagonals and slopes refer to;
    mask and bias are already cut to the block. Keys beyond a sequence's length
    and blocks that are false are not given to any step. `acc`, `m` and `l` are f32.

    `tile` says how many queries and keys the op gets at most, where types do
    not. `prefetch` are the keys and values that are read after these, as far as
    memory has them behind each other. Many queries ask the caches for as many of
    them as there are keys; few queries for keys and values a little ahead,
    which are these near the end of a block. They change no result.

    Every operation rounds to f32; the result rounds in
    `online_finish`.
    Source: Milakov and Gimelshein (2018); Dao et al. (2022).

    Verifier rules (tests: `invalid-online.mlir`, one case per label):
    - T1: as of `online_start`.
    - O1 to O5: as A1 to A5 of `attention`.
    - O6: the states fit the query block and acc is f32.
    - O7: diagonals has a row for each head.
    - O8: `tile` is two positive numbers, no less than known sizes.
    - O9: there are both keys and values to prefetch, or neither; they have the
      types of the elements and the widths of keys and values.

    ```mlir
    %s:3 = attune.online_attention %q, %k, %v scale 1.250000e-01
       causal <bottom_right> at [%m0, %n0] of [%m, %n] tile [8, 6]
       outs(%acc, %max, %sum : tensor<1x8x?x64xf32>, tensor<1x8x?xf32>,
            tensor<1x8x?xf32>)
       : tensor<1x8x?x64xf32>, tensor<1x2x6x64xf32>, tensor<1x2x6x64xf32>
       -> tensor<1x8x?x64xf32>, tensor<1x8x?xf32>, tensor<1x8x?xf32>
    ```
    ```mlir
    attune.online_attention %q, %k, %v scale 1.250000e-01
       at [%m0, %n0] of [%m, %n]
       prefetch %next_k, %next_v : memref<1x2x?x64xf32>, memref<1x2x?x64xf32>
       outs(%acc, %max, %sum : memref<1x8x4x64xf32>, memref<1x8x4xf32>,
            memref<1x8x4xf32>)
       : memref<1x8x4x64xf32>, memref<1x2x6x64xf32>, memref<1x2x6x64xf32>
    ```
  }];
  let arguments = !con(
      (ins Attune_TileHeads:$query, Attune_TileCachedHeads:$key,
           Attune_TileCachedHeads:$value),
      Attune_ScoreOperands<Attune_TileMask, Attune_TileBias,
                           Attune_TileDiagonals, Attune_TilePerHead>.operands,
      (ins Index:$query_offset, Index:$key_offset, Index:$num_queries,
           Index:$num_keys, Optional<Attune_TileCachedHeads>:$next_key,
           Optional<Attune_TileCachedHeads>:$next_value, Attune_TileHeads:$acc,
           Attune_TileRows:$max, Attune_TileRows:$sum, F32Attr:$scale),
      Attune_ScoreAttributes, (ins OptionalAttr<DenseI64ArrayAttr>:$tile));
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = !strconcat(
      "$query `,` $key `,` $value `scale` $scale", Attune_MaskSyntax,
      Attune_BiasSyntax, Attune_ScoreAttributesSyntax, [{
    `at` `[` $query_offset `,` $key_offset `]`
    `of` `[` $num_queries `,` $num_keys `]` (`tile` $tile^)?
    (`prefetch` $next_key^ `,` $next_value `:` type($next_key) `,`
     type($next_value))?
    `outs` `(` $acc `,` $max `,` $sum `:` type($acc) `,` type($max) `,`
    type($sum) `)` attr-dict
    `:` type($query) `,` type($key) `,` type($value) (`->` type($results)^)?
  }]);
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable();
    bool readsDest() { return true; }
    unsigned getFirstDest() { return getAccMutable().getOperandNumber(); }
    /// The most queries and keys that the op gets: what types or `tile` say;
    /// nothing if neither does.
    std::optional<int64_t> getMostQueries();
    std::optional<int64_t> getMostKeys();
  }];
}

def Attune_OnlineMergeOp : Attune_TileOp<"online_merge",
    [AllTypesMatch<["max0", "sum0"]>, AllTypesMatch<["max1", "sum1"]>]> {
  let summary = "Merge two online-softmax states over disjoint keys";
  let description = [{
    `m = max(m0, m1)`, `x = exp(m0 - m) x0 + exp(m1 - m) x1` for the sum and the
    accumulator; associative and commutative. A factor is 0 while its state is
    empty (m_i = -inf). The first state's memory takes the result.

    Every operation rounds to f32.
    Source: Milakov and Gimelshein (2018).

    Verifier rules (tests: `invalid-online.mlir`, one case per label):
    - T1: as of `online_start`.
    - P1: maximum and sum are [B, H, M] of an f32 accumulator.
    - P2: both states have the same shape.

    ```mlir
    %s:3 = attune.online_merge (%a1, %m1, %l1)
       outs(%a0, %m0, %l0 : tensor<1x8x4x64xf32>, tensor<1x8x4xf32>)
       : tensor<1x8x4x64xf32>, tensor<1x8x4xf32>
       -> tensor<1x8x4x64xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>
    ```
  }];
  let arguments = (ins Attune_TileHeads:$acc1, Attune_TileRows:$max1,
                       Attune_TileRows:$sum1, Attune_TileHeads:$acc0,
                       Attune_TileRows:$max0, Attune_TileRows:$sum0);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    `(` $acc1 `,` $max1 `,` $sum1 `)`
    `outs` `(` $acc0 `,` $max0 `,` $sum0 `:` type($acc0) `,` type($max0) `)`
    attr-dict `:` type($acc1) `,` type($max1) (`->` type($results)^)?
  }];
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable();
    bool readsDest() { return true; }
    unsigned getFirstDest() { return 3; }
  }];
}

def Attune_OnlineFinishOp : Attune_TileOp<"online_finish",
    [AttrSizedOperandSegments]> {
  let summary = "Divide the accumulator by the sum: the attention result";
  let description = [{
    `Y = acc / l`, 0 where l = 0; `lse = m + log l`. With `sinks` the sum is
    `l + exp(sinks[h] - m)` first (rescaled if the sink is the maximum).

    Rounds once, at the end.
    Source: Dao et al. (2022).

    Verifier rules (tests: `invalid-online.mlir`, one case per label):
    - T1: as of `online_start`.
    - Z1: maximum and sum are [B, H, M] of an f32 accumulator.
    - Z2: sinks is [H].
    - Z3: the destination has the accumulator's shape, lse that of the maximum.

    ```mlir
    %y = attune.online_finish %acc, %max, %sum into %d
       : tensor<1x8x4x64xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>,
         tensor<1x8x4x64xf32> -> tensor<1x8x4x64xf32>
    ```
  }];
  let arguments = (ins Attune_TileHeads:$acc, Attune_TileRows:$max,
                       Attune_TileRows:$sum,
                       Optional<Attune_TilePerHead>:$sinks,
                       Attune_TileHeads:$dest, Optional<Attune_TileRows>:$lse);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    $acc `,` $max `,` $sum (`sinks` $sinks^ `:` type($sinks))?
    `into` $dest (`lse` $lse^ `:` type($lse))? attr-dict
    `:` type($acc) `,` type($max) `,` type($sum) `,` type($dest)
    (`->` type($results)^)?
  }];
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable();
    bool readsDest() { return false; }
    unsigned getFirstDest() { return getDestMutable().getOperandNumber(); }
  }];
}

//===----------------------------------------------------------------------===//
// Matrix products
//===----------------------------------------------------------------------===//

def Attune_TileInput : Attune_TilePlace<[F32, F16, BF16, I8], 2,
    "[rows, inputs]">;
def Attune_TilePanels : Attune_TilePlaces<[F32, F16, BF16, I8, F8E4M3FN], [3, 4],
    "[(matrices,) panels, inputs, R] packed">;
def Attune_TileOutput : Attune_TilePlace<[F32, F16, BF16], 2,
    "[rows, channels]">;
def Attune_TileChannels : Attune_TilePlaces<[F32, F16, BF16], [1, 2],
    "[(matrices,) channels]">;
def Attune_TileGroupScales : Attune_TilePlace<[F32], 2, "[rows, groups] f32">;
def Attune_TileGroupSums : Attune_TilePlace<[I32], 2, "[rows, groups] i32">;
def Attune_TilePanelScales : Attune_TilePlaces<[F32, F16, F8E8M0FNU, I8], [3, 4],
    "[(matrices,) panels, groups, R]">;
def Attune_TileOrder : Attune_TilePlace<[I64], 1, "[rows] i64">;
def Attune_TileRowScales : Attune_TilePlace<[F32], 1, "[rows] f32">;

def Attune_PackedProductOp : Attune_TileOp<"packed_product",
    [AttrSizedOperandSegments]> {
  let summary = "Some rows against some panels of a packed matrix";
  let description = [{
    The tile of a linear layer: of a matrix X [rows, K] the rows from `i` on, as
    many as the destination [M, C] has, and of a matrix W of `width` channels in
    panels of R the `count` panels from `p` on. With `n = p R + c` the channel of
    column c, C is `min(count R, width - p R)` and

    ```
    Z[m, c] = r[i + m] sum_k X[i + m, k] W[n, k] + bias[n]
    Y[m, c] = act(Z[m, c])
    ```

    With `gated` panels of gates and of their partners alternate, and
    `Y[m, c] = act(gate) * partner`, as in `attune.linear`. Then `Y *= scale`,
    and with `residual` the destination's own values are added.
    r is 1, or `1 / sqrt(mean_k X[i + m, k]^2 + rms_eps)`: `row_scales` holds it
    for each row of X. Where all rows of X are no more than one tile, the op
    computes it, with or without `row_scales`.

    Panels are [P, K, R]; [P, K / 2, 2 R] of bf16 in pairs, which multiply rows of
    bf16. Bytes come with `scales`: those of groups of neighbours of X, the sums
    of these, and W's scales in panels [P, groups, R] or bytes in two levels; panels are [P, K / 4, 4 R],
    or [P, K / 8, 4 R] of 4 bits. Floats of 8 bits, f8E4M3FN, stand where bytes
    do, for rows of numbers. They are summed as
    `attune.quantized_linear` says, with `zeros` and for rows of numbers, too,
    which come with W's scales alone.

    `matrix e` takes matrix e of a stack, and row e of a bias [matrices, width].
    With `by` order, row m of the destination reads row `order[i + m]` of X, and
    not row `i + m`. So an expert multiplies the rows that chose it, and nothing
    is moved. `limit` and `up_offset` of a gated product are those of
    `attune.moe`.

    `part b of B` takes the b-th of B equal parts of the sum over K. The first one
    starts from 0, or from the destination with `residual`; others add to the
    destination; the last one makes Y of Z.

    `tile` says how many rows and panels (1 or 2) of a whole tile have their sums
    in registers. The rows that whole tiles leave go in tiles of one panel and up
    to as many rows as keep equally many sums; `rest` [rows, K] may hold a
    copy of these, whose row `j + m` is row `i + m` of X, at another distance.
    With `rows r of R` the destination is one of the tiles that R rows from `i`
    on are cut into: that of rows `r` to `r + M`, which reads X from row `i + r`
    on, and the rest alike. Its rows are no more than registers have room for,
    and `whole` says that it is one of many such tiles, which share what is
    fetched.
    `prefetch` is a panel: while rows pass panel `p + j`, the caches are asked for
    panel `prefetch + j`, or for the next part of the panel itself. In a stack it
    is a panel of matrix `next_matrix`. These change no result.

    Summed in f32 in the order of k, groups first. Rounds once, at the end; with
    parts the destination is f32.
    Source: Goto and van de Geijn (2008); Van Zee and van de Geijn (2015), whose
    micro-kernel this is.

    Verifier rules (tests: `invalid-product.mlir`, one case per label):
    - T1: as of `online_start`.
    - M1: rows and panels have the same K, which is known.
    - M2: there are as many panels as hold `width` channels, twice as many if
      gated.
    - M3: the bias has `width` entries, 2 `width` if gated.
    - M4: rows of bytes have scales, in whole groups; panels of bytes have some,
      too, of as many groups (two for one with `zeros`), other panels none; floats
      of 8 bits as L9 of `attune.quantized_linear` says.
    - M5: `tile` is two positive numbers, the second at most 2.
    - M6: what is computed in parts is neither gated nor of bytes, and f32.
    - M7: `row_scales` come with `rms_eps`, which is not negative, and may be
      missing only where X is known to be no more than one tile.
    - M8: `rest` has rows of K elements of the same type.
    - M9: a stack comes with `matrix`, and all of its operands are stacks; it is
      not in parts, not normalised by `rms_eps`, and has no `rest`. The same
      holds for rows in an order.
    - M10: limit, which is positive, and up_offset belong to a gated product.
    - M11: of R rows a tile has as many as a whole one, or a number that is not
      known. Only one that is whole is `whole`. Such tiles are in no order, and
      not in parts.

    ```mlir
    %y = attune.packed_product %x[%i], %w[%p, %count] of 768
       bias %b : tensor<768xf32> activation <gelu_tanh> tile [6, 1]
       outs(%d : tensor<?x?xf32>)
       : tensor<?x64xf32>, tensor<48x64x16xf32> -> tensor<?x?xf32>
    ```
    ```mlir
    attune.packed_product %x[%i], %w[%p, %count] of 768 part %b of %B residual
       tile [6, 2] prefetch %next outs(%d : memref<?x?xf32>)
       : memref<?x64xf32>, memref<48x64x16xf32>
    ```
    ```mlir
    attune.packed_product %x[%i], %w[%p, %count] of 768 matrix %e
       by %order : memref<?xi64> tile [6, 1] prefetch %next next_matrix %f
       outs(%d : memref<?x?xf32>) : memref<?x64xf32>, memref<8x48x64x16xf32>
    ```
    ```mlir
    %y = attune.packed_product %x[%i], %w[%p, %count] of 768 tile [6, 1]
       rows %r of %R whole outs(%d : tensor<6x?xf32>)
       : tensor<?x64xf32>, tensor<48x64x16xf32> -> tensor<6x?xf32>
    ```
  }];
  let arguments = (ins Attune_TileInput:$input, Index:$first_row,
                       Attune_TilePanels:$weight, Index:$first_panel,
                       Index:$num_panels, Optional<Index>:$matrix,
                       Optional<Attune_TileOrder>:$order,
                       Optional<Index>:$part, Optional<Index>:$num_parts,
                       Optional<Attune_TileGroupScales>:$input_scales,
                       Optional<Attune_TileGroupSums>:$input_sums,
                       Optional<Attune_TilePanelScales>:$weight_scales,
                       Optional<Attune_TileChannels>:$bias,
                       Optional<Attune_TileRowScales>:$row_scales,
                       Optional<Attune_TileInput>:$rest,
                       Optional<Index>:$first_rest,
                       Optional<Index>:$tile_row, Optional<Index>:$num_rows,
                       Optional<Index>:$next_panel,
                       Optional<Index>:$next_matrix,
                       Attune_TileOutput:$dest,
                       I64Attr:$width,
                       OptionalAttr<F32Attr>:$rms_eps,
                       DefaultValuedAttr<Attune_ActivationAttr,
                                         "Activation::Identity">:$activation,
                       UnitAttr:$gated, OptionalAttr<F32Attr>:$limit,
                       DefaultValuedAttr<F32Attr, "0.0f">:$up_offset,
                       OptionalAttr<F32Attr>:$scale,
                       UnitAttr:$residual, UnitAttr:$whole, UnitAttr:$zeros,
                       DenseI64ArrayAttr:$tile);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    $input `[` $first_row `]` `,` $weight `[` $first_panel `,` $num_panels `]`
    `of` $width (`matrix` $matrix^)? (`by` $order^ `:` type($order))?
    (`part` $part^ `of` $num_parts)?
    (`scales` custom<GroupScales>($input_scales, $input_sums, $weight_scales,
     type($input_scales), type($input_sums), type($weight_scales))^)?
    (`zeros` $zeros^)?
    (`bias` $bias^ `:` type($bias))? (`rms_eps` $rms_eps^)?
    (`row_scales` $row_scales^ `:` type($row_scales))?
    (`activation` $activation^)? (`gated` $gated^)? (`limit` $limit^)?
    (`up_offset` $up_offset^)? (`scale` $scale^)? (`residual` $residual^)?
    (`rest` $rest^ `[` $first_rest `]` `:` type($rest))?
    `tile` $tile (`rows` $tile_row^ `of` $num_rows)? (`whole` $whole^)?
    (`prefetch` $next_panel^)? (`next_matrix` $next_matrix^)?
    `outs` `(` $dest `:` type($dest) `)` attr-dict
    `:` type($input) `,` type($weight) (`->` type($results)^)?
  }];
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable();
    bool readsDest() { return getResidual() || getPart(); }
    unsigned getFirstDest() { return getDestMutable().getOperandNumber(); }
    /// K.
    int64_t getDepth();
    /// Whether bf16 is multiplied in pairs.
    bool hasPairs();
    /// Bits of a weight with scales, and how many of its numbers share one.
    int64_t getBits();
    int64_t getGroup();
    /// R.
    int64_t getPanelWidth();
  }];
}

#endif // ATTUNE_TILE_OPS_TD

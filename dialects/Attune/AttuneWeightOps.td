//===- AttuneWeightOps.td - Named weights --------------------*- tablegen -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_WEIGHT_OPS_TD
#define ATTUNE_WEIGHT_OPS_TD

include "AttuneAttrs.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/ViewLikeInterface.td"

def Attune_WeightOp : Attune_Op<"weight",
    [Symbol, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "A weight of the model, by name; its values stay in a file";
  let description = [{
    `type` is what the op that uses the weight sees, in storage precision. A
    weight of a repeated block is stacked over its layers: its first dimension
    is the layer, `attune.weight_get` picks one. `sources` are concatenated
    along the first unstacked dimension.

    A weight in `parts` is a stack of equal matrices that one layer uses one by
    one: the experts of a mixture, or matrices of heads. The type has the parts
    as a dimension after the layers, and each part is packed alone.

    `panel_width` is absent for row-major storage. With `panel_width = R` an
    [N, K] matrix is stored as ceil(N/R) panels of [K, R], the last one padded
    with zeros, which is how the matmul kernels stream it; the type is then
    [(L,) (P,) ceil(N/R), K, R], or [(L,) ceil(N/R), R] for a bias. `gated`
    interleaves the panels of the two halves of the rows: gate panel 0, up
    panel 0, gate panel 1, ... A bf16 matrix may hold pairs: panels of
    [K/2, 2R], in which the entries of two neighbouring columns stand side by
    side for each of R rows. Packing leaves N, which the panels no longer
    tell, in the attribute `attune.rows`.

    A matrix of i8 is quantized: `attune.group` neighbours in a row share a scale
    t, the largest magnitude of them by 127, and an entry is stored as
    `round(w * (1 / t)) + 128`, an unsigned byte, ties to even. Its panels are [K/4, 4R],
    four neighbouring columns side by side. The scales are a weight of their own
    from the same sources: f32 [.., N, K/group] with the same `attune.group`.

    A matrix of i4 is quantized to 4 bits: with m the first of the largest
    magnitude in a group, t is `m / -8` in f16, so that m itself is -8 steps, and
    an entry is stored as `round(w * (1 / t)) + 8`, from 0 to 15, ties to even and
    what is beyond at the nearest end. Where t is 0 it is stored as 8. Panels are
    i8 [K/8, 4R] with `attune.bits = 4`: byte 4r + j of row b of a panel holds column 8b + j of its
    row r in the lower half and column 8b + 4 + j in the upper one. The scales are
    f16. Where they are not, the numbers say so in `attune.scales`, a type, and f32
    says whose scales it is in `attune.bits`.

    With `attune.zeros` each group has a zero point z of its own: an entry w is
    `t (n - z)` of the unsigned number n that is stored. Scales are pairs then, t and
    z of each group in turn: [.., N, 2 K/group]. With m the least of a group and 0, and
    M the greatest of these, t is `(M - m) / 15` of 4 bits and `/ 255` of bytes, z is
    `round(-m / t)`, and n is `round(w / t) + z`. Where t is 0, n and z are 0.

    Scales of f8E8M0FNU, powers of two, say that numbers of 4 bits are floats,
    e2m1, whose sign is the uppermost bit: t is `2^(e - 2)` with e the exponent of the
    greatest magnitude in a group, `2^e <= |w|`, and an entry the nearest of 0, 0.5, 1,
    1.5, 2, 3, 4 and 6 to `|w| / t`, ties to even codes.

    A matrix of f8E4M3FN is quantized to floats of 8 bits: t is the largest
    magnitude in a group by 448, the greatest of these floats, and an entry is
    `w / t`, to nearest and ties to even. Panels are those of bytes. The
    scales are f32, and `attune.floats` says whose they are. The two codes that
    are no numbers do not occur: a group with one has a scale that is none.

    With `attune.scales = i8` scales are in two levels, as a checkpoint has them:
    bytes [.., N, S], which say `attune.levels`, with S bytes for each 256 columns as
    `attune.quantized_linear` has them. Numbers in bytes are of
    6 bits then, w + 32 where there are no zero points. Nothing is rounded to them.

    With `attune.ordered` the columns of a quantized matrix, and of its scales, are
    in the order in which the checkpoint has the groups that they belong to. With
    `attune.order = array<i64: N, K>` a weight of f32, [(L,) K], is that order: entry
    k says which column of the matrix [N, K], which the sources give, is k-th.

    With `gain @g` column k is multiplied by entry k of the weight `@g`, of the
    same layer, plus `gain_offset`: what a norm does to each channel before a
    linear layer meets it. That is for f32, where it is one more rounding.

    With `attune.factor`, "left" or "right", and `attune.product = array<i64: N, K>`
    it is a factor of the matrix [N, K] that the sources give: of left [N, r] times
    right [r, K], the truncated singular value decomposition (Eckart and Young,
    1936), in which columns of left have length one. It is computed when the
    weight is packed.

    With `attune.kept = {whole = array<i64: N, K>, rows = [..], columns = [..]}` the
    sources give a matrix [N, K], and this is a part of it. Each list has one entry
    for all layers or one for each: begin and count of ranges, array<i64: 0, 4, 8, 4>.
    Without rows, or columns, all are kept.

    Packing moves numbers and rounds none but those; a file of a wider type
    is rounded to `type`, or to bytes, once, when it is packed.
    Source: safetensors for what is read; panels: Goto and van de Geijn (2008).

    Verifier rules (tests: `invalid-weight.mlir`, one case per label):
    - W1: the type is static and has the dimensions that layers and panels need.
    - W2: a stacked weight names its layers with `{i}` (or `{i+N}`, for numbers
      that start at N) in every source.
    - W3: at least one source.
    - W4: panels are as wide as the last dimension of the type, half as wide
      where bf16 stands in pairs, a quarter as wide of bytes and f8E4M3FN.
    - W5: rows of a source begin at 0 or later and end after they begin; ranges
      of rows that repeat do not overlap.
    - W6: parts are as many as the type has, and sources tell them apart with
      `{e}` or a step if there are several; only a weight in parts has these.
    - W7: bytes are in groups of 4, 8, 12, ..., 65536, numbers of 4 bits of 32, 64,
      96, ..., 65536, and rows are whole groups, or with scales in two levels
      blocks of 256 columns; only matrices of these and scales,
      f32 of bytes and f16, f32 or f8E8M0FNU of 4 bits, have groups. Zero points
      belong to groups, and not to f8E8M0FNU and f8E4M3FN.
    - W8: a gain is an attune.weight of f32, one entry a column, of as many
      layers; its matrix is f32, without parts and groups.
    - W9: a factor says which it is and of what, in two sizes; its type fits both, or a
      rank's part of them, and it has no parts.
    - W10: the kept rows and columns are ascending ranges of the matrix, for every
      layer as many as the type says; the weight has no parts.
    - W11: an order is of f32, and says the size of a matrix with as many columns.

    ```mlir
    attune.weight @h.qkv stacked : tensor<12x2304x768xf32>
        from [#attune.source<"h.{i}.attn.c_attn.weight", transposed>]
    ```
    ```mlir
    attune.weight @h.moe.down stacked parts 8 : tensor<32x8x4096x14336xbf16>
        from [#attune.source<"h.{i}.experts.{e}.down.weight">]
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       TypeAttrOf<AnyRankedTensor>:$type,
                       UnitAttr:$stacked,
                       Attune_WeightSourceArrayAttr:$sources,
                       OptionalAttr<I64Attr>:$panel_width,
                       UnitAttr:$gated, OptionalAttr<I64Attr>:$parts,
                       OptionalAttr<FlatSymbolRefAttr>:$gain,
                       DefaultValuedAttr<F32Attr, "0.0f">:$gain_offset);
  let assemblyFormat = [{
    $sym_name (`stacked` $stacked^)? (`parts` $parts^)? (`gated` $gated^)?
    (`panels` $panel_width^)? `:` $type `from` $sources
    (`gain` $gain^ (`gain_offset` $gain_offset^)?)? attr-dict
  }];
  let hasVerifier = 1;
  let useCustomPropertiesEncoding = 1; // to read older modules
  let extraClassDeclaration = [{
    ::mlir::RankedTensorType getTensorType() {
      return ::llvm::cast<::mlir::RankedTensorType>(getType());
    }
    /// The type of one layer: without the leading layer dimension if stacked.
    ::mlir::RankedTensorType getLayerType();
    int64_t getNumLayers() {
      return getStacked() ? getTensorType().getDimSize(0) : 1;
    }
    /// The type of one part of one layer.
    ::mlir::RankedTensorType getPartType();
    int64_t getNumParts() { return getParts().value_or(1); }
    /// Columns that share a scale: of quantized values, which are i8, i4 or
    /// f8E4M3FN, or of their scales. Nothing of any other weight.
    ::std::optional<int64_t> getGroup();
    /// Bits of a quantized value, or of those that the scales belong to: 8 or
    /// 4.
    int64_t getBits();
    /// Whether it is the scales of a quantized weight.
    bool holdsScales();
    /// Whether it is floats of 8 bits, or the scales of these.
    bool hasByteFloats();
    /// Whether it is the order of the columns of a quantized weight.
    bool holdsOrder();
    /// The type of the scales of its groups: f32, f16 or f8E8M0FNU.
    ::mlir::FloatType getScaleType();
    /// Whether groups have zero points: of quantized values, or of their scales.
    bool hasZeros();
    /// The number of columns of a row that stand side by side in its panels; 1
    /// without panels, and 0 if its type is none of panels.
    int64_t getColumnsSideBySide();
  }];
}

def Attune_WeightGetOp : Attune_Op<"weight_get",
    [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "The value of a weight, or of one layer of a stacked weight";
  let description = [{
    `Y = weight`, or `Y = weight[layer]` of a stacked one.

    Nothing is computed, so nothing rounds.
    Source: `ml_program.global_load` of MLIR, for weights in a file.

    Verifier rules (tests: `invalid-weight.mlir`, one case per label):
    - G1: the symbol is an `attune.weight`.
    - G2: the result type is the weight's layer type.
    - G3: `layer` is there exactly if it is stacked.

    ```mlir
    %w = attune.weight_get @h.qkv[%layer] : tensor<2304x768xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$weight, Optional<Index>:$layer);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$weight (`[` $layer^ `]`)? attr-dict `:` type($result)";
}

def Attune_WeightViewOp : Attune_Op<"weight_view",
    [Pure, DeclareOpInterfaceMethods<ViewLikeOpInterface>]> {
  let summary = "A weight in the memory that holds all of them";
  let description = [{
    The bytes of `source` from `offset` on, or from `offset + layer * stride` on,
    as the buffer that `weight_get` of the same weight stands for. A function
    that calls kernels has one such line for each weight, which names it.

    Nothing is computed, so nothing rounds.
    Source: `memref.view` of MLIR.

    Verifier rules (tests: `invalid-weight.mlir`, one case per label):
    - V1: there is a stride exactly if there is a layer.
    - V2: the result has a static shape, row after row.
    - V3: offset and stride are not negative.

    ```mlir
    %w = attune.weight_view @h.qkv of %bytes[%layer] at 3072 stride 7077888
       : memref<?xi8> to memref<2304x768xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$weight,
                       MemRefRankOf<[I8], [1]>:$source, Optional<Index>:$layer,
                       I64Attr:$offset, OptionalAttr<I64Attr>:$stride);
  let results = (outs AnyMemRef:$result);
  let assemblyFormat = [{
    $weight `of` $source (`[` $layer^ `]`)? `at` $offset (`stride` $stride^)?
    attr-dict `:` type($source) `to` type($result)
  }];
  let hasVerifier = 1;
}

#endif // ATTUNE_WEIGHT_OPS_TD

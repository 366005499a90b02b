//===- AttuneIntoOps.td - Ops for blocks of threads ----------*- tablegen -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_INTO_OPS_TD
#define ATTUNE_INTO_OPS_TD

include "AttuneTypes.td"
include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

// A tensor, or the buffer that it becomes.
def Attune_Place : AnyTypeOf<[AnyRankedTensor, AnyStridedMemRef]>;

// An op in destination-passing style. The threads of a GPU's block share memory
// that no tensor is, and the matrix unit of a CPU reads memory by itself. So
// such an op cannot become loops on tensors: it stays one op until there are
// buffers, and names its destination.
class Attune_IntoOp<string mnemonic, list<Trait> traits = []>
    : Attune_Op<mnemonic, traits # [DestinationStyleOpInterface,
        DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
        DeclareOpInterfaceMethods<BufferizableOpInterface,
          ["bufferizesToMemoryRead", "bufferizesToMemoryWrite",
           "getAliasingValues", "bufferize"]>]>;

def Attune_LinearIntoOp : Attune_IntoOp<"linear_into"> {
  let summary = "attune.linear on rows and panels, into a destination";
  let description = [{
    As `attune.linear`: `Z[m, n] = sum_k X[m, k] W[n, k] + bias[n]`,
    `Y = act(Z)`, or `Y[m, n] = act(Z[m, n]) * Z[m, N + n]` if `gated`, then
    `Y *= scale`. With `residual` the destination's own values are added.
    Summed in f32. Rounds once, at the end.

    Rows of signed bytes and panels of unsigned ones in quads give sums in i32,
    which wrap around, and nothing else.

    Source: as `attune.linear`; a destination as in linalg of MLIR.

    Verifier rules (tests: `invalid-into.mlir`, one case per label):
    - I1: all operands are tensors and there is a result, or all are buffers and
      there is none.
    - I2: rows [M, K] and panels [P, K, R], or [P, K / 2, 2 R] in pairs of bf16,
      give [M, N]. Bytes are [M, K] and [P, K / 4, 4 R].
    - I3: there are as many panels as hold N channels, twice as many if gated.
    - I4: the bias has N entries, 2N if gated.
    - I5: what bytes give is i32, without bias, gate, activation and scale.

    ```mlir
    %y = attune.linear_into %x, %w into %d activation <silu> gated
       : tensor<?x64xf32>, tensor<24x64x8xbf16>, tensor<?x96xf32>
       -> tensor<?x96xf32>
    ```
  }];
  let arguments = (ins Attune_Place:$input, Attune_Place:$weight,
                       Optional<Attune_Place>:$bias, Attune_Place:$dest,
                       DefaultValuedAttr<Attune_ActivationAttr,
                                         "Activation::Identity">:$activation,
                       UnitAttr:$gated, UnitAttr:$residual,
                       OptionalAttr<F32Attr>:$scale);
  let results = (outs Optional<AnyRankedTensor>:$result);
  let assemblyFormat = [{
    $input `,` $weight (`bias` $bias^ `:` type($bias))? `into` $dest
    (`activation` $activation^)? (`gated` $gated^)? (`residual` $residual^)?
    (`scale` $scale^)? attr-dict
    `:` type($input) `,` type($weight) `,` type($dest)
    (`->` type($result)^)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() {
      return getDestMutable();
    }
  }];
}

def Attune_QuantizedLinearIntoOp : Attune_IntoOp<"quantized_linear_into"> {
  let summary = "attune.quantized_linear on rows of floats, into a destination";
  let description = [{
    As `attune.quantized_linear` with rows that are no bytes, `zeros` and floats
    of 4 and 8 bits included: `Z[m, n] = sum_g t[n, g] sum_{k in g} X[m, k] (W[n, k] - z)
    + bias[n]`; then the epilogue of `attune.linear_into`. All sums are in f32,
    over 16 columns or more before scales meet them. Rounds once, at the end.
    Source: as `attune.quantized_linear`.

    Verifier rules (tests: `invalid-into.mlir`, one case per label):
    - J1: all operands are tensors and there is a result, or all are buffers and
      there is none.
    - J2: rows [M, K], panels of bytes [P, K / 4, 4 R], or [P, K / 8, 4 R] of two
      numbers each, and scales [P, K / group, R], or twice as many with `zeros`,
      give [M, N].
    - J3: there are as many panels as hold N channels, twice as many if gated.
    - J4: the bias has N entries, 2N if gated.
    - J5: scales of f8E8M0FNU are those of 4 bits without `zeros`; floats of 8
      bits have scales of f32 without `zeros`.

    ```mlir
    %y = attune.quantized_linear_into %x, %w scales %t into %d
       : tensor<?x64xf32>, tensor<12x8x32xi8>, tensor<12x2x8xf16>,
         tensor<?x96xf32> -> tensor<?x96xf32>
    ```
  }];
  let arguments = (ins Attune_Place:$input, Attune_Place:$weight,
                       Attune_Place:$weight_scales,
                       Optional<Attune_Place>:$bias, Attune_Place:$dest,
                       DefaultValuedAttr<Attune_ActivationAttr,
                                         "Activation::Identity">:$activation,
                       UnitAttr:$gated, UnitAttr:$residual,
                       OptionalAttr<F32Attr>:$scale, UnitAttr:$zeros);
  let results = (outs Optional<AnyRankedTensor>:$result);
  let assemblyFormat = [{
    $input `,` $weight `scales` $weight_scales (`zeros` $zeros^)?
    (`bias` $bias^ `:` type($bias))? `into` $dest
    (`activation` $activation^)? (`gated` $gated^)? (`residual` $residual^)?
    (`scale` $scale^)? attr-dict
    `:` type($input) `,` type($weight) `,` type($weight_scales) `,`
    type($dest) (`->` type($result)^)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() {
      return getDestMutable();
    }
    /// Bits of a number, and neighbours that share a scale.
    int64_t getBits();
    int64_t getGroup();
  }];
}

def Attune_AttentionIntoOp
    : Attune_IntoOp<"attention_into", [AttrSizedOperandSegments]> {
  let summary = "attune.attention into a destination";
  let description = [{
    As `attune.attention`, in one kernel of cooperating threads or two: with
    `split_keys` those that take few queries share the keys among them, and the
    parts are merged in order. Widths and heads are known.

    Arithmetic is f32, but weights of softmax are rounded to the storage type of
    the queries where these and the result have the same 16 bits; where values
    are bytes, weights times the values' scales. Rounds once, at the end.
    Source: Dao (2023).

    Verifier rules (tests: `invalid-attention-into.mlir`, one case per label):
    - N1: all operands are tensors and there is a result for each destination, or
      all are buffers and there is none.
    - N2: query, key and value have rank 4 with known heads and widths; queries
      and keys have one width and one type with the values, or keys and values
      are rows of one type in bytes, as `attune.cache_append` makes them.
    - N3: query heads are a multiple of key heads; keys and values have as many.
    - N4: the destination has the heads of the queries and the width of the
      values: [B, H, M, E], or merged, as `attune.merge_heads` gives it,
      [B, M, H E].

    ```mlir
    %r = attune.attention_into %q, %k, %v scale 1.250000e-01
       causal <bottom_right> into %d
       : tensor<1x8x?x64xbf16>, tensor<1x2x?x64xbf16>, tensor<1x2x?x64xbf16>,
         tensor<1x8x?x64xbf16> -> tensor<1x8x?x64xbf16>
    ```
  }];
  let arguments = !con(
      (ins Attune_Place:$query, Attune_Place:$key, Attune_Place:$value),
      Attune_ScoreOperands<Attune_Place, Attune_Place, Attune_Place,
                           Attune_Place>.operands,
      (ins Optional<Attune_Place>:$sinks, Optional<Attune_Place>:$lengths,
           Optional<Attune_Place>:$blocks, Attune_Place:$dest,
           Optional<Attune_Place>:$lse, F32Attr:$scale),
      Attune_ScoreAttributes,
      (ins OptionalAttr<DenseI64ArrayAttr>:$block_sizes,
           UnitAttr:$split_keys));
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = !strconcat(
      "$query `,` $key `,` $value `scale` $scale", Attune_MaskSyntax,
      Attune_BlocksSyntax, Attune_BiasSyntax,
      "(`sinks` $sinks^ `:` type($sinks))?", Attune_ScoreAttributesSyntax, [{
    (`split_keys` $split_keys^)? `into` $dest (`lse` $lse^ `:` type($lse))?
    attr-dict `:` type($query) `,` type($key) `,` type($value) `,` type($dest)
    (`->` type($results)^)?
  }]);
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable();
  }];
}

def Attune_NumThreadsOp : Attune_Op<"num_threads", [Pure]> {
  let summary = "How many threads run the function";
  let description = [{
    `result >= 1`, and the same throughout a run: parallel loops are cut by it,
    so that there is work for all. Results must not depend on it.
    Nothing is computed.

    Source: `omp_get_num_threads` of OpenMP.

    ```mlir
    %threads = attune.num_threads
    ```
  }];
  let results = (outs Index:$result);
  let assemblyFormat = "attr-dict";
}

def Attune_SuccessorOp : Attune_Op<"successor",
    [Pure, SameOperandsAndResultType]> {
  let summary = "What a thread takes of a parallel loop after this iteration";
  let description = [{
    `iteration` counts a dimension of a parallel loop around the op, and
    `result = iteration + 1`, which may be behind the last one. Threads take
    contiguous parts of such a loop, so that this is the same thread's, too, and
    can be fetched in time. Results must not depend on it. Nothing is computed.

    Source: software prefetching as in Mowry, Lam and Gupta (1992).

    ```mlir
    scf.forall (%i) in (%n) {
      %j = attune.successor %i
      memref.prefetch %x[%j], read, locality<2>, data : memref<?xf32>
    }
    ```
  }];
  let arguments = (ins Index:$iteration);
  let results = (outs Index:$result);
  let assemblyFormat = "$iteration attr-dict";
}

#endif // ATTUNE_INTO_OPS_TD

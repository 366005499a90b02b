//===- AttuneGroupOps.td - Ops of a GPU's blocks -------------*- tablegen -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_GROUP_OPS_TD
#define ATTUNE_GROUP_OPS_TD

include "AttuneTypes.td"
include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

// As attune.linear_into these stay whole until there are buffers. Only what
// makes them and what lowers them includes Attune/AttuneGroupOps.h.
class Attune_GroupOp<string mnemonic, list<Trait> traits = []>
    : Attune_Op<mnemonic, !listconcat(
    [DestinationStyleOpInterface,
     DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
     DeclareOpInterfaceMethods<BufferizableOpInterface,
       ["bufferizesToMemoryRead", "bufferizesToMemoryWrite",
        "getAliasingValues", "bufferize"]>], traits)> {
  let hasVerifier = 1;
  // Each says by readsDest whether it keeps some of what its destination has.
  let extraClassDefinition = [{
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

// A tensor, or the buffer that it becomes.
def Attune_GroupPlace : AnyTypeOf<[AnyRankedTensor, AnyStridedMemRef]>;

def Attune_GroupedLinearIntoOp : Attune_GroupOp<"grouped_linear_into",
                                                [AttrSizedOperandSegments]> {
  let summary = "Rows that take different matrices, into a destination";
  let description = [{
    As `attune.linear_into`, with a stack of matrices [E, P, K, R]: each row takes
    one of them. Rows come in batches, [G, M, K] to [G, M, N], and batch g
    takes matrix `g mod E`; or `tasks` says it, each with a matrix, its first row
    and the number of its rows, which may be 0. Then row m of the result is of
    row `from[m]` of the input, or of its own. Rows of no task keep what they
    have. Row e of `bias` is added to the products with matrix e; `limit` and
    `up_offset` are those of `attune.moe`. With `scales` the matrices are of few
    bits, as `attune.quantized_linear_into` has them, `zeros` included, one stack
    of scales [E, P, K / group, R] beside that of bytes. Rounds once, at the end.

    Source: as `attune.moe`, `attune.head_linear`.

    Verifier rules (tests: `invalid-group.mlir`, one case per label):
    - G1: all operands are tensors and there is a result, or all are buffers and
      there is none.
    - G2: batches [G, M, K] give [G, M, N], rows [M, K] with tasks [M, N].
    - G3: there are as many panels as hold N channels, twice as many if gated.
    - G4: `tasks` is [T, 3] of i64.
    - G5: `from` has M entries of i64, and comes with `tasks`.
    - G9: `bias` is [E, N], twice as wide if gated.
    - G10: `limit` and `up_offset` belong to a gated product.
    - G11: scales are those of whole groups of bytes, of two numbers in each, or
      of floats of 8 bits.

    ```mlir
    %y = attune.grouped_linear_into %x, %w tasks %t : tensor<?x3xi64>
       from %f : tensor<?xi64> into %d activation <silu> gated
       : tensor<?x64xf32>, tensor<8x24x64x8xbf16>, tensor<?x96xf32>
       -> tensor<?x96xf32>
    ```
    ```mlir
    %y = attune.grouped_linear_into %x, %w into %d
       : tensor<?x?x12xf32>, tensor<4x3x12x8xf32>, tensor<?x?x24xf32>
       -> tensor<?x?x24xf32>
    ```
  }];
  let arguments = (ins Attune_GroupPlace:$input, Attune_GroupPlace:$weight,
                       Optional<Attune_GroupPlace>:$scales,
                       Optional<Attune_GroupPlace>:$tasks,
                       Optional<Attune_GroupPlace>:$from,
                       Optional<Attune_GroupPlace>:$bias,
                       Attune_GroupPlace:$dest,
                       DefaultValuedAttr<Attune_ActivationAttr,
                                         "Activation::Identity">:$activation,
                       UnitAttr:$gated, OptionalAttr<F32Attr>:$limit,
                       DefaultValuedAttr<F32Attr, "0.0f">:$up_offset,
                       UnitAttr:$zeros);
  let results = (outs Optional<AnyRankedTensor>:$result);
  let assemblyFormat = [{
    $input `,` $weight (`scales` $scales^ `:` type($scales))?
    (`zeros` $zeros^)? (`tasks` $tasks^ `:` type($tasks))?
    (`from` $from^ `:` type($from))? (`bias` $bias^ `:` type($bias))?
    `into` $dest (`activation` $activation^)? (`gated` $gated^)?
    (`limit` $limit^)? (`up_offset` $up_offset^)? attr-dict
    `:` type($input) `,` type($weight) `,` type($dest)
    (`->` type($result)^)?
  }];
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() {
      return getDestMutable();
    }
    /// Rows of no task are kept.
    bool readsDest() { return bool(getTasks()); }
    /// Bits of a number, and columns that share a scale; 0 without scales.
    int64_t getBits();
    int64_t getGroup();
  }];
}

def Attune_NormedLinearIntoOp : Attune_GroupOp<"normed_linear_into",
                                               [AttrSizedOperandSegments]> {
  let summary = "A linear layer of rows whose norm it makes if they are few";
  let description = [{
    As `attune.linear_into`, or with `scales` as `attune.quantized_linear_into`,
    `zeros` included. Up to `few` rows it multiplies the norm of `of`, not
    rounded: that of `attune.rms_norm` or, if `centred`, `attune.layer_norm`. The
    input is not read then; of more rows it has their norm. Rounds once, at the
    end.

    Source: as `attune.linear`, `attune.rms_norm`, `attune.layer_norm`.

    Verifier rules (tests: `invalid-group.mlir`, one case per label):
    - G1: all operands are tensors and there is a result, or all are buffers and
      there is none.
    - G12: input and rows [M, K] and panels [P, K, R] give [M, N], with as many
      panels as hold N channels, twice as many if gated; the bias has N entries,
      2N if gated.
    - G13: gamma and beta have K entries, and beta is that of a centred norm; eps
      is not negative, and few not 0.
    - G14: scales are those of whole groups of bytes, of two numbers in each, or
      of floats of 8 bits.

    ```mlir
    %y = attune.normed_linear_into %n of %x gamma %g : tensor<64xbf16>
       eps 1.000000e-05 few 8, %w into %d activation <silu> gated
       : tensor<?x64xbf16>, tensor<?x64xf32>, tensor<24x64x8xbf16>,
         tensor<?x96xbf16> -> tensor<?x96xbf16>
    ```
  }];
  let arguments = (ins Attune_GroupPlace:$input, Attune_GroupPlace:$of,
                       Optional<Attune_GroupPlace>:$gamma,
                       Optional<Attune_GroupPlace>:$beta,
                       Attune_GroupPlace:$weight,
                       Optional<Attune_GroupPlace>:$scales,
                       Optional<Attune_GroupPlace>:$bias,
                       Attune_GroupPlace:$dest, UnitAttr:$centred,
                       F32Attr:$eps, DefaultValuedAttr<F32Attr, "0.0f">:$offset,
                       I64Attr:$few,
                       DefaultValuedAttr<Attune_ActivationAttr,
                                         "Activation::Identity">:$activation,
                       UnitAttr:$gated, UnitAttr:$residual,
                       OptionalAttr<F32Attr>:$scale, UnitAttr:$zeros);
  let results = (outs Optional<AnyRankedTensor>:$result);
  let assemblyFormat = [{
    $input `of` $of (`gamma` $gamma^ `:` type($gamma))?
    (`beta` $beta^ `:` type($beta))? (`centred` $centred^)? `eps` $eps
    (`offset` $offset^)? `few` $few `,` $weight
    (`scales` $scales^ `:` type($scales))? (`zeros` $zeros^)?
    (`bias` $bias^ `:` type($bias))? `into` $dest (`activation` $activation^)?
    (`gated` $gated^)? (`residual` $residual^)? (`scale` $scale^)? attr-dict
    `:` type($input) `,` type($of) `,` type($weight) `,` type($dest)
    (`->` type($result)^)?
  }];
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() {
      return getDestMutable();
    }
    bool readsDest() { return getResidual(); }
    /// Bits of a number, and columns that share a scale; 0 without scales.
    int64_t getBits();
    int64_t getGroup();
  }];
}

def Attune_ExpertTasksIntoOp : Attune_GroupOp<"expert_tasks_into"> {
  let summary = "Which rows each expert multiplies";
  let description = [{
    Slot `s = t A + a` is what token t wants of its a-th expert. Slots sorted by
    expert, those of one in their own order, have places 0, 1, ...:

    `places[s]` is the place of slot s, `from[p]` the token at place p. An expert
    e with c slots from place b on has the entries i of `tasks` with
    `floor(b / rows) + e <= i < floor((b + c) / rows) + e + 1`: the expert, first
    place `b + rows j` and number of rows, at most `rows`, of its j-th block; 0
    rows where it has no j-th block. So everyone knows where its entries are
    without knowing how many blocks the others have.

    Nothing is computed but numbers of rows.
    `tasks` has `floor(T A / rows) + experts` rows. A slot of an expert beyond
    `experts`, which is another rank's, has no place; entries left over have 0
    rows.

    Source: a counting sort; blocks of a permuted input as in MegaBlocks (Gale et
    al. 2022).

    Verifier rules (tests: `invalid-group.mlir`, one case per label):
    - G1: all operands are tensors and there are results, or all are buffers and
      there are none.
    - G6: the choice is [T, A], with A known; tasks [?, 3], from and places
      [T A], all of i64; experts and rows are positive.

    ```mlir
    %t, %f, %p = attune.expert_tasks_into %e into %a, %b, %c experts 8 rows 64
       : tensor<?x2xi64>, tensor<?x3xi64>, tensor<?xi64>, tensor<?xi64>
       -> tensor<?x3xi64>, tensor<?xi64>, tensor<?xi64>
    ```
  }];
  let arguments = (ins Attune_GroupPlace:$chosen, Attune_GroupPlace:$tasks,
                       Attune_GroupPlace:$from, Attune_GroupPlace:$places,
                       I64Attr:$experts, I64Attr:$rows);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    $chosen `into` $tasks `,` $from `,` $places `experts` $experts `rows` $rows
    attr-dict `:` type($chosen) `,` type($tasks) `,` type($from) `,`
    type($places) (`->` type($results)^)?
  }];
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() {
      return ::mlir::MutableOperandRange(*this, /*start=*/1, /*length=*/3);
    }
    bool readsDest() { return false; }
  }];
}

def Attune_LinearAttentionIntoOp : Attune_GroupOp<"linear_attention_into",
                                                  [AttrSizedOperandSegments]> {
  let summary = "attune.linear_attention into a destination";
  let description = [{
    As `attune.linear_attention`; `sums` is where the state goes that it gives.
    Heads and widths are known. Every operation rounds to f32; the result rounds
    once, at the end.

    Source: Katharopoulos et al. (2020); chunks that are summed apart as in Hua
    et al. (2022).

    Verifier rules (tests: `invalid-group.mlir`, one case per label):
    - G1: all operands are tensors and there are results, or all are buffers and
      there are none.
    - G7: heads and widths are known; queries [B, Hq, M, D], keys [B, Hkv, N, D]
      and values [B, Hkv, N, Dv] give [B, Hq, M, Dv], of as many queries as keys
      if `causal`; Hq is a multiple of Hkv.
    - G8: states are [B, Hkv, D, Dv + 1], the mask is [B|1, 1, 1, N].

    ```mlir
    %y, %s = attune.linear_attention_into %q, %k, %v <elu_plus_one> causal
       normalised 1.000000e-06 state %s0 : tensor<1x2x64x65xf32> into %d
       sums %t : tensor<1x2x64x65xf32>
       : tensor<1x8x?x64xbf16>, tensor<1x2x?x64xbf16>, tensor<1x2x?x64xbf16>,
         tensor<1x8x?x64xbf16>
       -> tensor<1x8x?x64xbf16>, tensor<1x2x64x65xf32>
    ```
  }];
  let arguments = (ins Attune_GroupPlace:$query, Attune_GroupPlace:$key,
                       Attune_GroupPlace:$value,
                       Optional<Attune_GroupPlace>:$mask,
                       Optional<Attune_GroupPlace>:$state,
                       Attune_GroupPlace:$dest,
                       Optional<Attune_GroupPlace>:$sums,
                       Attune_FeatureMapAttr:$feature_map, UnitAttr:$causal,
                       OptionalAttr<F32Attr>:$eps);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    $query `,` $key `,` $value $feature_map (`causal` $causal^)?
    (`normalised` $eps^)? (`mask` $mask^ `:` type($mask))?
    (`state` $state^ `:` type($state))? `into` $dest
    (`sums` $sums^ `:` type($sums))? attr-dict
    `:` type($query) `,` type($key) `,` type($value) `,` type($dest)
    (`->` type($results)^)?
  }];
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() {
      return ::mlir::MutableOperandRange(
          *this, getDestMutable().getOperandNumber(), getSums() ? 2 : 1);
    }
    bool readsDest() { return false; }
  }];
}

#endif // ATTUNE_GROUP_OPS_TD

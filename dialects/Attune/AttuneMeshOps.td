//===- AttuneMeshOps.td - Ranks that share a model -----------*- tablegen -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_MESH_OPS_TD
#define ATTUNE_MESH_OPS_TD

include "AttuneTypes.td"
include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

// A tensor, or the buffer that it becomes.
def Attune_MeshPlace : AnyTypeOf<[AnyRankedTensor, AnyStridedMemRef]>;

// Ranks exchange memory, so these ops stay whole until there are buffers. Only
// code that makes them or lowers them includes Attune/AttuneMeshOps.h.
class Attune_MeshOp<string mnemonic>
    : Attune_Op<mnemonic, [DestinationStyleOpInterface,
        DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
        DeclareOpInterfaceMethods<BufferizableOpInterface,
          ["bufferizesToMemoryRead", "bufferizesToMemoryWrite",
           "getAliasingValues", "bufferize"]>]>;

def Attune_RankOp : Attune_Op<"rank", [Pure]> {
  let summary = "The number of this rank among those that share the model";
  let description = [{
    `0 <= result < ranks`, and the same throughout a run. All ranks run the same
    code on tensors of the same shapes; the number says which part of the model
    is this rank's. Where several such groups of ranks share the positions of a
    sequence, `of_positions` gives the number of this rank's group.

    Nothing is computed, so nothing rounds.

    Source: `MPI_Comm_rank` of MPI.

    ```mlir
    %rank = attune.rank
    ```
    ```mlir
    %group = attune.rank of_positions
    ```
  }];
  let arguments = (ins UnitAttr:$of_positions);
  let results = (outs Index:$result);
  let assemblyFormat = "(`of_positions` $of_positions^)? attr-dict";
}

def Attune_AllReduceOp : Attune_MeshOp<"all_reduce"> {
  let summary = "The sum of a tensor over all ranks, into a destination";
  let description = [{
    `Y = X_0 + X_1 + ... + X_(ranks - 1)`, where rank r has `X_r`. With
    `accumulate` the destination's own values come first, and are the same on
    all ranks: `Y = D + X_0 + X_1 + ...`, left to right.

    With `experts` a rank gives only the rows that have an expert's number from 0
    up to `below`, exclusive: those of tokens that go to its experts. Its other
    rows are zeros and need not be sent.

    In f32, in the order of ranks: each addition rounds, and all ranks get the
    same bits from every engine.
    Source: `MPI_Allreduce` of MPI; where a transformer needs it: Shoeybi et al.
    (2019), Megatron-LM, section 3.

    Verifier rules (tests: `invalid-mesh.mlir`, one case per label):
    - C1: all operands are f32 tensors and there is a result, or all are f32
      buffers and there is none.
    - C2: input and destination have the same shape.
    - C5: experts and `below` come together; experts are i64 and have the sizes
      of the input but the last, in a tensor if that is one.

    ```mlir
    %y = attune.all_reduce %x into %d accumulate
       : tensor<?x?x64xf32>, tensor<?x?x64xf32> -> tensor<?x?x64xf32>
    ```
    ```mlir
    %y = attune.all_reduce %x experts %e below 4 : tensor<?x?x2xi64>
       into %d accumulate
       : tensor<?x?x64xf32>, tensor<?x?x64xf32> -> tensor<?x?x64xf32>
    ```
  }];
  let arguments = (ins Attune_MeshPlace:$input,
                       Optional<Attune_MeshPlace>:$experts,
                       Attune_MeshPlace:$dest, OptionalAttr<I64Attr>:$below,
                       UnitAttr:$accumulate);
  let results = (outs Optional<AnyRankedTensor>:$result);
  let assemblyFormat = [{
    $input (`experts` $experts^ `below` $below `:` type($experts))?
    `into` $dest (`accumulate` $accumulate^)? attr-dict
    `:` type($input) `,` type($dest) (`->` type($result)^)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() {
      return getDestMutable();
    }
  }];
}

def Attune_AllGatherOp : Attune_MeshOp<"all_gather"> {
  let summary = "The columns of all ranks side by side, into a destination";
  let description = [{
    `Y[..., r * C + c] = X_r[..., c]` for `c < C`, with C the `columns` that each
    rank gives and `X_r` the input of rank r, which may have more columns.
    Columns that the destination does not have are left out: the last rank may
    have fewer than the others, and pads. With `columns` zero, which it is on all
    ranks then, ranks exchange nothing and the destination stays.

    The ranks are those that share the model, or `of_positions` those with the
    same part of it, one of each group that shares positions.

    Nothing is computed, so nothing rounds.
    Source: `MPI_Allgather` of MPI.

    Verifier rules (tests: `invalid-mesh.mlir`, one case per label):
    - C1: all operands are f32 tensors and there is a result, or all are f32
      buffers and there is none.
    - C3: input and destination agree in all sizes but the last; where `columns`
      and these are known, they are at most those of either.

    ```mlir
    %y = attune.all_gather %x columns %n into %d
       : tensor<?x1x51xf32>, tensor<?x1x99xf32> -> tensor<?x1x99xf32>
    ```
    ```mlir
    %y = attune.all_gather %x of_positions columns %n into %d
       : tensor<51xf32>, tensor<?xf32> -> tensor<?xf32>
    ```
  }];
  let arguments = (ins Attune_MeshPlace:$input, Index:$columns,
                       Attune_MeshPlace:$dest, UnitAttr:$of_positions);
  let results = (outs Optional<AnyRankedTensor>:$result);
  let assemblyFormat = [{
    $input (`of_positions` $of_positions^)? `columns` $columns `into` $dest
    attr-dict
    `:` type($input) `,` type($dest) (`->` type($result)^)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() {
      return getDestMutable();
    }
  }];
}

def Attune_AllMergeOp : Attune_MeshOp<"all_merge"> {
  let summary = "Attention over the keys of all ranks, from that over each one's";
  let description = [{
    Rank r has `X_r[..., d]`, what attention over its own keys gives, and
    `L_r[...]`, the logarithm of the sum of their exponentials:

    ```
    m    = max_r L_r[...]            w_r = exp(L_r[...] - m)
    Y[..., d] = (sum_r w_r X_r[..., d]) / (sum_r w_r)
    ```

    and zeros where all `L_r` are -inf: no rank has a key that is seen. It is
    what `online_merge` makes of two states, for finished ones. The ranks are
    those with the same part of the model: one of each group that shares
    positions.

    In f32, in the order of ranks: each addition rounds, and all ranks get the
    same bits from every engine.
    Source: Dao (2023), for the logarithm; Milakov and Gimelshein (2018), for
    merging.

    Verifier rules (tests: `invalid-mesh.mlir`, one case per label):
    - C1: all operands are f32 tensors and there is a result, or all are f32
      buffers and there is none.
    - C2: input and destination have the same shape.
    - C4: lse has the shape of the input without its last dimension.

    ```mlir
    %y = attune.all_merge %x, %lse into %d
       : tensor<?x8x?x64xf32>, tensor<?x8x?xf32>, tensor<?x8x?x64xf32>
       -> tensor<?x8x?x64xf32>
    ```
  }];
  let arguments = (ins Attune_MeshPlace:$input, Attune_MeshPlace:$lse,
                       Attune_MeshPlace:$dest);
  let results = (outs Optional<AnyRankedTensor>:$result);
  let assemblyFormat = [{
    $input `,` $lse `into` $dest attr-dict
    `:` type($input) `,` type($lse) `,` type($dest) (`->` type($result)^)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() {
      return getDestMutable();
    }
  }];
}

#endif // ATTUNE_MESH_OPS_TD

//===- AttuneIntoOps.td - Products for blocks of threads -----*- tablegen -*-===//
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

// What a whole block of a GPU's threads computes together cannot be loops on
// tensors: its threads share memory that no tensor is. This stays one op until
// there are buffers, and says where its result goes.
def Attune_LinearIntoOp : Attune_Op<"linear_into",
    [DestinationStyleOpInterface,
     DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
     DeclareOpInterfaceMethods<BufferizableOpInterface,
       ["bufferizesToMemoryRead", "bufferizesToMemoryWrite",
        "getAliasingValues", "bufferize"]>]> {
  let summary = "attune.linear on rows and panels, into a destination";
  let description = [{
    As `attune.linear`: `Z[m, n] = sum_k X[m, k] W[n, k] + bias[n]`,
    `Y = act(Z)`, or `Y[m, n] = act(Z[m, n]) * Z[m, N + n]` if `gated`, then
    `Y *= scale`. With `residual` the destination's own values are added.
    Summed in f32. Rounds once, at the end.

    Source: as `attune.linear`; a destination as in linalg of MLIR.

    Verifier rules (tests: `invalid-into.mlir`, one case per label):
    - I1: all operands are tensors and there is a result, or all are buffers and
      there is none.
    - I2: rows [M, K] and panels [P, K, R] give [M, N].
    - I3: there are as many panels as hold N channels, twice as many if gated.
    - I4: the bias has N entries, 2N if gated.

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

#endif // ATTUNE_INTO_OPS_TD

//===- AttuneViewOps.td - Tokens as rows ---------------------*- tablegen -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_VIEW_OPS_TD
#define ATTUNE_VIEW_OPS_TD

include "AttuneTypes.td"
include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

// tensor.collapse_shape and expand_shape would say the same, but bufferization
// cannot tell that their operand and result are one buffer, and copies the
// residual stream of every block. These two promise it.
class Attune_ViewOp<string mnemonic>
    : Attune_Op<mnemonic, [Pure, Attune_Reify,
        DeclareOpInterfaceMethods<BufferizableOpInterface,
          ["bufferizesToMemoryRead", "bufferizesToMemoryWrite",
           "getAliasingValues", "bufferize", "getBufferType"]>]>;

def Attune_FlattenTokensOp : Attune_ViewOp<"flatten_tokens"> {
  let summary = "The tokens of all sequences as rows of one matrix";
  let description = [{
    [B, T, D] seen as [B*T, D]; the same buffer:
    `M[b * T + t, d] = X[b, t, d]`.

    Nothing is computed, so nothing rounds.
    Source: `tensor.collapse_shape` of MLIR.

    ```mlir
    %m = attune.flatten_tokens %x : tensor<?x?x768xf32> -> tensor<?x768xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$input);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let extraClassDeclaration = [{
    static ::mlir::RankedTensorType inferType(::mlir::RankedTensorType input);
  }];
}

def Attune_UnflattenTokensOp : Attune_ViewOp<"unflatten_tokens"> {
  let summary = "Rows of a matrix as the tokens of sequences";
  let description = [{
    [B*T, D] seen as [B, T, D]; the same buffer:
    `M[b * T + t, d] = X[b, t, d]`.

    Nothing is computed, so nothing rounds.
    Source: `tensor.expand_shape` of MLIR.

    ```mlir
    %y = attune.unflatten_tokens %m[%b, %t]
       : tensor<?x768xf32> -> tensor<?x?x768xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$input, Index:$batch, Index:$tokens);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $input `[` $batch `,` $tokens `]` attr-dict
    `:` type($input) `->` type($result)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

#endif // ATTUNE_VIEW_OPS_TD

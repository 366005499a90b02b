//===- Passes.td - Passes about pipelines --------------------*- tablegen -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_PIPELINES_PASSES
#define ATTUNE_PIPELINES_PASSES

include "mlir/Pass/PassBase.td"

def ExpectStage : Pass<"attune-expect-stage", "::mlir::ModuleOp"> {
  let summary = "Says which pipeline has to come before";
  let description = [{
    Needs: nothing.
    Gives: an error at the first operation that the pipeline `from` would have
    lowered, and that the pipelines behind it do not know: of `attune-to-tensor`
    an op of Attune on tensors that cannot be put in memory, of
    `attune-to-loops` a tensor, of `attune-to-vector` those and an op of Attune or
    a parallel loop. `attune-opt` runs it before these pipelines; `attune
    compile`, which has them in their order, does not.
    Keeps: everything.

    With `from=attune-to-tensor`, an error:

    ```mlir
    %y = attune.rms_norm %x gamma %g : tensor<8xf32> eps 1.0e-5 : tensor<1x?x8xf32>
    ```
  }];
  let options = [
    Option<"from", "from", "std::string", /*default=*/"\"attune-to-tensor\"",
           "The pipeline whose result is expected">];
}

#endif // ATTUNE_PIPELINES_PASSES

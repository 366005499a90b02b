//===- MaxoutOps.td - A dialect of one operation -----------*- tablegen -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

include "mlir/IR/OpBase.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def MaxoutDialect : Dialect {
  let name = "maxout";
  let cppNamespace = "::maxout";
  let summary = "What maxout layers are made of";
}

def Maxout_LargerOp : Op<MaxoutDialect, "larger",
                        [Pure, SameOperandsAndResultType]> {
  let summary = "The larger of two numbers, element by element";
  let arguments = (ins AnyRankedTensor:$lhs, AnyRankedTensor:$rhs);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($result)";
}

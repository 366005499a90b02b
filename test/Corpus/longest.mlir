// Attune 1.0 wrote the largest number of tokens as a number, later versions write
// one for each size. Products refuse larger inputs by both.

// REQUIRES: host-x86_64
// RUN: rm -rf %t && mkdir %t
// RUN: %python %test_src/Runtime/Inputs/tensors.py write %t/in old:F32:1x3=1,2,3 new:F32:1x3=1,2,3
// RUN: %python %test_src/Runtime/Inputs/tensors.py write %t/few old:F32:1x2=1,2 new:F32:1x2=1,2
// RUN: %python %test_src/Runtime/Inputs/tensors.py write %t/new old:F32:1x2=1,2 new:F32:1x3=1,2,3
// RUN: attune compile %s -o %t/model && %t/model run --inputs=%t/few --outputs=%t/out \
// RUN:   && %python %test_src/Runtime/Inputs/tensors.py show %t/out | FileCheck %s --check-prefix=FEW
// FEW: a F32 [1, 2] 2.0 4.0
// FEW: b F32 [1, 2] 2.0 4.0
// RUN: not %t/model run --inputs=%t/in --outputs=%t/out 2>&1 | FileCheck %s --check-prefix=OLD
// OLD: input 'old' has a size 'seq' of 3, but the model takes at most 2
// RUN: not %t/model run --inputs=%t/new --outputs=%t/out 2>&1 | FileCheck %s --check-prefix=NEW
// NEW: input 'new' has a size 'rows' of 3, but the model takes at most 2
module attributes {attune.name = "sums"} {
  func.func @forward(%old: tensor<1x?xf32> {attune.kind = "input", attune.name = "old", attune.shape = [1, "seq"], attune.longest = 2 : i64},
                     %new: tensor<1x?xf32> {attune.kind = "input", attune.name = "new", attune.shape = [1, "rows"], attune.longest = array<i64: 0, 2>})
      -> (tensor<1x?xf32> {attune.kind = "output", attune.name = "a", attune.shape = [1, "seq"]},
          tensor<1x?xf32> {attune.kind = "output", attune.name = "b", attune.shape = [1, "rows"]})
      attributes {attune.entry} {
    %a = arith.addf %old, %old : tensor<1x?xf32>
    %b = arith.addf %new, %new : tensor<1x?xf32>
    return %a, %b : tensor<1x?xf32>, tensor<1x?xf32>
  }
}

// RUN: attune-opt %s --attune-validate --attune-fuse-attention --split-input-file | FileCheck %s
//
// Fusing is recognising: a chain whose links nobody else reads becomes one op,
// which later becomes loops that never hold all scores at once. Validation runs
// the functions before and after; a pass that is wrong ends here.

// CHECK-LABEL: @chain(
// CHECK-NOT: attune.softmax
// CHECK: attune.attention {{.*}} scale 3.500000e-01 causal <bottom_right> window 3
func.func @chain(%q: tensor<?x4x?x8xf32>, %k: tensor<?x2x?x8xf32>, %v: tensor<?x2x?x8xf32>) -> tensor<?x4x?x8xf32> {
  %e = attune.similarity %q, %k scale 3.500000e-01
     : tensor<?x4x?x8xf32>, tensor<?x2x?x8xf32> -> tensor<?x4x?x?xf32>
  %f = attune.mask_scores %e causal <bottom_right> window 3 : tensor<?x4x?x?xf32>
  %a = attune.softmax %f : tensor<?x4x?x?xf32>
  %y = attune.weighted_sum %a, %v : tensor<?x4x?x?xf32>, tensor<?x2x?x8xf32> -> tensor<?x4x?x8xf32>
  return %y : tensor<?x4x?x8xf32>
}

// -----

// The weights are a result, so they must exist: nothing is fused. Ask with
// --attune-fuse-attention=explain-fusion why.
// CHECK-LABEL: @weights_are_read(
// CHECK: attune.softmax
// CHECK-NOT: attune.attention
func.func @weights_are_read(%q: tensor<?x4x?x8xf32>, %k: tensor<?x2x?x8xf32>, %v: tensor<?x2x?x8xf32>)
    -> (tensor<?x4x?x8xf32>, tensor<?x4x?x?xf32>) {
  %e = attune.similarity %q, %k scale 3.500000e-01
     : tensor<?x4x?x8xf32>, tensor<?x2x?x8xf32> -> tensor<?x4x?x?xf32>
  %a = attune.softmax %e : tensor<?x4x?x?xf32>
  %y = attune.weighted_sum %a, %v : tensor<?x4x?x?xf32>, tensor<?x2x?x8xf32> -> tensor<?x4x?x8xf32>
  return %y, %a : tensor<?x4x?x8xf32>, tensor<?x4x?x?xf32>
}

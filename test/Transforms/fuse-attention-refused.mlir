// RUN: attune-opt %s --attune-fuse-attention=explain-fusion --split-input-file --verify-diagnostics | FileCheck %s

// The scores escape, so fusing would compute them twice.
// CHECK-LABEL: @scores_escape(
// CHECK-NOT:     attune.attention
func.func @scores_escape(%q: tensor<1x2x4x8xf32>, %v: tensor<1x2x4x8xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x4x4xf32>) {
  %e = attune.similarity %q, %q scale 0.5 : tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32> -> tensor<1x2x4x4xf32>
  %a = attune.softmax %e : tensor<1x2x4x4xf32>
  // expected-remark @+1 {{not fused: its scores have another user}}
  %y = attune.weighted_sum %a, %v : tensor<1x2x4x4xf32>, tensor<1x2x4x8xf32> -> tensor<1x2x4x8xf32>
  // expected-note @+1 {{used here}}
  return %y, %e : tensor<1x2x4x8xf32>, tensor<1x2x4x4xf32>
}

// -----

// Two averages over the same weights.
// CHECK-LABEL: @weights_shared(
// CHECK-NOT:     attune.attention
func.func @weights_shared(%q: tensor<1x2x4x8xf32>, %v: tensor<1x2x4x8xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) {
  %e = attune.similarity %q, %q scale 0.5 : tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32> -> tensor<1x2x4x4xf32>
  %a = attune.softmax %e : tensor<1x2x4x4xf32>
  // expected-note @+2 {{used here}}
  // expected-remark @+1 {{not fused: its weights have another user}}
  %y = attune.weighted_sum %a, %v : tensor<1x2x4x4xf32>, tensor<1x2x4x8xf32> -> tensor<1x2x4x8xf32>
  // expected-note @+2 {{used here}}
  // expected-remark @+1 {{not fused: its weights have another user}}
  %z = attune.weighted_sum %a, %q : tensor<1x2x4x4xf32>, tensor<1x2x4x8xf32> -> tensor<1x2x4x8xf32>
  return %y, %z : tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>
}

// -----

// CHECK-LABEL: @switched_off(
// CHECK:         attune.weighted_sum {{.*}}attune.fusion = "off"
func.func @switched_off(%q: tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32> {
  %e = attune.similarity %q, %q scale 0.5 : tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32> -> tensor<1x2x4x4xf32>
  %a = attune.softmax %e : tensor<1x2x4x4xf32>
  // expected-remark @+1 {{not fused: attune.fusion is "off"}}
  %y = attune.weighted_sum %a, %q {attune.fusion = "off"} : tensor<1x2x4x4xf32>, tensor<1x2x4x8xf32> -> tensor<1x2x4x8xf32>
  return %y : tensor<1x2x4x8xf32>
}

// -----

// CHECK-LABEL: @weights_made_elsewhere(
// CHECK:         attune.weighted_sum
func.func @weights_made_elsewhere(%a: tensor<1x2x4x4xf32>, %v: tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32> {
  // expected-remark @+1 {{not fused: its weights come from outside the function body}}
  %y = attune.weighted_sum %a, %v : tensor<1x2x4x4xf32>, tensor<1x2x4x8xf32> -> tensor<1x2x4x8xf32>
  return %y : tensor<1x2x4x8xf32>
}

// -----

// CHECK-LABEL: @other_scores(
// CHECK:         attune.weighted_sum
func.func @other_scores(%x: tensor<1x2x4x4xf32>, %v: tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32> {
  // expected-note @+1 {{made here}}
  %e = math.absf %x : tensor<1x2x4x4xf32>
  %a = attune.softmax %e : tensor<1x2x4x4xf32>
  // expected-remark @+1 {{not fused: its scores come from math.absf, not attune.similarity}}
  %y = attune.weighted_sum %a, %v : tensor<1x2x4x4xf32>, tensor<1x2x4x8xf32> -> tensor<1x2x4x8xf32>
  return %y : tensor<1x2x4x8xf32>
}

// -----

// Heads of keys and values are grouped differently.
// CHECK-LABEL: @other_groups(
// CHECK:         attune.weighted_sum
func.func @other_groups(%q: tensor<1x4x4x8xf32>, %k: tensor<1x2x4x8xf32>, %v: tensor<1x4x4x8xf32>) -> tensor<1x4x4x8xf32> {
  // expected-note @+1 {{keys are used here}}
  %e = attune.similarity %q, %k scale 0.5 : tensor<1x4x4x8xf32>, tensor<1x2x4x8xf32> -> tensor<1x4x4x4xf32>
  %a = attune.softmax %e : tensor<1x4x4x4xf32>
  // expected-remark @+1 {{not fused: its keys have 2 heads, but its values 4}}
  %y = attune.weighted_sum %a, %v : tensor<1x4x4x4xf32>, tensor<1x4x4x8xf32> -> tensor<1x4x4x8xf32>
  return %y : tensor<1x4x4x8xf32>
}

// -----

// CHECK-LABEL: @two_causal_masks(
// CHECK:         attune.weighted_sum
func.func @two_causal_masks(%q: tensor<1x4x4x8xf32>) -> tensor<1x4x4x8xf32> {
  %e = attune.similarity %q, %q scale 0.5 : tensor<1x4x4x8xf32>, tensor<1x4x4x8xf32> -> tensor<1x4x4x4xf32>
  // expected-note @+1 {{also here}}
  %f = attune.mask_scores %e causal <top_left> : tensor<1x4x4x4xf32>
  %g = attune.mask_scores %f causal <bottom_right> window 2 : tensor<1x4x4x4xf32>
  %a = attune.softmax %g : tensor<1x4x4x4xf32>
  // expected-remark @+1 {{not fused: its scores are given a causal mask or window twice}}
  %y = attune.weighted_sum %a, %q : tensor<1x4x4x4xf32>, tensor<1x4x4x8xf32> -> tensor<1x4x4x8xf32>
  return %y : tensor<1x4x4x8xf32>
}

// -----

// CHECK-LABEL: @capped_after_bias(
// CHECK:         attune.weighted_sum
func.func @capped_after_bias(%q: tensor<1x4x4x8xf32>, %b: tensor<1x1x4x4xf32>) -> tensor<1x4x4x8xf32> {
  %e = attune.similarity %q, %q scale 0.5 : tensor<1x4x4x8xf32>, tensor<1x4x4x8xf32> -> tensor<1x4x4x4xf32>
  // expected-note @+1 {{here}}
  %f = attune.mask_scores %e bias %b : tensor<1x1x4x4xf32> : tensor<1x4x4x4xf32>
  %g = attune.mask_scores %f softcap 30.0 : tensor<1x4x4x4xf32>
  %a = attune.softmax %g : tensor<1x4x4x4xf32>
  // expected-remark @+1 {{not fused: its scores are masked or biased before the soft cap}}
  %y = attune.weighted_sum %a, %q : tensor<1x4x4x4xf32>, tensor<1x4x4x8xf32> -> tensor<1x4x4x8xf32>
  return %y : tensor<1x4x4x8xf32>
}

// -----

// Weights made once before the loop would be made anew in every turn.
// CHECK-LABEL: @hoisted_weights(
// CHECK-NOT:     attune.attention
func.func @hoisted_weights(%q: tensor<1x2x4x4xf32>, %n: index) -> tensor<1x2x4x4xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %e = attune.similarity %q, %q scale 0.5 : tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32> -> tensor<1x2x4x4xf32>
  // expected-note @+1 {{made here}}
  %a = attune.softmax %e : tensor<1x2x4x4xf32>
  %r = scf.for %i = %zero to %n step %one iter_args(%x = %q) -> tensor<1x2x4x4xf32> {
    // expected-remark @+1 {{not fused: its weights are made in another block, so that one computation may serve several turns}}
    %y = attune.weighted_sum %a, %x : tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32> -> tensor<1x2x4x4xf32>
    scf.yield %y : tensor<1x2x4x4xf32>
  }
  return %r : tensor<1x2x4x4xf32>
}

// -----

// CHECK-LABEL: @fused(
// CHECK:         attune.attention
func.func @fused(%q: tensor<1x8x4x8xf32>, %k: tensor<1x2x4x8xf32>, %b: tensor<1x1x4x4xf32>) -> tensor<1x8x4x8xf32> {
  %e = attune.similarity %q, %k scale 0.5 : tensor<1x8x4x8xf32>, tensor<1x2x4x8xf32> -> tensor<1x8x4x4xf32>
  %f = attune.mask_scores %e bias %b : tensor<1x1x4x4xf32> causal <bottom_right> window 3 softcap 30.0 : tensor<1x8x4x4xf32>
  %a = attune.softmax %f : tensor<1x8x4x4xf32>
  // expected-remark @+1 {{fused into attune.attention: 8 query heads over 2 key/value heads, causal bottom_right, window 3, softcap 30, bias}}
  %y = attune.weighted_sum %a, %k : tensor<1x8x4x4xf32>, tensor<1x2x4x8xf32> -> tensor<1x8x4x8xf32>
  return %y : tensor<1x8x4x8xf32>
}

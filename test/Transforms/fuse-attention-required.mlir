// RUN: attune-opt %s --attune-fuse-attention --split-input-file --verify-diagnostics

func.func @scores_escape(%q: tensor<1x2x4x8xf32>, %v: tensor<1x2x4x8xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x4x4xf32>) {
  %e = attune.similarity %q, %q scale 0.5 : tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32> -> tensor<1x2x4x4xf32>
  %a = attune.softmax %e : tensor<1x2x4x4xf32>
  // expected-error @+1 {{this attention has to be fused, but its scores have another user}}
  %y = attune.weighted_sum %a, %v {attune.fusion = "required"} : tensor<1x2x4x4xf32>, tensor<1x2x4x8xf32> -> tensor<1x2x4x8xf32>
  // expected-note @+1 {{used here}}
  return %y, %e : tensor<1x2x4x8xf32>, tensor<1x2x4x4xf32>
}

// -----

// Every chain that should have fused is named, not only the first.
func.func @two(%a: tensor<1x2x4x4xf32>, %v: tensor<1x2x4x8xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) {
  // expected-error @+1 {{this attention has to be fused, but its weights come from outside the function body}}
  %y = attune.weighted_sum %a, %v {attune.fusion = "required"} : tensor<1x2x4x4xf32>, tensor<1x2x4x8xf32> -> tensor<1x2x4x8xf32>
  // expected-error @+1 {{this attention has to be fused, but its weights come from outside the function body}}
  %z = attune.weighted_sum %a, %v {attune.fusion = "required"} : tensor<1x2x4x4xf32>, tensor<1x2x4x8xf32> -> tensor<1x2x4x8xf32>
  return %y, %z : tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>
}

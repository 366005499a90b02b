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

// -----

// Asked of something that is no attention.
func.func @no_weights(%q: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<4x4xf32>
  %e0 = linalg.fill ins(%zero : f32) outs(%es : tensor<4x4xf32>) -> tensor<4x4xf32>
  // expected-error @+1 {{this attention has to be fused, but its weights are not the softmax of rows of scores}}
  %y = linalg.matmul {attune.fusion = "required"} ins(%q, %q : tensor<4x4xf32>, tensor<4x4xf32>) outs(%e0 : tensor<4x4xf32>) -> tensor<4x4xf32>
  // expected-error @+1 {{this attention has to be fused, but it is not a product of weights and values}}
  %z = linalg.add {attune.fusion = "required"} ins(%y, %q : tensor<4x4xf32>, tensor<4x4xf32>) outs(%es : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %z : tensor<4x4xf32>
}

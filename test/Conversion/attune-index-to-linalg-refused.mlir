// RUN: attune-opt %s --convert-attune-index-to-linalg --verify-diagnostics

func.func @dynamic_heads(%q: tensor<1x?x4x8xf32>, %k: tensor<1x1x6x8xf32>, %w: tensor<1x4x?xf32>) -> tensor<1x4x6xf32> {
  // expected-error @+1 {{'attune.index_scores' op cannot be lowered to linalg: its number of heads has to be static}}
  %i = attune.index_scores %q, %k shares %w scale 0.5 : tensor<1x?x4x8xf32>, tensor<1x1x6x8xf32>, tensor<1x4x?xf32> -> tensor<1x4x6xf32>
  return %i : tensor<1x4x6xf32>
}

// RUN: attune-opt %s --convert-attune-ladder-to-linalg --split-input-file --verify-diagnostics

func.func @dynamic_heads(%q: tensor<1x?x4x8xf32>) -> tensor<1x?x4x4xf32> {
  // expected-error @+1 {{'attune.similarity' op cannot be lowered to linalg: its numbers of heads have to be static}}
  %e = attune.similarity %q, %q scale 0.5 : tensor<1x?x4x8xf32>, tensor<1x?x4x8xf32> -> tensor<1x?x4x4xf32>
  return %e : tensor<1x?x4x4xf32>
}

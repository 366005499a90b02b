// RUN: attune-opt %s --split-input-file --verify-diagnostics

// E1: targets have the leading sizes of the logits
func.func @e1(%x: tensor<2x5x512xf32>, %t: tensor<2x6xi64>) {
  // expected-error @+2 {{has targets size 6, but logits size 5}}
  // expected-note @-2 {{logits comes from here}}
  %l = attune.cross_entropy %x, %t ignore -100 : tensor<2x5x512xf32>, tensor<2x6xi64> -> tensor<f32>
  return
}

// -----

// E1: and are one dimension less
func.func @e1_2(%x: tensor<2x512xf32>, %t: tensor<2x6xi64>) {
  // expected-error @+1 {{has targets of 2 dimensions, but logits of 2, where there must be one more}}
  %l = attune.cross_entropy %x, %t ignore -100 : tensor<2x512xf32>, tensor<2x6xi64> -> tensor<f32>
  return
}

// RUN: attune-opt %s --split-input-file --verify-diagnostics --convert-attune-to-vector

// Kernels are made for the widths of a model.

func.func @linear(%x: tensor<?x?xf32>, %w: tensor<?x?xf32>) -> tensor<?x?xf32> {
  // expected-error@+1 {{'attune.linear' op needs static widths to become loops}}
  %y = attune.linear %x, %w : tensor<?x?xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}

// -----

func.func @norm(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
  // expected-error@+1 {{'attune.rms_norm' op needs static widths to become loops}}
  %y = attune.rms_norm %x eps 1.0e-05 : tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}

// -----

// No op stays without a word. What patterns say of it follows.
func.func @loss(%x: tensor<?x?xf32>, %t: tensor<?xi64>) -> tensor<f32> {
  // expected-warning@+2 {{'attune.cross_entropy' op does not become vector code: no pattern takes it}}
  // expected-note@+1 {{logits of rank 2 or 3 and of static width only}}
  %l = attune.cross_entropy %x, %t ignore -100 : tensor<?x?xf32>, tensor<?xi64> -> tensor<f32>
  return %l : tensor<f32>
}

// RUN: %limit-window %s --pass-pipeline='builtin.module(example-limit-window{window=4})' | FileCheck %s

// CHECK-LABEL: @causal(
// CHECK:         attune.attention {{.*}} causal <bottom_right> window 4
func.func @causal(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x6x64xf32>, %v: tensor<1x2x6x64xf32>) -> tensor<1x8x4x64xf32> {
  %r = attune.attention %q, %k, %v scale 1.250000e-01 causal <bottom_right>
     : tensor<1x8x4x64xf32>, tensor<1x2x6x64xf32>, tensor<1x2x6x64xf32> -> tensor<1x8x4x64xf32>
  return %r : tensor<1x8x4x64xf32>
}

// An encoder sees everything, before and after.
// CHECK-LABEL: @encoder(
// CHECK:         attune.attention
// CHECK-NOT:     window
func.func @encoder(%q: tensor<1x8x6x64xf32>, %k: tensor<1x8x6x64xf32>, %v: tensor<1x8x6x64xf32>) -> tensor<1x8x6x64xf32> {
  %r = attune.attention %q, %k, %v scale 1.250000e-01
     : tensor<1x8x6x64xf32>, tensor<1x8x6x64xf32>, tensor<1x8x6x64xf32> -> tensor<1x8x6x64xf32>
  return %r : tensor<1x8x6x64xf32>
}

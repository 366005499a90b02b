// RUN: attune-opt %s --pass-pipeline="builtin.module(convert-attune-to-gpu)" --split-input-file --verify-diagnostics

func.func @tensors(%q: tensor<1x8x?x64xf32>, %d: tensor<1x8x?x64xf32>) -> tensor<1x8x?x64xf32> {
  // expected-error @+1 {{'attune.attention_into' op is not bufferized}}
  %r = attune.attention_into %q, %q, %q scale 0.125 into %d : tensor<1x8x?x64xf32>, tensor<1x8x?x64xf32>, tensor<1x8x?x64xf32>, tensor<1x8x?x64xf32> -> tensor<1x8x?x64xf32>
  return %r : tensor<1x8x?x64xf32>
}

// -----

func.func @wide(%q: memref<1x8x?x704xf32>, %d: memref<1x8x?x704xf32>) {
  // expected-error @+1 {{has heads wider than 640}}
  attune.attention_into %q, %q, %q scale 0.125 into %d : memref<1x8x?x704xf32>, memref<1x8x?x704xf32>, memref<1x8x?x704xf32>, memref<1x8x?x704xf32>
  return
}

// -----

func.func @blocks(%q: memref<1x8x?x64xf32>, %m: memref<1x1x?x?xi1>, %d: memref<1x8x?x64xf32>) {
  // expected-error @+1 {{has a mask of blocks in which no tile lies}}
  attune.attention_into %q, %q, %q scale 0.125 blocks %m of [20, 64] : memref<1x1x?x?xi1> into %d : memref<1x8x?x64xf32>, memref<1x8x?x64xf32>, memref<1x8x?x64xf32>, memref<1x8x?x64xf32>
  return
}

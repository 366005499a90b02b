// RUN: attune-opt %s --convert-attune-to-amx --split-input-file --verify-diagnostics

func.func @tensors(%x: tensor<16x32xbf16>, %w: tensor<1x16x32xbf16>, %d: tensor<16x16xf32>) -> tensor<16x16xf32> {
  // expected-error @+1 {{is not bufferized}}
  %y = attune.linear_into %x, %w into %d : tensor<16x32xbf16>, tensor<1x16x32xbf16>, tensor<16x16xf32> -> tensor<16x16xf32>
  return %y : tensor<16x16xf32>
}

// -----

func.func @activation(%x: memref<16x32xbf16>, %w: memref<1x16x32xbf16>, %d: memref<16x16xf32>) {
  // expected-error @+1 {{is more than a sum of products, which is all that tiles hold}}
  attune.linear_into %x, %w into %d activation <silu> : memref<16x32xbf16>, memref<1x16x32xbf16>, memref<16x16xf32>
  return
}

// -----

func.func @single(%x: memref<16x32xbf16>, %w: memref<1x32x16xbf16>, %d: memref<16x16xf32>) {
  // expected-error @+1 {{is no product of bf16 in pairs, added in f32, nor of bytes in quads}}
  attune.linear_into %x, %w into %d : memref<16x32xbf16>, memref<1x32x16xbf16>, memref<16x16xf32>
  return
}

// -----

func.func @rounded(%x: memref<16x32xbf16>, %w: memref<1x16x32xbf16>, %d: memref<16x16xbf16>) {
  // expected-error @+1 {{is no product of bf16 in pairs, added in f32, nor of bytes in quads}}
  attune.linear_into %x, %w into %d : memref<16x32xbf16>, memref<1x16x32xbf16>, memref<16x16xbf16>
  return
}

// -----

func.func @rows(%x: memref<8x32xbf16>, %w: memref<1x16x32xbf16>, %d: memref<8x16xf32>) {
  // expected-error @+1 {{has other sizes than one block of tiles}}
  attune.linear_into %x, %w into %d : memref<8x32xbf16>, memref<1x16x32xbf16>, memref<8x16xf32>
  return
}

// -----

func.func @unknown_rows(%x: memref<?x32xbf16>, %w: memref<1x16x32xbf16>, %d: memref<?x16xf32>) {
  // expected-error @+1 {{has other sizes than one block of tiles}}
  attune.linear_into %x, %w into %d : memref<?x32xbf16>, memref<1x16x32xbf16>, memref<?x16xf32>
  return
}

// -----

func.func @panels(%x: memref<16x32xbf16>, %w: memref<2x16x32xbf16>, %d: memref<16x32xf32>) {
  // expected-error @+1 {{has other sizes than one block of tiles}}
  attune.linear_into %x, %w into %d : memref<16x32xbf16>, memref<2x16x32xbf16>, memref<16x32xf32>
  return
}

// -----

func.func @shallow(%x: memref<16x30xbf16>, %w: memref<1x15x32xbf16>, %d: memref<16x16xf32>) {
  // expected-error @+1 {{has other sizes than one block of tiles}}
  attune.linear_into %x, %w into %d : memref<16x30xbf16>, memref<1x15x32xbf16>, memref<16x16xf32>
  return
}

// -----

func.func @gaps(%x: memref<16x32xbf16, strided<[64, 2]>>, %w: memref<1x16x32xbf16>, %d: memref<16x16xf32>) {
  // expected-error @+1 {{has rows with gaps between their elements}}
  attune.linear_into %x, %w into %d : memref<16x32xbf16, strided<[64, 2]>>, memref<1x16x32xbf16>, memref<16x16xf32>
  return
}

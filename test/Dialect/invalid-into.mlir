// RUN: attune-opt %s --split-input-file --verify-diagnostics

// I1: tensors give a tensor
func.func @i1(%x: tensor<4x64xf32>, %w: tensor<2x64x8xbf16>, %d: tensor<4x16xf32>) {
  // expected-error @+1 {{'attune.linear_into' op writes a tensor and gives none}}
  attune.linear_into %x, %w into %d : tensor<4x64xf32>, tensor<2x64x8xbf16>, tensor<4x16xf32>
  return
}

// -----

// I1: buffers give none
func.func @i1_buffer(%x: memref<4x64xf32>, %w: memref<2x64x8xbf16>, %d: memref<4x16xf32>) {
  // expected-error @+1 {{writes a buffer and gives a tensor}}
  %y = attune.linear_into %x, %w into %d : memref<4x64xf32>, memref<2x64x8xbf16>, memref<4x16xf32> -> tensor<4x16xf32>
  return
}

// -----

// I1: not both
func.func @i1_mixed(%x: memref<4x64xf32>, %w: memref<2x64x8xbf16>, %d: tensor<4x16xf32>) {
  // expected-error @+1 {{has both tensors and buffers as operands}}
  %y = attune.linear_into %x, %w into %d : memref<4x64xf32>, memref<2x64x8xbf16>, tensor<4x16xf32> -> tensor<4x16xf32>
  return
}

// -----

// I2: the panels' depth
func.func @i2(%x: tensor<4x32xf32>, %w: tensor<2x64x8xbf16>, %d: tensor<4x16xf32>) {
  // expected-error @+1 {{has 32 columns where it takes 64}}
  %y = attune.linear_into %x, %w into %d : tensor<4x32xf32>, tensor<2x64x8xbf16>, tensor<4x16xf32> -> tensor<4x16xf32>
  return
}

// -----

// I2: as many rows
func.func @i2_rows(%x: tensor<5x64xf32>, %w: tensor<2x64x8xbf16>, %d: tensor<4x16xf32>) {
  // expected-error @+1 {{has 5 rows where it takes 4}}
  %y = attune.linear_into %x, %w into %d : tensor<5x64xf32>, tensor<2x64x8xbf16>, tensor<4x16xf32> -> tensor<4x16xf32>
  return
}

// -----

// I2: a matrix
func.func @i2_rank(%x: tensor<4x4x64xf32>, %w: tensor<2x64x8xbf16>, %d: tensor<4x16xf32>) {
  // expected-error @+1 {{has an input of rank 3, not 2}}
  %y = attune.linear_into %x, %w into %d : tensor<4x4x64xf32>, tensor<2x64x8xbf16>, tensor<4x16xf32> -> tensor<4x16xf32>
  return
}

// -----

// I3: panels of gate and up
func.func @i3(%x: tensor<4x64xf32>, %w: tensor<3x64x8xbf16>, %d: tensor<4x16xf32>) {
  // expected-error @+1 {{has 3 panels where it takes 4}}
  %y = attune.linear_into %x, %w into %d gated : tensor<4x64xf32>, tensor<3x64x8xbf16>, tensor<4x16xf32> -> tensor<4x16xf32>
  return
}

// -----

// I4: an entry for each channel
func.func @i4(%x: tensor<4x64xf32>, %w: tensor<2x64x8xbf16>, %b: tensor<8xbf16>, %d: tensor<4x16xf32>) {
  // expected-error @+1 {{has 8 entries of bias where it takes 16}}
  %y = attune.linear_into %x, %w bias %b : tensor<8xbf16> into %d : tensor<4x64xf32>, tensor<2x64x8xbf16>, tensor<4x16xf32> -> tensor<4x16xf32>
  return
}

// -----

// I5: floats of bytes
func.func @i5(%x: tensor<4x64xi8>, %w: tensor<2x16x32xi8>, %d: tensor<4x16xf32>) {
  // expected-error @+1 {{has bytes, but is no plain product of bytes in quads that gives i32}}
  %y = attune.linear_into %x, %w into %d : tensor<4x64xi8>, tensor<2x16x32xi8>, tensor<4x16xf32> -> tensor<4x16xf32>
  return
}

// -----

// I5: bytes that are no quads
func.func @i5_columns(%x: tensor<4x64xi8>, %w: tensor<2x64x8xi8>, %d: tensor<4x16xi32>) {
  // expected-error @+1 {{has bytes, but is no plain product of bytes in quads that gives i32}}
  %y = attune.linear_into %x, %w into %d : tensor<4x64xi8>, tensor<2x64x8xi8>, tensor<4x16xi32> -> tensor<4x16xi32>
  return
}

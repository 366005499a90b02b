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

// -----

// J1: tensors give a tensor
func.func @j1(%x: tensor<4x64xf32>, %w: tensor<2x8x32xi8>, %t: tensor<2x2x8xf16>, %d: tensor<4x16xf32>) {
  // expected-error @+1 {{'attune.quantized_linear_into' op writes a tensor and gives none}}
  attune.quantized_linear_into %x, %w scales %t into %d : tensor<4x64xf32>, tensor<2x8x32xi8>, tensor<2x2x8xf16>, tensor<4x16xf32>
  return
}

// -----

// J2: rows as long as those of the panels
func.func @j2(%x: tensor<4x48xf32>, %w: tensor<2x8x32xi8>, %t: tensor<2x2x8xf16>, %d: tensor<4x16xf32>) {
  // expected-error @+1 {{takes panels of bytes, four columns or eight of 4 bits to a row, for rows of floats as long}}
  %y = attune.quantized_linear_into %x, %w scales %t into %d : tensor<4x48xf32>, tensor<2x8x32xi8>, tensor<2x2x8xf16>, tensor<4x16xf32> -> tensor<4x16xf32>
  return
}

// -----

// J2: whole groups
func.func @j2_groups(%x: tensor<4x64xf32>, %w: tensor<2x8x32xi8>, %t: tensor<2x3x8xf16>, %d: tensor<4x16xf32>) {
  // expected-error @+1 {{has scales of no whole groups}}
  %y = attune.quantized_linear_into %x, %w scales %t into %d : tensor<4x64xf32>, tensor<2x8x32xi8>, tensor<2x3x8xf16>, tensor<4x16xf32> -> tensor<4x16xf32>
  return
}

// -----

// J2: a zero point beside each scale
func.func @j2_zeros(%x: tensor<4x64xf32>, %w: tensor<2x8x32xi8>, %t: tensor<2x1x8xf16>, %d: tensor<4x16xf32>) {
  // expected-error @+1 {{has scales of no whole groups}}
  %y = attune.quantized_linear_into %x, %w scales %t zeros into %d : tensor<4x64xf32>, tensor<2x8x32xi8>, tensor<2x1x8xf16>, tensor<4x16xf32> -> tensor<4x16xf32>
  return
}

// -----

// J2: scales of every panel
func.func @j2_panels(%x: tensor<4x64xf32>, %w: tensor<2x8x32xi8>, %t: tensor<1x2x8xf16>, %d: tensor<4x16xf32>) {
  // expected-error @+1 {{has 1 panels of scales where it takes 2}}
  %y = attune.quantized_linear_into %x, %w scales %t into %d : tensor<4x64xf32>, tensor<2x8x32xi8>, tensor<1x2x8xf16>, tensor<4x16xf32> -> tensor<4x16xf32>
  return
}

// -----

// J3: panels of gate and up
func.func @j3(%x: tensor<4x64xf32>, %w: tensor<2x8x32xi8>, %t: tensor<2x2x8xf16>, %d: tensor<4x16xf32>) {
  // expected-error @+1 {{has 2 panels where it takes 4}}
  %y = attune.quantized_linear_into %x, %w scales %t into %d gated : tensor<4x64xf32>, tensor<2x8x32xi8>, tensor<2x2x8xf16>, tensor<4x16xf32> -> tensor<4x16xf32>
  return
}

// -----

// J4: an entry for each channel
func.func @j4(%x: tensor<4x64xf32>, %w: tensor<2x8x32xi8>, %t: tensor<2x2x8xf16>, %b: tensor<8xf32>, %d: tensor<4x16xf32>) {
  // expected-error @+1 {{has 8 entries of bias where it takes 16}}
  %y = attune.quantized_linear_into %x, %w scales %t bias %b : tensor<8xf32> into %d : tensor<4x64xf32>, tensor<2x8x32xi8>, tensor<2x2x8xf16>, tensor<4x16xf32> -> tensor<4x16xf32>
  return
}

// -----

// J5: floats have 4 bits
func.func @j5(%x: tensor<4x64xf32>, %w: tensor<2x16x32xi8>, %t: tensor<2x2x8xf8E8M0FNU>, %d: tensor<4x16xf32>) {
  // expected-error @+1 {{has scales of floats of 4 bits, but other numbers}}
  %y = attune.quantized_linear_into %x, %w scales %t into %d : tensor<4x64xf32>, tensor<2x16x32xi8>, tensor<2x2x8xf8E8M0FNU>, tensor<4x16xf32> -> tensor<4x16xf32>
  return
}

// -----

// J5: scales of floats of 8 bits
func.func @j5_2(%x: tensor<4x64xf32>, %w: tensor<2x16x32xf8E4M3FN>, %t: tensor<2x2x8xf16>, %d: tensor<4x16xf32>) {
  // expected-error @+1 {{has floats of 8 bits, whose scales are f32 without zeros}}
  %y = attune.quantized_linear_into %x, %w scales %t into %d : tensor<4x64xf32>, tensor<2x16x32xf8E4M3FN>, tensor<2x2x8xf16>, tensor<4x16xf32> -> tensor<4x16xf32>
  return
}

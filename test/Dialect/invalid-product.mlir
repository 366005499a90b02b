// RUN: attune-opt %s --split-input-file --verify-diagnostics

// T1: tensors or buffers
func.func @t1(%x: memref<?x64xf32>, %w: tensor<4x64x16xf32>, %d: tensor<?x?xf32>, %i: index) {
  // expected-error @+1 {{'attune.packed_product' op has both tensors and buffers as operands}}
  %y = attune.packed_product %x[%i], %w[%i, %i] of 64 tile [6, 1] outs(%d : tensor<?x?xf32>) : memref<?x64xf32>, tensor<4x64x16xf32> -> tensor<?x?xf32>
  return
}

// -----

// M1: equally deep
func.func @m1(%x: tensor<?x64xf32>, %w: tensor<4x32x16xf32>, %d: tensor<?x?xf32>, %i: index) {
  // expected-error @+1 {{has panels of 32 inputs, but rows of 64}}
  %y = attune.packed_product %x[%i], %w[%i, %i] of 64 tile [6, 1] outs(%d : tensor<?x?xf32>) : tensor<?x64xf32>, tensor<4x32x16xf32> -> tensor<?x?xf32>
  return
}

// -----

// M1: known
func.func @m1_known(%x: tensor<?x?xf32>, %w: tensor<4x64x16xf32>, %d: tensor<?x?xf32>, %i: index) {
  // expected-error @+1 {{has rows or panels whose sizes are not known}}
  %y = attune.packed_product %x[%i], %w[%i, %i] of 64 tile [6, 1] outs(%d : tensor<?x?xf32>) : tensor<?x?xf32>, tensor<4x64x16xf32> -> tensor<?x?xf32>
  return
}

// -----

// M2: as many panels
// expected-note @+1 {{weight comes from here}}
func.func @m2(%x: tensor<?x64xf32>, %w: tensor<4x64x16xf32>, %d: tensor<?x?xf32>, %i: index) {
  // expected-error @+1 {{has weight panels 4, but 65 channels take 5}}
  %y = attune.packed_product %x[%i], %w[%i, %i] of 65 tile [6, 1] outs(%d : tensor<?x?xf32>) : tensor<?x64xf32>, tensor<4x64x16xf32> -> tensor<?x?xf32>
  return
}

// -----

// M2: twice if gated
// expected-note @+1 {{weight comes from here}}
func.func @m2_gated(%x: tensor<?x64xf32>, %w: tensor<4x64x16xf32>, %d: tensor<?x?xf32>, %i: index) {
  // expected-error @+1 {{has weight panels 4, but 64 channels take 8}}
  %y = attune.packed_product %x[%i], %w[%i, %i] of 64 gated tile [6, 1] outs(%d : tensor<?x?xf32>) : tensor<?x64xf32>, tensor<4x64x16xf32> -> tensor<?x?xf32>
  return
}

// -----

// M3: entries of the bias
// expected-note @+1 {{bias comes from here}}
func.func @m3(%x: tensor<?x64xf32>, %w: tensor<4x64x16xf32>, %d: tensor<?x?xf32>, %i: index, %b: tensor<63xf32>) {
  // expected-error @+1 {{has bias entries 63, but the matrix has rows 64}}
  %y = attune.packed_product %x[%i], %w[%i, %i] of 64 bias %b : tensor<63xf32> tile [6, 1] outs(%d : tensor<?x?xf32>) : tensor<?x64xf32>, tensor<4x64x16xf32> -> tensor<?x?xf32>
  return
}

// -----

// M4: bytes have scales
func.func @m4(%x: tensor<?x64xf32>, %w: tensor<4x16x64xi8>, %d: tensor<?x?xf32>, %i: index) {
  // expected-error @+1 {{multiplies bytes by bytes with scales of both, numbers by bytes with scales, or numbers without}}
  %y = attune.packed_product %x[%i], %w[%i, %i] of 64 tile [6, 1] outs(%d : tensor<?x?xf32>) : tensor<?x64xf32>, tensor<4x16x64xi8> -> tensor<?x?xf32>
  return
}

// -----

// M4: whole groups
func.func @m4_groups(%x: tensor<?x64xi8>, %w: tensor<4x16x64xi8>, %d: tensor<?x?xf32>, %i: index, %s: tensor<?x3xf32>, %n: tensor<?x3xi32>, %t: tensor<4x3x16xf32>) {
  // expected-error @+1 {{has 3 weight scales for rows of 64, which are no equal groups}}
  %y = attune.packed_product %x[%i], %w[%i, %i] of 64 scales %s, %n, %t : tensor<?x3xf32>, tensor<?x3xi32>, tensor<4x3x16xf32> tile [6, 1] outs(%d : tensor<?x?xf32>) : tensor<?x64xi8>, tensor<4x16x64xi8> -> tensor<?x?xf32>
  return
}

// -----

// M4: as many as the rows have
// expected-note @+1 {{input scales comes from here}}
func.func @m4_pairs(%x: tensor<?x64xi8>, %w: tensor<4x16x64xi8>, %d: tensor<?x?xf32>, %i: index, %s: tensor<?x2xf32>, %n: tensor<?x2xi32>, %t: tensor<4x2x16xf32>) {
  // expected-error @+1 {{has input scales groups 2, but the weight has groups 1}}
  %y = attune.packed_product %x[%i], %w[%i, %i] of 64 scales %s, %n, %t : tensor<?x2xf32>, tensor<?x2xi32>, tensor<4x2x16xf32> zeros tile [6, 1] outs(%d : tensor<?x?xf32>) : tensor<?x64xi8>, tensor<4x16x64xi8> -> tensor<?x?xf32>
  return
}

// -----

// M5: a tile
func.func @m5(%x: tensor<?x64xf32>, %w: tensor<4x64x16xf32>, %d: tensor<?x?xf32>, %i: index) {
  // expected-error @+1 {{needs a tile of some rows and of 1 or 2 panels}}
  %y = attune.packed_product %x[%i], %w[%i, %i] of 64 tile [6, 3] outs(%d : tensor<?x?xf32>) : tensor<?x64xf32>, tensor<4x64x16xf32> -> tensor<?x?xf32>
  return
}

// -----

// M6: parts of plain sums
func.func @m6(%x: tensor<?x64xf32>, %w: tensor<4x64x16xf32>, %d: tensor<?x?xf32>, %i: index) {
  // expected-error @+1 {{is in parts, which only sums of numbers that are not gated, in a destination of f32, can be}}
  %y = attune.packed_product %x[%i], %w[%i, %i] of 32 part %i of %i gated tile [6, 1] outs(%d : tensor<?x?xf32>) : tensor<?x64xf32>, tensor<4x64x16xf32> -> tensor<?x?xf32>
  return
}

// -----

// M7: scales of rows
func.func @m7(%x: tensor<?x64xf32>, %w: tensor<4x64x16xf32>, %d: tensor<?x?xf32>, %i: index, %r: tensor<?xf32>) {
  // expected-error @+1 {{has row_scales without rms_eps}}
  %y = attune.packed_product %x[%i], %w[%i, %i] of 64 row_scales %r : tensor<?xf32> tile [6, 1] outs(%d : tensor<?x?xf32>) : tensor<?x64xf32>, tensor<4x64x16xf32> -> tensor<?x?xf32>
  return
}

// -----

// M7: not negative
func.func @m7_negative(%x: tensor<?x64xf32>, %w: tensor<4x64x16xf32>, %d: tensor<?x?xf32>, %i: index) {
  // expected-error @+1 {{has a negative rms_eps}}
  %y = attune.packed_product %x[%i], %w[%i, %i] of 64 rms_eps -1.0 tile [6, 1] outs(%d : tensor<?x?xf32>) : tensor<?x64xf32>, tensor<4x64x16xf32> -> tensor<?x?xf32>
  return
}

// -----

// M7: of many rows
func.func @m7_many(%x: tensor<?x64xf32>, %w: tensor<4x64x16xf32>, %d: tensor<?x?xf32>, %i: index) {
  // expected-error @+1 {{needs row_scales: its rows may be more than a tile}}
  %y = attune.packed_product %x[%i], %w[%i, %i] of 64 rms_eps 1.0e-5 tile [6, 1] outs(%d : tensor<?x?xf32>) : tensor<?x64xf32>, tensor<4x64x16xf32> -> tensor<?x?xf32>
  return
}

// -----

// M8: the rest
func.func @m8(%x: tensor<?x64xf32>, %w: tensor<4x64x16xf32>, %d: tensor<?x?xf32>, %i: index, %r: tensor<?x64xbf16>) {
  // expected-error @+1 {{has a rest of another type than its input}}
  %y = attune.packed_product %x[%i], %w[%i, %i] of 64 rest %r[%i] : tensor<?x64xbf16> tile [6, 1] outs(%d : tensor<?x?xf32>) : tensor<?x64xf32>, tensor<4x64x16xf32> -> tensor<?x?xf32>
  return
}

// -----

// M9: a matrix of a stack
func.func @m9(%x: tensor<?x64xf32>, %w: tensor<4x64x16xf32>, %d: tensor<?x?xf32>, %i: index) {
  // expected-error @+1 {{takes a matrix of what is no stack}}
  %y = attune.packed_product %x[%i], %w[%i, %i] of 64 matrix %i tile [6, 1] outs(%d : tensor<?x?xf32>) : tensor<?x64xf32>, tensor<4x64x16xf32> -> tensor<?x?xf32>
  return
}

// -----

// M9: which one
func.func @m9_stack(%x: tensor<?x64xf32>, %w: tensor<2x4x64x16xf32>, %d: tensor<?x?xf32>, %i: index) {
  // expected-error @+1 {{does not say which matrix of a stack}}
  %y = attune.packed_product %x[%i], %w[%i, %i] of 64 tile [6, 1] outs(%d : tensor<?x?xf32>) : tensor<?x64xf32>, tensor<2x4x64x16xf32> -> tensor<?x?xf32>
  return
}

// -----

// M9: what comes next
func.func @m9_next(%x: tensor<?x64xf32>, %w: tensor<4x64x16xf32>, %d: tensor<?x?xf32>, %i: index) {
  // expected-error @+1 {{prefetches from a matrix without a panel, or without a stack}}
  %y = attune.packed_product %x[%i], %w[%i, %i] of 64 tile [6, 1] prefetch %i next_matrix %i outs(%d : tensor<?x?xf32>) : tensor<?x64xf32>, tensor<4x64x16xf32> -> tensor<?x?xf32>
  return
}

// -----

// M9: rows in an order, as they are
func.func @m9_order(%x: tensor<?x64xf32>, %w: tensor<4x64x16xf32>, %o: tensor<?xi64>, %d: tensor<?x?xf32>, %i: index) {
  // expected-error @+1 {{takes a matrix of a stack, or rows in an order, which cannot be in parts, normalised, or have a rest}}
  %y = attune.packed_product %x[%i], %w[%i, %i] of 64 by %o : tensor<?xi64> part %i of %i tile [6, 1] outs(%d : tensor<?x?xf32>) : tensor<?x64xf32>, tensor<4x64x16xf32> -> tensor<?x?xf32>
  return
}

// -----

// M10: limits of gates
func.func @m10(%x: tensor<?x64xf32>, %w: tensor<4x64x16xf32>, %d: tensor<?x?xf32>, %i: index) {
  // expected-error @+1 {{has a limit or an offset of up, which belong to a gated product}}
  %y = attune.packed_product %x[%i], %w[%i, %i] of 64 limit 7.0 tile [6, 1] outs(%d : tensor<?x?xf32>) : tensor<?x64xf32>, tensor<4x64x16xf32> -> tensor<?x?xf32>
  return
}

// -----

// M10: positive ones
func.func @m10_positive(%x: tensor<?x64xf32>, %w: tensor<8x64x16xf32>, %d: tensor<?x?xf32>, %i: index) {
  // expected-error @+1 {{has a limit that is not positive}}
  %y = attune.packed_product %x[%i], %w[%i, %i] of 64 gated limit 0.0 tile [6, 1] outs(%d : tensor<?x?xf32>) : tensor<?x64xf32>, tensor<8x64x16xf32> -> tensor<?x?xf32>
  return
}

// -----

// M11: as many rows as registers have room for
func.func @m11(%x: tensor<?x64xf32>, %w: tensor<4x64x16xf32>, %o: tensor<?xi64>, %d: tensor<7x?xf32>, %i: index) {
  // expected-error @+1 {{has 7 rows in a tile of 6}}
  %y = attune.packed_product %x[%i], %w[%i, %i] of 64 tile [6, 1] rows %i of %i outs(%d : tensor<7x?xf32>) : tensor<?x64xf32>, tensor<4x64x16xf32> -> tensor<7x?xf32>
  return
}

// -----

// M11: all rows of a whole tile
func.func @m11_whole(%x: tensor<?x64xf32>, %w: tensor<4x64x16xf32>, %o: tensor<?xi64>, %d: tensor<?x?xf32>, %i: index) {
  // expected-error @+1 {{is a whole tile without all of its rows}}
  %y = attune.packed_product %x[%i], %w[%i, %i] of 64 tile [6, 1] rows %i of %i whole outs(%d : tensor<?x?xf32>) : tensor<?x64xf32>, tensor<4x64x16xf32> -> tensor<?x?xf32>
  return
}

// -----

// M11: rows as they are
func.func @m11_order(%x: tensor<?x64xf32>, %w: tensor<4x64x16xf32>, %o: tensor<?xi64>, %d: tensor<6x?xf32>, %i: index) {
  // expected-error @+1 {{is a tile of rows in an order, or in parts}}
  %y = attune.packed_product %x[%i], %w[%i, %i] of 64 by %o : tensor<?xi64> tile [6, 1] rows %i of %i outs(%d : tensor<6x?xf32>) : tensor<?x64xf32>, tensor<4x64x16xf32> -> tensor<6x?xf32>
  return
}

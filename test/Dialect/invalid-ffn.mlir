// RUN: attune-opt %s --split-input-file --verify-diagnostics

// L1: input width is the weight's depth
// expected-note @+1 {{weight comes from here}}
func.func @l1(%x: tensor<?x64xf32>, %w: tensor<96x32xf32>) {
  // expected-error @+1 {{'attune.linear' op has input width 64, but weight depth 32}}
  %y = attune.linear %x, %w : tensor<?x64xf32>, tensor<96x32xf32> -> tensor<?x96xf32>
  return
}

// -----

// L2: one row of the weight for each output
// expected-note @+1 {{weight comes from here}}
func.func @l2(%x: tensor<?x64xf32>, %w: tensor<96x64xf32>) {
  // expected-error @+1 {{has weight rows 96, but the result takes rows 64}}
  %y = attune.linear %x, %w : tensor<?x64xf32>, tensor<96x64xf32> -> tensor<?x64xf32>
  return
}

// -----

// L2: two if gated
// expected-note @+1 {{weight comes from here}}
func.func @l2_2(%x: tensor<?x64xf32>, %w: tensor<96x64xf32>) {
  // expected-error @+1 {{has weight rows 96, but a gated result takes rows 192}}
  %y = attune.linear %x, %w gated : tensor<?x64xf32>, tensor<96x64xf32> -> tensor<?x96xf32>
  return
}

// -----

// L2: in panels
// expected-note @+1 {{weight comes from here}}
func.func @l2_3(%x: tensor<?x64xf32>, %w: tensor<4x64x32xf32>) {
  // expected-error @+1 {{has weight panels 4, but the result takes rows 96: panels of 32 to hold them are 3}}
  %y = attune.linear %x, %w : tensor<?x64xf32>, tensor<4x64x32xf32> -> tensor<?x96xf32>
  return
}

// -----

// L2: each half in panels of its own
// expected-note @+1 {{weight comes from here}}
func.func @l2_4(%x: tensor<?x64xf32>, %w: tensor<3x64x32xf32>) {
  // expected-error @+1 {{has weight panels 3, but a gated result takes rows 96: panels of 32 to hold them are 4}}
  %y = attune.linear %x, %w gated : tensor<?x64xf32>, tensor<3x64x32xf32> -> tensor<?x48xf32>
  return
}

// -----

// L2: halves of an odd number
func.func @l2_5(%x: tensor<?x64xf32>, %w: tensor<7x64xf32>) {
  // expected-error @+1 {{is gated, but its weight has 7 rows, which are no two halves}}
  %y = attune.linear %x, %w gated : tensor<?x64xf32>, tensor<7x64xf32> -> tensor<?x?xf32>
  return
}

// -----

// L3: bias has an entry for each row
// expected-note @+1 {{bias comes from here}}
func.func @l3(%x: tensor<?x64xf32>, %w: tensor<96x64xf32>, %b: tensor<64xf32>) {
  // expected-error @+1 {{has bias entries 64, but the matrix has rows 96}}
  %y = attune.linear %x, %w bias %b : tensor<64xf32> : tensor<?x64xf32>, tensor<96x64xf32> -> tensor<?x96xf32>
  return
}

// -----

// L4: residual has the result's type
// expected-note @+1 {{residual comes from here}}
func.func @l4(%x: tensor<?x64xf32>, %w: tensor<96x64xf32>, %b: tensor<4x96xf32>) {
  // expected-error @+1 {{has residual of type 'tensor<4x96xf32>', but a result of type 'tensor<?x96xf32>'}}
  %y = attune.linear %x, %w residual %b : tensor<4x96xf32> : tensor<?x64xf32>, tensor<96x64xf32> -> tensor<?x96xf32>
  return
}

// -----

// L5: leading dimensions agree
// expected-note @+1 {{input comes from here}}
func.func @l5(%x: tensor<3x64xf32>, %w: tensor<96x64xf32>) {
  // expected-error @+1 {{has result size 4, but input size 3}}
  %y = attune.linear %x, %w : tensor<3x64xf32>, tensor<96x64xf32> -> tensor<4x96xf32>
  return
}

// -----

// L5: and their number
func.func @l5_2(%x: tensor<3x64xf32>, %w: tensor<96x64xf32>) {
  // expected-error @+1 {{has result of rank 3, but input of rank 2}}
  %y = attune.linear %x, %w : tensor<3x64xf32>, tensor<96x64xf32> -> tensor<1x3x96xf32>
  return
}

// -----

// L7: nothing negative is added to squares
func.func @l7(%x: tensor<3x64xf32>, %w: tensor<6x64xf32>) {
  // expected-error @+1 {{has a negative rms_eps, -1.000000e-01}}
  %y = attune.linear %x, %w rms_eps -0.1 : tensor<3x64xf32>, tensor<6x64xf32> -> tensor<3x6xf32>
  return
}

// -----

// L6: pairs multiply bf16 or f32
func.func @l6(%x: tensor<3x64xf16>, %w: tensor<6x32x32xbf16>) {
  // expected-error @+1 {{has a weight in pairs, which multiplies bf16 or f32, but an input of 'f16'}}
  %y = attune.linear %x, %w : tensor<3x64xf16>, tensor<6x32x32xbf16> -> tensor<3x96xf32>
  return
}

// -----

// F1: the first matrix takes the input
// expected-note @+1 {{up comes from here}}
func.func @f1(%x: tensor<?x64xf32>, %u: tensor<256x32xf32>, %d: tensor<64x256xf32>) {
  // expected-error @+1 {{'attune.ffn' op has input width 64, but up depth 32}}
  %y = attune.ffn %x, %u, %d activation <relu> : tensor<?x64xf32>, tensor<256x32xf32>, tensor<64x256xf32> -> tensor<?x64xf32>
  return
}

// -----

// F1: the second takes what the first gives
// expected-note @+1 {{up comes from here}}
func.func @f1_2(%x: tensor<?x64xf32>, %u: tensor<256x64xf32>, %d: tensor<64x255xf32>) {
  // expected-error @+1 {{has up rows 256, but the depth of down is 255}}
  %y = attune.ffn %x, %u, %d activation <relu> : tensor<?x64xf32>, tensor<256x64xf32>, tensor<64x255xf32> -> tensor<?x64xf32>
  return
}

// -----

// F1: and gives the result
// expected-note @+1 {{down comes from here}}
func.func @f1_3(%x: tensor<?x64xf32>, %u: tensor<256x64xf32>, %d: tensor<64x256xf32>) {
  // expected-error @+1 {{has down rows 64, but the result takes rows 32}}
  %y = attune.ffn %x, %u, %d activation <relu> : tensor<?x64xf32>, tensor<256x64xf32>, tensor<64x256xf32> -> tensor<?x32xf32>
  return
}

// -----

// F1: twice as many rows in a gated layer
// expected-note @+1 {{gate_up comes from here}}
func.func @f1_4(%x: tensor<?x64xf32>, %u: tensor<256x64xf32>, %d: tensor<64x256xf32>) {
  // expected-error @+1 {{'attune.gated_ffn' op has gate_up rows 256, but twice the depth of down is 512}}
  %y = attune.gated_ffn %x, %u, %d activation <silu> : tensor<?x64xf32>, tensor<256x64xf32>, tensor<64x256xf32> -> tensor<?x64xf32>
  return
}

// -----

// F2: the first bias fits
// expected-note @+1 {{up_bias comes from here}}
func.func @f2(%x: tensor<?x64xf32>, %u: tensor<256x64xf32>, %d: tensor<64x256xf32>, %b: tensor<64xf32>) {
  // expected-error @+1 {{has up_bias entries 64, but the matrix has rows 256}}
  %y = attune.ffn %x, %u, %d up_bias %b : tensor<64xf32> activation <relu> : tensor<?x64xf32>, tensor<256x64xf32>, tensor<64x256xf32> -> tensor<?x64xf32>
  return
}

// -----

// F2: the second bias fits
// expected-note @+1 {{down_bias comes from here}}
func.func @f2_2(%x: tensor<?x64xf32>, %u: tensor<256x64xf32>, %d: tensor<64x256xf32>, %b: tensor<256xf32>) {
  // expected-error @+1 {{has down_bias entries 256, but the matrix has rows 64}}
  %y = attune.ffn %x, %u, %d down_bias %b : tensor<256xf32> activation <relu> : tensor<?x64xf32>, tensor<256x64xf32>, tensor<64x256xf32> -> tensor<?x64xf32>
  return
}

// -----

// F3: residual has the result's type
// expected-note @+1 {{residual comes from here}}
func.func @f3(%x: tensor<?x64xf32>, %u: tensor<256x64xf32>, %d: tensor<64x256xf32>, %b: tensor<?x64xbf16>) {
  // expected-error @+1 {{has residual of type 'tensor<?x64xbf16>', but a result of type 'tensor<?x64xf32>'}}
  %y = attune.ffn %x, %u, %d residual %b : tensor<?x64xbf16> activation <relu> : tensor<?x64xf32>, tensor<256x64xf32>, tensor<64x256xf32> -> tensor<?x64xf32>
  return
}

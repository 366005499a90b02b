// RUN: attune-opt %s --split-input-file --verify-diagnostics

// V1: a filter for every channel
// expected-note @+1 {{input comes from here}}
func.func @v1(%x: tensor<?x?x64xf32>, %w: tensor<32x4xf32>) {
  // expected-error @+1 {{has weight channels 32, but input channels 64}}
  %y = attune.causal_conv %x, %w activation <silu> : tensor<?x?x64xf32>, tensor<32x4xf32>
  return
}

// -----

// V1: and a bias
// expected-note @+1 {{input comes from here}}
func.func @v1_2(%x: tensor<?x?x64xf32>, %w: tensor<64x4xf32>, %b: tensor<4xf32>) {
  // expected-error @+1 {{has bias channels 4, but input channels 64}}
  %y = attune.causal_conv %x, %w bias %b : tensor<4xf32> activation <silu> : tensor<?x?x64xf32>, tensor<64x4xf32>
  return
}

// -----

// V2: keep speaks of every token
// expected-note @+1 {{input comes from here}}
func.func @v2(%x: tensor<?x7x64xf32>, %w: tensor<64x4xf32>, %k: tensor<?x6xi1>) {
  // expected-error @+1 {{has keep tokens 6, but input tokens 7}}
  %y = attune.causal_conv %x, %w keep %k : tensor<?x6xi1> activation <silu> : tensor<?x7x64xf32>, tensor<64x4xf32>
  return
}

// -----

// V3: a step size for every channel
// expected-note @+1 {{input comes from here}}
func.func @v3(%x: tensor<?x?x64xf32>, %d: tensor<?x?x4xf32>, %a: tensor<64x16xf32>, %b: tensor<?x?x16xf32>, %s: tensor<64xf32>) {
  // expected-error @+1 {{has step channels 4, but input channels 64}}
  %y, %l = attune.selective_scan %x step %d, a_log %a, b %b, c %b, skip %s
    : tensor<?x?x64xf32>, tensor<?x?x4xf32>, tensor<64x16xf32>, tensor<?x?x16xf32>, tensor<?x?x16xf32>, tensor<64xf32> -> tensor<?x?x64xf32>, tensor<?x16x64xf32>
  return
}

// -----

// V4: B and C have a number for every state
// expected-note @+1 {{a_log comes from here}}
func.func @v4(%x: tensor<?x?x64xf32>, %a: tensor<64x16xf32>, %b: tensor<?x?x16xf32>, %c: tensor<?x?x8xf32>, %s: tensor<64xf32>) {
  // expected-error @+1 {{has c states 8, but a_log states 16}}
  %y, %l = attune.selective_scan %x step %x, a_log %a, b %b, c %c, skip %s
    : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<64x16xf32>, tensor<?x?x16xf32>, tensor<?x?x8xf32>, tensor<64xf32> -> tensor<?x?x64xf32>, tensor<?x16x64xf32>
  return
}

// -----

// V4: at every token
// expected-note @+1 {{input comes from here}}
func.func @v4_2(%x: tensor<?x5x64xf32>, %a: tensor<64x16xf32>, %b: tensor<?x4x16xf32>, %s: tensor<64xf32>) {
  // expected-error @+1 {{has b tokens 4, but input tokens 5}}
  %y, %l = attune.selective_scan %x step %x, a_log %a, b %b, c %b, skip %s
    : tensor<?x5x64xf32>, tensor<?x5x64xf32>, tensor<64x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<64xf32> -> tensor<?x5x64xf32>, tensor<?x16x64xf32>
  return
}

// -----

// V5: a decay for every channel
// expected-note @+1 {{input comes from here}}
func.func @v5(%x: tensor<?x?x64xf32>, %a: tensor<32x16xf32>, %b: tensor<?x?x16xf32>, %s: tensor<64xf32>) {
  // expected-error @+1 {{has a_log channels 32, but input channels 64}}
  %y, %l = attune.selective_scan %x step %x, a_log %a, b %b, c %b, skip %s
    : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<32x16xf32>, tensor<?x?x16xf32>, tensor<?x?x16xf32>, tensor<64xf32> -> tensor<?x?x64xf32>, tensor<?x16x64xf32>
  return
}

// -----

// V6: states stand above each other
// expected-note @+1 {{a_log comes from here}}
func.func @v6(%x: tensor<?x?x64xf32>, %a: tensor<64x16xf32>, %b: tensor<?x?x16xf32>, %s: tensor<64xf32>, %h: tensor<?x64x16xf32>) {
  // expected-error @+1 {{has state states 64, but a_log states 16}}
  %y, %l = attune.selective_scan %x step %x, a_log %a, b %b, c %b, skip %s state %h : tensor<?x64x16xf32>
    : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<64x16xf32>, tensor<?x?x16xf32>, tensor<?x?x16xf32>, tensor<64xf32> -> tensor<?x?x64xf32>, tensor<?x16x64xf32>
  return
}

// -----

// V3: a step size for every head
// expected-note @+1 {{a_log comes from here}}
func.func @v3_heads(%x: tensor<?x?x64xf32>, %d: tensor<?x?x64xf32>, %a: tensor<8xf32>, %b: tensor<?x?x16xf32>, %s: tensor<8xf32>) {
  // expected-error @+1 {{has step heads 64, but a_log heads 8}}
  %y, %l = attune.selective_scan %x step %d, a_log %a, b %b, c %b, skip %s
    : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<8xf32>, tensor<?x?x16xf32>, tensor<?x?x16xf32>, tensor<8xf32> -> tensor<?x?x64xf32>, tensor<?x16x64xf32>
  return
}

// -----

// V5: and what skips the states
// expected-note @+1 {{a_log comes from here}}
func.func @v5_heads(%x: tensor<?x?x64xf32>, %d: tensor<?x?x8xf32>, %a: tensor<8xf32>, %b: tensor<?x?x16xf32>, %s: tensor<64xf32>) {
  // expected-error @+1 {{has skip heads 64, but a_log heads 8}}
  %y, %l = attune.selective_scan %x step %d, a_log %a, b %b, c %b, skip %s
    : tensor<?x?x64xf32>, tensor<?x?x8xf32>, tensor<8xf32>, tensor<?x?x16xf32>, tensor<?x?x16xf32>, tensor<64xf32> -> tensor<?x?x64xf32>, tensor<?x16x64xf32>
  return
}

// -----

// V7: heads are equally wide
func.func @v7(%x: tensor<?x?x64xf32>, %d: tensor<?x?x7xf32>, %a: tensor<7xf32>, %b: tensor<?x?x16xf32>, %s: tensor<7xf32>) {
  // expected-error @+1 {{has 7 heads, which do not divide the 64 channels}}
  %y, %l = attune.selective_scan %x step %d, a_log %a, b %b, c %b, skip %s
    : tensor<?x?x64xf32>, tensor<?x?x7xf32>, tensor<7xf32>, tensor<?x?x16xf32>, tensor<?x?x16xf32>, tensor<7xf32> -> tensor<?x?x64xf32>, tensor<?x16x64xf32>
  return
}

// -----

// V7: and groups have equally many
func.func @v7_2(%x: tensor<?x?x64xf32>, %d: tensor<?x?x8xf32>, %a: tensor<8xf32>, %b: tensor<?x?x48xf32>, %s: tensor<8xf32>) {
  // expected-error @+1 {{has B and C of 48 numbers for 16 states, which are no groups of heads}}
  %y, %l = attune.selective_scan %x step %d, a_log %a, b %b, c %b, skip %s
    : tensor<?x?x64xf32>, tensor<?x?x8xf32>, tensor<8xf32>, tensor<?x?x48xf32>, tensor<?x?x48xf32>, tensor<8xf32> -> tensor<?x?x64xf32>, tensor<?x16x64xf32>
  return
}

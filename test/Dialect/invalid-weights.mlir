// RUN: attune-opt %s --split-input-file --verify-diagnostics

// W1: batch sizes agree
// expected-note @+1 {{key comes from here}}
func.func @w1(%q: tensor<1x8x4x64xf32>, %k: tensor<3x2x6x64xf32>, %l: tensor<1x8x4xf32>, %d: tensor<1x3x4x6xf32>) {
  // expected-error @+1 {{'attune.attention_weights' op has query batch size 1, but key batch size 3}}
  %r = attune.attention_weights %q, %k, %l scale 0.125 into %d : tensor<1x8x4x64xf32>, tensor<3x2x6x64xf32>, tensor<1x8x4xf32> -> tensor<1x3x4x6xf32>
  return
}

// -----

// W2: Hq is a multiple of Hkv
// expected-note @+1 {{key comes from here}}
func.func @w2(%q: tensor<1x8x4x64xf32>, %k: tensor<1x3x6x64xf32>, %l: tensor<1x8x4xf32>, %d: tensor<1x3x4x6xf32>) {
  // expected-error @+1 {{has 8 query heads, which 3 key heads cannot share evenly}}
  %r = attune.attention_weights %q, %k, %l scale 0.125 into %d : tensor<1x8x4x64xf32>, tensor<1x3x6x64xf32>, tensor<1x8x4xf32> -> tensor<1x3x4x6xf32>
  return
}

// -----

// W3: query and key have equal width
// expected-note @+1 {{key comes from here}}
func.func @w3(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x6x32xf32>, %l: tensor<1x8x4xf32>, %d: tensor<1x3x4x6xf32>) {
  // expected-error @+1 {{has query width 64, but key width 32}}
  %r = attune.attention_weights %q, %k, %l scale 0.125 into %d : tensor<1x8x4x64xf32>, tensor<1x2x6x32xf32>, tensor<1x8x4xf32> -> tensor<1x3x4x6xf32>
  return
}

// -----

// W4: mask and bias broadcast to the scores
// expected-note @+1 {{query comes from here}}
func.func @w4(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x6x64xf32>, %l: tensor<1x8x4xf32>, %d: tensor<1x3x4x6xf32>, %m: tensor<1x1x5x6xi1>) {
  // expected-error @+1 {{has mask length 5, but query length 4}}
  %r = attune.attention_weights %q, %k, %l scale 0.125 mask %m : tensor<1x1x5x6xi1> into %d : tensor<1x8x4x64xf32>, tensor<1x2x6x64xf32>, tensor<1x8x4xf32> -> tensor<1x3x4x6xf32>
  return
}

// -----

// W4: slopes are per query head
// expected-note @+1 {{query comes from here}}
func.func @w4_2(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x6x64xf32>, %l: tensor<1x8x4xf32>, %d: tensor<1x3x4x6xf32>, %s: tensor<2xf32>) {
  // expected-error @+1 {{has slopes entries 2, but query heads 8}}
  %r = attune.attention_weights %q, %k, %l scale 0.125 slopes %s : tensor<2xf32> into %d : tensor<1x8x4x64xf32>, tensor<1x2x6x64xf32>, tensor<1x8x4xf32> -> tensor<1x3x4x6xf32>
  return
}

// -----

// W5: window is positive
func.func @w5(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x6x64xf32>, %l: tensor<1x8x4xf32>, %d: tensor<1x3x4x6xf32>) {
  // expected-error @+1 {{has a window of 0 keys, which hides every key}}
  %r = attune.attention_weights %q, %k, %l scale 0.125 window 0 into %d : tensor<1x8x4x64xf32>, tensor<1x2x6x64xf32>, tensor<1x8x4xf32> -> tensor<1x3x4x6xf32>
  return
}

// -----

// W5: softcap is positive
func.func @w5_2(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x6x64xf32>, %l: tensor<1x8x4xf32>, %d: tensor<1x3x4x6xf32>) {
  // expected-error @+1 {{has softcap -1}}
  %r = attune.attention_weights %q, %k, %l scale 0.125 softcap -1.0 into %d : tensor<1x8x4x64xf32>, tensor<1x2x6x64xf32>, tensor<1x8x4xf32> -> tensor<1x3x4x6xf32>
  return
}

// -----

// W6: lse is [B, Hq, M]
// expected-note @+1 {{query comes from here}}
func.func @w6(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x6x64xf32>, %l: tensor<1x8x5xf32>, %d: tensor<1x3x4x6xf32>) {
  // expected-error @+1 {{has lse queries 5, but query queries 4}}
  %r = attune.attention_weights %q, %k, %l scale 0.125 into %d : tensor<1x8x4x64xf32>, tensor<1x2x6x64xf32>, tensor<1x8x5xf32> -> tensor<1x3x4x6xf32>
  return
}

// -----

// W7: diagonals has M + N - 1 columns
// expected-note @+1 {{diagonals comes from here}}
func.func @w7(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x6x64xf32>, %l: tensor<1x8x4xf32>, %d: tensor<1x3x4x6xf32>, %g: tensor<8x8xf32>) {
  // expected-error @+1 {{has diagonals columns 8}}
  %r = attune.attention_weights %q, %k, %l scale 0.125 diagonals %g : tensor<8x8xf32> into %d : tensor<1x8x4x64xf32>, tensor<1x2x6x64xf32>, tensor<1x8x4xf32> -> tensor<1x3x4x6xf32>
  return
}

// -----

// W8: dest is [B, H, M, N]
// expected-note @+1 {{key comes from here}}
func.func @w8(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x6x64xf32>, %l: tensor<1x8x4xf32>, %d: tensor<1x3x4x7xf32>) {
  // expected-error @+1 {{has dest keys 7, but key length 6}}
  %r = attune.attention_weights %q, %k, %l scale 0.125 into %d : tensor<1x8x4x64xf32>, tensor<1x2x6x64xf32>, tensor<1x8x4xf32> -> tensor<1x3x4x7xf32>
  return
}

// -----

// W8: the heads exist
func.func @w8_2(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x6x64xf32>, %l: tensor<1x8x4xf32>, %d: tensor<1x3x4x6xf32>) {
  // expected-error @+1 {{asks for 3 heads from 6 on, but there are 8}}
  %r = attune.attention_weights %q, %k, %l scale 0.125 from_head 6 into %d : tensor<1x8x4x64xf32>, tensor<1x2x6x64xf32>, tensor<1x8x4xf32> -> tensor<1x3x4x6xf32>
  return
}

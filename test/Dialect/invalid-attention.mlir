// RUN: attune-opt %s --split-input-file --verify-diagnostics

// A1: batch sizes agree
// expected-note @+1 {{key comes from here}}
func.func @a1(%q: tensor<1x8x4x64xf32>, %k: tensor<3x2x6x64xf32>, %v: tensor<1x2x6x64xf32>) {
  // expected-error @+1 {{'attune.attention' op has query batch size 1, but key batch size 3}}
  %r = attune.attention %q, %k, %v scale 0.125 : tensor<1x8x4x64xf32>, tensor<3x2x6x64xf32>, tensor<1x2x6x64xf32> -> tensor<1x8x4x64xf32>
  return
}

// -----

// A1: batch sizes of values too
// expected-note @+1 {{value comes from here}}
func.func @a1_2(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x6x64xf32>, %v: tensor<3x2x6x64xf32>) {
  // expected-error @+1 {{has query batch size 1, but value batch size 3}}
  %r = attune.attention %q, %k, %v scale 0.125 : tensor<1x8x4x64xf32>, tensor<1x2x6x64xf32>, tensor<3x2x6x64xf32> -> tensor<1x8x4x64xf32>
  return
}

// -----

// A2: Hq is a multiple of Hkv
// expected-note @+1 {{key comes from here}}
func.func @a2(%q: tensor<1x8x4x64xf32>, %k: tensor<1x3x6x64xf32>, %v: tensor<1x3x6x64xf32>) {
  // expected-error @+1 {{has 8 query heads, which 3 key heads cannot share evenly}}
  %r = attune.attention %q, %k, %v scale 0.125 : tensor<1x8x4x64xf32>, tensor<1x3x6x64xf32>, tensor<1x3x6x64xf32> -> tensor<1x8x4x64xf32>
  return
}

// -----

// A2: key and value have as many heads
// expected-note @+1 {{value comes from here}}
func.func @a2_2(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x6x64xf32>, %v: tensor<1x4x6x64xf32>) {
  // expected-error @+1 {{has key heads 2, but value heads 4}}
  %r = attune.attention %q, %k, %v scale 0.125 : tensor<1x8x4x64xf32>, tensor<1x2x6x64xf32>, tensor<1x4x6x64xf32> -> tensor<1x8x4x64xf32>
  return
}

// -----

// A3: key and value have equal length
// expected-note @+1 {{value comes from here}}
func.func @a3(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x6x64xf32>, %v: tensor<1x2x7x64xf32>) {
  // expected-error @+1 {{has key length 6, but value length 7}}
  %r = attune.attention %q, %k, %v scale 0.125 : tensor<1x8x4x64xf32>, tensor<1x2x6x64xf32>, tensor<1x2x7x64xf32> -> tensor<1x8x4x64xf32>
  return
}

// -----

// A3: query and key have equal width
// expected-note @+1 {{key comes from here}}
func.func @a3_2(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x6x32xf32>, %v: tensor<1x2x6x64xf32>) {
  // expected-error @+1 {{has query width 64, but key width 32}}
  %r = attune.attention %q, %k, %v scale 0.125 : tensor<1x8x4x64xf32>, tensor<1x2x6x32xf32>, tensor<1x2x6x64xf32> -> tensor<1x8x4x64xf32>
  return
}

// -----

// A4: mask broadcasts
// expected-note @+1 {{query comes from here}}
func.func @a4(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x6x64xf32>, %v: tensor<1x2x6x64xf32>, %m: tensor<1x4x1x6xi1>) {
  // expected-error @+1 {{has mask heads 4, but query heads 8}}
  %r = attune.attention %q, %k, %v scale 0.125 mask %m : tensor<1x4x1x6xi1> : tensor<1x8x4x64xf32>, tensor<1x2x6x64xf32>, tensor<1x2x6x64xf32> -> tensor<1x8x4x64xf32>
  return
}

// -----

// A4: bias broadcasts
// expected-note @+1 {{key comes from here}}
func.func @a4_2(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x6x64xf32>, %v: tensor<1x2x6x64xf32>, %m: tensor<1x8x4x5xf32>) {
  // expected-error @+1 {{has bias length 5, but key length 6}}
  %r = attune.attention %q, %k, %v scale 0.125 bias %m : tensor<1x8x4x5xf32> : tensor<1x8x4x64xf32>, tensor<1x2x6x64xf32>, tensor<1x2x6x64xf32> -> tensor<1x8x4x64xf32>
  return
}

// -----

// A4: one slope a query head
// expected-note @+1 {{query comes from here}}
func.func @a4_3(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x6x64xf32>, %v: tensor<1x2x6x64xf32>, %m: tensor<2xf32>) {
  // expected-error @+1 {{has slopes entries 2, but query heads 8}}
  %r = attune.attention %q, %k, %v scale 0.125 slopes %m : tensor<2xf32> : tensor<1x8x4x64xf32>, tensor<1x2x6x64xf32>, tensor<1x2x6x64xf32> -> tensor<1x8x4x64xf32>
  return
}

// -----

// A4: one sink a query head
// expected-note @+1 {{query comes from here}}
func.func @a4_4(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x6x64xf32>, %v: tensor<1x2x6x64xf32>, %m: tensor<2xf32>) {
  // expected-error @+1 {{has sinks entries 2, but query heads 8}}
  %r = attune.attention %q, %k, %v scale 0.125 sinks %m : tensor<2xf32> : tensor<1x8x4x64xf32>, tensor<1x2x6x64xf32>, tensor<1x2x6x64xf32> -> tensor<1x8x4x64xf32>
  return
}

// -----

// A5: window > 0
func.func @a5(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x6x64xf32>, %v: tensor<1x2x6x64xf32>) {
  // expected-error @+1 {{has a window of -3 keys, which hides every key}}
  %r = attune.attention %q, %k, %v scale 0.125 window -3 : tensor<1x8x4x64xf32>, tensor<1x2x6x64xf32>, tensor<1x2x6x64xf32> -> tensor<1x8x4x64xf32>
  return
}

// -----

// A5: softcap > 0
func.func @a5_2(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x6x64xf32>, %v: tensor<1x2x6x64xf32>) {
  // expected-error @+1 {{has softcap 0.000000e+00, which is not a positive number}}
  %r = attune.attention %q, %k, %v scale 0.125 softcap 0.0 : tensor<1x8x4x64xf32>, tensor<1x2x6x64xf32>, tensor<1x2x6x64xf32> -> tensor<1x8x4x64xf32>
  return
}

// -----

// A6: the result is [B, Hq, M, Dv]
// expected-note @+1 {{value comes from here}}
func.func @a6(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x6x64xf32>, %v: tensor<1x2x6x64xf32>) {
  // expected-error @+1 {{has result width 32, but value width 64}}
  %r = attune.attention %q, %k, %v scale 0.125 : tensor<1x8x4x64xf32>, tensor<1x2x6x64xf32>, tensor<1x2x6x64xf32> -> tensor<1x8x4x32xf32>
  return
}

// -----

// A6: lse is [B, Hq, M]
// expected-note @+1 {{query comes from here}}
func.func @a6_2(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x6x64xf32>, %v: tensor<1x2x6x64xf32>) {
  // expected-error @+1 {{has lse queries 6, but query queries 4}}
  %r:2 = attune.attention %q, %k, %v scale 0.125 : tensor<1x8x4x64xf32>, tensor<1x2x6x64xf32>, tensor<1x2x6x64xf32> -> tensor<1x8x4x64xf32> lse tensor<1x8x6xf32>
  return
}

// -----

// D1: attune.fusion is auto, off or required
func.func @d1(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x6x64xf32>, %v: tensor<1x2x6x64xf32>) {
  // expected-error @+1 {{has attune.fusion = "always", but it can only be "auto", "off" or "required"}}
  %r = attune.attention %q, %k, %v scale 0.125 {attune.fusion = "always"} : tensor<1x8x4x64xf32>, tensor<1x2x6x64xf32>, tensor<1x2x6x64xf32> -> tensor<1x8x4x64xf32>
  return
}

// -----

// A7: as many columns of diagonals as the scores have
// expected-note @+1 {{diagonals comes from here}}
func.func @a7(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x6x64xf32>, %v: tensor<1x2x6x64xf32>, %d: tensor<8x8xf32>) {
  // expected-error @+1 {{has diagonals columns 8, but 4 queries and 6 keys need 9}}
  %r = attune.attention %q, %k, %v scale 0.125 diagonals %d : tensor<8x8xf32> : tensor<1x8x4x64xf32>, tensor<1x2x6x64xf32>, tensor<1x2x6x64xf32> -> tensor<1x8x4x64xf32>
  return
}

// -----

// A8: one length for each sequence
// expected-note @+1 {{query comes from here}}
func.func @a8(%q: tensor<2x8x4x64xf32>, %k: tensor<2x2x6x64xf32>, %n: tensor<1xi64>) {
  // expected-error @+1 {{has lengths entries 1, but query batch size 2}}
  %r = attune.attention %q, %k, %k scale 0.125 lengths %n : tensor<1xi64> : tensor<2x8x4x64xf32>, tensor<2x2x6x64xf32>, tensor<2x2x6x64xf32> -> tensor<2x8x4x64xf32>
  return
}

// -----

// A9: blocks cover queries and keys
// expected-note @+1 {{blocks comes from here}}
func.func @a9(%q: tensor<2x8x4x64xf32>, %k: tensor<2x2x6x64xf32>, %b: tensor<2x8x4x6xi1>) {
  // expected-error @+1 {{has blocks rows 4, but 4 queries in blocks of 3 need 2}}
  %r = attune.attention %q, %k, %k scale 0.125 blocks %b of [3, 1] : tensor<2x8x4x6xi1> : tensor<2x8x4x64xf32>, tensor<2x2x6x64xf32>, tensor<2x2x6x64xf32> -> tensor<2x8x4x64xf32>
  return
}

// -----

// A9: batch and heads broadcast
// expected-note @+1 {{query comes from here}}
func.func @a9_2(%q: tensor<2x8x4x64xf32>, %k: tensor<2x2x6x64xf32>, %b: tensor<3x1x2x6xi1>) {
  // expected-error @+1 {{has blocks batch size 3, but query batch size 2}}
  %r = attune.attention %q, %k, %k scale 0.125 blocks %b of [2, 1] : tensor<3x1x2x6xi1> : tensor<2x8x4x64xf32>, tensor<2x2x6x64xf32>, tensor<2x2x6x64xf32> -> tensor<2x8x4x64xf32>
  return
}

// -----

// A9: two positive sizes
func.func @a9_3(%q: tensor<2x8x4x64xf32>, %k: tensor<2x2x6x64xf32>, %b: tensor<1x1x2x3xi1>) {
  // expected-error @+1 {{has block sizes [2], but they must be two positive numbers}}
  %r = attune.attention %q, %k, %k scale 0.125 blocks %b of [2] : tensor<1x1x2x3xi1> : tensor<2x8x4x64xf32>, tensor<2x2x6x64xf32>, tensor<2x2x6x64xf32> -> tensor<2x8x4x64xf32>
  return
}

// -----

// A10: queries that stand at lengths need them
func.func @a10(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x6x64xf32>) {
  // expected-error @+1 {{has the causal alignment lengths, but no lengths}}
  %r = attune.attention %q, %k, %k scale 0.125 causal <lengths> : tensor<1x8x4x64xf32>, tensor<1x2x6x64xf32>, tensor<1x2x6x64xf32> -> tensor<1x8x4x64xf32>
  return
}

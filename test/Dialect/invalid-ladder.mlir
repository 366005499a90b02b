// RUN: attune-opt %s --split-input-file --verify-diagnostics

// S1: batch sizes agree
// expected-note @+1 {{key comes from here}}
func.func @s1(%q: tensor<1x8x4x64xf32>, %k: tensor<2x8x6x64xf32>) {
  // expected-error @+1 {{'attune.similarity' op has query batch size 1, but key batch size 2}}
  %e = attune.similarity %q, %k scale 1.0 : tensor<1x8x4x64xf32>, tensor<2x8x6x64xf32> -> tensor<1x8x4x6xf32>
  return
}

// -----

// S2: Hq is a multiple of Hkv
// expected-note @+1 {{key comes from here}}
func.func @s2(%q: tensor<1x8x4x64xf32>, %k: tensor<1x3x6x64xf32>) {
  // expected-error @+1 {{has 8 query heads, which 3 key heads cannot share evenly}}
  %e = attune.similarity %q, %k scale 1.0 : tensor<1x8x4x64xf32>, tensor<1x3x6x64xf32> -> tensor<1x8x4x6xf32>
  return
}

// -----

// S2: not even among no heads
// expected-note @+1 {{key comes from here}}
func.func @s2_2(%q: tensor<1x8x4x64xf32>, %k: tensor<1x0x6x64xf32>) {
  // expected-error @+1 {{has 8 query heads, which 0 key heads cannot share evenly}}
  %e = attune.similarity %q, %k scale 1.0 : tensor<1x8x4x64xf32>, tensor<1x0x6x64xf32> -> tensor<1x8x4x6xf32>
  return
}

// -----

// S3: query and key have equal width
// expected-note @+1 {{key comes from here}}
func.func @s3(%q: tensor<1x8x4x64xf32>, %k: tensor<1x8x6x32xf32>) {
  // expected-error @+1 {{has query width 64, but key width 32}}
  %e = attune.similarity %q, %k scale 1.0 : tensor<1x8x4x64xf32>, tensor<1x8x6x32xf32> -> tensor<1x8x4x6xf32>
  return
}

// -----

// S4: the result is [B, Hq, M, N], heads
// expected-note @+1 {{query comes from here}}
func.func @s4(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x6x64xf32>) {
  // expected-error @+1 {{has result heads 2, but query heads 8}}
  %e = attune.similarity %q, %k scale 1.0 : tensor<1x8x4x64xf32>, tensor<1x2x6x64xf32> -> tensor<1x2x4x6xf32>
  return
}

// -----

// S4: the result is [B, Hq, M, N], keys
// expected-note @+1 {{key comes from here}}
func.func @s4_2(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x6x64xf32>) {
  // expected-error @+1 {{has result keys 5, but key length 6}}
  %e = attune.similarity %q, %k scale 1.0 : tensor<1x8x4x64xf32>, tensor<1x2x6x64xf32> -> tensor<1x8x4x5xf32>
  return
}

// -----

// M1: mask broadcasts to the scores
// expected-note @+1 {{scores comes from here}}
func.func @m1(%e: tensor<1x8x4x6xf32>, %m: tensor<1x1x3x6xi1>) {
  // expected-error @+1 {{has mask queries 3, but scores queries 4}}
  %f = attune.mask_scores %e mask %m : tensor<1x1x3x6xi1> : tensor<1x8x4x6xf32>
  return
}

// -----

// M1: bias broadcasts to the scores, but not along keys
// expected-note @+1 {{scores comes from here}}
func.func @m1_2(%e: tensor<1x8x4x6xf32>, %b: tensor<1x8x4x1xf32>) {
  // expected-error @+1 {{has bias keys 1, but scores keys 6}}
  %f = attune.mask_scores %e bias %b : tensor<1x8x4x1xf32> : tensor<1x8x4x6xf32>
  return
}

// -----

// M1: one slope a head
// expected-note @+1 {{scores comes from here}}
func.func @m1_3(%e: tensor<1x8x4x6xf32>, %b: tensor<4xf32>) {
  // expected-error @+1 {{has slopes entries 4, but scores heads 8}}
  %f = attune.mask_scores %e slopes %b : tensor<4xf32> : tensor<1x8x4x6xf32>
  return
}

// -----

// M2: window > 0
func.func @m2(%e: tensor<1x8x4x6xf32>) {
  // expected-error @+1 {{has a window of 0 keys, which hides every key}}
  %f = attune.mask_scores %e window 0 : tensor<1x8x4x6xf32>
  return
}

// -----

// M6: to both sides of what
func.func @m6_2(%e: tensor<1x8x4x6xf32>) {
  // expected-error @+1 {{has the causal alignment symmetric, but no window}}
  %f = attune.mask_scores %e causal <symmetric> : tensor<1x8x4x6xf32>
  return
}

// -----

// M2: softcap > 0
func.func @m2_2(%e: tensor<1x8x4x6xf32>) {
  // expected-error @+1 {{has softcap -1.000000e+00, which is not a positive number}}
  %f = attune.mask_scores %e softcap -1.0 : tensor<1x8x4x6xf32>
  return
}

// -----

// T1: sinks is [H]
// expected-note @+1 {{scores comes from here}}
func.func @t1(%e: tensor<1x8x4x6xf32>, %b: tensor<4xf32>) {
  // expected-error @+1 {{has sinks entries 4, but scores heads 8}}
  %f = attune.softmax %e sinks %b : tensor<4xf32> : tensor<1x8x4x6xf32>
  return
}

// -----

// X1: the result is [B, H, M]
// expected-note @+1 {{scores comes from here}}
func.func @x1(%e: tensor<1x8x4x6xf32>) {
  // expected-error @+1 {{has result queries 6, but scores queries 4}}
  %f = attune.log_sum_exp %e : tensor<1x8x4x6xf32> -> tensor<1x8x6xf32>
  return
}

// -----

// X2: sinks is [H]
// expected-note @+1 {{scores comes from here}}
func.func @x2(%e: tensor<1x8x4x6xf32>, %b: tensor<4xf32>) {
  // expected-error @+1 {{has sinks entries 4, but scores heads 8}}
  %f = attune.log_sum_exp %e sinks %b : tensor<4xf32> : tensor<1x8x4x6xf32> -> tensor<1x8x4xf32>
  return
}

// -----

// Y1: batch sizes agree
// expected-note @+1 {{value comes from here}}
func.func @y1(%a: tensor<1x8x4x6xf32>, %v: tensor<2x8x6x32xf32>) {
  // expected-error @+1 {{has weights batch size 1, but value batch size 2}}
  %y = attune.weighted_sum %a, %v : tensor<1x8x4x6xf32>, tensor<2x8x6x32xf32> -> tensor<1x8x4x32xf32>
  return
}

// -----

// Y2: Hq is a multiple of Hkv
// expected-note @+1 {{value comes from here}}
func.func @y2(%a: tensor<1x8x4x6xf32>, %v: tensor<1x5x6x32xf32>) {
  // expected-error @+1 {{has 8 query heads, which 5 value heads cannot share evenly}}
  %y = attune.weighted_sum %a, %v : tensor<1x8x4x6xf32>, tensor<1x5x6x32xf32> -> tensor<1x8x4x32xf32>
  return
}

// -----

// Y3: as many scores as values
// expected-note @+1 {{value comes from here}}
func.func @y3(%a: tensor<1x8x4x6xf32>, %v: tensor<1x8x7x32xf32>) {
  // expected-error @+1 {{has weights keys 6, but value length 7}}
  %y = attune.weighted_sum %a, %v : tensor<1x8x4x6xf32>, tensor<1x8x7x32xf32> -> tensor<1x8x4x32xf32>
  return
}

// -----

// Y4: the result is [B, Hq, M, Dv], width
// expected-note @+1 {{value comes from here}}
func.func @y4(%a: tensor<1x8x4x6xf32>, %v: tensor<1x8x6x32xf32>) {
  // expected-error @+1 {{has result width 64, but value width 32}}
  %y = attune.weighted_sum %a, %v : tensor<1x8x4x6xf32>, tensor<1x8x6x32xf32> -> tensor<1x8x4x64xf32>
  return
}

// -----

// Y4: the result is [B, Hq, M, Dv], queries
// expected-note @+1 {{weights comes from here}}
func.func @y4_2(%a: tensor<1x8x4x6xf32>, %v: tensor<1x8x6x32xf32>) {
  // expected-error @+1 {{has result queries 5, but weights queries 4}}
  %y = attune.weighted_sum %a, %v : tensor<1x8x4x6xf32>, tensor<1x8x6x32xf32> -> tensor<1x8x5x32xf32>
  return
}

// -----

// M3: a row of diagonals for each head
// expected-note @+1 {{scores comes from here}}
func.func @m3(%e: tensor<1x8x4x6xf32>, %d: tensor<4x9xf32>) {
  // expected-error @+1 {{has diagonals heads 4, but scores heads 8}}
  %f = attune.mask_scores %e diagonals %d : tensor<4x9xf32> : tensor<1x8x4x6xf32>
  return
}

// -----

// M3: as many columns as there are diagonals
// expected-note @+1 {{diagonals comes from here}}
func.func @m3_2(%e: tensor<1x8x4x6xf32>, %d: tensor<8x10xf32>) {
  // expected-error @+1 {{has diagonals columns 10, but 4 queries and 6 keys need 9}}
  %f = attune.mask_scores %e diagonals %d : tensor<8x10xf32> : tensor<1x8x4x6xf32>
  return
}

// -----

// M4: one length for each sequence
// expected-note @+1 {{scores comes from here}}
func.func @m4(%e: tensor<2x8x4x6xf32>, %n: tensor<3xi64>) {
  // expected-error @+1 {{has lengths entries 3, but scores batch size 2}}
  %f = attune.mask_scores %e lengths %n : tensor<3xi64> : tensor<2x8x4x6xf32>
  return
}

// -----

// M5: blocks cover the scores
// expected-note @+1 {{blocks comes from here}}
func.func @m5(%e: tensor<2x8x4x6xf32>, %b: tensor<1x1x2x2xi1>) {
  // expected-error @+1 {{has blocks columns 2, but 6 keys in blocks of 2 need 3}}
  %f = attune.mask_scores %e blocks %b of [2, 2] : tensor<1x1x2x2xi1> : tensor<2x8x4x6xf32>
  return
}

// -----

// M5: batch and heads broadcast
// expected-note @+1 {{scores comes from here}}
func.func @m5_2(%e: tensor<2x8x4x6xf32>, %b: tensor<1x4x2x3xi1>) {
  // expected-error @+1 {{has blocks heads 4, but scores heads 8}}
  %f = attune.mask_scores %e blocks %b of [2, 2] : tensor<1x4x2x3xi1> : tensor<2x8x4x6xf32>
  return
}

// -----

// M5: two positive sizes
func.func @m5_3(%e: tensor<2x8x4x6xf32>, %b: tensor<1x1x2x3xi1>) {
  // expected-error @+1 {{has block sizes [2, 0], but they must be two positive numbers}}
  %f = attune.mask_scores %e blocks %b of [2, 0] : tensor<1x1x2x3xi1> : tensor<2x8x4x6xf32>
  return
}

// -----

// M5: sizes without blocks
func.func @m5_4(%e: tensor<2x8x4x6xf32>) {
  // expected-error @+1 {{needs both blocks and block_sizes, or neither}}
  %f = attune.mask_scores %e {block_sizes = array<i64: 2, 2>} : tensor<2x8x4x6xf32>
  return
}

// -----

// M6: queries that stand at lengths need them
func.func @m6(%e: tensor<2x8x4x6xf32>) {
  // expected-error @+1 {{has the causal alignment lengths, but no lengths}}
  %f = attune.mask_scores %e causal <lengths> window 3 : tensor<2x8x4x6xf32>
  return
}

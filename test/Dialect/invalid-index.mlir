// RUN: attune-opt %s --split-input-file --verify-diagnostics

// I1: batch sizes agree
func.func @i1(%q: tensor<2x8x4x64xf32>, %k: tensor<3x1x6x64xf32>, %w: tensor<2x4x8xf32>) {
  // expected-error @+2 {{has key batch size 3, but query batch size 2}}
  // expected-note @-2 {{query comes from here}}
  %i = attune.index_scores %q, %k shares %w scale 1.0 : tensor<2x8x4x64xf32>, tensor<3x1x6x64xf32>, tensor<2x4x8xf32> -> tensor<2x4x6xf32>
  return
}

// -----

// I1: that of shares, too
func.func @i1_2(%q: tensor<2x8x4x64xf32>, %k: tensor<2x1x6x64xf32>, %w: tensor<1x4x8xf32>) {
  // expected-error @+2 {{has shares batch size 1, but query batch size 2}}
  // expected-note @-2 {{query comes from here}}
  %i = attune.index_scores %q, %k shares %w scale 1.0 : tensor<2x8x4x64xf32>, tensor<2x1x6x64xf32>, tensor<1x4x8xf32> -> tensor<2x4x6xf32>
  return
}

// -----

// I2: equal widths
func.func @i2(%q: tensor<2x8x4x64xf32>, %k: tensor<2x1x6x32xf32>, %w: tensor<2x4x8xf32>) {
  // expected-error @+2 {{has key width 32, but query width 64}}
  // expected-note @-2 {{query comes from here}}
  %i = attune.index_scores %q, %k shares %w scale 1.0 : tensor<2x8x4x64xf32>, tensor<2x1x6x32xf32>, tensor<2x4x8xf32> -> tensor<2x4x6xf32>
  return
}

// -----

// I2: one head of keys
func.func @i2_2(%q: tensor<2x8x4x64xf32>, %k: tensor<2x2x6x64xf32>, %w: tensor<2x4x8xf32>) {
  // expected-error @+2 {{all heads of an index have the same keys}}
  // expected-note @-2 {{key comes from here}}
  %i = attune.index_scores %q, %k shares %w scale 1.0 : tensor<2x8x4x64xf32>, tensor<2x2x6x64xf32>, tensor<2x4x8xf32> -> tensor<2x4x6xf32>
  return
}

// -----

// I3: shares of all queries
func.func @i3(%q: tensor<2x8x4x64xf32>, %k: tensor<2x1x6x64xf32>, %w: tensor<2x5x8xf32>) {
  // expected-error @+2 {{has shares queries 5, but query queries 4}}
  // expected-note @-2 {{query comes from here}}
  %i = attune.index_scores %q, %k shares %w scale 1.0 : tensor<2x8x4x64xf32>, tensor<2x1x6x64xf32>, tensor<2x5x8xf32> -> tensor<2x4x6xf32>
  return
}

// -----

// I3: and of all heads
func.func @i3_2(%q: tensor<2x8x4x64xf32>, %k: tensor<2x1x6x64xf32>, %w: tensor<2x4x7xf32>) {
  // expected-error @+2 {{has shares heads 7, but query heads 8}}
  // expected-note @-2 {{query comes from here}}
  %i = attune.index_scores %q, %k shares %w scale 1.0 : tensor<2x8x4x64xf32>, tensor<2x1x6x64xf32>, tensor<2x4x7xf32> -> tensor<2x4x6xf32>
  return
}

// -----

// I4: a row for each query
func.func @i4(%q: tensor<2x8x4x64xf32>, %k: tensor<2x1x6x64xf32>, %w: tensor<2x4x8xf32>) {
  // expected-error @+2 {{has result queries 3, but query queries 4}}
  // expected-note @-2 {{query comes from here}}
  %i = attune.index_scores %q, %k shares %w scale 1.0 : tensor<2x8x4x64xf32>, tensor<2x1x6x64xf32>, tensor<2x4x8xf32> -> tensor<2x3x6xf32>
  return
}

// -----

// I4: a column for each key
func.func @i4_2(%q: tensor<2x8x4x64xf32>, %k: tensor<2x1x6x64xf32>, %w: tensor<2x4x8xf32>) {
  // expected-error @+2 {{has result keys 5, but key length 6}}
  // expected-note @-2 {{key comes from here}}
  %i = attune.index_scores %q, %k shares %w scale 1.0 : tensor<2x8x4x64xf32>, tensor<2x1x6x64xf32>, tensor<2x4x8xf32> -> tensor<2x4x5xf32>
  return
}

// -----

// K1: top is positive
func.func @k1(%x: tensor<2x4x6xf32>) {
  // expected-error @+1 {{chooses 0 keys}}
  %p, %c = attune.choose_keys %x top 0 : tensor<2x4x6xf32> -> tensor<2x4x0xi64>, tensor<2x4xi64>
  return
}

// -----

// K2: one head
func.func @k2(%x: tensor<2x4x6xf32>, %m: tensor<2x3x4x6xi1>) {
  // expected-error @+2 {{a query has the same keys in all heads}}
  // expected-note @-2 {{mask comes from here}}
  %p, %c = attune.choose_keys %x top 2 mask %m : tensor<2x3x4x6xi1> : tensor<2x4x6xf32> -> tensor<2x4x2xi64>, tensor<2x4xi64>
  return
}

// -----

// K2: a mask has the scores' sizes, or 1
func.func @k2_2(%x: tensor<2x4x6xf32>, %m: tensor<1x1x3x6xi1>) {
  // expected-error @+2 {{has mask queries 3, but scores queries 4}}
  // expected-note @-2 {{scores comes from here}}
  %p, %c = attune.choose_keys %x top 2 mask %m : tensor<1x1x3x6xi1> : tensor<2x4x6xf32> -> tensor<2x4x2xi64>, tensor<2x4xi64>
  return
}

// -----

// K2: but all keys
func.func @k2_3(%x: tensor<2x4x6xf32>, %m: tensor<1x1x1x5xi1>) {
  // expected-error @+2 {{has mask keys 5, but scores keys 6}}
  // expected-note @-2 {{scores comes from here}}
  %p, %c = attune.choose_keys %x top 2 mask %m : tensor<1x1x1x5xi1> : tensor<2x4x6xf32> -> tensor<2x4x2xi64>, tensor<2x4xi64>
  return
}

// -----

// K2: a length for each sequence
func.func @k2_4(%x: tensor<2x4x6xf32>, %n: tensor<3xi64>) {
  // expected-error @+2 {{has lengths entries 3, but scores batch size 2}}
  // expected-note @-2 {{scores comes from here}}
  %p, %c = attune.choose_keys %x top 2 lengths %n : tensor<3xi64> : tensor<2x4x6xf32> -> tensor<2x4x2xi64>, tensor<2x4xi64>
  return
}

// -----

// K3: places of all queries
func.func @k3(%x: tensor<2x4x6xf32>) {
  // expected-error @+2 {{has places queries 3, but scores queries 4}}
  // expected-note @-2 {{scores comes from here}}
  %p, %c = attune.choose_keys %x top 2 : tensor<2x4x6xf32> -> tensor<2x3x2xi64>, tensor<2x4xi64>
  return
}

// -----

// K3: as many as are chosen
func.func @k3_2(%x: tensor<2x4x6xf32>) {
  // expected-error @+1 {{chooses 2 keys, but has 3 places}}
  %p, %c = attune.choose_keys %x top 2 : tensor<2x4x6xf32> -> tensor<2x4x3xi64>, tensor<2x4xi64>
  return
}

// -----

// K3: a count for each query
func.func @k3_3(%x: tensor<2x4x6xf32>) {
  // expected-error @+2 {{has counts batch size 1, but scores batch size 2}}
  // expected-note @-2 {{scores comes from here}}
  %p, %c = attune.choose_keys %x top 2 : tensor<2x4x6xf32> -> tensor<2x4x2xi64>, tensor<1x4xi64>
  return
}

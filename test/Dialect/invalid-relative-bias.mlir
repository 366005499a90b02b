// RUN: attune-opt %s -split-input-file -verify-diagnostics

// B1: a table of two buckets or more
func.func @b1(%t: tensor<1x8xf32>, %n: index) {
  // expected-error @+1 {{needs a table of 2 buckets or more, not 'tensor<1x8xf32>'}}
  %d = attune.relative_bias %t queries %n keys %n max_distance 128 : tensor<1x8xf32> -> tensor<8x?xf32>
  return
}

// -----

// B1: of four in both directions
func.func @b1_2(%t: tensor<3x8xf32>, %n: index) {
  // expected-error @+1 {{needs a table of 4 buckets or more, not 'tensor<3x8xf32>'}}
  %d = attune.relative_bias %t queries %n keys %n max_distance 128 bidirectional : tensor<3x8xf32> -> tensor<8x?xf32>
  return
}

// -----

// B1: a row for each head
// expected-note @+1 {{table comes from here}}
func.func @b1_3(%t: tensor<32x8xf32>, %n: index) {
  // expected-error @+1 {{has result heads 4, but table heads 8}}
  %d = attune.relative_bias %t queries %n keys %n max_distance 128 : tensor<32x8xf32> -> tensor<4x?xf32>
  return
}

// -----

// B2: the largest distance is beyond those that have a bucket of their own
func.func @b2(%t: tensor<32x8xf32>, %n: index) {
  // expected-error @+1 {{has max_distance 16, but it must be from 17 to 16777216}}
  %d = attune.relative_bias %t queries %n keys %n max_distance 16 : tensor<32x8xf32> -> tensor<8x?xf32>
  return
}

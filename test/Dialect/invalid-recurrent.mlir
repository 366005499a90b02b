// RUN: attune-opt %s --split-input-file --verify-diagnostics

// R1: gates for every channel of the state
// expected-note @+1 {{hidden gates comes from here}}
func.func @r1(%x: tensor<?x24xf32>, %u: tensor<?x16xf32>, %h: tensor<?x8xf32>) {
  // expected-error @+1 {{has hidden gates width 16, but the state takes 24}}
  %g = attune.recurrent_cell <gru> %x, %u state %h : tensor<?x8xf32> : tensor<?x24xf32>, tensor<?x16xf32> -> tensor<?x8xf32>
  return
}

// -----

// R2: an lstm has a cell state
func.func @r2(%x: tensor<?x32xf32>, %h: tensor<?x8xf32>) {
  // expected-error @+1 {{is an lstm without a cell state}}
  %g = attune.recurrent_cell <lstm> %x, %x state %h : tensor<?x8xf32> : tensor<?x32xf32>, tensor<?x32xf32> -> tensor<?x8xf32>
  return
}

// -----

// R2: and nothing else has
func.func @r2_2(%x: tensor<?x8xf32>, %h: tensor<?x8xf32>) {
  // expected-error @+1 {{has a cell state, which only an lstm has}}
  %g = attune.recurrent_cell <rnn> %x, %x state %h : tensor<?x8xf32> cell %h : tensor<?x8xf32> : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  return
}

// -----

// R3: batch sizes agree
// expected-note @+1 {{state comes from here}}
func.func @r3(%x: tensor<3x8xf32>, %h: tensor<2x8xf32>) {
  // expected-error @+1 {{has input gates batch size 3, but state batch size 2}}
  %g = attune.recurrent_cell <rnn> %x, %x state %h : tensor<2x8xf32> : tensor<3x8xf32>, tensor<3x8xf32> -> tensor<2x8xf32>
  return
}

// -----

// R4: results have the types of the states
func.func @r4(%x: tensor<?x8xf32>, %h: tensor<?x8xf32>) {
  // expected-error @+1 {{gives a state of type 'tensor<2x8xf32>' for one of type 'tensor<?x8xf32>'}}
  %g = attune.recurrent_cell <rnn> %x, %x state %h : tensor<?x8xf32> : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<2x8xf32>
  return
}

// -----

// R5: the weight is [gates, width]
// expected-note @+1 {{gates comes from here}}
func.func @r5(%x: tensor<?x?x16xf32>, %w: tensor<24x8xf32>) {
  // expected-error @+1 {{has gates width 16, but the weight's depth takes 24}}
  %s, %l = attune.recurrent <gru> %x, %w : tensor<?x?x16xf32>, tensor<24x8xf32> -> tensor<?x?x8xf32>, tensor<?x8xf32>
  return
}

// -----

// R6: a bias for each row
// expected-note @+1 {{gates comes from here}}
func.func @r6(%x: tensor<?x?x24xf32>, %w: tensor<24x8xf32>, %b: tensor<8xf32>) {
  // expected-error @+1 {{has bias entries 8, but gates width 24}}
  %s, %l = attune.recurrent <gru> %x, %w bias %b : tensor<8xf32> : tensor<?x?x24xf32>, tensor<24x8xf32> -> tensor<?x?x8xf32>, tensor<?x8xf32>
  return
}

// -----

// R7: an lstm gives two states
func.func @r7(%x: tensor<?x?x32xf32>, %w: tensor<32x8xf32>) {
  // expected-error @+1 {{gives 1 states, but a cell of this kind has 2}}
  %s, %l = attune.recurrent <lstm> %x, %w : tensor<?x?x32xf32>, tensor<32x8xf32> -> tensor<?x?x8xf32>, tensor<?x8xf32>
  return
}

// -----

// R8: a truth value for each token
// expected-note @+1 {{gates comes from here}}
func.func @r8(%x: tensor<2x5x8xf32>, %w: tensor<8x8xf32>, %m: tensor<2x4xi1>) {
  // expected-error @+1 {{has keep tokens 4, but gates tokens 5}}
  %s, %l = attune.recurrent <rnn> %x, %w keep %m : tensor<2x4xi1> : tensor<2x5x8xf32>, tensor<8x8xf32> -> tensor<2x5x8xf32>, tensor<2x8xf32>
  return
}

// -----

// D1: as many key heads as query heads
// expected-note @+1 {{query comes from here}}
func.func @d1(%q: tensor<?x2x1x8xf32>, %k: tensor<?x1x?x8xf32>, %v: tensor<1x8xf32>) {
  // expected-error @+1 {{has key heads 1, but query heads 2}}
  %e = attune.additive_similarity %q, %k, %v activation <tanh> : tensor<?x2x1x8xf32>, tensor<?x1x?x8xf32>, tensor<1x8xf32> -> tensor<?x2x1x?xf32>
  return
}

// -----

// D2: one weight for each channel
// expected-note @+1 {{query comes from here}}
func.func @d2(%q: tensor<?x1x1x8xf32>, %k: tensor<?x1x?x8xf32>, %v: tensor<1x9xf32>) {
  // expected-error @+1 {{has vector width 9, but query width 8}}
  %e = attune.additive_similarity %q, %k, %v activation <tanh> : tensor<?x1x1x8xf32>, tensor<?x1x?x8xf32>, tensor<1x9xf32> -> tensor<?x1x1x?xf32>
  return
}

// -----

// D3: a score for each pair
// expected-note @+1 {{key comes from here}}
func.func @d3(%q: tensor<2x1x3x8xf32>, %k: tensor<2x1x5x8xf32>, %v: tensor<1x8xf32>) {
  // expected-error @+1 {{has result size 4, but key length 5}}
  %e = attune.additive_similarity %q, %k, %v activation <tanh> : tensor<2x1x3x8xf32>, tensor<2x1x5x8xf32>, tensor<1x8xf32> -> tensor<2x1x3x4xf32>
  return
}

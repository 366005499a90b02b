// RUN: attune-opt %s --attune-shard=tp=3 --split-input-file --verify-diagnostics

// A norm over four heads, of which three ranks cannot have equally many.
attune.weight @q : tensor<16x16xf32> from [#attune.source<"q">]
attune.weight @k : tensor<16x16xf32> from [#attune.source<"k">]
func.func @heads(%x: tensor<?x?x16xf32>) -> tensor<?x4x?x?xf32> {
  %wq = attune.weight_get @q : tensor<16x16xf32>
  %wk = attune.weight_get @k : tensor<16x16xf32>
  %y = attune.linear %x, %wq : tensor<?x?x16xf32>, tensor<16x16xf32> -> tensor<?x?x16xf32>
  // expected-error @+1 {{a norm over all heads cannot be cut in 3 parts of which some have more heads; --mesh=tp=N takes an N that divides them}}
  %n = attune.rms_norm %y eps 1.0e-6 : tensor<?x?x16xf32>
  %q = attune.split_heads %n : tensor<?x?x16xf32> -> tensor<?x4x?x4xf32>
  %z = attune.linear %x, %wk : tensor<?x?x16xf32>, tensor<16x16xf32> -> tensor<?x?x16xf32>
  %k = attune.split_heads %z : tensor<?x?x16xf32> -> tensor<?x4x?x4xf32>
  %s = attune.similarity %q, %k scale 1.0 : tensor<?x4x?x4xf32>, tensor<?x4x?x4xf32> -> tensor<?x4x?x?xf32>
  return %s : tensor<?x4x?x?xf32>
}

// -----

attune.weight @up : tensor<2x8xf32> from [#attune.source<"up">]
attune.weight @down : tensor<8x2xf32> from [#attune.source<"down">]
func.func @width(%x: tensor<?x?x8xf32>) -> tensor<?x?x8xf32> {
  %u = attune.weight_get @up : tensor<2x8xf32>
  %d = attune.weight_get @down : tensor<8x2xf32>
  // expected-error @+1 {{a feed-forward layer of width 2 cannot be shared by 3 ranks, of which some would have none; --mesh=tp=N takes an N of at most as many}}
  %y = attune.ffn %x, %u, %d activation <gelu> : tensor<?x?x8xf32>, tensor<2x8xf32>, tensor<8x2xf32> -> tensor<?x?x8xf32>
  return %y : tensor<?x?x8xf32>
}

// -----

// A matrix that another layer needs whole.
attune.weight @up : tensor<9x9xf32> from [#attune.source<"up">] // expected-note {{the weight is declared here}}
attune.weight @down : tensor<9x9xf32> from [#attune.source<"down">]
func.func @twice(%x: tensor<?x?x9xf32>) -> tensor<?x?x9xf32> {
  %u = attune.weight_get @up : tensor<9x9xf32>
  %d = attune.weight_get @down : tensor<9x9xf32>
  %y = attune.ffn %x, %u, %d activation <gelu> : tensor<?x?x9xf32>, tensor<9x9xf32>, tensor<9x9xf32> -> tensor<?x?x9xf32>
  // expected-error @+1 {{needs the whole weight 'up', which is cut among ranks for another layer}}
  %again = attune.weight_get @up : tensor<9x9xf32>
  %z = attune.linear %y, %again : tensor<?x?x9xf32>, tensor<9x9xf32> -> tensor<?x?x9xf32>
  return %z : tensor<?x?x9xf32>
}

// -----

// Nothing to share.
// expected-error @+1 {{has no attention, no feed-forward layer and no vocabulary that ranks could share}}
module {
  func.func @none(%x: tensor<?x?x9xf32>) -> tensor<?x?x9xf32> {
    return %x : tensor<?x?x9xf32>
  }
}

// -----

// Three ranks could have copies of one head, but not of one of the queries'.
attune.weight @one : tensor<12x16xf32> from [#attune.source<"one">]
func.func @one_head(%x: tensor<?x?x16xf32>) -> tensor<?x1x?x?xf32> {
  %w = attune.weight_get @one : tensor<12x16xf32>
  %y = attune.linear %x, %w : tensor<?x?x16xf32>, tensor<12x16xf32> -> tensor<?x?x12xf32>
  %q = attune.split_heads %y : tensor<?x?x12xf32> -> tensor<?x1x?x6xf32>
  %k = attune.split_heads %y at 6 : tensor<?x?x12xf32> -> tensor<?x1x?x6xf32>
  // expected-error @+1 {{1 heads cannot be shared by 3 ranks, of which some would have none}}
  %s = attune.similarity %q, %k scale 1.0 : tensor<?x1x?x6xf32>, tensor<?x1x?x6xf32> -> tensor<?x1x?x?xf32>
  return %s : tensor<?x1x?x?xf32>
}

// -----

// Copies of two heads for three ranks.
attune.weight @two : tensor<24x16xf32> from [#attune.source<"two">]
func.func @two_keys(%x: tensor<?x?x16xf32>) -> tensor<?x4x?x?xf32> {
  %w = attune.weight_get @two : tensor<24x16xf32>
  %y = attune.linear %x, %w : tensor<?x?x16xf32>, tensor<24x16xf32> -> tensor<?x?x24xf32>
  %q = attune.split_heads %y : tensor<?x?x24xf32> -> tensor<?x4x?x4xf32>
  %k = attune.split_heads %y at 16 : tensor<?x?x24xf32> -> tensor<?x2x?x4xf32>
  // expected-error @+1 {{3 ranks cannot have copies of 2 heads of keys and values, equally many of each; --mesh=tp=N takes an N that they divide}}
  %s = attune.similarity %q, %k scale 1.0 : tensor<?x4x?x4xf32>, tensor<?x2x?x4xf32> -> tensor<?x4x?x?xf32>
  return %s : tensor<?x4x?x?xf32>
}

// -----

// Heads made of a product on top of something that all ranks have.
attune.weight @qk : tensor<32x16xf32> from [#attune.source<"qk">]
func.func @stream(%x: tensor<?x?x16xf32>, %y: tensor<?x?x32xf32>) -> tensor<?x4x?x?xf32> {
  %w = attune.weight_get @qk : tensor<32x16xf32>
  // expected-error @+1 {{'attune.linear' cannot be cut by heads among ranks}}
  %z = attune.linear %x, %w residual %y : tensor<?x?x32xf32> : tensor<?x?x16xf32>, tensor<32x16xf32> -> tensor<?x?x32xf32>
  %q = attune.split_heads %z : tensor<?x?x32xf32> -> tensor<?x4x?x4xf32>
  %k = attune.split_heads %z at 16 : tensor<?x?x32xf32> -> tensor<?x4x?x4xf32>
  %s = attune.similarity %q, %k scale 1.0 : tensor<?x4x?x4xf32>, tensor<?x4x?x4xf32> -> tensor<?x4x?x?xf32>
  return %s : tensor<?x4x?x?xf32>
}

// RUN: attune-opt %s --split-input-file --verify-diagnostics

// P1: kernel, stride and padding have one number per spatial dimension
func.func @p1(%x: tensor<1x3x8x8xf32>) {
  // expected-error @+1 {{has 1 numbers of stride for 2 spatial dimensions}}
  %p = attune.patches %x kernel [2, 2] stride [2] padding [0, 0] : tensor<1x3x8x8xf32> -> tensor<?x?x12xf32>
  return
}

// -----

// P1: paddings are less than the kernel
func.func @p1_2(%x: tensor<1x3x8xf32>) {
  // expected-error @+1 {{has padding 2, which is not from 0 to 1}}
  %p = attune.patches %x kernel [2] stride [2] padding [2] : tensor<1x3x8xf32> -> tensor<?x?x6xf32>
  return
}

// -----

// P2: the result is [B, places, C * kernel]
func.func @p2(%x: tensor<1x3x8x8xf32>) {
  // expected-error @+1 {{has result width 10, but channels times kernel are 12}}
  %p = attune.patches %x kernel [2, 2] stride [2, 2] padding [0, 0] : tensor<1x3x8x8xf32> -> tensor<1x16x10xf32>
  return
}

// -----

// P2: places are counted with padding and stride, here along the frames
func.func @p2_2(%x: tensor<1x3x9xf32>) {
  // expected-error @+1 {{has result length 4, but the number of places is 5}}
  %p = attune.patches %x kernel [3] stride [2] padding [1] : tensor<1x3x9xf32> -> tensor<1x4x9xf32>
  return
}

// -----

// P3: the input is no smaller than the kernel
func.func @p3(%x: tensor<1x9x3xf32>) {
  // expected-error @+1 {{has an input of size 9, which is smaller than the kernel of 10}}
  %p = attune.patches %x kernel [10] stride [1] padding [0] channels_last : tensor<1x9x3xf32> -> tensor<1x?x30xf32>
  return
}

// -----

// T1: tokens are [n, D] and the input [B, T, D]
// expected-note @+1 {{tokens comes from here}}
func.func @t1(%t: tensor<1x8xf32>, %x: tensor<2x5x9xf32>) {
  // expected-error @+1 {{has input width 9, but tokens width 8}}
  %y = attune.prepend_tokens %t, %x : tensor<1x8xf32>, tensor<2x5x9xf32> -> tensor<2x6x9xf32>
  return
}

// -----

// T2: the result is [B, n + T, D]
func.func @t2(%t: tensor<2x8xf32>, %x: tensor<2x5x8xf32>) {
  // expected-error @+1 {{has result length 6, but there are 7}}
  %y = attune.prepend_tokens %t, %x : tensor<2x8xf32>, tensor<2x5x8xf32> -> tensor<2x6x8xf32>
  return
}

// -----

// T1: the result is [B, T]
// expected-note @+1 {{operand comes from here}}
func.func @t1_2(%x: tensor<2x5x8xf32>) {
  // expected-error @+1 {{has result length 6, but operand length 5}}
  %y = attune.token_positions %x : tensor<2x5x8xf32> -> tensor<2x6xi64>
  return
}

// -----

// T2: pad needs ids
func.func @t2_2(%x: tensor<2x5x8xf32>) {
  // expected-error @+1 {{has a pad, which only ids [batch, tokens] can hold}}
  %y = attune.token_positions %x pad 0 : tensor<2x5x8xf32> -> tensor<2x5xi64>
  return
}

// -----

// T1: the result is [B]
// expected-note @+1 {{operand comes from here}}
func.func @t1_3(%ids: tensor<2x5xi64>) {
  // expected-error @+1 {{has result batch size 3, but operand batch size 2}}
  %y = attune.find_token %ids : tensor<2x5xi64> -> tensor<3xi64>
  return
}

// -----

// T2: only an id has a last place
func.func @t2_2(%ids: tensor<2x5xi64>) {
  // expected-error @+1 {{asks for the last place of no id}}
  %y = attune.find_token %ids last : tensor<2x5xi64> -> tensor<2xi64>
  return
}

// -----

// T1: the result is [B, D]
// expected-note @+1 {{input comes from here}}
func.func @t1_4(%x: tensor<2x5x8xf32>) {
  // expected-error @+1 {{has result width 9, but input width 8}}
  %y = attune.pool <max> %x : tensor<2x5x8xf32> -> tensor<2x9xf32>
  return
}

// -----

// T2: mask is [B, 1, 1, T] and not for <token>
func.func @t2_3(%x: tensor<2x5x8xf32>, %m: tensor<2x1x1x5xi1>) {
  // expected-error @+1 {{picks tokens by number, which no mask changes}}
  %y = attune.pool <token> %x mask %m : tensor<2x1x1x5xi1> : tensor<2x5x8xf32> -> tensor<2x8xf32>
  return
}

// -----

// T2: mask is [B, 1, 1, T]
// expected-note @+1 {{mask comes from here}}
func.func @t2_4(%x: tensor<2x5x8xf32>, %m: tensor<2x4x1x5xi1>) {
  // expected-error @+1 {{has mask number of heads 4, but tokens have 1}}
  %y = attune.pool <mean> %x mask %m : tensor<2x4x1x5xi1> : tensor<2x5x8xf32> -> tensor<2x8xf32>
  return
}

// -----

// T3: at and index are for <token> only
func.func @t3(%x: tensor<2x5x8xf32>) {
  // expected-error @+1 {{has the number of a token, which belongs to <token>}}
  %y = attune.pool <last> %x index 2 : tensor<2x5x8xf32> -> tensor<2x8xf32>
  return
}

// -----

// T3: at and index, and not both
func.func @t3_2(%x: tensor<2x5x8xf32>, %i: tensor<2xi64>) {
  // expected-error @+1 {{has two numbers of the token it picks}}
  %y = attune.pool <token> %x at %i : tensor<2xi64> index 2 : tensor<2x5x8xf32> -> tensor<2x8xf32>
  return
}

// -----

// T4: index is from 0 to T - 1
func.func @t4(%x: tensor<2x5x8xf32>) {
  // expected-error @+1 {{picks token 5, which is not there}}
  %y = attune.pool <token> %x index 5 : tensor<2x5x8xf32> -> tensor<2x8xf32>
  return
}

// -----

// N1: one number per channel
// expected-note @+1 {{gamma comes from here}}
func.func @n1(%x: tensor<2x5x8xf32>, %g: tensor<9xf32>) {
  // expected-error @+1 {{has input width 8, but gamma width 9}}
  %y = attune.batch_norm %x, %g, %g, %g, %g eps 1.0 : tensor<2x5x8xf32>, tensor<9xf32>
  return
}

// -----

// N2: eps is not negative
func.func @n2(%x: tensor<2x5x8xf32>, %g: tensor<8xf32>) {
  // expected-error @+1 {{which is not a number from 0 on}}
  %y = attune.batch_norm %x, %g, %g, %g, %g eps -1.0 : tensor<2x5x8xf32>, tensor<8xf32>
  return
}

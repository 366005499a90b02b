// RUN: attune-opt %s --split-input-file --verify-diagnostics

// H1: the heads lie within the input
// expected-note @+1 {{input comes from here}}
func.func @h1(%x: tensor<?x?x96xf32>) {
  // expected-error @+1 {{'attune.split_heads' op takes 4 heads of 32 columns from column 0, but the input has 96 columns}}
  %y = attune.split_heads %x : tensor<?x?x96xf32> -> tensor<?x4x?x32xf32>
  return
}

// -----

// H1: also with an offset
// expected-note @+1 {{input comes from here}}
func.func @h1_2(%x: tensor<?x?x96xf32>) {
  // expected-error @+1 {{takes 2 heads of 32 columns from column 64, but the input has 96 columns}}
  %y = attune.split_heads %x at 64 : tensor<?x?x96xf32> -> tensor<?x2x?x32xf32>
  return
}

// -----

// H1: the offset is not negative
// expected-note @+1 {{input comes from here}}
func.func @h1_3(%x: tensor<?x?x?xf32>) {
  // expected-error @+1 {{takes 2 heads of 32 columns from column -1, but the input begins at column 0}}
  %y = attune.split_heads %x at -1 : tensor<?x?x?xf32> -> tensor<?x2x?x32xf32>
  return
}

// -----

// H2: heads and width are static
func.func @h2(%x: tensor<?x?x96xf32>) {
  // expected-error @+1 {{needs static heads and width, but its result is 'tensor<?x?x?x32xf32>'}}
  %y = attune.split_heads %x : tensor<?x?x96xf32> -> tensor<?x?x?x32xf32>
  return
}

// -----

// H3: batch and length agree
// expected-note @+1 {{input comes from here}}
func.func @h3(%x: tensor<2x5x96xf32>) {
  // expected-error @+1 {{has result length 6, but input length 5}}
  %y = attune.split_heads %x : tensor<2x5x96xf32> -> tensor<2x3x6x32xf32>
  return
}

// -----

// H3: batch sizes agree
// expected-note @+1 {{input comes from here}}
func.func @h3_2(%x: tensor<2x?x96xf32>) {
  // expected-error @+1 {{has result batch size 4, but input batch size 2}}
  %y = attune.split_heads %x : tensor<2x?x96xf32> -> tensor<4x3x?x32xbf16>
  return
}

// -----

// J1: batch and length agree
// expected-note @+1 {{input comes from here}}
func.func @j1(%x: tensor<2x3x5x32xf32>) {
  // expected-error @+1 {{'attune.merge_heads' op has result length 3, but input length 5}}
  %y = attune.merge_heads %x : tensor<2x3x5x32xf32> -> tensor<2x3x96xf32>
  return
}

// -----

// J1: the width is that of all heads
func.func @j1_2(%x: tensor<2x3x5x32xf32>) {
  // expected-error @+1 {{has result width 64, but 3 heads of 32 make 96}}
  %y = attune.merge_heads %x : tensor<2x3x5x32xf32> -> tensor<2x5x64xf32>
  return
}

// -----

// J1: element types agree
func.func @j1_3(%x: tensor<2x3x5x32xf32>) {
  // expected-error @+1 {{has an input of 'f32', but a result of 'f16'}}
  %y = attune.merge_heads %x : tensor<2x3x5x32xf32> -> tensor<2x5x96xf16>
  return
}

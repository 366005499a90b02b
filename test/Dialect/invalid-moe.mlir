// RUN: attune-opt %s --split-input-file --verify-diagnostics

// R1: tokens of the results are those of the logits
// expected-note @+1 {{logits comes from here}}
func.func @r1(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{'attune.router' op has experts size 5, but logits size 4}}
  %e, %w = attune.router %x scoring <softmax> : tensor<4x8xf32> -> tensor<5x2xi64>, tensor<4x2xf32>
  return
}

// -----

// R1: as many weights as experts
func.func @r1_2(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{has weights width 3, but experts width 2}}
  %e, %w = attune.router %x scoring <softmax> : tensor<4x8xf32> -> tensor<4x2xi64>, tensor<4x3xf32>
  return
}

// -----

// R1: no more than there are
func.func @r1_3(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{activates 9 of 8 experts}}
  %e, %w = attune.router %x scoring <softmax> : tensor<4x8xf32> -> tensor<4x9xi64>, tensor<4x9xf32>
  return
}

// -----

// R1: numbers, not unknowns
func.func @r1_4(%x: tensor<4x?xf32>) {
  // expected-error @+1 {{needs to know how many experts there are and how many are active}}
  %e, %w = attune.router %x scoring <softmax> : tensor<4x?xf32> -> tensor<4x2xi64>, tensor<4x2xf32>
  return
}

// -----

// R2: one bias for each expert
// expected-note @+1 {{bias comes from here}}
func.func @r2(%x: tensor<4x8xf32>, %b: tensor<7xf32>) {
  // expected-error @+1 {{has bias entries 7, but the number of experts is 8}}
  %e, %w = attune.router %x bias %b : tensor<7xf32> scoring <sigmoid> : tensor<4x8xf32> -> tensor<4x2xi64>, tensor<4x2xf32>
  return
}

// -----

// R3: equal groups
func.func @r3(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{divides 8 experts into 3 groups}}
  %e, %w = attune.router %x scoring <softmax> groups 3 : tensor<4x8xf32> -> tensor<4x2xi64>, tensor<4x2xf32>
  return
}

// -----

// R3: some of them
func.func @r3_2(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{activates 5 of 4 groups}}
  %e, %w = attune.router %x scoring <softmax> groups 4 active_groups 5 : tensor<4x8xf32> -> tensor<4x2xi64>, tensor<4x2xf32>
  return
}

// -----

// R4: enough of them
func.func @r4(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{activates 3 experts, but its 1 active groups have 2}}
  %e, %w = attune.router %x scoring <softmax> groups 4 active_groups 1 : tensor<4x8xf32> -> tensor<4x3xi64>, tensor<4x3xf32>
  return
}

// -----

// R5: scores before the choice
func.func @r5(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{has groups, for which a softmax over the chosen experts comes too late}}
  %e, %w = attune.router %x scoring <top_softmax> groups 4 active_groups 2 : tensor<4x8xf32> -> tensor<4x2xi64>, tensor<4x2xf32>
  return
}

// -----

// R5: two of them in each group
func.func @r5_2(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{judges groups by their best two experts, but they have one}}
  %e, %w = attune.router %x scoring <sigmoid> groups 8 active_groups 2 group_score <top_two> : tensor<4x8xf32> -> tensor<4x2xi64>, tensor<4x2xf32>
  return
}

// -----

// R5: groups are of softmax and sigmoid
func.func @r5_3(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{has groups, which sparse_mixer does not know}}
  %e, %w = attune.router %x scoring <sparse_mixer> groups 4 active_groups 2 : tensor<4x8xf32> -> tensor<4x2xi64>, tensor<4x2xf32>
  return
}

// -----

// R6: shares of near ones are what they are
func.func @r6(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{takes neither a bias nor 'renormalise' with sparse_mixer}}
  %e, %w = attune.router %x scoring <sparse_mixer> renormalise : tensor<4x8xf32> -> tensor<4x2xi64>, tensor<4x2xf32>
  return
}

// -----

// M1: up is as deep as the input is wide
// expected-note @+1 {{up comes from here}}
func.func @m1(%x: tensor<4x16xf32>, %e: tensor<4x2xi64>, %w: tensor<4x2xf32>, %u: tensor<8x24x12xf32>, %d: tensor<8x16x24xf32>) {
  // expected-error @+1 {{'attune.moe' op has input width 16, but up depth 12}}
  %y = attune.moe %x, %e, %w, %u, %d activation <silu>
     : tensor<4x16xf32>, tensor<4x2xi64>, tensor<4x2xf32>, tensor<8x24x12xf32>, tensor<8x16x24xf32> -> tensor<4x16xf32>
  return
}

// -----

// M1: gate and up below each other
// expected-note @+1 {{up comes from here}}
func.func @m1_2(%x: tensor<4x16xf32>, %e: tensor<4x2xi64>, %w: tensor<4x2xf32>, %u: tensor<8x24x16xf32>, %d: tensor<8x16x24xf32>) {
  // expected-error @+1 {{has up rows 24, but twice the depth of down is 48}}
  %y = attune.moe %x, %e, %w, %u, %d gated activation <silu>
     : tensor<4x16xf32>, tensor<4x2xi64>, tensor<4x2xf32>, tensor<8x24x16xf32>, tensor<8x16x24xf32> -> tensor<4x16xf32>
  return
}

// -----

// M1: in panels
// expected-note @+1 {{down comes from here}}
func.func @m1_3(%x: tensor<4x16xf32>, %e: tensor<4x2xi64>, %w: tensor<4x2xf32>, %u: tensor<8x3x16x8xf32>, %d: tensor<8x3x24x8xf32>) {
  // expected-error @+1 {{has down panels 3, but the result takes rows: panels of 8 to hold them are 2}}
  %y = attune.moe %x, %e, %w, %u, %d activation <silu>
     : tensor<4x16xf32>, tensor<4x2xi64>, tensor<4x2xf32>, tensor<8x3x16x8xf32>, tensor<8x3x24x8xf32> -> tensor<4x16xf32>
  return
}

// -----

// M1: both in pairs or neither
// expected-note @+1 {{up comes from here}}
func.func @m1_4(%x: tensor<4x16xbf16>, %e: tensor<4x2xi64>, %w: tensor<4x2xf32>, %u: tensor<8x3x8x16xbf16>, %d: tensor<8x2x24x8xbf16>) {
  // expected-error @+1 {{has up panels 3, but the depth of down is: panels of 8 to hold them are 6}}
  %y = attune.moe %x, %e, %w, %u, %d activation <silu>
     : tensor<4x16xbf16>, tensor<4x2xi64>, tensor<4x2xf32>, tensor<8x3x8x16xbf16>, tensor<8x2x24x8xbf16> -> tensor<4x16xf32>
  return
}

// -----

// M2: experts for every token
// expected-note @+1 {{input comes from here}}
func.func @m2(%x: tensor<4x16xf32>, %e: tensor<3x2xi64>, %w: tensor<4x2xf32>, %u: tensor<8x24x16xf32>, %d: tensor<8x16x24xf32>) {
  // expected-error @+1 {{has experts size 3, but input size 4}}
  %y = attune.moe %x, %e, %w, %u, %d activation <silu>
     : tensor<4x16xf32>, tensor<3x2xi64>, tensor<4x2xf32>, tensor<8x24x16xf32>, tensor<8x16x24xf32> -> tensor<4x16xf32>
  return
}

// -----

// M2: as many weights
// expected-note @+1 {{experts comes from here}}
func.func @m2_2(%x: tensor<4x16xf32>, %e: tensor<4x2xi64>, %w: tensor<4x3xf32>, %u: tensor<8x24x16xf32>, %d: tensor<8x16x24xf32>) {
  // expected-error @+1 {{has weights width 3, but experts width 2}}
  %y = attune.moe %x, %e, %w, %u, %d activation <silu>
     : tensor<4x16xf32>, tensor<4x2xi64>, tensor<4x3xf32>, tensor<8x24x16xf32>, tensor<8x16x24xf32> -> tensor<4x16xf32>
  return
}

// -----

// M3: what is added is like the result
// expected-note @+1 {{residual comes from here}}
func.func @m3(%x: tensor<4x16xf32>, %e: tensor<4x2xi64>, %w: tensor<4x2xf32>, %u: tensor<8x24x16xf32>, %d: tensor<8x16x24xf32>, %r: tensor<4x12xf32>) {
  // expected-error @+1 {{has residual of type 'tensor<4x12xf32>', but a result of type 'tensor<4x16xf32>'}}
  %y = attune.moe %x, %e, %w, %u, %d residual %r : tensor<4x12xf32> activation <silu>
     : tensor<4x16xf32>, tensor<4x2xi64>, tensor<4x2xf32>, tensor<8x24x16xf32>, tensor<8x16x24xf32> -> tensor<4x16xf32>
  return
}

// -----

// M4: both matrices of every expert
// expected-note @+1 {{down comes from here}}
func.func @m4(%x: tensor<4x16xf32>, %e: tensor<4x2xi64>, %w: tensor<4x2xf32>, %u: tensor<8x24x16xf32>, %d: tensor<7x16x24xf32>) {
  // expected-error @+1 {{has up experts 8, but down experts 7}}
  %y = attune.moe %x, %e, %w, %u, %d activation <silu>
     : tensor<4x16xf32>, tensor<4x2xi64>, tensor<4x2xf32>, tensor<8x24x16xf32>, tensor<7x16x24xf32> -> tensor<4x16xf32>
  return
}

// -----

// M5: a bias for each row of every expert
// expected-note @+1 {{up_bias comes from here}}
func.func @m5(%x: tensor<4x16xf32>, %e: tensor<4x2xi64>, %w: tensor<4x2xf32>, %u: tensor<8x48x16xf32>, %d: tensor<8x16x24xf32>, %b: tensor<8x24xf32>) {
  // expected-error @+1 {{has up_bias entries 24, but twice the hidden layer is 48}}
  %y = attune.moe %x, %e, %w, %u, %d up_bias %b : tensor<8x24xf32> gated activation <silu>
     : tensor<4x16xf32>, tensor<4x2xi64>, tensor<4x2xf32>, tensor<8x48x16xf32>, tensor<8x16x24xf32> -> tensor<4x16xf32>
  return
}

// -----

// M5: and for every expert
// expected-note @+1 {{down_bias comes from here}}
func.func @m5_2(%x: tensor<4x16xf32>, %e: tensor<4x2xi64>, %w: tensor<4x2xf32>, %u: tensor<8x48x16xf32>, %d: tensor<8x16x24xf32>, %b: tensor<7x16xf32>) {
  // expected-error @+1 {{has up experts 8, but down_bias experts 7}}
  %y = attune.moe %x, %e, %w, %u, %d down_bias %b : tensor<7x16xf32> gated activation <silu>
     : tensor<4x16xf32>, tensor<4x2xi64>, tensor<4x2xf32>, tensor<8x48x16xf32>, tensor<8x16x24xf32> -> tensor<4x16xf32>
  return
}

// -----

// M6: of a gated layer
func.func @m6(%x: tensor<4x16xf32>, %e: tensor<4x2xi64>, %w: tensor<4x2xf32>, %u: tensor<8x24x16xf32>, %d: tensor<8x16x24xf32>) {
  // expected-error @+1 {{has a limit or an offset of up, which belong to a gated layer}}
  %y = attune.moe %x, %e, %w, %u, %d activation <silu> limit 7.0
     : tensor<4x16xf32>, tensor<4x2xi64>, tensor<4x2xf32>, tensor<8x24x16xf32>, tensor<8x16x24xf32> -> tensor<4x16xf32>
  return
}

// -----

// M6: a limit above 0
func.func @m6_2(%x: tensor<4x16xf32>, %e: tensor<4x2xi64>, %w: tensor<4x2xf32>, %u: tensor<8x48x16xf32>, %d: tensor<8x16x24xf32>) {
  // expected-error @+1 {{has a limit of 0.000000e+00, which is not positive}}
  %y = attune.moe %x, %e, %w, %u, %d gated activation <silu> limit 0.0
     : tensor<4x16xf32>, tensor<4x2xi64>, tensor<4x2xf32>, tensor<8x48x16xf32>, tensor<8x16x24xf32> -> tensor<4x16xf32>
  return
}

// -----

// Q1: up reads the input
// expected-note @+1 {{up comes from here}}
func.func @q1(%q: tensor<4x64xi8>, %s: tensor<4x2xf32>, %n: tensor<4x2xi32>, %e: tensor<4x2xi64>, %w: tensor<4x2xf32>, %u: tensor<8x32x60xi8>, %t: tensor<8x32x2xf32>, %d: tensor<8x16x32xi8>, %v: tensor<8x16x1xf32>) {
  // expected-error @+1 {{'attune.quantized_moe' op has up depth 60, but rows that it multiplies take 64}}
  %y = attune.quantized_moe %q scales %s sums %n, %e, %w, %u scales %t, %d scales %v hidden 32 activation <silu>
     : (tensor<4x64xi8>, tensor<4x2xf32>, tensor<4x2xi32>), tensor<4x2xi64>, tensor<4x2xf32>,
       (tensor<8x32x60xi8>, tensor<8x32x2xf32>), (tensor<8x16x32xi8>, tensor<8x16x1xf32>) -> tensor<4x16xf32>
  return
}

// -----

// Q1: and gives the hidden layer
// expected-note @+1 {{up comes from here}}
func.func @q1_2(%q: tensor<4x64xi8>, %s: tensor<4x2xf32>, %n: tensor<4x2xi32>, %e: tensor<4x2xi64>, %w: tensor<4x2xf32>, %u: tensor<8x32x64xi8>, %t: tensor<8x32x2xf32>, %d: tensor<8x16x32xi8>, %v: tensor<8x16x1xf32>) {
  // expected-error @+1 {{has up rows 32, but the hidden layer is 64}}
  %y = attune.quantized_moe %q scales %s sums %n, %e, %w, %u scales %t, %d scales %v hidden 64 activation <silu>
     : (tensor<4x64xi8>, tensor<4x2xf32>, tensor<4x2xi32>), tensor<4x2xi64>, tensor<4x2xf32>,
       (tensor<8x32x64xi8>, tensor<8x32x2xf32>), (tensor<8x16x32xi8>, tensor<8x16x1xf32>) -> tensor<4x16xf32>
  return
}

// -----

// Q1: a stack and its scales are in panels, or neither
func.func @q1_3(%q: tensor<4x64xi8>, %s: tensor<4x2xf32>, %n: tensor<4x2xi32>, %e: tensor<4x2xi64>, %w: tensor<4x2xf32>, %u: tensor<8x32x64xi8>, %t: tensor<8x32x2xf32>, %d: tensor<8x2x8x32xi8>, %v: tensor<8x16x1xf32>) {
  // expected-error @+1 {{has down and its scales not both in panels}}
  %y = attune.quantized_moe %q scales %s sums %n, %e, %w, %u scales %t, %d scales %v hidden 32 activation <silu>
     : (tensor<4x64xi8>, tensor<4x2xf32>, tensor<4x2xi32>), tensor<4x2xi64>, tensor<4x2xf32>,
       (tensor<8x32x64xi8>, tensor<8x32x2xf32>), (tensor<8x2x8x32xi8>, tensor<8x16x1xf32>) -> tensor<4x16xf32>
  return
}

// -----

// Q2: scales of up are as many as the input's
// expected-note @+1 {{input scales comes from here}}
func.func @q2(%q: tensor<4x64xi8>, %s: tensor<4x2xf32>, %n: tensor<4x2xi32>, %e: tensor<4x2xi64>, %w: tensor<4x2xf32>, %u: tensor<8x32x64xi8>, %t: tensor<8x32x4xf32>, %d: tensor<8x16x32xi8>, %v: tensor<8x16x1xf32>) {
  // expected-error @+1 {{has scales of up number 4, but input scales number 2}}
  %y = attune.quantized_moe %q scales %s sums %n, %e, %w, %u scales %t, %d scales %v hidden 32 activation <silu>
     : (tensor<4x64xi8>, tensor<4x2xf32>, tensor<4x2xi32>), tensor<4x2xi64>, tensor<4x2xf32>,
       (tensor<8x32x64xi8>, tensor<8x32x4xf32>), (tensor<8x16x32xi8>, tensor<8x16x1xf32>) -> tensor<4x16xf32>
  return
}

// -----

// Q2: those of down make whole groups of the hidden layer
func.func @q2_2(%q: tensor<4x64xi8>, %s: tensor<4x2xf32>, %n: tensor<4x2xi32>, %e: tensor<4x2xi64>, %w: tensor<4x2xf32>, %u: tensor<8x32x64xi8>, %t: tensor<8x32x2xf32>, %d: tensor<8x16x32xi8>, %v: tensor<8x16x3xf32>) {
  // expected-error @+1 {{has 3 scales of down for rows of 32, which are no equal groups of 4, 8, 12, ..., 65536}}
  %y = attune.quantized_moe %q scales %s sums %n, %e, %w, %u scales %t, %d scales %v hidden 32 activation <silu>
     : (tensor<4x64xi8>, tensor<4x2xf32>, tensor<4x2xi32>), tensor<4x2xi64>, tensor<4x2xf32>,
       (tensor<8x32x64xi8>, tensor<8x32x2xf32>), (tensor<8x16x32xi8>, tensor<8x16x3xf32>) -> tensor<4x16xf32>
  return
}

// -----

// Q3: all have the result's tokens
// expected-note @+1 {{experts comes from here}}
func.func @q3(%q: tensor<4x64xi8>, %s: tensor<4x2xf32>, %n: tensor<4x2xi32>, %e: tensor<5x2xi64>, %w: tensor<4x2xf32>, %u: tensor<8x32x64xi8>, %t: tensor<8x32x2xf32>, %d: tensor<8x16x32xi8>, %v: tensor<8x16x1xf32>) {
  // expected-error @+1 {{has result size 4, but experts size 5}}
  %y = attune.quantized_moe %q scales %s sums %n, %e, %w, %u scales %t, %d scales %v hidden 32 activation <silu>
     : (tensor<4x64xi8>, tensor<4x2xf32>, tensor<4x2xi32>), tensor<5x2xi64>, tensor<4x2xf32>,
       (tensor<8x32x64xi8>, tensor<8x32x2xf32>), (tensor<8x16x32xi8>, tensor<8x16x1xf32>) -> tensor<4x16xf32>
  return
}

// -----

// Q4: residual has the result's type
// expected-note @+1 {{residual comes from here}}
func.func @q4(%q: tensor<4x64xi8>, %s: tensor<4x2xf32>, %n: tensor<4x2xi32>, %e: tensor<4x2xi64>, %w: tensor<4x2xf32>, %u: tensor<8x32x64xi8>, %t: tensor<8x32x2xf32>, %d: tensor<8x16x32xi8>, %v: tensor<8x16x1xf32>, %r: tensor<4x17xf32>) {
  // expected-error @+1 {{has residual of type }}
  %y = attune.quantized_moe %q scales %s sums %n, %e, %w, %u scales %t, %d scales %v residual %r : tensor<4x17xf32> hidden 32 activation <silu>
     : (tensor<4x64xi8>, tensor<4x2xf32>, tensor<4x2xi32>), tensor<4x2xi64>, tensor<4x2xf32>,
       (tensor<8x32x64xi8>, tensor<8x32x2xf32>), (tensor<8x16x32xi8>, tensor<8x16x1xf32>) -> tensor<4x16xf32>
  return
}

// -----

// Q5: equally many experts
// expected-note @+1 {{down comes from here}}
func.func @q5(%q: tensor<4x64xi8>, %s: tensor<4x2xf32>, %n: tensor<4x2xi32>, %e: tensor<4x2xi64>, %w: tensor<4x2xf32>, %u: tensor<8x32x64xi8>, %t: tensor<8x32x2xf32>, %d: tensor<7x16x32xi8>, %v: tensor<8x16x1xf32>) {
  // expected-error @+1 {{has up experts 8, but down experts 7}}
  %y = attune.quantized_moe %q scales %s sums %n, %e, %w, %u scales %t, %d scales %v hidden 32 activation <silu>
     : (tensor<4x64xi8>, tensor<4x2xf32>, tensor<4x2xi32>), tensor<4x2xi64>, tensor<4x2xf32>,
       (tensor<8x32x64xi8>, tensor<8x32x2xf32>), (tensor<7x16x32xi8>, tensor<8x16x1xf32>) -> tensor<4x16xf32>
  return
}

// -----

// Q6: biases of every expert
// expected-note @+1 {{down_bias comes from here}}
func.func @q6(%q: tensor<4x64xi8>, %s: tensor<4x2xf32>, %n: tensor<4x2xi32>, %e: tensor<4x2xi64>, %w: tensor<4x2xf32>, %u: tensor<8x32x64xi8>, %t: tensor<8x32x2xf32>, %d: tensor<8x16x32xi8>, %v: tensor<8x16x1xf32>, %b: tensor<8x17xf32>) {
  // expected-error @+1 {{has down_bias entries 17, but the result takes rows 16}}
  %y = attune.quantized_moe %q scales %s sums %n, %e, %w, %u scales %t, %d scales %v down_bias %b : tensor<8x17xf32> hidden 32 activation <silu>
     : (tensor<4x64xi8>, tensor<4x2xf32>, tensor<4x2xi32>), tensor<4x2xi64>, tensor<4x2xf32>,
       (tensor<8x32x64xi8>, tensor<8x32x2xf32>), (tensor<8x16x32xi8>, tensor<8x16x1xf32>) -> tensor<4x16xf32>
  return
}

// -----

// H1: a matrix for each head
// expected-note @+1 {{input comes from here}}
func.func @h1(%x: tensor<1x4x?x12xf32>, %w: tensor<3x24x12xf32>) {
  // expected-error @+1 {{'attune.head_linear' op has weight heads 3, but input heads 4}}
  %y = attune.head_linear %x, %w : tensor<1x4x?x12xf32>, tensor<3x24x12xf32> -> tensor<1x4x?x24xf32>
  return
}

// -----

// H1: that gives the result's channels
// expected-note @+1 {{weight comes from here}}
func.func @h1_2(%x: tensor<1x4x?x12xf32>, %w: tensor<4x20x12xf32>) {
  // expected-error @+1 {{has weight rows 20, but the result takes rows 24}}
  %y = attune.head_linear %x, %w : tensor<1x4x?x12xf32>, tensor<4x20x12xf32> -> tensor<1x4x?x24xf32>
  return
}

// -----

// H2: of the same tokens
// expected-note @+1 {{input comes from here}}
func.func @h2(%x: tensor<1x4x5x12xf32>, %w: tensor<4x24x12xf32>) {
  // expected-error @+1 {{has result tokens 6, but input tokens 5}}
  %y = attune.head_linear %x, %w : tensor<1x4x5x12xf32>, tensor<4x24x12xf32> -> tensor<1x4x6x24xf32>
  return
}

// -----

// Q7: bytes have scales
func.func @q7(%q: tensor<4x64xi8>, %e: tensor<4x2xi64>, %w: tensor<4x2xf32>, %u: tensor<8x32x64xi8>, %t: tensor<8x32x2xf32>, %d: tensor<8x16x32xi8>, %v: tensor<8x16x1xf32>) {
  // expected-error @+1 {{has an input of bytes without scales and sums}}
  %y = attune.quantized_moe %q, %e, %w, %u scales %t, %d scales %v hidden 32 activation <silu>
     : (tensor<4x64xi8>), tensor<4x2xi64>, tensor<4x2xf32>,
       (tensor<8x32x64xi8>, tensor<8x32x2xf32>), (tensor<8x16x32xi8>, tensor<8x16x1xf32>) -> tensor<4x16xf32>
  return
}

// -----

// Q7: pairs of scales and zero points
func.func @q7_2(%x: tensor<4x64xf32>, %e: tensor<4x2xi64>, %w: tensor<4x2xf32>, %u: tensor<8x32x64xi8>, %t: tensor<8x32x3xf32>, %d: tensor<8x16x32xi8>, %v: tensor<8x16x1xf32>) {
  // expected-error @+1 {{has 3 scales of up and zeros for rows of 64, which are no equal groups}}
  %y = attune.quantized_moe %x, %e, %w, %u scales %t up_zeros, %d scales %v hidden 32 activation <silu>
     : (tensor<4x64xf32>), tensor<4x2xi64>, tensor<4x2xf32>,
       (tensor<8x32x64xi8>, tensor<8x32x3xf32>), (tensor<8x16x32xi8>, tensor<8x16x1xf32>) -> tensor<4x16xf32>
  return
}

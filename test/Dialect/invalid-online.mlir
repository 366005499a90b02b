// RUN: attune-opt %s --split-input-file --verify-diagnostics

// O1: batch sizes agree
// expected-note @+1 {{key comes from here}}
func.func @o1(%q: tensor<1x8x4x64xf32>, %k: tensor<3x2x6x64xf32>, %v: tensor<1x2x6x64xf32>, %n: index, %acc: tensor<1x8x4x64xf32>, %max: tensor<1x8x4xf32>, %sum: tensor<1x8x4xf32>) {
  // expected-error @+1 {{'attune.online_attention' op has query batch size 1, but key batch size 3}}
  %s:3 = attune.online_attention %q, %k, %v scale 0.125 at [%n, %n] of [%n, %n] outs(%acc, %max, %sum : tensor<1x8x4x64xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>) : tensor<1x8x4x64xf32>, tensor<3x2x6x64xf32>, tensor<1x2x6x64xf32> -> tensor<1x8x4x64xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>
  return
}

// -----

// O2: Hq is a multiple of Hkv
// expected-note @+1 {{key comes from here}}
func.func @o2(%q: tensor<1x8x4x64xf32>, %k: tensor<1x3x6x64xf32>, %v: tensor<1x3x6x64xf32>, %n: index, %acc: tensor<1x8x4x64xf32>, %max: tensor<1x8x4xf32>, %sum: tensor<1x8x4xf32>) {
  // expected-error @+1 {{has 8 query heads, which 3 key heads cannot share evenly}}
  %s:3 = attune.online_attention %q, %k, %v scale 0.125 at [%n, %n] of [%n, %n] outs(%acc, %max, %sum : tensor<1x8x4x64xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>) : tensor<1x8x4x64xf32>, tensor<1x3x6x64xf32>, tensor<1x3x6x64xf32> -> tensor<1x8x4x64xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>
  return
}

// -----

// O3: key and value have equal length
// expected-note @+1 {{value comes from here}}
func.func @o3(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x6x64xf32>, %v: tensor<1x2x7x64xf32>, %n: index, %acc: tensor<1x8x4x64xf32>, %max: tensor<1x8x4xf32>, %sum: tensor<1x8x4xf32>) {
  // expected-error @+1 {{has key length 6, but value length 7}}
  %s:3 = attune.online_attention %q, %k, %v scale 0.125 at [%n, %n] of [%n, %n] outs(%acc, %max, %sum : tensor<1x8x4x64xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>) : tensor<1x8x4x64xf32>, tensor<1x2x6x64xf32>, tensor<1x2x7x64xf32> -> tensor<1x8x4x64xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>
  return
}

// -----

// O4: mask is cut to the block
// expected-note @+1 {{key comes from here}}
func.func @o4(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x6x64xf32>, %v: tensor<1x2x6x64xf32>, %n: index, %acc: tensor<1x8x4x64xf32>, %max: tensor<1x8x4xf32>, %sum: tensor<1x8x4xf32>, %m: tensor<1x1x1x12xi1>) {
  // expected-error @+1 {{has mask length 12, but key length 6}}
  %s:3 = attune.online_attention %q, %k, %v scale 0.125 mask %m : tensor<1x1x1x12xi1> at [%n, %n] of [%n, %n] outs(%acc, %max, %sum : tensor<1x8x4x64xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>) : tensor<1x8x4x64xf32>, tensor<1x2x6x64xf32>, tensor<1x2x6x64xf32> -> tensor<1x8x4x64xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>
  return
}

// -----

// O5: window > 0
func.func @o5(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x6x64xf32>, %v: tensor<1x2x6x64xf32>, %n: index, %acc: tensor<1x8x4x64xf32>, %max: tensor<1x8x4xf32>, %sum: tensor<1x8x4xf32>) {
  // expected-error @+1 {{has a window of 0 keys, which hides every key}}
  %s:3 = attune.online_attention %q, %k, %v scale 0.125 window 0 at [%n, %n] of [%n, %n] outs(%acc, %max, %sum : tensor<1x8x4x64xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>) : tensor<1x8x4x64xf32>, tensor<1x2x6x64xf32>, tensor<1x2x6x64xf32> -> tensor<1x8x4x64xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>
  return
}

// -----

// O6: the states fit the query block
// expected-note @+1 {{accumulator comes from here}}
func.func @o6(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x6x64xf32>, %v: tensor<1x2x6x64xf32>, %n: index, %acc: tensor<1x8x4x64xf32>, %max: tensor<1x8x5xf32>, %sum: tensor<1x8x4xf32>) {
  // expected-error @+1 {{has maximum queries 5, but accumulator queries 4}}
  %s:3 = attune.online_attention %q, %k, %v scale 0.125 at [%n, %n] of [%n, %n] outs(%acc, %max, %sum : tensor<1x8x4x64xf32>, tensor<1x8x5xf32>, tensor<1x8x4xf32>) : tensor<1x8x4x64xf32>, tensor<1x2x6x64xf32>, tensor<1x2x6x64xf32> -> tensor<1x8x4x64xf32>, tensor<1x8x5xf32>, tensor<1x8x4xf32>
  return
}

// -----

// O6: acc is f32
// expected-note @+1 {{the accumulator comes from here}}
func.func @o6_2(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x6x64xf32>, %v: tensor<1x2x6x64xf32>, %n: index, %acc: tensor<1x8x4x64xbf16>, %max: tensor<1x8x4xf32>, %sum: tensor<1x8x4xf32>) {
  // expected-error @+1 {{accumulates in 'bf16', but only f32 keeps enough digits}}
  %s:3 = attune.online_attention %q, %k, %v scale 0.125 at [%n, %n] of [%n, %n] outs(%acc, %max, %sum : tensor<1x8x4x64xbf16>, tensor<1x8x4xf32>, tensor<1x8x4xf32>) : tensor<1x8x4x64xf32>, tensor<1x2x6x64xf32>, tensor<1x2x6x64xf32> -> tensor<1x8x4x64xbf16>, tensor<1x8x4xf32>, tensor<1x8x4xf32>
  return
}

// -----

// T1: the states keep their types
func.func @t1(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x6x64xf32>, %v: tensor<1x2x6x64xf32>, %n: index, %acc: tensor<1x8x4x64xf32>, %max: tensor<1x8x4xf32>, %sum: tensor<1x8x4xf32>) {
  // expected-error @+1 {{expected type of operand #7 ('tensor<1x8x4x64xf32>') to match type of corresponding result ('tensor<1x8x?x64xf32>')}}
  %s:3 = attune.online_attention %q, %k, %v scale 0.125 at [%n, %n] of [%n, %n] outs(%acc, %max, %sum : tensor<1x8x4x64xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>) : tensor<1x8x4x64xf32>, tensor<1x2x6x64xf32>, tensor<1x2x6x64xf32> -> tensor<1x8x?x64xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>
  return
}

// -----

// P1: maximum and sum are [B, H, M]
// expected-note @+1 {{accumulator comes from here}}
func.func @p1(%a: tensor<1x8x4x64xf32>, %m: tensor<1x4x4xf32>) {
  // expected-error @+1 {{has maximum heads 4, but accumulator heads 8}}
  %s:3 = attune.online_merge (%a, %m, %m) outs(%a, %m, %m : tensor<1x8x4x64xf32>, tensor<1x4x4xf32>) : tensor<1x8x4x64xf32>, tensor<1x4x4xf32> -> tensor<1x8x4x64xf32>, tensor<1x4x4xf32>, tensor<1x4x4xf32>
  return
}

// -----

// Z1: maximum and sum are [B, H, M]
// expected-note @+1 {{accumulator comes from here}}
func.func @z1(%a: tensor<1x8x4x64xf32>, %m: tensor<1x8x4xf32>, %l: tensor<1x8x3xf32>) {
  // expected-error @+1 {{has sum queries 3, but accumulator queries 4}}
  %y = attune.online_finish %a, %m, %l into %a : tensor<1x8x4x64xf32>, tensor<1x8x4xf32>, tensor<1x8x3xf32>, tensor<1x8x4x64xf32> -> tensor<1x8x4x64xf32>
  return
}

// -----

// Z2: sinks is [H]
// expected-note @+1 {{query comes from here}}
func.func @z2(%a: tensor<1x8x4x64xf32>, %m: tensor<1x8x4xf32>, %l: tensor<3xf32>) {
  // expected-error @+1 {{has sinks entries 3, but query heads 8}}
  %y = attune.online_finish %a, %m, %m sinks %l : tensor<3xf32> into %a : tensor<1x8x4x64xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>, tensor<1x8x4x64xf32> -> tensor<1x8x4x64xf32>
  return
}

// -----

// Z3: the destination has the accumulator's shape
// expected-note @+1 {{accumulator comes from here}}
func.func @z3(%a: tensor<1x8x4x64xf32>, %m: tensor<1x8x4xf32>, %d: tensor<1x8x4x32xf32>) {
  // expected-error @+1 {{has destination width 32, but accumulator width 64}}
  %y = attune.online_finish %a, %m, %m into %d : tensor<1x8x4x64xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>, tensor<1x8x4x32xf32> -> tensor<1x8x4x32xf32>
  return
}

// -----

// Z3: lse has the maximum's shape
// expected-note @+1 {{accumulator comes from here}}
func.func @z3_2(%a: tensor<1x8x4x64xf32>, %m: tensor<1x8x4xf32>, %d: tensor<1x8x2xf32>) {
  // expected-error @+1 {{has lse queries 2, but accumulator queries 4}}
  %y:2 = attune.online_finish %a, %m, %m into %a lse %d : tensor<1x8x2xf32> : tensor<1x8x4x64xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>, tensor<1x8x4x64xf32> -> tensor<1x8x4x64xf32>, tensor<1x8x2xf32>
  return
}

// -----

// O7: a row of diagonals for each head
// expected-note @+1 {{query comes from here}}
func.func @o7(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x6x64xf32>, %v: tensor<1x2x6x64xf32>, %d: tensor<2x40xf32>,
    %acc: tensor<1x8x4x64xf32>, %max: tensor<1x8x4xf32>, %i: index) {
  // expected-error @+1 {{has diagonals heads 2, but query heads 8}}
  %s:3 = attune.online_attention %q, %k, %v scale 0.125 diagonals %d : tensor<2x40xf32> at [%i, %i] of [%i, %i]
     outs(%acc, %max, %max : tensor<1x8x4x64xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>)
     : tensor<1x8x4x64xf32>, tensor<1x2x6x64xf32>, tensor<1x2x6x64xf32>
     -> tensor<1x8x4x64xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>
  return
}

// -----

// T1: tensors or buffers
func.func @t1_2(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x6x64xf32>, %n: index, %acc: tensor<1x8x4x64xf32>, %max: tensor<1x8x4xf32>, %sum: tensor<1x8x4xf32>, %b: memref<1x8x4xf32>) {
  // expected-error @+1 {{has both tensors and buffers as operands}}
  %s:2 = attune.online_start outs(%acc, %max, %b : tensor<1x8x4x64xf32>, tensor<1x8x4xf32>, memref<1x8x4xf32>) -> tensor<1x8x4x64xf32>, tensor<1x8x4xf32>
  return
}

// -----

// B1: maximum and sum are [B, H, M]
// expected-note @+1 {{accumulator comes from here}}
func.func @b1(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x6x64xf32>, %n: index, %acc: tensor<1x8x4x64xf32>, %max: tensor<1x8x4xf32>, %sum: tensor<1x8x4xf32>, %l: tensor<1x8x3xf32>) {
  // expected-error @+1 {{has sum queries 3, but accumulator queries 4}}
  %s:3 = attune.online_start outs(%acc, %max, %l : tensor<1x8x4x64xf32>, tensor<1x8x4xf32>, tensor<1x8x3xf32>) -> tensor<1x8x4x64xf32>, tensor<1x8x4xf32>, tensor<1x8x3xf32>
  return
}

// -----

// O8: two numbers
func.func @o8(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x6x64xf32>, %n: index, %acc: tensor<1x8x4x64xf32>, %max: tensor<1x8x4xf32>, %sum: tensor<1x8x4xf32>) {
  // expected-error @+1 {{has a tile of 1 numbers, but needs those of queries and keys}}
  %s:3 = attune.online_attention %q, %k, %k scale 0.125 at [%n, %n] of [%n, %n] tile [4] outs(%acc, %max, %sum : tensor<1x8x4x64xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>) : tensor<1x8x4x64xf32>, tensor<1x2x6x64xf32>, tensor<1x2x6x64xf32> -> tensor<1x8x4x64xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>
  return
}

// -----

// O8: positive numbers
func.func @o8_2(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x6x64xf32>, %n: index, %acc: tensor<1x8x4x64xf32>, %max: tensor<1x8x4xf32>, %sum: tensor<1x8x4xf32>) {
  // expected-error @+1 {{has a tile of 0 keys, which is not a positive number}}
  %s:3 = attune.online_attention %q, %k, %k scale 0.125 at [%n, %n] of [%n, %n] tile [4, 0] outs(%acc, %max, %sum : tensor<1x8x4x64xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>) : tensor<1x8x4x64xf32>, tensor<1x2x6x64xf32>, tensor<1x2x6x64xf32> -> tensor<1x8x4x64xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>
  return
}

// -----

// O8: no less than known sizes
func.func @o8_3(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x6x64xf32>, %n: index, %acc: tensor<1x8x4x64xf32>, %max: tensor<1x8x4xf32>, %sum: tensor<1x8x4xf32>) {
  // expected-error @+1 {{has 6 keys in a tile of at most 5}}
  %s:3 = attune.online_attention %q, %k, %k scale 0.125 at [%n, %n] of [%n, %n] tile [4, 5] outs(%acc, %max, %sum : tensor<1x8x4x64xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>) : tensor<1x8x4x64xf32>, tensor<1x2x6x64xf32>, tensor<1x2x6x64xf32> -> tensor<1x8x4x64xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>
  return
}

// -----

// O9: the width of the keys
// expected-note @+1 {{key comes from here}}
func.func @o9(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x6x64xf32>, %n: index, %acc: tensor<1x8x4x64xf32>, %max: tensor<1x8x4xf32>, %sum: tensor<1x8x4xf32>, %x: tensor<1x2x9x32xf32>) {
  // expected-error @+1 {{has next key width 32, but key width 64}}
  %s:3 = attune.online_attention %q, %k, %k scale 0.125 at [%n, %n] of [%n, %n] prefetch %x, %k : tensor<1x2x9x32xf32>, tensor<1x2x6x64xf32> outs(%acc, %max, %sum : tensor<1x8x4x64xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>) : tensor<1x8x4x64xf32>, tensor<1x2x6x64xf32>, tensor<1x2x6x64xf32> -> tensor<1x8x4x64xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>
  return
}

// -----

// O9: the type of the values
func.func @o9_2(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x6x64xf32>, %n: index, %acc: tensor<1x8x4x64xf32>, %max: tensor<1x8x4xf32>, %sum: tensor<1x8x4xf32>, %x: tensor<1x2x9x64xf16>) {
  // expected-error @+1 {{prefetches values of another type than 'f32'}}
  %s:3 = attune.online_attention %q, %k, %k scale 0.125 at [%n, %n] of [%n, %n] prefetch %k, %x : tensor<1x2x6x64xf32>, tensor<1x2x9x64xf16> outs(%acc, %max, %sum : tensor<1x8x4x64xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>) : tensor<1x8x4x64xf32>, tensor<1x2x6x64xf32>, tensor<1x2x6x64xf32> -> tensor<1x8x4x64xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>
  return
}

// -----

// P2: states of the same shape
// expected-note @+1 {{accumulator comes from here}}
func.func @p2(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x6x64xf32>, %n: index, %acc: tensor<1x8x4x64xf32>, %max: tensor<1x8x4xf32>, %sum: tensor<1x8x4xf32>, %b: tensor<1x8x4x32xf32>) {
  // expected-error @+1 {{has second accumulator width 32, but accumulator width 64}}
  %s:3 = attune.online_merge (%b, %max, %sum) outs(%acc, %max, %sum : tensor<1x8x4x64xf32>, tensor<1x8x4xf32>) : tensor<1x8x4x32xf32>, tensor<1x8x4xf32> -> tensor<1x8x4x64xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>
  return
}

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

// O6: the states keep their types
func.func @o6_3(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x6x64xf32>, %v: tensor<1x2x6x64xf32>, %n: index, %acc: tensor<1x8x4x64xf32>, %max: tensor<1x8x4xf32>, %sum: tensor<1x8x4xf32>) {
  // expected-error @+1 {{takes a state of type 'tensor<1x8x4x64xf32>', but gives one of type 'tensor<1x8x?x64xf32>'}}
  %s:3 = attune.online_attention %q, %k, %v scale 0.125 at [%n, %n] of [%n, %n] outs(%acc, %max, %sum : tensor<1x8x4x64xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>) : tensor<1x8x4x64xf32>, tensor<1x2x6x64xf32>, tensor<1x2x6x64xf32> -> tensor<1x8x?x64xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>
  return
}

// -----

// P1: maximum and sum are [B, H, M]
// expected-note @+1 {{accumulator comes from here}}
func.func @p1(%a: tensor<1x8x4x64xf32>, %m: tensor<1x4x4xf32>) {
  // expected-error @+1 {{has maximum heads 4, but accumulator heads 8}}
  %s:3 = attune.online_merge (%a, %m, %m), (%a, %m, %m) : tensor<1x8x4x64xf32>, tensor<1x4x4xf32>
  return
}

// -----

// Z1: maximum and sum are [B, H, M]
// expected-note @+1 {{accumulator comes from here}}
func.func @z1(%a: tensor<1x8x4x64xf32>, %m: tensor<1x8x4xf32>, %l: tensor<1x8x3xf32>) {
  // expected-error @+1 {{has sum queries 3, but accumulator queries 4}}
  %y = attune.online_finish %a, %m, %l : tensor<1x8x4x64xf32>, tensor<1x8x4xf32>, tensor<1x8x3xf32> -> tensor<1x8x4x64xf32>
  return
}

// -----

// Z2: sinks is [H]
// expected-note @+1 {{query comes from here}}
func.func @z2(%a: tensor<1x8x4x64xf32>, %m: tensor<1x8x4xf32>, %l: tensor<3xf32>) {
  // expected-error @+1 {{has sinks entries 3, but query heads 8}}
  %y = attune.online_finish %a, %m, %m sinks %l : tensor<3xf32> : tensor<1x8x4x64xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32> -> tensor<1x8x4x64xf32>
  return
}

// -----

// Z3: the result has the accumulator's shape
// expected-note @+1 {{accumulator comes from here}}
func.func @z3(%a: tensor<1x8x4x64xf32>, %m: tensor<1x8x4xf32>) {
  // expected-error @+1 {{has result width 32, but accumulator width 64}}
  %y = attune.online_finish %a, %m, %m : tensor<1x8x4x64xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32> -> tensor<1x8x4x32xf32>
  return
}

// -----

// Z3: lse has the maximum's shape
// expected-note @+1 {{accumulator comes from here}}
func.func @z3_2(%a: tensor<1x8x4x64xf32>, %m: tensor<1x8x4xf32>) {
  // expected-error @+1 {{has lse queries 2, but accumulator queries 4}}
  %y:2 = attune.online_finish %a, %m, %m : tensor<1x8x4x64xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32> -> tensor<1x8x4x64xf32> lse tensor<1x8x2xf32>
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

// RUN: attune-opt %s --split-input-file --verify-diagnostics

// L1: batch sizes agree
// expected-note @+1 {{key comes from here}}
func.func @l1(%q: tensor<1x8x4x64xf32>, %k: tensor<2x2x4x64xf32>, %v: tensor<1x2x4x32xf32>) {
  // expected-error @+1 {{has query batch size 1, but key batch size 2}}
  %y = attune.linear_attention %q, %k, %v <relu> : tensor<1x8x4x64xf32>, tensor<2x2x4x64xf32>, tensor<1x2x4x32xf32> -> tensor<1x8x4x32xf32>
  return
}

// -----

// L2: heads are shared evenly
// expected-note @+1 {{key comes from here}}
func.func @l2(%q: tensor<1x8x4x64xf32>, %k: tensor<1x3x4x64xf32>, %v: tensor<1x3x4x32xf32>) {
  // expected-error @+1 {{has 8 query heads, which 3 key heads cannot share evenly}}
  %y = attune.linear_attention %q, %k, %v <relu> : tensor<1x8x4x64xf32>, tensor<1x3x4x64xf32>, tensor<1x3x4x32xf32> -> tensor<1x8x4x32xf32>
  return
}

// -----

// L2: key and value have as many heads
// expected-note @+1 {{value comes from here}}
func.func @l2_2(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x4x64xf32>, %v: tensor<1x4x4x32xf32>) {
  // expected-error @+1 {{has key heads 2, but value heads 4}}
  %y = attune.linear_attention %q, %k, %v <relu> : tensor<1x8x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x4x4x32xf32> -> tensor<1x8x4x32xf32>
  return
}

// -----

// L3: key and value have equal length
// expected-note @+1 {{value comes from here}}
func.func @l3(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x4x64xf32>, %v: tensor<1x2x5x32xf32>) {
  // expected-error @+1 {{has key length 4, but value length 5}}
  %y = attune.linear_attention %q, %k, %v <relu> : tensor<1x8x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x5x32xf32> -> tensor<1x8x4x32xf32>
  return
}

// -----

// L3: query and key have equal width
// expected-note @+1 {{key comes from here}}
func.func @l3_2(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x4x32xf32>, %v: tensor<1x2x4x32xf32>) {
  // expected-error @+1 {{has query width 64, but key width 32}}
  %y = attune.linear_attention %q, %k, %v <relu> : tensor<1x8x4x64xf32>, tensor<1x2x4x32xf32>, tensor<1x2x4x32xf32> -> tensor<1x8x4x32xf32>
  return
}

// -----

// L4: causal needs as many queries as keys
// expected-note @+1 {{key comes from here}}
func.func @l4(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x6x64xf32>, %v: tensor<1x2x6x32xf32>) {
  // expected-error @+1 {{has query length 4, but key length 6}}
  %y = attune.linear_attention %q, %k, %v <relu> causal : tensor<1x8x4x64xf32>, tensor<1x2x6x64xf32>, tensor<1x2x6x32xf32> -> tensor<1x8x4x32xf32>
  return
}

// -----

// L5: the mask hides keys alone
func.func @l5(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x4x64xf32>, %v: tensor<1x2x4x32xf32>, %m: tensor<1x1x4x4xi1>) {
  // expected-error @+1 {{has a mask of type 'tensor<1x1x4x4xi1>', but it can only hide keys: [batch|1, 1, 1, keys]}}
  %y = attune.linear_attention %q, %k, %v <relu> mask %m : tensor<1x1x4x4xi1> : tensor<1x8x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x32xf32> -> tensor<1x8x4x32xf32>
  return
}

// -----

// L5: of all of them
// expected-note @+1 {{key comes from here}}
func.func @l5_2(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x4x64xf32>, %v: tensor<1x2x4x32xf32>, %m: tensor<1x1x1x3xi1>) {
  // expected-error @+1 {{has mask length 3, but key length 4}}
  %y = attune.linear_attention %q, %k, %v <relu> mask %m : tensor<1x1x1x3xi1> : tensor<1x8x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x32xf32> -> tensor<1x8x4x32xf32>
  return
}

// -----

// L6: eps is not negative
func.func @l6(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x4x64xf32>, %v: tensor<1x2x4x32xf32>) {
  // expected-error @+1 {{adds -1.000000e+00 to its denominators, which has to be 0 or more}}
  %y = attune.linear_attention %q, %k, %v <relu> normalised -1.0 : tensor<1x8x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x32xf32> -> tensor<1x8x4x32xf32>
  return
}

// -----

// L7: the result is [B, Hq, M, Dv]
// expected-note @+1 {{value comes from here}}
func.func @l7(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x4x64xf32>, %v: tensor<1x2x4x32xf32>) {
  // expected-error @+1 {{has result width 64, but value width 32}}
  %y = attune.linear_attention %q, %k, %v <relu> : tensor<1x8x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x32xf32> -> tensor<1x8x4x64xf32>
  return
}

// -----

// L8: a state has a column more than values
// expected-note @+1 {{state comes from here}}
func.func @l8(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x4x64xf32>, %v: tensor<1x2x4x32xf32>, %m: tensor<1x2x64x32xf32>) {
  // expected-error @+1 {{has state columns 32, but values of width 32 need 33}}
  %y = attune.linear_attention %q, %k, %v <relu> state %m : tensor<1x2x64x32xf32> : tensor<1x8x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x32xf32> -> tensor<1x8x4x32xf32>
  return
}

// -----

// L8: a state has key heads
// expected-note @+1 {{key comes from here}}
func.func @l8_2(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x4x64xf32>, %v: tensor<1x2x4x32xf32>) {
  // expected-error @+1 {{has new state heads 8, but key heads 2}}
  %y:2 = attune.linear_attention %q, %k, %v <relu> : tensor<1x8x4x64xf32>, tensor<1x2x4x64xf32>, tensor<1x2x4x32xf32> -> tensor<1x8x4x32xf32> state tensor<1x8x64x33xf32>
  return
}

// RUN: attune-opt %s --split-input-file --verify-diagnostics

// D1: queries and keys for every token
// expected-note @+1 {{value comes from here}}
func.func @d1(%q: tensor<?x5x32xf32>, %v: tensor<?x6x64xf32>, %d: tensor<?x6x4xf32>, %a: tensor<4xf32>) {
  // expected-error @+1 {{has query tokens 5, but value tokens 6}}
  %y, %l = attune.delta_rule %q, %q, %v step %d, a_log %a, beta %d scale 0.25 normalised 1.000000e-06
    : tensor<?x5x32xf32>, tensor<?x6x64xf32>, tensor<?x6x4xf32>, tensor<4xf32> -> tensor<?x6x64xf32>, tensor<?x16x64xf32>
  return
}

// -----

// D1: steps, too
// expected-note @+1 {{value comes from here}}
func.func @d1_2(%q: tensor<3x?x32xf32>, %v: tensor<3x?x64xf32>, %d: tensor<2x?x4xf32>, %a: tensor<4xf32>) {
  // expected-error @+1 {{has step batch size 2, but value batch size 3}}
  %y, %l = attune.delta_rule %q, %q, %v step %d, a_log %a, beta %d scale 0.25 normalised 1.000000e-06
    : tensor<3x?x32xf32>, tensor<3x?x64xf32>, tensor<2x?x4xf32>, tensor<4xf32> -> tensor<3x?x64xf32>, tensor<3x16x64xf32>
  return
}

// -----

// D1: the result is as wide as the values
// expected-note @+1 {{value comes from here}}
func.func @d1_3(%q: tensor<?x?x32xf32>, %v: tensor<?x?x64xf32>, %d: tensor<?x?x4xf32>, %a: tensor<4xf32>) {
  // expected-error @+1 {{has result channels 32, but value channels 64}}
  %y, %l = attune.delta_rule %q, %q, %v step %d, a_log %a, beta %d scale 0.25 normalised 1.000000e-06
    : tensor<?x?x32xf32>, tensor<?x?x64xf32>, tensor<?x?x4xf32>, tensor<4xf32> -> tensor<?x?x32xf32>, tensor<?x16x64xf32>
  return
}

// -----

// D2: a step for every head
// expected-note @+1 {{a_log comes from here}}
func.func @d2(%q: tensor<?x?x32xf32>, %v: tensor<?x?x64xf32>, %d: tensor<?x?x8xf32>, %a: tensor<4xf32>) {
  // expected-error @+1 {{has beta heads 8, but a_log heads 4}}
  %y, %l = attune.delta_rule %q, %q, %v step %d, a_log %a, beta %d scale 0.25 normalised 1.000000e-06
    : tensor<?x?x32xf32>, tensor<?x?x64xf32>, tensor<?x?x8xf32>, tensor<4xf32> -> tensor<?x?x64xf32>, tensor<?x16x64xf32>
  return
}

// -----

// D2: a step for every head or for every row of its memory
// expected-note @+1 {{a_log comes from here}}
func.func @d2_2(%q: tensor<?x?x32xf32>, %v: tensor<?x?x64xf32>, %d: tensor<?x?x8xf32>, %a: tensor<4xf32>, %b: tensor<?x?x4xf32>) {
  // expected-error @+1 {{has step heads 8, but a_log heads 4}}
  %y, %l = attune.delta_rule %q, %q, %v step %d, a_log %a, beta %b scale 0.25
    : tensor<?x?x32xf32>, tensor<?x?x64xf32>, tensor<?x?x8xf32>, tensor<4xf32> beta tensor<?x?x4xf32> -> tensor<?x?x64xf32>, tensor<?x16x64xf32>
  return
}

// -----

// D3: heads are equally wide
func.func @d3(%q: tensor<?x?x32xf32>, %v: tensor<?x?x64xf32>, %d: tensor<?x?x5xf32>, %a: tensor<5xf32>) {
  // expected-error @+1 {{has 5 heads, which do not divide the 64 channels}}
  %y, %l = attune.delta_rule %q, %q, %v step %d, a_log %a, beta %d scale 0.25 normalised 1.000000e-06
    : tensor<?x?x32xf32>, tensor<?x?x64xf32>, tensor<?x?x5xf32>, tensor<5xf32> -> tensor<?x?x64xf32>, tensor<?x16x64xf32>
  return
}

// -----

// D4: queries are whole heads
func.func @d4(%q: tensor<?x?x24xf32>, %v: tensor<?x?x64xf32>, %d: tensor<?x?x4xf32>, %a: tensor<4xf32>) {
  // expected-error @+1 {{has queries of 24 channels for 16 states, which are no heads that divide the others}}
  %y, %l = attune.delta_rule %q, %q, %v step %d, a_log %a, beta %d scale 0.25 normalised 1.000000e-06
    : tensor<?x?x24xf32>, tensor<?x?x64xf32>, tensor<?x?x4xf32>, tensor<4xf32> -> tensor<?x?x64xf32>, tensor<?x16x64xf32>
  return
}

// -----

// D4: each for as many value heads
func.func @d4_2(%q: tensor<?x?x48xf32>, %v: tensor<?x?x64xf32>, %d: tensor<?x?x4xf32>, %a: tensor<4xf32>) {
  // expected-error @+1 {{has queries of 48 channels for 16 states, which are no heads that divide the others}}
  %y, %l = attune.delta_rule %q, %q, %v step %d, a_log %a, beta %d scale 0.25 normalised 1.000000e-06
    : tensor<?x?x48xf32>, tensor<?x?x64xf32>, tensor<?x?x4xf32>, tensor<4xf32> -> tensor<?x?x64xf32>, tensor<?x16x64xf32>
  return
}

// -----

// D5: states have a row for every channel of a key
func.func @d5(%q: tensor<?x?x32xf32>, %v: tensor<?x?x64xf32>, %d: tensor<?x?x4xf32>, %a: tensor<4xf32>, %h: tensor<?x64x16xf32>) {
  // expected-error @+1 {{has state states 64, but last state states 16}}
  %y, %l = attune.delta_rule %q, %q, %v step %d, a_log %a, beta %d scale 0.25 normalised 1.000000e-06 state %h : tensor<?x64x16xf32>
    : tensor<?x?x32xf32>, tensor<?x?x64xf32>, tensor<?x?x4xf32>, tensor<4xf32> -> tensor<?x?x64xf32>, tensor<?x16x64xf32>
  return
}

// -----

// D5: and a column for every channel of a value
// expected-note @+1 {{value comes from here}}
func.func @d5_2(%q: tensor<?x?x32xf32>, %v: tensor<?x?x64xf32>, %d: tensor<?x?x4xf32>, %a: tensor<4xf32>) {
  // expected-error @+1 {{has last state channels 32, but value channels 64}}
  %y, %l = attune.delta_rule %q, %q, %v step %d, a_log %a, beta %d scale 0.25 normalised 1.000000e-06
    : tensor<?x?x32xf32>, tensor<?x?x64xf32>, tensor<?x?x4xf32>, tensor<4xf32> -> tensor<?x?x64xf32>, tensor<?x16x32xf32>
  return
}

// -----

// D6: eps is a number from 0 on
func.func @d6(%q: tensor<?x?x32xf32>, %v: tensor<?x?x64xf32>, %d: tensor<?x?x4xf32>, %a: tensor<4xf32>) {
  // expected-error @+1 {{has an eps that is not a number from 0 on}}
  %y, %l = attune.delta_rule %q, %q, %v step %d, a_log %a, beta %d scale 0.25 normalised -1.0
    : tensor<?x?x32xf32>, tensor<?x?x64xf32>, tensor<?x?x4xf32>, tensor<4xf32> -> tensor<?x?x64xf32>, tensor<?x16x64xf32>
  return
}

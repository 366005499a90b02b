// RUN: attune-opt %s --split-input-file --verify-diagnostics

// G1: queries and the like for every token
// expected-note @+1 {{value comes from here}}
func.func @g1(%q: tensor<?x5x32xf32>, %v: tensor<?x6x64xf32>, %u: tensor<32xf32>) {
  // expected-error @+1 {{has query tokens 5, but value tokens 6}}
  %y, %l, %o = attune.generalized_delta_rule %q, %q, %v decay %q, remove %q, replace %q, bonus %u
    : tensor<?x5x32xf32>, tensor<?x6x64xf32>, tensor<32xf32> -> tensor<?x16x64xf32>
  return
}

// -----

// G2: a bonus for each channel of the queries
// expected-note @+1 {{query comes from here}}
func.func @g2(%q: tensor<?x?x32xf32>, %v: tensor<?x?x64xf32>, %u: tensor<64xf32>) {
  // expected-error @+1 {{has bonus channels 64, but query channels 32}}
  %y, %l, %o = attune.generalized_delta_rule %q, %q, %v decay %q, remove %q, replace %q, bonus %u
    : tensor<?x?x32xf32>, tensor<?x?x64xf32>, tensor<64xf32> -> tensor<?x16x64xf32>
  return
}

// -----

// G3: queries are whole heads
func.func @g3(%q: tensor<?x?x24xf32>, %v: tensor<?x?x64xf32>, %u: tensor<24xf32>) {
  // expected-error @+1 {{has queries of 24 channels for 16 states, which are no heads}}
  %y, %l, %o = attune.generalized_delta_rule %q, %q, %v decay %q, remove %q, replace %q, bonus %u
    : tensor<?x?x24xf32>, tensor<?x?x64xf32>, tensor<24xf32> -> tensor<?x16x64xf32>
  return
}

// -----

// G3: which divide the values
func.func @g3_2(%q: tensor<?x?x48xf32>, %v: tensor<?x?x64xf32>, %u: tensor<48xf32>) {
  // expected-error @+1 {{has 3 heads, which do not divide the 64 channels}}
  %y, %l, %o = attune.generalized_delta_rule %q, %q, %v decay %q, remove %q, replace %q, bonus %u
    : tensor<?x?x48xf32>, tensor<?x?x64xf32>, tensor<48xf32> -> tensor<?x16x64xf32>
  return
}

// -----

// G4: states have a row for every channel of a key
func.func @g4(%q: tensor<?x?x32xf32>, %v: tensor<?x?x64xf32>, %u: tensor<32xf32>, %h: tensor<?x64x16xf32>) {
  // expected-error @+1 {{has state states 64, but last state states 16}}
  %y, %l, %o = attune.generalized_delta_rule %q, %q, %v decay %q, remove %q, replace %q, bonus %u state %h : tensor<?x64x16xf32>
    : tensor<?x?x32xf32>, tensor<?x?x64xf32>, tensor<32xf32> -> tensor<?x16x64xf32>
  return
}

// -----

// G4: and a column for every channel of a value
// expected-note @+1 {{value comes from here}}
func.func @g4_2(%q: tensor<?x?x32xf32>, %v: tensor<?x?x64xf32>, %u: tensor<32xf32>) {
  // expected-error @+1 {{has last state channels 32, but value channels 64}}
  %y, %l, %o = attune.generalized_delta_rule %q, %q, %v decay %q, remove %q, replace %q, bonus %u
    : tensor<?x?x32xf32>, tensor<?x?x64xf32>, tensor<32xf32> -> tensor<?x16x32xf32>
  return
}

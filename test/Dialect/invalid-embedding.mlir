// RUN: attune-opt %s --split-input-file --verify-diagnostics

// E1: the result is [B, T, D], length
// expected-note @+1 {{ids comes from here}}
func.func @e1(%ids: tensor<2x5xi64>, %t: tensor<100x64xf32>) {
  // expected-error @+1 {{'attune.embedding' op has result length 6, but ids length 5}}
  %y = attune.embedding %ids, %t : tensor<2x5xi64>, tensor<100x64xf32> -> tensor<2x6x64xf32>
  return
}

// -----

// E1: the result is [B, T, D], width
// expected-note @+1 {{table comes from here}}
func.func @e1_2(%ids: tensor<2x5xi64>, %t: tensor<100x64xf32>) {
  // expected-error @+1 {{has result width 32, but table width 64}}
  %y = attune.embedding %ids, %t : tensor<2x5xi64>, tensor<100x64xf32> -> tensor<2x5x32xf32>
  return
}

// -----

// E2: addend has its type
// expected-note @+1 {{addend comes from here}}
func.func @e2(%ids: tensor<2x5xi64>, %t: tensor<100x64xf32>, %a: tensor<2x?x64xf32>) {
  // expected-error @+1 {{has addend of type 'tensor<2x?x64xf32>', but a result of type 'tensor<2x5x64xf32>'}}
  %y = attune.embedding %ids, %t add %a : tensor<2x?x64xf32> : tensor<2x5xi64>, tensor<100x64xf32> -> tensor<2x5x64xf32>
  return
}

// -----

// E1: sines and cosines come in pairs
func.func @e1_3(%ids: tensor<2x5xi64>) {
  // expected-error @+1 {{'attune.sinusoidal' op has result width 7, which holds no pairs of sine and cosine}}
  %y = attune.sinusoidal %ids convention <blocks> : tensor<2x5xi64> -> tensor<2x5x7xf32>
  return
}

// -----

// E1: one row a position
// expected-note @+1 {{positions comes from here}}
func.func @e1_4(%ids: tensor<2x5xi64>) {
  // expected-error @+1 {{has result batch size 3, but positions batch size 2}}
  %y = attune.sinusoidal %ids convention <blocks> : tensor<2x5xi64> -> tensor<3x5x8xf32>
  return
}

// -----

// E2: addend of positions
// expected-note @+1 {{addend comes from here}}
func.func @e2_2(%ids: tensor<2x5xi64>, %a: tensor<2x5x16xf32>) {
  // expected-error @+1 {{has addend of type 'tensor<2x5x16xf32>'}}
  %y = attune.sinusoidal %ids add %a : tensor<2x5x16xf32> convention <blocks> : tensor<2x5xi64> -> tensor<2x5x8xf32>
  return
}

// -----

// E3: base > 0
func.func @e3(%ids: tensor<2x5xi64>) {
  // expected-error @+1 {{has base -2.000000e+00, which is not a positive number}}
  %y = attune.sinusoidal %ids convention <blocks> base -2.0 : tensor<2x5xi64> -> tensor<2x5x8xf32>
  return
}

// -----

// R1: results are [B, T, pairs]
func.func @r1(%ids: tensor<2x5xi64>) {
  // expected-error @+1 {{'attune.rotary_table' op has cosines width 3, but the number of frequencies is 2}}
  %c, %s = attune.rotary_table %ids frequencies [1.0, 0.1] : tensor<2x5xi64> -> tensor<2x5x3xf32>, tensor<2x5x2xf32>
  return
}

// -----

// R1: one row a position
// expected-note @+1 {{positions comes from here}}
func.func @r1_2(%ids: tensor<2x5xi64>) {
  // expected-error @+1 {{has cosines length 4, but positions length 5}}
  %c, %s = attune.rotary_table %ids frequencies [1.0, 0.1] : tensor<2x5xi64> -> tensor<2x4x2xf32>, tensor<2x5x2xf32>
  return
}

// -----

// R2: there is a frequency
func.func @r2(%ids: tensor<2x5xi64>) {
  // expected-error @+1 {{has no frequency to turn by}}
  %c, %s = attune.rotary_table %ids frequencies [] : tensor<2x5xi64> -> tensor<2x5x0xf32>, tensor<2x5x0xf32>
  return
}

// -----

// R2: frequencies are finite
func.func @r2_2(%ids: tensor<2x5xi64>) {
  // expected-error @+1 {{has frequency INF at 1, which is not finite}}
  %c, %s = attune.rotary_table %ids frequencies [1.0, 0x7FF0000000000000] : tensor<2x5xi64> -> tensor<2x5x2xf32>, tensor<2x5x2xf32>
  return
}

// -----

// R2: factor is finite
func.func @r2_3(%ids: tensor<2x5xi64>) {
  // expected-error @+1 {{has factor INF, which is not finite}}
  %c, %s = attune.rotary_table %ids frequencies [1.0, 0.5] factor 0x7FF0000000000000 : tensor<2x5xi64> -> tensor<2x5x2xf32>, tensor<2x5x2xf32>
  return
}

// -----

// R4: long frequencies say from where on
func.func @r4(%ids: tensor<2x5xi64>) {
  // expected-error @+1 {{has long frequencies without the length from which on they count}}
  %c, %s = attune.rotary_table %ids frequencies [1.0, 0.5] long [1.0, 0.25] : tensor<2x5xi64> -> tensor<2x5x2xf32>, tensor<2x5x2xf32>
  return
}

// -----

// R4: as many as the others
func.func @r4_2(%ids: tensor<2x5xi64>) {
  // expected-error @+1 {{has 1 long frequencies for 2 pairs of channels}}
  %c, %s = attune.rotary_table %ids frequencies [1.0, 0.5] long [1.0] from 64 : tensor<2x5xi64> -> tensor<2x5x2xf32>, tensor<2x5x2xf32>
  return
}

// -----

// R4: not with dynamic scaling
func.func @r4_3(%ids: tensor<2x5xi64>) {
  // expected-error @+1 {{has both dynamic scaling and long frequencies}}
  %c, %s = attune.rotary_table %ids frequencies [1.0, 0.5] dynamic [512.0, 2.0, 4.0] long [1.0, 0.5] from 64 : tensor<2x5xi64> -> tensor<2x5x2xf32>, tensor<2x5x2xf32>
  return
}

// -----

// R3: three numbers of dynamic scaling
func.func @r3(%ids: tensor<2x5xi64>) {
  // expected-error @+1 {{has 2 numbers of dynamic scaling, not 3}}
  %c, %s = attune.rotary_table %ids frequencies [1.0, 0.5] dynamic [512.0, 2.0] : tensor<2x5xi64> -> tensor<2x5x2xf32>, tensor<2x5x2xf32>
  return
}

// -----

// R3: for the channels turned
func.func @r3_2(%ids: tensor<2x5xi64>) {
  // expected-error @+1 {{has dynamic scaling of length 5.120000e+02, factor 2.000000e+00 and 8.000000e+00 channels, but it turns 4}}
  %c, %s = attune.rotary_table %ids frequencies [1.0, 0.5] dynamic [512.0, 2.0, 8.0] : tensor<2x5xi64> -> tensor<2x5x2xf32>, tensor<2x5x2xf32>
  return
}

// -----

// R5: three numbers of growth
func.func @r5(%ids: tensor<2x5xi64>) {
  // expected-error @+1 {{has 2 numbers of growth, not 3}}
  %c, %s = attune.rotary_table %ids frequencies [1.0, 0.5] growth [0.1, 8192.0] : tensor<2x5xi64> -> tensor<2x5x2xf32>, tensor<2x5x2xf32>
  return
}

// -----

// R5: by steps of some length
func.func @r5_2(%ids: tensor<2x5xi64>) {
  // expected-error @+1 {{has growth by 1.000000e-01 for each 0.000000e+00 tokens from 1.000000e+00 on, expected finite numbers, the second above 0, the third from 0 on}}
  %c, %s = attune.rotary_table %ids frequencies [1.0, 0.5] growth [0.1, 0.0, 1.0] : tensor<2x5xi64> -> tensor<2x5x2xf32>, tensor<2x5x2xf32>
  return
}

// -----

// R1: no more channels than a head has
// expected-note @+1 {{tables come from here}}
func.func @r1_3(%x: tensor<2x3x5x8xf32>, %c: tensor<2x5x5xf32>) {
  // expected-error @+1 {{'attune.rotary' op turns 5 pairs of channels, but heads are 8 wide}}
  %y = attune.rotary %x, %c, %c pairing <half> : tensor<2x3x5x8xf32>, tensor<2x5x5xf32>
  return
}

// -----

// R1: one row of the tables a token
// expected-note @+1 {{tables comes from here}}
func.func @r1_4(%x: tensor<2x3x5x8xf32>, %c: tensor<2x3x4xf32>) {
  // expected-error @+1 {{has input length 5, but tables length 3}}
  %y = attune.rotary %x, %c, %c pairing <half> : tensor<2x3x5x8xf32>, tensor<2x3x4xf32>
  return
}

// -----

// R2: a result may have other elements, but no other shape
// expected-note @+1 {{input comes from here}}
func.func @r2(%x: tensor<2x3x5x8xf32>, %c: tensor<2x5x4xf32>) {
  // expected-error @+1 {{'attune.rotary' op has input of type 'tensor<2x3x5x8xf32>', but a result of type 'tensor<2x3x6x8xbf16>'}}
  %y = attune.rotary %x, %c, %c pairing <half> : tensor<2x3x5x8xf32>, tensor<2x5x4xf32> -> tensor<2x3x6x8xbf16>
  return
}

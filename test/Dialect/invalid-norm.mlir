// RUN: attune-opt %s --split-input-file --verify-diagnostics

// N1: gamma has the width of the input
// expected-note @+1 {{gamma comes from here}}
func.func @n1(%x: tensor<2x64xf32>, %g: tensor<32xf32>) {
  // expected-error @+1 {{'attune.layer_norm' op has input width 64, but gamma width 32}}
  %y = attune.layer_norm %x gamma %g : tensor<32xf32> eps 1.0e-5 : tensor<2x64xf32>
  return
}

// -----

// N1: beta has the width of the input
// expected-note @+1 {{beta comes from here}}
func.func @n1_2(%x: tensor<2x64xf32>, %g: tensor<32xf32>) {
  // expected-error @+1 {{has input width 64, but beta width 32}}
  %y = attune.layer_norm %x beta %g : tensor<32xf32> eps 1.0e-5 : tensor<2x64xf32>
  return
}

// -----

// N1: in rms_norm too
// expected-note @+1 {{gamma comes from here}}
func.func @n1_3(%x: tensor<2x64xf32>, %g: tensor<32xf32>) {
  // expected-error @+1 {{'attune.rms_norm' op has input width 64, but gamma width 32}}
  %y = attune.rms_norm %x gamma %g : tensor<32xf32> eps 1.0e-5 : tensor<2x64xf32>
  return
}

// -----

// N1: a gamma for each head needs heads
func.func @n1_5(%x: tensor<2x3x64xf32>, %g: tensor<3x64xf32>) {
  // expected-error @+1 {{has a gamma per head, but its input has no heads}}
  %y = attune.layer_norm %x gamma %g : tensor<3x64xf32> eps 1.0e-5 : tensor<2x3x64xf32>
  return
}

// -----

// N1: as many as the input has
// expected-note @+1 {{gamma comes from here}}
func.func @n1_6(%x: tensor<2x4x5x64xf32>, %g: tensor<3x64xf32>) {
  // expected-error @+1 {{has input number of heads 4, but gamma number of heads 3}}
  %y = attune.rms_norm %x gamma %g : tensor<3x64xf32> eps 1.0e-5 : tensor<2x4x5x64xf32>
  return
}

// -----

// N1: there is a last dimension
func.func @n1_4(%x: tensor<f32>) {
  // expected-error @+1 {{operand #0 must be [..., width] tensor}}
  %y = attune.rms_norm %x eps 1.0e-5 : tensor<f32>
  return
}

// -----

// N2: eps >= 0
func.func @n2(%x: tensor<2x64xf32>) {
  // expected-error @+1 {{has eps -1.000000e+00, which is not a number from 0 on}}
  %y = attune.layer_norm %x eps -1.0 : tensor<2x64xf32>
  return
}

// -----

// N2: eps is a number
func.func @n2_2(%x: tensor<2x64xf32>) {
  // expected-error @+1 {{has eps nan, which is not a number from 0 on}}
  %y = attune.rms_norm %x eps 0x7FC00000 : tensor<2x64xf32>
  return
}

// -----

// D1: a row of the condition for each sequence
// expected-note @+1 {{condition comes from here}}
func.func @d1(%x: tensor<2x5x64xf32>, %c: tensor<3x128xf32>) {
  // expected-error @+1 {{'attune.modulate' op has input batch size 2, but condition rows 3}}
  %y = attune.modulate %x by %c scale 0 : tensor<2x5x64xf32>, tensor<3x128xf32>
  return
}

// -----

// D2: the columns exist
func.func @d2(%x: tensor<2x5x64xf32>, %c: tensor<2x128xf32>) {
  // expected-error @+1 {{takes its shift from column 65 of 128, which are too few for a width of 64}}
  %y = attune.modulate %x by %c scale 0 shift 65 : tensor<2x5x64xf32>, tensor<2x128xf32>
  return
}

// -----

// D3: the residual is like the result
// expected-note @+1 {{residual comes from here}}
func.func @d3(%x: tensor<2x5x64xf32>, %c: tensor<2x128xf32>, %r: tensor<2x6x64xf32>) {
  // expected-error @+1 {{residual}}
  %y = attune.modulate %x by %c scale 0 residual %r : tensor<2x6x64xf32> : tensor<2x5x64xf32>, tensor<2x128xf32>
  return
}

// -----

// N3: a result may have other elements, but no other shape
// expected-note @+1 {{input comes from here}}
func.func @n3(%x: tensor<2x64xf32>) {
  // expected-error @+1 {{'attune.rms_norm' op has input of type 'tensor<2x64xf32>', but a result of type 'tensor<3x64xbf16>'}}
  %y = attune.rms_norm %x eps 1.0e-5 : tensor<2x64xf32> -> tensor<3x64xbf16>
  return
}

// -----

// N3: in layer_norm too
// expected-note @+1 {{input comes from here}}
func.func @n3_2(%x: tensor<2x64xf32>) {
  // expected-error @+1 {{'attune.layer_norm' op has input of type 'tensor<2x64xf32>', but a result of type 'tensor<2x1x64xf16>'}}
  %y = attune.layer_norm %x eps 1.0e-5 : tensor<2x64xf32> -> tensor<2x1x64xf16>
  return
}

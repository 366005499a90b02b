// RUN: attune-opt %s --split-input-file --verify-diagnostics

// R1: results have the input's leading sizes
func.func @r1(%x: tensor<3x64xf32>) {
  // expected-error @+2 {{has sums size 4, but input size 3}}
  // expected-note @-2 {{input comes from here}}
  %q, %s, %n = attune.quantize_rows %x group 32 : tensor<3x64xf32> -> tensor<3x64xi8>, tensor<3x2xf32>, tensor<4x2xi32>
  return
}

// -----

// R1: and values its width
func.func @r1_2(%x: tensor<3x64xf32>) {
  // expected-error @+2 {{has values width 32, but input width 64}}
  // expected-note @-2 {{input comes from here}}
  %q, %s, %n = attune.quantize_rows %x group 32 : tensor<3x64xf32> -> tensor<3x32xi8>, tensor<3x2xf32>, tensor<3x2xi32>
  return
}

// -----

// R2: a scale for each group
func.func @r2(%x: tensor<3x64xf32>) {
  // expected-error @+1 {{has scales number 3, but groups are 2}}
  %q, %s, %n = attune.quantize_rows %x group 32 : tensor<3x64xf32> -> tensor<3x64xi8>, tensor<3x3xf32>, tensor<3x2xi32>
  return
}

// -----

// R3: groups of quads
func.func @r3(%x: tensor<3x60xf32>) {
  // expected-error @+1 {{has groups of 30, which is not 4, 8, 12, ..., 65536}}
  %q, %s, %n = attune.quantize_rows %x group 30 : tensor<3x60xf32> -> tensor<3x60xi8>, tensor<3x2xf32>, tensor<3x2xi32>
  return
}

// -----

// R3: which a row consists of
func.func @r3_2(%x: tensor<3x60xf32>) {
  // expected-error @+1 {{has rows of 60, which are no whole groups of 32}}
  %q, %s, %n = attune.quantize_rows %x group 32 : tensor<3x60xf32> -> tensor<3x60xi8>, tensor<3x2xf32>, tensor<3x2xi32>
  return
}

// -----

// L1: input width is the weight's depth
func.func @l1(%q: tensor<3x64xi8>, %s: tensor<3x2xf32>, %n: tensor<3x2xi32>, %w: tensor<96x60xi8>, %t: tensor<96x2xf32>) {
  // expected-error @+2 {{has input width 64, but the weight's depth is 60}}
  // expected-note @-2 {{input comes from here}}
  %y = attune.quantized_linear %q scales %s sums %n, %w scales %t
     : (tensor<3x64xi8>, tensor<3x2xf32>, tensor<3x2xi32>), (tensor<96x60xi8>, tensor<96x2xf32>) -> tensor<3x96xf32>
  return
}

// -----

// L1: four times what panels have
func.func @l1_2(%q: tensor<3x64xi8>, %s: tensor<3x2xf32>, %n: tensor<3x2xi32>, %w: tensor<12x15x32xi8>, %t: tensor<12x2x8xf32>) {
  // expected-error @+2 {{has input width 64, but the weight's depth is 60}}
  // expected-note @-2 {{input comes from here}}
  %y = attune.quantized_linear %q scales %s sums %n, %w scales %t
     : (tensor<3x64xi8>, tensor<3x2xf32>, tensor<3x2xi32>), (tensor<12x15x32xi8>, tensor<12x2x8xf32>) -> tensor<3x96xf32>
  return
}

// -----

// L2: the result is as wide as the weight has rows
func.func @l2(%q: tensor<3x64xi8>, %s: tensor<3x2xf32>, %n: tensor<3x2xi32>, %w: tensor<12x16x32xi8>, %t: tensor<12x2x8xf32>) {
  // expected-error @+2 {{has weight panels 12, but the result takes rows 100: panels of 8 to hold them are 13}}
  // expected-note @-2 {{weight comes from here}}
  %y = attune.quantized_linear %q scales %s sums %n, %w scales %t
     : (tensor<3x64xi8>, tensor<3x2xf32>, tensor<3x2xi32>), (tensor<12x16x32xi8>, tensor<12x2x8xf32>) -> tensor<3x100xf32>
  return
}

// -----

// L2: and its scales
func.func @l2_2(%q: tensor<3x64xi8>, %s: tensor<3x2xf32>, %n: tensor<3x2xi32>, %w: tensor<96x64xi8>, %t: tensor<48x2xf32>) {
  // expected-error @+2 {{has scales rows 48, but a gated result takes rows 96}}
  // expected-note @-2 {{scales comes from here}}
  %y = attune.quantized_linear %q scales %s sums %n, %w scales %t gated
     : (tensor<3x64xi8>, tensor<3x2xf32>, tensor<3x2xi32>), (tensor<96x64xi8>, tensor<48x2xf32>) -> tensor<3x48xf32>
  return
}

// -----

// L3: bias entries
func.func @l3(%q: tensor<3x64xi8>, %s: tensor<3x2xf32>, %n: tensor<3x2xi32>, %w: tensor<96x64xi8>, %t: tensor<96x2xf32>, %b: tensor<95xf32>) {
  // expected-error @+2 {{has bias entries 95, but the matrix has rows 96}}
  // expected-note @-2 {{bias comes from here}}
  %y = attune.quantized_linear %q scales %s sums %n, %w scales %t bias %b : tensor<95xf32>
     : (tensor<3x64xi8>, tensor<3x2xf32>, tensor<3x2xi32>), (tensor<96x64xi8>, tensor<96x2xf32>) -> tensor<3x96xf32>
  return
}

// -----

// L4: the residual's type
func.func @l4(%q: tensor<3x64xi8>, %s: tensor<3x2xf32>, %n: tensor<3x2xi32>, %w: tensor<96x64xi8>, %t: tensor<96x2xf32>, %r: tensor<3x96xbf16>) {
  // expected-error @+2 {{has residual of type 'tensor<3x96xbf16>', but a result of type 'tensor<3x96xf32>'}}
  // expected-note @-2 {{residual comes from here}}
  %y = attune.quantized_linear %q scales %s sums %n, %w scales %t residual %r : tensor<3x96xbf16>
     : (tensor<3x64xi8>, tensor<3x2xf32>, tensor<3x2xi32>), (tensor<96x64xi8>, tensor<96x2xf32>) -> tensor<3x96xf32>
  return
}

// -----

// L5: leading sizes
func.func @l5(%q: tensor<3x64xi8>, %s: tensor<4x2xf32>, %n: tensor<3x2xi32>, %w: tensor<96x64xi8>, %t: tensor<96x2xf32>) {
  // expected-error @+2 {{has result size 3, but input scales size 4}}
  // expected-note @-2 {{input scales comes from here}}
  %y = attune.quantized_linear %q scales %s sums %n, %w scales %t
     : (tensor<3x64xi8>, tensor<4x2xf32>, tensor<3x2xi32>), (tensor<96x64xi8>, tensor<96x2xf32>) -> tensor<3x96xf32>
  return
}

// -----

// L6: as many scales on both sides
func.func @l6(%q: tensor<3x64xi8>, %s: tensor<3x4xf32>, %n: tensor<3x4xi32>, %w: tensor<96x64xi8>, %t: tensor<96x2xf32>) {
  // expected-error @+2 {{has input scales number 4, but weight scales number 2}}
  // expected-note @-2 {{weight scales comes from here}}
  %y = attune.quantized_linear %q scales %s sums %n, %w scales %t
     : (tensor<3x64xi8>, tensor<3x4xf32>, tensor<3x4xi32>), (tensor<96x64xi8>, tensor<96x2xf32>) -> tensor<3x96xf32>
  return
}

// -----

// L6: and sums
func.func @l6_2(%q: tensor<3x64xi8>, %s: tensor<3x2xf32>, %n: tensor<3x4xi32>, %w: tensor<96x64xi8>, %t: tensor<96x2xf32>) {
  // expected-error @+2 {{has input sums number 4, but input scales number 2}}
  // expected-note @-2 {{input scales comes from here}}
  %y = attune.quantized_linear %q scales %s sums %n, %w scales %t
     : (tensor<3x64xi8>, tensor<3x2xf32>, tensor<3x4xi32>), (tensor<96x64xi8>, tensor<96x2xf32>) -> tensor<3x96xf32>
  return
}

// -----

// E1: the result is as wide as the table
func.func @e1(%ids: tensor<2x5xi64>, %w: tensor<100x64xi8>, %t: tensor<100x2xf32>) {
  // expected-error @+1 {{has result width 32, but the table's width is 64}}
  %x = attune.quantized_embedding %ids, %w scales %t : tensor<2x5xi64>, (tensor<100x64xi8>, tensor<100x2xf32>) -> tensor<2x5x32xf32>
  return
}

// -----

// E1: and as long as the ids
func.func @e1_2(%ids: tensor<2x5xi64>, %w: tensor<100x64xi8>, %t: tensor<100x2xf32>) {
  // expected-error @+2 {{has result length 6, but ids length 5}}
  // expected-note @-2 {{ids comes from here}}
  %x = attune.quantized_embedding %ids, %w scales %t : tensor<2x5xi64>, (tensor<100x64xi8>, tensor<100x2xf32>) -> tensor<2x6x64xf32>
  return
}

// -----

// E2: the addend's type
func.func @e2(%ids: tensor<2x5xi64>, %w: tensor<100x64xi8>, %t: tensor<100x2xf32>, %a: tensor<2x5x64xbf16>) {
  // expected-error @+2 {{has addend of type 'tensor<2x5x64xbf16>', but a result of type 'tensor<2x5x64xf32>'}}
  // expected-note @-2 {{addend comes from here}}
  %x = attune.quantized_embedding %ids, %w scales %t add %a : tensor<2x5x64xbf16> : tensor<2x5xi64>, (tensor<100x64xi8>, tensor<100x2xf32>) -> tensor<2x5x64xf32>
  return
}

// -----

// E3: whole groups
func.func @e3(%ids: tensor<2x5xi64>, %w: tensor<100x64xi8>, %t: tensor<100x3xf32>) {
  // expected-error @+1 {{has 3 scales for rows of 64, which are no equal groups}}
  %x = attune.quantized_embedding %ids, %w scales %t : tensor<2x5xi64>, (tensor<100x64xi8>, tensor<100x3xf32>) -> tensor<2x5x64xf32>
  return
}

// -----

// E3: pairs of scales and zero points
func.func @e3_2(%ids: tensor<2x5xi64>, %w: tensor<100x64xi8>, %t: tensor<100x3xf32>) {
  // expected-error @+1 {{has 3 scales and zeros for rows of 64, which are no equal groups}}
  %x = attune.quantized_embedding %ids, %w scales %t zeros : tensor<2x5xi64>, (tensor<100x64xi8>, tensor<100x3xf32>) -> tensor<2x5x64xf32>
  return
}

// -----

// L6: a zero point for each scale
func.func @l6_3(%q: tensor<3x64xi8>, %s: tensor<3x2xf32>, %n: tensor<3x2xi32>, %w: tensor<96x64xi8>, %t: tensor<96x2xf32>) {
  // expected-error @+2 {{has weight scales number 2, but with zeros twice the input scales are 4}}
  // expected-note @-2 {{weight scales comes from here}}
  %y = attune.quantized_linear %q scales %s sums %n, %w scales %t zeros
     : (tensor<3x64xi8>, tensor<3x2xf32>, tensor<3x2xi32>), (tensor<96x64xi8>, tensor<96x2xf32>) -> tensor<3x96xf32>
  return
}

// -----

// L7: bytes have scales
func.func @l7(%q: tensor<3x64xi8>, %w: tensor<96x64xi8>, %t: tensor<96x2xf32>) {
  // expected-error @+1 {{has an input of bytes without scales and sums}}
  %y = attune.quantized_linear %q, %w scales %t
     : (tensor<3x64xi8>), (tensor<96x64xi8>, tensor<96x2xf32>) -> tensor<3x96xf32>
  return
}

// -----

// L7: numbers have none
func.func @l7_2(%x: tensor<3x64xf32>, %s: tensor<3x2xf32>, %n: tensor<3x2xi32>, %w: tensor<96x64xi8>, %t: tensor<96x2xf32>) {
  // expected-error @+1 {{has an input of numbers with scales and sums}}
  %y = attune.quantized_linear %x scales %s sums %n, %w scales %t
     : (tensor<3x64xf32>, tensor<3x2xf32>, tensor<3x2xi32>), (tensor<96x64xi8>, tensor<96x2xf32>) -> tensor<3x96xf32>
  return
}

// -----

// L7: whole groups
func.func @l7_3(%x: tensor<3x64xf32>, %w: tensor<96x64xi8>, %t: tensor<96x3xf32>) {
  // expected-error @+1 {{has 3 weight scales for rows of 64, which are no equal groups}}
  %y = attune.quantized_linear %x, %w scales %t
     : (tensor<3x64xf32>), (tensor<96x64xi8>, tensor<96x3xf32>) -> tensor<3x96xf32>
  return
}

// -----

// L8: floats are of 4 bits
func.func @l8(%x: tensor<3x64xf32>, %w: tensor<96x64xi8>, %t: tensor<96x2xf8E8M0FNU>) {
  // expected-error @+1 {{has weight scales of f8E8M0FNU, which are those of 4 bits without zeros}}
  %y = attune.quantized_linear %x, %w scales %t
     : (tensor<3x64xf32>), (tensor<96x64xi8>, tensor<96x2xf8E8M0FNU>) -> tensor<3x96xf32>
  return
}

// -----

// L9: floats of 8 bits multiply numbers
func.func @l9(%q: tensor<3x64xi8>, %s: tensor<3x2xf32>, %n: tensor<3x2xi32>, %w: tensor<96x64xf8E4M3FN>, %t: tensor<96x2xf32>) {
  // expected-error @+1 {{has floats of 8 bits, which multiply numbers, but an input of bytes}}
  %y = attune.quantized_linear %q scales %s sums %n, %w scales %t
     : (tensor<3x64xi8>, tensor<3x2xf32>, tensor<3x2xi32>), (tensor<96x64xf8E4M3FN>, tensor<96x2xf32>) -> tensor<3x96xf32>
  return
}

// -----

// L9: and have no zero points
func.func @l9_2(%x: tensor<3x64xf32>, %w: tensor<96x64xf8E4M3FN>, %t: tensor<96x4xf32>) {
  // expected-error @+1 {{has floats of 8 bits, whose scales are f32 without zeros}}
  %y = attune.quantized_linear %x, %w scales %t zeros
     : (tensor<3x64xf32>), (tensor<96x64xf8E4M3FN>, tensor<96x4xf32>) -> tensor<3x96xf32>
  return
}

// -----

// E3: scales of floats of 8 bits
func.func @e3_3(%ids: tensor<2x5xi64>, %w: tensor<100x64xf8E4M3FN>, %t: tensor<100x2xf16>) {
  // expected-error @+1 {{has floats of 8 bits, whose scales are f32 without zeros}}
  %x = attune.quantized_embedding %ids, %w scales %t : tensor<2x5xi64>, (tensor<100x64xf8E4M3FN>, tensor<100x2xf16>) -> tensor<2x5x64xf32>
  return
}

// -----

// L7: scales in two levels are of whole blocks
func.func @l7_levels(%x: tensor<3x512xf32>, %w: tensor<96x512xi8>, %t: tensor<96x37xi8>) {
  // expected-error @+1 {{has 37 weight scales for rows of 512, which are no bytes of equal groups of 256 columns}}
  %y = attune.quantized_linear %x, %w scales %t : (tensor<3x512xf32>), (tensor<96x512xi8>, tensor<96x37xi8>) -> tensor<3x96xf32>
  return
}

// -----

// L6: and as many as the input's groups
func.func @l6_levels(%q: tensor<3x512xi8>, %s: tensor<3x16xf32>, %n: tensor<3x16xi32>, %w: tensor<96x512xi8>, %t: tensor<96x36xi8>) {
  // expected-error @+2 {{has input scales number 16, but the weight's groups are 32}}
  // expected-note @-2 {{input scales comes from here}}
  %y = attune.quantized_linear %q scales %s sums %n, %w scales %t
     : (tensor<3x512xi8>, tensor<3x16xf32>, tensor<3x16xi32>), (tensor<96x512xi8>, tensor<96x36xi8>) -> tensor<3x96xf32>
  return
}

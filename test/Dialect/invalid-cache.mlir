// RUN: attune-opt %s --split-input-file --verify-diagnostics

// C1: heads agree
// expected-note @+1 {{cache comes from here}}
func.func @c1(%k: tensor<1x4x3x32xf32>, %c: tensor<5x1x2x16x32xf32>, %i: index) {
  // expected-error @+1 {{'attune.cache_append' op has new rows heads 4, but cache heads 2}}
  %c1 = attune.cache_append %k into %c[%i, %i] : tensor<1x4x3x32xf32>, tensor<5x1x2x16x32xf32>
  return
}

// -----

// C1: widths agree
// expected-note @+1 {{cache comes from here}}
func.func @c1_2(%k: tensor<1x2x3x64xf32>, %c: tensor<5x1x2x16x32xf32>, %i: index) {
  // expected-error @+1 {{has new rows width 64, but cache width 32}}
  %c1 = attune.cache_append %k into %c[%i, %i] : tensor<1x2x3x64xf32>, tensor<5x1x2x16x32xf32>
  return
}

// -----

// C1: element types agree, unless rows of f32 are rounded
// expected-note @+1 {{cache comes from here}}
func.func @c1_3(%k: tensor<1x2x3x32xbf16>, %c: tensor<5x1x2x16x32xf32>, %i: index) {
  // expected-error @+1 {{has new rows of 'bf16', but a cache of 'f32'}}
  %c1 = attune.cache_append %k into %c[%i, %i] : tensor<1x2x3x32xbf16>, tensor<5x1x2x16x32xf32>
  return
}

// -----

// C1: of reads too
// expected-note @+1 {{cache comes from here}}
func.func @c1_4(%c: tensor<5x1x2x16x32xf32>, %i: index) {
  // expected-error @+1 {{'attune.cache_read' op has result batch size 2, but cache batch size 1}}
  %r = attune.cache_read %c[%i] length %i : tensor<5x1x2x16x32xf32> -> tensor<2x2x?x32xf32>
  return
}

// -----

// C1: what is read is not widened
// expected-note @+1 {{cache comes from here}}
func.func @c1_5(%c: tensor<5x1x2x16x32xbf16>, %i: index) {
  // expected-error @+1 {{'attune.cache_read' op has result of 'f32', but a cache of 'bf16'}}
  %r = attune.cache_read %c[%i] length %i : tensor<5x1x2x16x32xbf16> -> tensor<1x2x?x32xf32>
  return
}

// -----

// C1: a row in bytes has four more, its scale
// expected-note @+1 {{cache comes from here}}
func.func @c1_8(%k: tensor<1x2x3x32xf32>, %c: tensor<5x1x2x16x32xi8>, %i: index) {
  // expected-error @+1 {{has new rows width 32, but cache width 28}}
  %c1 = attune.cache_append %k into %c[%i, %i] : tensor<1x2x3x32xf32>, tensor<5x1x2x16x32xi8>
  return
}

// -----

// C1: reading keeps it
// expected-note @+1 {{cache comes from here}}
func.func @c1_9(%c: tensor<5x1x2x16x36xf8E4M3FN>, %i: index) {
  // expected-error @+1 {{has result width 32, but cache width 36}}
  %r = attune.cache_read %c[%i] length %i : tensor<5x1x2x16x36xf8E4M3FN> -> tensor<1x2x?x32xf8E4M3FN>
  return
}

// -----

// C2: no more rows than the cache holds
func.func @c2(%k: tensor<1x2x17x32xf32>, %c: tensor<5x1x2x16x32xf32>, %i: index) {
  // expected-error @+1 {{writes 17 rows into a cache of 16}}
  %c1 = attune.cache_append %k into %c[%i, %i] : tensor<1x2x17x32xf32>, tensor<5x1x2x16x32xf32>
  return
}

// -----

// C1: sequences come first in such a cache
// expected-note @+1 {{cache comes from here}}
func.func @c1_6(%k: tensor<3x2x1x32xf32>, %c: tensor<5x3x2x16x32xf32>, %i: index) {
  // expected-error @+1 {{has new rows batch size 3, but cache batch size 5}}
  %c1 = attune.cache_append %k into %c[%i, %i] sequence_major : tensor<3x2x1x32xf32>, tensor<5x3x2x16x32xf32>
  return
}

// -----

// C1: of reads too
// expected-note @+1 {{cache comes from here}}
func.func @c1_7(%c: tensor<3x5x2x16x32xf32>, %i: index) {
  // expected-error @+1 {{has result batch size 5, but cache batch size 3}}
  %r = attune.cache_read %c[%i] length %i sequence_major : tensor<3x5x2x16x32xf32> -> tensor<5x2x?x32xf32>
  return
}

// -----

// C3: one number for each sequence
// expected-note @+1 {{new rows comes from here}}
func.func @c3(%k: tensor<3x2x1x32xf32>, %c: tensor<5x3x2x16x32xf32>, %i: index, %n: tensor<2xi64>) {
  // expected-error @+1 {{has past size 2, but new rows batch size 3}}
  %c1 = attune.cache_append %k into %c[%i, %n : tensor<2xi64>] : tensor<3x2x1x32xf32>, tensor<5x3x2x16x32xf32>
  return
}

// -----

// C3: one row for each
func.func @c3_2(%k: tensor<3x2x4x32xf32>, %c: tensor<5x3x2x16x32xf32>, %i: index, %n: tensor<3xi64>) {
  // expected-error @+1 {{writes 4 rows of each sequence; where sequences have different numbers of rows, each gets one}}
  %c1 = attune.cache_append %k into %c[%i, %n : tensor<3xi64>] : tensor<3x2x4x32xf32>, tensor<5x3x2x16x32xf32>
  return
}

// -----

func.func @type(%k: tensor<3x2x1x32xf32>, %c: tensor<5x3x2x16x32xf32>, %i: index, %n: tensor<3xi32>) {
  // expected-error @+1 {{operand #3 must be index or [batch] i64 tensor of 64-bit signless integer values, but got 'tensor<3xi32>'}}
  %c1 = attune.cache_append %k into %c[%i, %n : tensor<3xi32>] : tensor<3x2x1x32xf32>, tensor<5x3x2x16x32xf32>
  return
}

// RUN: attune-opt %s --split-input-file --verify-diagnostics

// W1: the type is static
// expected-error @+1 {{'attune.weight' op has type 'tensor<?x4xf32>', but a file holds tensors of known size}}
attune.weight @w : tensor<?x4xf32> from [#attune.source<"w">]

// -----

// W1: a dimension for layers
// expected-error @+1 {{has type 'tensor<f32>', which has no dimension for layers}}
attune.weight @w stacked : tensor<f32> from [#attune.source<"w.{i}">]

// -----

// W1: dimensions for panels
// expected-error @+1 {{has type 'tensor<8xf32>', which has no dimension for panels}}
attune.weight @w panels 8 : tensor<8xf32> from [#attune.source<"w">]

// -----

// W2: sources of a stacked weight name the layer
// expected-error @+1 {{is stacked over 12 layers, but its source 'h.attn.weight' does not say {i}}}
attune.weight @w stacked : tensor<12x4xf32> from [#attune.source<"h.attn.weight">]

// -----

// W3: at least one source
// expected-error @+1 {{has no source}}
attune.weight @w : tensor<4xf32> from []

// -----

// W4: panels are as wide as the type says
// expected-error @+1 {{has panels of 16 rows, but type 'tensor<1x4x32xf32>'}}
attune.weight @w panels 16 : tensor<1x4x32xf32> from [#attune.source<"w">]

// -----

// W4: or twice as wide, for pairs of bf16
// expected-error @+1 {{has panels of 16 rows, but type 'tensor<1x4x48xbf16>'}}
attune.weight @w panels 16 : tensor<1x4x48xbf16> from [#attune.source<"w">]

// -----

// W4: a panel has a row
// expected-error @+1 {{has panels of 0 rows, but type 'tensor<1x4x0xf32>'}}
attune.weight @w panels 0 : tensor<1x4x0xf32> from [#attune.source<"w">]

// -----

// W5: rows end after they begin
// expected-error @+1 {{takes rows 4 to 2 of 'w', which is no range of rows}}
attune.weight @w : tensor<4xf32> from [#attune.source<"w", rows = 4 to 2>]

// -----

// W5: ranges do not overlap
// expected-error @+1 {{takes 3 ranges of rows of 'w', one every 2 rows, which overlap}}
attune.weight @w : tensor<12xf32> from [#attune.source<"w", rows = 0 to 4, every 2 times 3>]

// -----

// G1: the symbol is an attune.weight
func.func @w() {
  // expected-error @+1 {{'attune.weight_get' op names @w, which is no attune.weight}}
  %w = attune.weight_get @w : tensor<4xf32>
  return
}

// -----

// G1: there is such a symbol
func.func @f() {
  // expected-error @+1 {{names @w, which is no attune.weight}}
  %w = attune.weight_get @w : tensor<4xf32>
  return
}

// -----

// G2: the result type is the weight's layer type
// expected-note @+1 {{the weight is declared here}}
attune.weight @w stacked : tensor<3x4xf32> from [#attune.source<"w.{i}">]
func.func @f(%l: index) {
  // expected-error @+1 {{has type 'tensor<3x4xf32>', but one layer of @w is 'tensor<4xf32>'}}
  %w = attune.weight_get @w[%l] : tensor<3x4xf32>
  return
}

// -----

// G3: a layer number exactly for a stacked weight
attune.weight @w stacked : tensor<3x4xf32> from [#attune.source<"w.{i}">]
func.func @f() {
  // expected-error @+1 {{needs a layer number, the weight is stacked}}
  %w = attune.weight_get @w : tensor<4xf32>
  return
}

// -----

// G3: and none for another
attune.weight @w : tensor<4xf32> from [#attune.source<"w">]
func.func @f(%l: index) {
  // expected-error @+1 {{has a layer number, but the weight is not stacked}}
  %w = attune.weight_get @w[%l] : tensor<4xf32>
  return
}

// -----

// W1: dimensions for layers, parts and panels
// expected-error @+1 {{has type 'tensor<8x4xf32>', which has no dimension for panels}}
attune.weight @w stacked parts 8 panels 4 : tensor<8x4xf32> from [#attune.source<"w.{i}.{e}">]

// -----

// W6: parts are a dimension of the type
// expected-error @+1 {{has 8 parts, but type 'tensor<3x7x4xf32>'}}
attune.weight @w stacked parts 8 : tensor<3x7x4xf32> from [#attune.source<"w.{i}.{e}">]

// -----

// W6: told apart by their sources
// expected-error @+1 {{has 8 parts, but its source 'w' needs either {e} or a step}}
attune.weight @w parts 8 : tensor<8x4xf32> from [#attune.source<"w">]

// -----

// W6: which other weights have no use for
// expected-error @+1 {{has no parts that 'w.{e}' with step 0 could tell apart}}
attune.weight @w : tensor<8x4xf32> from [#attune.source<"w.{e}">]

// -----

// W4: four columns of bytes stand side by side
// expected-error @+1 {{has panels of 8 rows, but type 'tensor<2x64x16xi8>'}}
attune.weight @w panels 8 : tensor<2x64x16xi8> from [#attune.source<"w">] {attune.group = 32 : i64}

// -----

// W7: bytes are in groups
// expected-error @+1 {{holds bytes, but does not say in attune.group how many share a scale}}
attune.weight @w : tensor<8x64xi8> from [#attune.source<"w">]

// -----

// W7: of whole quads
// expected-error @+1 {{has groups of 6, which is not 4, 8, 12, ..., 65536}}
attune.weight @w : tensor<8x64xi8> from [#attune.source<"w">] {attune.group = 6 : i64}

// -----

// W7: which rows consist of
// expected-error @+1 {{has rows of 80, which are no whole groups of 32}}
attune.weight @w panels 8 : tensor<1x20x32xi8> from [#attune.source<"w">] {attune.group = 32 : i64}

// -----

// W7: 4 bits are in groups of 32, 64, ...
// expected-error @+1 {{has groups of 48 numbers of 4 bits, which is not 32, 64, ..., 65536}}
attune.weight @w : tensor<8x96xi4> from [#attune.source<"w">] {attune.group = 48 : i64}

// -----

// W7: 4 bits say in what groups
// expected-error @+1 {{holds numbers of 4 bits, but does not say in attune.group how many share a scale}}
attune.weight @w : tensor<8x96xi4> from [#attune.source<"w">]

// -----

// W7: nothing else has groups
// expected-error @+1 {{has groups, whose values are i8, i4 or f8E4M3FN and whose scales are f32, f16 or f8E8M0FNU, but elements of type 'bf16'}}
attune.weight @w : tensor<8x64xbf16> from [#attune.source<"w">] {attune.group = 32 : i64}

// -----

// W7: zero points are beside scales
// expected-error @+1 {{has zero points, but no groups with scales beside them}}
attune.weight @w : tensor<8x64xf32> from [#attune.source<"w">] {attune.zeros}

// -----

// W7: and not beside powers of two
// expected-error @+1 {{has zero points, but no groups with scales beside them}}
attune.weight @w : tensor<8x2xf8E8M0FNU> from [#attune.source<"w">] {attune.group = 32 : i64, attune.zeros}

// -----

// W7: nor of floats of 8 bits
// expected-error @+1 {{has zero points, but no groups with scales beside them}}
attune.weight @w : tensor<8x64xf8E4M3FN> from [#attune.source<"w">] {attune.group = 32 : i64, attune.zeros}

// -----

// W7: which are in groups
// expected-error @+1 {{holds bytes, but does not say in attune.group how many share a scale}}
attune.weight @w : tensor<8x64xf8E4M3FN> from [#attune.source<"w">]

// -----

// W7: a matrix
// expected-error @+1 {{has groups, but type 'tensor<64xi8>' is no matrix}}
attune.weight @w : tensor<64xi8> from [#attune.source<"w">] {attune.group = 32 : i64}

// -----

// W8: a gain is a weight
// expected-error @+1 {{names the gain @g, which is no attune.weight}}
attune.weight @w : tensor<8x64xf32> from [#attune.source<"w">] gain @g

// -----

// W8: of a matrix of f32
attune.weight @g : tensor<64xf32> from [#attune.source<"g">]
// expected-error @+1 {{has type 'tensor<8x64xbf16>' of a layer, but only a matrix of f32 has a gain}}
attune.weight @w : tensor<8x64xbf16> from [#attune.source<"w">] gain @g

// -----

// W8: with an entry for each column
// expected-note @+1 {{the gain is declared here}}
attune.weight @g : tensor<8xf32> from [#attune.source<"g">]
// expected-error @+1 {{has 1 layers of 64 columns, which @g has no gains for}}
attune.weight @w : tensor<8x64xf32> from [#attune.source<"w">] gain @g

// -----

// W8: of each layer
// expected-note @+1 {{the gain is declared here}}
attune.weight @g : tensor<64xf32> from [#attune.source<"g">]
// expected-error @+1 {{has 2 layers of 64 columns, which @g has no gains for}}
attune.weight @w stacked : tensor<2x8x64xf32> from [#attune.source<"w.{i}">] gain @g

// -----

// V1: a stride exactly if there is a layer
func.func @v1(%b: memref<?xi8>, %l: index) {
  // expected-error @+1 {{'attune.weight_view' op has a layer without a stride, or the reverse}}
  %w = attune.weight_view @w of %b[%l] at 64 : memref<?xi8> to memref<4xf32>
  return
}

// -----

// V2: a static shape
func.func @v2(%b: memref<?xi8>) {
  // expected-error @+1 {{gives 'memref<?xf32>', which is no buffer of a known size, row after row}}
  %w = attune.weight_view @w of %b at 64 : memref<?xi8> to memref<?xf32>
  return
}

// -----

// V3: inside of the memory
func.func @v3(%b: memref<?xi8>) {
  // expected-error @+1 {{begins before the memory of all weights}}
  %w = attune.weight_view @w of %b at -64 : memref<?xi8> to memref<4xf32>
  return
}

// -----

// W9: a factor says which, and of what
// expected-error @+1 {{is a factor, which takes attune.factor, "left" or "right", and attune.product, two sizes}}
attune.weight @w : tensor<8x2xf32> from [#attune.source<"w">] {attune.factor = "left"}

// -----

// W9: a factor fits its product
// expected-error @+1 {{has type 'tensor<8x2xf32>' of a layer, which is no right factor of a matrix 8x4}}
attune.weight @w : tensor<8x2xf32> from [#attune.source<"w">] {attune.factor = "right", attune.product = array<i64: 8, 4>}

// -----

// W9: and has no higher rank
// expected-error @+1 {{has type 'tensor<8x5xf32>' of a layer, which is no left factor of a matrix 8x4}}
attune.weight @w : tensor<8x5xf32> from [#attune.source<"w">] {attune.factor = "left", attune.product = array<i64: 8, 4>}

// -----

// W9: parts
// expected-error @+1 {{has parts, whose factors nothing computes}}
attune.weight @w parts 2 : tensor<2x8x2xf32> from [#attune.source<"w.{e}">] {attune.factor = "left", attune.product = array<i64: 8, 4>}

// -----

// W10: a part says of what
// expected-error @+1 {{keeps a part of a matrix, which takes attune.kept with whole, two sizes, and lists of rows or columns, and no parts}}
attune.weight @w : tensor<8x2xf32> from [#attune.source<"w">] {attune.kept = {rows = [array<i64: 0, 8>]}}

// -----

// W10: and has as much as it keeps
// expected-error @+1 {{has type 'tensor<8x2xf32>' of a layer, which is not what attune.kept keeps of a matrix 16x2}}
attune.weight @w : tensor<8x2xf32> from [#attune.source<"w">] {attune.kept = {whole = array<i64: 16, 2>, rows = [array<i64: 0, 4, 8, 2>]}}

// -----

// W10: in every layer
// expected-error @+1 {{has type 'tensor<8x2xf32>' of a layer, which is not what attune.kept keeps of a matrix 8x4}}
attune.weight @w stacked : tensor<2x8x2xf32> from [#attune.source<"w.{i}">] {attune.kept = {whole = array<i64: 8, 4>, columns = [array<i64: 0, 2>, array<i64: 1, 1>]}}

// -----

// W10: ranges ascend within the matrix
// expected-error @+1 {{has type 'tensor<8x2xf32>' of a layer, which is not what attune.kept keeps of a matrix 8x4}}
attune.weight @w : tensor<8x2xf32> from [#attune.source<"w">] {attune.kept = {whole = array<i64: 8, 4>, columns = [array<i64: 3, 2>]}}

// -----

// W11: an order is of as many columns
// expected-error @+1 {{is an order of type 'tensor<32xf32>', but not one of the columns of array<i64: 8, 64>}}
attune.weight @w : tensor<32xf32> from [#attune.source<"w">] {attune.order = array<i64: 8, 64>}

// -----

// W7: bytes of scales are those of numbers of 4 and 8 bits
// expected-error @+1 {{says that its scales are bytes in two levels, which only numbers of 4 and 8 bits have, but holds 'f16'}}
attune.weight @w : tensor<8x256xf16> from [#attune.source<"w">] {attune.group = 32 : i64, attune.scales = i8}

// -----

// expected-error @+1 {{says that its scales are bytes in two levels, which only numbers of 4 and 8 bits have, but holds 'f8E4M3FN'}}
attune.weight @w : tensor<8x256xf8E4M3FN> from [#attune.source<"w">] {attune.group = 32 : i64, attune.scales = i8}

// -----

// expected-error @+1 {{says attune.levels, which bytes of scales do that are in groups, but holds 'f32'}}
attune.weight @w : tensor<8x10xf32> from [#attune.source<"w">] {attune.group = 32 : i64, attune.levels}

// -----

// expected-error @+1 {{says attune.levels, which bytes of scales do that are in groups, but is in no groups of 'i8'}}
attune.weight @w : tensor<8x10xi8> from [#attune.source<"w">] {attune.levels}

// -----

// W7: scales in two levels are of blocks of 256 columns
// expected-error @+1 {{has rows of 128, which are no whole blocks of 256, as scales in two levels have them}}
attune.weight @w : tensor<8x128xi8> from [#attune.source<"w">] {attune.group = 32 : i64, attune.scales = i8}

// -----

// W7: and their bytes those of such blocks
// expected-error @+1 {{has rows of 9 bytes, which are no whole blocks of 10, as scales in two levels have them}}
attune.weight @w : tensor<8x9xi8> from [#attune.source<"w">] {attune.group = 32 : i64, attune.levels}

// -----

// W7: groups are parts of them
// expected-error @+1 {{has groups of 96, whose scales in two levels are those of no 256 columns}}
attune.weight @w : tensor<8x768xi4> from [#attune.source<"w">] {attune.group = 96 : i64, attune.scales = i8}

// RUN: attune-opt %s --attune-pack-weights="panel-width=8 pairs" --split-input-file | FileCheck %s

// Two neighbouring inputs stand side by side: half as many rows of twice the
// width. A tied table is read from the same panels.
// CHECK: attune.weight @fc stacked gated panels 8 : tensor<2x4x6x16xbf16> from {{.+}} {attune.rows = 20 : i64}
// CHECK: attune.weight @wte panels 8 : tensor<3x6x16xbf16>
attune.weight @fc stacked : tensor<2x20x12xbf16> from [#attune.source<"h.{i}.fc">]
attune.weight @wte : tensor<20x12xbf16> from [#attune.source<"wte">]

// CHECK-LABEL: @pairs(
// CHECK:         attune.linear {{.+}} gated : tensor<?x?x12xbf16>, tensor<4x6x16xbf16> -> tensor<?x?x10xf32>
// CHECK:         attune.embedding {{.+}}, tensor<3x6x16xbf16> -> tensor<?x?x12xbf16>
// CHECK:         attune.linear {{.+}} : tensor<?x?x12xbf16>, tensor<3x6x16xbf16> -> tensor<?x?x20xf32>
func.func @pairs(%layer: index, %x: tensor<?x?x12xbf16>, %ids: tensor<?x?xi64>) -> (tensor<?x?x10xf32>, tensor<?x?x20xf32>) {
  %w = attune.weight_get @fc[%layer] : tensor<20x12xbf16>
  %y = attune.linear %x, %w activation <silu> gated : tensor<?x?x12xbf16>, tensor<20x12xbf16> -> tensor<?x?x10xf32>
  %table = attune.weight_get @wte : tensor<20x12xbf16>
  %e = attune.embedding %ids, %table : tensor<?x?xi64>, tensor<20x12xbf16> -> tensor<?x?x12xbf16>
  %z = attune.linear %e, %table : tensor<?x?x12xbf16>, tensor<20x12xbf16> -> tensor<?x?x20xf32>
  return %y, %z : tensor<?x?x10xf32>, tensor<?x?x20xf32>
}

// -----

// No pairs where one reader has f32 to multiply, where the depth is odd or
// where the weight is f32.
// CHECK: attune.weight @mixed panels 8 : tensor<1x12x8xbf16>
// CHECK: attune.weight @odd panels 8 : tensor<1x11x8xbf16>
// CHECK: attune.weight @wide panels 8 : tensor<1x12x8xf32>
attune.weight @mixed : tensor<8x12xbf16> from [#attune.source<"mixed">]
attune.weight @odd : tensor<8x11xbf16> from [#attune.source<"odd">]
attune.weight @wide : tensor<8x12xf32> from [#attune.source<"wide">]
func.func @plain(%x: tensor<?x12xf32>, %b: tensor<?x12xbf16>, %o: tensor<?x11xbf16>)
    -> (tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>) {
  %mixed = attune.weight_get @mixed : tensor<8x12xbf16>
  %odd = attune.weight_get @odd : tensor<8x11xbf16>
  %wide = attune.weight_get @wide : tensor<8x12xf32>
  %0 = attune.linear %x, %mixed : tensor<?x12xf32>, tensor<8x12xbf16> -> tensor<?x8xf32>
  %1 = attune.linear %b, %mixed : tensor<?x12xbf16>, tensor<8x12xbf16> -> tensor<?x8xf32>
  %2 = attune.linear %o, %odd : tensor<?x11xbf16>, tensor<8x11xbf16> -> tensor<?x8xf32>
  %3 = attune.linear %b, %wide : tensor<?x12xbf16>, tensor<8x12xf32> -> tensor<?x8xf32>
  return %0, %1, %2, %3 : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>
}

// -----

// Bytes: four of a row side by side, and their scales in panels as any matrix.
// CHECK: attune.weight @bytes gated panels 8 : tensor<4x16x32xi8> from {{.+}} {attune.group = 32 : i64, attune.rows = 20 : i64}
// CHECK: attune.weight @bytes.scales gated panels 8 : tensor<4x2x8xf32> from {{.+}} {attune.group = 32 : i64, attune.rows = 20 : i64}
attune.weight @bytes : tensor<20x64xi8> from [#attune.source<"w">] {attune.group = 32 : i64}
attune.weight @bytes.scales : tensor<20x2xf32> from [#attune.source<"w">] {attune.group = 32 : i64}
func.func @quads(%q: tensor<3x64xi8>, %s: tensor<3x2xf32>, %n: tensor<3x2xi32>) -> tensor<3x10xf32> {
  %w = attune.weight_get @bytes : tensor<20x64xi8>
  %t = attune.weight_get @bytes.scales : tensor<20x2xf32>
  %y = attune.quantized_linear %q scales %s sums %n, %w scales %t gated
     : (tensor<3x64xi8>, tensor<3x2xf32>, tensor<3x2xi32>), (tensor<20x64xi8>, tensor<20x2xf32>) -> tensor<3x10xf32>
  return %y : tensor<3x10xf32>
}

// -----

// Numbers of 4 bits: eight of a row in four bytes.
// CHECK: attune.weight @nibbles panels 8 : tensor<3x8x32xi8> from {{.+}} {attune.bits = 4 : i64, attune.group = 32 : i64, attune.rows = 20 : i64}
// CHECK: attune.weight @nibbles.scales panels 8 : tensor<3x2x8xf16> from {{.+}} {attune.group = 32 : i64, attune.rows = 20 : i64}
attune.weight @nibbles : tensor<20x64xi4> from [#attune.source<"w">] {attune.group = 32 : i64}
attune.weight @nibbles.scales : tensor<20x2xf16> from [#attune.source<"w">] {attune.group = 32 : i64}
func.func @halves(%q: tensor<3x64xi8>, %s: tensor<3x2xf32>, %n: tensor<3x2xi32>) -> tensor<3x20xf32> {
  %w = attune.weight_get @nibbles : tensor<20x64xi4>
  %t = attune.weight_get @nibbles.scales : tensor<20x2xf16>
  %y = attune.quantized_linear %q scales %s sums %n, %w scales %t
     : (tensor<3x64xi8>, tensor<3x2xf32>, tensor<3x2xi32>), (tensor<20x64xi4>, tensor<20x2xf16>) -> tensor<3x20xf32>
  return %y : tensor<3x20xf32>
}

// -----

// Stacks of a mixture, both or neither.
// CHECK: attune.weight @up parts 4 gated panels 8 : tensor<4x4x6x16xbf16>
// CHECK: attune.weight @down parts 4 panels 8 : tensor<4x2x5x16xbf16>
// CHECK: attune.weight @odd.up parts 4 panels 8 : tensor<4x1x12x8xbf16>
// CHECK: attune.weight @odd.down parts 4 panels 8 : tensor<4x2x7x8xbf16>
attune.weight @up parts 4 : tensor<4x20x12xbf16> from [#attune.source<"up.{e}">]
attune.weight @down parts 4 : tensor<4x12x10xbf16> from [#attune.source<"down.{e}">]
attune.weight @odd.up parts 4 : tensor<4x7x12xbf16> from [#attune.source<"odd.up.{e}">]
attune.weight @odd.down parts 4 : tensor<4x12x7xbf16> from [#attune.source<"odd.down.{e}">]
// CHECK-LABEL: @mixtures(
// CHECK:         attune.moe {{.+}} gated activation <silu> : tensor<?x12xbf16>, tensor<?x2xi64>, tensor<?x2xf32>, tensor<4x4x6x16xbf16>, tensor<4x2x5x16xbf16>
func.func @mixtures(%x: tensor<?x12xbf16>, %e: tensor<?x2xi64>, %w: tensor<?x2xf32>) -> (tensor<?x12xf32>, tensor<?x12xf32>) {
  %up = attune.weight_get @up : tensor<4x20x12xbf16>
  %down = attune.weight_get @down : tensor<4x12x10xbf16>
  %0 = attune.moe %x, %e, %w, %up, %down gated activation <silu>
     : tensor<?x12xbf16>, tensor<?x2xi64>, tensor<?x2xf32>, tensor<4x20x12xbf16>, tensor<4x12x10xbf16> -> tensor<?x12xf32>
  %odd.up = attune.weight_get @odd.up : tensor<4x7x12xbf16>
  %odd.down = attune.weight_get @odd.down : tensor<4x12x7xbf16>
  %1 = attune.moe %x, %e, %w, %odd.up, %odd.down activation <silu>
     : tensor<?x12xbf16>, tensor<?x2xi64>, tensor<?x2xf32>, tensor<4x7x12xbf16>, tensor<4x12x7xbf16> -> tensor<?x12xf32>
  return %0, %1 : tensor<?x12xf32>, tensor<?x12xf32>
}

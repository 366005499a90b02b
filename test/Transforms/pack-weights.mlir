// RUN: attune-opt %s --attune-pack-weights="panel-width=8" --split-input-file | FileCheck %s

// 20 output channels are three panels of 8, the last with 4 rows of padding.
// A weight that no linear layer multiplies by keeps its rows.
// CHECK:      attune.weight @fc stacked panels 8 : tensor<2x3x12x8xf32> from [#attune.source<"h.{i}.fc">] {attune.rows = 20 : i64}
// CHECK-NEXT: attune.weight @norm : tensor<12xf32>
attune.weight @fc stacked : tensor<2x20x12xf32> from [#attune.source<"h.{i}.fc">]
attune.weight @norm : tensor<12xf32> from [#attune.source<"norm">]

// CHECK-LABEL: @plain(
func.func @plain(%layer: index, %x: tensor<?x?x12xf32>) -> (tensor<?x?x20xf32>, tensor<12xf32>) {
  // CHECK: %[[W:.+]] = attune.weight_get @fc[%{{.+}}] : tensor<3x12x8xf32>
  // CHECK: attune.linear %{{.+}}, %[[W]] : tensor<?x?x12xf32>, tensor<3x12x8xf32> -> tensor<?x?x20xf32>
  // CHECK: attune.weight_get @norm : tensor<12xf32>
  %w = attune.weight_get @fc[%layer] : tensor<20x12xf32>
  %y = attune.linear %x, %w : tensor<?x?x12xf32>, tensor<20x12xf32> -> tensor<?x?x20xf32>
  %n = attune.weight_get @norm : tensor<12xf32>
  return %y, %n : tensor<?x?x20xf32>, tensor<12xf32>
}

// -----

// Each half of a gated matrix starts a panel of its own: 2 + 2, not 3.
// CHECK: attune.weight @gate_up gated panels 8 : tensor<4x12x8xbf16>
// CHECK-SAME: {attune.rows = 20 : i64}
attune.weight @gate_up : tensor<20x12xbf16> from [#attune.source<"gate">, #attune.source<"up">]

// CHECK-LABEL: @gated(
func.func @gated(%x: tensor<?x?x12xf32>) -> tensor<?x?x10xf32> {
  // CHECK: attune.linear {{.+}} activation <silu> gated : tensor<?x?x12xf32>, tensor<4x12x8xbf16> -> tensor<?x?x10xf32>
  %w = attune.weight_get @gate_up : tensor<20x12xbf16>
  %y = attune.linear %x, %w activation <silu> gated : tensor<?x?x12xf32>, tensor<20x12xbf16> -> tensor<?x?x10xf32>
  return %y : tensor<?x?x10xf32>
}

// -----

// A tied table is stored once: the embedding reads the panels of the head.
// CHECK: attune.weight @wte panels 8 : tensor<3x12x8xf32>
attune.weight @wte : tensor<20x12xf32> from [#attune.source<"wte">]

// CHECK-LABEL: @tied(
func.func @tied(%ids: tensor<?x?xi64>) -> tensor<?x?x20xf32> {
  // CHECK: attune.embedding %{{.+}}, %{{.+}} : tensor<?x?xi64>, tensor<3x12x8xf32> -> tensor<?x?x12xf32>
  // CHECK: attune.linear %{{.+}}, %{{.+}} : tensor<?x?x12xf32>, tensor<3x12x8xf32> -> tensor<?x?x20xf32>
  %table = attune.weight_get @wte : tensor<20x12xf32>
  %x = attune.embedding %ids, %table : tensor<?x?xi64>, tensor<20x12xf32> -> tensor<?x?x12xf32>
  %head = attune.weight_get @wte : tensor<20x12xf32>
  %y = attune.linear %x, %head : tensor<?x?x12xf32>, tensor<20x12xf32> -> tensor<?x?x20xf32>
  return %y : tensor<?x?x20xf32>
}

// -----

// What is packed already stays as it is, whatever the width asked for; a matrix
// that is no weight is left to the conversion.
// CHECK: attune.weight @packed panels 16 : tensor<2x12x16xf32>
attune.weight @packed panels 16 : tensor<2x12x16xf32> from [#attune.source<"w">]

// CHECK-LABEL: @left_alone(
func.func @left_alone(%x: tensor<?x?x12xf32>, %m: tensor<20x12xf32>) -> (tensor<?x?x20xf32>, tensor<?x?x20xf32>) {
  // CHECK: attune.weight_get @packed : tensor<2x12x16xf32>
  // CHECK: attune.linear {{.+}}, tensor<20x12xf32> ->
  %w = attune.weight_get @packed : tensor<2x12x16xf32>
  %y = attune.linear %x, %w : tensor<?x?x12xf32>, tensor<2x12x16xf32> -> tensor<?x?x20xf32>
  %z = attune.linear %x, %m : tensor<?x?x12xf32>, tensor<20x12xf32> -> tensor<?x?x20xf32>
  return %y, %z : tensor<?x?x20xf32>, tensor<?x?x20xf32>
}

// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{lanes=8 rows=4 cooperative}))" | FileCheck %s

// What each expert multiplies is a list that nobody has to read on the host: as
// many tasks as there can be, 128 rows each.
// CHECK-LABEL: func.func @mixture(
// CHECK-SAME:    %[[X:.+]]: tensor<?x64xf32>, %[[E:.+]]: tensor<?x2xi64>, %[[S:.+]]: tensor<?x2xf32>, %[[U:.+]]: tensor<8x12x64x8xbf16>, %[[D:.+]]: tensor<8x8x48x8xbf16>
// CHECK:         %[[SLOTS:.+]] = arith.muli %{{.+}}, %c2{{.*}} : index
// CHECK:         %[[FULL:.+]] = arith.divui %[[SLOTS]], %c128{{.*}} : index
// CHECK:         %[[COUNT:.+]] = arith.addi %[[FULL]], %c8{{.*}} : index
// CHECK:         tensor.empty(%[[COUNT]]) : tensor<?x3xi64>
// CHECK:         %[[ORDER:.+]]:3 = attune.expert_tasks_into %[[E]] into {{.+}} experts 8 rows 128
// CHECK:         %[[HIDDEN:.+]] = attune.grouped_linear_into %[[X]], %[[U]] tasks %[[ORDER]]#0 : tensor<?x3xi64> from %[[ORDER]]#1 : tensor<?xi64> into %{{.+}} activation <silu> gated : {{.+}} -> tensor<?x48xf32>
// CHECK:         attune.grouped_linear_into %[[HIDDEN]], %[[D]] tasks %[[ORDER]]#0 : tensor<?x3xi64> into %{{.+}} : {{.+}} -> tensor<?x64xf32>
// CHECK:         scf.forall
// CHECK:           tensor.extract %[[ORDER]]#2
func.func @mixture(%x: tensor<?x64xf32>, %e: tensor<?x2xi64>, %s: tensor<?x2xf32>, %u: tensor<8x12x64x8xbf16>, %d: tensor<8x8x48x8xbf16>) -> tensor<?x64xf32> {
  %y = attune.moe %x, %e, %s, %u, %d gated activation <silu> : tensor<?x64xf32>, tensor<?x2xi64>, tensor<?x2xf32>, tensor<8x12x64x8xbf16>, tensor<8x8x48x8xbf16> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// Biases and limits belong to the product that they follow.
// CHECK-LABEL: func.func @biases(
// CHECK-SAME:    %[[B:[^:]+]]: tensor<8x96xbf16>, %[[C:[^:]+]]: tensor<8x64xbf16>)
// CHECK:         attune.grouped_linear_into {{.+}} bias %[[B]] : tensor<8x96xbf16> into %{{.+}} activation <quick_gelu> gated limit 7.000000e+00 up_offset 1.000000e+00 :
// CHECK:         attune.grouped_linear_into {{.+}} bias %[[C]] : tensor<8x64xbf16> into %{{.+}} : {{.+}} -> tensor<?x64xf32>
func.func @biases(%x: tensor<?x64xf32>, %e: tensor<?x2xi64>, %s: tensor<?x2xf32>, %u: tensor<8x12x64x8xbf16>, %d: tensor<8x8x48x8xbf16>, %b: tensor<8x96xbf16>, %c: tensor<8x64xbf16>) -> tensor<?x64xf32> {
  %y = attune.moe %x, %e, %s, %u, %d up_bias %b : tensor<8x96xbf16> down_bias %c : tensor<8x64xbf16> gated activation <quick_gelu> limit 7.0 up_offset 1.0 : tensor<?x64xf32>, tensor<?x2xi64>, tensor<?x2xf32>, tensor<8x12x64x8xbf16>, tensor<8x8x48x8xbf16> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// CHECK-LABEL: func.func @heads(
// CHECK:         tensor.collapse_shape %{{.+}} {{\[\[}}0, 1], [2], [3]] : tensor<?x4x?x12xf32> into tensor<?x?x12xf32>
// CHECK:         attune.grouped_linear_into %{{.+}}, %{{.+}} into %{{.+}} : tensor<?x?x12xf32>, tensor<4x3x12x8xf32>, tensor<?x?x24xf32> -> tensor<?x?x24xf32>
// CHECK-NOT:     attune.head_linear
func.func @heads(%x: tensor<?x4x?x12xf32>, %w: tensor<4x3x12x8xf32>) -> tensor<?x4x?x24xf32> {
  %y = attune.head_linear %x, %w : tensor<?x4x?x12xf32>, tensor<4x3x12x8xf32> -> tensor<?x4x?x24xf32>
  return %y : tensor<?x4x?x24xf32>
}

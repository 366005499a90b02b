// RUN: attune-opt %s --attune-shard=ep=4 | FileCheck %s
// RUN: attune-opt %s --attune-shard=ep=3 | FileCheck %s --check-prefix=THREE
// RUN: not attune-opt %s --attune-shard=ep=9 2>&1 | FileCheck %s --check-prefix=NINE
// RUN: not attune-opt %s --attune-shard="ep=4 tp=2" 2>&1 | FileCheck %s --check-prefix=BOTH
// RUN: attune-opt %s --attune-shard=tp=2 | FileCheck %s --check-prefix=WIDTH
// NINE: error: 8 experts cannot be shared by 9 ranks, of which some would have none; --mesh=ep=N takes an N of at most as many
// BOTH: error: tp and ep must be positive and, where both are more than 1, the same; not 2 and 4

// Two, three and three: the first rank has room for one that is the second's.
// THREE: attune.weight @up stacked parts 3 : tensor<3x3x20x6xf32>
// THREE-SAME: attune.cut = {parts, rows = [array<i64: 0, 3>, array<i64: 2, 3>, array<i64: 5, 3>], whole = array<i64: 8, 120>}
// THREE: %[[RANK:.+]] = attune.rank
// THREE: %[[ALL:.+]] = arith.muli %[[RANK]], %{{.+}}
// THREE: %[[FIRST:.+]] = arith.divui %[[ALL]], %{{.+}}
// THREE: %[[NEXT:.+]] = arith.divui
// THREE: arith.subi %[[NEXT]], %[[FIRST]]

// Half of the hidden columns of every expert; a bias of the sum is the first
// rank's.
// WIDTH: attune.weight @up stacked parts 8 : tensor<3x8x10x6xf32>
// WIDTH-SAME: attune.cut = {rows = [array<i64: 0, 5, 10, 5>, array<i64: 5, 5, 15, 5>], whole = array<i64: 20, 6>}
// WIDTH: attune.weight @down stacked parts 8 : tensor<3x8x6x5xf32>
// WIDTH-SAME: attune.cut = {columns = array<i64: 0, 5, 5, 5>, rows = [array<i64: 0, 6>, array<i64: 0, 6>], whole = array<i64: 6, 10>}
// WIDTH: attune.weight @bias stacked parts 8 : tensor<3x8x6xf32>
// WIDTH-SAME: rows = [array<i64: 0, 6>, array<i64>], whole = array<i64: 6, 1>}
// WIDTH: %[[P:.+]] = attune.moe {{.+}} tensor<8x10x6xf32>, tensor<8x6x5xf32>
// WIDTH: attune.all_reduce %[[P]] into %{{.+}} accumulate

// Two experts a rank. Its file has the parts that their numbers say.
// CHECK: module attributes {attune.ranks = 4 : i64}
// CHECK: attune.weight @up stacked parts 2 : tensor<3x2x20x6xf32>
// CHECK-SAME: attune.cut = {parts, rows = [array<i64: 0, 2>, array<i64: 2, 2>, array<i64: 4, 2>, array<i64: 6, 2>], whole = array<i64: 8, 120>}
// CHECK: attune.weight @down stacked parts 2 : tensor<3x2x6x10xf32>
// CHECK: attune.weight @bias stacked parts 2 : tensor<3x2x6xf32>
attune.weight @up stacked parts 8 : tensor<3x8x20x6xf32> from [#attune.source<"h.{i}.{e}.gate">, #attune.source<"h.{i}.{e}.up">]
attune.weight @down stacked parts 8 : tensor<3x8x6x10xf32> from [#attune.source<"h.{i}.{e}.down">]
attune.weight @bias stacked parts 8 : tensor<3x8x6xf32> from [#attune.source<"h.{i}.{e}.bias">]
// CHECK-LABEL: @mixture(
// CHECK-SAME: %[[X:.+]]: tensor<?x?x6xf32>, %[[E:.+]]: tensor<?x?x2xi64>
func.func @mixture(%x: tensor<?x?x6xf32>, %e: tensor<?x?x2xi64>, %w: tensor<?x?x2xf32>, %layer: index) -> tensor<?x?x6xf32> {
  %u = attune.weight_get @up[%layer] : tensor<8x20x6xf32>
  %d = attune.weight_get @down[%layer] : tensor<8x6x10xf32>
  %b = attune.weight_get @bias[%layer] : tensor<8x6xf32>
  // CHECK: %[[RANK:.+]] = attune.rank
  // CHECK: arith.muli %[[RANK]], %{{.+}}
  // CHECK: %[[LOCAL:.+]] = linalg.generic {{.+}} ins(%[[E]] : tensor<?x?x2xi64>)
  // CHECK: arith.cmpi ult
  // CHECK: %[[P:.+]] = attune.moe %[[X]], %[[LOCAL]], %{{.+}} down_bias %{{.+}} : tensor<2x6xf32> gated activation <silu>
  // CHECK: attune.all_reduce %[[P]] experts %[[LOCAL]] below 2 : tensor<?x?x2xi64> into %[[X]] accumulate
  %y = attune.moe %x, %e, %w, %u, %d down_bias %b : tensor<8x6xf32> residual %x : tensor<?x?x6xf32> gated activation <silu>
     : tensor<?x?x6xf32>, tensor<?x?x2xi64>, tensor<?x?x2xf32>, tensor<8x20x6xf32>, tensor<8x6x10xf32> -> tensor<?x?x6xf32>
  return %y : tensor<?x?x6xf32>
}

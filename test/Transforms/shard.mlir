// RUN: attune-opt %s --attune-shard=tp=2 --split-input-file | FileCheck %s
// RUN: attune-opt %s --attune-shard --split-input-file | FileCheck %s --check-prefix=ONE

// One rank has all of it.
// ONE-NOT: attune.cut
// ONE-NOT: attune.all_reduce

// Queries, keys and values by rows, each in the order of its heads; the output
// by columns, its bias on the first rank alone; the sum goes onto the residual.
// CHECK: module attributes {attune.ranks = 2 : i64}
// CHECK: attune.weight @qkv : tensor<16x16xf32>
// CHECK-SAME: attune.cut = {rows = [array<i64: 0, 8, 16, 4, 24, 4>, array<i64: 8, 8, 20, 4, 28, 4>], whole = array<i64: 32, 16>}
// CHECK: attune.weight @qkv_bias : tensor<16xf32>
// CHECK-SAME: rows = [array<i64: 0, 8, 16, 4, 24, 4>, array<i64: 8, 8, 20, 4, 28, 4>], whole = array<i64: 32, 1>}
// CHECK: attune.weight @o : tensor<16x8xf32>
// CHECK-SAME: attune.cut = {columns = array<i64: 0, 8, 8, 8>, rows = [array<i64: 0, 16>, array<i64: 0, 16>], whole = array<i64: 16, 16>}
// CHECK: attune.weight @o_bias : tensor<16xf32>
// CHECK-SAME: rows = [array<i64: 0, 16>, array<i64>]
attune.weight @qkv : tensor<32x16xf32> from [#attune.source<"q">, #attune.source<"k">, #attune.source<"v">]
attune.weight @qkv_bias : tensor<32xf32> from [#attune.source<"b">]
attune.weight @o : tensor<16x16xf32> from [#attune.source<"o">]
attune.weight @o_bias : tensor<16xf32> from [#attune.source<"ob">]
// CHECK-LABEL: func.func private @block(
// CHECK-SAME: %[[X:.+]]: tensor<?x?x16xf32>, %{{.+}}: index, %{{.+}}: index, %[[C:.+]]: tensor<1x?x1x?x4xf32>
func.func private @block(%x: tensor<?x?x16xf32>, %past: index, %n: index,
    %kc: tensor<1x?x2x?x4xf32>, %vc: tensor<1x?x2x?x4xf32>)
    -> (tensor<?x?x16xf32>, tensor<1x?x2x?x4xf32>, tensor<1x?x2x?x4xf32>) {
  %c0 = arith.constant 0 : index
  %w = attune.weight_get @qkv : tensor<32x16xf32>
  %b = attune.weight_get @qkv_bias : tensor<32xf32>
  // CHECK: attune.linear {{.+}} : tensor<?x?x16xf32>, tensor<16x16xf32> -> tensor<?x?x16xf32>
  %y = attune.linear %x, %w bias %b : tensor<32xf32> : tensor<?x?x16xf32>, tensor<32x16xf32> -> tensor<?x?x32xf32>
  // CHECK: attune.split_heads %{{.+}} : tensor<?x?x16xf32> -> tensor<?x2x?x4xf32>
  // CHECK: attune.split_heads %{{.+}} at 8 : tensor<?x?x16xf32> -> tensor<?x1x?x4xf32>
  // CHECK: attune.split_heads %{{.+}} at 12 : tensor<?x?x16xf32> -> tensor<?x1x?x4xf32>
  %q = attune.split_heads %y : tensor<?x?x32xf32> -> tensor<?x4x?x4xf32>
  %k = attune.split_heads %y at 16 : tensor<?x?x32xf32> -> tensor<?x2x?x4xf32>
  %v = attune.split_heads %y at 24 : tensor<?x?x32xf32> -> tensor<?x2x?x4xf32>
  // Who asks for a size of the projection needs none of its heads.
  %batch = tensor.dim %y, %c0 : tensor<?x?x32xf32>
  %k1 = attune.cache_append %k into %kc[%c0, %past] : tensor<?x2x?x4xf32>, tensor<1x?x2x?x4xf32>
  %k2 = attune.cache_read %k1[%c0] length %n : tensor<1x?x2x?x4xf32> -> tensor<?x2x?x4xf32>
  %v1 = attune.cache_append %v into %vc[%c0, %past] : tensor<?x2x?x4xf32>, tensor<1x?x2x?x4xf32>
  %v2 = attune.cache_read %v1[%c0] length %n : tensor<1x?x2x?x4xf32> -> tensor<?x2x?x4xf32>
  %s = attune.similarity %q, %k2 scale 5.000000e-01 : tensor<?x4x?x4xf32>, tensor<?x2x?x4xf32> -> tensor<?x4x?x?xf32>
  // Each rank has its own slopes.
  // CHECK: %[[RANK:.+]] = attune.rank
  // CHECK: %[[FIRST:.+]] = arith.muli %[[RANK]], %{{.+}}
  // CHECK: tensor.extract_slice %{{.+}}[%[[FIRST]]] [2] [1] : tensor<4xf32> to tensor<2xf32>
  %slopes = arith.constant dense<[0.5, 0.25, 0.125, 0.0625]> : tensor<4xf32>
  %m = attune.mask_scores %s slopes %slopes : tensor<4xf32> causal <bottom_right> : tensor<?x4x?x?xf32>
  %p = attune.softmax %m : tensor<?x4x?x?xf32>
  %a = attune.weighted_sum %p, %v2 : tensor<?x4x?x?xf32>, tensor<?x2x?x4xf32> -> tensor<?x4x?x4xf32>
  // CHECK: attune.merge_heads %{{.+}} : tensor<?x2x?x4xf32> -> tensor<?x?x8xf32>
  %h = attune.merge_heads %a : tensor<?x4x?x4xf32> -> tensor<?x?x16xf32>
  %ow = attune.weight_get @o : tensor<16x16xf32>
  %ob = attune.weight_get @o_bias : tensor<16xf32>
  // CHECK: %[[P:.+]] = attune.linear %{{.+}}, %{{.+}} bias %{{.+}} : tensor<16xf32> : tensor<?x?x8xf32>, tensor<16x8xf32> -> tensor<?x?x16xf32>
  // CHECK: %[[Y:.+]] = attune.all_reduce %[[P]] into %[[X]] accumulate
  // CHECK: return %[[Y]]
  %r = attune.linear %h, %ow bias %ob : tensor<16xf32> residual %x : tensor<?x?x16xf32> : tensor<?x?x16xf32>, tensor<16x16xf32> -> tensor<?x?x16xf32>
  return %r, %k1, %v1 : tensor<?x?x16xf32>, tensor<1x?x2x?x4xf32>, tensor<1x?x2x?x4xf32>
}

// -----

// A feed-forward layer and the vocabulary, of which the last rank has less.
// CHECK: attune.weight @wte : tensor<6x8xf32>
// CHECK-SAME: attune.cut = {rows = [array<i64: 0, 5>, array<i64: 5, 4>], whole = array<i64: 9, 8>}
// CHECK: attune.weight @up stacked : tensor<3x12x8xf32>
// CHECK-SAME: attune.cut = {rows = [array<i64: 0, 6, 12, 6>, array<i64: 6, 6, 18, 6>], whole = array<i64: 24, 8>}
// CHECK: attune.weight @down stacked : tensor<3x8x6xf32>
// CHECK-SAME: attune.cut = {columns = array<i64: 0, 6, 6, 6>,
attune.weight @wte : tensor<9x8xf32> from [#attune.source<"wte">]
attune.weight @up stacked : tensor<3x24x8xf32> from [#attune.source<"h.{i}.gate">, #attune.source<"h.{i}.up">]
attune.weight @down stacked : tensor<3x8x12xf32> from [#attune.source<"h.{i}.down">]
// CHECK-LABEL: @forward(
func.func @forward(%ids: tensor<?x?xi64> {attune.kind = "input", attune.name = "input_ids", attune.shape = ["batch", "seq"]}, %layer: index {attune.kind = "size", attune.name = "layer"})
    -> (tensor<?x?x9xf32> {attune.kind = "output", attune.name = "logits", attune.shape = ["batch", "seq", ""]}) attributes {attune.entry} {
  %t = attune.weight_get @wte : tensor<9x8xf32>
  // CHECK: %[[RANK:.+]] = attune.rank
  // CHECK: %[[FIRST:.+]] = arith.muli %[[RANK]], %{{.+}}
  // CHECK: linalg.generic
  // CHECK: arith.subi
  // CHECK: arith.cmpi ult
  // CHECK: %[[E:.+]] = attune.embedding %{{.+}}, %{{.+}} : tensor<?x?xi64>, tensor<6x8xf32> -> tensor<?x?x8xf32>
  // CHECK: attune.all_reduce %[[E]] into %{{.+}} : tensor<?x?x8xf32>, tensor<?x?x8xf32> -> tensor<?x?x8xf32>
  %x = attune.embedding %ids, %t : tensor<?x?xi64>, tensor<9x8xf32> -> tensor<?x?x8xf32>
  %u = attune.weight_get @up[%layer] : tensor<24x8xf32>
  %d = attune.weight_get @down[%layer] : tensor<8x12xf32>
  // CHECK: %[[F:.+]] = attune.gated_ffn %[[X:.+]], %{{.+}}, %{{.+}} activation <silu> : tensor<?x?x8xf32>, tensor<12x8xf32>, tensor<8x6xf32> -> tensor<?x?x8xf32>
  // CHECK: attune.all_reduce %[[F]] into %[[X]] accumulate
  %y = attune.gated_ffn %x, %u, %d residual %x : tensor<?x?x8xf32> activation <silu> : tensor<?x?x8xf32>, tensor<24x8xf32>, tensor<8x12xf32> -> tensor<?x?x8xf32>
  %h = attune.weight_get @wte : tensor<9x8xf32>
  // CHECK: %[[L:.+]] = attune.linear %{{.+}} : tensor<?x?x8xf32>, tensor<6x8xf32> -> tensor<?x?x6xf32>
  // CHECK: attune.all_gather %[[L]] columns %{{.+}} into %{{.+}} : tensor<?x?x6xf32>, tensor<?x?x9xf32> -> tensor<?x?x9xf32>
  %z = attune.linear %y, %h : tensor<?x?x8xf32>, tensor<9x8xf32> -> tensor<?x?x9xf32>
  return %z : tensor<?x?x9xf32>
}

// RUN: attune-opt %s --attune-shard=tp=2 | FileCheck %s

// A rank has the memories of its heads of a delta rule, and of what the convolution
// reads the queries, keys and values of these; the gate behind is cut alike. What the
// cache holds is said side by side, for who puts ranks together.
// CHECK: attune.weight @in : tensor<12x8xf32>
// CHECK-SAME: attune.cut = {rows = [array<i64: 0, 2, 4, 2, 8, 8>, array<i64: 2, 2, 6, 2, 16, 8>], whole = array<i64: 24, 8>}
// CHECK: attune.weight @conv : tensor<12x3xf32>
// CHECK-SAME: attune.cut = {rows = [array<i64: 0, 2, 4, 2, 8, 8>, array<i64: 2, 2, 6, 2, 16, 8>], whole = array<i64: 24, 3>}
// CHECK: attune.weight @step : tensor<2x8xf32>
// CHECK: attune.weight @beta : tensor<2x8xf32>
// CHECK: attune.weight @decay : tensor<2xf32>
// CHECK: attune.weight @gate : tensor<8x8xf32>
// CHECK-SAME: attune.cut = {rows = [array<i64: 0, 8>, array<i64: 8, 8>], whole = array<i64: 16, 8>}
// CHECK: attune.weight @out : tensor<8x8xf32>
// CHECK-SAME: attune.cut = {columns = array<i64: 0, 8, 8, 8>,
attune.weight @in : tensor<24x8xf32> from [#attune.source<"in">]
attune.weight @conv : tensor<24x3xf32> from [#attune.source<"conv">]
attune.weight @step : tensor<4x8xf32> from [#attune.source<"step">]
attune.weight @beta : tensor<4x8xf32> from [#attune.source<"beta">]
attune.weight @decay : tensor<4xf32> from [#attune.source<"decay">]
attune.weight @gate : tensor<16x8xf32> from [#attune.source<"gate">]
attune.weight @out : tensor<8x16xf32> from [#attune.source<"out">]
// CHECK-LABEL: @decode(
// CHECK-SAME: tensor<1x?x2x8xf32> {attune.kind = "cache", attune.name = "state", attune.shape = [1, "batch", 2, 8]}
func.func @decode(%x: tensor<?x?x8xf32> {attune.kind = "input", attune.name = "x", attune.shape = ["batch", "seq", 8]},
                  %kept: tensor<1x?x2x16xf32> {attune.kind = "cache", attune.name = "state", attune.shape = [1, "batch", 2, 16]})
    -> (tensor<?x?x8xf32> {attune.kind = "output", attune.name = "y", attune.shape = ["batch", "seq", 8]},
        tensor<1x?x2x16xf32> {attune.kind = "cache", attune.name = "state", attune.shape = [1, "batch", 2, 16]}) attributes {attune.entry} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %in = attune.weight_get @in : tensor<24x8xf32>
  %conv = attune.weight_get @conv : tensor<24x3xf32>
  %ws = attune.weight_get @step : tensor<4x8xf32>
  %wb = attune.weight_get @beta : tensor<4x8xf32>
  %decay = attune.weight_get @decay : tensor<4xf32>
  %wg = attune.weight_get @gate : tensor<16x8xf32>
  %wo = attune.weight_get @out : tensor<8x16xf32>
  // CHECK: attune.linear %{{.+}} : tensor<?x?x8xf32>, tensor<12x8xf32> -> tensor<?x?x12xf32>
  %all = attune.linear %x, %in : tensor<?x?x8xf32>, tensor<24x8xf32> -> tensor<?x?x24xf32>
  // CHECK: %[[C:.+]] = attune.causal_conv %{{.+}} : tensor<?x?x12xf32>, tensor<12x3xf32>
  %seen = attune.causal_conv %all, %conv activation <silu> : tensor<?x?x24xf32>, tensor<24x3xf32>
  %b = tensor.dim %seen, %c0 : tensor<?x?x24xf32>
  %t = tensor.dim %seen, %c1 : tensor<?x?x24xf32>
  // CHECK: tensor.extract_slice %[[C]][0, 0, 0] [%{{.+}}, %{{.+}}, 2]
  %q = tensor.extract_slice %seen[0, 0, 0] [%b, %t, 4] [1, 1, 1] : tensor<?x?x24xf32> to tensor<?x?x4xf32>
  // CHECK: tensor.extract_slice %[[C]][0, 0, 2] [%{{.+}}, %{{.+}}, 2]
  %k = tensor.extract_slice %seen[0, 0, 4] [%b, %t, 4] [1, 1, 1] : tensor<?x?x24xf32> to tensor<?x?x4xf32>
  // CHECK: tensor.extract_slice %[[C]][0, 0, 4] [%{{.+}}, %{{.+}}, 8]
  %v = tensor.extract_slice %seen[0, 0, 8] [%b, %t, 16] [1, 1, 1] : tensor<?x?x24xf32> to tensor<?x?x16xf32>
  %step = attune.linear %x, %ws : tensor<?x?x8xf32>, tensor<4x8xf32> -> tensor<?x?x4xf32>
  %beta = attune.linear %x, %wb : tensor<?x?x8xf32>, tensor<4x8xf32> -> tensor<?x?x4xf32>
  // CHECK: tensor.extract_slice %{{.+}}[0, 0, 0, 0] [1, %{{.+}}, 2, 8]
  %before = tensor.extract_slice %kept[0, 0, 0, 0] [1, %b, 2, 16] [1, 1, 1, 1] : tensor<1x?x2x16xf32> to tensor<?x2x16xf32>
  // CHECK: attune.delta_rule {{.+}} -> tensor<?x?x8xf32>, tensor<?x2x8xf32>
  %r, %last = attune.delta_rule %q, %k, %v step %step, a_log %decay, beta %beta scale 1.0 state %before : tensor<?x2x16xf32> : tensor<?x?x4xf32>, tensor<?x?x16xf32>, tensor<?x?x4xf32>, tensor<4xf32> -> tensor<?x?x16xf32>, tensor<?x2x16xf32>
  %after = tensor.insert_slice %last into %kept[0, 0, 0, 0] [1, %b, 2, 16] [1, 1, 1, 1] : tensor<?x2x16xf32> into tensor<1x?x2x16xf32>
  %heads = attune.split_heads %r : tensor<?x?x16xf32> -> tensor<?x4x?x4xf32>
  %merged = attune.merge_heads %heads : tensor<?x4x?x4xf32> -> tensor<?x?x16xf32>
  %gate = attune.linear %x, %wg activation <silu> : tensor<?x?x8xf32>, tensor<16x8xf32> -> tensor<?x?x16xf32>
  // CHECK: arith.mulf %{{.+}} : tensor<?x?x8xf32>
  %gated = arith.mulf %merged, %gate : tensor<?x?x16xf32>
  // CHECK: %[[P:.+]] = attune.linear %{{.+}} : tensor<?x?x8xf32>, tensor<8x8xf32> -> tensor<?x?x8xf32>
  // CHECK: attune.all_reduce %[[P]] into
  %y = attune.linear %gated, %wo : tensor<?x?x16xf32>, tensor<8x16xf32> -> tensor<?x?x8xf32>
  return %y, %after : tensor<?x?x8xf32>, tensor<1x?x2x16xf32>
}

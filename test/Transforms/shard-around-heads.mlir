// RUN: attune-opt %s --attune-shard=tp=2 --split-input-file | FileCheck %s
// RUN: attune-opt %s --attune-shard=tp=4 --split-input-file | FileCheck %s --check-prefix=FOUR

// A norm over all heads: ranks add up the squares of theirs. Gammas go with the
// heads. Four ranks have each head of the keys twice.
// CHECK: attune.weight @gq : tensor<8xf32>
// CHECK-SAME: attune.cut = {rows = [array<i64: 0, 8>, array<i64: 8, 8>], whole = array<i64: 16, 1>}
attune.weight @q : tensor<16x16xf32> from [#attune.source<"q">]
attune.weight @k : tensor<8x16xf32> from [#attune.source<"k">]
attune.weight @gq : tensor<16xf32> from [#attune.source<"gq">]
// CHECK-LABEL: @norm(
// FOUR-LABEL: @norm(
func.func @norm(%x: tensor<?x?x16xf32>) -> tensor<?x4x?x?xf32> {
  %wq = attune.weight_get @q : tensor<16x16xf32>
  %wk = attune.weight_get @k : tensor<8x16xf32>
  %gq = attune.weight_get @gq : tensor<16xf32>
  // CHECK: %[[Y:.+]] = attune.linear {{.+}} -> tensor<?x?x8xf32>
  // CHECK: %[[OWN:.+]] = linalg.generic {{.+}} ins(%[[Y]] : tensor<?x?x8xf32>)
  // CHECK: %[[SUM:.+]] = attune.all_reduce %[[OWN]] into %{{.+}} : tensor<?x?xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  // CHECK: linalg.generic {{.+}} ins(%[[SUM]] : tensor<?x?xf32>)
  // CHECK: arith.constant 6.250000e-02 : f32
  // CHECK: math.sqrt
  // CHECK: %[[N:.+]] = linalg.generic {{.+}} ins(%[[Y]], %{{.+}}, %{{.+}} : tensor<?x?x8xf32>, tensor<?x?xf32>, tensor<8xf32>)
  // CHECK: arith.constant 1.000000e+00 : f32
  // CHECK: attune.split_heads %[[N]] : tensor<?x?x8xf32> -> tensor<?x2x?x4xf32>
  // CHECK-NOT: attune.rms_norm
  %y = attune.linear %x, %wq : tensor<?x?x16xf32>, tensor<16x16xf32> -> tensor<?x?x16xf32>
  %n = attune.rms_norm %y gamma %gq : tensor<16xf32> eps 1.0e-6 offset 1.0 : tensor<?x?x16xf32>
  %q = attune.split_heads %n : tensor<?x?x16xf32> -> tensor<?x4x?x4xf32>
  // FOUR: attune.linear {{.+}} -> tensor<?x?x4xf32>
  // FOUR: attune.all_reduce
  // FOUR: arith.constant 6.250000e-02 : f32
  // FOUR: attune.linear {{.+}} -> tensor<?x?x4xf32>
  // FOUR: attune.all_reduce
  // FOUR: arith.constant 6.250000e-02 : f32
  %z = attune.linear %x, %wk : tensor<?x?x16xf32>, tensor<8x16xf32> -> tensor<?x?x8xf32>
  %m = attune.rms_norm %z eps 1.0e-6 : tensor<?x?x8xf32>
  %k = attune.split_heads %m : tensor<?x?x8xf32> -> tensor<?x2x?x4xf32>
  %s = attune.similarity %q, %k scale 1.0 : tensor<?x4x?x4xf32>, tensor<?x2x?x4xf32> -> tensor<?x4x?x?xf32>
  return %s : tensor<?x4x?x?xf32>
}

// -----

// Limits of a projection are those of its heads.
attune.weight @qk : tensor<32x16xf32> from [#attune.source<"qk">]
// CHECK-LABEL: @limits(
func.func @limits(%x: tensor<?x?x16xf32>, %batch: index, %tokens: index) -> tensor<?x4x?x?xf32> {
  %w = attune.weight_get @qk : tensor<32x16xf32>
  %low = arith.constant -0.5 : f32
  %high = arith.constant 0.5 : f32
  // CHECK: %[[Y:.+]] = attune.linear {{.+}} -> tensor<?x?x16xf32>
  %y = attune.linear %x, %w : tensor<?x?x16xf32>, tensor<32x16xf32> -> tensor<?x?x32xf32>
  %least = tensor.splat %low[%batch, %tokens] : tensor<?x?x32xf32>
  %most = tensor.splat %high[%batch, %tokens] : tensor<?x?x32xf32>
  %a = arith.maximumf %y, %least : tensor<?x?x32xf32>
  %b = arith.minimumf %a, %most : tensor<?x?x32xf32>
  // CHECK: %[[Q:.+]] = attune.split_heads %[[Y]] : tensor<?x?x16xf32> -> tensor<?x2x?x4xf32>
  // CHECK: %[[A:.+]] = arith.maximumf %[[Q]], %{{.+}} : tensor<?x2x?x4xf32>
  // CHECK: %[[B:.+]] = arith.minimumf %[[A]], %{{.+}} : tensor<?x2x?x4xf32>
  %q = attune.split_heads %b : tensor<?x?x32xf32> -> tensor<?x4x?x4xf32>
  // CHECK: attune.split_heads %[[Y]] at 8 :
  %k = attune.split_heads %b at 16 : tensor<?x?x32xf32> -> tensor<?x4x?x4xf32>
  // CHECK: attune.similarity %[[B]], %{{.+}} : tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>
  %s = attune.similarity %q, %k scale 1.0 : tensor<?x4x?x4xf32>, tensor<?x4x?x4xf32> -> tensor<?x4x?x?xf32>
  return %s : tensor<?x4x?x?xf32>
}

// -----

// Heads that no attention takes are everybody's.
attune.weight @up : tensor<8x8xf32> from [#attune.source<"up">]
attune.weight @down : tensor<8x8xf32> from [#attune.source<"down">]
attune.weight @w : tensor<16x8xf32> from [#attune.source<"w">]
// CHECK-LABEL: @others(
func.func @others(%x: tensor<?x?x8xf32>) -> tensor<?x4x?x4xf32> {
  %u = attune.weight_get @up : tensor<8x8xf32>
  %d = attune.weight_get @down : tensor<8x8xf32>
  %w = attune.weight_get @w : tensor<16x8xf32>
  // CHECK: attune.all_reduce
  %y = attune.ffn %x, %u, %d activation <gelu> : tensor<?x?x8xf32>, tensor<8x8xf32>, tensor<8x8xf32> -> tensor<?x?x8xf32>
  // CHECK: attune.linear {{.+}} -> tensor<?x?x16xf32>
  %z = attune.linear %y, %w : tensor<?x?x8xf32>, tensor<16x8xf32> -> tensor<?x?x16xf32>
  // CHECK: attune.split_heads {{.+}} -> tensor<?x4x?x4xf32>
  %q = attune.split_heads %z : tensor<?x?x16xf32> -> tensor<?x4x?x4xf32>
  return %q : tensor<?x4x?x4xf32>
}

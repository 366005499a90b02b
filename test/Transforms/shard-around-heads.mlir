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

// -----

// Adapters beside projections: what a product is added to has the same rows of
// its matrix, thin factors are everybody's. Four ranks have each head of the
// keys twice.
// CHECK: attune.weight @k : tensor<4x16xf32>
// CHECK-SAME: attune.cut = {rows = [array<i64: 0, 4>, array<i64: 4, 4>], whole = array<i64: 8, 16>}
// CHECK: attune.weight @thin : tensor<3x16xf32> from [#attune.source<"thin">]{{$}}
// CHECK: attune.weight @wide : tensor<4x3xf32>
// CHECK-SAME: attune.cut = {rows = [array<i64: 0, 4>, array<i64: 4, 4>], whole = array<i64: 8, 3>}
// FOUR: attune.weight @k : tensor<4x16xf32>
// FOUR-SAME: rows = [array<i64: 0, 4>, array<i64: 0, 4>, array<i64: 4, 4>, array<i64: 4, 4>]
// FOUR: attune.weight @wide : tensor<4x3xf32>
// FOUR-SAME: rows = [array<i64: 0, 4>, array<i64: 0, 4>, array<i64: 4, 4>, array<i64: 4, 4>]
attune.weight @q : tensor<16x16xf32> from [#attune.source<"q">]
attune.weight @k : tensor<8x16xf32> from [#attune.source<"k">]
attune.weight @thin : tensor<3x16xf32> from [#attune.source<"thin">]
attune.weight @wide : tensor<8x3xf32> from [#attune.source<"wide">]
// CHECK-LABEL: @adapters(
func.func @adapters(%x: tensor<?x?x16xf32>) -> tensor<?x4x?x?xf32> {
  %wq = attune.weight_get @q : tensor<16x16xf32>
  %wk = attune.weight_get @k : tensor<8x16xf32>
  %wt = attune.weight_get @thin : tensor<3x16xf32>
  %ww = attune.weight_get @wide : tensor<8x3xf32>
  %y = attune.linear %x, %wq : tensor<?x?x16xf32>, tensor<16x16xf32> -> tensor<?x?x16xf32>
  %q = attune.split_heads %y : tensor<?x?x16xf32> -> tensor<?x4x?x4xf32>
  // CHECK: %[[T:.+]] = attune.linear {{.+}} -> tensor<?x?x3xf32>
  // CHECK: %[[K:.+]] = attune.linear {{.+}} : tensor<?x?x16xf32>, tensor<4x16xf32> -> tensor<?x?x4xf32>
  // CHECK: %[[S:.+]] = attune.linear %[[T]], %{{.+}} residual %[[K]] : tensor<?x?x4xf32> : tensor<?x?x3xf32>, tensor<4x3xf32> -> tensor<?x?x4xf32>
  // CHECK: attune.split_heads %[[S]] : tensor<?x?x4xf32> -> tensor<?x1x?x4xf32>
  // CHECK-NOT: attune.all_reduce
  // CHECK: return
  %t = attune.linear %x, %wt : tensor<?x?x16xf32>, tensor<3x16xf32> -> tensor<?x?x3xf32>
  %z = attune.linear %x, %wk : tensor<?x?x16xf32>, tensor<8x16xf32> -> tensor<?x?x8xf32>
  %s = attune.linear %t, %ww residual %z : tensor<?x?x8xf32> : tensor<?x?x3xf32>, tensor<8x3xf32> -> tensor<?x?x8xf32>
  %k = attune.split_heads %s : tensor<?x?x8xf32> -> tensor<?x2x?x4xf32>
  %r = attune.similarity %q, %k scale 1.0 : tensor<?x4x?x4xf32>, tensor<?x2x?x4xf32> -> tensor<?x4x?x?xf32>
  return %r : tensor<?x4x?x?xf32>
}

// -----

// An adapter beside the output: its thin factor has a rank's columns and a sum
// of its own. What is added to, in either order, counts once.
attune.weight @qk : tensor<32x16xf32> from [#attune.source<"qk">]
attune.weight @o : tensor<16x16xf32> from [#attune.source<"o">]
attune.weight @thin : tensor<3x16xf32> from [#attune.source<"thin">]
attune.weight @wide : tensor<16x3xf32> from [#attune.source<"wide">]
// CHECK-LABEL: @output(
// CHECK-SAME: %[[X:[^:]+]]:
func.func @output(%x: tensor<?x?x16xf32>) -> (tensor<?x?x16xf32>, tensor<?x?x16xf32>) {
  %w = attune.weight_get @qk : tensor<32x16xf32>
  %wo = attune.weight_get @o : tensor<16x16xf32>
  %wt = attune.weight_get @thin : tensor<3x16xf32>
  %ww = attune.weight_get @wide : tensor<16x3xf32>
  %y = attune.linear %x, %w : tensor<?x?x16xf32>, tensor<32x16xf32> -> tensor<?x?x32xf32>
  %q = attune.split_heads %y : tensor<?x?x32xf32> -> tensor<?x4x?x4xf32>
  %k = attune.split_heads %y at 16 : tensor<?x?x32xf32> -> tensor<?x4x?x4xf32>
  %a = attune.attention %q, %k, %k scale 1.0 : tensor<?x4x?x4xf32>, tensor<?x4x?x4xf32>, tensor<?x4x?x4xf32> -> tensor<?x4x?x4xf32>
  %h = attune.merge_heads %a : tensor<?x4x?x4xf32> -> tensor<?x?x16xf32>
  // CHECK: %[[P:.+]] = attune.linear %[[H:.+]], %{{.+}} : tensor<?x?x8xf32>, tensor<3x8xf32> -> tensor<?x?x3xf32>
  // CHECK: %[[T:.+]] = attune.all_reduce %[[P]] into %{{.+}} : tensor<?x?x3xf32>
  // CHECK: %[[PO:.+]] = attune.linear %[[H]], %{{.+}} : tensor<?x?x8xf32>, tensor<16x8xf32> -> tensor<?x?x16xf32>
  // CHECK: %[[O:.+]] = attune.all_reduce %[[PO]] into %[[X]] accumulate
  // CHECK: %[[ABOVE:.+]] = attune.linear %[[T]], %{{.+}} residual %[[O]] :
  %t = attune.linear %h, %wt : tensor<?x?x16xf32>, tensor<3x16xf32> -> tensor<?x?x3xf32>
  %o = attune.linear %h, %wo residual %x : tensor<?x?x16xf32> : tensor<?x?x16xf32>, tensor<16x16xf32> -> tensor<?x?x16xf32>
  %above = attune.linear %t, %ww residual %o : tensor<?x?x16xf32> : tensor<?x?x3xf32>, tensor<16x3xf32> -> tensor<?x?x16xf32>
  // CHECK: %[[D:.+]] = attune.linear %[[T]], %{{.+}} : tensor<?x?x3xf32>, tensor<16x3xf32>
  // CHECK: %[[PB:.+]] = attune.linear %[[H]],
  // CHECK: %[[BELOW:.+]] = attune.all_reduce %[[PB]] into %[[D]] accumulate
  // CHECK: return %[[ABOVE]], %[[BELOW]] :
  %d = attune.linear %t, %ww : tensor<?x?x3xf32>, tensor<16x3xf32> -> tensor<?x?x16xf32>
  %below = attune.linear %h, %wo residual %d : tensor<?x?x16xf32> : tensor<?x?x16xf32>, tensor<16x16xf32> -> tensor<?x?x16xf32>
  return %above, %below : tensor<?x?x16xf32>, tensor<?x?x16xf32>
}

// -----

// A feed-forward layer made of products is cut like one op; one whose hidden
// columns somebody else reads is everybody's.
// CHECK: attune.weight @gate : tensor<6x8xf32>
// CHECK-SAME: attune.cut = {rows = [array<i64: 0, 6>, array<i64: 6, 6>], whole = array<i64: 12, 8>}
// CHECK: attune.weight @wide : tensor<6x3xf32>
// CHECK-SAME: attune.cut = {rows = [array<i64: 0, 6>, array<i64: 6, 6>], whole = array<i64: 12, 3>}
// CHECK: attune.weight @down : tensor<8x6xf32>
// CHECK-SAME: attune.cut = {columns = array<i64: 0, 6, 6, 6>,
// CHECK: attune.weight @read : tensor<12x8xf32> from [#attune.source<"read">]{{$}}
// FOUR: attune.weight @gate : tensor<3x8xf32>
attune.weight @gate : tensor<12x8xf32> from [#attune.source<"gate">]
attune.weight @up : tensor<12x8xf32> from [#attune.source<"up">]
attune.weight @thin : tensor<3x8xf32> from [#attune.source<"thin">]
attune.weight @wide : tensor<12x3xf32> from [#attune.source<"wide">]
attune.weight @down : tensor<8x12xf32> from [#attune.source<"down">]
attune.weight @read : tensor<12x8xf32> from [#attune.source<"read">]
attune.weight @last : tensor<8x12xf32> from [#attune.source<"last">]
// CHECK-LABEL: @hidden(
// CHECK-SAME: %[[X:[^:]+]]:
func.func @hidden(%x: tensor<?x?x8xf32>) -> (tensor<?x?x8xf32>, tensor<?x?x12xf32>) {
  %wg = attune.weight_get @gate : tensor<12x8xf32>
  %wu = attune.weight_get @up : tensor<12x8xf32>
  %wt = attune.weight_get @thin : tensor<3x8xf32>
  %ww = attune.weight_get @wide : tensor<12x3xf32>
  %wd = attune.weight_get @down : tensor<8x12xf32>
  %wr = attune.weight_get @read : tensor<12x8xf32>
  %wl = attune.weight_get @last : tensor<8x12xf32>
  // CHECK: %[[G:.+]] = attune.linear %[[X]], %{{.+}} -> tensor<?x?x6xf32>
  // CHECK: %[[S:.+]] = attune.linear %{{.+}}, %{{.+}} residual %[[G]] : tensor<?x?x6xf32> :
  // CHECK: attune.activation %[[S]] function <gelu> : tensor<?x?x6xf32>
  // CHECK: %[[H:.+]] = arith.mulf %{{.+}}, %{{.+}} : tensor<?x?x6xf32>
  // CHECK: %[[P:.+]] = attune.linear %[[H]], %{{.+}} : tensor<?x?x6xf32>, tensor<8x6xf32> -> tensor<?x?x8xf32>
  // CHECK: attune.all_reduce %[[P]] into %[[X]] accumulate
  %g = attune.linear %x, %wg : tensor<?x?x8xf32>, tensor<12x8xf32> -> tensor<?x?x12xf32>
  %t = attune.linear %x, %wt : tensor<?x?x8xf32>, tensor<3x8xf32> -> tensor<?x?x3xf32>
  %s = attune.linear %t, %ww residual %g : tensor<?x?x12xf32> : tensor<?x?x3xf32>, tensor<12x3xf32> -> tensor<?x?x12xf32>
  %a = attune.activation %s function <gelu> : tensor<?x?x12xf32>
  %u = attune.linear %x, %wu : tensor<?x?x8xf32>, tensor<12x8xf32> -> tensor<?x?x12xf32>
  %h = arith.mulf %a, %u : tensor<?x?x12xf32>
  %y = attune.linear %h, %wd residual %x : tensor<?x?x8xf32> : tensor<?x?x12xf32>, tensor<8x12xf32> -> tensor<?x?x8xf32>
  // CHECK: attune.linear {{.+}} : tensor<?x?x8xf32>, tensor<12x8xf32> -> tensor<?x?x12xf32>
  // CHECK-NOT: attune.all_reduce
  // CHECK: return
  %r = attune.linear %y, %wr : tensor<?x?x8xf32>, tensor<12x8xf32> -> tensor<?x?x12xf32>
  %b = attune.activation %r function <gelu> : tensor<?x?x12xf32>
  %m = arith.mulf %b, %r : tensor<?x?x12xf32>
  %l = attune.linear %m, %wl : tensor<?x?x12xf32>, tensor<8x12xf32> -> tensor<?x?x8xf32>
  return %l, %r : tensor<?x?x8xf32>, tensor<?x?x12xf32>
}

// Two layers lose different heads, equally many; keys that only they share go, too, and
// so do biases, slopes and caches.
// RUN: attune-opt %s --attune-prune-heads=rules=h.0.o:0,1,h.1.o:2,3 | FileCheck %s
// CHECK-DAG: attune.weight @h.qkv stacked : tensor<2x8x16xf32> from {{.*}} {attune.kept = {rows = [array<i64: 4, 4, 10, 2, 14, 2>, array<i64: 0, 4, 8, 2, 12, 2>], whole = array<i64: 16, 16>}}
// CHECK-DAG: attune.weight @h.b stacked : tensor<2x8xf32> from {{.*}} {attune.kept = {rows = [array<i64: 4, 4, 10, 2, 14, 2>, array<i64: 0, 4, 8, 2, 12, 2>], whole = array<i64: 16, 1>}}
// CHECK-DAG: attune.weight @h.o stacked : tensor<2x16x4xf32> from {{.*}} {attune.kept = {columns = [array<i64: 4, 4>, array<i64: 0, 4>], whole = array<i64: 16, 8>}}
// CHECK: func.func private @block(%[[I:.*]]: index, %{{.*}}: tensor<?x?x16xf32>, %[[PAST:.*]]: index, %[[KEYS:.*]]: tensor<2x?x1x?x2xf32>, %{{.*}}: tensor<2x?x1x?x2xf32>)
// CHECK: %[[S:.*]] = attune.linear {{.*}} -> tensor<?x?x8xf32>
// CHECK: attune.split_heads %[[S]] : tensor<?x?x8xf32> -> tensor<?x2x?x2xf32>
// CHECK: attune.split_heads %[[S]] at 4 : tensor<?x?x8xf32> -> tensor<?x1x?x2xf32>
// CHECK: attune.split_heads %[[S]] at 6 : tensor<?x?x8xf32> -> tensor<?x1x?x2xf32>
// CHECK: %[[ALL:.*]] = arith.constant dense<{{\[\[}}2.500000e-01, 1.250000e-01], [1.000000e+00, 5.000000e-01]]> : tensor<2x2xf32>
// CHECK: %[[SLOPES:.*]] = tensor.extract_slice %[[ALL]][%[[I]], 0] [1, 2] [1, 1] : tensor<2x2xf32> to tensor<2xf32>
// CHECK: attune.mask_scores {{.*}} slopes %[[SLOPES]]
// CHECK: attune.merge_heads {{.*}} -> tensor<?x?x4xf32>
// CHECK: func.func @decode({{.*}}tensor<2x?x1x?x2xf32> {attune.kind = "cache", attune.name = "k", attune.shape = [2, "batch", 1, "capacity", 2]}

// One head of each group: keys stay, and slopes are the same in both layers.
// RUN: attune-opt %s --attune-prune-heads=rules=h.o:0,3 | FileCheck %s --check-prefix=EACH
// EACH-DAG: attune.weight @h.qkv stacked : tensor<2x12x16xf32> from {{.*}} {attune.kept = {rows = [array<i64: 2, 4, 8, 4, 12, 4>], whole = array<i64: 16, 16>}}
// EACH-DAG: attune.weight @h.o stacked : tensor<2x16x4xf32> from {{.*}} {attune.kept = {columns = [array<i64: 2, 4>], whole = array<i64: 16, 8>}}
// EACH: attune.similarity {{.*}} : tensor<?x2x?x2xf32>, tensor<?x2x?x2xf32>
// EACH: arith.constant dense<[5.000000e-01, 2.500000e-01]> : tensor<2xf32>
// EACH: func.func @decode({{.*}}tensor<2x?x2x?x2xf32> {attune.kind = "cache"

// RUN: not attune-opt %s --attune-prune-heads=rules=h.0.o:0,1 2>&1 | FileCheck %s --check-prefix=UNEQUAL
// UNEQUAL: error: 'h.o' is of 2 repeated layers, which are stored alike, but layer 1 would keep 4 heads of queries and 2 of keys, and those before it 2 and 1
// RUN: not attune-opt %s --attune-prune-heads=rules=h.o:0 2>&1 | FileCheck %s --check-prefix=GROUP
// GROUP: error: attention of 'h.0.o': it has 2 heads of keys for 2 heads of queries each, and of one group 1 would stay, of another 2
// RUN: not attune-opt %s --attune-prune-heads=rules=h.qkv:0 2>&1 | FileCheck %s --check-prefix=NAME
// NAME: error: no matrix that takes the heads of attention has a name that 'h.qkv' of --prune-heads matches; there are h.o
// RUN: not attune-opt %s --attune-prune-heads=rules=40%% 2>&1 | FileCheck %s --check-prefix=SHARE
// SHARE: error: a share of heads is decided by measurements of attune compile --calibrate; give the heads
// RUN: not attune-opt %s --attune-prune-heads=rules=3 2>&1 | FileCheck %s --check-prefix=WORD
// WORD: error: '3' of --prune-heads is no PATTERN:HEADS

attune.weight @h.qkv stacked : tensor<2x16x16xf32> from [#attune.source<"h.{i}.qkv">]
attune.weight @h.b stacked : tensor<2x16xf32> from [#attune.source<"h.{i}.b">]
attune.weight @h.o stacked : tensor<2x16x8xf32> from [#attune.source<"h.{i}.o">]
func.func private @block(%i: index, %x: tensor<?x?x16xf32>, %past: index, %keys: tensor<2x?x2x?x2xf32>, %values: tensor<2x?x2x?x2xf32>) -> (tensor<?x?x16xf32>, tensor<2x?x2x?x2xf32>, tensor<2x?x2x?x2xf32>) {
  %w = attune.weight_get @h.qkv[%i] : tensor<16x16xf32>
  %b = attune.weight_get @h.b[%i] : tensor<16xf32>
  %all = attune.linear %x, %w bias %b : tensor<16xf32> : tensor<?x?x16xf32>, tensor<16x16xf32> -> tensor<?x?x16xf32>
  %q = attune.split_heads %all : tensor<?x?x16xf32> -> tensor<?x4x?x2xf32>
  %k = attune.split_heads %all at 8 : tensor<?x?x16xf32> -> tensor<?x2x?x2xf32>
  %v = attune.split_heads %all at 12 : tensor<?x?x16xf32> -> tensor<?x2x?x2xf32>
  %kc = attune.cache_append %k into %keys[%i, %past] : tensor<?x2x?x2xf32>, tensor<2x?x2x?x2xf32>
  %vc = attune.cache_append %v into %values[%i, %past] : tensor<?x2x?x2xf32>, tensor<2x?x2x?x2xf32>
  %kr = attune.cache_read %kc[%i] length %past : tensor<2x?x2x?x2xf32> -> tensor<?x2x?x2xf32>
  %vr = attune.cache_read %vc[%i] length %past : tensor<2x?x2x?x2xf32> -> tensor<?x2x?x2xf32>
  %s = attune.similarity %q, %kr scale 0.5 : tensor<?x4x?x2xf32>, tensor<?x2x?x2xf32> -> tensor<?x4x?x?xf32>
  %slopes = arith.constant dense<[1.0, 0.5, 0.25, 0.125]> : tensor<4xf32>
  %m = attune.mask_scores %s slopes %slopes : tensor<4xf32> causal <bottom_right> : tensor<?x4x?x?xf32>
  %p = attune.softmax %m : tensor<?x4x?x?xf32>
  %r = attune.weighted_sum %p, %vr : tensor<?x4x?x?xf32>, tensor<?x2x?x2xf32> -> tensor<?x4x?x2xf32>
  %heads = attune.merge_heads %r : tensor<?x4x?x2xf32> -> tensor<?x?x8xf32>
  %o = attune.weight_get @h.o[%i] : tensor<16x8xf32>
  %y = attune.linear %heads, %o residual %x : tensor<?x?x16xf32> : tensor<?x?x8xf32>, tensor<16x8xf32> -> tensor<?x?x16xf32>
  return %y, %kc, %vc : tensor<?x?x16xf32>, tensor<2x?x2x?x2xf32>, tensor<2x?x2x?x2xf32>
}
func.func @decode(%x: tensor<?x?x16xf32> {attune.kind = "input", attune.name = "x", attune.shape = ["batch", "seq", 16]}, %past: index {attune.kind = "past", attune.name = "past", attune.shape = []}, %k: tensor<2x?x2x?x2xf32> {attune.kind = "cache", attune.name = "k", attune.shape = [2, "batch", 2, "capacity", 2]}, %v: tensor<2x?x2x?x2xf32> {attune.kind = "cache", attune.name = "v", attune.shape = [2, "batch", 2, "capacity", 2]}) -> (tensor<?x?x16xf32> {attune.kind = "output", attune.name = "y", attune.shape = ["batch", "seq", 16]}, tensor<2x?x2x?x2xf32> {attune.kind = "cache", attune.name = "k", attune.shape = [2, "batch", 2, "capacity", 2]}, tensor<2x?x2x?x2xf32> {attune.kind = "cache", attune.name = "v", attune.shape = [2, "batch", 2, "capacity", 2]}) attributes {attune.entry} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %r:3 = scf.for %i = %c0 to %c2 step %c1 iter_args(%a = %x, %b = %k, %c = %v) -> (tensor<?x?x16xf32>, tensor<2x?x2x?x2xf32>, tensor<2x?x2x?x2xf32>) {
    %n:3 = func.call @block(%i, %a, %past, %b, %c) : (index, tensor<?x?x16xf32>, index, tensor<2x?x2x?x2xf32>, tensor<2x?x2x?x2xf32>) -> (tensor<?x?x16xf32>, tensor<2x?x2x?x2xf32>, tensor<2x?x2x?x2xf32>)
    scf.yield %n#0, %n#1, %n#2 : tensor<?x?x16xf32>, tensor<2x?x2x?x2xf32>, tensor<2x?x2x?x2xf32>
  }
  return %r#0, %r#1, %r#2 : tensor<?x?x16xf32>, tensor<2x?x2x?x2xf32>, tensor<2x?x2x?x2xf32>
}

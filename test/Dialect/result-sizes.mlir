// RUN: attune-opt %s --resolve-ranked-shaped-type-result-dims --canonicalize --cse | FileCheck %s

// tensor.dim of every op's result resolves to sizes of its operands.

// CHECK-LABEL: @ladder(
// CHECK-SAME:    %[[Q:[a-z0-9]+]]: tensor<?x4x?x8xf32>, %[[K:[a-z0-9]+]]: tensor<?x2x?x8xf32>, %[[V:[a-z0-9]+]]: tensor<?x2x?x?xf32>)
// CHECK-DAG:     %[[M:.+]] = tensor.dim %[[Q]], %c2
// CHECK-DAG:     %[[N:.+]] = tensor.dim %[[K]], %c2
// CHECK-DAG:     %[[D:.+]] = tensor.dim %[[V]], %c3
// CHECK:         return %[[M]], %[[N]], %[[M]], %[[N]], %[[M]], %[[D]]
func.func @ladder(%q: tensor<?x4x?x8xf32>, %k: tensor<?x2x?x8xf32>, %v: tensor<?x2x?x?xf32>)
    -> (index, index, index, index, index, index) {
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %e = attune.similarity %q, %k scale 1.0 : tensor<?x4x?x8xf32>, tensor<?x2x?x8xf32> -> tensor<?x4x?x?xf32>
  %f = attune.mask_scores %e causal <top_left> : tensor<?x4x?x?xf32>
  %a = attune.softmax %f : tensor<?x4x?x?xf32>
  %l = attune.log_sum_exp %f : tensor<?x4x?x?xf32> -> tensor<?x4x?xf32>
  %y = attune.weighted_sum %a, %v : tensor<?x4x?x?xf32>, tensor<?x2x?x?xf32> -> tensor<?x4x?x?xf32>
  %0 = tensor.dim %e, %c2 : tensor<?x4x?x?xf32>
  %1 = tensor.dim %f, %c3 : tensor<?x4x?x?xf32>
  %2 = tensor.dim %l, %c2 : tensor<?x4x?xf32>
  %3 = tensor.dim %a, %c3 : tensor<?x4x?x?xf32>
  %4 = tensor.dim %y, %c2 : tensor<?x4x?x?xf32>
  %5 = tensor.dim %y, %c3 : tensor<?x4x?x?xf32>
  return %0, %1, %2, %3, %4, %5 : index, index, index, index, index, index
}

// CHECK-LABEL: @attention(
// CHECK-SAME:    %[[Q:[a-z0-9]+]]: tensor<?x4x?x8xf32>, %{{.+}}, %[[V:[a-z0-9]+]]: tensor<?x2x?x?xf32>)
// CHECK-DAG:     %[[M:.+]] = tensor.dim %[[Q]], %c2
// CHECK-DAG:     %[[D:.+]] = tensor.dim %[[V]], %c3
// CHECK-DAG:     %[[W:.+]] = arith.muli %[[D]], %c4
// CHECK:         return %[[M]], %[[D]], %[[M]], %[[M]], %[[W]]
func.func @attention(%q: tensor<?x4x?x8xf32>, %k: tensor<?x2x?x8xf32>, %v: tensor<?x2x?x?xf32>)
    -> (index, index, index, index, index) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %y, %l = attune.attention %q, %k, %v scale 1.0 : tensor<?x4x?x8xf32>, tensor<?x2x?x8xf32>, tensor<?x2x?x?xf32> -> tensor<?x4x?x?xf32> lse tensor<?x4x?xf32>
  %m = attune.merge_heads %y : tensor<?x4x?x?xf32> -> tensor<?x?x?xf32>
  %0 = tensor.dim %y, %c2 : tensor<?x4x?x?xf32>
  %1 = tensor.dim %y, %c3 : tensor<?x4x?x?xf32>
  %2 = tensor.dim %l, %c2 : tensor<?x4x?xf32>
  %3 = tensor.dim %m, %c1 : tensor<?x?x?xf32>
  %4 = tensor.dim %m, %c2 : tensor<?x?x?xf32>
  return %0, %1, %2, %3, %4 : index, index, index, index, index
}

// CHECK-LABEL: @online(
// CHECK-SAME:    %{{.+}}, %[[ACC:[a-z0-9]+]]: tensor<1x1x?x8xf32>, %[[MAX:[a-z0-9]+]]: tensor<1x1x?xf32>, %[[SUM:[a-z0-9]+]]: tensor<1x1x?xf32>, %{{[a-z0-9]+}}: index)
// CHECK-DAG:     %[[A:.+]] = tensor.dim %[[ACC]], %c2
// CHECK-DAG:     %[[M:.+]] = tensor.dim %[[MAX]], %c2
// CHECK:         return %[[A]], %[[M]], %[[A]], %[[M]]
func.func @online(%q: tensor<1x1x?x8xf32>, %acc: tensor<1x1x?x8xf32>, %max: tensor<1x1x?xf32>, %sum: tensor<1x1x?xf32>, %n: index)
    -> (index, index, index, index) {
  %c2 = arith.constant 2 : index
  %0:3 = attune.online_attention %q, %q, %q scale 1.0 at [%n, %n] of [%n, %n]
    outs(%acc, %max, %sum : tensor<1x1x?x8xf32>, tensor<1x1x?xf32>, tensor<1x1x?xf32>)
    : tensor<1x1x?x8xf32>, tensor<1x1x?x8xf32>, tensor<1x1x?x8xf32> -> tensor<1x1x?x8xf32>, tensor<1x1x?xf32>, tensor<1x1x?xf32>
  %1:3 = attune.online_merge (%acc, %max, %sum) outs(%0#0, %0#1, %0#2 : tensor<1x1x?x8xf32>, tensor<1x1x?xf32>) : tensor<1x1x?x8xf32>, tensor<1x1x?xf32> -> tensor<1x1x?x8xf32>, tensor<1x1x?xf32>, tensor<1x1x?xf32>
  %2:2 = attune.online_finish %1#0, %1#1, %1#2 into %1#0 lse %1#1 : tensor<1x1x?xf32> : tensor<1x1x?x8xf32>, tensor<1x1x?xf32>, tensor<1x1x?xf32>, tensor<1x1x?x8xf32> -> tensor<1x1x?x8xf32>, tensor<1x1x?xf32>
  %3 = tensor.dim %0#0, %c2 : tensor<1x1x?x8xf32>
  %4 = tensor.dim %0#1, %c2 : tensor<1x1x?xf32>
  %5 = tensor.dim %2#0, %c2 : tensor<1x1x?x8xf32>
  %6 = tensor.dim %2#1, %c2 : tensor<1x1x?xf32>
  return %3, %4, %5, %6 : index, index, index, index
}

// CHECK-LABEL: @layers(
// CHECK-SAME:    %[[IDS:[a-z0-9]+]]: tensor<?x?xi64>, %{{.+}}, %[[W:[a-z0-9]+]]: tensor<?x64xf32>)
// CHECK-DAG:     %[[T:.+]] = tensor.dim %[[IDS]], %c1
// CHECK-DAG:     %[[N:.+]] = tensor.dim %[[W]], %c0
// CHECK:         return %[[T]], %[[T]], %[[T]], %[[N]], %[[T]], %[[T]], %[[T]]
func.func @layers(%ids: tensor<?x?xi64>, %table: tensor<100x64xf32>, %w: tensor<?x64xf32>)
    -> (index, index, index, index, index, index, index) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %x = attune.embedding %ids, %table : tensor<?x?xi64>, tensor<100x64xf32> -> tensor<?x?x64xf32>
  %s = attune.sinusoidal %ids add %x : tensor<?x?x64xf32> convention <blocks> : tensor<?x?xi64> -> tensor<?x?x64xf32>
  %l = attune.layer_norm %s eps 1.0e-5 : tensor<?x?x64xf32>
  %r = attune.rms_norm %l eps 1.0e-5 : tensor<?x?x64xf32>
  %y = attune.linear %r, %w : tensor<?x?x64xf32>, tensor<?x64xf32> -> tensor<?x?x?xf32>
  %h = attune.split_heads %r : tensor<?x?x64xf32> -> tensor<?x4x?x16xf32>
  %cos, %sin = attune.rotary_table %ids frequencies [1.0, 0.5] : tensor<?x?xi64> -> tensor<?x?x2xf32>, tensor<?x?x2xf32>
  %t = attune.rotary %h, %cos, %sin pairing <half> : tensor<?x4x?x16xf32>, tensor<?x?x2xf32>
  %0 = tensor.dim %x, %c1 : tensor<?x?x64xf32>
  %1 = tensor.dim %r, %c1 : tensor<?x?x64xf32>
  %2 = tensor.dim %y, %c1 : tensor<?x?x?xf32>
  %3 = tensor.dim %y, %c2 : tensor<?x?x?xf32>
  %4 = tensor.dim %h, %c2 : tensor<?x4x?x16xf32>
  %5 = tensor.dim %cos, %c1 : tensor<?x?x2xf32>
  %6 = tensor.dim %t, %c2 : tensor<?x4x?x16xf32>
  return %0, %1, %2, %3, %4, %5, %6 : index, index, index, index, index, index, index
}

// CHECK-LABEL: @ffn(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: tensor<?x64xf32>
// CHECK:         %[[T:.+]] = tensor.dim %[[X]], %c0
// CHECK:         return %[[T]], %[[T]]
func.func @ffn(%x: tensor<?x64xf32>, %u: tensor<256x64xf32>, %d: tensor<64x256xf32>, %g: tensor<512x64xf32>) -> (index, index) {
  %c0 = arith.constant 0 : index
  %y = attune.ffn %x, %u, %d activation <relu> : tensor<?x64xf32>, tensor<256x64xf32>, tensor<64x256xf32> -> tensor<?x64xf32>
  %z = attune.gated_ffn %x, %g, %d activation <silu> : tensor<?x64xf32>, tensor<512x64xf32>, tensor<64x256xf32> -> tensor<?x64xf32>
  %0 = tensor.dim %y, %c0 : tensor<?x64xf32>
  %1 = tensor.dim %z, %c0 : tensor<?x64xf32>
  return %0, %1 : index, index
}

// CHECK-LABEL: @cache(
// CHECK-SAME:    %{{.+}}, %[[C:[a-z0-9]+]]: tensor<5x?x2x?x8xf32>, %[[N:[a-z0-9]+]]: index)
// CHECK-DAG:     %[[B:.+]] = tensor.dim %[[C]], %c1
// CHECK-DAG:     %[[CAP:.+]] = tensor.dim %[[C]], %c3
// CHECK:         return %[[CAP]], %[[B]], %[[N]]
func.func @cache(%k: tensor<?x2x?x8xf32>, %c: tensor<5x?x2x?x8xf32>, %n: index) -> (index, index, index) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c1 = attune.cache_append %k into %c[%n, %n] : tensor<?x2x?x8xf32>, tensor<5x?x2x?x8xf32>
  %r = attune.cache_read %c1[%n] length %n : tensor<5x?x2x?x8xf32> -> tensor<?x2x?x8xf32>
  %0 = tensor.dim %c1, %c3 : tensor<5x?x2x?x8xf32>
  %1 = tensor.dim %r, %c0 : tensor<?x2x?x8xf32>
  %2 = tensor.dim %r, %c2 : tensor<?x2x?x8xf32>
  return %0, %1, %2 : index, index, index
}

// CHECK-LABEL: @sequence_major(
// CHECK-SAME:    %[[C:[a-z0-9]+]]: tensor<?x5x2x?x8xf32>, %[[N:[a-z0-9]+]]: index)
// CHECK:         %[[B:.+]] = tensor.dim %[[C]], %c0
// CHECK:         return %[[B]], %[[N]]
func.func @sequence_major(%c: tensor<?x5x2x?x8xf32>, %n: index) -> (index, index) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %r = attune.cache_read %c[%n] length %n sequence_major : tensor<?x5x2x?x8xf32> -> tensor<?x2x?x8xf32>
  %0 = tensor.dim %r, %c0 : tensor<?x2x?x8xf32>
  %1 = tensor.dim %r, %c2 : tensor<?x2x?x8xf32>
  return %0, %1 : index, index
}

// CHECK-LABEL: @top_k(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: tensor<?x50xf32>, %[[K:[a-z0-9]+]]: index)
// CHECK:         %[[N:.+]] = tensor.dim %[[X]], %c0
// CHECK:         return %[[N]], %[[K]], %[[K]]
func.func @top_k(%x: tensor<?x50xf32>, %k: index) -> (index, index, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %i, %v = attune.top_k %x count %k : tensor<?x50xf32> -> tensor<?x?xi64>, tensor<?x?xf32>
  %0 = tensor.dim %i, %c0 : tensor<?x?xi64>
  %1 = tensor.dim %i, %c1 : tensor<?x?xi64>
  %2 = tensor.dim %v, %c1 : tensor<?x?xf32>
  return %0, %1, %2 : index, index, index
}

// CHECK-LABEL: @index(
// CHECK-SAME:    %[[Q:[a-z0-9]+]]: tensor<?x4x?x8xf32>, %[[K:[a-z0-9]+]]: tensor<?x1x?x8xf32>,
// CHECK:         %[[B:.+]] = tensor.dim %[[Q]], %c0
// CHECK:         %[[M:.+]] = tensor.dim %[[Q]], %c2
// CHECK:         %[[N:.+]] = tensor.dim %[[K]], %c2
// CHECK:         return %[[B]], %[[M]], %[[N]], %c3, %[[M]]
func.func @index(%q: tensor<?x4x?x8xf32>, %k: tensor<?x1x?x8xf32>, %w: tensor<?x?x4xf32>) -> (index, index, index, index, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %i = attune.index_scores %q, %k shares %w scale 0.5 : tensor<?x4x?x8xf32>, tensor<?x1x?x8xf32>, tensor<?x?x4xf32> -> tensor<?x?x?xf32>
  %p, %c = attune.choose_keys %i top 3 : tensor<?x?x?xf32> -> tensor<?x?x3xi64>, tensor<?x?xi64>
  %0 = tensor.dim %i, %c0 : tensor<?x?x?xf32>
  %1 = tensor.dim %i, %c1 : tensor<?x?x?xf32>
  %2 = tensor.dim %i, %c2 : tensor<?x?x?xf32>
  %3 = tensor.dim %p, %c2 : tensor<?x?x3xi64>
  %4 = tensor.dim %c, %c1 : tensor<?x?xi64>
  return %0, %1, %2, %3, %4 : index, index, index, index, index
}

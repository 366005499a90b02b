// Attention from its nest on tensors to its nest on memory, and to vectors there.
// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-attention-to-online,attune-prefetch-tiles,convert-attune-to-vector),canonicalize, \
// RUN:   one-shot-bufferize{bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map},canonicalize,cse,canonicalize)" | tee %t.mlir \
// RUN:   | FileCheck %s
// RUN: attune-opt %t.mlir --pass-pipeline="builtin.module(func.func(convert-attune-online-to-vector),canonicalize,cse)" | FileCheck %s --check-prefix=VECTOR

// The loops, the tile's arithmetic and what is fetched meanwhile, in their order.
// States are the front of scratch; nothing is copied.
// CHECK-LABEL: func.func @causal(
// CHECK-SAME:    %[[Q:.+]]: memref<?x1x?x64xf32>, %[[K:.+]]: memref<?x1x?x64xf32>, %[[V:.+]]: memref<?x1x?x40xf32>)
// CHECK-NOT:     memref.copy
// CHECK:         %[[OUT:.+]] = memref.alloc(%{{.+}}, %{{.+}}) {{.*}} : memref<?x1x?x40xf32>
// CHECK:         scf.forall (%[[B:.+]], %[[T:.+]]) in
// CHECK:           %[[ACC:.+]] = memref.subview %{{.+}} [1, 1, %[[COUNT:.+]], 40] [1, 1, 1, 1] : memref<1x1x96x40xf32>
// CHECK:           attune.online_start outs(%[[ACC]], %[[MAX:.+]], %[[SUM:.+]] :
// CHECK:           %[[ROWS:.+]] = memref.subview %[[Q]][%[[B]], 0, %[[FIRST:.+]], 0] [1, 1, %[[COUNT]], 64]
// CHECK:           scf.for %[[AT:.+]] = %c0 to %{{.+}} step %c256 {
// CHECK:             %[[KEYS:.+]] = memref.subview %[[K]][%[[B]], 0, %[[AT]], 0] [1, 1, %{{.+}}, 64]
// CHECK:             %[[VALUES:.+]] = memref.subview %[[V]][%[[B]], 0, %[[AT]], 0] [1, 1, %{{.+}}, 40]
// CHECK:             %[[NEXTK:.+]] = memref.subview %[[K]][
// CHECK:             %[[NEXTV:.+]] = memref.subview %[[V]][
// CHECK:             attune.online_attention %[[ROWS]], %[[KEYS]], %[[VALUES]] scale 1.250000e-01 causal <bottom_right> at[%[[FIRST]], %[[AT]]] of[%{{.+}}, %{{.+}}] tile [96, 256] prefetch %[[NEXTK]], %[[NEXTV]] : {{.*}} outs(%[[ACC]], %[[MAX]], %[[SUM]] :
// CHECK:           }
// CHECK:           %[[DEST:.+]] = memref.subview %[[OUT]][%[[B]], 0, %[[FIRST]], 0] [1, 1, %[[COUNT]], 40]
// CHECK:           attune.online_finish %[[ACC]], %[[MAX]], %[[SUM]] into %[[DEST]] :
// CHECK-NOT:     memref.copy
// CHECK:         return

// Scratch is on the stack, from the start of the function on; loops carry numbers
// alone.
// VECTOR-LABEL: func.func @causal(
// VECTOR-NOT:     attune.
// VECTOR-DAG:     %[[KEYS:.+]] = memref.alloca() {alignment = 64 : i64} : memref<16x64x16xf32>
// VECTOR-DAG:     %[[QUERIES:.+]] = memref.alloca() {alignment = 64 : i64} : memref<16x6x64xf32>
// VECTOR:         scf.forall
// VECTOR-NOT:       iter_args({{.*}}memref<
// VECTOR:           vector.transfer_write %{{.+}}, %[[QUERIES]]
// VECTOR:           scf.for {{.*}} step %c256
// VECTOR:             vector.transfer_write %{{.+}}, %[[KEYS]]
// VECTOR:             memref.prefetch
// VECTOR-COUNT-6:     vector.fma
// VECTOR-NOT:     attune.
// VECTOR:         return
func.func @causal(%q: tensor<?x1x?x64xf32>, %k: tensor<?x1x?x64xf32>, %v: tensor<?x1x?x40xf32>) -> tensor<?x1x?x40xf32> {
  %y = attune.attention %q, %k, %v scale 0.125 causal <bottom_right>
    : tensor<?x1x?x64xf32>, tensor<?x1x?x64xf32>, tensor<?x1x?x40xf32> -> tensor<?x1x?x40xf32>
  return %y : tensor<?x1x?x40xf32>
}

// Parts of a cache's keys: their states are memory that the tiles of the second
// loop merge.
// CHECK-LABEL: func.func @parts(
// CHECK:         scf.forall
// CHECK:           attune.online_start
// CHECK:           attune.online_attention
// CHECK:           attune.online_finish
// CHECK:         scf.forall
// CHECK:           attune.online_start
// CHECK:           scf.for
// CHECK:             attune.online_merge
// CHECK:           attune.online_finish
// CHECK-NOT:     memref.copy
// CHECK:         return
// VECTOR-LABEL: func.func @parts(
// VECTOR-NOT:     attune.online
// VECTOR:         return
func.func @parts(%q: tensor<?x8x?x64xf32>, %c: tensor<3x?x2x?x64xf32>, %layer: index, %length: index) -> tensor<?x8x?x64xf32> {
  %k = attune.cache_read %c[%layer] length %length : tensor<3x?x2x?x64xf32> -> tensor<?x2x?x64xf32>
  %y = attune.attention %q, %k, %k scale 0.125
    : tensor<?x8x?x64xf32>, tensor<?x2x?x64xf32>, tensor<?x2x?x64xf32> -> tensor<?x8x?x64xf32>
  return %y : tensor<?x8x?x64xf32>
}

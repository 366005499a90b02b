// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-attention-to-online{query-block=24 key-block=64},attune-prefetch-tiles))" | FileCheck %s

// Each step fetches where the next one reads: the following block, or behind the
// last one the first block of the next tile, which has the same head or the next.
// CHECK-LABEL: func.func @nest(
// CHECK-SAME:    %[[Q:.+]]: tensor<?x4x?x32xf32>, %[[K:.+]]: tensor<?x2x?x32xf32>, %[[V:.+]]: tensor<?x2x?x16xf32>)
// CHECK:         scf.forall (%[[B:.+]], %[[H:.+]], %[[T:.+]]) in (%{{.+}}, 2, %[[TILES:[^ )]+]])
// CHECK:           scf.for %[[AT:.+]] = %c0 to %[[END:[^ ]+]] step %c64
// CHECK:             %[[BEHIND:.+]] = arith.addi %[[AT]], %c64
// CHECK:             %[[MORE:.+]] = arith.cmpi ult, %[[BEHIND]], %[[END]]
// CHECK:             %[[T1:.+]] = arith.addi %[[T]], %c1
// CHECK:             %[[SAME:.+]] = arith.cmpi ult, %[[T1]], %[[TILES]]
// CHECK:             %[[H1:.+]] = arith.addi %[[H]], %c1
// CHECK:             %[[FOLLOWING:.+]] = arith.minsi %[[H1]], %c1
// CHECK:             %[[IN:.+]] = arith.minsi %[[BEHIND]], %{{.+}}
// CHECK:             %[[FIRST:.+]] = arith.select %[[MORE]], %[[IN]], %c0
// CHECK:             %[[OTHER:.+]] = arith.select %[[SAME]], %[[H]], %[[FOLLOWING]]
// CHECK:             %[[HEAD:.+]] = arith.select %[[MORE]], %[[H]], %[[OTHER]]
// CHECK:             %[[NEXTK:.+]] = tensor.extract_slice %[[K]][%[[B]], %[[HEAD]], %[[FIRST]], 0] [1, 1, %{{.+}}, 32]
// CHECK:             %[[NEXTV:.+]] = tensor.extract_slice %[[V]][%[[B]], %{{.+}}, %{{.+}}, 0] [1, 1, %{{.+}}, 16]
// CHECK:             attune.online_attention {{.+}} tile [12, 64] prefetch %[[NEXTK]], %[[NEXTV]] : tensor<1x1x?x32xf32>, tensor<1x1x?x16xf32>
func.func @nest(%q: tensor<?x4x?x32xf32>, %k: tensor<?x2x?x32xf32>, %v: tensor<?x2x?x16xf32>) -> tensor<?x4x?x16xf32> {
  %y = attune.attention %q, %k, %v scale 0.125
    : tensor<?x4x?x32xf32>, tensor<?x2x?x32xf32>, tensor<?x2x?x16xf32> -> tensor<?x4x?x16xf32>
  return %y : tensor<?x4x?x16xf32>
}

// A step without a nest has nothing behind it.
// CHECK-LABEL: func.func @alone(
// CHECK-NOT:     prefetch
// CHECK:         return
func.func @alone(%k: tensor<1x1x8x32xf32>, %acc: tensor<1x1x8x32xf32>, %max: tensor<1x1x8xf32>, %n: index) -> tensor<1x1x8x32xf32> {
  %s:3 = attune.online_attention %k, %k, %k scale 0.125 at [%n, %n] of [%n, %n]
    outs(%acc, %max, %max : tensor<1x1x8x32xf32>, tensor<1x1x8xf32>, tensor<1x1x8xf32>)
    : tensor<1x1x8x32xf32>, tensor<1x1x8x32xf32>, tensor<1x1x8x32xf32>
    -> tensor<1x1x8x32xf32>, tensor<1x1x8xf32>, tensor<1x1x8xf32>
  return %s#0 : tensor<1x1x8x32xf32>
}

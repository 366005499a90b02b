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

// Parts of the keys of a cache lie one behind the other, too.
// CHECK-LABEL: func.func @parts(
// CHECK:         scf.forall (%{{.+}}, %{{.+}}, %{{.+}}, %[[PART:.+]]) in (%{{.+}}, 2, 1, %[[PARTS:[^ )]+]])
// CHECK:           %[[INSIDE:.+]] = arith.cmpi ult
// CHECK:           %[[P1:.+]] = arith.addi %[[PART]], %c1{{.*}}
// CHECK:           %[[OTHERS:.+]] = arith.cmpi ult, %[[P1]], %[[PARTS]]
// CHECK:           %[[MORE:.+]] = arith.ori %[[INSIDE]], %[[OTHERS]]
// CHECK:           arith.select %[[MORE]]
// CHECK:           attune.online_attention {{.+}} prefetch
func.func @parts(%q: tensor<?x4x1x32xf32>, %cache: tensor<1x?x2x?x32xf32>, %n: index) -> tensor<?x4x1x32xf32> {
  %c0 = arith.constant 0 : index
  %k = attune.cache_read %cache[%c0] length %n : tensor<1x?x2x?x32xf32> -> tensor<?x2x?x32xf32>
  %y = attune.attention %q, %k, %k scale 0.125
    : tensor<?x4x1x32xf32>, tensor<?x2x?x32xf32>, tensor<?x2x?x32xf32> -> tensor<?x4x1x32xf32>
  return %y : tensor<?x4x1x32xf32>
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

// Products: of many rows the panels of the next step come next, of few the panel
// behind this one, and which it is is known at run time; or before, if the number
// of rows is.
// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(attune-prefetch-tiles{panel-bytes=1024}))" | FileCheck %s --check-prefix=PRODUCT
// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(attune-prefetch-tiles{panel-bytes=1023}))" | FileCheck %s --check-prefix=LARGE
// RUN: not attune-opt %s --pass-pipeline="builtin.module(func.func(attune-prefetch-tiles{panel-bytes=0}))" 2>&1 | FileCheck %s --check-prefix=POSITIVE
// POSITIVE: error: panel-bytes must be positive
// PRODUCT-LABEL: func.func @products(
// PRODUCT-SAME:    %[[X:[^:]+]]: tensor<?x32xf32>
// PRODUCT:         scf.forall
// PRODUCT:           %[[M:.+]] = tensor.dim %[[X]], %{{.+}} : tensor<?x32xf32>
// PRODUCT:           %[[FEW:.+]] = arith.cmpi ule, %{{.+}}, %c6
// PRODUCT:           %[[PASSED:.+]] = arith.select %[[FEW]], %c1{{.*}}, %[[COUNT:.+]] : index
// PRODUCT:           %[[NEXT:.+]] = arith.addi %[[PANEL:.+]], %[[PASSED]]
// PRODUCT:           attune.packed_product %[[X]][%{{.+}}], %{{.+}}[%[[PANEL]], %[[COUNT]]] of 64 tile [3, 2] prefetch %[[NEXT]]
// PRODUCT:           %[[BEHIND:.+]] = arith.addi %[[PANEL]], %c1
// PRODUCT-NEXT:      attune.packed_product {{.+}} prefetch %[[BEHIND]]
// LARGE-LABEL: func.func @products(
// LARGE-NOT:     prefetch
// LARGE:         return
func.func @products(%x: tensor<?x32xf32>, %one: tensor<1x32xf32>, %w: tensor<8x32x8xf32>, %d: tensor<?x64xf32>, %e: tensor<1x64xf32>, %count: index) -> (tensor<?x64xf32>, tensor<1x64xf32>) {
  %c0 = arith.constant 0 : index
  %y:2 = scf.forall (%p) in (8) shared_outs(%all = %d, %row = %e) -> (tensor<?x64xf32>, tensor<1x64xf32>) {
    %c8 = arith.constant 8 : index
    %c = arith.muli %p, %c8 : index
    %m = tensor.dim %x, %c0 : tensor<?x32xf32>
    %n = arith.muli %count, %c8 : index
    %t = tensor.extract_slice %all[0, %c] [%m, %n] [1, 1] : tensor<?x64xf32> to tensor<?x?xf32>
    %u = tensor.extract_slice %row[0, %c] [1, %n] [1, 1] : tensor<1x64xf32> to tensor<1x?xf32>
    %0 = attune.packed_product %x[%c0], %w[%p, %count] of 64 tile [3, 2] outs(%t : tensor<?x?xf32>)
      : tensor<?x32xf32>, tensor<8x32x8xf32> -> tensor<?x?xf32>
    %1 = attune.packed_product %one[%c0], %w[%p, %count] of 64 tile [6, 1] outs(%u : tensor<1x?xf32>)
      : tensor<1x32xf32>, tensor<8x32x8xf32> -> tensor<1x?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %0 into %all[0, %c] [%m, %n] [1, 1] : tensor<?x?xf32> into tensor<?x64xf32>
      tensor.parallel_insert_slice %1 into %row[0, %c] [1, %n] [1, 1] : tensor<1x?xf32> into tensor<1x64xf32>
    }
  }
  return %y#0, %y#1 : tensor<?x64xf32>, tensor<1x64xf32>
}

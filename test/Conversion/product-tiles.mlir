// A matrix product from its nest on tensors to its nest on memory, and to vectors there.
// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{lanes=8 rows=4},attune-prefetch-tiles),canonicalize,cse, \
// RUN:   one-shot-bufferize{bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map},canonicalize,cse,canonicalize)" | tee %t.mlir \
// RUN:   | FileCheck %s --implicit-check-not=memref.copy
// RUN: attune-opt %t.mlir --pass-pipeline="builtin.module(func.func(convert-attune-product-to-vector),canonicalize,cse)" | FileCheck %s --check-prefix=VECTOR
// The same numbers on tensors and after each step of them.
// RUN: attune-opt %s --attune-validate=verbose,lengths=1/4/5/19 --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{lanes=8 rows=4},attune-prefetch-tiles),canonicalize, \
// RUN:   one-shot-bufferize{bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map},func.func(convert-attune-product-to-vector))" -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=SAME --implicit-check-not=error
// SAME-COUNT-2: after convert-attune-to-vector, attune-prefetch-tiles, @{{.*}} is the same

// An iteration has some panels and some rows. It writes its tile of the result,
// reads its rows where they are, and names the panels that come next: those of the
// next step, or the panel behind if all rows are one tile.
// CHECK-LABEL: func.func @plain(
// CHECK-SAME:    %[[X:.+]]: memref<?x24xf32>, %[[W:.+]]: memref<5x24x8xf32>, %[[B:.+]]: memref<36xf32>)
// CHECK:         %[[M:.+]] = memref.dim %[[X]], %c0
// CHECK:         %[[OUT:.+]] = memref.alloc(%[[M]]) {{.*}} : memref<?x36xf32>
// CHECK:         %[[FEW:.+]] = arith.cmpi ule, %[[M]], %c4
// CHECK:         scf.forall (%{{.+}}, %{{.+}}, %{{.+}}) in
// CHECK:           %[[TILE:.+]] = memref.subview %[[OUT]][%[[ROW:.+]], %{{.+}}] [%{{.+}}, %{{.+}}] [1, 1]
// CHECK:           %[[PASSED:.+]] = arith.select %[[FEW]], %c1, %[[COUNT:.+]] : index
// CHECK:           %[[NEXT:.+]] = arith.addi %[[PANEL:.+]], %[[PASSED]]
// CHECK:           attune.packed_product %[[X]][%[[ROW]]], %[[W]][%[[PANEL]], %[[COUNT]]] of 36 bias %[[B]] : memref<36xf32> activation <gelu_tanh> tile [4, 1] prefetch %[[NEXT]] outs(%[[TILE]] : memref<?x?xf32, strided<[36, 1], offset: ?>>) : memref<?x24xf32>, memref<5x24x8xf32>
// CHECK-NEXT:    }
// CHECK:         return

// Loops carry numbers alone.
// VECTOR-LABEL: func.func @plain(
// VECTOR-NOT:     attune.packed_product
// VECTOR-NOT:     iter_args({{.*}}memref<
// VECTOR:         scf.forall
// VECTOR:           memref.prefetch
// VECTOR-COUNT-16:  vector.fma
// VECTOR:           vector.transfer_write
// VECTOR:           scf.index_switch
// VECTOR:         return
func.func @plain(%x: tensor<?x24xf32>, %w: tensor<5x24x8xf32>, %b: tensor<36xf32>) -> tensor<?x36xf32> {
  %y = attune.linear %x, %w bias %b : tensor<36xf32> activation <gelu_tanh>
    : tensor<?x24xf32>, tensor<5x24x8xf32> -> tensor<?x36xf32>
  return %y : tensor<?x36xf32>
}

// Gates and their partners have their sums in scratch, which is on the stack; the
// residual is the destination.
// CHECK-LABEL: func.func @gated(
// CHECK-SAME:    %[[D:.+]]: memref<?x16xf32>)
// CHECK:           %[[TILE:.+]] = memref.subview %{{.+}}[
// CHECK:           attune.packed_product %{{.+}} of 16 activation <silu> gated scale 5.000000e-01 residual tile [4, 1]
// CHECK:         return
// VECTOR-LABEL: func.func @gated(
// VECTOR-COUNT-2: memref.alloca() {alignment = 64 : i64} : memref<4x8xf32>
// VECTOR:         scf.forall
// VECTOR-NOT:       memref.alloca
// VECTOR:         return
func.func @gated(%x: tensor<?x24xf32>, %w: tensor<4x24x8xf32>, %r: tensor<?x16xf32>) -> tensor<?x16xf32> {
  %y = attune.linear %x, %w residual %r : tensor<?x16xf32> activation <silu> gated scale 0.5
    : tensor<?x24xf32>, tensor<4x24x8xf32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}

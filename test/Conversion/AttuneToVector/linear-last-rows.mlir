// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{lanes=8 rows=4 panel-bytes=65536},attune-prefetch-tiles{panel-bytes=65536},convert-attune-product-to-vector))" | FileCheck %s
// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{lanes=8 rows=4 panel-bytes=65536 fetch-steps=8},attune-prefetch-tiles{panel-bytes=65536},convert-attune-product-to-vector{fetch-steps=8}))" | FileCheck %s --check-prefix=SLOWLY
// RUN: not attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{fetch-steps=0}))" 2>&1 | FileCheck %s --check-prefix=NEVER

// NEVER: error: fetch-steps and threads must be positive
// Half as many turns, of twice the steps and lines.
// SLOWLY-LABEL: @three(
// SLOWLY:         scf.for %{{.+}} = %c0{{.*}} to %c8{{.*}} step
// SLOWLY-COUNT-4:   memref.prefetch %{{.+}}, read, locality<2>
// SLOWLY-NOT:       memref.prefetch
// SLOWLY-COUNT-24:  vector.fma

// Three rows fill no tile of four, and nobody else fetches what is next: every
// four steps bring both lines of the next panel's four steps. So do four rows, a
// whole tile, if it is the only one.
// CHECK-LABEL: @three(
// CHECK:         scf.for %{{.+}} = %c0{{.*}} to %c16{{.*}} step
// CHECK-COUNT-2:   memref.prefetch %{{.+}}, read, locality<2>
// CHECK-NOT:       memref.prefetch
// CHECK-COUNT-12:  vector.fma
func.func @three(%x: tensor<3x64xf32>, %w: tensor<16x64x8xf32>) -> tensor<3x128xf32> {
  %y = attune.linear %x, %w : tensor<3x64xf32>, tensor<16x64x8xf32> -> tensor<3x128xf32>
  return %y : tensor<3x128xf32>
}

// CHECK-LABEL: @four(
// CHECK:         scf.for %{{.+}} = %c0{{.*}} to %c16{{.*}} step
// CHECK-COUNT-2:   memref.prefetch %{{.+}}, read, locality<2>
// CHECK-NOT:       memref.prefetch {{.+}} locality<2>
// CHECK-COUNT-16:  vector.fma
func.func @four(%x: tensor<4x64xf32>, %w: tensor<16x64x8xf32>) -> tensor<4x128xf32> {
  %y = attune.linear %x, %w : tensor<4x64xf32>, tensor<16x64x8xf32> -> tensor<4x128xf32>
  return %y : tensor<4x128xf32>
}

// Each of many tiles brings one.
// CHECK-LABEL: @many(
// CHECK:         scf.for %{{.+}} = %c0{{.*}} to %{{.+}} step %c4
// CHECK:           scf.for %{{.+}} = %c0{{.*}} to %c16{{.*}} step
// CHECK:             memref.prefetch %{{.+}}, read, locality<2>
// CHECK-NOT:         memref.prefetch {{.+}} locality<2>
// CHECK-COUNT-16:    vector.fma
func.func @many(%x: tensor<16x64xf32>, %w: tensor<16x64x8xf32>) -> tensor<16x128xf32> {
  %y = attune.linear %x, %w : tensor<16x64xf32>, tensor<16x64x8xf32> -> tensor<16x128xf32>
  return %y : tensor<16x128xf32>
}

// One tile or two of any number are among the last rows, which bring both.
// CHECK-LABEL: @some(
// CHECK:         %[[FEW:.+]] = arith.cmpi sle, %[[ROWS:.+]], %c8{{.*}} : index
// CHECK:         %[[REST:.+]] = arith.select %[[FEW]], %[[ROWS]], %{{.+}} : index
// CHECK:         %[[WHOLE:.+]] = arith.subi %[[ROWS]], %[[REST]] : index
// CHECK:         scf.for %{{.+}} = %c0{{.*}} to %[[WHOLE]] step %c4
// CHECK:           memref.prefetch %{{.+}}, read, locality<2>
// CHECK-NOT:       memref.prefetch {{.+}} locality<2>
// CHECK-COUNT-16:  vector.fma
// CHECK:         scf.index_switch
// CHECK:         case 4 {
// CHECK-COUNT-2:   memref.prefetch %{{.+}}, read, locality<2>
// CHECK-NOT:       memref.prefetch
// CHECK-COUNT-16:  vector.fma
func.func @some(%x: tensor<?x64xf32>, %w: tensor<16x64x8xf32>) -> tensor<?x128xf32> {
  %y = attune.linear %x, %w : tensor<?x64xf32>, tensor<16x64x8xf32> -> tensor<?x128xf32>
  return %y : tensor<?x128xf32>
}

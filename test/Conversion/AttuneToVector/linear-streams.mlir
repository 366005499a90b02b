// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{lanes=8 rows=4 stream-bytes=1024},attune-prefetch-tiles,convert-attune-product-to-vector{stream-bytes=1024}))" | FileCheck %s
// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{lanes=8 rows=4},attune-prefetch-tiles,convert-attune-product-to-vector))" | FileCheck %s --check-prefix=ALONE
// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{lanes=8 rows=4 panel-bytes=2048 far-level3},attune-prefetch-tiles{panel-bytes=2048},convert-attune-product-to-vector))" | FileCheck %s --check-prefix=FAR
// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{lanes=8 rows=4 panel-bytes=2048},attune-prefetch-tiles{panel-bytes=2048},convert-attune-product-to-vector))" | FileCheck %s --check-prefix=NEAR
// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{lanes=8 rows=4 narrow-stream-bytes=1024},attune-prefetch-tiles,convert-attune-product-to-vector{narrow-stream-bytes=1024}))" | FileCheck %s --check-prefix=NARROW
// RUN: not attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{stream-bytes=-1}))" 2>&1 | FileCheck %s --check-prefix=NEVER
// RUN: not attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{narrow-stream-bytes=-1}))" 2>&1 | FileCheck %s --check-prefix=NEITHER

// NEVER: error: stream-bytes must be 0 or positive
// NEITHER: error: narrow-stream-bytes must be 0 or positive

// One row meets a panel as fast as memory gives it, and asks for what lies
// 1024 bytes ahead, 256 f32: in each turn of four steps the two lines of so
// many rows of the panel. What is behind the panel is the next one.
// CHECK-LABEL: @one_row(
// CHECK:         scf.for %[[TURN:.+]] = %c0 to %c16 step %c1 iter_args
// CHECK:           %[[DONE:.+]] = arith.muli %[[TURN]], %c32
// CHECK:           %[[AT:.+]] = arith.addi %[[DONE]], %c256
// CHECK:           memref.prefetch %{{.+}}[%[[PANEL:.+]], %[[AT]]], read, locality<2>
// CHECK:           %[[LINE:.+]] = arith.addi %[[AT]], %c16
// CHECK:           memref.prefetch %{{.+}}[%[[PANEL]], %[[LINE]]], read, locality<2>
// CHECK-COUNT-4:   vector.fma
// CHECK-NOT:       memref.prefetch
// CHECK:         return
// ALONE-LABEL: @one_row(
// ALONE-NOT:     memref.prefetch
// ALONE:         return
// A panel of 2048 bytes meets rows in one pass, or, where what comes from the
// third level of cache comes slowly, in four: one in each loop over rows.
// NEAR-LABEL:  @one_row(
// NEAR:          scf.for %{{.+}} = %c0 to %c64 step %c1 iter_args
// FAR-LABEL:   @one_row(
// FAR:           scf.for %{{.+}} = %c0 to %c4 step %c1 iter_args
// FAR:             scf.for %{{.+}} = %c0 to %c16 step %c1 iter_args
func.func @one_row(%x: tensor<1x64xf32>, %w: tensor<16x64x8xf32>) -> tensor<1x128xf32> {
  %y = attune.linear %x, %w : tensor<1x64xf32>, tensor<16x64x8xf32> -> tensor<1x128xf32>
  return %y : tensor<1x128xf32>
}

// What only weights of at most 16 bits ask for: 1024 bytes ahead are 512 of them.
// NARROW-LABEL: @one_row(
// NARROW-NOT:     memref.prefetch
// NARROW-LABEL: @narrow_row(
// NARROW:         %[[DONE:.+]] = arith.muli %{{.+}}, %c32
// NARROW:         %[[AT:.+]] = arith.addi %[[DONE]], %c512
// NARROW:         memref.prefetch %{{.+}}[%{{.+}}, %[[AT]]], read, locality<2>
// NARROW-NOT:     memref.prefetch
// NARROW:         return
func.func @narrow_row(%x: tensor<1x64xf32>, %w: tensor<16x64x8xf16>) -> tensor<1x128xf32> {
  %y = attune.linear %x, %w : tensor<1x64xf32>, tensor<16x64x8xf16> -> tensor<1x128xf32>
  return %y : tensor<1x128xf32>
}

// Bytes of a quantized matrix, four columns of eight rows a turn.
// NARROW-LABEL: @row_of_bytes(
// NARROW:         %[[DONE:.+]] = arith.muli %{{.+}}, %c32
// NARROW:         %[[AT:.+]] = arith.addi %[[DONE]], %c1024
// NARROW:         memref.prefetch %{{.+}}[%{{.+}}, %[[AT]]], read, locality<2>
// NARROW-NOT:     memref.prefetch
// NARROW:         return
func.func @row_of_bytes(%q: tensor<1x64xi8>, %s: tensor<1x2xf32>, %n: tensor<1x2xi32>, %w: tensor<16x16x32xi8>, %t: tensor<16x2x8xf32>) -> tensor<1x128xf32> {
  %y = attune.quantized_linear %q scales %s sums %n, %w scales %t
    : (tensor<1x64xi8>, tensor<1x2xf32>, tensor<1x2xi32>), (tensor<16x16x32xi8>, tensor<16x2x8xf32>) -> tensor<1x128xf32>
  return %y : tensor<1x128xf32>
}

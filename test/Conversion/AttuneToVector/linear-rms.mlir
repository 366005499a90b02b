// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{lanes=8 rows=4 panel-bytes=2048 threads=8},attune-prefetch-tiles{panel-bytes=2048},convert-attune-product-to-vector),canonicalize,cse)" --split-input-file | FileCheck %s
// RUN: attune-opt %s --attune-validate=verbose,lengths=1/4/5/26 --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{lanes=8 rows=4 panel-bytes=2048 threads=8},attune-prefetch-tiles{panel-bytes=2048},convert-attune-product-to-vector))" --split-input-file -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=SAME --implicit-check-not=error
// RUN: attune-opt %s --attune-validate=verbose,lengths=1/9/26 --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{lanes=8 rows=4 panel-bytes=2048 way-bytes=64 threads=8 wide-tiles=true},attune-prefetch-tiles{panel-bytes=2048},convert-attune-product-to-vector))" --split-input-file -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=SAME --implicit-check-not=error
// SAME: after convert-attune-to-vector, attune-prefetch-tiles, convert-attune-product-to-vector, @some is the same
// SAME: after convert-attune-to-vector, attune-prefetch-tiles, convert-attune-product-to-vector, @one is the same
// SAME: after convert-attune-to-vector, attune-prefetch-tiles, convert-attune-product-to-vector, @heads is the same
// SAME: after convert-attune-to-vector, attune-prefetch-tiles, convert-attune-product-to-vector, @gated is the same
// SAME: after convert-attune-to-vector, attune-prefetch-tiles, convert-attune-product-to-vector, @parts is the same

// Of many rows the factors are found before the product, of few in each step.
// They come to sums before a bias does.
// CHECK-LABEL: @some(
// CHECK-SAME:    %[[X:[^:]+]]: tensor<?x32xf32>, %[[W:[^:]+]]: tensor<3x32x8xf32>, %[[B:[^:]+]]: tensor<24xf32>
// CHECK:         %[[FEW:.+]] = arith.cmpi ule, %[[M:.+]], %c4
// CHECK:         %[[TABLE:.+]] = scf.if %[[FEW]] -> (tensor<?xf32>) {
// CHECK-NEXT:      scf.yield
// CHECK:         } else {
// CHECK:           scf.forall (%[[I:.+]]) in (%[[M]])
// CHECK:             scf.for
// CHECK:               vector.transfer_read %[[X]][%[[I]], %{{.+}}]
// CHECK:             vector.reduction <add>
// CHECK:             %[[ROOT:.+]] = math.rsqrt %{{.+}} : vector<8xf32>
// CHECK:             %[[FACTOR:.+]] = vector.extract %[[ROOT]][0]
// CHECK:             tensor.insert %[[FACTOR]]
// CHECK:         scf.forall
// CHECK:           %[[ROWS:.+]] = arith.select %[[FEW]], %[[M]], %c0
// CHECK:           %[[SCRATCH:.+]] = bufferization.alloc_tensor() : tensor<4xf32>
// CHECK:           %[[OWN:.+]] = scf.for %[[R:.+]] = %c0 to %[[ROWS]] step %c1 iter_args(%{{.+}} = %[[SCRATCH]])
// CHECK:             math.rsqrt
// CHECK:             tensor.insert %{{.+}} into %{{.+}}[%[[R]]] : tensor<4xf32>
// CHECK:           %[[F:.+]] = scf.if %[[FEW]] -> (f32) {
// CHECK:             tensor.extract %[[OWN]]
// CHECK:           } else {
// CHECK:             tensor.extract %[[TABLE]]
// CHECK:           %[[SPLAT:.+]] = vector.broadcast %[[F]] : f32 to vector<8xf32>
// CHECK:           %[[SUM:.+]] = arith.mulf %{{.+}}, %[[SPLAT]]
// CHECK:           arith.addf %[[SUM]], %{{.+}}
func.func @some(%x: tensor<?x32xf32>, %w: tensor<3x32x8xf32>, %b: tensor<24xf32>) -> tensor<?x24xf32> {
  %y = attune.linear %x, %w bias %b : tensor<24xf32> rms_eps 1.0e-3 : tensor<?x32xf32>, tensor<3x32x8xf32> -> tensor<?x24xf32>
  return %y : tensor<?x24xf32>
}

// -----

// One row is always few.
// CHECK-LABEL: @one(
// CHECK-COUNT-1: scf.forall (
// CHECK-NOT:     scf.if
// CHECK-NOT:     scf.forall (
func.func @one(%x: tensor<1x32xf32>, %w: tensor<3x32x8xf32>) -> tensor<1x20xf32> {
  %y = attune.linear %x, %w activation <silu> scale 2.0 rms_eps 1.0e-3 : tensor<1x32xf32>, tensor<3x32x8xf32> -> tensor<1x20xf32>
  return %y : tensor<1x20xf32>
}

// -----

// Heads that are handed over, of sequences.
// CHECK-LABEL: @heads(
// CHECK:         math.rsqrt
func.func @heads(%x: tensor<2x?x24xf32>, %w: tensor<3x24x8xf32>) -> tensor<2x3x?x8xf32> {
  %y = attune.linear %x, %w rms_eps 1.0e-3 : tensor<2x?x24xf32>, tensor<3x24x8xf32> -> tensor<2x?x24xf32>
  %h = attune.split_heads %y : tensor<2x?x24xf32> -> tensor<2x3x?x8xf32>
  return %h : tensor<2x3x?x8xf32>
}

// -----

// Both the gate and what it gates are sums of such rows, and a residual is not.
// CHECK-LABEL: @gated(
// CHECK:         math.rsqrt
func.func @gated(%x: tensor<?x24xf32>, %w: tensor<4x24x8xf32>, %r: tensor<?x11xf32>) -> tensor<?x11xf32> {
  %y = attune.linear %x, %w residual %r : tensor<?x11xf32> activation <silu> gated rms_eps 1.0e-3 : tensor<?x24xf32>, tensor<4x24x8xf32> -> tensor<?x11xf32>
  return %y : tensor<?x11xf32>
}

// -----

// Parts of a sum are multiplied when they are all there; a residual, which sums
// in parts start from, would be too.
// CHECK-LABEL: @parts(
// CHECK:         math.rsqrt
func.func @parts(%x: tensor<?x192xf32>, %w: tensor<2x192x8xf32>, %v: tensor<2x192x8xf32>) -> tensor<?x16xf32> {
  %y = attune.linear %x, %w rms_eps 1.0e-3 : tensor<?x192xf32>, tensor<2x192x8xf32> -> tensor<?x16xf32>
  %z = attune.linear %x, %v residual %y : tensor<?x16xf32> rms_eps 1.0e-3 : tensor<?x192xf32>, tensor<2x192x8xf32> -> tensor<?x16xf32>
  return %z : tensor<?x16xf32>
}

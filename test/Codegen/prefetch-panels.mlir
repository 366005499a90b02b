// RUN: attune-opt %s --attune-prefetch-panels | FileCheck %s

// The panel after this one, or this one if it is the last.
// CHECK-LABEL: func.func @marked(
// CHECK-SAME:    %[[W:[^:]+]]: memref<4x8x32x16xf32>, %[[E:[^:]+]]: index, %[[P:[^:]+]]: index
// CHECK:         %[[PLUS:.+]] = arith.addi %[[P]], %{{.+}} : index
// CHECK:         %[[NEXT:.+]] = arith.minui %[[PLUS]], %{{.+}} : index
// CHECK-NEXT:    scf.for %[[K:[a-z0-9]+]] = %{{.+}} -> (vector<16xf32>) {
// CHECK-NEXT:      memref.prefetch %[[W]][%[[E]], %[[NEXT]], %[[K]], %{{.+}}], read, locality<2>, data
// CHECK-NEXT:      vector.transfer_read %[[W]][%[[E]], %[[P]], %[[K]], %{{.+}}]
// CHECK-NOT:       memref.prefetch
// CHECK:         }
// CHECK-NOT:     attune.prefetch
func.func @marked(%w: memref<4x8x32x16xf32>, %e: index, %p: index, %x: memref<32x16xf32>) -> vector<16xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %f0 = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<16xf32>
  %r = scf.for %k = %c0 to %c32 step %c1 iter_args(%acc = %zero) -> vector<16xf32> {
    %b = vector.transfer_read %w[%e, %p, %k, %c0], %f0 {in_bounds = [true]} : memref<4x8x32x16xf32>, vector<16xf32>
    %a = vector.transfer_read %x[%k, %c0], %f0 {in_bounds = [true]} : memref<32x16xf32>, vector<16xf32>
    %next = vector.fma %a, %b, %acc : vector<16xf32>
    scf.yield %next : vector<16xf32>
  } {attune.prefetch}
  return %r : vector<16xf32>
}

// CHECK-LABEL: func.func @unmarked(
// CHECK-NOT:     memref.prefetch
func.func @unmarked(%w: memref<8x32x16xf32>, %p: index) -> vector<16xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %f0 = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<16xf32>
  %r = scf.for %k = %c0 to %c32 step %c1 iter_args(%acc = %zero) -> vector<16xf32> {
    %b = vector.transfer_read %w[%p, %k, %c0], %f0 {in_bounds = [true]} : memref<8x32x16xf32>, vector<16xf32>
    %next = arith.addf %acc, %b : vector<16xf32>
    scf.yield %next : vector<16xf32>
  }
  return %r : vector<16xf32>
}

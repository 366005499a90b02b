// RUN: attune-opt %s --pass-pipeline="builtin.module(gpu.module(attune-align-accesses))" | FileCheck %s

gpu.module @kernels {
  // A row of a panel: 32 bytes, whatever panel and step.
  // CHECK-LABEL: func.func @panel(
  // CHECK:         vector.load %{{.+}} {alignment = 32 : i64} : memref<96x768x8xf32>, vector<8xf32>
  func.func @panel(%w: memref<96x768x8xf32>, %p: index, %k: index) -> vector<8xf32> {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %0 = vector.transfer_read %w[%p, %k, %c0], %zero {in_bounds = [true]} : memref<96x768x8xf32>, vector<8xf32>
    return %0 : vector<8xf32>
  }

  // Columns in steps of eight, through a slice; of 16 bits each.
  // CHECK-LABEL: func.func @columns(
  // CHECK:         vector.store %{{.+}} {alignment = 16 : i64} : memref<1x768xbf16, strided<[768, 1], offset: ?>>, vector<8xbf16>
  func.func @columns(%y: memref<?x768xbf16>, %row: index, %v: vector<8xbf16>) {
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %c768 = arith.constant 768 : index
    %slice = memref.subview %y[%row, 0] [1, 768] [1, 1] : memref<?x768xbf16> to memref<1x768xbf16, strided<[768, 1], offset: ?>>
    scf.for %j = %c0 to %c768 step %c8 {
      vector.transfer_write %v, %slice[%c0, %j] {in_bounds = [true]} : vector<8xbf16>, memref<1x768xbf16, strided<[768, 1], offset: ?>>
    }
    return
  }

  // Any column, rows of an odd width, the rest of a row: as they were.
  // CHECK-LABEL: func.func @unknown(
  // CHECK-NOT:     vector.load
  // CHECK-COUNT-3: vector.transfer_read
  func.func @unknown(%x: memref<?x768xf32>, %odd: memref<?x15xf32>, %i: index, %j: index) -> (vector<8xf32>, vector<8xf32>, vector<8xf32>) {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %0 = vector.transfer_read %x[%i, %j], %zero {in_bounds = [true]} : memref<?x768xf32>, vector<8xf32>
    %1 = vector.transfer_read %odd[%i, %c0], %zero {in_bounds = [true]} : memref<?x15xf32>, vector<8xf32>
    %2 = vector.transfer_read %x[%i, %c0], %zero : memref<?x768xf32>, vector<8xf32>
    return %0, %1, %2 : vector<8xf32>, vector<8xf32>, vector<8xf32>
  }
}

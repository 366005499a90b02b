// RUN: attune-opt %s --attune-copies-to-loops | FileCheck %s

// CHECK-LABEL: @copies(
// CHECK-SAME:    %[[X:.+]]: memref<?xf32>, %[[Y:.+]]: memref<?xf32>)
// CHECK-NOT:     memref.copy
// CHECK:         linalg.copy ins(%[[X]] : memref<?xf32>) outs(%[[Y]] : memref<?xf32>)
// CHECK-NOT:     copy
func.func @copies(%x: memref<?xf32>, %y: memref<?xf32>) {
  memref.copy %x, %y : memref<?xf32> to memref<?xf32>
  // Onto itself: nothing to do.
  memref.copy %y, %y : memref<?xf32> to memref<?xf32>
  return
}

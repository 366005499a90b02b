// RUN: attune-opt %s --one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" | FileCheck %s

// The result is the destination's buffer; nothing is copied.
// CHECK-LABEL: func.func @in_place(
// CHECK-SAME:    %[[X:.+]]: memref<?x64xf32>, %[[W:.+]]: memref<2x64x8xbf16>, %[[D:.+]]: memref<?x16xf32>
// CHECK-NEXT:    attune.linear_into %[[X]], %[[W]] into %[[D]] residual : memref<?x64xf32>, memref<2x64x8xbf16>, memref<?x16xf32>
// CHECK-NEXT:    return %[[D]]
func.func @in_place(%x: tensor<?x64xf32>, %w: tensor<2x64x8xbf16>, %d: tensor<?x16xf32> {bufferization.writable = true}) -> tensor<?x16xf32> {
  %y = attune.linear_into %x, %w into %d residual : tensor<?x64xf32>, tensor<2x64x8xbf16>, tensor<?x16xf32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}

// A destination that is read later is not overwritten.
// CHECK-LABEL: func.func @kept(
// CHECK:         %[[NEW:.+]] = memref.alloc(
// CHECK:         memref.copy %{{.+}}, %[[NEW]]
// CHECK:         attune.linear_into %{{.+}}, %{{.+}} into %[[NEW]] residual
func.func @kept(%x: tensor<?x64xf32>, %w: tensor<2x64x8xbf16>, %d: tensor<?x16xf32>) -> (tensor<?x16xf32>, tensor<?x16xf32>) {
  %y = attune.linear_into %x, %w into %d residual : tensor<?x64xf32>, tensor<2x64x8xbf16>, tensor<?x16xf32> -> tensor<?x16xf32>
  return %y, %d : tensor<?x16xf32>, tensor<?x16xf32>
}

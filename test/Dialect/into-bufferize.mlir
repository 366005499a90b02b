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

// Two destinations, two results.
// CHECK-LABEL: func.func @attention(
// CHECK-SAME:    %[[Q:.+]]: memref<1x8x?x64xbf16>, %[[K:.+]]: memref<1x2x?x64xbf16>, %[[D:.+]]: memref<1x8x?x64xbf16>, %[[L:.+]]: memref<1x8x?xf32>
// CHECK-NEXT:    attune.attention_into %[[Q]], %[[K]], %[[K]] scale 1.250000e-01 into %[[D]] lse %[[L]] : memref<1x8x?xf32> :
// CHECK-NEXT:    return %[[D]], %[[L]]
func.func @attention(%q: tensor<1x8x?x64xbf16>, %k: tensor<1x2x?x64xbf16>, %d: tensor<1x8x?x64xbf16> {bufferization.writable = true}, %l: tensor<1x8x?xf32> {bufferization.writable = true}) -> (tensor<1x8x?x64xbf16>, tensor<1x8x?xf32>) {
  %y:2 = attune.attention_into %q, %k, %k scale 0.125 into %d lse %l : tensor<1x8x?xf32> : tensor<1x8x?x64xbf16>, tensor<1x2x?x64xbf16>, tensor<1x2x?x64xbf16>, tensor<1x8x?x64xbf16> -> tensor<1x8x?x64xbf16>, tensor<1x8x?xf32>
  return %y#0, %y#1 : tensor<1x8x?x64xbf16>, tensor<1x8x?xf32>
}

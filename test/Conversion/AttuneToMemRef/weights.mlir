// RUN: attune-opt %s --convert-attune-weights-to-memref --canonicalize | FileCheck %s
// RUN: attune-opt %s --convert-attune-weights-to-memref --convert-attune-views-to-memref --canonicalize | FileCheck %s --check-prefix=PLACES

// 64-byte aligned places: @a takes 3 x 64 bytes, so @b starts at 192.
// CHECK: attune.weight @a
attune.weight @a stacked : tensor<3x2x5xf32> from [#attune.source<"a.{i}">]
// CHECK: attune.weight @b
attune.weight @b : tensor<8xbf16> from [#attune.source<"b">]

// CHECK-LABEL: func.func private @block(
// CHECK-SAME:    %[[W:[^:]+]]: memref<?xi8> {attune.kind = "weights"}, %[[L:[^:]+]]: index)
// CHECK:         %[[V:.+]] = attune.weight_view @a of %[[W]][%[[L]]] at 0 stride 64 : memref<?xi8> to memref<2x5xf32>
// CHECK:         bufferization.to_tensor %[[V]] restrict
// CHECK:         attune.weight_view @b of %[[W]] at 192 : memref<?xi8> to memref<8xbf16>
// CHECK-NOT:     attune.weight_get

// Arithmetic on the offsets:
// PLACES-LABEL: func.func private @block(
// PLACES-SAME:    %[[W:[^:]+]]: memref<?xi8> {attune.kind = "weights"}, %[[L:[^:]+]]: index)
// PLACES-DAG:     %[[STRIDE:.+]] = arith.constant 64 : index
// PLACES-DAG:     %[[B:.+]] = arith.constant 192 : index
// PLACES:         %[[AT:.+]] = arith.muli %[[L]], %[[STRIDE]]
// PLACES:         memref.view %[[W]][%[[AT]]][] : memref<?xi8> to memref<2x5xf32>
// PLACES:         memref.view %[[W]][%[[B]]][] : memref<?xi8> to memref<8xbf16>
// PLACES-NOT:     attune.weight_view
func.func private @block(%layer: index) -> (tensor<2x5xf32>, tensor<8xbf16>) {
  %0 = attune.weight_get @a[%layer] : tensor<2x5xf32>
  %1 = attune.weight_get @b : tensor<8xbf16>
  return %0, %1 : tensor<2x5xf32>, tensor<8xbf16>
}

// CHECK-LABEL: func.func @entry(
// CHECK-SAME:    %[[W:[^:]+]]: memref<?xi8> {attune.kind = "weights"}, %[[L:[^:]+]]: index)
// CHECK:         call @block(%[[W]], %[[L]])
func.func @entry(%layer: index) -> (tensor<2x5xf32>, tensor<8xbf16>) attributes {attune.entry} {
  %0:2 = call @block(%layer) : (index) -> (tensor<2x5xf32>, tensor<8xbf16>)
  return %0#0, %0#1 : tensor<2x5xf32>, tensor<8xbf16>
}

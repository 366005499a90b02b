// RUN: attune-opt %s --one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" | FileCheck %s

// Rows of a whole tensor are seen where they are.
// CHECK-LABEL: func.func @whole(
// CHECK-NOT:     memref.alloc
// CHECK:         memref.collapse_shape %{{.+}} {{\[\[}}0, 1], [2]] : memref<?x?x8xf32> into memref<?x8xf32>
func.func @whole(%x: tensor<?x?x8xf32>) -> tensor<?x8xf32> {
  %y = attune.flatten_tokens %x : tensor<?x?x8xf32> -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// Those of a slice are not at one distance from each other.
// CHECK-LABEL: func.func @slice(
// CHECK:         %[[S:.+]] = memref.subview
// CHECK:         %[[C:.+]] = memref.alloc(%{{.+}}, %{{.+}}) {{.*}}: memref<?x?x8xf32>
// CHECK:         memref.copy %[[S]], %[[C]]
// CHECK:         memref.collapse_shape %[[C]]
func.func @slice(%x: tensor<?x?x8xf32>, %n: index, %m: index) -> tensor<?x8xf32> {
  %s = tensor.extract_slice %x[0, 1, 0] [%n, %m, 8] [1, 1, 1] : tensor<?x?x8xf32> to tensor<?x?x8xf32>
  %y = attune.flatten_tokens %s : tensor<?x?x8xf32> -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

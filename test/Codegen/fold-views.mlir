// RUN: attune-opt %s --attune-fold-views | FileCheck %s

// Tokens as rows and back: the buffer itself is returned.
// CHECK-LABEL: @back(
// CHECK-SAME:    %[[X:.+]]: memref<?x?x4xf32>, %{{.+}}: index, %{{.+}}: index)
// CHECK:         return %[[X]] : memref<?x?x4xf32>
func.func private @back(%x: memref<?x?x4xf32>, %b: index, %t: index) -> memref<?x?x4xf32> {
  %c4 = arith.constant 4 : index
  %rows = memref.collapse_shape %x [[0, 1], [2]] : memref<?x?x4xf32> into memref<?x4xf32>
  %s = arith.muli %t, %c4 : index
  %y = memref.reinterpret_cast %rows to offset: [0], sizes: [%b, %t, 4], strides: [%s, 4, 1]
     : memref<?x4xf32> to memref<?x?x4xf32>
  return %y : memref<?x?x4xf32>
}

// Another shape is another view.
// CHECK-LABEL: @other(
// CHECK:         %[[Y:.+]] = memref.reinterpret_cast
// CHECK:         return %[[Y]]
func.func private @other(%x: memref<?x?x4xf32>, %n: index) -> memref<?x4xf32> {
  %rows = memref.collapse_shape %x [[0, 1], [2]] : memref<?x?x4xf32> into memref<?x4xf32>
  %y = memref.reinterpret_cast %rows to offset: [0], sizes: [%n, 4], strides: [4, 1]
     : memref<?x4xf32> to memref<?x4xf32>
  return %y : memref<?x4xf32>
}

// A dimension of a view is the size it was made with.
// CHECK-LABEL: @dim(
// CHECK-SAME:    %{{.+}}: memref<?xf32>, %[[N:.+]]: index)
// CHECK-NOT:     memref.dim
// CHECK:         return %[[N]]
func.func private @dim(%x: memref<?xf32>, %n: index) -> index {
  %c0 = arith.constant 0 : index
  %y = memref.reinterpret_cast %x to offset: [0], sizes: [%n], strides: [1] : memref<?xf32> to memref<?xf32>
  %d = memref.dim %y, %c0 : memref<?xf32>
  return %d : index
}

// An entry computed its output in an argument; what it returns nobody uses.
// CHECK-LABEL: func.func @entry(%{{.+}}: memref<8xf32>, %{{.+}}: index) -> index
// CHECK:         return %{{.+}} : index
func.func @entry(%out: memref<8xf32>, %n: index) -> (memref<?xf32>, index) attributes {attune.entry} {
  %cast = memref.cast %out : memref<8xf32> to memref<?xf32>
  return %cast, %n : memref<?xf32>, index
}

// CHECK-LABEL: func.func @no_entry(%{{.+}}: memref<8xf32>) -> memref<8xf32>
func.func @no_entry(%out: memref<8xf32>) -> memref<8xf32> {
  return %out : memref<8xf32>
}

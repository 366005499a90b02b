// RUN: attune-opt %s --attune-positions-outside --split-input-file --verify-diagnostics | FileCheck %s

// Keys of a layer are a view of the cache of all, which a block gets whole.

// CHECK-LABEL: func.func private @block(
// CHECK-SAME:    %[[CACHE:.+]]: memref<?x?x3x2x16xf16>, %[[LAYER:.+]]: index, %[[N:.+]]: index)
func.func private @block(%cache: memref<3x?x2x?x16xf16>, %layer: index, %n: index) {
  // CHECK: %[[ZERO:.+]] = arith.constant 0 : index
  // CHECK: %[[BATCH:.+]] = memref.dim %[[CACHE]], %{{.+}} : memref<?x?x3x2x16xf16>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %batch = memref.dim %cache, %c1 : memref<3x?x2x?x16xf16>
  // CHECK: %[[PART:.+]] = memref.subview %[[CACHE]][0, 0, %[[LAYER]], 0, 0] [%[[BATCH]], %[[N]], 1, 2, 16] [1, 1, 1, 1, 1]
  // CHECK-SAME: to memref<?x?x2x16xf16, strided<[?, 96, 16, 1], offset: ?>>
  // CHECK: %[[KEYS:.+]] = memref.transpose %[[PART]] (d0, d1, d2, d3) -> (d0, d2, d1, d3)
  %keys = memref.subview %cache[%layer, 0, 0, 0, 0] [1, %batch, 2, %n, 16] [1, 1, 1, 1, 1]
    : memref<3x?x2x?x16xf16> to memref<?x2x?x16xf16, strided<[?, ?, 16, 1], offset: ?>>
  // A part of that has the same strides.
  // CHECK: memref.subview %[[KEYS]][0, 1, 0, 0] [1, 1, %[[N]], 16] [1, 1, 1, 1]
  // CHECK-SAME: to memref<?x16xf16, strided<[96, 1], offset: ?>>
  %head = memref.subview %keys[0, 1, 0, 0] [1, 1, %n, 16] [1, 1, 1, 1]
    : memref<?x2x?x16xf16, strided<[?, ?, 16, 1], offset: ?>> to memref<?x16xf16, strided<[16, 1], offset: ?>>
  %zero = arith.constant 0.0 : f16
  // CHECK: memref.store {{.*}} : memref<?x16xf16, strided<[96, 1], offset: ?>>
  memref.store %zero, %head[%c0, %c0] : memref<?x16xf16, strided<[16, 1], offset: ?>>
  // CHECK: memref.dim %[[CACHE]], %c1
  %capacity = memref.dim %cache, %c3 : memref<3x?x2x?x16xf16>
  memref.store %zero, %keys[%c0, %c1, %capacity, %c0] : memref<?x2x?x16xf16, strided<[?, ?, 16, 1], offset: ?>>
  return
}

// CHECK-LABEL: func.func @decode(
// CHECK-SAME:    memref<?x?x3x2x16xf16> {attune.kind = "cache", attune.name = "k", attune.shape = ["batch", "capacity", 3, 2, 16]}
// CHECK-SAME:    memref<2x?x8x4xf32> {attune.kind = "cache", attune.name = "state", attune.shape = [2, "batch", 8, 4]}
func.func @decode(%k: memref<3x?x2x?x16xf16> {attune.kind = "cache", attune.name = "k", attune.shape = [3, "batch", 2, "capacity", 16]},
                  %state: memref<2x?x8x4xf32> {attune.kind = "cache", attune.name = "state", attune.shape = [2, "batch", 8, 4]},
                  %n: index) attributes {attune.entry} {
  %c2 = arith.constant 2 : index
  // CHECK: call @block({{.*}}) : (memref<?x?x3x2x16xf16>, index, index) -> ()
  call @block(%k, %c2, %n) : (memref<3x?x2x?x16xf16>, index, index) -> ()
  return
}

// -----

// All layers of a sequence were side by side; now layers are within positions.

// CHECK-LABEL: func.func @decode_batch(
// CHECK-SAME:    %[[CACHE:.+]]: memref<?x?x3x2x16xf16> {attune.kind = "cache", attune.name = "k", attune.shape = ["batch", "capacity", 3, 2, 16]}
func.func @decode_batch(%k: memref<?x3x2x?x16xf16> {attune.kind = "cache", attune.name = "k", attune.shape = ["batch", 3, 2, "capacity", 16]},
                        %b: index, %layer: index, %at: index) attributes {attune.entry} {
  // CHECK: memref.subview %[[CACHE]][%{{.+}}, %{{.+}}, %{{.+}}, 1, 0] [1, 1, 1, 1, 16]
  // CHECK-SAME: to memref<1x1x1x1x16xf16, strided<[?, 96, 32, 16, 1], offset: ?>>
  // CHECK: memref.transpose %{{.+}} (d0, d1, d2, d3, d4) -> (d0, d2, d3, d1, d4)
  %row = memref.subview %k[%b, %layer, 1, %at, 0] [1, 1, 1, 1, 16] [1, 1, 1, 1, 1]
    : memref<?x3x2x?x16xf16> to memref<1x1x1x1x16xf16, strided<[?, ?, ?, 16, 1], offset: ?>>
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f16
  memref.store %zero, %row[%c0, %c0, %c0, %c0, %c0] : memref<1x1x1x1x16xf16, strided<[?, ?, ?, 16, 1], offset: ?>>
  return
}

// -----

func.func @decode(%k: memref<3x?x2x?x16xf16> {attune.kind = "cache", attune.name = "k", attune.shape = [3, "batch", 2, "capacity", 16]})
    attributes {attune.entry} {
  // expected-error @below {{uses a cache in a way that does not know where its positions lie}}
  %other = memref.collapse_shape %k [[0, 1], [2], [3], [4]] : memref<3x?x2x?x16xf16> into memref<?x2x?x16xf16>
  return
}

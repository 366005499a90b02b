// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-attention-to-online{key-block=256},attune-prefetch-tiles,convert-attune-online-to-vector{lanes=32 rows=12 near-bytes=32768},canonicalize,cse))" | FileCheck %s

// A key and its value are 512 bytes: 64 keys at a time stay in the first-level
// cache from when they are fetched. While keys are met, their values are; the
// first quarter of the next keys while probabilities are made of scores, and
// the others while values are met, three quarters of a key for one in two turns
// (of four rows each).
// CHECK-LABEL: func.func @group(
// CHECK-SAME:    tensor<1x8x1x64xf32>, %[[K:.+]]: tensor<1x1x?x64xf32>, %[[V:.+]]: tensor<1x1x?x64xf32>)
// CHECK:         %[[SCORES:.+]] = bufferization.alloc_tensor() : tensor<8x64xf32>
// CHECK:         scf.for {{.*}} step %c256
// CHECK:           %[[KBLOCK:.+]] = tensor.extract_slice %[[K]]
// CHECK:           %[[VBLOCK:.+]] = tensor.extract_slice %[[V]]
// CHECK:           scf.for {{.*}} step %c64 iter_args(%{{.+}} = %[[SCORES]],
// CHECK:             scf.for {{.*}} to %c32 step %c4
// CHECK:               %[[VALUES:.+]] = bufferization.to_buffer %[[VBLOCK]] read_only
// CHECK-COUNT-8:       memref.prefetch %[[VALUES]]{{.*}} read, locality<3>
// CHECK-NOT:           memref.prefetch
// CHECK:               vector.fma
// The next keys are further on in the block, or behind it.
// CHECK:             %[[MORE:.+]] = arith.select %{{.+}}, %{{.+}}, %{{.+}} : tensor<?x?x?x64xf32>
// CHECK:             math.exp2 {{.*}} : vector<8xf32>
// CHECK:             scf.for
// CHECK:               %[[KEYS:.+]] = bufferization.to_buffer %[[MORE]] read_only
// CHECK-COUNT-16:      memref.prefetch %[[KEYS]]{{.*}} read, locality<3>
// CHECK-NOT:           memref.prefetch
// CHECK:               math.exp2 {{.*}} : vector<32xf32>
// CHECK:             %[[LATER:.+]] = arith.select %{{.+}}, %{{.+}}, %{{.+}} : tensor<?x?x?x64xf32>
// CHECK:             scf.for {{.*}} to %c8 step %c4
// CHECK:               scf.for {{.*}} step %c1 iter_args({{.*}}) -> (vector<32xf32>
// CHECK:                 arith.muli %{{.+}}, %c24
// CHECK:                 %[[OTHERS:.+]] = bufferization.to_buffer %[[LATER]] read_only
// CHECK-COUNT-2:         memref.prefetch %[[OTHERS]]{{.*}} read, locality<3>
// CHECK-NOT:             memref.prefetch
// CHECK:                 vector.fma
// CHECK:         return
func.func @group(%q: tensor<1x8x1x64xf32>, %k: tensor<1x1x?x64xf32>, %v: tensor<1x1x?x64xf32>) -> tensor<1x8x1x64xf32> {
  %y = attune.attention %q, %k, %v scale 0.125 : tensor<1x8x1x64xf32>, tensor<1x1x?x64xf32>, tensor<1x1x?x64xf32> -> tensor<1x8x1x64xf32>
  return %y : tensor<1x8x1x64xf32>
}

// Fewer than 64 keys would stay, which do not pay for the rescaling of sums: a
// block is folded whole, and keys fetch keys, to the same cache.
// CHECK-LABEL: func.func @wide(
// CHECK-SAME:    tensor<1x8x1x128xf32>, %[[K:.+]]: tensor<1x1x?x128xf32>, %[[V:.+]]: tensor<1x1x?x128xf32>)
// CHECK-NOT:     step %c64
// CHECK:         %[[MORE:.+]] = arith.select %{{.+}}, %{{.+}}, %{{.+}} : tensor<?x?x?x128xf32>
// CHECK:         scf.for {{.*}} to %c32 step %c4
// CHECK:           %[[KEYS:.+]] = bufferization.to_buffer %[[MORE]] read_only
// CHECK-COUNT-16:  memref.prefetch %[[KEYS]]{{.*}} read, locality<3>
// CHECK:         math.exp2
// CHECK:         %[[LATER:.+]] = arith.select %{{.+}}, %{{.+}}, %{{.+}} : tensor<?x?x?x128xf32>
// CHECK:         scf.for {{.*}} step %c1 iter_args({{.*}}) -> (vector<32xf32>
// CHECK:           %[[VALUES:.+]] = bufferization.to_buffer %[[LATER]] read_only
// CHECK-COUNT-2:   memref.prefetch %[[VALUES]]{{.*}} read, locality<3>
// CHECK-NOT:       memref.prefetch
// CHECK:         return
func.func @wide(%q: tensor<1x8x1x128xf32>, %k: tensor<1x1x?x128xf32>, %v: tensor<1x1x?x128xf32>) -> tensor<1x8x1x128xf32> {
  %y = attune.attention %q, %k, %v scale 0.125 : tensor<1x8x1x128xf32>, tensor<1x1x?x128xf32>, tensor<1x1x?x128xf32> -> tensor<1x8x1x128xf32>
  return %y : tensor<1x8x1x128xf32>
}

// One row has little to rescale and fetches the same way: four lines of values
// while eight channels of eight keys are met, a whole key while a value is.
// CHECK-LABEL: func.func @single(
// CHECK-SAME:    tensor<1x1x1x128xf32>, %[[K:.+]]: tensor<1x1x?x128xf32>, %[[V:.+]]: tensor<1x1x?x128xf32>)
// CHECK:         %[[VBLOCK:.+]] = tensor.extract_slice %[[V]]
// CHECK:         scf.for {{.*}} step %c64
// CHECK:           scf.for {{.*}} to %c128 step %c8
// CHECK:             %[[VALUES:.+]] = bufferization.to_buffer %[[VBLOCK]] read_only
// CHECK-COUNT-4:     memref.prefetch %[[VALUES]]{{.*}} read, locality<3>
// CHECK-NOT:         memref.prefetch
// CHECK:             vector.fma
// CHECK:           %[[MORE:.+]] = arith.select %{{.+}}, %{{.+}}, %{{.+}} : tensor<?x?x?x128xf32>
// CHECK:           scf.for {{.*}} step %c1 iter_args({{.*}}) -> (vector<32xf32>
// CHECK:             %[[KEYS:.+]] = bufferization.to_buffer %[[MORE]] read_only
// CHECK-COUNT-8:     memref.prefetch %[[KEYS]]{{.*}} read, locality<3>
// CHECK-NOT:         memref.prefetch
// CHECK:         return
func.func @single(%q: tensor<1x1x1x128xf32>, %k: tensor<1x1x?x128xf32>, %v: tensor<1x1x?x128xf32>) -> tensor<1x1x1x128xf32> {
  %y = attune.attention %q, %k, %v scale 0.125 : tensor<1x1x1x128xf32>, tensor<1x1x?x128xf32>, tensor<1x1x?x128xf32> -> tensor<1x1x1x128xf32>
  return %y : tensor<1x1x1x128xf32>
}

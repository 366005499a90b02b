// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-attention-to-online,attune-prefetch-tiles,convert-attune-online-to-vector))" | FileCheck %s
// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-attention-to-online,attune-prefetch-tiles,convert-attune-online-to-vector,canonicalize,cse), \
// RUN:   one-shot-bufferize{bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map},canonicalize,cse,canonicalize)" | FileCheck %s --check-prefix=BUFFERS

// Queries are packed once, before the loop over keys; keys and values in it.
// CHECK-LABEL: func.func @causal(
// CHECK-NOT:     attune.
// CHECK-NOT:     linalg.
// CHECK:         scf.forall
// CHECK:           %[[QUERIES:.+]] = bufferization.alloc_tensor() : tensor<16x6x64xf32>
// CHECK:           bufferization.alloc_tensor() : tensor<16x64x16xf32>
// CHECK:           bufferization.alloc_tensor() : tensor<3x256x16xf32>
// CHECK:           bufferization.alloc_tensor() : tensor<16x256xf32>
// CHECK:           scf.for {{.*}} iter_args(%{{.+}} = %[[QUERIES]])
// CHECK:           scf.for {{.*}} step %c256
// CHECK:             scf.if
// CHECK:               memref.prefetch
// CHECK:             } else {
// CHECK:             vector.shuffle
// CHECK-COUNT-6:     vector.fma
// CHECK:             scf.if
// CHECK:             math.exp2 %{{.+}} : vector<8xf32>
// CHECK-COUNT-6:     math.exp2 %{{.+}} : vector<16xf32>
// CHECK-NOT:     attune.
// CHECK-NOT:     math.exp {{.*}} : f32

// Bufferization finds a place for everything: the result, and scratch of static
// size; nothing is copied.
// BUFFERS-LABEL: func.func @causal(
// BUFFERS-NOT:     memref.copy
// BUFFERS:         memref.alloc(%{{.+}}, %{{.+}}) {{.*}} : memref<?x1x?x40xf32>
// BUFFERS:         scf.forall
// BUFFERS-NOT:     memref.alloc(%
// BUFFERS-NOT:     memref.copy
// BUFFERS:         return
func.func @causal(%q: tensor<?x1x?x64xf32>, %k: tensor<?x1x?x64xf32>, %v: tensor<?x1x?x40xf32>) -> tensor<?x1x?x40xf32> {
  %y = attune.attention %q, %k, %v scale 0.125 causal <bottom_right>
    : tensor<?x1x?x64xf32>, tensor<?x1x?x64xf32>, tensor<?x1x?x40xf32> -> tensor<?x1x?x40xf32>
  return %y : tensor<?x1x?x40xf32>
}

// BUFFERS-LABEL: func.func @everything(
// BUFFERS-NOT:     memref.copy
// BUFFERS:         scf.forall
// BUFFERS-NOT:     memref.alloc(%
// BUFFERS-NOT:     memref.copy
// BUFFERS:         return
func.func @everything(%q: tensor<?x4x?x24xf16>, %k: tensor<?x2x?x24xf16>, %mask: tensor<?x1x1x?xi1>, %bias: tensor<1x4x?x?xf32>,
                      %slopes: tensor<4xf32>, %sinks: tensor<4xf32>) -> (tensor<?x4x?x24xf16>, tensor<?x4x?xf32>) {
  %y, %lse = attune.attention %q, %k, %k scale 0.125 mask %mask : tensor<?x1x1x?xi1> bias %bias : tensor<1x4x?x?xf32>
      slopes %slopes : tensor<4xf32> sinks %sinks : tensor<4xf32> causal <top_left> window 40 softcap 30.0
    : tensor<?x4x?x24xf16>, tensor<?x2x?x24xf16>, tensor<?x2x?x24xf16> -> tensor<?x4x?x24xf16> lse tensor<?x4x?xf32>
  return %y, %lse : tensor<?x4x?x24xf16>, tensor<?x4x?xf32>
}

// Few rows need no panels. Two rows meet four keys at a time, and each key is
// fetched while others are multiplied; then products become scores, and each
// value is loaded once for two rows, four values in a turn of the loop.
// CHECK-LABEL: func.func @decode(
// CHECK:         scf.forall
// CHECK:           scf.for {{.*}} step %c256
// CHECK:             scf.for {{.*}} step %c2
// CHECK:               scf.for {{.*}} step %c4
// CHECK:                 memref.prefetch {{.*}} read, locality<2>
// CHECK-COUNT-8:           vector.fma {{.*}} : vector<8xf32>
// CHECK:                 vector.shuffle
// CHECK:                 vector.transfer_write {{.*}} : vector<4xf32>, tensor<6x256xf32>
// CHECK:             scf.for {{.*}} step %c2
// CHECK-COUNT-2:       math.exp2 {{.*}} : vector<16xf32>
// CHECK:             scf.for {{.*}} step %c32
// CHECK:               scf.for {{.*}} step %c2
// CHECK:                 memref.prefetch {{.*}} read, locality<2>
// CHECK-COUNT-16:        vector.fma {{.*}} : vector<16xf32>
// CHECK:               scf.for {{.*}} step %c1
// CHECK-COUNT-4:         vector.fma {{.*}} : vector<16xf32>
func.func @decode(%q: tensor<1x4x1x64xf32>, %k: tensor<1x2x?x64xf32>, %v: tensor<1x2x?x64xf32>) -> tensor<1x4x1x64xf32> {
  %y = attune.attention %q, %k, %v scale 0.125 causal <bottom_right>
    : tensor<1x4x1x64xf32>, tensor<1x2x?x64xf32>, tensor<1x2x?x64xf32> -> tensor<1x4x1x64xf32>
  return %y : tensor<1x4x1x64xf32>
}

// A value of 16 channels is one line, and no more are fetched for four of them,
// though there are registers for the sums of 32.
// CHECK-LABEL: func.func @narrow_values(
// CHECK:         math.exp2
// CHECK:         scf.for {{.*}} step %c128
// CHECK:           scf.for {{.*}} step %c2
// CHECK-COUNT-4:     memref.prefetch {{.*}} read, locality<2>
// CHECK-NOT:         memref.prefetch
// CHECK-COUNT-8:     vector.fma {{.*}} : vector<16xf32>
// CHECK-NOT:         vector.fma
// CHECK:           scf.for {{.*}} step %c1
// CHECK-COUNT-2:     vector.fma {{.*}} : vector<16xf32>
// CHECK-NOT:         vector.fma
// CHECK:         return
func.func @narrow_values(%q: tensor<1x4x1x16xf32>, %k: tensor<1x2x?x16xf32>, %v: tensor<1x2x?x16xf32>) -> tensor<1x4x1x16xf32> {
  %y = attune.attention %q, %k, %v scale 0.25 causal <bottom_right>
    : tensor<1x4x1x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32> -> tensor<1x4x1x16xf32>
  return %y : tensor<1x4x1x16xf32>
}

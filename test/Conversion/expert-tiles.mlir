// Matrices of a stack, and rows in an order: from nests on tensors to nests on
// memory, and to vectors there.
// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{lanes=8 rows=4},attune-prefetch-tiles),canonicalize,cse, \
// RUN:   one-shot-bufferize{bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map},canonicalize,cse,canonicalize)" | tee %t.mlir \
// RUN:   | FileCheck %s --implicit-check-not=memref.copy
// RUN: attune-opt %t.mlir --pass-pipeline="builtin.module(func.func(convert-attune-product-to-vector),canonicalize,cse)" | FileCheck %s --check-prefix=VECTOR
// The same numbers on tensors and after each step of them.
// RUN: attune-opt %s --attune-validate=verbose,lengths=1/4/5/19 --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{lanes=8 rows=4},attune-prefetch-tiles),canonicalize, \
// RUN:   one-shot-bufferize{bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map},func.func(convert-attune-product-to-vector))" -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=SAME --implicit-check-not=error
// SAME-COUNT-3: after convert-attune-to-vector, @{{.*}} is the same
// SAME-COUNT-3: after convert-attune-product-to-vector, @{{.*}} is the same

// An expert's rows go to a tile of the hidden layer. The rows of a task are
// anywhere; what is fetched meanwhile is the next task's.
// CHECK-LABEL: func.func @experts(
// CHECK:         scf.forall
// CHECK:           attune.packed_product %{{.+}} of 20 matrix %[[E:.+]] by %{{.+}} bias %{{.+}} : memref<6x40xf32> activation <quick_gelu> gated limit 7.000000e+00 up_offset 1.000000e+00 tile [4, 1] prefetch %{{.+}} next_matrix %{{.+}} outs(
// CHECK:         scf.forall
// CHECK:           attune.packed_product %{{.+}} of 12 matrix %{{.+}} bias %{{.+}} : memref<6x12xf32> tile [4, 1] prefetch %{{.+}} next_matrix %{{.+}} outs(
// VECTOR-LABEL: func.func @experts(
// VECTOR-NOT:     attune.packed_product
// VECTOR:         scf.forall
// VECTOR:           memref.prefetch
// VECTOR:           vector.fma
func.func @experts(%x: tensor<?x12xf32>, %e: tensor<?x2xi64>, %w: tensor<?x2xf32>, %up: tensor<6x6x12x8xf32>, %down: tensor<6x2x20x8xf32>, %b: tensor<6x40xf32>, %c: tensor<6x12xf32>) -> tensor<?x12xf32> {
  %y = attune.moe %x, %e, %w, %up, %down up_bias %b : tensor<6x40xf32> down_bias %c : tensor<6x12xf32>
     gated activation <quick_gelu> limit 7.0 up_offset 1.0
     : tensor<?x12xf32>, tensor<?x2xi64>, tensor<?x2xf32>, tensor<6x6x12x8xf32>, tensor<6x2x20x8xf32> -> tensor<?x12xf32>
  return %y : tensor<?x12xf32>
}

// Bytes have the scales of their own rows.
// CHECK-LABEL: func.func @bytes(
// CHECK:           attune.packed_product %{{.+}} of 32 matrix %{{.+}} by %{{.+}} : {{.+}} scales %{{.+}} : memref<?x1xf32>, memref<?x1xi32>, memref<4x4x1x8xf32> activation <relu> tile [4, 1] prefetch
// VECTOR-LABEL: func.func @bytes(
// VECTOR-NOT:     attune.packed_product
// VECTOR:         arith.sitofp
func.func @bytes(%f: tensor<?x32xf32>, %e: tensor<?x2xi64>, %w: tensor<?x2xf32>, %up: tensor<4x4x8x32xi8>, %us: tensor<4x4x1x8xf32>, %down: tensor<4x2x8x32xi8>, %ds: tensor<4x2x1x8xf32>) -> tensor<?x16xf32> {
  %x, %s, %n = attune.quantize_rows %f group 32 : tensor<?x32xf32> -> tensor<?x32xi8>, tensor<?x1xf32>, tensor<?x1xi32>
  %y = attune.quantized_moe %x scales %s sums %n, %e, %w, %up scales %us, %down scales %ds hidden 32 activation <relu>
     : (tensor<?x32xi8>, tensor<?x1xf32>, tensor<?x1xi32>), tensor<?x2xi64>, tensor<?x2xf32>, (tensor<4x4x8x32xi8>, tensor<4x4x1x8xf32>), (tensor<4x2x8x32xi8>, tensor<4x2x1x8xf32>) -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}

// A matrix for each head.
// CHECK-LABEL: func.func @heads(
// CHECK:         scf.forall
// CHECK:           attune.packed_product %{{.+}}[%c0], %{{.+}} of 20 matrix %{{.+}} tile [4, 1] outs(
// VECTOR-LABEL: func.func @heads(
// VECTOR-NOT:     attune.packed_product
func.func @heads(%x: tensor<?x4x?x12xf32>, %w: tensor<4x3x12x8xf32>) -> tensor<?x4x?x20xf32> {
  %y = attune.head_linear %x, %w : tensor<?x4x?x12xf32>, tensor<4x3x12x8xf32> -> tensor<?x4x?x20xf32>
  return %y : tensor<?x4x?x20xf32>
}

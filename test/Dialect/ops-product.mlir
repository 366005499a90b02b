// RUN: attune-opt %s | FileCheck %s
// RUN: attune-opt %s --mlir-print-op-generic | attune-opt | FileCheck %s

// CHECK-LABEL: @tile(
func.func @tile(%x: tensor<?x64xf32>, %w: tensor<48x64x16xf32>, %b: tensor<768xf32>, %d: tensor<?x?xf32>, %i: index, %p: index, %count: index) -> tensor<?x?xf32> {
  // CHECK: attune.packed_product %{{.+}}[%{{.+}}], %{{.+}}[%{{.+}}, %{{.+}}] of 768 bias %{{.+}} : tensor<768xf32> activation <gelu_tanh> tile [6, 1] outs(%{{.+}} : tensor<?x?xf32>) : tensor<?x64xf32>, tensor<48x64x16xf32> -> tensor<?x?xf32>
  %y = attune.packed_product %x[%i], %w[%p, %count] of 768
     bias %b : tensor<768xf32> activation <gelu_tanh> tile [6, 1]
     outs(%d : tensor<?x?xf32>)
     : tensor<?x64xf32>, tensor<48x64x16xf32> -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}

// CHECK-LABEL: @buffers(
func.func @buffers(%x: memref<?x64xf32>, %w: memref<48x64x16xf32>, %d: memref<?x?xf32>, %i: index, %p: index, %count: index, %b: index, %B: index, %next: index) {
  // CHECK: attune.packed_product %{{.+}}[%{{.+}}], %{{.+}}[%{{.+}}, %{{.+}}] of 768 part %{{.+}} of %{{.+}} residual tile [6, 2] prefetch %{{.+}} outs(%{{.+}} : memref<?x?xf32>) : memref<?x64xf32>, memref<48x64x16xf32>
  attune.packed_product %x[%i], %w[%p, %count] of 768 part %b of %B residual
     tile [6, 2] prefetch %next outs(%d : memref<?x?xf32>)
     : memref<?x64xf32>, memref<48x64x16xf32>
  return
}

// Of bytes, and of rows with scales and copies.
// CHECK-LABEL: @bytes(
func.func @bytes(%x: tensor<?x64xi8>, %s: tensor<?x2xf32>, %n: tensor<?x2xi32>, %w: tensor<8x16x64xi8>, %t: tensor<8x2x16xf32>, %d: tensor<?x?xbf16>, %i: index) -> tensor<?x?xbf16> {
  // CHECK: scales %{{.+}}, %{{.+}}, %{{.+}} : tensor<?x2xf32>, tensor<?x2xi32>, tensor<8x2x16xf32> activation <silu> gated scale 5.000000e-01 tile [3, 1]
  %y = attune.packed_product %x[%i], %w[%i, %i] of 64
     scales %s, %n, %t : tensor<?x2xf32>, tensor<?x2xi32>, tensor<8x2x16xf32>
     activation <silu> gated scale 0.5 tile [3, 1] outs(%d : tensor<?x?xbf16>)
     : tensor<?x64xi8>, tensor<8x16x64xi8> -> tensor<?x?xbf16>
  return %y : tensor<?x?xbf16>
}

// CHECK-LABEL: @norm(
func.func @norm(%x: tensor<?x64xbf16>, %r: tensor<?xf32>, %c: tensor<?x64xbf16>, %w: tensor<4x32x32xbf16>, %d: tensor<?x?xf32>, %i: index) -> tensor<?x?xf32> {
  // CHECK: rms_eps 9.99999974E-6 row_scales %{{.+}} : tensor<?xf32> rest %{{.+}}[%{{.+}}] : tensor<?x64xbf16> tile [6, 2]
  %y = attune.packed_product %x[%i], %w[%i, %i] of 64
     rms_eps 1.0e-5 row_scales %r : tensor<?xf32>
     rest %c[%i] : tensor<?x64xbf16> tile [6, 2] outs(%d : tensor<?x?xf32>)
     : tensor<?x64xbf16>, tensor<4x32x32xbf16> -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}

// A matrix of a stack, for rows in an order.
// CHECK-LABEL: @stack(
func.func @stack(%x: memref<?x64xf32>, %w: memref<8x48x64x16xf32>, %order: memref<?xi64>, %d: memref<?x?xf32>, %i: index, %p: index, %count: index, %e: index, %next: index, %f: index) {
  // CHECK: attune.packed_product %{{.+}}[%{{.+}}], %{{.+}}[%{{.+}}, %{{.+}}] of 768 matrix %{{.+}} by %{{.+}} : memref<?xi64> tile [6, 1] prefetch %{{.+}} next_matrix %{{.+}} outs(%{{.+}} : memref<?x?xf32>) : memref<?x64xf32>, memref<8x48x64x16xf32>
  attune.packed_product %x[%i], %w[%p, %count] of 768 matrix %e
     by %order : memref<?xi64> tile [6, 1] prefetch %next next_matrix %f
     outs(%d : memref<?x?xf32>) : memref<?x64xf32>, memref<8x48x64x16xf32>
  return
}

// CHECK-LABEL: @limits(
func.func @limits(%x: tensor<?x64xf32>, %w: tensor<8x64x16xf32>, %d: tensor<?x?xf32>, %i: index) -> tensor<?x?xf32> {
  // CHECK: activation <quick_gelu> gated limit 7.000000e+00 up_offset 1.000000e+00 tile [6, 1]
  %y = attune.packed_product %x[%i], %w[%i, %i] of 64
     activation <quick_gelu> gated limit 7.0 up_offset 1.0 tile [6, 1]
     outs(%d : tensor<?x?xf32>)
     : tensor<?x64xf32>, tensor<8x64x16xf32> -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}

// A tile of rows that an iteration takes one after the other.
// CHECK-LABEL: @rows(
func.func @rows(%x: tensor<?x64xf32>, %w: tensor<48x64x16xf32>, %d: tensor<6x?xf32>, %i: index, %p: index, %count: index, %r: index, %R: index) -> tensor<6x?xf32> {
  // CHECK: attune.packed_product %{{.+}}[%{{.+}}], %{{.+}}[%{{.+}}, %{{.+}}] of 768 tile [6, 1] rows %{{.+}} of %{{.+}} whole outs(%{{.+}} : tensor<6x?xf32>)
  %y = attune.packed_product %x[%i], %w[%p, %count] of 768 tile [6, 1]
     rows %r of %R whole outs(%d : tensor<6x?xf32>)
     : tensor<?x64xf32>, tensor<48x64x16xf32> -> tensor<6x?xf32>
  return %y : tensor<6x?xf32>
}

// Rows of numbers against a panel of 4 bits with scales and zero points.
// CHECK-LABEL: @numbers(
func.func @numbers(%x: tensor<?x64xf32>, %w: tensor<4x8x64xi8>, %t: tensor<4x4x16xf16>, %d: tensor<?x?xf32>, %i: index) -> tensor<?x?xf32> {
  // CHECK: of 64 scales %{{.+}} : tensor<4x4x16xf16> zeros tile [6, 1] outs
  %y = attune.packed_product %x[%i], %w[%i, %i] of 64
     scales %t : tensor<4x4x16xf16> zeros tile [6, 1] outs(%d : tensor<?x?xf32>)
     : tensor<?x64xf32>, tensor<4x8x64xi8> -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}

// RUN: attune-opt %s | attune-opt | FileCheck %s

// CHECK-LABEL: @linear_into(
// CHECK: attune.linear_into %{{.+}}, %{{.+}} into %{{.+}} activation <silu> gated :
func.func @linear_into(%x: tensor<?x64xf32>, %w: tensor<24x64x8xbf16>, %d: tensor<?x96xf32>) -> tensor<?x96xf32> {
    %y = attune.linear_into %x, %w into %d activation <silu> gated
       : tensor<?x64xf32>, tensor<24x64x8xbf16>, tensor<?x96xf32>
       -> tensor<?x96xf32>
  return %y : tensor<?x96xf32>
}

// CHECK-LABEL: @on_buffers(
// CHECK: attune.linear_into %{{.+}}, %{{.+}} bias %{{.+}} : memref<16xf32> into %{{.+}} residual scale 5.000000e-01 :
func.func @on_buffers(%x: memref<?x64xf32>, %w: memref<2x64x8xf32>, %b: memref<16xf32>, %d: memref<?x16xf32>) {
  attune.linear_into %x, %w bias %b : memref<16xf32> into %d residual scale 0.5
    : memref<?x64xf32>, memref<2x64x8xf32>, memref<?x16xf32>
  return
}

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

// CHECK-LABEL: @attention_into(
// CHECK: attune.attention_into %{{.+}}, %{{.+}}, %{{.+}} scale 1.250000e-01 causal <bottom_right> into %{{.+}} :
func.func @attention_into(%q: tensor<1x8x?x64xbf16>, %k: tensor<1x2x?x64xbf16>, %v: tensor<1x2x?x64xbf16>, %d: tensor<1x8x?x64xbf16>) -> tensor<1x8x?x64xbf16> {
    %r = attune.attention_into %q, %k, %v scale 1.250000e-01
       causal <bottom_right> into %d
       : tensor<1x8x?x64xbf16>, tensor<1x2x?x64xbf16>, tensor<1x2x?x64xbf16>,
         tensor<1x8x?x64xbf16> -> tensor<1x8x?x64xbf16>
  return %r : tensor<1x8x?x64xbf16>
}

// CHECK-LABEL: @attention_on_buffers(
// CHECK: attune.attention_into %{{.+}} mask %{{.+}} : memref<1x1x1x?xi1> lengths %{{.+}} : memref<1xi64> bias {{.+}} diagonals {{.+}} slopes {{.+}} sinks {{.+}} window 5 softcap 3.000000e+01 split_keys into %{{.+}} lse %{{.+}} : memref<1x4x?xf32> :
func.func @attention_on_buffers(%q: memref<1x4x?x32xf32>, %k: memref<1x4x?x32xf32>, %v: memref<1x4x?x16xf32>, %mask: memref<1x1x1x?xi1>, %n: memref<1xi64>, %bias: memref<1x4x1x?xf32>, %diagonals: memref<4x?xf32>, %per: memref<4xf32>, %d: memref<1x4x?x16xf32>, %lse: memref<1x4x?xf32>) {
  attune.attention_into %q, %k, %v scale 0.25 mask %mask : memref<1x1x1x?xi1> lengths %n : memref<1xi64>
    bias %bias : memref<1x4x1x?xf32> diagonals %diagonals : memref<4x?xf32> slopes %per : memref<4xf32> sinks %per : memref<4xf32>
    window 5 softcap 30.0 split_keys into %d lse %lse : memref<1x4x?xf32>
    : memref<1x4x?x32xf32>, memref<1x4x?x32xf32>, memref<1x4x?x16xf32>, memref<1x4x?x16xf32>
  return
}

// CHECK-LABEL: @attention_in_blocks(
// CHECK: attune.attention_into %{{.+}} blocks %{{.+}} of [64, 64] : memref<1x1x?x?xi1> into
func.func @attention_in_blocks(%q: memref<1x4x?x32xf32>, %blocks: memref<1x1x?x?xi1>, %d: memref<1x4x?x32xf32>) {
  attune.attention_into %q, %q, %q scale 0.25 blocks %blocks of [64, 64] : memref<1x1x?x?xi1> into %d
    : memref<1x4x?x32xf32>, memref<1x4x?x32xf32>, memref<1x4x?x32xf32>, memref<1x4x?x32xf32>
  return
}

// CHECK-LABEL: @num_threads(
// CHECK: attune.num_threads
func.func @num_threads() -> index {
    %threads = attune.num_threads
  return %threads : index
}

// CHECK-LABEL: @successor(
// CHECK: scf.forall (%[[I:.+]]) in
// CHECK: attune.successor %[[I]]
func.func @successor(%x: memref<?xf32>, %n: index) {
    scf.forall (%i) in (%n) {
      %j = attune.successor %i
      memref.prefetch %x[%j], read, locality<2>, data : memref<?xf32>
    }
  return
}

// CHECK-LABEL: @bytes_into
func.func @bytes_into(%x: tensor<?x64xi8>, %w: tensor<2x16x32xi8>, %d: tensor<?x16xi32>) -> tensor<?x16xi32> {
  // CHECK: attune.linear_into %{{.+}}, %{{.+}} into %{{.+}} residual : tensor<?x64xi8>, tensor<2x16x32xi8>, tensor<?x16xi32>
  %y = attune.linear_into %x, %w into %d residual : tensor<?x64xi8>, tensor<2x16x32xi8>, tensor<?x16xi32> -> tensor<?x16xi32>
  return %y : tensor<?x16xi32>
}

// CHECK-LABEL: @quantized_into
func.func @quantized_into(%x: tensor<?x64xf32>, %w: tensor<12x8x32xi8>, %t: tensor<12x4x8xf16>, %d: tensor<?x96xf32>) -> tensor<?x96xf32> {
  // CHECK: attune.quantized_linear_into %{{.+}}, %{{.+}} scales %{{.+}} zeros into %{{.+}} activation <silu> residual :
  %y = attune.quantized_linear_into %x, %w scales %t zeros into %d activation <silu> residual
    : tensor<?x64xf32>, tensor<12x8x32xi8>, tensor<12x4x8xf16>, tensor<?x96xf32> -> tensor<?x96xf32>
  return %y : tensor<?x96xf32>
}

// CHECK-LABEL: @quantized_into_example
func.func @quantized_into_example(%x: tensor<?x64xf32>, %w: tensor<12x8x32xi8>, %t: tensor<12x2x8xf16>, %d: tensor<?x96xf32>) -> tensor<?x96xf32> {
    // CHECK: attune.quantized_linear_into %{{.+}}, %{{.+}} scales %{{.+}} into
    %y = attune.quantized_linear_into %x, %w scales %t into %d
       : tensor<?x64xf32>, tensor<12x8x32xi8>, tensor<12x2x8xf16>,
         tensor<?x96xf32> -> tensor<?x96xf32>
  return %y : tensor<?x96xf32>
}

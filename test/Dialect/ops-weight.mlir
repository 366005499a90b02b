// RUN: attune-opt %s | FileCheck %s
// RUN: attune-opt %s --mlir-print-op-generic | attune-opt | FileCheck %s

// CHECK: attune.weight @h.qkv stacked : tensor<12x2304x768xf32> from [#attune.source<"h.{i}.attn.c_attn.weight", transposed>]
attune.weight @h.qkv stacked : tensor<12x2304x768xf32>
    from [#attune.source<"h.{i}.attn.c_attn.weight", transposed>]
// CHECK: attune.weight @qkv : tensor<12x4xbf16> from [#attune.source<"q">, #attune.source<"kv", rows = 0 to 4>, #attune.source<"kv", transposed, rows = 4 to 8>]
attune.weight @qkv : tensor<12x4xbf16>
    from [#attune.source<"q">, #attune.source<"kv", rows = 0 to 4>,
          #attune.source<"kv", transposed, rows = 4 to 8>]
// CHECK: attune.weight @q : tensor<768x768xf32> from [#attune.source<"h.{i}.attn.c_attn.weight", transposed, rows = 0 to 768>]
attune.weight @q : tensor<768x768xf32>
    from [#attune.source<"h.{i}.attn.c_attn.weight", transposed, rows = 0 to 768>]
// CHECK: attune.weight @gate_up gated panels 16 : tensor<4x8x16xf32> from [#attune.source<"gate">, #attune.source<"up">]
attune.weight @gate_up gated panels 16 : tensor<4x8x16xf32>
    from [#attune.source<"gate">, #attune.source<"up">]
// CHECK: attune.weight @norm : tensor<8xf32> from [#attune.source<"norm">]{{$}}
attune.weight @norm : tensor<8xf32> from [#attune.source<"norm">]
// CHECK: attune.weight @normed panels 16 : tensor<2x8x16xf32> from [#attune.source<"w">] gain @norm gain_offset 1.000000e+00
attune.weight @normed panels 16 : tensor<2x8x16xf32> from [#attune.source<"w">]
    gain @norm gain_offset 1.0

// CHECK-LABEL: @get(
func.func @get(%layer: index) -> (tensor<2304x768xf32>, tensor<12x4xbf16>) {
  // CHECK: attune.weight_get @h.qkv[%{{.+}}] : tensor<2304x768xf32>
  %w = attune.weight_get @h.qkv[%layer] : tensor<2304x768xf32>
  // CHECK: attune.weight_get @qkv : tensor<12x4xbf16>
  %v = attune.weight_get @qkv : tensor<12x4xbf16>
  return %w, %v : tensor<2304x768xf32>, tensor<12x4xbf16>
}

// CHECK: attune.weight @h.moe.down stacked parts 8 : tensor<32x8x4096x14336xbf16> from [#attune.source<"h.{i}.experts.{e}.down.weight">]
attune.weight @h.moe.down stacked parts 8 : tensor<32x8x4096x14336xbf16>
    from [#attune.source<"h.{i}.experts.{e}.down.weight">]
// CHECK: attune.weight @kv_b parts 4 : tensor<4x16x24xf32> from [#attune.source<"kv_b", rows = 12 to 28, step = 28>]
attune.weight @kv_b parts 4 : tensor<4x16x24xf32>
    from [#attune.source<"kv_b", rows = 12 to 28, step = 28>]

// CHECK-LABEL: @view(
func.func @view(%bytes: memref<?xi8>, %layer: index) {
  // CHECK: attune.weight_view @h.qkv of %{{.+}}[%{{.+}}] at 3072 stride 7077888 : memref<?xi8> to memref<2304x768xf32>
  %w = attune.weight_view @h.qkv of %bytes[%layer] at 3072 stride 7077888
     : memref<?xi8> to memref<2304x768xf32>
  // CHECK: attune.weight_view @qkv of %{{.+}} at 64 : memref<?xi8> to memref<12x4xbf16>
  %v = attune.weight_view @qkv of %bytes at 64 : memref<?xi8> to memref<12x4xbf16>
  return
}

// RUN: attune-opt %s --attune-pack-weights="panel-width=8 pairs wide-inputs" | FileCheck %s

// A CPU that widens pairs reads them with f32 to multiply, too: the layout is
// the one that other CPUs want. An odd depth has no pairs, nor has f32.
// CHECK: attune.weight @mixed panels 8 : tensor<1x6x16xbf16>
// CHECK: attune.weight @odd panels 8 : tensor<1x11x8xbf16>
// CHECK: attune.weight @wide panels 8 : tensor<1x12x8xf32>
attune.weight @mixed : tensor<8x12xbf16> from [#attune.source<"mixed">]
attune.weight @odd : tensor<8x11xbf16> from [#attune.source<"odd">]
attune.weight @wide : tensor<8x12xf32> from [#attune.source<"wide">]
// CHECK: attune.linear {{.+}} : tensor<?x12xf32>, tensor<1x6x16xbf16> -> tensor<?x8xf32>
func.func @plain(%x: tensor<?x12xf32>, %o: tensor<?x11xf32>)
    -> (tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>) {
  %mixed = attune.weight_get @mixed : tensor<8x12xbf16>
  %odd = attune.weight_get @odd : tensor<8x11xbf16>
  %wide = attune.weight_get @wide : tensor<8x12xf32>
  %0 = attune.linear %x, %mixed : tensor<?x12xf32>, tensor<8x12xbf16> -> tensor<?x8xf32>
  %1 = attune.linear %o, %odd : tensor<?x11xf32>, tensor<8x11xbf16> -> tensor<?x8xf32>
  %2 = attune.linear %x, %wide : tensor<?x12xf32>, tensor<8x12xf32> -> tensor<?x8xf32>
  return %0, %1, %2 : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>
}

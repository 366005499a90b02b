// RUN: attune-opt %s --attune-decompose-ffn | FileCheck %s

// CHECK-LABEL: @plain(
// CHECK:         %[[H:.+]] = attune.linear %{{.+}}, %{{.+}} bias %{{.+}} : tensor<3072xf32> activation <gelu> : tensor<?x?x768xf32>, tensor<3072x768xf32> -> tensor<?x?x3072xf32>
// CHECK-NEXT:    attune.linear %[[H]], %{{.+}} bias %{{.+}} : tensor<768xf32> residual %{{.+}} : tensor<?x?x768xf32> : tensor<?x?x3072xf32>, tensor<768x3072xf32> -> tensor<?x?x768xf32>
// CHECK-NOT:     attune.ffn
func.func @plain(%x: tensor<?x?x768xf32>, %r: tensor<?x?x768xf32>, %w1: tensor<3072x768xf32>, %w2: tensor<768x3072xf32>,
                 %b1: tensor<3072xf32>, %b2: tensor<768xf32>) -> tensor<?x?x768xf32> {
  %y = attune.ffn %x, %w1, %w2 up_bias %b1 : tensor<3072xf32> down_bias %b2 : tensor<768xf32>
      residual %r : tensor<?x?x768xf32> activation <gelu>
      : tensor<?x?x768xf32>, tensor<3072x768xf32>, tensor<768x3072xf32> -> tensor<?x?x768xf32>
  return %y : tensor<?x?x768xf32>
}

// The hidden layer is f32 even between 16-bit activations.
// CHECK-LABEL: @gated(
// CHECK:         %[[H:.+]] = attune.linear %{{.+}}, %{{.+}} activation <silu> gated : tensor<?x?x128xbf16>, tensor<576x128xbf16> -> tensor<?x?x288xf32>
// CHECK-NEXT:    attune.linear %[[H]], %{{.+}} : tensor<?x?x288xf32>, tensor<128x288xbf16> -> tensor<?x?x128xbf16>
// CHECK-NOT:     attune.gated_ffn
func.func @gated(%x: tensor<?x?x128xbf16>, %w1: tensor<576x128xbf16>, %w2: tensor<128x288xbf16>) -> tensor<?x?x128xbf16> {
  %y = attune.gated_ffn %x, %w1, %w2 activation <silu>
      : tensor<?x?x128xbf16>, tensor<576x128xbf16>, tensor<128x288xbf16> -> tensor<?x?x128xbf16>
  return %y : tensor<?x?x128xbf16>
}

// Packed panels: the width of the hidden layer is the depth of the down panels.
// CHECK-LABEL: @panels(
// CHECK:         attune.linear {{.+}} : tensor<?x?x128xf32>, tensor<18x128x32xf32> -> tensor<?x?x288xf32>
// CHECK-NEXT:    attune.linear {{.+}} : tensor<?x?x288xf32>, tensor<4x288x32xf32> -> tensor<?x?x128xf32>
func.func @panels(%x: tensor<?x?x128xf32>, %w1: tensor<18x128x32xf32>, %w2: tensor<4x288x32xf32>) -> tensor<?x?x128xf32> {
  %y = attune.gated_ffn %x, %w1, %w2 activation <silu>
      : tensor<?x?x128xf32>, tensor<18x128x32xf32>, tensor<4x288x32xf32> -> tensor<?x?x128xf32>
  return %y : tensor<?x?x128xf32>
}

// CHECK-LABEL: @no_op(
// CHECK-NEXT:    attune.linear
// CHECK-NEXT:    return
func.func @no_op(%x: tensor<2x4xf32>, %w: tensor<3x4xf32>) -> tensor<2x3xf32> {
  %y = attune.linear %x, %w : tensor<2x4xf32>, tensor<3x4xf32> -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

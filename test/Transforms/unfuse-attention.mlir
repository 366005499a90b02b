// RUN: attune-opt %s --attune-unfuse-attention --split-input-file | FileCheck %s

// CHECK-LABEL: @plain(
// CHECK-SAME:    %[[Q:[a-z0-9]+]]: {{[^,]+}}, %[[K:[a-z0-9]+]]: {{[^,]+}}, %[[V:[a-z0-9]+]]: {{[^,]+}})
// CHECK-NOT:     attune.mask_scores
// CHECK:         %[[E:.+]] = attune.similarity %[[Q]], %[[K]] scale 1.250000e-01 : tensor<1x8x4x64xf32>, tensor<1x2x?x64xf32> -> tensor<1x8x4x?xf32>
// CHECK-NEXT:    %[[A:.+]] = attune.softmax %[[E]] :
// CHECK-NEXT:    %[[Y:.+]] = attune.weighted_sum %[[A]], %[[V]] : tensor<1x8x4x?xf32>, tensor<1x2x?x48xf32> -> tensor<1x8x4x48xf32>
// CHECK-NEXT:    return %[[Y]]
func.func @plain(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x?x64xf32>, %v: tensor<1x2x?x48xf32>) -> tensor<1x8x4x48xf32> {
  %r = attune.attention %q, %k, %v scale 0.125 : tensor<1x8x4x64xf32>, tensor<1x2x?x64xf32>, tensor<1x2x?x48xf32> -> tensor<1x8x4x48xf32>
  return %r : tensor<1x8x4x48xf32>
}

// -----

// CHECK-LABEL: @every_variant(
// CHECK:         %[[E:.+]] = attune.similarity
// CHECK-NEXT:    %[[F:.+]] = attune.mask_scores %[[E]] mask %{{.+}} : tensor<?x1x1x?xi1> bias %{{.+}} : tensor<1x4x?x?xf32> slopes %{{.+}} : tensor<4xf32> causal <top_left> window 16 softcap 5.000000e+01 : tensor<?x4x?x?xf32>
// CHECK-NEXT:    %[[A:.+]] = attune.softmax %[[F]] sinks %{{.+}} : tensor<4xf32> : tensor<?x4x?x?xf32>
// CHECK-NEXT:    attune.weighted_sum %[[A]], %{{.+}} {note = "kept"}
// CHECK-NEXT:    attune.log_sum_exp %[[F]] sinks %{{.+}} : tensor<4xf32> : tensor<?x4x?x?xf32> -> tensor<?x4x?xf32>
// CHECK-NOT:     attune.attention
func.func @every_variant(%q: tensor<?x4x?x64xbf16>, %k: tensor<?x4x?x64xbf16>, %v: tensor<?x4x?x64xbf16>,
    %mask: tensor<?x1x1x?xi1>, %bias: tensor<1x4x?x?xf32>, %slopes: tensor<4xf32>, %sinks: tensor<4xf32>)
    -> (tensor<?x4x?x64xbf16>, tensor<?x4x?xf32>) {
  %r, %l = attune.attention %q, %k, %v scale 1.0 mask %mask : tensor<?x1x1x?xi1> bias %bias : tensor<1x4x?x?xf32>
      slopes %slopes : tensor<4xf32> sinks %sinks : tensor<4xf32> causal <top_left> window 16 softcap 50.0 {note = "kept"}
      : tensor<?x4x?x64xbf16>, tensor<?x4x?x64xbf16>, tensor<?x4x?x64xbf16> -> tensor<?x4x?x64xbf16> lse tensor<?x4x?xf32>
  return %r, %l : tensor<?x4x?x64xbf16>, tensor<?x4x?xf32>
}

// -----

// Nothing to do.
// CHECK-LABEL: @no_op(
// CHECK-NEXT:    attune.softmax
// CHECK-NEXT:    return
func.func @no_op(%e: tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32> {
  %a = attune.softmax %e : tensor<1x1x2x2xf32>
  return %a : tensor<1x1x2x2xf32>
}

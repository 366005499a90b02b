// RUN: attune-opt %s --attune-fuse-attention --split-input-file | FileCheck %s
// RUN: attune-opt %s --attune-fuse-attention --attune-unfuse-attention --attune-fuse-attention --split-input-file | FileCheck %s

// CHECK-LABEL: @grouped_heads(
// CHECK-SAME:    %[[Q:[a-z0-9]+]]: {{[^,]+}}, %[[K:[a-z0-9]+]]: {{[^,]+}}, %[[V:[a-z0-9]+]]: {{[^,]+}})
// CHECK-NEXT:    %[[Y:.+]] = attune.attention %[[Q]], %[[K]], %[[V]] scale 1.250000e-01 : tensor<1x8x4x64xf32>, tensor<1x2x6x64xf32>, tensor<1x2x6x48xf32> -> tensor<1x8x4x48xf32>
// CHECK-NEXT:    return %[[Y]]
func.func @grouped_heads(%q: tensor<1x8x4x64xf32>, %k: tensor<1x2x6x64xf32>, %v: tensor<1x2x6x48xf32>) -> tensor<1x8x4x48xf32> {
  %e = attune.similarity %q, %k scale 0.125 : tensor<1x8x4x64xf32>, tensor<1x2x6x64xf32> -> tensor<1x8x4x6xf32>
  %a = attune.softmax %e : tensor<1x8x4x6xf32>
  %y = attune.weighted_sum %a, %v : tensor<1x8x4x6xf32>, tensor<1x2x6x48xf32> -> tensor<1x8x4x48xf32>
  return %y : tensor<1x8x4x48xf32>
}

// -----

// CHECK-LABEL: @every_variant(
// CHECK-NEXT:    attune.attention %{{.+}}, %{{.+}}, %{{.+}} scale 1.000000e+00 mask %{{.+}} : tensor<?x1x1x?xi1> bias %{{.+}} : tensor<1x4x?x?xf32> slopes %{{.+}} : tensor<4xf32> sinks %{{.+}} : tensor<4xf32> causal <bottom_right> window 16 softcap 5.000000e+01 {note = "kept"}
// CHECK-NEXT:    return
func.func @every_variant(%q: tensor<?x4x?x64xf32>, %k: tensor<?x4x?x64xf32>, %v: tensor<?x4x?x64xf32>,
    %mask: tensor<?x1x1x?xi1>, %bias: tensor<1x4x?x?xf32>, %slopes: tensor<4xf32>, %sinks: tensor<4xf32>) -> tensor<?x4x?x64xf32> {
  %e = attune.similarity %q, %k scale 1.0 : tensor<?x4x?x64xf32>, tensor<?x4x?x64xf32> -> tensor<?x4x?x?xf32>
  %f = attune.mask_scores %e mask %mask : tensor<?x1x1x?xi1> bias %bias : tensor<1x4x?x?xf32> slopes %slopes : tensor<4xf32>
      causal <bottom_right> window 16 softcap 50.0 : tensor<?x4x?x?xf32>
  %a = attune.softmax %f sinks %sinks : tensor<4xf32> : tensor<?x4x?x?xf32>
  %y = attune.weighted_sum %a, %v {note = "kept", attune.fusion = "required"} : tensor<?x4x?x?xf32>, tensor<?x4x?x64xf32> -> tensor<?x4x?x64xf32>
  return %y : tensor<?x4x?x64xf32>
}

// -----

// One mask after another, each of its own kind.
// CHECK-LABEL: @several_masks(
// CHECK-NEXT:    attune.attention {{.+}} mask %{{.+}} : tensor<1x1x1x6xi1> causal <top_left> softcap 2.000000e+01 :
// CHECK-NEXT:    return
func.func @several_masks(%q: tensor<1x2x4x8xf32>, %k: tensor<1x2x6x8xf32>, %v: tensor<1x2x6x8xf32>, %mask: tensor<1x1x1x6xi1>) -> tensor<1x2x4x8xf32> {
  %e = attune.similarity %q, %k scale 0.125 : tensor<1x2x4x8xf32>, tensor<1x2x6x8xf32> -> tensor<1x2x4x6xf32>
  %f = attune.mask_scores %e softcap 20.0 : tensor<1x2x4x6xf32>
  %g = attune.mask_scores %f causal <top_left> : tensor<1x2x4x6xf32>
  %h = attune.mask_scores %g mask %mask : tensor<1x1x1x6xi1> : tensor<1x2x4x6xf32>
  %a = attune.softmax %h : tensor<1x2x4x6xf32>
  %y = attune.weighted_sum %a, %v : tensor<1x2x4x6xf32>, tensor<1x2x6x8xf32> -> tensor<1x2x4x8xf32>
  return %y : tensor<1x2x4x8xf32>
}

// -----

// CHECK-LABEL: @two_in_one_body(
// CHECK:         scf.for
// CHECK:           attune.attention
// CHECK:           attune.attention
// CHECK-NOT:     attune.softmax
func.func @two_in_one_body(%x: tensor<1x2x4x8xf32>, %n: index) -> tensor<1x2x4x8xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r = scf.for %i = %zero to %n step %one iter_args(%q = %x) -> tensor<1x2x4x8xf32> {
    %e = attune.similarity %q, %q scale 0.5 : tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32> -> tensor<1x2x4x4xf32>
    %a = attune.softmax %e : tensor<1x2x4x4xf32>
    %y = attune.weighted_sum %a, %q : tensor<1x2x4x4xf32>, tensor<1x2x4x8xf32> -> tensor<1x2x4x8xf32>
    %f = attune.similarity %y, %q scale 0.5 : tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32> -> tensor<1x2x4x4xf32>
    %b = attune.softmax %f : tensor<1x2x4x4xf32>
    %z = attune.weighted_sum %b, %q : tensor<1x2x4x4xf32>, tensor<1x2x4x8xf32> -> tensor<1x2x4x8xf32>
    scf.yield %z : tensor<1x2x4x8xf32>
  }
  return %r : tensor<1x2x4x8xf32>
}

// RUN: attune-opt %s | FileCheck %s
// RUN: attune-opt %s --mlir-print-op-generic | attune-opt | FileCheck %s

// CHECK-LABEL: @router(
func.func @router(%logits: tensor<?x?x8xf32>) -> (tensor<?x?x2xi64>, tensor<?x?x2xf32>) {
  // CHECK: attune.router %{{.+}} scoring <softmax> renormalise : tensor<?x?x8xf32> -> tensor<?x?x2xi64>, tensor<?x?x2xf32>
  %experts, %weights = attune.router %logits scoring <softmax> renormalise
     : tensor<?x?x8xf32> -> tensor<?x?x2xi64>, tensor<?x?x2xf32>
  return %experts, %weights : tensor<?x?x2xi64>, tensor<?x?x2xf32>
}

// CHECK-LABEL: @groups(
func.func @groups(%logits: tensor<?x?x256xf32>, %b: tensor<256xf32>) -> (tensor<?x?x8xi64>, tensor<?x?x8xf32>) {
  // CHECK: attune.router %{{.+}} bias %{{.+}} : tensor<256xf32> scoring <sigmoid> groups 8 active_groups 4 group_score <top_two> renormalise : tensor<?x?x256xf32> -> tensor<?x?x8xi64>, tensor<?x?x8xf32>
  %e, %w = attune.router %logits bias %b : tensor<256xf32> scoring <sigmoid>
     groups 8 active_groups 4 group_score <top_two> renormalise
     : tensor<?x?x256xf32> -> tensor<?x?x8xi64>, tensor<?x?x8xf32>
  return %e, %w : tensor<?x?x8xi64>, tensor<?x?x8xf32>
}

// CHECK-LABEL: @near(
func.func @near(%logits: tensor<?x?x16xf32>) -> (tensor<?x?x2xi64>, tensor<?x?x2xf32>) {
  // CHECK: attune.router %{{.+}} scoring <sparse_mixer> eps 0.00999999977 : tensor<?x?x16xf32> -> tensor<?x?x2xi64>, tensor<?x?x2xf32>
  %near, %parts = attune.router %logits scoring <sparse_mixer> eps 0.01
     : tensor<?x?x16xf32> -> tensor<?x?x2xi64>, tensor<?x?x2xf32>
  return %near, %parts : tensor<?x?x2xi64>, tensor<?x?x2xf32>
}

// CHECK-LABEL: @moe(
func.func @moe(%x: tensor<?x?x64xf32>, %experts: tensor<?x?x2xi64>, %weights: tensor<?x?x2xf32>,
               %gate_up: tensor<8x96x64xf32>, %down: tensor<8x64x48xf32>) -> tensor<?x?x64xf32> {
  // CHECK: attune.moe %{{.+}}, %{{.+}}, %{{.+}}, %{{.+}}, %{{.+}} gated activation <silu> : tensor<?x?x64xf32>, tensor<?x?x2xi64>, tensor<?x?x2xf32>, tensor<8x96x64xf32>, tensor<8x64x48xf32> -> tensor<?x?x64xf32>
  %y = attune.moe %x, %experts, %weights, %gate_up, %down gated
       activation <silu>
     : tensor<?x?x64xf32>, tensor<?x?x2xi64>, tensor<?x?x2xf32>,
       tensor<8x96x64xf32>, tensor<8x64x48xf32> -> tensor<?x?x64xf32>
  return %y : tensor<?x?x64xf32>
}

// CHECK-LABEL: @biases(
func.func @biases(%x: tensor<?x?x64xf32>, %experts: tensor<?x?x2xi64>, %weights: tensor<?x?x2xf32>,
                  %gate_up: tensor<8x96x64xf32>, %b: tensor<8x96xf32>, %down: tensor<8x64x48xf32>, %c: tensor<8x64xf32>) -> tensor<?x?x64xf32> {
  // CHECK: attune.moe %{{.+}}, %{{.+}}, %{{.+}}, %{{.+}}, %{{.+}} up_bias %{{.+}} : tensor<8x96xf32> down_bias %{{.+}} : tensor<8x64xf32> gated activation <quick_gelu> limit 7.000000e+00 up_offset 1.000000e+00 : tensor<?x?x64xf32>,
  %y = attune.moe %x, %experts, %weights, %gate_up, %down
       up_bias %b : tensor<8x96xf32> down_bias %c : tensor<8x64xf32> gated
       activation <quick_gelu> limit 7.0 up_offset 1.0
     : tensor<?x?x64xf32>, tensor<?x?x2xi64>, tensor<?x?x2xf32>,
       tensor<8x96x64xf32>, tensor<8x64x48xf32> -> tensor<?x?x64xf32>
  return %y : tensor<?x?x64xf32>
}

// Weights of any storage, in panels; a residual.
// CHECK-LABEL: @packed(
func.func @packed(%x: tensor<?x64xf32>, %e: tensor<?x2xi64>, %w: tensor<?x2xf32>, %up: tensor<8x6x64x8xbf16>,
                  %down: tensor<8x8x48x8xbf16>, %r: tensor<?x64xf32>) -> tensor<?x64xf32> {
  // CHECK: attune.moe {{.+}} residual %{{.+}} : tensor<?x64xf32> activation <gelu>
  %y = attune.moe %x, %e, %w, %up, %down residual %r : tensor<?x64xf32> activation <gelu>
     : tensor<?x64xf32>, tensor<?x2xi64>, tensor<?x2xf32>, tensor<8x6x64x8xbf16>, tensor<8x8x48x8xbf16> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// CHECK-LABEL: @quantized(
func.func @quantized(%q: tensor<?x?x64xi8>, %s: tensor<?x?x2xf32>, %n: tensor<?x?x2xi32>, %experts: tensor<?x?x2xi64>,
                     %weights: tensor<?x?x2xf32>, %gate_up: tensor<8x128x64xi8>, %t: tensor<8x128x2xf32>,
                     %down: tensor<8x64x64xi8>, %u: tensor<8x64x2xf32>) -> tensor<?x?x64xf32> {
  // CHECK: attune.quantized_moe %{{.+}} scales %{{.+}} sums %{{.+}}, %{{.+}}, %{{.+}}, %{{.+}} scales %{{.+}}, %{{.+}} scales %{{.+}} hidden 64 gated activation <silu> : (
  %y = attune.quantized_moe %q scales %s sums %n, %experts, %weights,
       %gate_up scales %t, %down scales %u hidden 64 gated activation <silu>
     : (tensor<?x?x64xi8>, tensor<?x?x2xf32>, tensor<?x?x2xi32>),
       tensor<?x?x2xi64>, tensor<?x?x2xf32>,
       (tensor<8x128x64xi8>, tensor<8x128x2xf32>),
       (tensor<8x64x64xi8>, tensor<8x64x2xf32>) -> tensor<?x?x64xf32>
  return %y : tensor<?x?x64xf32>
}

// Panels: up of bytes, down of 4 bits, two in a byte; a residual.
// CHECK-LABEL: @quantized_packed(
func.func @quantized_packed(%q: tensor<?x64xi8>, %s: tensor<?x2xf32>, %n: tensor<?x2xi32>, %e: tensor<?x2xi64>, %w: tensor<?x2xf32>,
                            %up: tensor<8x4x16x32xi8>, %t: tensor<8x4x2x8xf32>, %down: tensor<8x8x4x32xi8>, %u: tensor<8x8x1x8xf16>,
                            %r: tensor<?x64xf32>) -> tensor<?x64xf32> {
  // CHECK: attune.quantized_moe {{.+}} residual %{{.+}} : tensor<?x64xf32> hidden 32 activation <gelu>
  %y = attune.quantized_moe %q scales %s sums %n, %e, %w, %up scales %t, %down scales %u
       residual %r : tensor<?x64xf32> hidden 32 activation <gelu>
     : (tensor<?x64xi8>, tensor<?x2xf32>, tensor<?x2xi32>), tensor<?x2xi64>, tensor<?x2xf32>,
       (tensor<8x4x16x32xi8>, tensor<8x4x2x8xf32>), (tensor<8x8x4x32xi8>, tensor<8x8x1x8xf16>) -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// CHECK-LABEL: @quantized_biases(
func.func @quantized_biases(%q: tensor<?x64xi8>, %s: tensor<?x2xf32>, %n: tensor<?x2xi32>, %e: tensor<?x2xi64>, %w: tensor<?x2xf32>,
                            %up: tensor<8x64x64xi8>, %t: tensor<8x64x2xf32>, %b: tensor<8x64xbf16>,
                            %down: tensor<8x64x32xi8>, %u: tensor<8x64x1xf32>, %c: tensor<8x64xbf16>) -> tensor<?x64xf32> {
  // CHECK: attune.quantized_moe {{.+}} up_bias %{{.+}} : tensor<8x64xbf16> down_bias %{{.+}} : tensor<8x64xbf16> hidden 32 gated activation <silu> limit 2.000000e+00 : (
  %y = attune.quantized_moe %q scales %s sums %n, %e, %w, %up scales %t, %down scales %u
       up_bias %b : tensor<8x64xbf16> down_bias %c : tensor<8x64xbf16> hidden 32 gated activation <silu> limit 2.0
     : (tensor<?x64xi8>, tensor<?x2xf32>, tensor<?x2xi32>), tensor<?x2xi64>, tensor<?x2xf32>,
       (tensor<8x64x64xi8>, tensor<8x64x2xf32>), (tensor<8x64x32xi8>, tensor<8x64x1xf32>) -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// CHECK-LABEL: @head_linear(
func.func @head_linear(%x: tensor<?x4x?x12xf32>, %w: tensor<4x24x12xf32>) -> tensor<?x4x?x24xf32> {
  // CHECK: attune.head_linear %{{.+}}, %{{.+}} : tensor<?x4x?x12xf32>, tensor<4x24x12xf32> -> tensor<?x4x?x24xf32>
  %y = attune.head_linear %x, %w
     : tensor<?x4x?x12xf32>, tensor<4x24x12xf32> -> tensor<?x4x?x24xf32>
  return %y : tensor<?x4x?x24xf32>
}

// Experts of numbers as they are, whose groups have zero points.
// CHECK-LABEL: @exact_experts(
// CHECK: attune.quantized_moe %{{.+}}, %{{.+}}, %{{.+}}, %{{.+}} scales %{{.+}} up_zeros, %{{.+}} scales %{{.+}} down_zeros hidden 32 activation <silu> : (tensor<4x64xf32>), tensor<4x2xi64>
func.func @exact_experts(%x: tensor<4x64xf32>, %e: tensor<4x2xi64>, %w: tensor<4x2xf32>, %u: tensor<8x32x64xi4>, %t: tensor<8x32x4xf16>, %d: tensor<8x16x32xi8>, %v: tensor<8x16x2xf32>) -> tensor<4x16xf32> {
  %y = attune.quantized_moe %x, %e, %w, %u scales %t up_zeros, %d scales %v down_zeros hidden 32 activation <silu>
     : (tensor<4x64xf32>), tensor<4x2xi64>, tensor<4x2xf32>,
       (tensor<8x32x64xi4>, tensor<8x32x4xf16>), (tensor<8x16x32xi8>, tensor<8x16x2xf32>) -> tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

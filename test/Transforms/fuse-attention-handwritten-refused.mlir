// RUN: attune-opt %s --attune-fuse-attention=explain-fusion --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: @weights_escape(
// CHECK-NOT:     attune.attention
func.func @weights_escape(%q: tensor<1x4x4xf32>) -> (tensor<1x4x4xf32>, tensor<1x4x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<1x4x4xf32>
  %e0 = linalg.fill ins(%zero : f32) outs(%es : tensor<1x4x4xf32>) -> tensor<1x4x4xf32>
  %e = linalg.batch_matmul ins(%q, %q : tensor<1x4x4xf32>, tensor<1x4x4xf32>) outs(%e0 : tensor<1x4x4xf32>) -> tensor<1x4x4xf32>
  %a = linalg.softmax dimension(2) ins(%e : tensor<1x4x4xf32>) outs(%es : tensor<1x4x4xf32>) -> tensor<1x4x4xf32>
  // expected-remark @+1 {{not fused: a part of it has another user}}
  %y = linalg.batch_matmul ins(%a, %q : tensor<1x4x4xf32>, tensor<1x4x4xf32>) outs(%e0 : tensor<1x4x4xf32>) -> tensor<1x4x4xf32>
  // expected-note @+1 {{used here}}
  return %y, %a : tensor<1x4x4xf32>, tensor<1x4x4xf32>
}

// -----

// The first product adds to something that is not zero: a bias that the op
// could carry, but not in this form.
// CHECK-LABEL: @not_from_zero(
// CHECK-NOT:     attune.attention
func.func @not_from_zero(%q: tensor<1x4x4xf32>) -> tensor<1x4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<1x4x4xf32>
  %e0 = linalg.fill ins(%zero : f32) outs(%es : tensor<1x4x4xf32>) -> tensor<1x4x4xf32>
  %e = linalg.batch_matmul ins(%q, %q : tensor<1x4x4xf32>, tensor<1x4x4xf32>) outs(%q : tensor<1x4x4xf32>) -> tensor<1x4x4xf32>
  // expected-note @+1 {{weighed by the softmax of this}}
  %a = linalg.softmax dimension(2) ins(%e : tensor<1x4x4xf32>) outs(%es : tensor<1x4x4xf32>) -> tensor<1x4x4xf32>
  // expected-remark @+1 {{not fused: its scores are not a product of queries and keys}}
  %y = linalg.batch_matmul ins(%a, %q : tensor<1x4x4xf32>, tensor<1x4x4xf32>) outs(%e0 : tensor<1x4x4xf32>) -> tensor<1x4x4xf32>
  return %y : tensor<1x4x4xf32>
}

// -----

// CHECK-LABEL: @scaled_after_bias(
// CHECK-NOT:     attune.attention
func.func @scaled_after_bias(%q: tensor<1x4x4xf32>, %b: tensor<1x4x4xf32>) -> tensor<1x4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %half = arith.constant dense<0.5> : tensor<1x4x4xf32>
  %es = tensor.empty() : tensor<1x4x4xf32>
  %e0 = linalg.fill ins(%zero : f32) outs(%es : tensor<1x4x4xf32>) -> tensor<1x4x4xf32>
  %e = linalg.batch_matmul ins(%q, %q : tensor<1x4x4xf32>, tensor<1x4x4xf32>) outs(%e0 : tensor<1x4x4xf32>) -> tensor<1x4x4xf32>
  %f = arith.addf %e, %b : tensor<1x4x4xf32>
  %g = arith.mulf %f, %half : tensor<1x4x4xf32>
  // expected-note @+1 {{weighed by the softmax of this}}
  %a = linalg.softmax dimension(2) ins(%g : tensor<1x4x4xf32>) outs(%es : tensor<1x4x4xf32>) -> tensor<1x4x4xf32>
  // expected-remark @+1 {{not fused: its scores are scaled after a bias is added to them}}
  %y = linalg.batch_matmul ins(%a, %q : tensor<1x4x4xf32>, tensor<1x4x4xf32>) outs(%e0 : tensor<1x4x4xf32>) -> tensor<1x4x4xf32>
  return %y : tensor<1x4x4xf32>
}

// -----

// A softmax of columns is not what attention takes.
// CHECK-LABEL: @softmax_of_columns(
// CHECK-NOT:     attune.attention
func.func @softmax_of_columns(%q: tensor<1x4x4xf32>) -> tensor<1x4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<1x4x4xf32>
  %e0 = linalg.fill ins(%zero : f32) outs(%es : tensor<1x4x4xf32>) -> tensor<1x4x4xf32>
  %e = linalg.batch_matmul ins(%q, %q : tensor<1x4x4xf32>, tensor<1x4x4xf32>) outs(%e0 : tensor<1x4x4xf32>) -> tensor<1x4x4xf32>
  // expected-note @+1 {{made here}}
  %a = linalg.softmax dimension(1) ins(%e : tensor<1x4x4xf32>) outs(%es : tensor<1x4x4xf32>) -> tensor<1x4x4xf32>
  // expected-remark @+1 {{not fused: its softmax runs over dimension 1, but the product with values sums dimension 2}}
  %y = linalg.batch_matmul ins(%a, %q : tensor<1x4x4xf32>, tensor<1x4x4xf32>) outs(%e0 : tensor<1x4x4xf32>) -> tensor<1x4x4xf32>
  return %y : tensor<1x4x4xf32>
}

// -----

// The maximum of other rows is taken off.
// CHECK-LABEL: @other_maximum(
// CHECK-NOT:     attune.attention
func.func @other_maximum(%q: tensor<4x4xf32>, %x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %inf = arith.constant 0xFF800000 : f32
  %es = tensor.empty() : tensor<4x4xf32>
  %rs = tensor.empty() : tensor<4xf32>
  %e0 = linalg.fill ins(%zero : f32) outs(%es : tensor<4x4xf32>) -> tensor<4x4xf32>
  %e = linalg.matmul ins(%q, %q : tensor<4x4xf32>, tensor<4x4xf32>) outs(%e0 : tensor<4x4xf32>) -> tensor<4x4xf32>
  %m0 = linalg.fill ins(%inf : f32) outs(%rs : tensor<4xf32>) -> tensor<4xf32>
  %m = linalg.reduce { arith.maximumf } ins(%x : tensor<4x4xf32>) outs(%m0 : tensor<4xf32>) dimensions = [1]
  %mb = linalg.broadcast ins(%m : tensor<4xf32>) outs(%es : tensor<4x4xf32>) dimensions = [1]
  %d = arith.subf %e, %mb : tensor<4x4xf32>
  %p = math.exp %d : tensor<4x4xf32>
  %s0 = linalg.fill ins(%zero : f32) outs(%rs : tensor<4xf32>) -> tensor<4xf32>
  %s = linalg.reduce { arith.addf } ins(%p : tensor<4x4xf32>) outs(%s0 : tensor<4xf32>) dimensions = [1]
  %sb = linalg.broadcast ins(%s : tensor<4xf32>) outs(%es : tensor<4x4xf32>) dimensions = [1]
  // expected-note @+1 {{weighed by the softmax of this}}
  %a = arith.divf %p, %sb : tensor<4x4xf32>
  // expected-remark @+1 {{not fused: it subtracts something else than the maximum of its scores}}
  %y = linalg.matmul ins(%a, %q : tensor<4x4xf32>, tensor<4x4xf32>) outs(%e0 : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// -----

// CHECK-LABEL: @switched_off(
// CHECK-NOT:     attune.attention
func.func @switched_off(%q: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<4x4xf32>
  %e0 = linalg.fill ins(%zero : f32) outs(%es : tensor<4x4xf32>) -> tensor<4x4xf32>
  // expected-remark @+1 {{not fused: attune.fusion is "off"}}
  %y = linalg.matmul {attune.fusion = "off"} ins(%q, %q : tensor<4x4xf32>, tensor<4x4xf32>) outs(%e0 : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

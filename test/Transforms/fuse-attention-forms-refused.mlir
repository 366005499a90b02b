// RUN: attune-opt %s --attune-fuse-attention=explain-fusion --split-input-file --verify-diagnostics | FileCheck %s

#q = affine_map<(b, m, n, d) -> (b, m, d)>
#k = affine_map<(b, m, n, d) -> (b, n, d)>
#e = affine_map<(b, m, n, d) -> (b, m, n)>
#id = affine_map<(b, m, n) -> (b, m, n)>
#mn = affine_map<(b, m, n) -> (m, n)>
#bn = affine_map<(b, m, n) -> (b, n)>

// A bias inside of the cap has no place in the op.
// CHECK-LABEL: @bias_in_cap(
// CHECK-NOT:     attune.attention
func.func @bias_in_cap(%q: tensor<2x5x8xf32>, %k: tensor<2x7x8xf32>, %v: tensor<2x7x5xf32>, %b: tensor<2x5x7xf32>) -> tensor<2x5x5xf32> {
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<2x5x7xf32>
  %ys = tensor.empty() : tensor<2x5x5xf32>
  %e0 = linalg.fill ins(%zero : f32) outs(%es : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %e = linalg.contract indexing_maps = [#q, #k, #e] ins(%q, %k : tensor<2x5x8xf32>, tensor<2x7x8xf32>) outs(%e0 : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %f = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%e, %b : tensor<2x5x7xf32>, tensor<2x5x7xf32>) outs(%es : tensor<2x5x7xf32>) {
  ^bb0(%x0: f32, %x1: f32, %o: f32):
    %c = arith.constant 30.0 : f32
    %s = arith.addf %x0, %x1 : f32
    %d = arith.divf %s, %c : f32
    %t = math.tanh %d : f32
    %r = arith.mulf %t, %c : f32
    linalg.yield %r : f32
  } -> tensor<2x5x7xf32>
  // expected-note @+1 {{weighed by the softmax of this}}
  %a = linalg.softmax dimension(2) ins(%f : tensor<2x5x7xf32>) outs(%es : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %y0 = linalg.fill ins(%zero : f32) outs(%ys : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  // expected-remark @+1 {{not fused: its scores are masked or biased before the soft cap}}
  %y = linalg.batch_matmul ins(%a, %v : tensor<2x5x7xf32>, tensor<2x7x5xf32>) outs(%y0 : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  return %y : tensor<2x5x5xf32>
}

// -----

#q = affine_map<(b, m, n, d) -> (b, m, d)>
#k = affine_map<(b, m, n, d) -> (b, n, d)>
#e = affine_map<(b, m, n, d) -> (b, m, n)>
#id = affine_map<(b, m, n) -> (b, m, n)>
#mn = affine_map<(b, m, n) -> (m, n)>
#bn = affine_map<(b, m, n) -> (b, n)>

// One cap in another.
// CHECK-LABEL: @capped_twice(
// CHECK-NOT:     attune.attention
func.func @capped_twice(%q: tensor<2x5x8xf32>, %k: tensor<2x7x8xf32>, %v: tensor<2x7x5xf32>) -> tensor<2x5x5xf32> {
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<2x5x7xf32>
  %ys = tensor.empty() : tensor<2x5x5xf32>
  %e0 = linalg.fill ins(%zero : f32) outs(%es : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %e = linalg.contract indexing_maps = [#q, #k, #e] ins(%q, %k : tensor<2x5x8xf32>, tensor<2x7x8xf32>) outs(%e0 : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %t = math.tanh %e : tensor<2x5x7xf32>
  %f = math.tanh %t : tensor<2x5x7xf32>
  // expected-note @+1 {{weighed by the softmax of this}}
  %a = linalg.softmax dimension(2) ins(%f : tensor<2x5x7xf32>) outs(%es : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %y0 = linalg.fill ins(%zero : f32) outs(%ys : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  // expected-remark @+1 {{not fused: its scores are capped twice}}
  %y = linalg.batch_matmul ins(%a, %v : tensor<2x5x7xf32>, tensor<2x7x5xf32>) outs(%y0 : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  return %y : tensor<2x5x5xf32>
}

// -----

#q = affine_map<(b, m, n, d) -> (b, m, d)>
#k = affine_map<(b, m, n, d) -> (b, n, d)>
#e = affine_map<(b, m, n, d) -> (b, m, n)>
#id = affine_map<(b, m, n) -> (b, m, n)>
#mn = affine_map<(b, m, n) -> (m, n)>
#bn = affine_map<(b, m, n) -> (b, n)>

// The op in question is named.
// CHECK-LABEL: @other_function(
// CHECK-NOT:     attune.attention
func.func @other_function(%q: tensor<2x5x8xf32>, %k: tensor<2x7x8xf32>, %v: tensor<2x7x5xf32>) -> tensor<2x5x5xf32> {
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<2x5x7xf32>
  %ys = tensor.empty() : tensor<2x5x5xf32>
  %e0 = linalg.fill ins(%zero : f32) outs(%es : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %e = linalg.contract indexing_maps = [#q, #k, #e] ins(%q, %k : tensor<2x5x8xf32>, tensor<2x7x8xf32>) outs(%e0 : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  // expected-note @+1 {{here}}
  %f = math.absf %e : tensor<2x5x7xf32>
  %a = linalg.softmax dimension(2) ins(%f : tensor<2x5x7xf32>) outs(%es : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %y0 = linalg.fill ins(%zero : f32) outs(%ys : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  // expected-remark @+1 {{not fused: its scores go through math.absf, which attention does not do}}
  %y = linalg.batch_matmul ins(%a, %v : tensor<2x5x7xf32>, tensor<2x7x5xf32>) outs(%y0 : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  return %y : tensor<2x5x5xf32>
}

// -----

#q = affine_map<(b, m, n, d) -> (b, m, d)>
#k = affine_map<(b, m, n, d) -> (b, n, d)>
#e = affine_map<(b, m, n, d) -> (b, m, n)>
#id = affine_map<(b, m, n) -> (b, m, n)>
#mn = affine_map<(b, m, n) -> (m, n)>
#bn = affine_map<(b, m, n) -> (b, n)>

// A learned temperature.
// CHECK-LABEL: @scaled_at_run_time(
// CHECK-NOT:     attune.attention
func.func @scaled_at_run_time(%q: tensor<2x5x8xf32>, %k: tensor<2x7x8xf32>, %v: tensor<2x7x5xf32>, %scale: f32) -> tensor<2x5x5xf32> {
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<2x5x7xf32>
  %ys = tensor.empty() : tensor<2x5x5xf32>
  %e0 = linalg.fill ins(%zero : f32) outs(%es : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %e = linalg.contract indexing_maps = [#q, #k, #e] ins(%q, %k : tensor<2x5x8xf32>, tensor<2x7x8xf32>) outs(%e0 : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %f = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%e : tensor<2x5x7xf32>) outs(%es : tensor<2x5x7xf32>) {
  ^bb0(%x0: f32, %o: f32):
    %r = arith.mulf %x0, %scale : f32
    linalg.yield %r : f32
  } -> tensor<2x5x7xf32>
  // expected-note @+1 {{weighed by the softmax of this}}
  %a = linalg.softmax dimension(2) ins(%f : tensor<2x5x7xf32>) outs(%es : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %y0 = linalg.fill ins(%zero : f32) outs(%ys : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  // expected-remark @+1 {{not fused: its scores are scaled by a number that is no constant}}
  %y = linalg.batch_matmul ins(%a, %v : tensor<2x5x7xf32>, tensor<2x7x5xf32>) outs(%y0 : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  return %y : tensor<2x5x5xf32>
}

// -----

#q = affine_map<(b, m, n, d) -> (b, m, d)>
#k = affine_map<(b, m, n, d) -> (b, n, d)>
#e = affine_map<(b, m, n, d) -> (b, m, n)>
#id = affine_map<(b, m, n) -> (b, m, n)>
#mn = affine_map<(b, m, n) -> (m, n)>
#bn = affine_map<(b, m, n) -> (b, n)>

// 2^(1.44 x) is not e^x, so that the bias is scaled, too.
// CHECK-LABEL: @imprecise_base(
// CHECK-NOT:     attune.attention
func.func @imprecise_base(%q: tensor<2x5x8xf32>, %k: tensor<2x7x8xf32>, %v: tensor<2x7x5xf32>, %b: tensor<2x5x7xf32>) -> tensor<2x5x5xf32> {
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<2x5x7xf32>
  %ys = tensor.empty() : tensor<2x5x5xf32>
  %e0 = linalg.fill ins(%zero : f32) outs(%es : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %e = linalg.contract indexing_maps = [#q, #k, #e] ins(%q, %k : tensor<2x5x8xf32>, tensor<2x7x8xf32>) outs(%e0 : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %rs = tensor.empty() : tensor<2x5xf32>
  %p = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%e, %b : tensor<2x5x7xf32>, tensor<2x5x7xf32>) outs(%es : tensor<2x5x7xf32>) {
  ^bb0(%x0: f32, %x1: f32, %o: f32):
    %c = arith.constant 1.44 : f32
    %s = arith.addf %x0, %x1 : f32
    %d = arith.mulf %s, %c : f32
    %r = math.exp2 %d : f32
    linalg.yield %r : f32
  } -> tensor<2x5x7xf32>
  %s0 = linalg.fill ins(%zero : f32) outs(%rs : tensor<2x5xf32>) -> tensor<2x5xf32>
  %sum = linalg.reduce { arith.addf } ins(%p : tensor<2x5x7xf32>) outs(%s0 : tensor<2x5xf32>) dimensions = [2]
  %sb = linalg.broadcast ins(%sum : tensor<2x5xf32>) outs(%es : tensor<2x5x7xf32>) dimensions = [2]
  // expected-note @+1 {{weighed by the softmax of this}}
  %a = arith.divf %p, %sb : tensor<2x5x7xf32>
  %y0 = linalg.fill ins(%zero : f32) outs(%ys : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  // expected-remark @+1 {{not fused: its scores are scaled after a bias is added to them}}
  %y = linalg.batch_matmul ins(%a, %v : tensor<2x5x7xf32>, tensor<2x7x5xf32>) outs(%y0 : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  return %y : tensor<2x5x5xf32>
}

// -----

#q = affine_map<(b, m, n, d) -> (b, m, d)>
#k = affine_map<(b, m, n, d) -> (b, n, d)>
#e = affine_map<(b, m, n, d) -> (b, m, n)>
#id = affine_map<(b, m, n) -> (b, m, n)>
#mn = affine_map<(b, m, n) -> (m, n)>
#bn = affine_map<(b, m, n) -> (b, n)>

// The sums are for somebody else.
// CHECK-LABEL: @never_divided(
// CHECK-NOT:     attune.attention
func.func @never_divided(%q: tensor<2x5x8xf32>, %k: tensor<2x7x8xf32>, %v: tensor<2x7x5xf32>) -> (tensor<2x5x5xf32>, tensor<2x5xf32>) {
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<2x5x7xf32>
  %ys = tensor.empty() : tensor<2x5x5xf32>
  %e0 = linalg.fill ins(%zero : f32) outs(%es : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %e = linalg.contract indexing_maps = [#q, #k, #e] ins(%q, %k : tensor<2x5x8xf32>, tensor<2x7x8xf32>) outs(%e0 : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %rs = tensor.empty() : tensor<2x5xf32>
  // expected-note @+1 {{weighed by the softmax of this}}
  %p = math.exp %e : tensor<2x5x7xf32>
  %s0 = linalg.fill ins(%zero : f32) outs(%rs : tensor<2x5xf32>) -> tensor<2x5xf32>
  %sum = linalg.reduce { arith.addf } ins(%p : tensor<2x5x7xf32>) outs(%s0 : tensor<2x5xf32>) dimensions = [2]
  %y0 = linalg.fill ins(%zero : f32) outs(%ys : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  // expected-remark @+1 {{not fused: its weights are not divided by their sums, neither before the product with values nor after it alone}}
  %y = linalg.batch_matmul ins(%p, %v : tensor<2x5x7xf32>, tensor<2x7x5xf32>) outs(%y0 : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  return %y, %sum : tensor<2x5x5xf32>, tensor<2x5xf32>
}

// -----

#q = affine_map<(b, m, n, d) -> (b, m, d)>
#k = affine_map<(b, m, n, d) -> (b, n, d)>
#e = affine_map<(b, m, n, d) -> (b, m, n)>
#id = affine_map<(b, m, n) -> (b, m, n)>
#mn = affine_map<(b, m, n) -> (m, n)>
#bn = affine_map<(b, m, n) -> (b, n)>

// Divided by the sums of other exponentials.
// CHECK-LABEL: @other_sums(
// CHECK-NOT:     attune.attention
func.func @other_sums(%q: tensor<2x5x8xf32>, %k: tensor<2x7x8xf32>, %v: tensor<2x7x5xf32>) -> tensor<2x5x5xf32> {
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<2x5x7xf32>
  %ys = tensor.empty() : tensor<2x5x5xf32>
  %e0 = linalg.fill ins(%zero : f32) outs(%es : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %e = linalg.contract indexing_maps = [#q, #k, #e] ins(%q, %k : tensor<2x5x8xf32>, tensor<2x7x8xf32>) outs(%e0 : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %rs = tensor.empty() : tensor<2x5xf32>
  %p2 = math.exp %e : tensor<2x5x7xf32>
  %s0 = linalg.fill ins(%zero : f32) outs(%rs : tensor<2x5xf32>) -> tensor<2x5xf32>
  %sum = linalg.reduce { arith.addf } ins(%p2 : tensor<2x5x7xf32>) outs(%s0 : tensor<2x5xf32>) dimensions = [2]
  %sb = linalg.broadcast ins(%sum : tensor<2x5xf32>) outs(%es : tensor<2x5x7xf32>) dimensions = [2]
  %w = math.exp2 %e : tensor<2x5x7xf32>
  // expected-note @+1 {{weighed by the softmax of this}}
  %a = arith.divf %w, %sb : tensor<2x5x7xf32>
  %y0 = linalg.fill ins(%zero : f32) outs(%ys : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  // expected-remark @+1 {{not fused: its weights are not exponentials divided by the sums of the same exponentials}}
  %y = linalg.batch_matmul ins(%a, %v : tensor<2x5x7xf32>, tensor<2x7x5xf32>) outs(%y0 : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  return %y : tensor<2x5x5xf32>
}

// -----

#q = affine_map<(b, m, n, d) -> (b, m, d)>
#k = affine_map<(b, m, n, d) -> (b, n, d)>
#e = affine_map<(b, m, n, d) -> (b, m, n)>
#id = affine_map<(b, m, n) -> (b, m, n)>
#mn = affine_map<(b, m, n) -> (m, n)>
#bn = affine_map<(b, m, n) -> (b, n)>

// The greatest score is the least likely one: exponents above zero may overflow.
// CHECK-LABEL: @negative_around_maximum(
// CHECK-NOT:     attune.attention
func.func @negative_around_maximum(%q: tensor<2x5x8xf32>, %k: tensor<2x7x8xf32>, %v: tensor<2x7x5xf32>) -> tensor<2x5x5xf32> {
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<2x5x7xf32>
  %ys = tensor.empty() : tensor<2x5x5xf32>
  %e0 = linalg.fill ins(%zero : f32) outs(%es : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %e = linalg.contract indexing_maps = [#q, #k, #e] ins(%q, %k : tensor<2x5x8xf32>, tensor<2x7x8xf32>) outs(%e0 : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %rs = tensor.empty() : tensor<2x5xf32>
  %inf = arith.constant 0xFF800000 : f32
  %c = arith.constant dense<-1.0> : tensor<2x5x7xf32>
  %m0 = linalg.fill ins(%inf : f32) outs(%rs : tensor<2x5xf32>) -> tensor<2x5xf32>
  %max = linalg.reduce { arith.maximumf } ins(%e : tensor<2x5x7xf32>) outs(%m0 : tensor<2x5xf32>) dimensions = [2]
  %mb = linalg.broadcast ins(%max : tensor<2x5xf32>) outs(%es : tensor<2x5x7xf32>) dimensions = [2]
  %d = arith.subf %e, %mb : tensor<2x5x7xf32>
  %n = arith.mulf %d, %c : tensor<2x5x7xf32>
  %p = math.exp %n : tensor<2x5x7xf32>
  %s0 = linalg.fill ins(%zero : f32) outs(%rs : tensor<2x5xf32>) -> tensor<2x5xf32>
  %sum = linalg.reduce { arith.addf } ins(%p : tensor<2x5x7xf32>) outs(%s0 : tensor<2x5xf32>) dimensions = [2]
  %sb = linalg.broadcast ins(%sum : tensor<2x5xf32>) outs(%es : tensor<2x5x7xf32>) dimensions = [2]
  // expected-note @+1 {{weighed by the softmax of this}}
  %a = arith.divf %p, %sb : tensor<2x5x7xf32>
  %y0 = linalg.fill ins(%zero : f32) outs(%ys : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  // expected-remark @+1 {{not fused: its scores are scaled by a number below zero around their maximum}}
  %y = linalg.batch_matmul ins(%a, %v : tensor<2x5x7xf32>, tensor<2x7x5xf32>) outs(%y0 : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  return %y : tensor<2x5x5xf32>
}

// -----

#q = affine_map<(b, m, n, d) -> (b, m, d)>
#k = affine_map<(b, m, n, d) -> (b, n, d)>
#e = affine_map<(b, m, n, d) -> (b, m, n)>
#id = affine_map<(b, m, n) -> (b, m, n)>
#mn = affine_map<(b, m, n) -> (m, n)>
#bn = affine_map<(b, m, n) -> (b, n)>

// Weights that are squared after their softmax.
// CHECK-LABEL: @changed_weights(
// CHECK-NOT:     attune.attention
func.func @changed_weights(%q: tensor<2x5x8xf32>, %k: tensor<2x7x8xf32>, %v: tensor<2x7x5xf32>) -> tensor<2x5x5xf32> {
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<2x5x7xf32>
  %ys = tensor.empty() : tensor<2x5x5xf32>
  %e0 = linalg.fill ins(%zero : f32) outs(%es : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %e = linalg.contract indexing_maps = [#q, #k, #e] ins(%q, %k : tensor<2x5x8xf32>, tensor<2x7x8xf32>) outs(%e0 : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %s = linalg.softmax dimension(2) ins(%e : tensor<2x5x7xf32>) outs(%es : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  // expected-note @+1 {{weighed by the softmax of this}}
  %a = arith.mulf %s, %s : tensor<2x5x7xf32>
  %y0 = linalg.fill ins(%zero : f32) outs(%ys : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  // expected-remark @+1 {{not fused: its weights are changed after their softmax}}
  %y = linalg.batch_matmul ins(%a, %v : tensor<2x5x7xf32>, tensor<2x7x5xf32>) outs(%y0 : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  return %y : tensor<2x5x5xf32>
}

// -----

#q = affine_map<(b, m, n, d) -> (b, m, d)>
#k = affine_map<(b, m, n, d) -> (b, n, d)>
#e = affine_map<(b, m, n, d) -> (b, m, n)>
#id = affine_map<(b, m, n) -> (b, m, n)>
#mn = affine_map<(b, m, n) -> (m, n)>
#bn = affine_map<(b, m, n) -> (b, n)>

// A softmax that weighs nothing.
// CHECK-LABEL: @no_values(
// CHECK-NOT:     attune.attention
func.func @no_values(%q: tensor<2x5x8xf32>, %k: tensor<2x7x8xf32>, %v: tensor<2x7x5xf32>) -> tensor<2x5x5xf32> {
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<2x5x7xf32>
  %ys = tensor.empty() : tensor<2x5x5xf32>
  %e0 = linalg.fill ins(%zero : f32) outs(%es : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %e = linalg.contract indexing_maps = [#q, #k, #e] ins(%q, %k : tensor<2x5x8xf32>, tensor<2x7x8xf32>) outs(%e0 : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  // expected-remark @+1 {{not fused: no product with values follows its softmax}}
  %a = linalg.softmax dimension(2) ins(%e : tensor<2x5x7xf32>) outs(%es : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %y0 = tensor.extract_slice %a[0, 0, 0] [2, 5, 5] [1, 1, 1] : tensor<2x5x7xf32> to tensor<2x5x5xf32>
  return %y0 : tensor<2x5x5xf32>
}

// -----

#q = affine_map<(b, m, n, d) -> (b, m, d)>
#k = affine_map<(b, m, n, d) -> (b, n, d)>
#e = affine_map<(b, m, n, d) -> (b, m, n)>
#id = affine_map<(b, m, n) -> (b, m, n)>
#mn = affine_map<(b, m, n) -> (m, n)>
#bn = affine_map<(b, m, n) -> (b, n)>

// The same in its parts: the remark stands at the sum.
// CHECK-LABEL: @no_values_in_parts(
// CHECK-NOT:     attune.attention
func.func @no_values_in_parts(%q: tensor<2x5x8xf32>, %k: tensor<2x7x8xf32>, %v: tensor<2x7x5xf32>) -> tensor<2x5x5xf32> {
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<2x5x7xf32>
  %ys = tensor.empty() : tensor<2x5x5xf32>
  %e0 = linalg.fill ins(%zero : f32) outs(%es : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %e = linalg.contract indexing_maps = [#q, #k, #e] ins(%q, %k : tensor<2x5x8xf32>, tensor<2x7x8xf32>) outs(%e0 : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %rs = tensor.empty() : tensor<2x5xf32>
  %p = math.exp %e : tensor<2x5x7xf32>
  %s0 = linalg.fill ins(%zero : f32) outs(%rs : tensor<2x5xf32>) -> tensor<2x5xf32>
  // expected-remark @+1 {{not fused: no product with values follows its softmax}}
  %sum = linalg.reduce { arith.addf } ins(%p : tensor<2x5x7xf32>) outs(%s0 : tensor<2x5xf32>) dimensions = [2]
  %sb = linalg.broadcast ins(%sum : tensor<2x5xf32>) outs(%es : tensor<2x5x7xf32>) dimensions = [2]
  %a = arith.divf %p, %sb : tensor<2x5x7xf32>
  %y0 = tensor.extract_slice %a[0, 0, 0] [2, 5, 5] [1, 1, 1] : tensor<2x5x7xf32> to tensor<2x5x5xf32>
  return %y0 : tensor<2x5x5xf32>
}

// -----

#q = affine_map<(b, m, n, d) -> (b, m, d)>
#k = affine_map<(b, m, n, d) -> (b, n, d)>
#e = affine_map<(b, m, n, d) -> (b, m, n)>
#id = affine_map<(b, m, n) -> (b, m, n)>
#mn = affine_map<(b, m, n) -> (m, n)>
#bn = affine_map<(b, m, n) -> (b, n)>

// Values are shared by all of the batch, keys are not.
// CHECK-LABEL: @other_keys(
// CHECK-NOT:     attune.attention
func.func @other_keys(%q: tensor<2x5x8xf32>, %k: tensor<2x7x8xf32>, %v: tensor<2x7x5xf32>, %w: tensor<7x5xf32>) -> tensor<2x5x5xf32> {
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<2x5x7xf32>
  %ys = tensor.empty() : tensor<2x5x5xf32>
  %e0 = linalg.fill ins(%zero : f32) outs(%es : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  // expected-note @+1 {{multiplied here}}
  %e = linalg.contract indexing_maps = [#q, #k, #e] ins(%q, %k : tensor<2x5x8xf32>, tensor<2x7x8xf32>) outs(%e0 : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %a = linalg.softmax dimension(2) ins(%e : tensor<2x5x7xf32>) outs(%es : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %y0 = linalg.fill ins(%zero : f32) outs(%ys : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  // expected-remark @+1 {{not fused: its keys and values are not shared by the same heads}}
  %y = linalg.contract indexing_maps = [affine_map<(b, m, d, n) -> (b, m, n)>, affine_map<(b, m, d, n) -> (n, d)>, affine_map<(b, m, d, n) -> (b, m, d)>]
      ins(%a, %w : tensor<2x5x7xf32>, tensor<7x5xf32>) outs(%y0 : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  return %y : tensor<2x5x5xf32>
}

// RUN: attune-opt %s --attune-fuse-attention=explain-fusion --split-input-file --verify-diagnostics | FileCheck %s

#q = affine_map<(b, m, n, d) -> (b, m, d)>
#k = affine_map<(b, m, n, d) -> (b, n, d)>
#e = affine_map<(b, m, n, d) -> (b, m, n)>
#id = affine_map<(b, m, n) -> (b, m, n)>
#mn = affine_map<(b, m, n) -> (m, n)>
#bn = affine_map<(b, m, n) -> (b, n)>

// A query that does not see its own key.
// CHECK-LABEL: @off_by_one(
// CHECK-NOT:     attune.attention
func.func @off_by_one(%q: tensor<2x5x8xf32>, %k: tensor<2x5x8xf32>, %v: tensor<2x5x5xf32>) -> tensor<2x5x5xf32> {
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<2x5x5xf32>
  %ys = tensor.empty() : tensor<2x5x5xf32>
  %e0 = linalg.fill ins(%zero : f32) outs(%es : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %e = linalg.contract indexing_maps = [#q, #k, #e] ins(%q, %k : tensor<2x5x8xf32>, tensor<2x5x8xf32>) outs(%e0 : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %f = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%e : tensor<2x5x5xf32>) outs(%es : tensor<2x5x5xf32>) {
  ^bb0(%x: f32, %o: f32):
    %fill = arith.constant 0xFF800000 : f32
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %c = arith.cmpi slt, %j, %i : index
    %r = arith.select %c, %x, %fill : f32
    linalg.yield %r : f32
  } -> tensor<2x5x5xf32>
  // expected-note @+1 {{weighed by the softmax of this}}
  %a = linalg.softmax dimension(2) ins(%f : tensor<2x5x5xf32>) outs(%es : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %y0 = linalg.fill ins(%zero : f32) outs(%ys : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  // expected-remark @+1 {{not fused: its mask hides keys after query - 1; a causal mask hides those after query, or after query + keys - queries}}
  %y = linalg.batch_matmul ins(%a, %v : tensor<2x5x5xf32>, tensor<2x5x5xf32>) outs(%y0 : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  return %y : tensor<2x5x5xf32>
}

// -----

#q = affine_map<(b, m, n, d) -> (b, m, d)>
#k = affine_map<(b, m, n, d) -> (b, n, d)>
#e = affine_map<(b, m, n, d) -> (b, m, n)>
#id = affine_map<(b, m, n) -> (b, m, n)>
#mn = affine_map<(b, m, n) -> (m, n)>
#bn = affine_map<(b, m, n) -> (b, n)>

// Four keys come before the first query, not three.
// CHECK-LABEL: @other_alignment(
// CHECK-NOT:     attune.attention
func.func @other_alignment(%q: tensor<2x3x8xf32>, %k: tensor<2x7x8xf32>, %v: tensor<2x7x5xf32>) -> tensor<2x3x5xf32> {
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<2x3x7xf32>
  %ys = tensor.empty() : tensor<2x3x5xf32>
  %e0 = linalg.fill ins(%zero : f32) outs(%es : tensor<2x3x7xf32>) -> tensor<2x3x7xf32>
  %e = linalg.contract indexing_maps = [#q, #k, #e] ins(%q, %k : tensor<2x3x8xf32>, tensor<2x7x8xf32>) outs(%e0 : tensor<2x3x7xf32>) -> tensor<2x3x7xf32>
  %f = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%e : tensor<2x3x7xf32>) outs(%es : tensor<2x3x7xf32>) {
  ^bb0(%x: f32, %o: f32):
    %fill = arith.constant 0xFF800000 : f32
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %p = arith.constant 3 : index
    %own = arith.addi %i, %p : index
    %c = arith.cmpi sle, %j, %own : index
    %r = arith.select %c, %x, %fill : f32
    linalg.yield %r : f32
  } -> tensor<2x3x7xf32>
  // expected-note @+1 {{weighed by the softmax of this}}
  %a = linalg.softmax dimension(2) ins(%f : tensor<2x3x7xf32>) outs(%es : tensor<2x3x7xf32>) -> tensor<2x3x7xf32>
  %y0 = linalg.fill ins(%zero : f32) outs(%ys : tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
  // expected-remark @+1 {{not fused: its mask hides keys after query + 3; a causal mask hides those after query, or after query + keys - queries}}
  %y = linalg.batch_matmul ins(%a, %v : tensor<2x3x7xf32>, tensor<2x7x5xf32>) outs(%y0 : tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
  return %y : tensor<2x3x5xf32>
}

// -----

#q = affine_map<(b, m, n, d) -> (b, m, d)>
#k = affine_map<(b, m, n, d) -> (b, n, d)>
#e = affine_map<(b, m, n, d) -> (b, m, n)>
#id = affine_map<(b, m, n) -> (b, m, n)>
#mn = affine_map<(b, m, n) -> (m, n)>
#bn = affine_map<(b, m, n) -> (b, n)>

// Nobody knows that this is keys - queries.
// CHECK-LABEL: @other_size(
// CHECK-NOT:     attune.attention
func.func @other_size(%q: tensor<2x?x8xf32>, %k: tensor<2x?x8xf32>, %v: tensor<2x?x5xf32>, %past: index) -> tensor<2x?x5xf32> {
  %c1 = arith.constant 1 : index
  %m = tensor.dim %q, %c1 : tensor<2x?x8xf32>
  %n = tensor.dim %k, %c1 : tensor<2x?x8xf32>
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty(%m, %n) : tensor<2x?x?xf32>
  %ys = tensor.empty(%m) : tensor<2x?x5xf32>
  %e0 = linalg.fill ins(%zero : f32) outs(%es : tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %e = linalg.contract indexing_maps = [#q, #k, #e] ins(%q, %k : tensor<2x?x8xf32>, tensor<2x?x8xf32>) outs(%e0 : tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %f = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%e : tensor<2x?x?xf32>) outs(%es : tensor<2x?x?xf32>) {
  ^bb0(%x: f32, %o: f32):
    %fill = arith.constant 0xFF800000 : f32
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %own = arith.addi %i, %past : index
    %c = arith.cmpi sle, %j, %own : index
    %r = arith.select %c, %x, %fill : f32
    linalg.yield %r : f32
  } -> tensor<2x?x?xf32>
  // expected-note @+1 {{weighed by the softmax of this}}
  %a = linalg.softmax dimension(2) ins(%f : tensor<2x?x?xf32>) outs(%es : tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %y0 = linalg.fill ins(%zero : f32) outs(%ys : tensor<2x?x5xf32>) -> tensor<2x?x5xf32>
  // expected-remark @+1 {{not fused: its mask hides keys after query + a size that is not keys - queries; a causal mask hides those after query, or after query + keys - queries}}
  %y = linalg.batch_matmul ins(%a, %v : tensor<2x?x?xf32>, tensor<2x?x5xf32>) outs(%y0 : tensor<2x?x5xf32>) -> tensor<2x?x5xf32>
  return %y : tensor<2x?x5xf32>
}

// -----

#q = affine_map<(b, m, n, d) -> (b, m, d)>
#k = affine_map<(b, m, n, d) -> (b, n, d)>
#e = affine_map<(b, m, n, d) -> (b, m, n)>
#id = affine_map<(b, m, n) -> (b, m, n)>
#mn = affine_map<(b, m, n) -> (m, n)>
#bn = affine_map<(b, m, n) -> (b, n)>

// The first queries see no key: all keys are as likely here.
// CHECK-LABEL: @rows_without_keys(
// CHECK-NOT:     attune.attention
func.func @rows_without_keys(%q: tensor<2x7x8xf32>, %k: tensor<2x3x8xf32>, %v: tensor<2x3x5xf32>) -> tensor<2x7x5xf32> {
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<2x7x3xf32>
  %ys = tensor.empty() : tensor<2x7x5xf32>
  %e0 = linalg.fill ins(%zero : f32) outs(%es : tensor<2x7x3xf32>) -> tensor<2x7x3xf32>
  %e = linalg.contract indexing_maps = [#q, #k, #e] ins(%q, %k : tensor<2x7x8xf32>, tensor<2x3x8xf32>) outs(%e0 : tensor<2x7x3xf32>) -> tensor<2x7x3xf32>
  %f = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%e : tensor<2x7x3xf32>) outs(%es : tensor<2x7x3xf32>) {
  ^bb0(%x: f32, %o: f32):
    %fill = arith.constant -1.0e9 : f32
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %p = arith.constant 4 : index
    %e_ = arith.addi %j, %p : index
    %c = arith.cmpi sle, %e_, %i : index
    %r = arith.select %c, %x, %fill : f32
    linalg.yield %r : f32
  } -> tensor<2x7x3xf32>
  // expected-note @+1 {{weighed by the softmax of this}}
  %a = linalg.softmax dimension(2) ins(%f : tensor<2x7x3xf32>) outs(%es : tensor<2x7x3xf32>) -> tensor<2x7x3xf32>
  %y0 = linalg.fill ins(%zero : f32) outs(%ys : tensor<2x7x5xf32>) -> tensor<2x7x5xf32>
  // expected-remark @+1 {{not fused: a query that sees no key gets the mean of all values where hidden scores are -1e+09, and zeros from attention; mask with -inf}}
  %y = linalg.batch_matmul ins(%a, %v : tensor<2x7x3xf32>, tensor<2x3x5xf32>) outs(%y0 : tensor<2x7x5xf32>) -> tensor<2x7x5xf32>
  return %y : tensor<2x7x5xf32>
}

// -----

#q = affine_map<(b, m, n, d) -> (b, m, d)>
#k = affine_map<(b, m, n, d) -> (b, n, d)>
#e = affine_map<(b, m, n, d) -> (b, m, n)>
#id = affine_map<(b, m, n) -> (b, m, n)>
#mn = affine_map<(b, m, n) -> (m, n)>
#bn = affine_map<(b, m, n) -> (b, n)>

// -100 is a score like any other.
// CHECK-LABEL: @not_low(
// CHECK-NOT:     attune.attention
func.func @not_low(%q: tensor<2x5x8xf32>, %k: tensor<2x5x8xf32>, %v: tensor<2x5x5xf32>) -> tensor<2x5x5xf32> {
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<2x5x5xf32>
  %ys = tensor.empty() : tensor<2x5x5xf32>
  %e0 = linalg.fill ins(%zero : f32) outs(%es : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %e = linalg.contract indexing_maps = [#q, #k, #e] ins(%q, %k : tensor<2x5x8xf32>, tensor<2x5x8xf32>) outs(%e0 : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %f = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%e : tensor<2x5x5xf32>) outs(%es : tensor<2x5x5xf32>) {
  ^bb0(%x: f32, %o: f32):
    %fill = arith.constant -100.0 : f32
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %c = arith.cmpi sle, %j, %i : index
    %r = arith.select %c, %x, %fill : f32
    linalg.yield %r : f32
  } -> tensor<2x5x5xf32>
  // expected-note @+1 {{weighed by the softmax of this}}
  %a = linalg.softmax dimension(2) ins(%f : tensor<2x5x5xf32>) outs(%es : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %y0 = linalg.fill ins(%zero : f32) outs(%ys : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  // expected-remark @+1 {{not fused: its masked scores become -100, which other scores may be below; mask with -inf}}
  %y = linalg.batch_matmul ins(%a, %v : tensor<2x5x5xf32>, tensor<2x5x5xf32>) outs(%y0 : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  return %y : tensor<2x5x5xf32>
}

// -----

#q = affine_map<(b, m, n, d) -> (b, m, d)>
#k = affine_map<(b, m, n, d) -> (b, n, d)>
#e = affine_map<(b, m, n, d) -> (b, m, n)>
#id = affine_map<(b, m, n) -> (b, m, n)>
#mn = affine_map<(b, m, n) -> (m, n)>
#bn = affine_map<(b, m, n) -> (b, n)>

// A sequence may be all padding.
// CHECK-LABEL: @padding_not_low(
// CHECK-NOT:     attune.attention
func.func @padding_not_low(%q: tensor<2x5x8xf32>, %k: tensor<2x5x8xf32>, %v: tensor<2x5x5xf32>, %pad: tensor<2x5xi1>) -> tensor<2x5x5xf32> {
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<2x5x5xf32>
  %ys = tensor.empty() : tensor<2x5x5xf32>
  %e0 = linalg.fill ins(%zero : f32) outs(%es : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %e = linalg.contract indexing_maps = [#q, #k, #e] ins(%q, %k : tensor<2x5x8xf32>, tensor<2x5x8xf32>) outs(%e0 : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %f = linalg.generic {indexing_maps = [#bn, #id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%pad, %e : tensor<2x5xi1>, tensor<2x5x5xf32>) outs(%es : tensor<2x5x5xf32>) {
  ^bb0(%c: i1, %x: f32, %o: f32):
    %fill = arith.constant -1.0e9 : f32
    %r = arith.select %c, %x, %fill : f32
    linalg.yield %r : f32
  } -> tensor<2x5x5xf32>
  // expected-note @+1 {{weighed by the softmax of this}}
  %a = linalg.softmax dimension(2) ins(%f : tensor<2x5x5xf32>) outs(%es : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %y0 = linalg.fill ins(%zero : f32) outs(%ys : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  // expected-remark @+1 {{not fused: a query that sees no key gets the mean of all values where hidden scores are -1e+09, and zeros from attention; mask with -inf}}
  %y = linalg.batch_matmul ins(%a, %v : tensor<2x5x5xf32>, tensor<2x5x5xf32>) outs(%y0 : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  return %y : tensor<2x5x5xf32>
}

// -----

#q = affine_map<(b, m, n, d) -> (b, m, d)>
#k = affine_map<(b, m, n, d) -> (b, n, d)>
#e = affine_map<(b, m, n, d) -> (b, m, n)>
#id = affine_map<(b, m, n) -> (b, m, n)>
#mn = affine_map<(b, m, n) -> (m, n)>
#bn = affine_map<(b, m, n) -> (b, n)>

// A query and the others, but not itself.
// CHECK-LABEL: @equality(
// CHECK-NOT:     attune.attention
func.func @equality(%q: tensor<2x5x8xf32>, %k: tensor<2x5x8xf32>, %v: tensor<2x5x5xf32>) -> tensor<2x5x5xf32> {
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<2x5x5xf32>
  %ys = tensor.empty() : tensor<2x5x5xf32>
  %e0 = linalg.fill ins(%zero : f32) outs(%es : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %e = linalg.contract indexing_maps = [#q, #k, #e] ins(%q, %k : tensor<2x5x8xf32>, tensor<2x5x8xf32>) outs(%e0 : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %f = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%e : tensor<2x5x5xf32>) outs(%es : tensor<2x5x5xf32>) {
  ^bb0(%x: f32, %o: f32):
    %fill = arith.constant 0xFF800000 : f32
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %c = arith.cmpi ne, %j, %i : index
    %r = arith.select %c, %x, %fill : f32
    linalg.yield %r : f32
  } -> tensor<2x5x5xf32>
  // expected-note @+1 {{weighed by the softmax of this}}
  %a = linalg.softmax dimension(2) ins(%f : tensor<2x5x5xf32>) outs(%es : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %y0 = linalg.fill ins(%zero : f32) outs(%ys : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  // expected-remark @+1 {{not fused: its mask compares indices for equality}}
  %y = linalg.batch_matmul ins(%a, %v : tensor<2x5x5xf32>, tensor<2x5x5xf32>) outs(%y0 : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  return %y : tensor<2x5x5xf32>
}

// -----

#q = affine_map<(b, m, n, d) -> (b, m, d)>
#k = affine_map<(b, m, n, d) -> (b, n, d)>
#e = affine_map<(b, m, n, d) -> (b, m, n)>
#id = affine_map<(b, m, n) -> (b, m, n)>
#mn = affine_map<(b, m, n) -> (m, n)>
#bn = affine_map<(b, m, n) -> (b, n)>

// A prefix that all queries see.
// CHECK-LABEL: @band(
// CHECK-NOT:     attune.attention
func.func @band(%q: tensor<2x5x8xf32>, %k: tensor<2x5x8xf32>, %v: tensor<2x5x5xf32>) -> tensor<2x5x5xf32> {
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<2x5x5xf32>
  %ys = tensor.empty() : tensor<2x5x5xf32>
  %e0 = linalg.fill ins(%zero : f32) outs(%es : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %e = linalg.contract indexing_maps = [#q, #k, #e] ins(%q, %k : tensor<2x5x8xf32>, tensor<2x5x8xf32>) outs(%e0 : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %f = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%e : tensor<2x5x5xf32>) outs(%es : tensor<2x5x5xf32>) {
  ^bb0(%x: f32, %o: f32):
    %fill = arith.constant 0xFF800000 : f32
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %a_ = arith.cmpi sle, %j, %i : index
    %two = arith.constant 2 : index
    %b_ = arith.cmpi slt, %j, %two : index
    %c = arith.ori %a_, %b_ : i1
    %r = arith.select %c, %x, %fill : f32
    linalg.yield %r : f32
  } -> tensor<2x5x5xf32>
  // expected-note @+1 {{weighed by the softmax of this}}
  %a = linalg.softmax dimension(2) ins(%f : tensor<2x5x5xf32>) outs(%es : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %y0 = linalg.fill ins(%zero : f32) outs(%ys : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  // expected-remark @+1 {{not fused: its mask lets keys be seen for one of several reasons}}
  %y = linalg.batch_matmul ins(%a, %v : tensor<2x5x5xf32>, tensor<2x5x5xf32>) outs(%y0 : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  return %y : tensor<2x5x5xf32>
}

// -----

#q = affine_map<(b, m, n, d) -> (b, m, d)>
#k = affine_map<(b, m, n, d) -> (b, n, d)>
#e = affine_map<(b, m, n, d) -> (b, m, n)>
#id = affine_map<(b, m, n) -> (b, m, n)>
#mn = affine_map<(b, m, n) -> (m, n)>
#bn = affine_map<(b, m, n) -> (b, n)>

// Every sequence has an edge of its own.
// CHECK-LABEL: @batch_index(
// CHECK-NOT:     attune.attention
func.func @batch_index(%q: tensor<2x5x8xf32>, %k: tensor<2x5x8xf32>, %v: tensor<2x5x5xf32>) -> tensor<2x5x5xf32> {
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<2x5x5xf32>
  %ys = tensor.empty() : tensor<2x5x5xf32>
  %e0 = linalg.fill ins(%zero : f32) outs(%es : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %e = linalg.contract indexing_maps = [#q, #k, #e] ins(%q, %k : tensor<2x5x8xf32>, tensor<2x5x8xf32>) outs(%e0 : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %f = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%e : tensor<2x5x5xf32>) outs(%es : tensor<2x5x5xf32>) {
  ^bb0(%x: f32, %o: f32):
    %fill = arith.constant 0xFF800000 : f32
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %b_ = linalg.index 0 : index
    %e_ = arith.addi %i, %b_ : index
    %c = arith.cmpi sle, %j, %e_ : index
    %r = arith.select %c, %x, %fill : f32
    linalg.yield %r : f32
  } -> tensor<2x5x5xf32>
  // expected-note @+1 {{weighed by the softmax of this}}
  %a = linalg.softmax dimension(2) ins(%f : tensor<2x5x5xf32>) outs(%es : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %y0 = linalg.fill ins(%zero : f32) outs(%ys : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  // expected-remark @+1 {{not fused: its mask compares other indices than those of queries and keys}}
  %y = linalg.batch_matmul ins(%a, %v : tensor<2x5x5xf32>, tensor<2x5x5xf32>) outs(%y0 : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  return %y : tensor<2x5x5xf32>
}

// -----

#q = affine_map<(b, m, n, d) -> (b, m, d)>
#k = affine_map<(b, m, n, d) -> (b, n, d)>
#e = affine_map<(b, m, n, d) -> (b, m, n)>
#id = affine_map<(b, m, n) -> (b, m, n)>
#mn = affine_map<(b, m, n) -> (m, n)>
#bn = affine_map<(b, m, n) -> (b, n)>

// query - key wraps around where it is below zero: a window of both.
// CHECK-LABEL: @unsigned_difference(
// CHECK-NOT:     attune.attention
func.func @unsigned_difference(%q: tensor<2x5x8xf32>, %k: tensor<2x5x8xf32>, %v: tensor<2x5x5xf32>) -> tensor<2x5x5xf32> {
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<2x5x5xf32>
  %ys = tensor.empty() : tensor<2x5x5xf32>
  %e0 = linalg.fill ins(%zero : f32) outs(%es : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %e = linalg.contract indexing_maps = [#q, #k, #e] ins(%q, %k : tensor<2x5x8xf32>, tensor<2x5x8xf32>) outs(%e0 : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %f = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%e : tensor<2x5x5xf32>) outs(%es : tensor<2x5x5xf32>) {
  ^bb0(%x: f32, %o: f32):
    %fill = arith.constant 0xFF800000 : f32
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %two = arith.constant 2 : index
    %d = arith.subi %i, %j : index
    %c = arith.cmpi ule, %d, %two : index
    %r = arith.select %c, %x, %fill : f32
    linalg.yield %r : f32
  } -> tensor<2x5x5xf32>
  // expected-note @+1 {{weighed by the softmax of this}}
  %a = linalg.softmax dimension(2) ins(%f : tensor<2x5x5xf32>) outs(%es : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %y0 = linalg.fill ins(%zero : f32) outs(%ys : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  // expected-remark @+1 {{not fused: its mask compares without a sign what may be negative}}
  %y = linalg.batch_matmul ins(%a, %v : tensor<2x5x5xf32>, tensor<2x5x5xf32>) outs(%y0 : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  return %y : tensor<2x5x5xf32>
}

// -----

#q = affine_map<(b, m, n, d) -> (b, m, d)>
#k = affine_map<(b, m, n, d) -> (b, n, d)>
#e = affine_map<(b, m, n, d) -> (b, m, n)>
#id = affine_map<(b, m, n) -> (b, m, n)>
#mn = affine_map<(b, m, n) -> (m, n)>
#bn = affine_map<(b, m, n) -> (b, n)>

// A bias may be as low for all that a query sees.
// CHECK-LABEL: @low_and_bias(
// CHECK-NOT:     attune.attention
func.func @low_and_bias(%q: tensor<2x5x8xf32>, %k: tensor<2x5x8xf32>, %v: tensor<2x5x5xf32>, %bias: tensor<2x5x5xf32>) -> tensor<2x5x5xf32> {
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<2x5x5xf32>
  %ys = tensor.empty() : tensor<2x5x5xf32>
  %e0 = linalg.fill ins(%zero : f32) outs(%es : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %e = linalg.contract indexing_maps = [#q, #k, #e] ins(%q, %k : tensor<2x5x8xf32>, tensor<2x5x8xf32>) outs(%e0 : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %g = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%e : tensor<2x5x5xf32>) outs(%es : tensor<2x5x5xf32>) {
  ^bb0(%x: f32, %o: f32):
    %fill = arith.constant -1.0e9 : f32
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %c = arith.cmpi sle, %j, %i : index
    %r = arith.select %c, %x, %fill : f32
    linalg.yield %r : f32
  } -> tensor<2x5x5xf32>
  %f = arith.addf %g, %bias : tensor<2x5x5xf32>
  // expected-note @+1 {{weighed by the softmax of this}}
  %a = linalg.softmax dimension(2) ins(%f : tensor<2x5x5xf32>) outs(%es : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %y0 = linalg.fill ins(%zero : f32) outs(%ys : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  // expected-remark @+1 {{not fused: its masked scores become -1e+09, and its bias may make others as low; mask with -inf}}
  %y = linalg.batch_matmul ins(%a, %v : tensor<2x5x5xf32>, tensor<2x5x5xf32>) outs(%y0 : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  return %y : tensor<2x5x5xf32>
}

// -----

#q = affine_map<(b, m, n, d) -> (b, m, d)>
#k = affine_map<(b, m, n, d) -> (b, n, d)>
#e = affine_map<(b, m, n, d) -> (b, m, n)>
#id = affine_map<(b, m, n) -> (b, m, n)>
#mn = affine_map<(b, m, n) -> (m, n)>
#bn = affine_map<(b, m, n) -> (b, n)>

// Where all that a query sees is padding, it gets the mean of what it does not see.
// CHECK-LABEL: @low_and_padding(
// CHECK-NOT:     attune.attention
func.func @low_and_padding(%q: tensor<2x5x8xf32>, %k: tensor<2x5x8xf32>, %v: tensor<2x5x5xf32>, %pad: tensor<2x5xi1>) -> tensor<2x5x5xf32> {
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<2x5x5xf32>
  %ys = tensor.empty() : tensor<2x5x5xf32>
  %e0 = linalg.fill ins(%zero : f32) outs(%es : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %e = linalg.contract indexing_maps = [#q, #k, #e] ins(%q, %k : tensor<2x5x8xf32>, tensor<2x5x8xf32>) outs(%e0 : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %g = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%e : tensor<2x5x5xf32>) outs(%es : tensor<2x5x5xf32>) {
  ^bb0(%x: f32, %o: f32):
    %fill = arith.constant -1.0e9 : f32
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %c = arith.cmpi sle, %j, %i : index
    %r = arith.select %c, %x, %fill : f32
    linalg.yield %r : f32
  } -> tensor<2x5x5xf32>
  %f = linalg.generic {indexing_maps = [#bn, #id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%pad, %g : tensor<2x5xi1>, tensor<2x5x5xf32>) outs(%es : tensor<2x5x5xf32>) {
  ^bb0(%c: i1, %x: f32, %o: f32):
    %fill = arith.constant 0xFF800000 : f32
    %r = arith.select %c, %x, %fill : f32
    linalg.yield %r : f32
  } -> tensor<2x5x5xf32>
  // expected-note @+1 {{weighed by the softmax of this}}
  %a = linalg.softmax dimension(2) ins(%f : tensor<2x5x5xf32>) outs(%es : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %y0 = linalg.fill ins(%zero : f32) outs(%ys : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  // expected-remark @+1 {{not fused: its masked scores become -1e+09, and its other mask may make others as low; mask with -inf}}
  %y = linalg.batch_matmul ins(%a, %v : tensor<2x5x5xf32>, tensor<2x5x5xf32>) outs(%y0 : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  return %y : tensor<2x5x5xf32>
}

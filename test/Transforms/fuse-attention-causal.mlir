// RUN: attune-opt %s --attune-fuse-attention --split-input-file | FileCheck %s
// RUN: attune-opt %s --attune-validate=verbose --attune-fuse-attention --split-input-file -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=SAME --implicit-check-not=error --implicit-check-not=watched

#q = affine_map<(b, m, n, d) -> (b, m, d)>
#k = affine_map<(b, m, n, d) -> (b, n, d)>
#e = affine_map<(b, m, n, d) -> (b, m, n)>
#id = affine_map<(b, m, n) -> (b, m, n)>
#mn = affine_map<(b, m, n) -> (m, n)>
#bn = affine_map<(b, m, n) -> (b, n)>

// A query sees the keys up to its own index; this row of constants is as low
// as -inf, since every query sees key 0.
// CHECK-LABEL: @top_left(
// CHECK-NOT:     linalg.{{generic|softmax}}
// CHECK:         attune.attention {{.+}} scale 1.000000e+00 causal <top_left> :
// CHECK-NOT:     linalg.{{generic|softmax}}
// CHECK:         return
// SAME:          @top_left is the same on
func.func @top_left(%q: tensor<2x?x8xf32>, %k: tensor<2x?x8xf32>, %v: tensor<2x?x5xf32>) -> tensor<2x?x5xf32> {
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
    %fill = arith.constant -1.0e9 : f32
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %c = arith.cmpi sle, %j, %i : index
    %r = arith.select %c, %x, %fill : f32
    linalg.yield %r : f32
  } -> tensor<2x?x?xf32>
  %a = linalg.softmax dimension(2) ins(%f : tensor<2x?x?xf32>) outs(%es : tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %y0 = linalg.fill ins(%zero : f32) outs(%ys : tensor<2x?x5xf32>) -> tensor<2x?x5xf32>
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

// Sizes from the tensors: the last query sees all keys.
// CHECK-LABEL: @bottom_right(
// CHECK-NOT:     linalg.{{generic|softmax}}
// CHECK:         attune.attention {{.+}} scale 1.000000e+00 causal <bottom_right> :
// CHECK-NOT:     linalg.{{generic|softmax}}
// CHECK:         return
// SAME:          @bottom_right is the same on
func.func @bottom_right(%q: tensor<2x?x8xf32>, %k: tensor<2x?x8xf32>, %v: tensor<2x?x5xf32>) -> tensor<2x?x5xf32> {
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
    %past = arith.subi %n, %m : index
    %own = arith.addi %i, %past : index
    %c = arith.cmpi sle, %j, %own : index
    %r = arith.select %c, %x, %fill : f32
    linalg.yield %r : f32
  } -> tensor<2x?x?xf32>
  %a = linalg.softmax dimension(2) ins(%f : tensor<2x?x?xf32>) outs(%es : tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %y0 = linalg.fill ins(%zero : f32) outs(%ys : tensor<2x?x5xf32>) -> tensor<2x?x5xf32>
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

// In i32, as hidden instead of seen, with a window of three keys; the least f32.
// CHECK-LABEL: @window(
// CHECK-NOT:     linalg.{{generic|softmax}}
// CHECK:         attune.attention {{.+}} scale 1.000000e+00 causal <bottom_right> window 3 :
// CHECK-NOT:     linalg.{{generic|softmax}}
// CHECK:         return
// SAME:          @window is the same on
func.func @window(%q: tensor<2x3x8xf32>, %k: tensor<2x7x8xf32>, %v: tensor<2x7x5xf32>) -> tensor<2x3x5xf32> {
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<2x3x7xf32>
  %ys = tensor.empty() : tensor<2x3x5xf32>
  %e0 = linalg.fill ins(%zero : f32) outs(%es : tensor<2x3x7xf32>) -> tensor<2x3x7xf32>
  %e = linalg.contract indexing_maps = [#q, #k, #e] ins(%q, %k : tensor<2x3x8xf32>, tensor<2x7x8xf32>) outs(%e0 : tensor<2x3x7xf32>) -> tensor<2x3x7xf32>
  %f = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%e : tensor<2x3x7xf32>) outs(%es : tensor<2x3x7xf32>) {
  ^bb0(%x: f32, %o: f32):
    %fill = arith.constant 0xFF7FFFFF : f32
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %i3 = arith.index_cast %i : index to i32
    %j3 = arith.index_cast %j : index to i32
    %four = arith.constant 4 : i32
    %three = arith.constant 3 : i32
    %own = arith.addi %i3, %four : i32
    %late = arith.cmpi sgt, %j3, %own : i32
    %age = arith.subi %own, %j3 : i32
    %old = arith.cmpi sge, %age, %three : i32
    %c = arith.ori %late, %old : i1
    %r = arith.select %c, %fill, %x : f32
    linalg.yield %r : f32
  } -> tensor<2x3x7xf32>
  %a = linalg.softmax dimension(2) ins(%f : tensor<2x3x7xf32>) outs(%es : tensor<2x3x7xf32>) -> tensor<2x3x7xf32>
  %y0 = linalg.fill ins(%zero : f32) outs(%ys : tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
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

// A mask of its own is causal all the same; a second op has the window.
// CHECK-LABEL: @own_mask(
// CHECK-NOT:     linalg.{{generic|softmax}}
// CHECK:         attune.attention {{.+}} scale 1.000000e+00 causal <top_left> window 4 :
// CHECK-NOT:     linalg.{{generic|softmax}}
// CHECK:         return
// SAME:          @own_mask is the same on
func.func @own_mask(%q: tensor<2x5x8xf32>, %k: tensor<2x7x8xf32>, %v: tensor<2x7x5xf32>) -> tensor<2x5x5xf32> {
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<2x5x7xf32>
  %ys = tensor.empty() : tensor<2x5x5xf32>
  %e0 = linalg.fill ins(%zero : f32) outs(%es : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %e = linalg.contract indexing_maps = [#q, #k, #e] ins(%q, %k : tensor<2x5x8xf32>, tensor<2x7x8xf32>) outs(%e0 : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %ms = tensor.empty() : tensor<5x7xi1>
  %mask = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]} outs(%ms : tensor<5x7xi1>) {
  ^bb0(%o: i1):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %c = arith.cmpi sle, %j, %i : index
    linalg.yield %c : i1
  } -> tensor<5x7xi1>
  %g = linalg.generic {indexing_maps = [#mn, #id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%mask, %e : tensor<5x7xi1>, tensor<2x5x7xf32>) outs(%es : tensor<2x5x7xf32>) {
  ^bb0(%c: i1, %x: f32, %o: f32):
    %fill = arith.constant 0xFF800000 : f32
    %r = arith.select %c, %x, %fill : f32
    linalg.yield %r : f32
  } -> tensor<2x5x7xf32>
  %f = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%g : tensor<2x5x7xf32>) outs(%es : tensor<2x5x7xf32>) {
  ^bb0(%x: f32, %o: f32):
    %fill = arith.constant 0xFF800000 : f32
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %four = arith.constant 4 : index
    %end = arith.addi %j, %four : index
    %c = arith.cmpi slt, %i, %end : index
    %r = arith.select %c, %x, %fill : f32
    linalg.yield %r : f32
  } -> tensor<2x5x7xf32>
  %a = linalg.softmax dimension(2) ins(%f : tensor<2x5x7xf32>) outs(%es : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %y0 = linalg.fill ins(%zero : f32) outs(%ys : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
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

// Zeros and -inf that are added, beside a mask of keys.
// CHECK-LABEL: @added_mask(
// CHECK:         attune.attention {{.+}} mask %{{.+}} : tensor<2x1x1x6xi1> causal <bottom_right> :
// SAME:          @added_mask is the same on
func.func @added_mask(%q: tensor<2x6x8xf32>, %k: tensor<2x6x8xf32>, %v: tensor<2x6x5xf32>, %pad: tensor<2x6xi1>) -> tensor<2x6x5xf32> {
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<2x6x6xf32>
  %ys = tensor.empty() : tensor<2x6x5xf32>
  %e0 = linalg.fill ins(%zero : f32) outs(%es : tensor<2x6x6xf32>) -> tensor<2x6x6xf32>
  %e = linalg.contract indexing_maps = [#q, #k, #e] ins(%q, %k : tensor<2x6x8xf32>, tensor<2x6x8xf32>) outs(%e0 : tensor<2x6x6xf32>) -> tensor<2x6x6xf32>
  %ms = tensor.empty() : tensor<6x6xf32>
  %mask = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]} outs(%ms : tensor<6x6xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %c = arith.cmpi sle, %j, %i : index
    %zero_ = arith.constant 0.0 : f32
    %inf = arith.constant 0xFF800000 : f32
    %t = arith.select %c, %zero_, %inf : f32
    linalg.yield %t : f32
  } -> tensor<6x6xf32>
  %g = linalg.generic {indexing_maps = [#mn, #id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%mask, %e : tensor<6x6xf32>, tensor<2x6x6xf32>) outs(%es : tensor<2x6x6xf32>) {
  ^bb0(%c: f32, %x: f32, %o: f32):
    %r = arith.addf %x, %c : f32
    linalg.yield %r : f32
  } -> tensor<2x6x6xf32>
  %f = linalg.generic {indexing_maps = [#bn, #id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%pad, %g : tensor<2x6xi1>, tensor<2x6x6xf32>) outs(%es : tensor<2x6x6xf32>) {
  ^bb0(%c: i1, %x: f32, %o: f32):
    %fill = arith.constant 0xFF800000 : f32
    %r = arith.select %c, %x, %fill : f32
    linalg.yield %r : f32
  } -> tensor<2x6x6xf32>
  %a = linalg.softmax dimension(2) ins(%f : tensor<2x6x6xf32>) outs(%es : tensor<2x6x6xf32>) -> tensor<2x6x6xf32>
  %y0 = linalg.fill ins(%zero : f32) outs(%ys : tensor<2x6x5xf32>) -> tensor<2x6x5xf32>
  %y = linalg.batch_matmul ins(%a, %v : tensor<2x6x6xf32>, tensor<2x6x5xf32>) outs(%y0 : tensor<2x6x5xf32>) -> tensor<2x6x5xf32>
  return %y : tensor<2x6x5xf32>
}

// -----

#q = affine_map<(b, m, n, d) -> (b, m, d)>
#k = affine_map<(b, m, n, d) -> (b, n, d)>
#e = affine_map<(b, m, n, d) -> (b, m, n)>
#id = affine_map<(b, m, n) -> (b, m, n)>
#mn = affine_map<(b, m, n) -> (m, n)>
#bn = affine_map<(b, m, n) -> (b, n)>

// A bias beside a causal mask of -inf.
// CHECK-LABEL: @mask_and_bias(
// CHECK:         attune.attention {{.+}} bias %{{.+}} : tensor<2x1x1x6xf32> causal <bottom_right> :
// SAME:          @mask_and_bias is the same on
func.func @mask_and_bias(%q: tensor<2x6x8xf32>, %k: tensor<2x6x8xf32>, %v: tensor<2x6x5xf32>, %bias: tensor<2x6xf32>) -> tensor<2x6x5xf32> {
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<2x6x6xf32>
  %ys = tensor.empty() : tensor<2x6x5xf32>
  %e0 = linalg.fill ins(%zero : f32) outs(%es : tensor<2x6x6xf32>) -> tensor<2x6x6xf32>
  %e = linalg.contract indexing_maps = [#q, #k, #e] ins(%q, %k : tensor<2x6x8xf32>, tensor<2x6x8xf32>) outs(%e0 : tensor<2x6x6xf32>) -> tensor<2x6x6xf32>
  %g = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%e : tensor<2x6x6xf32>) outs(%es : tensor<2x6x6xf32>) {
  ^bb0(%x: f32, %o: f32):
    %fill = arith.constant 0xFF800000 : f32
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %c = arith.cmpi sle, %j, %i : index
    %r = arith.select %c, %x, %fill : f32
    linalg.yield %r : f32
  } -> tensor<2x6x6xf32>
  %f = linalg.generic {indexing_maps = [#bn, #id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%bias, %g : tensor<2x6xf32>, tensor<2x6x6xf32>) outs(%es : tensor<2x6x6xf32>) {
  ^bb0(%c: f32, %x: f32, %o: f32):
    %r = arith.addf %x, %c : f32
    linalg.yield %r : f32
  } -> tensor<2x6x6xf32>
  %a = linalg.softmax dimension(2) ins(%f : tensor<2x6x6xf32>) outs(%es : tensor<2x6x6xf32>) -> tensor<2x6x6xf32>
  %y0 = linalg.fill ins(%zero : f32) outs(%ys : tensor<2x6x5xf32>) -> tensor<2x6x5xf32>
  %y = linalg.batch_matmul ins(%a, %v : tensor<2x6x6xf32>, tensor<2x6x5xf32>) outs(%y0 : tensor<2x6x5xf32>) -> tensor<2x6x5xf32>
  return %y : tensor<2x6x5xf32>
}

// -----

#q = affine_map<(b, m, n, d) -> (b, m, d)>
#k = affine_map<(b, m, n, d) -> (b, n, d)>
#e = affine_map<(b, m, n, d) -> (b, m, n)>
#id = affine_map<(b, m, n) -> (b, m, n)>
#mn = affine_map<(b, m, n) -> (m, n)>
#bn = affine_map<(b, m, n) -> (b, n)>

// (1 - seen) * -1e9, seen as a number of its own.
// CHECK-LABEL: @float_mask(
// CHECK-NOT:     linalg.{{generic|softmax}}
// CHECK:         attune.attention {{.+}} scale 1.000000e+00 causal <bottom_right> :
// CHECK-NOT:     linalg.{{generic|softmax}}
// CHECK:         return
// SAME:          @float_mask is the same on
func.func @float_mask(%q: tensor<2x5x8xf32>, %k: tensor<2x5x8xf32>, %v: tensor<2x5x5xf32>) -> tensor<2x5x5xf32> {
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<2x5x5xf32>
  %ys = tensor.empty() : tensor<2x5x5xf32>
  %e0 = linalg.fill ins(%zero : f32) outs(%es : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %e = linalg.contract indexing_maps = [#q, #k, #e] ins(%q, %k : tensor<2x5x8xf32>, tensor<2x5x8xf32>) outs(%e0 : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %ms = tensor.empty() : tensor<5x5xf32>
  %mask = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]} outs(%ms : tensor<5x5xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %c = arith.cmpi sle, %j, %i : index
    %seen = arith.uitofp %c : i1 to f32
    %one = arith.constant 1.0 : f32
    %big = arith.constant -1.0e9 : f32
    %d = arith.subf %one, %seen : f32
    %t = arith.mulf %d, %big : f32
    linalg.yield %t : f32
  } -> tensor<5x5xf32>
  %f = linalg.generic {indexing_maps = [#mn, #id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%mask, %e : tensor<5x5xf32>, tensor<2x5x5xf32>) outs(%es : tensor<2x5x5xf32>) {
  ^bb0(%c: f32, %x: f32, %o: f32):
    %r = arith.addf %x, %c : f32
    linalg.yield %r : f32
  } -> tensor<2x5x5xf32>
  %a = linalg.softmax dimension(2) ins(%f : tensor<2x5x5xf32>) outs(%es : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %y0 = linalg.fill ins(%zero : f32) outs(%ys : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
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

// All keys are before the last query: there is nothing to hide.
// CHECK-LABEL: @one_query(
// CHECK:         attune.attention {{.+}} scale 1.000000e+00 :
// SAME:          @one_query is the same on
func.func @one_query(%q: tensor<2x1x8xf32>, %k: tensor<2x?x8xf32>, %v: tensor<2x?x5xf32>) -> tensor<2x1x5xf32> {
  %c1 = arith.constant 1 : index
  %n = tensor.dim %k, %c1 : tensor<2x?x8xf32>
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty(%n) : tensor<2x1x?xf32>
  %ys = tensor.empty() : tensor<2x1x5xf32>
  %e0 = linalg.fill ins(%zero : f32) outs(%es : tensor<2x1x?xf32>) -> tensor<2x1x?xf32>
  %e = linalg.contract indexing_maps = [#q, #k, #e] ins(%q, %k : tensor<2x1x8xf32>, tensor<2x?x8xf32>) outs(%e0 : tensor<2x1x?xf32>) -> tensor<2x1x?xf32>
  %f = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%e : tensor<2x1x?xf32>) outs(%es : tensor<2x1x?xf32>) {
  ^bb0(%x: f32, %o: f32):
    %fill = arith.constant 0xFF800000 : f32
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %one = arith.constant 1 : index
    %past = arith.subi %n, %one : index
    %own = arith.addi %i, %past : index
    %c = arith.cmpi sle, %j, %own : index
    %r = arith.select %c, %x, %fill : f32
    linalg.yield %r : f32
  } -> tensor<2x1x?xf32>
  %a = linalg.softmax dimension(2) ins(%f : tensor<2x1x?xf32>) outs(%es : tensor<2x1x?xf32>) -> tensor<2x1x?xf32>
  %y0 = linalg.fill ins(%zero : f32) outs(%ys : tensor<2x1x5xf32>) -> tensor<2x1x5xf32>
  %y = linalg.batch_matmul ins(%a, %v : tensor<2x1x?xf32>, tensor<2x?x5xf32>) outs(%y0 : tensor<2x1x5xf32>) -> tensor<2x1x5xf32>
  return %y : tensor<2x1x5xf32>
}

// -----

#q = affine_map<(b, m, n, d) -> (b, m, d)>
#k = affine_map<(b, m, n, d) -> (b, n, d)>
#e = affine_map<(b, m, n, d) -> (b, m, n)>
#id = affine_map<(b, m, n) -> (b, m, n)>
#mn = affine_map<(b, m, n) -> (m, n)>
#bn = affine_map<(b, m, n) -> (b, n)>

// One key fewer than causal is a mask like any other.
// CHECK-LABEL: @almost_causal(
// CHECK:         attune.attention {{.+}} mask %{{.+}} : tensor<1x1x5x5xi1> :
// SAME:          @almost_causal is the same on
func.func @almost_causal(%q: tensor<2x5x8xf32>, %k: tensor<2x5x8xf32>, %v: tensor<2x5x5xf32>) -> tensor<2x5x5xf32> {
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<2x5x5xf32>
  %ys = tensor.empty() : tensor<2x5x5xf32>
  %e0 = linalg.fill ins(%zero : f32) outs(%es : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %e = linalg.contract indexing_maps = [#q, #k, #e] ins(%q, %k : tensor<2x5x8xf32>, tensor<2x5x8xf32>) outs(%e0 : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %ms = tensor.empty() : tensor<5x5xi1>
  %mask = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]} outs(%ms : tensor<5x5xi1>) {
  ^bb0(%o: i1):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %c = arith.cmpi slt, %j, %i : index
    linalg.yield %c : i1
  } -> tensor<5x5xi1>
  %f = linalg.generic {indexing_maps = [#mn, #id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%mask, %e : tensor<5x5xi1>, tensor<2x5x5xf32>) outs(%es : tensor<2x5x5xf32>) {
  ^bb0(%c: i1, %x: f32, %o: f32):
    %fill = arith.constant 0xFF800000 : f32
    %r = arith.select %c, %x, %fill : f32
    linalg.yield %r : f32
  } -> tensor<2x5x5xf32>
  %a = linalg.softmax dimension(2) ins(%f : tensor<2x5x5xf32>) outs(%es : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %y0 = linalg.fill ins(%zero : f32) outs(%ys : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
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

// A mask that is true where a key is hidden is turned around.
// CHECK-LABEL: @hidden_where_true(
// CHECK:         arith.xori
// CHECK:         attune.attention {{.+}} mask %{{.+}} : tensor<2x1x1x5xi1> :
// SAME:          @hidden_where_true is the same on
func.func @hidden_where_true(%q: tensor<2x4x8xf32>, %k: tensor<2x5x8xf32>, %v: tensor<2x5x5xf32>, %pad: tensor<2x5xi1>) -> tensor<2x4x5xf32> {
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<2x4x5xf32>
  %ys = tensor.empty() : tensor<2x4x5xf32>
  %e0 = linalg.fill ins(%zero : f32) outs(%es : tensor<2x4x5xf32>) -> tensor<2x4x5xf32>
  %e = linalg.contract indexing_maps = [#q, #k, #e] ins(%q, %k : tensor<2x4x8xf32>, tensor<2x5x8xf32>) outs(%e0 : tensor<2x4x5xf32>) -> tensor<2x4x5xf32>
  %f = linalg.generic {indexing_maps = [#bn, #id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%pad, %e : tensor<2x5xi1>, tensor<2x4x5xf32>) outs(%es : tensor<2x4x5xf32>) {
  ^bb0(%c: i1, %x: f32, %o: f32):
    %fill = arith.constant 0xFF800000 : f32
    %r = arith.select %c, %fill, %x : f32
    linalg.yield %r : f32
  } -> tensor<2x4x5xf32>
  %a = linalg.softmax dimension(2) ins(%f : tensor<2x4x5xf32>) outs(%es : tensor<2x4x5xf32>) -> tensor<2x4x5xf32>
  %y0 = linalg.fill ins(%zero : f32) outs(%ys : tensor<2x4x5xf32>) -> tensor<2x4x5xf32>
  %y = linalg.batch_matmul ins(%a, %v : tensor<2x4x5xf32>, tensor<2x5x5xf32>) outs(%y0 : tensor<2x4x5xf32>) -> tensor<2x4x5xf32>
  return %y : tensor<2x4x5xf32>
}

// RUN: attune-opt %s --attune-fuse-attention --canonicalize --split-input-file | FileCheck %s
// RUN: attune-opt %s --attune-validate=verbose --attune-fuse-attention --split-input-file -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=SAME --implicit-check-not=error --implicit-check-not=watched

#rows = affine_map<(b, h, m, n, d) -> (b, m, h, d)>
#keys = affine_map<(b, h, m, n, d) -> (b, n, h, d)>
#scores = affine_map<(b, h, m, n, d) -> (b, h, m, n)>

// [batch, tokens, heads, width], the order of projections.
// CHECK-LABEL: @tokens_first(
// CHECK-SAME:    %[[Q:[a-z0-9]+]]: {{[^,]+}}, %[[K:[a-z0-9]+]]: {{[^,]+}}, %[[V:[a-z0-9]+]]: {{[^,]+}})
// CHECK:         %[[QT:.+]] = linalg.transpose ins(%[[Q]] : tensor<?x?x3x4xf32>) {{.+}} permutation = [0, 2, 1, 3]
// CHECK:         %[[KT:.+]] = linalg.transpose ins(%[[K]] : {{.+}} permutation = [0, 2, 1, 3]
// CHECK:         %[[VT:.+]] = linalg.transpose ins(%[[V]] : {{.+}} permutation = [0, 2, 1, 3]
// CHECK:         %[[Y:.+]] = attune.attention %[[QT]], %[[KT]], %[[VT]] scale 1.000000e+00 : tensor<?x3x?x4xf32>, tensor<?x3x?x4xf32>, tensor<?x3x?x5xf32> -> tensor<?x3x?x5xf32>
// CHECK:         %[[R:.+]] = linalg.transpose ins(%[[Y]] : {{.+}} permutation = [0, 2, 1, 3]
// CHECK-NOT:     linalg.{{softmax|generic}}
// CHECK:         return %[[R]]
// SAME:          @tokens_first is the same on
func.func @tokens_first(%q: tensor<?x?x3x4xf32>, %k: tensor<?x?x3x4xf32>, %v: tensor<?x?x3x5xf32>) -> tensor<?x?x3x5xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %b = tensor.dim %q, %c0 : tensor<?x?x3x4xf32>
  %m = tensor.dim %q, %c1 : tensor<?x?x3x4xf32>
  %n = tensor.dim %k, %c1 : tensor<?x?x3x4xf32>
  %es = tensor.empty(%b, %m, %n) : tensor<?x3x?x?xf32>
  %ys = tensor.empty(%b, %m) : tensor<?x?x3x5xf32>
  %e0 = linalg.fill ins(%zero : f32) outs(%es : tensor<?x3x?x?xf32>) -> tensor<?x3x?x?xf32>
  %e = linalg.generic {indexing_maps = [#rows, #keys, #scores], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<?x?x3x4xf32>, tensor<?x?x3x4xf32>) outs(%e0 : tensor<?x3x?x?xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %p = arith.mulf %x, %y : f32
    %r = arith.addf %o, %p : f32
    linalg.yield %r : f32
  } -> tensor<?x3x?x?xf32>
  %a = linalg.softmax dimension(3) ins(%e : tensor<?x3x?x?xf32>) outs(%es : tensor<?x3x?x?xf32>) -> tensor<?x3x?x?xf32>
  %y0 = linalg.fill ins(%zero : f32) outs(%ys : tensor<?x?x3x5xf32>) -> tensor<?x?x3x5xf32>
  // Values first: a product is as good either way round.
  %y = linalg.generic {indexing_maps = [affine_map<(b, m, h, d, n) -> (b, n, h, d)>, affine_map<(b, m, h, d, n) -> (b, h, m, n)>, affine_map<(b, m, h, d, n) -> (b, m, h, d)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%v, %a : tensor<?x?x3x5xf32>, tensor<?x3x?x?xf32>) outs(%y0 : tensor<?x?x3x5xf32>) {
  ^bb0(%x: f32, %z: f32, %o: f32):
    %t = arith.mulf %x, %z : f32
    %r = arith.addf %o, %t : f32
    linalg.yield %r : f32
  } -> tensor<?x?x3x5xf32>
  return %y : tensor<?x?x3x5xf32>
}

// -----

// Keys and values repeated for three query heads each: by a new dimension that
// is merged, and by a map. Both stay two heads.
// CHECK-LABEL: @repeated(
// CHECK-SAME:    %[[Q:[a-z0-9]+]]: {{[^,]+}}, %[[K:[a-z0-9]+]]: {{[^,]+}}, %[[V:[a-z0-9]+]]: {{[^,]+}}, %[[M:[a-z0-9]+]]: {{.+}})
// CHECK:         %[[M4:.+]] = tensor.expand_shape %[[M]]
// CHECK:         %[[Y:.+]] = attune.attention %[[Q]], %[[K]], %[[V]] scale 1.000000e+00 mask %[[M4]] : tensor<2x1x1x7xi1> : tensor<2x6x5x4xf32>, tensor<2x2x7x4xf32>, tensor<2x2x7x8xf32>
// CHECK-NEXT:    return %[[Y]]
// SAME:          @repeated is the same on
func.func @repeated(%q: tensor<2x6x5x4xf32>, %k: tensor<2x2x7x4xf32>, %v: tensor<2x2x7x8xf32>, %mask: tensor<2x7xi1>) -> tensor<2x6x5x8xf32> {
  %zero = arith.constant 0.0 : f32
  %inf = arith.constant 0xFF800000 : f32
  %es = tensor.empty() : tensor<2x6x5x7xf32>
  %ys = tensor.empty() : tensor<2x6x5x8xf32>
  %ks = tensor.empty() : tensor<2x2x3x7x4xf32>
  %kb = linalg.broadcast ins(%k : tensor<2x2x7x4xf32>) outs(%ks : tensor<2x2x3x7x4xf32>) dimensions = [2]
  %k6 = tensor.collapse_shape %kb [[0], [1, 2], [3], [4]] : tensor<2x2x3x7x4xf32> into tensor<2x6x7x4xf32>
  %vs = tensor.empty() : tensor<2x6x7x8xf32>
  %v6 = linalg.generic {indexing_maps = [affine_map<(b, h, n, d) -> (b, h floordiv 3, n, d)>, affine_map<(b, h, n, d) -> (b, h, n, d)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%v : tensor<2x2x7x8xf32>) outs(%vs : tensor<2x6x7x8xf32>) {
  ^bb0(%x: f32, %o: f32):
    linalg.yield %x : f32
  } -> tensor<2x6x7x8xf32>
  %e0 = linalg.fill ins(%zero : f32) outs(%es : tensor<2x6x5x7xf32>) -> tensor<2x6x5x7xf32>
  %e = linalg.generic {indexing_maps = [affine_map<(b, h, m, n, d) -> (b, h, m, d)>, affine_map<(b, h, m, n, d) -> (b, h, n, d)>, affine_map<(b, h, m, n, d) -> (b, h, m, n)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k6 : tensor<2x6x5x4xf32>, tensor<2x6x7x4xf32>) outs(%e0 : tensor<2x6x5x7xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %p = arith.mulf %x, %y : f32
    %r = arith.addf %o, %p : f32
    linalg.yield %r : f32
  } -> tensor<2x6x5x7xf32>
  %f = linalg.generic {indexing_maps = [affine_map<(b, h, m, n) -> (b, n)>, affine_map<(b, h, m, n) -> (b, h, m, n)>, affine_map<(b, h, m, n) -> (b, h, m, n)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%mask, %e : tensor<2x7xi1>, tensor<2x6x5x7xf32>) outs(%es : tensor<2x6x5x7xf32>) {
  ^bb0(%c: i1, %x: f32, %o: f32):
    %r = arith.select %c, %x, %inf : f32
    linalg.yield %r : f32
  } -> tensor<2x6x5x7xf32>
  %a = linalg.softmax dimension(3) ins(%f : tensor<2x6x5x7xf32>) outs(%es : tensor<2x6x5x7xf32>) -> tensor<2x6x5x7xf32>
  %y0 = linalg.fill ins(%zero : f32) outs(%ys : tensor<2x6x5x8xf32>) -> tensor<2x6x5x8xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(b, h, m, d, n) -> (b, h, m, n)>, affine_map<(b, h, m, d, n) -> (b, h, n, d)>, affine_map<(b, h, m, d, n) -> (b, h, m, d)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%a, %v6 : tensor<2x6x5x7xf32>, tensor<2x6x7x8xf32>) outs(%y0 : tensor<2x6x5x8xf32>) {
  ^bb0(%x: f32, %z: f32, %o: f32):
    %t = arith.mulf %x, %z : f32
    %r = arith.addf %o, %t : f32
    linalg.yield %r : f32
  } -> tensor<2x6x5x8xf32>
  return %y : tensor<2x6x5x8xf32>
}

// -----

// Groups as a dimension of their own, which keys and values lack; the bias
// differs by head.
// CHECK-LABEL: @grouped(
// CHECK-SAME:    %[[Q:[a-z0-9]+]]: {{[^,]+}}, %[[K:[a-z0-9]+]]: {{[^,]+}}, %[[V:[a-z0-9]+]]: {{[^,]+}}, %[[B:[a-z0-9]+]]: {{.+}})
// CHECK-DAG:     %[[Q4:.+]] = tensor.collapse_shape %[[Q]] {{\[\[}}0], [1, 2], [3], [4]]
// CHECK-DAG:     %[[B4:.+]] = tensor.expand_shape
// CHECK:         %[[Y:.+]] = attune.attention %[[Q4]], %[[K]], %[[V]] scale 1.000000e+00 bias %[[B4]] : tensor<1x6x5x7xf32> : tensor<2x6x5x4xf32>, tensor<2x2x7x4xf32>, tensor<2x2x7x8xf32>
// CHECK:         %[[R:.+]] = tensor.expand_shape %[[Y]] {{\[\[}}0], [1, 2], [3], [4]]
// CHECK:         return %[[R]]
// SAME:          @grouped is the same on
func.func @grouped(%q: tensor<2x2x3x5x4xf32>, %k: tensor<2x2x7x4xf32>, %v: tensor<2x2x7x8xf32>, %bias: tensor<2x3x5x7xf32>) -> tensor<2x2x3x5x8xf32> {
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<2x2x3x5x7xf32>
  %ys = tensor.empty() : tensor<2x2x3x5x8xf32>
  %e0 = linalg.fill ins(%zero : f32) outs(%es : tensor<2x2x3x5x7xf32>) -> tensor<2x2x3x5x7xf32>
  %e = linalg.contract indexing_maps = [affine_map<(b, h, g, m, n, d) -> (b, h, g, m, d)>, affine_map<(b, h, g, m, n, d) -> (b, h, n, d)>, affine_map<(b, h, g, m, n, d) -> (b, h, g, m, n)>]
      ins(%q, %k : tensor<2x2x3x5x4xf32>, tensor<2x2x7x4xf32>) outs(%e0 : tensor<2x2x3x5x7xf32>) -> tensor<2x2x3x5x7xf32>
  %bb = linalg.broadcast ins(%bias : tensor<2x3x5x7xf32>) outs(%es : tensor<2x2x3x5x7xf32>) dimensions = [0]
  %f = arith.addf %e, %bb : tensor<2x2x3x5x7xf32>
  %a = linalg.softmax dimension(4) ins(%f : tensor<2x2x3x5x7xf32>) outs(%es : tensor<2x2x3x5x7xf32>) -> tensor<2x2x3x5x7xf32>
  %y0 = linalg.fill ins(%zero : f32) outs(%ys : tensor<2x2x3x5x8xf32>) -> tensor<2x2x3x5x8xf32>
  %y = linalg.contract indexing_maps = [affine_map<(b, h, g, m, n, d) -> (b, h, g, m, n)>, affine_map<(b, h, g, m, n, d) -> (b, h, n, d)>, affine_map<(b, h, g, m, n, d) -> (b, h, g, m, d)>]
      ins(%a, %v : tensor<2x2x3x5x7xf32>, tensor<2x2x7x8xf32>) outs(%y0 : tensor<2x2x3x5x8xf32>) -> tensor<2x2x3x5x8xf32>
  return %y : tensor<2x2x3x5x8xf32>
}

// -----

// One head of keys for all queries (multi-query attention).
// CHECK-LABEL: @shared_keys(
// CHECK:         attune.attention {{.+}} : tensor<1x3x5x4xf32>, tensor<1x1x7x4xf32>, tensor<1x1x7x8xf32> -> tensor<1x3x5x8xf32>
// SAME:          @shared_keys is the same on
func.func @shared_keys(%q: tensor<3x5x4xf32>, %k: tensor<7x4xf32>, %v: tensor<7x8xf32>) -> tensor<3x5x8xf32> {
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<3x5x7xf32>
  %ys = tensor.empty() : tensor<3x5x8xf32>
  %e0 = linalg.fill ins(%zero : f32) outs(%es : tensor<3x5x7xf32>) -> tensor<3x5x7xf32>
  %e = linalg.contract indexing_maps = [affine_map<(h, m, n, d) -> (h, m, d)>, affine_map<(h, m, n, d) -> (n, d)>, affine_map<(h, m, n, d) -> (h, m, n)>]
      ins(%q, %k : tensor<3x5x4xf32>, tensor<7x4xf32>) outs(%e0 : tensor<3x5x7xf32>) -> tensor<3x5x7xf32>
  %a = linalg.softmax dimension(2) ins(%e : tensor<3x5x7xf32>) outs(%es : tensor<3x5x7xf32>) -> tensor<3x5x7xf32>
  %y0 = linalg.fill ins(%zero : f32) outs(%ys : tensor<3x5x8xf32>) -> tensor<3x5x8xf32>
  %y = linalg.contract indexing_maps = [affine_map<(h, m, n, d) -> (h, m, n)>, affine_map<(h, m, n, d) -> (n, d)>, affine_map<(h, m, n, d) -> (h, m, d)>]
      ins(%a, %v : tensor<3x5x7xf32>, tensor<7x8xf32>) outs(%y0 : tensor<3x5x8xf32>) -> tensor<3x5x8xf32>
  return %y : tensor<3x5x8xf32>
}

// -----

#id4 = affine_map<(b, h, m, n) -> (b, h, m, n)>
// Batch and heads as one dimension of the products, and as two of the softmax;
// a mask with dimensions of size one.
// CHECK-LABEL: @merged_batch(
// CHECK-NOT:     linalg.{{batch_matmul|generic|softmax}}
// CHECK:         attune.attention {{.+}} scale 1.000000e+00 mask %{{.+}} : tensor<1x1x5x7xi1> causal <bottom_right> : tensor<6x1x5x4xf32>, tensor<6x1x7x4xf32>, tensor<6x1x7x8xf32>
// CHECK-NOT:     linalg.{{batch_matmul|generic|softmax}}
// CHECK:         return
// SAME:          @merged_batch is the same on
func.func @merged_batch(%q: tensor<2x3x5x4xf32>, %k: tensor<2x3x7x4xf32>, %v: tensor<2x3x7x8xf32>, %mask: tensor<1x1x5x7xi1>) -> tensor<2x3x5x8xf32> {
  %zero = arith.constant 0.0 : f32
  %inf = arith.constant 0xFF800000 : f32
  %q3 = tensor.collapse_shape %q [[0, 1], [2], [3]] : tensor<2x3x5x4xf32> into tensor<6x5x4xf32>
  %kt = tensor.empty() : tensor<2x3x4x7xf32>
  %kk = linalg.transpose ins(%k : tensor<2x3x7x4xf32>) outs(%kt : tensor<2x3x4x7xf32>) permutation = [0, 1, 3, 2]
  %k3 = tensor.collapse_shape %kk [[0, 1], [2], [3]] : tensor<2x3x4x7xf32> into tensor<6x4x7xf32>
  %v3 = tensor.collapse_shape %v [[0, 1], [2], [3]] : tensor<2x3x7x8xf32> into tensor<6x7x8xf32>
  %es3 = tensor.empty() : tensor<6x5x7xf32>
  %es = tensor.empty() : tensor<2x3x5x7xf32>
  %ys3 = tensor.empty() : tensor<6x5x8xf32>
  %e0 = linalg.fill ins(%zero : f32) outs(%es3 : tensor<6x5x7xf32>) -> tensor<6x5x7xf32>
  %e = linalg.batch_matmul ins(%q3, %k3 : tensor<6x5x4xf32>, tensor<6x4x7xf32>) outs(%e0 : tensor<6x5x7xf32>) -> tensor<6x5x7xf32>
  %e4 = tensor.expand_shape %e [[0, 1], [2], [3]] output_shape [2, 3, 5, 7] : tensor<6x5x7xf32> into tensor<2x3x5x7xf32>
  %f = linalg.generic {indexing_maps = [affine_map<(b, h, m, n) -> (0, 0, m, n)>, #id4, #id4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%mask, %e4 : tensor<1x1x5x7xi1>, tensor<2x3x5x7xf32>) outs(%es : tensor<2x3x5x7xf32>) {
  ^bb0(%c: i1, %x: f32, %o: f32):
    %i = linalg.index 2 : index
    %j = linalg.index 3 : index
    %two = arith.constant 2 : index
    %own = arith.addi %i, %two : index
    %early = arith.cmpi sle, %j, %own : index
    %seen = arith.andi %early, %c : i1
    %r = arith.select %seen, %x, %inf : f32
    linalg.yield %r : f32
  } -> tensor<2x3x5x7xf32>
  %a = linalg.softmax dimension(3) ins(%f : tensor<2x3x5x7xf32>) outs(%es : tensor<2x3x5x7xf32>) -> tensor<2x3x5x7xf32>
  %a3 = tensor.collapse_shape %a [[0, 1], [2], [3]] : tensor<2x3x5x7xf32> into tensor<6x5x7xf32>
  %y0 = linalg.fill ins(%zero : f32) outs(%ys3 : tensor<6x5x8xf32>) -> tensor<6x5x8xf32>
  %y = linalg.batch_matmul ins(%a3, %v3 : tensor<6x5x7xf32>, tensor<6x7x8xf32>) outs(%y0 : tensor<6x5x8xf32>) -> tensor<6x5x8xf32>
  %r = tensor.expand_shape %y [[0, 1], [2], [3]] output_shape [2, 3, 5, 8] : tensor<6x5x8xf32> into tensor<2x3x5x8xf32>
  return %r : tensor<2x3x5x8xf32>
}

// -----

#id4 = affine_map<(b, h, m, n) -> (b, h, m, n)>
#k1 = affine_map<(b, h, m, n) -> (b, h, m, 0)>
// Sums and maxima that keep their dimension, in two ways.
// CHECK-LABEL: @kept_dimensions(
// CHECK:         attune.attention %{{.+}}, %{{.+}}, %{{.+}} scale 1.000000e+00 mask %arg3 : tensor<2x1x1x7xi1> :
// CHECK-NEXT:    return
// SAME:          @kept_dimensions is the same on
func.func @kept_dimensions(%q: tensor<2x3x5x4xf32>, %k: tensor<2x3x7x4xf32>, %v: tensor<2x3x7x8xf32>, %mask: tensor<2x1x1x7xi1>) -> tensor<2x3x5x8xf32> {
  %zero = arith.constant 0.0 : f32
  %inf = arith.constant 0xFF800000 : f32
  %es = tensor.empty() : tensor<2x3x5x7xf32>
  %rs = tensor.empty() : tensor<2x3x5xf32>
  %ys = tensor.empty() : tensor<2x3x5x8xf32>
  %e0 = linalg.fill ins(%zero : f32) outs(%es : tensor<2x3x5x7xf32>) -> tensor<2x3x5x7xf32>
  %e = linalg.contract indexing_maps = [affine_map<(b, h, m, n, d) -> (b, h, m, d)>, affine_map<(b, h, m, n, d) -> (b, h, n, d)>, affine_map<(b, h, m, n, d) -> (b, h, m, n)>]
      ins(%q, %k : tensor<2x3x5x4xf32>, tensor<2x3x7x4xf32>) outs(%e0 : tensor<2x3x5x7xf32>) -> tensor<2x3x5x7xf32>
  %f = linalg.generic {indexing_maps = [affine_map<(b, h, m, n) -> (b, 0, 0, n)>, #id4, #id4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%mask, %e : tensor<2x1x1x7xi1>, tensor<2x3x5x7xf32>) outs(%es : tensor<2x3x5x7xf32>) {
  ^bb0(%c: i1, %x: f32, %o: f32):
    %r = arith.select %c, %x, %inf : f32
    linalg.yield %r : f32
  } -> tensor<2x3x5x7xf32>
  %m0 = linalg.fill ins(%inf : f32) outs(%rs : tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
  %m = linalg.reduce { arith.maximumf } ins(%f : tensor<2x3x5x7xf32>) outs(%m0 : tensor<2x3x5xf32>) dimensions = [3]
  %mx = tensor.expand_shape %m [[0], [1], [2, 3]] output_shape [2, 3, 5, 1] : tensor<2x3x5xf32> into tensor<2x3x5x1xf32>
  %p = linalg.generic {indexing_maps = [#id4, #k1, #id4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%f, %mx : tensor<2x3x5x7xf32>, tensor<2x3x5x1xf32>) outs(%es : tensor<2x3x5x7xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %d = arith.subf %x, %y : f32
    %r = math.exp %d : f32
    linalg.yield %r : f32
  } -> tensor<2x3x5x7xf32>
  %rs1 = tensor.empty() : tensor<2x3x5x1xf32>
  %s0 = linalg.fill ins(%zero : f32) outs(%rs1 : tensor<2x3x5x1xf32>) -> tensor<2x3x5x1xf32>
  %s = linalg.generic {indexing_maps = [#id4, #k1], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%p : tensor<2x3x5x7xf32>) outs(%s0 : tensor<2x3x5x1xf32>) {
  ^bb0(%x: f32, %o: f32):
    %r = arith.addf %x, %o : f32
    linalg.yield %r : f32
  } -> tensor<2x3x5x1xf32>
  %a = linalg.generic {indexing_maps = [#id4, #k1, #id4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%p, %s : tensor<2x3x5x7xf32>, tensor<2x3x5x1xf32>) outs(%es : tensor<2x3x5x7xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %r = arith.divf %x, %y : f32
    linalg.yield %r : f32
  } -> tensor<2x3x5x7xf32>
  %y0 = linalg.fill ins(%zero : f32) outs(%ys : tensor<2x3x5x8xf32>) -> tensor<2x3x5x8xf32>
  %y = linalg.contract indexing_maps = [affine_map<(b, h, m, n, d) -> (b, h, m, n)>, affine_map<(b, h, m, n, d) -> (b, h, n, d)>, affine_map<(b, h, m, n, d) -> (b, h, m, d)>]
      ins(%a, %v : tensor<2x3x5x7xf32>, tensor<2x3x7x8xf32>) outs(%y0 : tensor<2x3x5x8xf32>) -> tensor<2x3x5x8xf32>
  return %y : tensor<2x3x5x8xf32>
}

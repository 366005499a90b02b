// RUN: attune-opt %s --attune-fuse-attention --split-input-file | FileCheck %s
// RUN: attune-opt %s --attune-fuse-attention --canonicalize --split-input-file | FileCheck %s --check-prefix=CLEAN

// Named ops of rank 3; keys are stored transposed.
// CHECK-LABEL: @named(
// CHECK-SAME:    %[[Q:[a-z0-9]+]]: {{[^,]+}}, %[[K:[a-z0-9]+]]: {{[^,]+}}, %[[V:[a-z0-9]+]]: {{[^,]+}})
// CHECK:         %[[Q4:.+]] = tensor.expand_shape %[[Q]] {{\[\[}}0], [1, 2], [3]]
// CHECK:         %[[KT:.+]] = linalg.transpose ins(%[[K]] : tensor<?x64x?xf32>) outs(%{{.+}} : tensor<?x?x64xf32>) permutation = [0, 2, 1]
// CHECK:         %[[K4:.+]] = tensor.expand_shape %[[KT]]
// CHECK:         %[[V4:.+]] = tensor.expand_shape %[[V]]
// CHECK:         %[[Y:.+]] = attune.attention %[[Q4]], %[[K4]], %[[V4]] scale 1.250000e-01 : tensor<?x1x?x64xf32>, tensor<?x1x?x64xf32>, tensor<?x1x?x32xf32> -> tensor<?x1x?x32xf32>
// CHECK:         %[[R:.+]] = tensor.collapse_shape %[[Y]] {{\[\[}}0], [1, 2], [3]]
// CHECK:         return %[[R]]
// CLEAN-LABEL: @named(
// CLEAN-NOT:     linalg.{{softmax|batch_matmul|mul|generic}}
// CLEAN:         return
func.func @named(%q: tensor<?x?x64xf32>, %k: tensor<?x64x?xf32>, %v: tensor<?x?x32xf32>) -> tensor<?x?x32xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  %scale = arith.constant 0.125 : f32
  %b = tensor.dim %q, %c0 : tensor<?x?x64xf32>
  %m = tensor.dim %q, %c1 : tensor<?x?x64xf32>
  %n = tensor.dim %k, %c2 : tensor<?x64x?xf32>
  %es = tensor.empty(%b, %m, %n) : tensor<?x?x?xf32>
  %e0 = linalg.fill ins(%zero : f32) outs(%es : tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  %e = linalg.batch_matmul ins(%q, %k : tensor<?x?x64xf32>, tensor<?x64x?xf32>) outs(%e0 : tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  %ss = linalg.fill ins(%scale : f32) outs(%es : tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  %s = linalg.mul ins(%e, %ss : tensor<?x?x?xf32>, tensor<?x?x?xf32>) outs(%es : tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  %a = linalg.softmax dimension(2) ins(%s : tensor<?x?x?xf32>) outs(%es : tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  %ys = tensor.empty(%b, %m) : tensor<?x?x32xf32>
  %y0 = linalg.fill ins(%zero : f32) outs(%ys : tensor<?x?x32xf32>) -> tensor<?x?x32xf32>
  %y = linalg.batch_matmul ins(%a, %v : tensor<?x?x?xf32>, tensor<?x?x32xf32>) outs(%y0 : tensor<?x?x32xf32>) -> tensor<?x?x32xf32>
  return %y : tensor<?x?x32xf32>
}

// -----

#rows = affine_map<(b, h, m, n, d) -> (b, h, m, d)>
#keys = affine_map<(b, h, m, n, d) -> (b, h, n, d)>
#scores = affine_map<(b, h, m, n, d) -> (b, h, m, n)>
#id = affine_map<(b, h, m, n) -> (b, h, m, n)>
#row = affine_map<(b, h, m, n) -> (b, h, m)>
#table = affine_map<(b, h, m, n) -> (m, n)>

// Generic ops of rank 4, the softmax in its parts, a table added to the scores
// and a padding mask; queries times keys by rows, so nothing is transposed.
// CHECK-LABEL: @generic(
// CHECK-SAME:    %[[Q:[a-z0-9]+]]: {{[^,]+}}, %[[K:[a-z0-9]+]]: {{[^,]+}}, %[[V:[a-z0-9]+]]: {{[^,]+}}, %[[B:[a-z0-9]+]]: {{[^,]+}}, %[[M:[a-z0-9]+]]: {{[^,]+}})
// CHECK-DAG:     %[[B4:.+]] = tensor.expand_shape %[[B]] {{\[\[}}0, 1, 2], [3]]
// CHECK-DAG:     %[[M4:.+]] = tensor.expand_shape %[[M]] {{\[\[}}0], [1, 2, 3]]
// CHECK:         %[[Y:.+]] = attune.attention %[[Q]], %[[K]], %[[V]] scale 5.000000e-01 mask %[[M4]] : tensor<2x1x1x7xi1> bias %[[B4]] : tensor<1x1x5x7xf32> : tensor<2x3x5x4xf32>, tensor<2x3x7x4xf32>, tensor<2x3x7x8xf32> -> tensor<2x3x5x8xf32>
// CHECK-NOT:     linalg.generic
// CHECK:         return %[[Y]]
func.func @generic(%q: tensor<2x3x5x4xf32>, %k: tensor<2x3x7x4xf32>, %v: tensor<2x3x7x8xf32>, %bias: tensor<5x7xf32>, %mask: tensor<2x7xi1>) -> tensor<2x3x5x8xf32> {
  %zero = arith.constant 0.0 : f32
  %inf = arith.constant 0xFF800000 : f32
  %two = arith.constant 2.0 : f32
  %es = tensor.empty() : tensor<2x3x5x7xf32>
  %rs = tensor.empty() : tensor<2x3x5xf32>
  %e0 = linalg.fill ins(%zero : f32) outs(%es : tensor<2x3x5x7xf32>) -> tensor<2x3x5x7xf32>
  %e = linalg.generic {indexing_maps = [#rows, #keys, #scores], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<2x3x5x4xf32>, tensor<2x3x7x4xf32>) outs(%e0 : tensor<2x3x5x7xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %p = arith.mulf %x, %y : f32
    %r = arith.addf %o, %p : f32
    linalg.yield %r : f32
  } -> tensor<2x3x5x7xf32>
  %f = linalg.generic {indexing_maps = [#table, affine_map<(b, h, m, n) -> (b, n)>, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%bias, %mask : tensor<5x7xf32>, tensor<2x7xi1>) outs(%e : tensor<2x3x5x7xf32>) {
  ^bb0(%x: f32, %y: i1, %o: f32):
    %p = arith.divf %o, %two : f32
    %r = arith.addf %x, %p : f32
    %s = arith.select %y, %r, %inf : f32
    linalg.yield %s : f32
  } -> tensor<2x3x5x7xf32>
  %m0 = linalg.fill ins(%inf : f32) outs(%rs : tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
  %m = linalg.reduce ins(%f : tensor<2x3x5x7xf32>) outs(%m0 : tensor<2x3x5xf32>) dimensions = [3]
    (%in: f32, %acc: f32) {
      %r = arith.maximumf %in, %acc : f32
      linalg.yield %r : f32
    }
  %p = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%f, %m : tensor<2x3x5x7xf32>, tensor<2x3x5xf32>) outs(%es : tensor<2x3x5x7xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %d = arith.subf %x, %y : f32
    %r = math.exp %d : f32
    linalg.yield %r : f32
  } -> tensor<2x3x5x7xf32>
  %s0 = linalg.fill ins(%zero : f32) outs(%rs : tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
  %s = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%p : tensor<2x3x5x7xf32>) outs(%s0 : tensor<2x3x5xf32>) {
  ^bb0(%x: f32, %o: f32):
    %r = arith.addf %x, %o : f32
    linalg.yield %r : f32
  } -> tensor<2x3x5xf32>
  %sb = linalg.broadcast ins(%s : tensor<2x3x5xf32>) outs(%es : tensor<2x3x5x7xf32>) dimensions = [3]
  %a = linalg.div ins(%p, %sb : tensor<2x3x5x7xf32>, tensor<2x3x5x7xf32>) outs(%es : tensor<2x3x5x7xf32>) -> tensor<2x3x5x7xf32>
  %ys = tensor.empty() : tensor<2x3x5x8xf32>
  %y0 = linalg.fill ins(%zero : f32) outs(%ys : tensor<2x3x5x8xf32>) -> tensor<2x3x5x8xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(b, h, m, d, n) -> (b, h, m, n)>, affine_map<(b, h, m, d, n) -> (b, h, n, d)>, affine_map<(b, h, m, d, n) -> (b, h, m, d)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%a, %v : tensor<2x3x5x7xf32>, tensor<2x3x7x8xf32>) outs(%y0 : tensor<2x3x5x8xf32>) attrs = {attune.fusion = "required"} {
  ^bb0(%x: f32, %z: f32, %o: f32):
    %t = arith.mulf %x, %z : f32
    %r = arith.addf %o, %t : f32
    linalg.yield %r : f32
  } -> tensor<2x3x5x8xf32>
  return %y : tensor<2x3x5x8xf32>
}

// -----

// One head as plain matrices, no maximum taken off, the quotient as a product
// with the inverse; keys are transposed by an op that is undone.
// CHECK-LABEL: @matrices(
// CHECK-SAME:    %[[Q:[a-z0-9]+]]: tensor<5x4xf32>, %[[K:[a-z0-9]+]]: tensor<7x4xf32>, %[[V:[a-z0-9]+]]: tensor<7x8xf32>)
// CHECK:         %[[Q4:.+]] = tensor.expand_shape %[[Q]] {{\[\[}}0, 1, 2], [3]]
// CHECK:         %[[K4:.+]] = tensor.expand_shape %[[K]] {{\[\[}}0, 1, 2], [3]]
// CHECK:         attune.attention %[[Q4]], %[[K4]], %{{.+}} scale 1.000000e+00 : tensor<1x1x5x4xf32>, tensor<1x1x7x4xf32>, tensor<1x1x7x8xf32> -> tensor<1x1x5x8xf32>
// CLEAN-LABEL: @matrices(
// CLEAN-NOT:     linalg
// CLEAN:         return
func.func @matrices(%q: tensor<5x4xf32>, %k: tensor<7x4xf32>, %v: tensor<7x8xf32>) -> tensor<5x8xf32> {
  %zero = arith.constant 0.0 : f32
  %ones = arith.constant dense<1.0> : tensor<5xf32>
  %kts = tensor.empty() : tensor<4x7xf32>
  %kt = linalg.transpose ins(%k : tensor<7x4xf32>) outs(%kts : tensor<4x7xf32>) permutation = [1, 0]
  %es = tensor.empty() : tensor<5x7xf32>
  %rs = tensor.empty() : tensor<5xf32>
  %e0 = linalg.fill ins(%zero : f32) outs(%es : tensor<5x7xf32>) -> tensor<5x7xf32>
  %e = linalg.matmul ins(%q, %kt : tensor<5x4xf32>, tensor<4x7xf32>) outs(%e0 : tensor<5x7xf32>) -> tensor<5x7xf32>
  %p = math.exp %e : tensor<5x7xf32>
  %s0 = linalg.fill ins(%zero : f32) outs(%rs : tensor<5xf32>) -> tensor<5xf32>
  %s = linalg.reduce ins(%p : tensor<5x7xf32>) outs(%s0 : tensor<5xf32>) dimensions = [1]
    (%in: f32, %acc: f32) {
      %r = arith.addf %in, %acc : f32
      linalg.yield %r : f32
    }
  %i = arith.divf %ones, %s : tensor<5xf32>
  %ib = linalg.broadcast ins(%i : tensor<5xf32>) outs(%es : tensor<5x7xf32>) dimensions = [1]
  %a = arith.mulf %p, %ib : tensor<5x7xf32>
  %ys = tensor.empty() : tensor<5x8xf32>
  %y0 = linalg.fill ins(%zero : f32) outs(%ys : tensor<5x8xf32>) -> tensor<5x8xf32>
  %y = linalg.matmul ins(%a, %v : tensor<5x7xf32>, tensor<7x8xf32>) outs(%y0 : tensor<5x8xf32>) -> tensor<5x8xf32>
  return %y : tensor<5x8xf32>
}

// -----

// Two products without a softmax between them are no attention.
// CHECK-LABEL: @no_op(
// CHECK-NOT:     attune.attention
// CHECK-COUNT-2: linalg.matmul
func.func @no_op(%q: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<4x4xf32>
  %e0 = linalg.fill ins(%zero : f32) outs(%es : tensor<4x4xf32>) -> tensor<4x4xf32>
  %e = linalg.matmul ins(%q, %q : tensor<4x4xf32>, tensor<4x4xf32>) outs(%e0 : tensor<4x4xf32>) -> tensor<4x4xf32>
  %y = linalg.matmul ins(%e, %q : tensor<4x4xf32>, tensor<4x4xf32>) outs(%e0 : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

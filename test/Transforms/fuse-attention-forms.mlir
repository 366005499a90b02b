// RUN: attune-opt %s --attune-fuse-attention --split-input-file | FileCheck %s
// RUN: attune-opt %s --attune-validate=verbose --attune-fuse-attention --split-input-file -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=SAME --implicit-check-not=error --implicit-check-not=watched

#bmn = affine_map<(b, m, n) -> (b, m, n)>
#bm = affine_map<(b, m, n) -> (b, m)>

// As flash attention does it: 2^x with log2 e in the scale, the quotient after
// the product with the values.
// CHECK-LABEL: @flash(
// CHECK-NOT:     linalg.{{generic|batch_matmul|reduce}}
// CHECK:         attune.attention %{{.+}}, %{{.+}}, %{{.+}} scale 1.250000e-01 : tensor<?x1x?x64xf32>
// CHECK-NOT:     linalg.{{generic|batch_matmul|reduce|div}}
// CHECK:         return
// SAME:          @flash is the same on
func.func @flash(%q: tensor<?x?x64xf32>, %k: tensor<?x64x?xf32>, %v: tensor<?x?x32xf32>) -> tensor<?x?x32xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  %inf = arith.constant 0xFF800000 : f32
  %scale = arith.constant 0.18033688011 : f32
  %b = tensor.dim %q, %c0 : tensor<?x?x64xf32>
  %m = tensor.dim %q, %c1 : tensor<?x?x64xf32>
  %n = tensor.dim %k, %c2 : tensor<?x64x?xf32>
  %es = tensor.empty(%b, %m, %n) : tensor<?x?x?xf32>
  %rs = tensor.empty(%b, %m) : tensor<?x?xf32>
  %ys = tensor.empty(%b, %m) : tensor<?x?x32xf32>
  %e0 = linalg.fill ins(%zero : f32) outs(%es : tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  %e = linalg.batch_matmul ins(%q, %k : tensor<?x?x64xf32>, tensor<?x64x?xf32>) outs(%e0 : tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  %m0 = linalg.fill ins(%inf : f32) outs(%rs : tensor<?x?xf32>) -> tensor<?x?xf32>
  %max = linalg.reduce { arith.maximumf } ins(%e : tensor<?x?x?xf32>) outs(%m0 : tensor<?x?xf32>) dimensions = [2]
  %p = linalg.generic {indexing_maps = [#bmn, #bm, #bmn], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%e, %max : tensor<?x?x?xf32>, tensor<?x?xf32>) outs(%es : tensor<?x?x?xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %s = arith.mulf %x, %scale : f32
    %t = arith.mulf %y, %scale : f32
    %d = arith.subf %s, %t : f32
    %r = math.exp2 %d : f32
    linalg.yield %r : f32
  } -> tensor<?x?x?xf32>
  %s0 = linalg.fill ins(%zero : f32) outs(%rs : tensor<?x?xf32>) -> tensor<?x?xf32>
  %sum = linalg.reduce { arith.addf } ins(%p : tensor<?x?x?xf32>) outs(%s0 : tensor<?x?xf32>) dimensions = [2]
  %y0 = linalg.fill ins(%zero : f32) outs(%ys : tensor<?x?x32xf32>) -> tensor<?x?x32xf32>
  %pv = linalg.batch_matmul {attune.fusion = "required"} ins(%p, %v : tensor<?x?x?xf32>, tensor<?x?x32xf32>) outs(%y0 : tensor<?x?x32xf32>) -> tensor<?x?x32xf32>
  %r = linalg.generic {indexing_maps = [#bmn, #bm, #bmn], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%pv, %sum : tensor<?x?x32xf32>, tensor<?x?xf32>) outs(%ys : tensor<?x?x32xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %d = arith.divf %x, %y : f32
    linalg.yield %d : f32
  } -> tensor<?x?x32xf32>
  return %r : tensor<?x?x32xf32>
}

// -----

// The wish stands at the quotient, which is a product with the inverse; the
// scores are scaled after their maximum is subtracted.
// CHECK-LABEL: @inverse_after(
// CHECK:         attune.attention {{.+}} scale 2.500000e-01 :
// CHECK-NOT:     linalg
// CHECK:         return
// SAME:          @inverse_after is the same on
func.func @inverse_after(%q: tensor<5x4xf32>, %k: tensor<7x4xf32>, %v: tensor<7x8xf32>) -> tensor<5x8xf32> {
  %zero = arith.constant 0.0 : f32
  %inf = arith.constant 0xFF800000 : f32
  %ones = arith.constant dense<1.0> : tensor<5xf32>
  %quarter = arith.constant dense<0.25> : tensor<5x7xf32>
  %es = tensor.empty() : tensor<5x7xf32>
  %rs = tensor.empty() : tensor<5xf32>
  %ys = tensor.empty() : tensor<5x8xf32>
  %e0 = linalg.fill ins(%zero : f32) outs(%es : tensor<5x7xf32>) -> tensor<5x7xf32>
  %e = linalg.matmul indexing_maps = [affine_map<(m, n, d) -> (m, d)>, affine_map<(m, n, d) -> (n, d)>, affine_map<(m, n, d) -> (m, n)>]
      ins(%q, %k : tensor<5x4xf32>, tensor<7x4xf32>) outs(%e0 : tensor<5x7xf32>) -> tensor<5x7xf32>
  %m0 = linalg.fill ins(%inf : f32) outs(%rs : tensor<5xf32>) -> tensor<5xf32>
  %max = linalg.reduce { arith.maximumf } ins(%e : tensor<5x7xf32>) outs(%m0 : tensor<5xf32>) dimensions = [1]
  %mb = linalg.broadcast ins(%max : tensor<5xf32>) outs(%es : tensor<5x7xf32>) dimensions = [1]
  %d = arith.subf %e, %mb : tensor<5x7xf32>
  %s = arith.mulf %d, %quarter : tensor<5x7xf32>
  %p = math.exp %s : tensor<5x7xf32>
  %s0 = linalg.fill ins(%zero : f32) outs(%rs : tensor<5xf32>) -> tensor<5xf32>
  %sum = linalg.reduce { arith.addf } ins(%p : tensor<5x7xf32>) outs(%s0 : tensor<5xf32>) dimensions = [1]
  %i = arith.divf %ones, %sum : tensor<5xf32>
  %ib = linalg.broadcast ins(%i : tensor<5xf32>) outs(%ys : tensor<5x8xf32>) dimensions = [1]
  %y0 = linalg.fill ins(%zero : f32) outs(%ys : tensor<5x8xf32>) -> tensor<5x8xf32>
  %pv = linalg.matmul ins(%p, %v : tensor<5x7xf32>, tensor<7x8xf32>) outs(%y0 : tensor<5x8xf32>) -> tensor<5x8xf32>
  %r = arith.mulf %pv, %ib {attune.fusion = "required"} : tensor<5x8xf32>
  return %r : tensor<5x8xf32>
}

// -----

#id = affine_map<(m, n) -> (m, n)>

// A soft cap, then a bias, in base 2 with log2 e to the precision of f32.
// CHECK-LABEL: @capped(
// CHECK:         attune.attention {{.+}} scale 5.000000e-01 bias {{.+}} softcap 3.000000e+01 :
// CHECK-NOT:     linalg
// CHECK:         return
// SAME:          @capped is the same on
func.func @capped(%q: tensor<5x4xf32>, %k: tensor<4x7xf32>, %v: tensor<7x8xf32>, %bias: tensor<5x7xf32>) -> tensor<5x8xf32> {
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f32
  %cap = arith.constant 30.0 : f32
  %log2e = arith.constant 1.44269504 : f32
  %es = tensor.empty() : tensor<5x7xf32>
  %rs = tensor.empty() : tensor<5xf32>
  %ys = tensor.empty() : tensor<5x8xf32>
  %e0 = linalg.fill ins(%zero : f32) outs(%es : tensor<5x7xf32>) -> tensor<5x7xf32>
  %e = linalg.matmul ins(%q, %k : tensor<5x4xf32>, tensor<4x7xf32>) outs(%e0 : tensor<5x7xf32>) -> tensor<5x7xf32>
  %p = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%e, %bias : tensor<5x7xf32>, tensor<5x7xf32>) outs(%es : tensor<5x7xf32>) {
  ^bb0(%x: f32, %b: f32, %o: f32):
    %s = arith.mulf %x, %half : f32
    %d = arith.divf %s, %cap : f32
    %t = math.tanh %d : f32
    %c = arith.mulf %cap, %t : f32
    %f = arith.addf %b, %c : f32
    %g = arith.mulf %f, %log2e : f32
    %r = math.exp2 %g : f32
    linalg.yield %r : f32
  } -> tensor<5x7xf32>
  %s0 = linalg.fill ins(%zero : f32) outs(%rs : tensor<5xf32>) -> tensor<5xf32>
  %sum = linalg.reduce { arith.addf } ins(%p : tensor<5x7xf32>) outs(%s0 : tensor<5xf32>) dimensions = [1]
  %sb = linalg.broadcast ins(%sum : tensor<5xf32>) outs(%es : tensor<5x7xf32>) dimensions = [1]
  %a = arith.divf %p, %sb : tensor<5x7xf32>
  %y0 = linalg.fill ins(%zero : f32) outs(%ys : tensor<5x8xf32>) -> tensor<5x8xf32>
  %y = linalg.matmul ins(%a, %v : tensor<5x7xf32>, tensor<7x8xf32>) outs(%y0 : tensor<5x8xf32>) -> tensor<5x8xf32>
  return %y : tensor<5x8xf32>
}

// -----

#id = affine_map<(m, n) -> (m, n)>

// Constants are taken as they are: 20 tanh(s / 40) is 20 tanh((s / 2) / 20).
// CHECK-LABEL: @unequal_cap(
// CHECK:         attune.attention {{.+}} scale 5.000000e-01 softcap 2.000000e+01 :
// SAME:          @unequal_cap is the same on
func.func @unequal_cap(%q: tensor<5x4xf32>, %k: tensor<4x7xf32>, %v: tensor<7x8xf32>) -> tensor<5x8xf32> {
  %zero = arith.constant 0.0 : f32
  %inner = arith.constant 40.0 : f32
  %outer = arith.constant 20.0 : f32
  %es = tensor.empty() : tensor<5x7xf32>
  %ys = tensor.empty() : tensor<5x8xf32>
  %e0 = linalg.fill ins(%zero : f32) outs(%es : tensor<5x7xf32>) -> tensor<5x7xf32>
  %e = linalg.matmul ins(%q, %k : tensor<5x4xf32>, tensor<4x7xf32>) outs(%e0 : tensor<5x7xf32>) -> tensor<5x7xf32>
  %f = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%e : tensor<5x7xf32>) outs(%es : tensor<5x7xf32>) {
  ^bb0(%x: f32, %o: f32):
    %d = arith.divf %x, %inner : f32
    %t = math.tanh %d : f32
    %c = arith.mulf %t, %outer : f32
    linalg.yield %c : f32
  } -> tensor<5x7xf32>
  %a = linalg.softmax dimension(1) ins(%f : tensor<5x7xf32>) outs(%es : tensor<5x7xf32>) -> tensor<5x7xf32>
  %y0 = linalg.fill ins(%zero : f32) outs(%ys : tensor<5x8xf32>) -> tensor<5x8xf32>
  %y = linalg.matmul ins(%a, %v : tensor<5x7xf32>, tensor<7x8xf32>) outs(%y0 : tensor<5x8xf32>) -> tensor<5x8xf32>
  return %y : tensor<5x8xf32>
}

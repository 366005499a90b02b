// RUN: attune-opt %s --attune-fuse-attention --split-input-file | FileCheck %s
// RUN: attune-opt %s --attune-validate=verbose --attune-fuse-attention=explain-fusion --split-input-file -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=SAME --implicit-check-not=error --implicit-check-not=watched

// The source rounds scores, weights and sums to f16; attention rounds once.
// CHECK-LABEL: @all_f16(
// CHECK:         attune.attention {{.+}} scale 1.250000e-01 causal <bottom_right> : tensor<2x1x5x8xf16>, tensor<2x1x5x8xf16>, tensor<2x1x5x4xf16> -> tensor<2x1x5x4xf16>
// CHECK-NOT:     linalg.{{softmax|generic}}
// CHECK:         return
// SAME:          remark: fused into attune.attention: 1 query heads over 1 key/value heads, causal bottom_right; more exact than the source, which rounds its scores to f16
// SAME:          @all_f16 is the same on
#id = affine_map<(b, m, n) -> (b, m, n)>
func.func @all_f16(%q: tensor<2x5x8xf16>, %k: tensor<2x8x5xf16>, %v: tensor<2x5x4xf16>) -> tensor<2x5x4xf16> {
  %zero = arith.constant 0.0 : f16
  %scale = arith.constant 0.125 : f16
  %least = arith.constant -65504.0 : f16
  %es = tensor.empty() : tensor<2x5x5xf16>
  %ys = tensor.empty() : tensor<2x5x4xf16>
  %e0 = linalg.fill ins(%zero : f16) outs(%es : tensor<2x5x5xf16>) -> tensor<2x5x5xf16>
  %e = linalg.batch_matmul ins(%q, %k : tensor<2x5x8xf16>, tensor<2x8x5xf16>) outs(%e0 : tensor<2x5x5xf16>) -> tensor<2x5x5xf16>
  %f = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%e : tensor<2x5x5xf16>) outs(%es : tensor<2x5x5xf16>) {
  ^bb0(%x: f16, %o: f16):
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %c = arith.cmpi ule, %j, %i : index
    %s = arith.mulf %x, %scale : f16
    %r = arith.select %c, %s, %least : f16
    linalg.yield %r : f16
  } -> tensor<2x5x5xf16>
  %a = linalg.softmax dimension(2) ins(%f : tensor<2x5x5xf16>) outs(%es : tensor<2x5x5xf16>) -> tensor<2x5x5xf16>
  %y0 = linalg.fill ins(%zero : f16) outs(%ys : tensor<2x5x4xf16>) -> tensor<2x5x4xf16>
  %y = linalg.batch_matmul ins(%a, %v : tensor<2x5x5xf16>, tensor<2x5x4xf16>) outs(%y0 : tensor<2x5x4xf16>) -> tensor<2x5x4xf16>
  return %y : tensor<2x5x4xf16>
}

// -----

// Scores and sums in f32, weights truncated for the product with the values,
// whose result is divided and rounded: mixed precision as it is written for
// tensor cores. The bias is widened.
// CHECK-LABEL: @truncated_weights(
// CHECK:         %[[B:.+]] = linalg.generic {{.+}} ins(%{{.+}} : tensor<5x7xbf16>) outs(%{{.+}} : tensor<5x7xf32>)
// CHECK:         attune.attention {{.+}} scale 1.000000e+00 bias %{{.+}} : tensor<1x1x5x7xf32> : tensor<2x1x5x8xbf16>, tensor<2x1x7x8xbf16>, tensor<2x1x7x4xbf16> -> tensor<2x1x5x4xbf16>
// CHECK-NOT:     linalg
// CHECK:         return
// SAME:          remark: fused into attune.attention: 1 query heads over 1 key/value heads, bias; more exact than the source, which rounds its weights to bf16
// SAME:          @truncated_weights is the same on
#id = affine_map<(b, m, n) -> (b, m, n)>
#row = affine_map<(b, m, n) -> (b, m)>
func.func @truncated_weights(%q: tensor<2x5x8xbf16>, %k: tensor<2x8x7xbf16>, %v: tensor<2x7x4xbf16>, %bias: tensor<5x7xbf16>) -> tensor<2x5x4xbf16> {
  %zero = arith.constant 0.0 : f32
  %inf = arith.constant 0xFF800000 : f32
  %es = tensor.empty() : tensor<2x5x7xf32>
  %ps = tensor.empty() : tensor<2x5x7xbf16>
  %rs = tensor.empty() : tensor<2x5xf32>
  %ys = tensor.empty() : tensor<2x5x4xf32>
  %zs = tensor.empty() : tensor<2x5x4xbf16>
  %e0 = linalg.fill ins(%zero : f32) outs(%es : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %e = linalg.batch_matmul ins(%q, %k : tensor<2x5x8xbf16>, tensor<2x8x7xbf16>) outs(%e0 : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %f = linalg.generic {indexing_maps = [affine_map<(b, m, n) -> (m, n)>, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%bias : tensor<5x7xbf16>) outs(%e : tensor<2x5x7xf32>) {
  ^bb0(%x: bf16, %o: f32):
    %b = arith.extf %x : bf16 to f32
    %r = arith.addf %o, %b : f32
    linalg.yield %r : f32
  } -> tensor<2x5x7xf32>
  %m0 = linalg.fill ins(%inf : f32) outs(%rs : tensor<2x5xf32>) -> tensor<2x5xf32>
  %max = linalg.reduce { arith.maxnumf } ins(%f : tensor<2x5x7xf32>) outs(%m0 : tensor<2x5xf32>) dimensions = [2]
  %p = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%f, %max : tensor<2x5x7xf32>, tensor<2x5xf32>) outs(%es : tensor<2x5x7xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %d = arith.subf %x, %y : f32
    %r = math.exp %d : f32
    linalg.yield %r : f32
  } -> tensor<2x5x7xf32>
  %s0 = linalg.fill ins(%zero : f32) outs(%rs : tensor<2x5xf32>) -> tensor<2x5xf32>
  %sum = linalg.reduce { arith.addf } ins(%p : tensor<2x5x7xf32>) outs(%s0 : tensor<2x5xf32>) dimensions = [2]
  %t = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%p : tensor<2x5x7xf32>) outs(%ps : tensor<2x5x7xbf16>) {
  ^bb0(%x: f32, %o: bf16):
    %r = arith.truncf %x : f32 to bf16
    linalg.yield %r : bf16
  } -> tensor<2x5x7xbf16>
  %y0 = linalg.fill ins(%zero : f32) outs(%ys : tensor<2x5x4xf32>) -> tensor<2x5x4xf32>
  %y = linalg.batch_matmul ins(%t, %v : tensor<2x5x7xbf16>, tensor<2x7x4xbf16>) outs(%y0 : tensor<2x5x4xf32>) -> tensor<2x5x4xf32>
  %z = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%y, %sum : tensor<2x5x4xf32>, tensor<2x5xf32>) outs(%zs : tensor<2x5x4xbf16>) {
  ^bb0(%x: f32, %l: f32, %o: bf16):
    %d = arith.divf %x, %l : f32
    %r = arith.truncf %d : f32 to bf16
    linalg.yield %r : bf16
  } -> tensor<2x5x4xbf16>
  return %z : tensor<2x5x4xbf16>
}

// -----

// Normalized weights are truncated.
// CHECK-LABEL: @truncated_softmax(
// CHECK:         attune.attention {{.+}} : tensor<1x1x?x8xf16>, tensor<1x1x?x8xf16>, tensor<1x1x?x4xf16> -> tensor<1x1x?x4xf32>
// SAME:          which rounds its weights to f16
// SAME:          @truncated_softmax is the same on
func.func @truncated_softmax(%q: tensor<?x8xf16>, %k: tensor<8x?xf16>, %v: tensor<?x4xf16>) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %q, %c0 : tensor<?x8xf16>
  %n = tensor.dim %k, %c1 : tensor<8x?xf16>
  %es = tensor.empty(%m, %n) : tensor<?x?xf32>
  %ys = tensor.empty(%m) : tensor<?x4xf32>
  %e0 = linalg.fill ins(%zero : f32) outs(%es : tensor<?x?xf32>) -> tensor<?x?xf32>
  %e = linalg.matmul ins(%q, %k : tensor<?x8xf16>, tensor<8x?xf16>) outs(%e0 : tensor<?x?xf32>) -> tensor<?x?xf32>
  %a = linalg.softmax dimension(1) ins(%e : tensor<?x?xf32>) outs(%es : tensor<?x?xf32>) -> tensor<?x?xf32>
  %t = arith.truncf %a : tensor<?x?xf32> to tensor<?x?xf16>
  %y0 = linalg.fill ins(%zero : f32) outs(%ys : tensor<?x4xf32>) -> tensor<?x4xf32>
  %y = linalg.matmul ins(%t, %v : tensor<?x?xf16>, tensor<?x4xf16>) outs(%y0 : tensor<?x4xf32>) -> tensor<?x4xf32>
  return %y : tensor<?x4xf32>
}

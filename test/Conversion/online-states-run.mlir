// Three queries over three keys: the first two keys and the last one folded into
// states of their own, merged, finished. Two batches and two key heads at once,
// so that a step loops over them. The scores are as small as -8192 in @low.
// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-online-to-vector,canonicalize,cse), \
// RUN:   one-shot-bufferize{bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map}, \
// RUN:   func.func(attune-approximate-math),expand-strided-metadata,lower-affine,convert-scf-to-cf,convert-math-to-libm,convert-vector-to-llvm, \
// RUN:   finalize-memref-to-llvm,convert-arith-to-llvm,convert-func-to-llvm,convert-cf-to-llvm,reconcile-unrealized-casts)" \
// RUN: | mlir-runner --entry-point-result=void --shared-libs=%llvm_tools/../lib/libmlir_c_runner_utils.so,%llvm_tools/../lib/libmlir_runner_utils.so \
// RUN: | FileCheck %s
// The tile ops as they are become memory, and vectors there:
// RUN: attune-opt %s --pass-pipeline="builtin.module(one-shot-bufferize{bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map}, \
// RUN:   func.func(convert-attune-online-to-vector,canonicalize,cse), \
// RUN:   func.func(attune-approximate-math),expand-strided-metadata,lower-affine,convert-scf-to-cf,convert-math-to-libm,convert-vector-to-llvm, \
// RUN:   finalize-memref-to-llvm,convert-arith-to-llvm,convert-func-to-llvm,convert-cf-to-llvm,reconcile-unrealized-casts)" \
// RUN: | mlir-runner --entry-point-result=void --shared-libs=%llvm_tools/../lib/libmlir_c_runner_utils.so,%llvm_tools/../lib/libmlir_runner_utils.so \
// RUN: | FileCheck %s

!heads = tensor<2x2x3x2xf32>
!rows = tensor<2x2x3xf32>
func.func private @printMemrefF32(%data: tensor<*xf32> {bufferization.access = "read"})

func.func @attend(%q: !heads, %k: !heads, %v: !heads) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %heads = tensor.empty() : !heads
  %rows = tensor.empty() : !rows
  %start:3 = attune.online_start outs(%heads, %rows, %rows : !heads, !rows, !rows) -> !heads, !rows, !rows
  %k0 = tensor.extract_slice %k[0, 0, 0, 0] [2, 2, 2, 2] [1, 1, 1, 1] : !heads to tensor<2x2x2x2xf32>
  %v0 = tensor.extract_slice %v[0, 0, 0, 0] [2, 2, 2, 2] [1, 1, 1, 1] : !heads to tensor<2x2x2x2xf32>
  %k1 = tensor.extract_slice %k[0, 0, 2, 0] [2, 2, 1, 2] [1, 1, 1, 1] : !heads to tensor<2x2x1x2xf32>
  %v1 = tensor.extract_slice %v[0, 0, 2, 0] [2, 2, 1, 2] [1, 1, 1, 1] : !heads to tensor<2x2x1x2xf32>
  %a:3 = attune.online_attention %q, %k0, %v0 scale 0.70710678 at [%c0, %c0] of [%c3, %c3]
    outs(%start#0, %start#1, %start#2 : !heads, !rows, !rows)
    : !heads, tensor<2x2x2x2xf32>, tensor<2x2x2x2xf32> -> !heads, !rows, !rows
  %b:3 = attune.online_attention %q, %k1, %v1 scale 0.70710678 at [%c0, %c2] of [%c3, %c3]
    outs(%start#0, %start#1, %start#2 : !heads, !rows, !rows)
    : !heads, tensor<2x2x1x2xf32>, tensor<2x2x1x2xf32> -> !heads, !rows, !rows
  %c:3 = attune.online_merge (%b#0, %b#1, %b#2) outs(%a#0, %a#1, %a#2 : !heads, !rows)
    : !heads, !rows -> !heads, !rows, !rows
  // An empty state changes nothing.
  %d:3 = attune.online_merge (%c#0, %c#1, %c#2) outs(%start#0, %start#1, %start#2 : !heads, !rows)
    : !heads, !rows -> !heads, !rows, !rows
  %empty_y = tensor.empty() : !heads
  %empty_lse = tensor.empty() : !rows
  %y, %lse = attune.online_finish %d#0, %d#1, %d#2 into %empty_y lse %empty_lse : !rows
    : !heads, !rows, !rows, !heads -> !heads, !rows
  %0 = tensor.cast %y : !heads to tensor<*xf32>
  %1 = tensor.cast %lse : !rows to tensor<*xf32>
  call @printMemrefF32(%0) : (tensor<*xf32>) -> ()
  call @printMemrefF32(%1) : (tensor<*xf32>) -> ()
  return
}

func.func @main() {
  %q = arith.constant dense<[[[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]], [[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]]]> : !heads
  %k = arith.constant dense<[[[[1.0, 1.0], [0.0, 1.0], [1.0, 0.0]], [[1.0, 1.0], [0.0, 1.0], [1.0, 0.0]]], [[[1.0, 1.0], [0.0, 1.0], [1.0, 0.0]], [[1.0, 1.0], [0.0, 1.0], [1.0, 0.0]]]]> : !heads
  %v = arith.constant dense<[[[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]], [[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]]]> : !heads
  // CHECK:      sizes = [2, 2, 3, 2]
  // CHECK-NEXT: 3,    4
  // CHECK-NEXT: 2.59333,    3.59333
  // CHECK-NEXT: 2.48953,    3.48953
  // CHECK-NEXT: 3,    4
  // CHECK:      sizes = [2, 2, 3]
  // CHECK-NEXT: 1.62{{[0-9]+}},    1.62{{[0-9]+}},    2.10
  call @attend(%q, %k, %v) : (!heads, !heads, !heads) -> ()

  // Every score is about -8192: only their differences count.
  %low = arith.constant dense<-5792.6187515> : !heads
  %one = arith.constant dense<1.0> : !heads
  // CHECK:      sizes = [2, 2, 3, 2]
  // CHECK-NEXT: 3,    4
  // CHECK-NEXT: 3,    4
  // CHECK-NEXT: 3,    4
  // CHECK:      sizes = [2, 2, 3]
  // CHECK-NEXT: -8190.9
  call @attend(%one, %low, %v) : (!heads, !heads, !heads) -> ()
  return
}

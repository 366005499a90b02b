// RUN: attune-opt %s --convert-attune-ladder-to-linalg --convert-elementwise-to-linalg --canonicalize --cse \
// RUN:   --one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" \
// RUN:   --convert-linalg-to-loops --expand-strided-metadata --lower-affine --convert-scf-to-cf --convert-math-to-libm \
// RUN:   --arith-expand="include-bf16=true" --convert-arith-to-llvm --convert-cf-to-llvm --finalize-memref-to-llvm --convert-func-to-llvm --reconcile-unrealized-casts \
// RUN: | mlir-runner --entry-point-result=void --shared-libs=%llvm_tools/../lib/libmlir_c_runner_utils.so,%llvm_tools/../lib/libmlir_runner_utils.so \
// RUN: | FileCheck %s

func.func private @printMemrefF32(%data: tensor<*xf32> {bufferization.access = "read"})

// Three queries over three keys; hand-worked. exp(1/sqrt 2) = 2.0281.
func.func @worked() {
  %q = arith.constant dense<[[[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]]]> : tensor<1x1x3x2xf32>
  %k = arith.constant dense<[[[[1.0, 1.0], [0.0, 1.0], [1.0, 0.0]]]]> : tensor<1x1x3x2xf32>
  %v = arith.constant dense<[[[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]]]> : tensor<1x1x3x2xf32>
  %e = attune.similarity %q, %k scale 0.70710678 : tensor<1x1x3x2xf32>, tensor<1x1x3x2xf32> -> tensor<1x1x3x3xf32>
  %a = attune.softmax %e : tensor<1x1x3x3xf32>
  %y = attune.weighted_sum %a, %v : tensor<1x1x3x3xf32>, tensor<1x1x3x2xf32> -> tensor<1x1x3x2xf32>
  %0 = tensor.cast %a : tensor<1x1x3x3xf32> to tensor<*xf32>
  %1 = tensor.cast %y : tensor<1x1x3x2xf32> to tensor<*xf32>
  // CHECK:      sizes = [1, 1, 3, 3]
  // CHECK-NEXT: 0.401112,    0.197776,    0.401112
  // CHECK-NEXT: 0.401112,    0.401112,    0.197776
  // CHECK-NEXT: 0.50349,    0.248255,    0.248255
  // CHECK:      sizes = [1, 1, 3, 2]
  // CHECK-NEXT: 3,    4
  // CHECK-NEXT: 2.59333,    3.59333
  // CHECK-NEXT: 2.48953,    3.48953
  call @printMemrefF32(%0) : (tensor<*xf32>) -> ()
  call @printMemrefF32(%1) : (tensor<*xf32>) -> ()
  return
}

// Zero scores make every visible key weigh the same, so the weights show what
// each query sees. Two query heads share one key head.
func.func @seen(%q: tensor<1x2x?x1xf32>, %k: tensor<1x1x?x1xf32>) {
  %e = attune.similarity %q, %k scale 1.0 : tensor<1x2x?x1xf32>, tensor<1x1x?x1xf32> -> tensor<1x2x?x?xf32>
  // Two queries over three keys: the last query sees every key.
  // CHECK:      sizes = [1, 2, 2, 3]
  // CHECK-NEXT: 0.5,    0.5,    0
  // CHECK-NEXT: 0.333333,    0.333333,    0.333333
  // CHECK-NEXT: 0.5,    0.5,    0
  // CHECK-NEXT: 0.333333,    0.333333,    0.333333
  %f0 = attune.mask_scores %e causal <bottom_right> : tensor<1x2x?x?xf32>
  call @show(%f0) : (tensor<1x2x?x?xf32>) -> ()
  // CHECK:      sizes = [1, 2, 2, 3]
  // CHECK-NEXT: 1,    0,    0
  // CHECK-NEXT: 0.5,    0.5,    0
  %f1 = attune.mask_scores %e causal <top_left> : tensor<1x2x?x?xf32>
  call @show(%f1) : (tensor<1x2x?x?xf32>) -> ()
  // A window of one is the query's own key.
  // CHECK:      sizes = [1, 2, 2, 3]
  // CHECK-NEXT: 0,    1,    0
  // CHECK-NEXT: 0,    0,    1
  %f2 = attune.mask_scores %e causal <bottom_right> window 1 : tensor<1x2x?x?xf32>
  call @show(%f2) : (tensor<1x2x?x?xf32>) -> ()
  // A query that sees nothing gives zeros, not NaN.
  // CHECK:      sizes = [1, 2, 2, 3]
  // CHECK-NEXT: 0,    0,    0
  // CHECK-NEXT: 0.5,    0,    0.5
  %mask = arith.constant dense<[[[[false, false, false], [true, false, true]]]]> : tensor<1x1x2x3xi1>
  %f3 = attune.mask_scores %e mask %mask : tensor<1x1x2x3xi1> : tensor<1x2x?x?xf32>
  call @show(%f3) : (tensor<1x2x?x?xf32>) -> ()
  // A sink as strong as one key takes its share even of a dead row.
  // CHECK:      sizes = [1, 2, 2, 3]
  // CHECK-NEXT: 0,    0,    0
  // CHECK-NEXT: 0.333333,    0,    0.333333
  %sinks = arith.constant dense<0.0> : tensor<2xf32>
  %a = attune.softmax %f3 sinks %sinks : tensor<2xf32> : tensor<1x2x?x?xf32>
  %a0 = tensor.cast %a : tensor<1x2x?x?xf32> to tensor<*xf32>
  call @printMemrefF32(%a0) : (tensor<*xf32>) -> ()
  // CHECK:      sizes = [1, 2, 2]
  // CHECK-NEXT: -inf,    0.693147
  // CHECK:      sizes = [1, 2, 2]
  // CHECK-NEXT: 0,    1.09861
  %l0 = attune.log_sum_exp %f3 : tensor<1x2x?x?xf32> -> tensor<1x2x?xf32>
  %l1 = attune.log_sum_exp %f3 sinks %sinks : tensor<2xf32> : tensor<1x2x?x?xf32> -> tensor<1x2x?xf32>
  %l2 = tensor.cast %l0 : tensor<1x2x?xf32> to tensor<*xf32>
  call @printMemrefF32(%l2) : (tensor<*xf32>) -> ()
  %l3 = tensor.cast %l1 : tensor<1x2x?xf32> to tensor<*xf32>
  call @printMemrefF32(%l3) : (tensor<*xf32>) -> ()
  // Scores by distance from the query's own position, then the bias.
  // CHECK:      sizes = [1, 2, 2, 3]
  // CHECK-NEXT: -1,    0,    1
  // CHECK-NEXT: -2,    -1,    0
  // CHECK-NEXT: -0.5,    0,    0.5
  // CHECK-NEXT: -1,    -0.5,    0
  // CHECK:      sizes = [1, 2, 2, 3]
  // CHECK-NEXT: 9,    8,    7
  // CHECK-NEXT: 6,    5,    4
  // CHECK-NEXT: 9,    8,    7
  %slopes = arith.constant dense<[1.0, 0.5]> : tensor<2xf32>
  %f4 = attune.mask_scores %e slopes %slopes : tensor<2xf32> : tensor<1x2x?x?xf32>
  %f5 = tensor.cast %f4 : tensor<1x2x?x?xf32> to tensor<*xf32>
  call @printMemrefF32(%f5) : (tensor<*xf32>) -> ()
  %bias = arith.constant dense<[[[[9.0, 8.0, 7.0], [6.0, 5.0, 4.0]]]]> : tensor<1x1x2x3xf32>
  %f6 = attune.mask_scores %e bias %bias : tensor<1x1x2x3xf32> : tensor<1x2x?x?xf32>
  %f7 = tensor.cast %f6 : tensor<1x2x?x?xf32> to tensor<*xf32>
  call @printMemrefF32(%f7) : (tensor<*xf32>) -> ()
  return
}

func.func @show(%e: tensor<1x2x?x?xf32>) {
  %a = attune.softmax %e : tensor<1x2x?x?xf32>
  %0 = tensor.cast %a : tensor<1x2x?x?xf32> to tensor<*xf32>
  call @printMemrefF32(%0) : (tensor<*xf32>) -> ()
  return
}

// Scores of 1e30 overflow nothing; the soft cap brings them down to 10.
func.func @extremes() {
  %e = arith.constant dense<[[[[1.0e+30, 1.0e+30, -1.0e+30]]]]> : tensor<1x1x1x3xf32>
  // CHECK:      sizes = [1, 1, 1, 3]
  // CHECK-NEXT: 0.5,    0.5,    0
  %a = attune.softmax %e : tensor<1x1x1x3xf32>
  %0 = tensor.cast %a : tensor<1x1x1x3xf32> to tensor<*xf32>
  call @printMemrefF32(%0) : (tensor<*xf32>) -> ()
  // CHECK:      sizes = [1, 1, 1, 3]
  // CHECK-NEXT: 10,    10,    -10
  %c = attune.mask_scores %e softcap 10.0 : tensor<1x1x1x3xf32>
  %1 = tensor.cast %c : tensor<1x1x1x3xf32> to tensor<*xf32>
  call @printMemrefF32(%1) : (tensor<*xf32>) -> ()
  // Values in bf16 are summed in f32 and rounded once.
  // CHECK:      sizes = [1, 1, 1, 1]
  // CHECK-NEXT: 2.75
  %v = arith.constant dense<[[[[1.5], [4.0], [100.0]]]]> : tensor<1x1x3x1xbf16>
  %y = attune.weighted_sum %a, %v : tensor<1x1x1x3xf32>, tensor<1x1x3x1xbf16> -> tensor<1x1x1x1xbf16>
  %wide = arith.extf %y : tensor<1x1x1x1xbf16> to tensor<1x1x1x1xf32>
  %2 = tensor.cast %wide : tensor<1x1x1x1xf32> to tensor<*xf32>
  call @printMemrefF32(%2) : (tensor<*xf32>) -> ()
  return
}

func.func @main() {
  call @worked() : () -> ()
  %q = arith.constant dense<0.0> : tensor<1x2x2x1xf32>
  %k = arith.constant dense<0.0> : tensor<1x1x3x1xf32>
  %q0 = tensor.cast %q : tensor<1x2x2x1xf32> to tensor<1x2x?x1xf32>
  %k0 = tensor.cast %k : tensor<1x1x3x1xf32> to tensor<1x1x?x1xf32>
  call @seen(%q0, %k0) : (tensor<1x2x?x1xf32>, tensor<1x1x?x1xf32>) -> ()
  call @extremes() : () -> ()
  return
}

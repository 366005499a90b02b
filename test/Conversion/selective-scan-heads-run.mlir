// Heads that share a step, a decay and a skip, in groups that share B and C:
// heads that a vector fits into, and such that it does not. Numbers from the
// recurrence in float64.
// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{lanes=4},canonicalize,cse), \
// RUN:   one-shot-bufferize{bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map}, \
// RUN:   func.func(scf-forall-to-for,attune-approximate-math),expand-strided-metadata,lower-affine,convert-vector-to-scf,convert-scf-to-cf,convert-math-to-libm,convert-vector-to-llvm, \
// RUN:   finalize-memref-to-llvm,convert-arith-to-llvm,convert-func-to-llvm,convert-cf-to-llvm,reconcile-unrealized-casts)" \
// RUN: | mlir-runner --entry-point-result=void --shared-libs=%llvm_tools/../lib/libmlir_c_runner_utils.so,%llvm_tools/../lib/libmlir_runner_utils.so \
// RUN: | FileCheck %s

func.func private @printMemrefF32(%data: tensor<*xf32> {bufferization.access = "read"})

func.func @main() {
  %x0 = arith.constant dense<[[[0.25, 0.48, 0.59, 0.88, 0.48, 0.84, -0.94, -0.07], [0.89, 0.3, 0.8, -0.77, -0.06, -0.51, 0.09, 0.15], [-0.97, -0.57, -0.44, 0.83, 0.53, -0.68, 0.59, -0.72]]]> : tensor<1x3x8xf32>
  %d0 = arith.constant dense<[[[0.23, -0.75], [-1.0, 0.74], [-0.58, -0.57]]]> : tensor<1x3x2xf32>
  %a0 = arith.constant dense<[0.96, 0.74]> : tensor<2xf32>
  %b0 = arith.constant dense<[[[-0.42, 0.92], [0.08, 0.36], [-0.59, 0.88]]]> : tensor<1x3x2xf32>
  %c0 = arith.constant dense<[[[0.38, 0.93], [0.79, -0.4], [-0.28, -0.67]]]> : tensor<1x3x2xf32>
  %s0 = arith.constant dense<[-0.71, -0.87]> : tensor<2xf32>
  %y0, %h0 = attune.selective_scan %x0 step %d0, a_log %a0, b %b0, c %c0, skip %s0
    : tensor<1x3x8xf32>, tensor<1x3x2xf32>, tensor<2xf32>, tensor<1x3x2xf32>, tensor<1x3x2xf32>, tensor<2xf32> -> tensor<1x3x8xf32>, tensor<1x2x8xf32>
  // CHECK:      sizes = [1, 3, 8]
  // CHECK-NEXT: -0.03573{{[0-9]*}},{{ +}}-0.06860{{[0-9]*}},{{ +}}-0.0843{{[0-9]*}},{{ +}}-0.1257{{[0-9]*}},{{ +}}-0.2883{{[0-9]*}},{{ +}}-0.504{{[0-9]*}},{{ +}}0.5646{{[0-9]*}},{{ +}}0.04205{{[0-9]*}}
  // CHECK-NEXT: -0.7173{{[0-9]*}},{{ +}}-0.3413{{[0-9]*}},{{ +}}-0.7366{{[0-9]*}},{{ +}}0.3447{{[0-9]*}},{{ +}}0.04551{{[0-9]*}},{{ +}}0.468{{[0-9]*}},{{ +}}-0.06269{{[0-9]*}},{{ +}}-0.1424{{[0-9]*}}
  // CHECK-NEXT: 0.8346{{[0-9]*}},{{ +}}0.477{{[0-9]*}},{{ +}}0.3416{{[0-9]*}},{{ +}}-0.7754{{[0-9]*}},{{ +}}-0.5583{{[0-9]*}},{{ +}}0.7744{{[0-9]*}},{{ +}}-0.6293{{[0-9]*}},{{ +}}0.7463{{[0-9]*}}
  %py0 = tensor.cast %y0 : tensor<1x3x8xf32> to tensor<*xf32>
  call @printMemrefF32(%py0) : (tensor<*xf32>) -> ()
  // CHECK:      sizes = [1, 2, 8]
  // CHECK-NEXT: 0.2496{{[0-9]*}},{{ +}}0.1291{{[0-9]*}},{{ +}}0.09380{{[0-9]*}},{{ +}}-0.2653{{[0-9]*}},{{ +}}-0.1451{{[0-9]*}},{{ +}}0.1568{{[0-9]*}},{{ +}}-0.1472{{[0-9]*}},{{ +}}0.1961{{[0-9]*}}
  // CHECK-NEXT: -0.3222{{[0-9]*}},{{ +}}-0.1627{{[0-9]*}},{{ +}}-0.08280{{[0-9]*}},{{ +}}0.3886{{[0-9]*}},{{ +}}0.2057{{[0-9]*}},{{ +}}-0.3383{{[0-9]*}},{{ +}}0.2347{{[0-9]*}},{{ +}}-0.2610{{[0-9]*}}
  %ph0 = tensor.cast %h0 : tensor<1x2x8xf32> to tensor<*xf32>
  call @printMemrefF32(%ph0) : (tensor<*xf32>) -> ()
  %x1 = arith.constant dense<[[[-0.4, 0.21, -0.99, 0.36, -0.32, -0.38, 0.64, -0.04, -0.37, -0.04, 0.41, -0.89], [0.95, -0.95, 0.5, 0.69, -0.96, 0.58, -0.27, 0.16, -0.98, -0.91, -0.64, 0.91], [-0.61, 0.51, 0.86, 0.88, -0.31, -0.29, 0.05, 0.55, -0.78, 0.5, 0.59, 0.72]]]> : tensor<1x3x12xf32>
  %d1 = arith.constant dense<[[[-0.93, 0.89, -0.82, -0.32], [0.22, 0.84, -0.32, 0.85], [0.09, -0.38, -0.37, -0.65]]]> : tensor<1x3x4xf32>
  %a1 = arith.constant dense<[-0.84, -0.7, 0.38, 0.99]> : tensor<4xf32>
  %b1 = arith.constant dense<[[[-0.68, -0.9, 0.97, 0.07], [-0.19, -0.53, 0.19, 0.65], [-0.09, -0.16, -0.89, 0.83]]]> : tensor<1x3x4xf32>
  %c1 = arith.constant dense<[[[-0.93, -0.01, 0.68, -0.74], [0.46, 0.9, 0.26, 0.58], [-0.79, -0.13, -0.7, 0.69]]]> : tensor<1x3x4xf32>
  %s1 = arith.constant dense<[-0.41, -0.09, 1.0, 0.7]> : tensor<4xf32>
  %y1, %h1 = attune.selective_scan %x1 step %d1, a_log %a1, b %b1, c %c1, skip %s1
    : tensor<1x3x12xf32>, tensor<1x3x4xf32>, tensor<4xf32>, tensor<1x3x4xf32>, tensor<1x3x4xf32>, tensor<4xf32> -> tensor<1x3x12xf32>, tensor<1x2x12xf32>
  // CHECK:      sizes = [1, 3, 12]
  // CHECK-NEXT: 0.07867{{[0-9]*}},{{ +}}-0.04130{{[0-9]*}},{{ +}}0.194{{[0-9]*}},{{ +}}0.2525{{[0-9]*}},{{ +}}-0.2244{{[0-9]*}},{{ +}}-0.2665{{[0-9]*}},{{ +}}0.781{{[0-9]*}},{{ +}}-0.04887{{[0-9]*}},{{ +}}-0.4520{{[0-9]*}},{{ +}}-0.04127{{[0-9]*}},{{ +}}0.4230{{[0-9]*}},{{ +}}-0.9182{{[0-9]*}}
  // CHECK-NEXT: -0.7180{{[0-9]*}},{{ +}}0.7680{{[0-9]*}},{{ +}}-0.1726{{[0-9]*}},{{ +}}-0.8040{{[0-9]*}},{{ +}}0.9804{{[0-9]*}},{{ +}}-0.1543{{[0-9]*}},{{ +}}-0.3020{{[0-9]*}},{{ +}}0.1953{{[0-9]*}},{{ +}}-1.225{{[0-9]*}},{{ +}}-1.105{{[0-9]*}},{{ +}}-0.7745{{[0-9]*}},{{ +}}1.099{{[0-9]*}}
  // CHECK-NEXT: 0.2864{{[0-9]*}},{{ +}}-0.2733{{[0-9]*}},{{ +}}-0.3401{{[0-9]*}},{{ +}}0.2265{{[0-9]*}},{{ +}}-0.2914{{[0-9]*}},{{ +}}-0.0008118{{[0-9]*}},{{ +}}0.02905{{[0-9]*}},{{ +}}0.9100{{[0-9]*}},{{ +}}-1.330{{[0-9]*}},{{ +}}0.4895{{[0-9]*}},{{ +}}0.628{{[0-9]*}},{{ +}}0.9812{{[0-9]*}}
  %py1 = tensor.cast %y1 : tensor<1x3x12xf32> to tensor<*xf32>
  call @printMemrefF32(%py1) : (tensor<*xf32>) -> ()
  // CHECK:      sizes = [1, 2, 12]
  // CHECK-NEXT: -0.01921{{[0-9]*}},{{ +}}0.04788{{[0-9]*}},{{ +}}0.001663{{[0-9]*}},{{ +}}-0.2911{{[0-9]*}},{{ +}}0.2976{{[0-9]*}},{{ +}}0.04734{{[0-9]*}},{{ +}}0.01095{{[0-9]*}},{{ +}}-0.2523{{[0-9]*}},{{ +}}0.2900{{[0-9]*}},{{ +}}-0.254{{[0-9]*}},{{ +}}-0.2651{{[0-9]*}},{{ +}}-0.207{{[0-9]*}}
  // CHECK-NEXT: -0.1626{{[0-9]*}},{{ +}}0.2035{{[0-9]*}},{{ +}}-0.105{{[0-9]*}},{{ +}}-0.5820{{[0-9]*}},{{ +}}0.6480{{[0-9]*}},{{ +}}-0.08068{{[0-9]*}},{{ +}}-0.01924{{[0-9]*}},{{ +}}0.2658{{[0-9]*}},{{ +}}-0.5033{{[0-9]*}},{{ +}}-0.05599{{[0-9]*}},{{ +}}0.04392{{[0-9]*}},{{ +}}0.4808{{[0-9]*}}
  %ph1 = tensor.cast %h1 : tensor<1x2x12xf32> to tensor<*xf32>
  call @printMemrefF32(%ph1) : (tensor<*xf32>) -> ()
  return
}

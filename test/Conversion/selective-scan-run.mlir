// A scan may go on where another ended: two tokens and then three give what five
// give at once, and the same last states. softplus(-15) and softplus(30) are
// among the step sizes.
// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{lanes=4},canonicalize,cse), \
// RUN:   one-shot-bufferize{bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map}, \
// RUN:   func.func(scf-forall-to-for,attune-approximate-math),expand-strided-metadata,lower-affine,convert-vector-to-scf,convert-scf-to-cf,convert-math-to-libm,convert-vector-to-llvm, \
// RUN:   finalize-memref-to-llvm,convert-arith-to-llvm,convert-func-to-llvm,convert-cf-to-llvm,reconcile-unrealized-casts)" \
// RUN: | mlir-runner --entry-point-result=void --shared-libs=%llvm_tools/../lib/libmlir_c_runner_utils.so,%llvm_tools/../lib/libmlir_runner_utils.so \
// RUN: | FileCheck %s

func.func private @printMemrefF32(%data: tensor<*xf32> {bufferization.access = "read"})

func.func @main() {
  %x = arith.constant dense<[[[1.0, -1.0, 0.5], [0.5, 2.0, 1.0], [-1.0, 0.25, 2.0], [0.0, 1.0, -2.0], [3.0, 0.5, 1.0]]]> : tensor<1x5x3xf32>
  %d = arith.constant dense<[[[0.0, 1.0, -15.0], [30.0, -1.0, 0.5], [0.25, 0.5, 1.0], [-2.0, 0.0, 2.0], [1.0, 1.0, 1.0]]]> : tensor<1x5x3xf32>
  %b = arith.constant dense<[[[1.0, 0.5], [-1.0, 1.0], [0.5, 2.0], [1.0, 1.0], [2.0, -1.0]]]> : tensor<1x5x2xf32>
  %a = arith.constant dense<[[0.0, 0.5], [-1.0, 1.0], [0.25, -0.5]]> : tensor<3x2xf32>
  %s = arith.constant dense<[1.0, 0.5, 2.0]> : tensor<3xf32>
  %x0 = tensor.extract_slice %x[0, 0, 0] [1, 2, 3] [1, 1, 1] : tensor<1x5x3xf32> to tensor<1x2x3xf32>
  %d0 = tensor.extract_slice %d[0, 0, 0] [1, 2, 3] [1, 1, 1] : tensor<1x5x3xf32> to tensor<1x2x3xf32>
  %b0 = tensor.extract_slice %b[0, 0, 0] [1, 2, 2] [1, 1, 1] : tensor<1x5x2xf32> to tensor<1x2x2xf32>
  %x1 = tensor.extract_slice %x[0, 2, 0] [1, 3, 3] [1, 1, 1] : tensor<1x5x3xf32> to tensor<1x3x3xf32>
  %d1 = tensor.extract_slice %d[0, 2, 0] [1, 3, 3] [1, 1, 1] : tensor<1x5x3xf32> to tensor<1x3x3xf32>
  %b1 = tensor.extract_slice %b[0, 2, 0] [1, 3, 2] [1, 1, 1] : tensor<1x5x2xf32> to tensor<1x3x2xf32>
  // CHECK:      sizes = [1, 5, 3]
  // CHECK-NEXT:  1.866{{[0-9]*}},    -2.141{{[0-9]*}},    1
  // CHECK-NEXT:  30.5,    3.143{{[0-9]*}},    3.948{{[0-9]*}}
  // CHECK-NEXT:  -0.1075{{[0-9]*}},    0.5811{{[0-9]*}},    15.95{{[0-9]*}}
  // CHECK-NEXT:  -4.370{{[0-9]*}},    1.085{{[0-9]*}},    -10.86{{[0-9]*}}
  // CHECK-NEXT:  19.1{{[0-9]*}},    3.282{{[0-9]*}},    8.229{{[0-9]*}}
  %y, %h = attune.selective_scan %x step %d, a_log %a, b %b, c %b, skip %s
    : tensor<1x5x3xf32>, tensor<1x5x3xf32>, tensor<3x2xf32>, tensor<1x5x2xf32>, tensor<1x5x2xf32>, tensor<3xf32> -> tensor<1x5x3xf32>, tensor<1x2x3xf32>
  %py = tensor.cast %y : tensor<1x5x3xf32> to tensor<*xf32>
  call @printMemrefF32(%py) : (tensor<*xf32>) -> ()
  // CHECK:      sizes = [1, 2, 3]
  // CHECK-NEXT:  6.226{{[0-9]*}},    1.19{{[0-9]*}},    1.852{{[0-9]*}}
  // CHECK-NEXT:  -3.735{{[0-9]*}},    -0.6349{{[0-9]*}},    -2.524{{[0-9]*}}
  %ph = tensor.cast %h : tensor<1x2x3xf32> to tensor<*xf32>
  call @printMemrefF32(%ph) : (tensor<*xf32>) -> ()
  %y0, %h0 = attune.selective_scan %x0 step %d0, a_log %a, b %b0, c %b0, skip %s
    : tensor<1x2x3xf32>, tensor<1x2x3xf32>, tensor<3x2xf32>, tensor<1x2x2xf32>, tensor<1x2x2xf32>, tensor<3xf32> -> tensor<1x2x3xf32>, tensor<1x2x3xf32>
  %y1, %h1 = attune.selective_scan %x1 step %d1, a_log %a, b %b1, c %b1, skip %s state %h0 : tensor<1x2x3xf32>
    : tensor<1x3x3xf32>, tensor<1x3x3xf32>, tensor<3x2xf32>, tensor<1x3x2xf32>, tensor<1x3x2xf32>, tensor<3xf32> -> tensor<1x3x3xf32>, tensor<1x2x3xf32>
  // CHECK:      sizes = [1, 3, 3]
  // CHECK-NEXT:  -0.1075{{[0-9]*}},    0.5811{{[0-9]*}},    15.95{{[0-9]*}}
  // CHECK-NEXT:  -4.370{{[0-9]*}},    1.085{{[0-9]*}},    -10.86{{[0-9]*}}
  // CHECK-NEXT:  19.1{{[0-9]*}},    3.282{{[0-9]*}},    8.229{{[0-9]*}}
  %py1 = tensor.cast %y1 : tensor<1x3x3xf32> to tensor<*xf32>
  call @printMemrefF32(%py1) : (tensor<*xf32>) -> ()
  // CHECK:      sizes = [1, 2, 3]
  // CHECK-NEXT:  6.226{{[0-9]*}},    1.19{{[0-9]*}},    1.852{{[0-9]*}}
  // CHECK-NEXT:  -3.735{{[0-9]*}},    -0.6349{{[0-9]*}},    -2.524{{[0-9]*}}
  %ph1 = tensor.cast %h1 : tensor<1x2x3xf32> to tensor<*xf32>
  call @printMemrefF32(%ph1) : (tensor<*xf32>) -> ()
  return
}

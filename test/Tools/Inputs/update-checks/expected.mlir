// RUN: attune-opt %s | FileCheck %s
// RUN: attune-opt %s --canonicalize \
// RUN:   | FileCheck %s --check-prefix=CANON

// What stands here stays.
// CHECK-LABEL: @twice(
// CHECK-SAME: %[[ARG0:[a-zA-Z0-9_]+]]: tensor<2x2xf32>) -> tensor<2x2xf32>
// CHECK-NEXT:  %[[CST:[a-zA-Z0-9_]+]] = arith.constant dense<{{\[\[}}1.000000e+00, 2.000000e+00], [3.000000e+00, 4.000000e+00]]> : tensor<2x2xf32>
// CHECK-NEXT:  %[[V0:[a-zA-Z0-9_]+]] = arith.addf %[[ARG0]], %[[CST]] : tensor<2x2xf32>
// CHECK-NEXT:  return %[[V0]] : tensor<2x2xf32>
// CANON-LABEL: @twice(
// CANON-SAME: %[[ARG0:[a-zA-Z0-9_]+]]: tensor<2x2xf32>) -> tensor<2x2xf32>
// CANON-NEXT:  %[[CST:[a-zA-Z0-9_]+]] = arith.constant dense<{{\[\[}}1.000000e+00, 2.000000e+00], [3.000000e+00, 4.000000e+00]]> : tensor<2x2xf32>
// CANON-NEXT:  %[[V0:[a-zA-Z0-9_]+]] = arith.addf %[[ARG0]], %[[CST]] : tensor<2x2xf32>
// CANON-NEXT:  return %[[V0]] : tensor<2x2xf32>
func.func @twice(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %c = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %y = arith.addf %x, %c : tensor<2x2xf32>
  return %y : tensor<2x2xf32>
}

// CHECK-LABEL: @same(
// CHECK-SAME: %[[ARG0:[a-zA-Z0-9_]+]]: index) -> index
// CHECK-NEXT:  return %[[ARG0]] : index
// CANON-LABEL: @same(
// CANON-SAME: %[[ARG0:[a-zA-Z0-9_]+]]: index) -> index
// CANON-NEXT:  return %[[ARG0]] : index
func.func @same(%x: index) -> index {
  return %x : index
}

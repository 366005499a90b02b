// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{lanes=8 rows=4 cooperative}))" | FileCheck %s

// One op for a block of threads, with all that it fuses; the
// residual is where it goes.
// CHECK-LABEL: func.func @half(
// CHECK-SAME:    %[[X:.+]]: tensor<?x64xf32>, %[[W:.+]]: tensor<3x64x8xbf16>, %[[B:.+]]: tensor<24xbf16>, %[[R:.+]]: tensor<?x24xf32>
// CHECK-NEXT:    %[[Y:.+]] = attune.linear_into %[[X]], %[[W]] bias %[[B]] : tensor<24xbf16> into %[[R]] activation <silu> residual
// CHECK-NEXT:    return %[[Y]]
func.func @half(%x: tensor<?x64xf32>, %w: tensor<3x64x8xbf16>, %b: tensor<24xbf16>, %r: tensor<?x24xf32>) -> tensor<?x24xf32> {
  %y = attune.linear %x, %w bias %b : tensor<24xbf16> residual %r : tensor<?x24xf32> activation <silu> : tensor<?x64xf32>, tensor<3x64x8xbf16> -> tensor<?x24xf32>
  return %y : tensor<?x24xf32>
}

// Weights of f32 as well.
// CHECK-LABEL: func.func @single(
// CHECK:         attune.linear_into
// CHECK-NOT:     scf.forall
func.func @single(%x: tensor<?x64xf32>, %w: tensor<3x64x8xf32>) -> tensor<?x24xf32> {
  %y = attune.linear %x, %w : tensor<?x64xf32>, tensor<3x64x8xf32> -> tensor<?x24xf32>
  return %y : tensor<?x24xf32>
}

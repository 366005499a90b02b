// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{lanes=32 rows=6 matrix-rows=6}))" | FileCheck %s
// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{lanes=32 rows=6}))" | FileCheck %s --check-prefix=VECTORS

// A matrix unit's rows are one piece of memory: they are copied in the order of
// experts, and the hidden layer is in that order anyway. Both are bf16.
// CHECK-LABEL: func.func @experts(
// CHECK-SAME:    %[[X:[^:]+]]: tensor<?x64xbf16>
// The rows in order ...
// CHECK:         %[[ROWS:.+]] = scf.forall {{.+}} -> (tensor<?x64xbf16>)
// CHECK:           vector.transfer_read %[[X]]
// ... against gates and their partners, then the hidden layer.
// CHECK:         %[[H:.+]] = scf.forall {{.+}} -> (tensor<?x48xbf16>)
// CHECK:           attune.packed_product %[[ROWS]][%{{.+}}], %{{.+}}[%{{.+}}, %{{.+}}] of 48 {{.*}}matrix
// CHECK-NOT:         by %
// CHECK:         scf.forall {{.+}} -> (tensor<?x64xf32>)
// CHECK:           attune.packed_product %[[H]][
// Without one rows come in the router's order.
// VECTORS-LABEL: func.func @experts(
// VECTORS-SAME:  %[[X:[^:]+]]: tensor<?x64xbf16>
// VECTORS:         attune.packed_product %[[X]][{{.+}} by %{{.+}} : tensor<?xi64>
func.func @experts(%x: tensor<?x64xbf16>, %e: tensor<?x2xi64>, %w: tensor<?x2xf32>, %up: tensor<4x4x32x64xbf16>, %down: tensor<4x2x24x64xbf16>) -> tensor<?x64xf32> {
  %y = attune.moe %x, %e, %w, %up, %down gated activation <silu>
     : tensor<?x64xbf16>, tensor<?x2xi64>, tensor<?x2xf32>, tensor<4x4x32x64xbf16>, tensor<4x2x24x64xbf16> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

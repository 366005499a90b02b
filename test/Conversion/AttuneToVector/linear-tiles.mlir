// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{lanes=8 rows=4 tiles-in-parallel}))" | FileCheck %s

// A step for every four rows of every panel of eight channels; the last rows are
// as many as there are.
// CHECK-LABEL: func.func @linear(
// CHECK:         %[[TILES:.+]] = arith.divsi %{{.+}}, %c4{{.*}} : index
// CHECK:         scf.forall (%[[I:.+]], %[[P:.+]]) in (%[[TILES]], 3)
// CHECK:           %[[FIRST:.+]] = arith.muli %[[I]], %c4{{.*}} : index
// CHECK:           %[[REST:.+]] = arith.subi %{{.+}}, %[[FIRST]] : index
// CHECK:           arith.minsi %[[REST]], %c4{{.*}} : index
// CHECK:           tensor.parallel_insert_slice {{.+}} : tensor<?x8xf32> into tensor<?x24xf32>
func.func @linear(%x: tensor<?x64xf32>, %w: tensor<3x64x8xf32>) -> tensor<?x24xf32> {
  %y = attune.linear %x, %w : tensor<?x64xf32>, tensor<3x64x8xf32> -> tensor<?x24xf32>
  return %y : tensor<?x24xf32>
}

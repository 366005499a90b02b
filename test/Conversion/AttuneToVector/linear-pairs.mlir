// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{lanes=32 rows=3},attune-prefetch-tiles,convert-attune-product-to-vector),canonicalize,cse)" --split-input-file \
// RUN:   | FileCheck %s --implicit-check-not="attune.linear"

// A panel that is half as deep as the input is wide holds pairs. Each turn of
// the loop takes one: two instructions for the 32 outputs of each of three rows.
// CHECK-LABEL: @pairs(
// CHECK-SAME:    %[[X:[^:]+]]: tensor<3x12xbf16>, %[[W:[^:]+]]: tensor<2x6x64xbf16>)
// CHECK:         scf.for %[[K:.+]] = %c0 to %c6 step %c1 {{.+}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>)
// CHECK-DAG:       vector.transfer_read %[[W]][%{{.+}}, %[[K]], %c0]{{.+}}, vector<32xbf16>
// CHECK-DAG:       vector.transfer_read %[[W]][%{{.+}}, %[[K]], %c32]{{.+}}, vector<32xbf16>
// CHECK-DAG:       vector.transfer_read %[[X]][%c0, %{{.+}}]{{.+}}, vector<2xbf16>
// CHECK:           vector.shuffle {{.+}} [0, 1, 0, 1, 0, 1,
// CHECK-COUNT-2:   x86vector.avx512.dot {{.+}} : vector<32xbf16> -> vector<16xf32>
// CHECK-COUNT-4:   x86vector.avx512.dot
// CHECK-NOT:       x86vector.avx512.dot
// CHECK-NOT:       arith.extf
// CHECK:           scf.yield
func.func @pairs(%x: tensor<3x12xbf16>, %w: tensor<2x6x64xbf16>) -> tensor<3x64xf32> {
  %y = attune.linear %x, %w : tensor<3x12xbf16>, tensor<2x6x64xbf16> -> tensor<3x64xf32>
  return %y : tensor<3x64xf32>
}

// -----

// A row of a table in pairs: every second element of one lane.
// CHECK-LABEL: @table(
// CHECK-DAG:     %[[D:.+]] = arith.divui %[[C:.+]], %c2
// CHECK-DAG:     arith.remui %[[C]], %c2
// CHECK:         tensor.extract %{{.+}}[%{{.+}}, %[[D]], %{{.+}}] : tensor<3x6x64xbf16>
func.func @table(%ids: tensor<?x?xi64>, %w: tensor<3x6x64xbf16>) -> tensor<?x?x12xf32> {
  %y = attune.embedding %ids, %w : tensor<?x?xi64>, tensor<3x6x64xbf16> -> tensor<?x?x12xf32>
  return %y : tensor<?x?x12xf32>
}

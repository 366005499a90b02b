// RUN: attune-opt %s --pass-pipeline="builtin.module(func.func(convert-attune-to-vector{lanes=8}),canonicalize,cse)" --split-input-file | FileCheck %s --implicit-check-not="attune.embedding" --implicit-check-not="attune.sinusoidal" --implicit-check-not="attune.rotary"

// CHECK-LABEL: @plain(
// CHECK-SAME:    %[[IDS:[^:]+]]: tensor<?x?xi64>, %[[T:[^:]+]]: tensor<50x16xf32>)
// CHECK:         scf.forall
// CHECK:           %[[ID:.+]] = tensor.extract %[[IDS]][%{{.+}}, %{{.+}}]
// CHECK:           %[[ROW:.+]] = arith.index_cast %[[ID]] : i64 to index
// CHECK:           vector.transfer_read %[[T]][%[[ROW]], %{{.+}}]
// CHECK:           vector.transfer_write
func.func @plain(%ids: tensor<?x?xi64>, %t: tensor<50x16xf32>) -> tensor<?x?x16xf32> {
  %y = attune.embedding %ids, %t : tensor<?x?xi64>, tensor<50x16xf32> -> tensor<?x?x16xf32>
  return %y : tensor<?x?x16xf32>
}

// -----

// The addend is updated in place.
// CHECK-LABEL: @addend(
// CHECK-SAME:    %{{[^:]+}}: tensor<?x?xi64>, %{{[^:]+}}: tensor<50x16xf32>, %[[A:[^:]+]]: tensor<?x?x16xf32>)
// CHECK-NOT:     tensor.empty
// CHECK:         %[[ROWS:.+]] = attune.flatten_tokens %[[A]]
// CHECK:         scf.forall {{.+}} shared_outs(%{{.+}} = %[[ROWS]])
func.func @addend(%ids: tensor<?x?xi64>, %t: tensor<50x16xf32>, %a: tensor<?x?x16xf32>) -> tensor<?x?x16xf32> {
  %y = attune.embedding %ids, %t add %a : tensor<?x?x16xf32> scale 2.0 offset 2
     : tensor<?x?xi64>, tensor<50x16xf32> -> tensor<?x?x16xf32>
  return %y : tensor<?x?x16xf32>
}

// -----

// A row of a packed table is one lane of a panel.
// CHECK-LABEL: @packed(
// CHECK-SAME:    %{{[^:]+}}: tensor<?x?xi64>, %[[T:[^:]+]]: tensor<7x16x8xbf16>)
// CHECK:         arith.index_cast
// CHECK:         %[[P:.+]] = arith.divsi %[[ID:.+]], %[[C8:.+]] : index
// CHECK:         %[[L:.+]] = arith.remsi %[[ID]], %[[C8]] : index
// CHECK:         scf.for %[[C:[^ ]+]] =
// CHECK:           %[[X:.+]] = tensor.extract %[[T]][%[[P]], %[[C]], %[[L]]]
// CHECK:           arith.extf %[[X]] : bf16 to f32
func.func @packed(%ids: tensor<?x?xi64>, %t: tensor<7x16x8xbf16>) -> tensor<?x?x16xf32> {
  %y = attune.embedding %ids, %t : tensor<?x?xi64>, tensor<7x16x8xbf16> -> tensor<?x?x16xf32>
  return %y : tensor<?x?x16xf32>
}

// -----

// Sine and cosine are polynomials; their frequencies are a constant.
// CHECK-LABEL: @sinusoidal(
// CHECK:         arith.constant dense<[1.000000e+00, 0.00999999977]> : tensor<2xf32>
// CHECK-NOT:     math.{{sin|cos}} %
// CHECK:         vector.interleave %{{.+}}, %{{.+}} : vector<2xf32> -> vector<4xf32>
func.func @sinusoidal(%p: tensor<?x?xi64>) -> tensor<?x?x4xf32> {
  %y = attune.sinusoidal %p convention <interleaved> : tensor<?x?xi64> -> tensor<?x?x4xf32>
  return %y : tensor<?x?x4xf32>
}

// -----

// One table each for cosine and sine.
// CHECK-LABEL: @rotary_table(
// CHECK:         arith.constant dense<[1.000000e+00, 0.00999999977]> : tensor<2xf32>
// CHECK-COUNT-2: scf.forall (
// CHECK-NOT:     scf.forall (
// CHECK:         return
func.func @rotary_table(%p: tensor<?x?xi64>) -> (tensor<?x?x2xf32>, tensor<?x?x2xf32>) {
  %c, %s = attune.rotary_table %p frequencies [1.0, 0.01] : tensor<?x?xi64> -> tensor<?x?x2xf32>, tensor<?x?x2xf32>
  return %c, %s : tensor<?x?x2xf32>, tensor<?x?x2xf32>
}

// RUN: attune-opt %s --attune-low-rank=rules=*.fc:16,*.down:none,*:8 --split-input-file | FileCheck %s
// RUN: attune-opt %s --attune-low-rank=rules=*.fc:16,*.down:none,*:8 --split-input-file --remarks-filter=attune-low-rank -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: attune-opt %s --attune-low-rank=rules=*.fc:16,*.down:none,*:8 --attune-quantize --split-input-file | FileCheck %s --check-prefix=BYTES

// One for each layer, and one without a rank; what follows the product stays with the second.
// CHECK-NOT:  attune.weight @h.fc
// CHECK-DAG:  attune.weight @h.fc.right stacked : tensor<2x16x64xf32> from [#attune.source<"h.{i}.fc.weight">] {attune.factor = "right", attune.product = array<i64: 96, 64>}
// CHECK-DAG:  attune.weight @h.fc.left stacked : tensor<2x96x16xf32> from [#attune.source<"h.{i}.fc.weight">] {attune.factor = "left", attune.product = array<i64: 96, 64>}
// CHECK-DAG:  attune.weight @h.down : tensor<64x48xf32>
// REMARK-DAG: Remark="'h.fc' of 96x64 has rank 16"
// Rows of the left factor are too short for groups.
// BYTES-DAG:  attune.weight @out.right : tensor<8x64xi8> {{.+}}attune.factor = "right", attune.group = 64 : i64
// BYTES-DAG:  attune.weight @out.right.scales : tensor<8x1xf32> {{.+}}attune.factor = "right", attune.group = 64 : i64
// BYTES-DAG:  attune.weight @out.left : tensor<80x8xf32>
attune.weight @h.fc stacked : tensor<2x96x64xf32> from [#attune.source<"h.{i}.fc.weight">] {attune.stored = "int4:g32"}
attune.weight @h.down : tensor<64x48xf32> from [#attune.source<"h.down.weight">]
attune.weight @out : tensor<80x64xf32> from [#attune.source<"out">]
// CHECK-LABEL: @block(
// CHECK-SAME:    %[[X:.+]]: tensor<?x64xf32>, %[[B:.+]]: tensor<96xf32>, %[[R:.+]]: tensor<?x64xf32>, %[[I:.+]]: index)
// CHECK-DAG:     %[[LEFT:.+]] = attune.weight_get @h.fc.left[%[[I]]] : tensor<96x16xf32>
// CHECK-DAG:     %[[RIGHT:.+]] = attune.weight_get @h.fc.right[%[[I]]] : tensor<16x64xf32>
// CHECK:         %[[Z:.+]] = attune.linear %[[X]], %[[RIGHT]] rms_eps 9.99999974E-6 : tensor<?x64xf32>, tensor<16x64xf32> -> tensor<?x16xf32>
// CHECK:         %[[Y:.+]] = attune.linear %[[Z]], %[[LEFT]] bias %[[B]] : tensor<96xf32> activation <silu> gated scale 5.000000e-01 : tensor<?x16xf32>, tensor<96x16xf32> -> tensor<?x48xf32>
// CHECK:         attune.linear %[[Y]], %{{.+}} residual %[[R]]
func.func @block(%x: tensor<?x64xf32>, %b: tensor<96xf32>, %r: tensor<?x64xf32>, %i: index) -> tensor<?x80xf32> {
  %w = attune.weight_get @h.fc[%i] : tensor<96x64xf32>
  %y = attune.linear %x, %w bias %b : tensor<96xf32> activation <silu> gated scale 0.5 rms_eps 1.0e-5
     : tensor<?x64xf32>, tensor<96x64xf32> -> tensor<?x48xf32>
  %d = attune.weight_get @h.down : tensor<64x48xf32>
  %z = attune.linear %y, %d residual %r : tensor<?x64xf32> : tensor<?x48xf32>, tensor<64x48xf32> -> tensor<?x64xf32>
  %o = attune.weight_get @out : tensor<80x64xf32>
  %e = attune.linear %z, %o : tensor<?x64xf32>, tensor<80x64xf32> -> tensor<?x80xf32>
  return %e : tensor<?x80xf32>
}

// -----

// What saves nothing, or has another user, stays.
// CHECK-DAG:  attune.weight @a.fc : tensor<32x32xf32>
// CHECK-DAG:  attune.weight @tied : tensor<40x32xf32>
// CHECK-DAG:  attune.weight @b.down : tensor<64x64xf32>
// REMARK-DAG: Remark="'a.fc' of 32x32 saves nothing at rank 16; at most 15 do"
// REMARK-DAG: Remark="'tied' is used by 'attune.embedding' too"
attune.weight @a.fc : tensor<32x32xf32> from [#attune.source<"a.fc">]
attune.weight @b.down : tensor<64x64xf32> from [#attune.source<"b.down">]
attune.weight @tied : tensor<40x32xf32> from [#attune.source<"tied">]
// CHECK-LABEL: @left(
func.func @left(%x: tensor<?x32xf32>, %v: tensor<?x64xf32>, %ids: tensor<1x3xi64>) -> (tensor<?x40xf32>, tensor<1x3x32xf32>, tensor<?x64xf32>) {
  %w = attune.weight_get @a.fc : tensor<32x32xf32>
  %y = attune.linear %x, %w : tensor<?x32xf32>, tensor<32x32xf32> -> tensor<?x32xf32>
  %t = attune.weight_get @tied : tensor<40x32xf32>
  %z = attune.linear %y, %t : tensor<?x32xf32>, tensor<40x32xf32> -> tensor<?x40xf32>
  %e = attune.embedding %ids, %t : tensor<1x3xi64>, tensor<40x32xf32> -> tensor<1x3x32xf32>
  %d = attune.weight_get @b.down : tensor<64x64xf32>
  %q = attune.linear %v, %d : tensor<?x64xf32>, tensor<64x64xf32> -> tensor<?x64xf32>
  return %z, %e, %q : tensor<?x40xf32>, tensor<1x3x32xf32>, tensor<?x64xf32>
}
